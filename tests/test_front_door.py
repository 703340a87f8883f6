"""A newcomer learns the names from `incrowd` alone; the list is complete and quick to load."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import incrowd
from incrowd.errors import IncrowdError, on_the_command_line
from incrowd.measures import REGISTERED

ROOT = Path(__file__).parent.parent
SOURCE = Path(incrowd.__file__).parent
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]


def test_every_public_name_resolves() -> None:
    for name in incrowd.__all__:
        assert getattr(incrowd, name) is not None


def test_the_list_is_sorted_and_is_what_there_is() -> None:
    assert list(incrowd.__all__) == sorted(incrowd.__all__)
    assert dir(incrowd) == list(incrowd.__all__)


def test_an_unknown_name_lists_those_that_exist() -> None:
    with pytest.raises(AttributeError, match="it has: Advice, AdvisorOptions, Assessment"):
        _ = incrowd.crowds  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [one for one in REGISTERED if one in incrowd.__all__])
def test_every_measure_has_the_same_names(name: str) -> None:
    module = getattr(incrowd, name)
    assert {"ADVERSARIES", "Options", "assess", "measure"} <= set(module.__all__)
    assert list(inspect.signature(module.assess).parameters)[:3] == ["crowd", "user", "options"]
    assert list(inspect.signature(module.measure).parameters)[:2] == ["crowd", "options"]
    assert module.ADVERSARIES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_import_nothing_deeper_than_the_front_door(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S):
        for node in ast.walk(ast.parse(code)):
            names = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else [alias.name for alias in getattr(node, "names", [])]
                if isinstance(node, ast.Import)
                else []
            )
            assert not [one for one in names if one.startswith("incrowd.")], f"{page.name} imports {names}"


def test_outside_their_folders_measures_go_by_no_name() -> None:
    """Whoever names a measure in quotes knows it; only its own command and the papers' studies may."""
    shipped = {
        name for name, where in REGISTERED.items() if isinstance(where, str)
    }  # not those of other tests
    allowed = {f"cli/{name}.py" for name in shipped} | {"cli/commands.py"}
    named: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if place.split("/")[0] in ("measures", "study") or place in allowed or place == "__init__.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and node.value in shipped:
                named.setdefault(place, []).append(str(node.value))
    assert sum(map(len, named.values())) <= 8, named


def test_importing_loads_nothing_heavy() -> None:
    heavy = {"numba", "numpy", "polars", "duckdb", "pyarrow", "scipy", "pandas", "rich", "typer", "dask"}
    code = "import incrowd, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not heavy & set(loaded)


def test_help_loads_nothing_heavy() -> None:
    heavy = {"numba", "polars", "duckdb", "pyarrow", "scipy", "numpy", "pandas", "dask"}
    code = (
        "import sys; sys.argv = ['incrowd', '--help']\n"
        "from incrowd.cli import app\n"
        "try: app()\n"
        "except SystemExit: print('LOADED', *sorted({n.split('.')[0] for n in sys.modules}), file=sys.stderr)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ingest" in process.stdout
    assert not heavy & set(process.stderr.split())


def test_errors_speak_python_in_python_and_commands_on_the_command_line() -> None:
    error = IncrowdError("no column: name it with --columns user=NAME; or incrowd ingest FILE --kind items")
    assert str(error) == "no column: name it with columns user=NAME; or incrowd ingest FILE --kind items"
    with on_the_command_line():
        assert "--columns" in str(error)


def test_a_crowd_may_be_named_by_its_folder(tiny_crowd: incrowd.Crowd) -> None:
    options = incrowd.AdvisorOptions(adversaries=["reader"], advice=False)
    told = [incrowd.assess(crowd, "alex", options=options) for crowd in (tiny_crowd, str(tiny_crowd.path))]
    assert told[0].to_dict() == told[1].to_dict()


def test_changes_take_any_collection() -> None:
    changes = incrowd.Changes(delete_posts=(3, 4), drop_items=["a"])
    assert changes == incrowd.Changes(delete_posts=frozenset({3, 4}), drop_items=frozenset({"a"}))
    assert changes.gone_posts == {3, 4}


def test_a_spread_takes_any_sequence_even_an_empty_one() -> None:
    said = {"name": "n", "threat": incrowd.Threat.SINGLING_OUT, "meaning": "m", "adversary": "a"}
    standing = incrowd.Standing.HEURISTIC
    assert incrowd.spread([], 10, standing=standing, **said).people == 0
    assert incrowd.spread([4.0] * 30, 10, standing=standing, **said).people == 30


NEARLY: list[tuple[Callable[[incrowd.Crowd], object], str]] = [
    (lambda crowd: incrowd.Changes(delete_posts=7), "changes: expected several in delete_posts, got int"),
    (lambda crowd: incrowd.Changes(edit_words="tea"), "changes: expected several in edit_words, got str"),
    (lambda crowd: incrowd.register(dict), "expected a class that extends incrowd.Measure, got dict"),
    (lambda crowd: incrowd.register({}), "expected a class that extends incrowd.Measure, got dict"),
    (
        lambda crowd: incrowd.draft(crowd, "alex", "cycling", None),
        "the draft: expected its text, got NoneType",
    ),
    (lambda crowd: incrowd.Targets(people="x"), "targets: expected a number for people, got str"),
    (
        lambda crowd: incrowd.AdvisorOptions(adversaries="clock"),
        "adversaries: expected names in a list, got str",
    ),
    (lambda crowd: incrowd.AdvisorOptions(targets=3), r"targets: expected Targets\(...\), got int"),
    (lambda crowd: incrowd.AdvisorOptions(radius="far"), "options: expected a number for radius, got str"),
    (
        lambda crowd: incrowd.assess(crowd, "alex", options={}),
        r"options: expected AdvisorOptions\(...\) or None, got dict",
    ),
    (
        lambda crowd: incrowd.what_if(crowd, "alex", incrowd.Changes(), options={}),
        "options: expected AdvisorOptions",
    ),
    (
        lambda crowd: incrowd.draft(crowd, "alex", "cycling", "hi", options={}),
        "options: expected AdvisorOptions",
    ),
    (
        lambda crowd: incrowd.crowd_report(crowd, options={}),
        r"options: expected CrowdOptions\(...\) or None, got dict",
    ),
]


@pytest.mark.parametrize(("call", "says"), NEARLY)
def test_what_is_nearly_right_is_refused_with_a_sentence(
    tiny_crowd: incrowd.Crowd, call: Callable[[incrowd.Crowd], object], says: str
) -> None:
    with pytest.raises(IncrowdError, match=says):
        call(tiny_crowd)
