"""Escape sequences and marks that turn text round never reach the terminal, whatever field they come from."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest

from incrowd.cli import main
from incrowd.cli.console import as_json_text, cleaned

OBEYED = "\x1b]52;c;aGk=\x07\x1b[31m\u202e\u2066\x9b2J\u200f\r\x08"
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def run(*arguments: object) -> int:
    before, sys.argv = sys.argv, ["incrowd", *map(str, arguments)]
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.argv = before
    return 0


def write_posts(path: Path, people: int) -> None:
    """Posts in which names, communities and every word hold them."""
    posts = [
        {
            "author": f"u{user:02d}{OBEYED}",
            "community": f"{place}{OBEYED}",
            "text": f"I am {30 + user % 40} years old{OBEYED} and live in Denver{OBEYED}. "
            + " ".join(f"w{(user * 3 + post + k) % 50}{OBEYED}" for k in range(25)),
            "created_utc": 1600000000 + 90000 * post,
        }
        for user in range(people)
        for place in ("knit", "cook")
        for post in range(4)
    ]
    path.write_text("".join(json.dumps(post) + "\n" for post in posts), "utf-8")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crowd in which every name, community, item and post holds them."""
    folder = tmp_path_factory.mktemp("planted")
    write_posts(folder / "posts.jsonl", 8)
    write_posts(folder / "many.jsonl", 101)
    for name, kept in (("posts", "crowd"), ("posts", "copy"), ("many", "many")):
        assert run("ingest", folder / f"{name}.jsonl", "--crowd", folder / kept, "--json") == 0
    ratings = [f"u{u}{OBEYED},film {(u * k) % 7}{OBEYED},{k % 5 + 1}" for u in range(12) for k in range(1, 6)]
    (folder / "items.csv").write_text("\n".join(["user,item,rating", *ratings]) + "\n", "utf-8")
    held = {f"film {k}{OBEYED}": [f"u{u}{OBEYED}" for u in range(k + 2)] for k in range(4)}
    (folder / "answer.json").write_text(json.dumps(held), "utf-8")
    made = ["--community", f"knit{OBEYED}", "--community", f"cook{OBEYED}", "--k", 2]
    assert run("card", "make", folder / "many", *made, "--out", folder / "card.json", "--json") == 0
    return folder


