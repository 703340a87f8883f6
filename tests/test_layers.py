"""Imports only point up the list of layers; `make lint` prints the arrows."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import incrowd

ROOT = Path(incrowd.__file__).parent

# From the ground up: a layer may import those before it, never those after it.
LAYERS = [
    "errors",
    "result",
    "crowd",
    "synthetic",
    "text",
    "profiles",
    "distances",
    "engine",
    "measures",
    "gateway",
    "advisor",
    "study",
    "report",
    "web",
    "cli",
]
BARE_ARRAY_LAYERS = {"numpy", "scipy", "numba", "llvmlite", "cupy", "cupyx"}  # llvmlite comes with Numba


def _modules() -> list[tuple[str, ast.Module]]:
    return [
        (
            ".".join(("incrowd", *path.relative_to(ROOT).with_suffix("").parts)),
            ast.parse(path.read_text("utf-8")),
        )
        for path in sorted(ROOT.rglob("*.py"))
    ]


def _imports(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.add(node.module or "")
            found |= {
                f"{node.module}.{alias.name}" for alias in node.names if node.module == "incrowd.measures"
            }
    return found


def _layer(module: str) -> str:
    name = module.split(".")[1]
    return "result" if name == "result_terminal" else name


def _arrows() -> dict[str, set[str]]:
    arrows: dict[str, set[str]] = defaultdict(set)
    for module, tree in _modules():
        if module in {"incrowd.__init__", "incrowd.__main__"}:  # the front door looks everywhere
            continue
        for target in _imports(tree):
            if target.startswith("incrowd.") and _layer(target) != _layer(module):
                arrows[_layer(module)].add(_layer(target))
    return arrows


def test_imports_point_up_the_list_of_layers() -> None:
    arrows = _arrows()
    for layer in LAYERS:
        if arrows[layer]:
            print(f"{layer:>10} -> {', '.join(sorted(arrows[layer], key=LAYERS.index))}")
    for layer, targets in arrows.items():
        assert layer in LAYERS, f"'{layer}' has no place in the list of layers"
        for target in targets:
            assert LAYERS.index(target) < LAYERS.index(layer), f"{layer} must not import {target}"


def test_measures_never_import_each_other() -> None:
    for module, tree in _modules():
        parts = module.split(".")
        if parts[1] != "measures" or len(parts) < 4:
            continue
        for target in _imports(tree):
            if target.startswith("incrowd.measures."):
                assert target.split(".")[2] == parts[2], f"{module} imports its sibling {target}"


def test_the_numeric_core_runs_on_a_bare_gpu_host() -> None:
    import sys

    for module, tree in _modules():
        parts = module.split(".")
        numeric = parts[1] == "distances" or (parts[1] == "measures" and parts[-1] == "definition")
        if not numeric:
            continue
        for target in _imports(tree):
            top = target.split(".")[0]
            allowed = top in BARE_ARRAY_LAYERS or top in sys.stdlib_module_names or top == "incrowd"
            assert allowed, f"{module} imports {target}: only NumPy, SciPy, Numba and CuPy are there"
