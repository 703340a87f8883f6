"""The documentation names every command, option and page, and its examples are the real ones."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.cli.running import incrowd

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATE = runpy.run_path(str(DOCS / "generate.py"), run_name="generate")
ROOMS = ("tutorials", "how-to", "explanation", "reference")


def leaf_commands() -> list[str]:
    root = GENERATE["get_command"](GENERATE["app"])
    found = GENERATE["commands"](root, "incrowd")
    return [path for path, command in found if not getattr(command, "commands", {})]


@pytest.mark.parametrize("path", GENERATE["files"](), ids=lambda path: path.name)
def test_generated_pages_are_up_to_date(path: Path) -> None:
    assert path.read_text("utf-8") == GENERATE["files"]()[path], f"run `make docs` and commit {path.name}"


@pytest.mark.parametrize("command", leaf_commands())
def test_a_person_wrote_about_every_command(command: str) -> None:
    pages = [page for room in ROOMS[:3] for page in (DOCS / room).glob("*.md")] + [ROOT / "README.md"]
    assert any(command in page.read_text("utf-8") for page in pages), f"no page shows `{command}`"


def test_every_option_says_what_it_does() -> None:
    root = GENERATE["get_command"](GENERATE["app"])
    silent = [
        f"{path} {parameter.name}"
        for path, command in GENERATE["commands"](root, "incrowd")
        for parameter in command.params
        if not getattr(parameter, "help", None) and not getattr(parameter, "hidden", False)
    ]
    assert not silent


def test_help_in_a_terminal_holds_every_word() -> None:
    from rich.text import Text

    root = GENERATE["get_command"](GENERATE["app"])
    for path, command in GENERATE["commands"](root, "incrowd"):
        for one in (command, *command.params):
            text = getattr(one, "help", None) or ""
            assert Text.from_markup(text).plain == text, f"{path} {one.name}: brackets are read as markup"


@pytest.mark.parametrize(
    "page", sorted(p.relative_to(ROOT) for p in [*DOCS.rglob("*.md"), ROOT / "README.md"])
)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text("utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", target):
            assert ((ROOT / page).parent / target).exists(), f"{page} links to {target}, which is not there"


def test_commands_in_the_documentation_exist() -> None:
    root = GENERATE["get_command"](GENERATE["app"])
    known = {path for path, _ in GENERATE["commands"](root, "incrowd")}
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]:
        for block in re.findall(r"```(?:bash|console|sh)\n(.*?)```", page.read_text("utf-8"), re.S):
            for name in re.findall(r"^\s*\$?\s*incrowd ([a-z-]+)", block, re.M):
                assert f"incrowd {name}" in known, f"{page.name} shows `incrowd {name}`, which does not exist"


def test_the_readme_shows_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert "make demo" in text
    assert "make test" in text


def pages_with_python() -> list[Path]:
    pages = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]
    return [page.relative_to(ROOT) for page in pages if "```python" in page.read_text("utf-8")]


RUN_COMMANDS = "<!-- every command on this page is run by the tests -->"


@pytest.mark.parametrize("page", pages_with_python(), ids=str)
def test_examples_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page's examples run one after the other, as a reader would try them."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text("utf-8")
    names: dict[str, object] = {"__name__": "example"}
    for language, example in re.findall(r"```(python|bash)\n(.*?)```", text, re.S):
        if language == "python":
            exec(compile(example, str(page), "exec"), names)
        elif RUN_COMMANDS in text:
            for line in example.splitlines():
                told = incrowd(capsys, *shlex.split(line, comments=True)[1:])
                assert told.code == 0, f"{line}: {told.err}"


MEASURED = runpy.run_path(str(ROOT / "benchmarks" / "docs.py"), run_name="measured")


@pytest.mark.parametrize(
    "passage", MEASURED["passages"](), ids=lambda one: f"{Path(one.page).name}-{one.says[:20]}"
)
def test_measured_numbers_stand_where_the_list_says(passage: Any) -> None:
    """`python -m benchmarks docs` compares them with what the commands print now."""
    assert passage.stands_there, f"{passage.page} no longer says: {passage.says}"
    for name in re.findall(r"benchmarks[. ]([a-z_]+)", passage.command):
        assert (ROOT / "benchmarks" / f"{name}.py").exists(), passage.command


@pytest.mark.parametrize(
    "passage",
    [one for one in MEASURED["passages"]() if one.values],
    ids=lambda one: f"{Path(one.page).name}-{one.says[:20]}",
)
def test_the_list_holds_the_numbers_that_the_page_says(passage: Any) -> None:
    """Each number to compare stands on the page, as it is or as a percentage; so does a cell of several."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", (ROOT / passage.page).read_text("utf-8")).replace("−", "-")
    found = [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", text)]
    found += [float(number) / 100 for number in re.findall(r"(\d+\.?\d*)\s?%", text)]
    for place, value in passage.values.items():
        if isinstance(value, str):
            assert value in text, f"{passage.page} does not say {value} ({place})"
            continue
        near = min(abs(number - value) for number in found)
        assert near <= min(passage.within, 0.0101), f"{passage.page} does not say {value} ({place})"


def test_every_section_with_measured_numbers_says_where_they_come_from() -> None:
    """A command that prints them, or why they are none: both lists are in benchmarks/measured.toml."""
    assert [f"{one.page}: {one.heading}" for one in MEASURED["unlisted"]()] == []


def test_what_is_given_is_still_there() -> None:
    known = {(one.page, one.heading) for one in MEASURED["sections"]() if one.looks_measured}
    listed = tomllib.loads((ROOT / "benchmarks" / "measured.toml").read_text("utf-8"))["given"]
    assert {(one["page"], one["section"]) for one in listed} <= known
    assert all(one["why"] for one in listed)


def test_pages_that_name_a_benchmark_are_on_the_list() -> None:
    listed = {one.page for one in MEASURED["passages"]()}
    pages = [*DOCS.rglob("*.md"), *(ROOT / "src").rglob("NOTES.md")]
    naming = {
        page.relative_to(ROOT).as_posix()
        for page in pages
        if re.search(r"benchmarks[./ ]`?[a-z_]+", page.read_text("utf-8"))
        and page.name not in {"commands.md"}
    }
    assert not naming - listed - {"docs/tutorials/reproduce-a-paper.md"}


@pytest.mark.parametrize("notebook", sorted(DOCS.rglob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_run_and_hold_no_outputs(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make docs` runs them in Jupyter; here cell after cell, without it."""
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    display = ModuleType("IPython.display")
    display.SVG = str  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            exec(compile("".join(cell["source"]), notebook.name, "exec"), names)