COMMANDS = [
    "info {f}/crowd",
    "info {f}/crowd --json",
    "anonymity {f}/crowd --community knit{x}",
    "anonymity {f}/crowd --community nothing{x}",
    "anonymity {f}/crowd --community knit{x} --user u01{x}",
    "linkability {f}/crowd --source knit{x} --target cook{x}",
    "linkability {f}/crowd --source knit{x} --target cook{x} --user u02{x} --json",
    "assess {f}/crowd --user u03{x}",
    "assess {f}/crowd --user u03{x} --json",
    "assess {f}/crowd --user nobody{x}",
    "crowd-report {f}/crowd",
    "plan {f}/posts.jsonl",
    "ingest {f}/items.csv --crowd {f}/other --kind ratings",
    "info {f}/no{x}",
    "ingest {f}/no{x}.jsonl --crowd {f}/other",
    "release q {f}/answer.json",
    "release suppress {f}/answer.json --threshold 2",
    "release suppress {f}/answer.json --threshold 2 --json",
    "release tidy {f}/answer.json --out {f}/tidy.json",
    "gateway check --policy {f}/no{x}.toml",
    "gateway key add na{x}me --organisation lab --state {f}/state",
    "watch {f}/crowd --user u03{x} --policy {f}/no{x}.toml",
    "assess {f}/posts.jsonl --user u03{x}",
    "assess {f}/posts.jsonl --user u03{x} --card {f}/card.json",
    "disclosures {f}/posts.jsonl --user u04{x}",
    "disclosures {f}/posts.jsonl --user u04{x} --quote",
    "disclosures {f}/posts.jsonl --user u04{x} --quote --json",
    "disclosures {f}/crowd --user u04{x}",
    "link {f}/posts.jsonl {f}/posts.jsonl --user u01{x} --other-user u02{x}",
    "link {f}/posts.jsonl {f}/posts.jsonl --user u01{x} --other-user u02{x} --card {f}/card.json",
    "link {f}/posts.jsonl {f}/posts.jsonl",
    "recognition {f}/crowd --community knit{x} --user u01{x}",
    "card make {f}/many --community knit{x} --k 2 --out {f}/new{x}.json",
    "card info {f}/card.json",
    "card info {f}/card.json --json",
    "card page {f}/card.json --out {f}/page.html --title {x}",
    "card info {f}/posts.jsonl",
    "card make {f}/crowd --community knit{x} --k 2 --out {f}/new.json",
    "card audit {f}/many --community knit{x} --k 2 --cards 2 --planted 4",
    "forget {f}/copy --user u05{x}",
    "forget {f}/copy --user u05{x} --json",
    "forget {f}/copy --user nobody{x}",
    "collect mastodon --community knit{x} --server 127.0.0.1:9{x} --crowd {f}/collected --contact me{x}",
    "collect no{x} --community knit{x} --crowd {f}/collected --contact me{x}",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_a_terminal_would_obey_comes_out(
    crowd: Path, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run(*[part.format(f=crowd, x=OBEYED) for part in command.split()])
    said = capfd.readouterr()
    assert said.out or said.err
    for text in (said.out, said.err):
        found = HARMFUL.search(text)
        assert found is None, repr(text[max(0, (found.start() if found else 0) - 80) :][:160])


Command = tuple[tuple[str, ...], click.Command]


def every_command(command: click.Command, path: tuple[str, ...] = ()) -> list[Command]:
    """Every command there is, new ones too, with the words that call it."""
    below = getattr(command, "commands", {})
    found = [leaf for name, one in below.items() for leaf in every_command(one, (*path, name))]
    return (
        found
        if below and not getattr(command, "invoke_without_command", False)
        else [*found, (path, command)]
    )


REAL = {
    "crowd": "{f}/crowd",
    "sources": "{f}/posts.jsonl",
    "items": "{f}/items.csv",
    "holders": "{f}/answer.json",
    "out": "{f}/out{x}.json",
    "source": "knit{x}",
    "target": "cook{x}",
    "community": "knit{x}",
    "user": "u03{x}",
    "profile": "u03{x}",
    "query": "SELECT movies{x} FROM users",
    "main": "{f}/posts.jsonl",
    "other": "{f}/posts.jsonl",
    "card": "{f}/card.json",
}
"""What stands for a parameter so that a command shows the data; anything else is something that is not there."""
GOES_ON = {"serve", "gateway", "watch", "collect"}
"""These would not end, or would connect to a service: they are called with a crowd or a port that is none."""
BRIEFLY = {"serve": ["--port", "no{x}"], "demo": ["--users", "no{x}"], "exposure train": ["--rounds", "2"]}
"""What ends a command soon that would take long, or not end."""


def value_of(parameter: click.Parameter, *, real: bool) -> str:
    is_path = "Path" in type(parameter.type).__name__
    known = REAL.get(parameter.name or "") if real else None
    if known is not None and is_path == known.startswith("{f}"):
        return known
    return f"{{f}}/no-{parameter.name}{{x}}" if is_path else f"{parameter.name}{{x}}"


def calls_of(words: tuple[str, ...], command: click.Command) -> Iterator[list[str]]:
    """With data, with nothing that is there, and with each option that takes text in turn."""
    needed = [one for one in command.params if one.required]

    def call(real: bool, more: Sequence[str] = ()) -> list[str]:
        given = [
            part
            for one in needed
            for part in ([one.opts[0]] if one.param_type_name == "option" else [])
            + [value_of(one, real=real)]
        ]
        return [*words, *given, *more, *BRIEFLY.get(" ".join(words), [])]

    if words[0] not in GOES_ON:
        yield call(real=True)
    yield call(real=False)
    for one in command.params:
        takes_text = (
            one.param_type_name == "option" and not getattr(one, "is_flag", False) and not one.required
        )
        if takes_text and one.name not in ("install_completion", "show_completion"):
            yield call(real=False, more=[one.opts[0], value_of(one, real=False)])


def all_commands() -> list[Command]:
    from typer.main import get_command

    from incrowd.cli import app

    return every_command(get_command(app))


@pytest.mark.parametrize("which", all_commands(), ids=lambda which: " ".join(which[0]))
def test_no_field_of_any_command_reaches_the_terminal_as_it_is(
    crowd: Path, which: Command, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(crowd)
    for call in calls_of(*which):
        run(*[part.format(f=crowd, x=OBEYED) for part in call])
        said = capfd.readouterr()
        assert said.out or said.err, call
        for text in (said.out, said.err):
            found = HARMFUL.search(text)
            assert found is None, (call, repr(text[max(0, (found.start() if found else 0) - 80) :][:160]))


def test_no_number_of_any_command_may_be_nan(
    crowd: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every comparison with it is false: no limit stops it, and one command took it for "not said"."""
    monkeypatch.chdir(crowd)
    asked = 0
    for words, command in all_commands():
        first = next(calls_of(words, command))
        for one in command.params:
            if "Float" in type(one.type).__name__:
                asked += 1
                call = [part.format(f=crowd, x="") for part in [*first, one.opts[0], "nan"]]
                assert run(*call) == 2
                assert f"{one.opts[0]}: expected a number, got nan" in capfd.readouterr().err, call
    assert asked > 20


def test_json_says_the_same_to_programs() -> None:
    assert json.loads(as_json_text({"name": OBEYED})) == {"name": OBEYED}
    assert cleaned(f"a{OBEYED}b\tc\n") == "a]52;c;aGk=[31m2Jb\tc\n"
