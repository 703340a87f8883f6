"""Names of a package that load on first use, so that ``import incrowd`` stays quick."""

import sys

TYPE_CHECKING = False  # as in incrowd/__init__.py
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)


def lazy_names(package: str, where: "Mapping[str, str]") -> None:
    """Give a package names that load on first use.

    `where` says which module holds which names: ``{".spec": "ADVERSARIES BeliefOptions:Options", ".study": ""}``. A
    module that begins with a dot lies in the package; a name after a colon is what the package calls it; no name means
    the module itself. A name may be that of a submodule (`assess` the function lives in `assess` the file): asked of
    the package, it is the function.
    """
    names: dict[str, tuple[str, str]] = {}
    for place, listed in where.items():
        module = package + place if place.startswith(".") else place
        for one in listed.split():
            attribute, _, name = one.partition(":")
            names[name or attribute] = module, attribute
        if not listed:
            names[module.rpartition(".")[2]] = module, ""

    class LazyPackage(ModuleType):
        def __getattr__(self, name: str) -> "Any":
            if name not in names:
                raise AttributeError(
                    f"module '{package}' has no attribute {name!r}; it has: {', '.join(sorted(names))}"
                )
            module, attribute = names[name]
            __import__(module)
            loaded = sys.modules[module]
            return getattr(loaded, attribute) if attribute else loaded

        def __setattr__(self, name: str, value: "Any") -> None:
            # Importing a submodule puts it into its package; a function of the same name keeps its place.
            if isinstance(value, ModuleType) and names.get(name, ("", ""))[1]:
                return
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted(names)

    sys.modules[package].__class__ = LazyPackage
