"""Reads who imports whom in incrowd: which layer looks at which, and whether modules import in a circle.

`tests/test_layers.py` holds the code to it, and `docs/generate.py` draws it into the architecture page.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent / "src" / "incrowd"

# From the ground up: a layer may import those before it, never those after it.
LAYERS = {
    "errors": "the exceptions",
    "lazy": "names that load on first use",
    "wording": "how numbers are written for people",
    "drawing": "a small picture or page of a result",
    "arrays": "what arrays hold, as types",
    "policy_file": "policies in TOML, read and checked",
    "result": "assessment, evidence, advice: what every measure returns",
    "statistics": "small statistics that several measures need",
    "opendp_library": "noise on counts of people (OpenDP)",
    "crowd": "the data: formats, import, store, synthetic crowds",
    "synthetic": "made-up crowds with known truth",
    "text": "posts become words",
    "profiles": "words become what an adversary sees of an identity",
    "distances": "profiles are compared: reference, processor, graphics card",
    "engine": "where comparisons run: this machine or a cluster",
    "cards": "a crowd as publishable statistics",
    "measures": "a crowd, a person and an adversary become assessments",
    "gateway": "questions to a database, answered or refused",
    "advisor": "every measure on one person: reasons and what to change",
    "collect": "a crowd from the network; nothing imports it",
    "study": "the papers' experiments",
    "report": "pages, labels, charts",
    "web": "the web interface",
    "cli": "the commands",
}


@cache
def modules() -> Mapping[str, ast.Module]:
    """Return every module of incrowd by name, parsed; a package has the name of its folder."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(("incrowd", *(part for part in parts if part != "__init__")))
        found[name] = ast.parse(path.read_text("utf-8"))
    return found


def imported(tree: ast.AST, *, at_run_time: bool = False, at_once: bool = False) -> Iterator[str]:
    """Yield what a module imports, inside functions, too; names of other modules come as `package.name`.

    At run time: without what stands under `if TYPE_CHECKING`, which only the type checker follows.
    At once: without that, and without what stands in functions.
    """
    at_run_time = at_run_time or at_once
    for node in ast.iter_child_nodes(tree):
        if at_once and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (_home(str(node.module), alias.name) for alias in node.names)
        elif at_run_time and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for other in node.orelse:
                yield from imported(other, at_run_time=True, at_once=at_once)
        else:
            yield from imported(node, at_run_time=at_run_time, at_once=at_once)


def _home(module: str, name: str) -> str:
    """Return the module that a name comes from: the name itself may be one, or load from one on first use."""
    whole = f"{module}.{name}"
    return whole if whole in modules() else loaded_on_first_use(module).get(name, module)


@cache
def loaded_on_first_use(package: str) -> Mapping[str, str]:
    """Return the names that a package loads on first use, with their modules: it tells the type checker about them."""
    if package not in modules():
        return {}
    blocks = [node for node in modules()[package].body if isinstance(node, ast.If)]
    told = [node for block in blocks for node in block.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: str(node.module) for node in told for alias in node.names}


def layer(module: str) -> str:
    """Return the layer a module belongs to."""
    name = module.split(".")[1]
    return "result" if name == "result_terminal" else name


def arrows() -> dict[str, set[str]]:
    """Return which layers each layer imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for module, tree in modules().items():
        if module in {"incrowd", "incrowd.__main__"}:  # the front door looks everywhere
            continue
        for target in imported(tree):
            if target.startswith("incrowd.") and layer(target) != layer(module):
                found[layer(module)].add(layer(target))
    return found


def circles() -> list[tuple[str, ...]]:
    """Return every group of modules that import one another in a circle, at once or when a function runs."""
    graph = {
        name: {t for t in imported(tree, at_run_time=True) if t in modules() and t not in {name, "incrowd"}}
        for name, tree in modules().items()
        if name != "incrowd"
    }
    # Modules that reach each other are one circle (Tarjan would be quicker, this is shorter).
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        stack = [start]
        while stack:
            stack += (new := graph[stack.pop()] - seen)
            seen |= new
        reach[start] = seen
    found = {tuple(sorted(b for b in reach[a] if a in reach[b])) for a in graph if a in reach[a]}
    return sorted(found)


def packages(module: str) -> set[str]:
    """Return which packages of others are loaded together with a module of ours."""
    found, seen, waiting = set(), set(), [module]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        if at not in modules():
            found.add(".".join(at.split(".")[:2]) if at.startswith("scipy.") else at.split(".")[0])
            continue
        parents = at.split(".")
        waiting += (".".join(parents[:depth]) for depth in range(1, len(parents)))
        waiting += _at_once(at)
    return found


@cache
def _at_once(module: str) -> frozenset[str]:
    return frozenset(imported(modules()[module], at_once=True))


def picture() -> str:
    """Draw the layers as a triangle: a row imports the layers whose columns have a dot."""
    seen = arrows()
    there = [name for name in LAYERS if any(layer(module) == name for module in modules() if "." in module)]
    cell, left, top = 26, 96, 92
    width, height = left + cell * len(there) + 380, top + cell * len(there) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#888">',
        "<title>Which layer imports which: dots lie below the diagonal only</title>",
    ]
    for row, name in enumerate(there):
        y, x = top + cell * row, left + cell * row
        parts += [
            f'<text x="{left - 8}" y="{y + 17}" text-anchor="end" font-weight="bold">{name}</text>',
            f'<text transform="translate({x + 17} {top - 8}) rotate(-60)">{name}</text>',
            f'<text x="{left + cell * len(there) + 10}" y="{y + 17}">{LAYERS[name]}</text>',
            f'<rect x="{x}" y="{y}" width="{cell}" height="{cell}" fill="#8883"/>',
            f'<path d="M{left} {y + cell}H{x + cell}" stroke="#8883"/>',
        ]
        for column, other in enumerate(there):
            if other in seen[name]:
                centre = f'cx="{left + cell * column + cell // 2}" cy="{y + cell // 2}"'
                parts.append(
                    f'<circle {centre} r="6" fill="#2a78c2"><title>{name} → {other}</title></circle>'
                )
    return "\n".join([*parts, "</svg>", ""])


def written() -> str:
    """Write the same as text, for readers who cannot see the picture."""
    seen, order = arrows(), list(LAYERS)
    lines = [f"{name:>9} → {', '.join(sorted(seen[name], key=order.index))}" for name in LAYERS if seen[name]]
    return "\n".join(["```text", *lines, "```"])
