"""Imports only point up the list of layers and never in a circle; `make lint` prints the arrows."""

from __future__ import annotations

import re
import runpy
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
READ = runpy.run_path(str(ROOT / "docs" / "layers.py"), run_name="layers")
LAYERS = list(READ["LAYERS"])
MODULES = READ["modules"]()
EXTRAS = {
    "cupy",
    "dask",
    "distributed",
    "fastapi",
    "gensim",
    "httpx",
    "keyring",
    "opendp",
    "psycopg",
    "rapidfuzz",
}
EXTRAS |= {"safetensors", "sqlglot", "tokenizers", "tomotopy", "uvicorn", "wordllama"}
GPU_MODULES = {
    "incrowd.measures.microdata.overlaps_gpu"
}  # loaded once a kernel on the graphics card is asked for
SLOW = {
    "narwhals",
    "filelock",  # with asyncio
    "rich",
    "numba",
    "polars",
    "pyarrow",
    "duckdb",
    "scipy",
    "scipy.sparse",
    "scipy.special",
    "scipy.stats",
    "scipy.optimize",
}
"""0.03 to 1.1 s of processor time each; a draft must not wait for any of them, asking again not for Numba."""
BARE_ARRAY_LAYERS = {"numpy", "scipy", "numba", "llvmlite", "cupy", "cupyx"}  # llvmlite comes with Numba


def imports(module: str) -> set[str]:
    return set(READ["imported"](MODULES[module]))


def test_imports_point_up_the_list_of_layers() -> None:
    arrows = READ["arrows"]()
    for layer in LAYERS:
        if arrows[layer]:
            print(f"{layer:>10} -> {', '.join(sorted(arrows[layer], key=LAYERS.index))}")
    for layer, targets in arrows.items():
        assert layer in LAYERS, f"'{layer}' has no place in the list of layers"
        for target in targets:
            assert LAYERS.index(target) < LAYERS.index(layer), f"{layer} must not import {target}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Also not inside functions: modules that need each other are one module, or share a third."""
    found = READ["circles"]()
    assert not found, "\n".join(" <-> ".join(circle) for circle in found)


def test_measures_never_import_each_other() -> None:
    for module in MODULES:
        parts = module.split(".")
        if parts[1:2] != ["measures"] or len(parts) < 3:
            continue
        if f"{module}." not in " ".join(MODULES) and len(parts) == 3:  # the registry and what measures share
            continue
        for target in imports(module):
            other = target.split(".")
            if other[1:2] == ["measures"] and len(other) > 2:
                package = ".".join(other[:3])
                shared = f"{package}." not in " ".join(MODULES)
                assert shared or other[2] == parts[2], f"{module} imports its sibling {target}"


def test_the_numeric_core_runs_on_a_bare_gpu_host() -> None:
    for module in MODULES:
        parts = module.split(".")
        numeric = parts[1:2] == ["distances"] or (parts[1:2] == ["measures"] and parts[-1] == "definition")
        if not numeric:
            continue
        for target in imports(module):
            top = target.split(".")[0]
            allowed = top in BARE_ARRAY_LAYERS or top in sys.stdlib_module_names or top == "incrowd"
            assert allowed, f"{module} imports {target}: only NumPy, SciPy, Numba and CuPy are there"


def test_an_import_waits_in_a_function_only_where_that_saves_time() -> None:
    """It belongs to an extra, or it is slow to load and the module does without it until then."""
    extras = EXTRAS | {"resource"}  # which Windows does not have
    for module, tree in MODULES.items():
        if (
            module.split(".")[1:2] == ["cli"] or module == "incrowd"
        ):  # what every command loads is next to nothing
            continue
        there = READ["packages"](module)
        late = {one for one in imports(module) if one not in set(READ["imported"](tree, at_once=True))}
        typing_only = late - set(READ["imported"](tree, at_run_time=True))
        for target in late - typing_only - {"incrowd"}:
            needed = READ["packages"](target)
            assert needed & extras or (needed & SLOW) - there, f"{module} may import {target} at its top"


def test_a_plain_install_finds_whatever_is_imported_at_the_top_of_a_file() -> None:
    """Only what comes with an extra is left out: it is loaded after a word about the extra."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = [re.split(r"[<>=\[]", one)[0] for one in project["dependencies"]]
    plain = {"incrowd", "llvmlite", *sys.stdlib_module_names, *(name.split(".")[0] for name in names)}
    of_extras = {"incrowd.web", "incrowd.gateway", "incrowd.collect"}
    for module, tree in MODULES.items():
        if ".".join(module.split(".")[:2]) in of_extras or module in GPU_MODULES:
            continue
        for target in READ["imported"](tree, at_once=True):
            assert target.split(".")[0] in plain, (
                f"{module} imports {target}, which a plain install does not have"
            )


def test_what_tests_take_from_benchmarks_needs_no_package_of_benchmarks_alone() -> None:
    """`make test` installs the group for tests; the peers that benchmarks compare with come with another."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    bench, test = ({re.split(r"[<>=]", one)[0] for one in groups[name]} for name in ("bench", "test"))
    waiting = {
        name for path in (ROOT / "tests").rglob("*.py") for name in _benchmarks(path.read_text("utf-8"))
    }
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        source = (ROOT / "benchmarks" / f"{name}.py").read_text("utf-8")
        wanted = set(re.findall(r"^(?:import|from) (\w+)", source, re.M))  # in functions it may wait
        assert not wanted & (bench - test), f"a test imports benchmarks/{name}.py"
        waiting |= _benchmarks(source) - seen
    assert seen


def _benchmarks(source: str) -> set[str]:
    names = re.findall(r"^\s*from benchmarks(?:\.(\w+))? import (\w+)", source, re.M)
    return {module or name for module, name in names}


def test_nothing_but_its_command_imports_the_collector() -> None:
    for module in MODULES:
        if module != "incrowd.cli.collect" and module.split(".")[1:2] != ["collect"]:
            assert not any(target.startswith("incrowd.collect") for target in imports(module)), module


def test_the_way_of_assess_is_short_and_never_turns_back() -> None:
    page = (Path(__file__).parent.parent / "docs" / "explanation" / "architecture.md").read_text("utf-8")
    way = page.split("## The way of `incrowd assess`")[1].split("\n## ")[0]
    hops = [line.split("`")[1] for line in way.splitlines() if line[:1].isdigit()]
    assert 5 <= len(hops) <= 12
    assert len(set(hops)) == len(hops)
    for hop in hops:
        assert "incrowd." + hop.removesuffix(".py").replace("/", ".") in MODULES
