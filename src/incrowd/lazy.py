"""Names of a package that load on first use, so that ``import incrowd`` stays quick."""

import sys

TYPE_CHECKING = False  # as in incrowd/__init__.py
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)


def lazy_names(package: str, names: "Mapping[str, str]") -> list[str]:
    """Give a package names that load on first use, and return them sorted, as its ``__all__``.

    `names` says where each lives, as "module:attribute", or as "module" for the module itself. A name may be that of
    a submodule (`assess` the function lives in `assess` the file): asked of the package, it is the function.
    """

    class LazyPackage(ModuleType):
        def __getattr__(self, name: str) -> "Any":
            if name not in names:
                raise AttributeError(
                    f"module '{package}' has no attribute {name!r}; it has: {', '.join(sorted(names))}"
                )
            module, _, attribute = names[name].partition(":")
            __import__(module)
            loaded = sys.modules[module]
            return getattr(loaded, attribute) if attribute else loaded

        def __setattr__(self, name: str, value: "Any") -> None:
            # Importing a submodule puts it into its package; a function of the same name keeps its place.
            if isinstance(value, ModuleType) and ":" in names.get(name, ""):
                return
            super().__setattr__(name, value)

        def __dir__(self) -> list[str]:
            return sorted(names)

    sys.modules[package].__class__ = LazyPackage
    return sorted(names)
