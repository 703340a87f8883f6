"""A state folder in which something is missing, damaged, older or foreign is refused or healed; none forgets."""

from __future__ import annotations

import logging
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.making import NOW, crowd, fill_duckdb, fill_postgres, policy
from tests.gateway.serving import ask as send
from tests.gateway.test_app import Place
from tests.gateway.test_core import ANN, DENVER, ask, question
from typer.testing import CliRunner

from incrowd.cli.gateway import app as commands
from incrowd.errors import IncrowdError
from incrowd.gateway import ledger as ledger_module
from incrowd.gateway.audit import AuditLog, check_audit
from incrowd.gateway.core import Gateway
from incrowd.gateway.databases import connect
from incrowd.gateway.ledger import Ledger, audited
from incrowd.gateway.operate import reset
from incrowd.gateway.report import activity_report
from incrowd.gateway.solver import Solver
from incrowd.gateway.state import SteadyClock, open_secret
from incrowd.gateway.worker import DecisionThreads

PARTS = ("secret", "ledger.sqlite", "snapshots.duckdb", "audit")
CLASS, WITHOUT = DENVER, "city = 'Denver' AND age < 50"
"""A class, and the class without one person: whoever forgot the first answer would give the second."""


def world(folder: Path, name: str = "a.db") -> str:
    users, likes = crowd({"Titanic": 30})
    users[7] = {**users[7], "age": 77}
    return fill_duckdb(folder / name, users, {"movies": likes})


@contextmanager
def opened(url: str, state: Path) -> Iterator[Gateway]:
    made = Gateway(connect(url), policy(), state, clock=lambda: NOW)
    try:
        yield made
    finally:
        made.close()


def part(state: Path, name: str) -> Path:
    if name == "snapshots.duckdb":
        return next(state.glob("snapshots-*")) / name
    return state / "audit" / "00000001.jsonl" if name == "audit" else state / name


def told(url: str, state: Path, conditions: tuple[str, ...]) -> None:
    with opened(url, state) as made:
        for condition in conditions:
            ask(made, condition)
    log = AuditLog(state, open_secret(state).key("audit"))
    for condition in conditions:
        log.append({"asked": condition}).result()
    log.close()


def flip(path: Path) -> None:
    """Change every part of the file by a byte here and there."""
    data = bytearray(path.read_bytes())
    for place in range(len(data) // 3, len(data), max(1, len(data) // 2000)):
        data[place] ^= 0x15
    path.write_bytes(bytes(data))


HARMS: dict[str, Callable[[Path, Path, Path], None]] = {
    "missing": lambda path, older, foreign: path.unlink(),
    "empty": lambda path, older, foreign: path.write_bytes(b""),
    "truncated": lambda path, older, foreign: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "flipped": lambda path, older, foreign: flip(path),
    "older": lambda path, older, foreign: path.write_bytes(older.read_bytes()),
    "foreign": lambda path, older, foreign: path.write_bytes(foreign.read_bytes()),
}


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", PARTS)
def test_no_corruption_makes_the_gateway_forget(name: str, harm: str, tmp_path: Path) -> None:
    url, state = world(tmp_path), tmp_path / "state"
    told(url, state, ())
    told(url, state, ("city = 'Boulder'",))
    shutil.copytree(state, tmp_path / "older")
    if name == "snapshots.duckdb":
        with opened(url, state) as made:
            made.refresh()
    told(url, state, (CLASS,))
    other = world(tmp_path, "b.db")
    told(other, tmp_path / "foreign", (CLASS, WITHOUT))
    path = part(state, name)
    HARMS[harm](path, part(tmp_path / "older", name), part(tmp_path / "foreign", name))
    if name == "audit":
        log = AuditLog(state, open_secret(state).key("audit"))
        log.append({"asked": "later"}).result()
        log.close()
        assert not check_audit(state, open_secret(state).key("audit")).intact
    if name == "audit" or (name, harm) == ("secret", "older"):
        with opened(url, state) as made:
            assert made.decide(ANN, question(CLASS)).repeated
            assert made.decide(ANN, question(WITHOUT)).answer.values == ()
        return
    with pytest.raises(IncrowdError, match=r"copy|original file"), opened(url, state):
        pass


def seen(ledger: Ledger) -> list[object]:
    """Everything a gateway goes by."""
    entries = [[one.asked, one.scope, one.key, one.rule, one.body] for one in ledger.replay()]
    classes = [words.tobytes() for one in ledger.replay() if (words := one.people) is not None]
    facts = [ledger._fact(name) for name in ("identity", "alive", "audited", "people", "reset")]
    return [entries, classes, facts, ledger.charges("*", 0, 0), ledger.snapshot()]


def test_one_flipped_bit_anywhere_in_the_ledger_changes_nothing_or_is_refused(tmp_path: Path) -> None:
    """Also in what it says about itself: after a reset, one bit there once gave every budget back."""
    url, state = world(tmp_path), tmp_path / "state"
    told(url, state, (CLASS, "age < 40"))
    secret = open_secret(state)
    ledger = Ledger(state, secret)
    ledger.mark_reset(NOW)
    ledger.write_probe(NOW, 7)
    as_it_was = seen(ledger)
    ledger.close()
    path, chance = state / "ledger.sqlite", random.Random(0)
    whole = path.read_bytes()
    used = [place for place, byte in enumerate(whole) if byte]
    about_itself = whole.index(b"alive1") - 200
    refused = 0
    for place in [*chance.sample(used, 150), *range(about_itself, about_itself + 300, 2)]:
        data = bytearray(whole)
        data[place] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(data))
        try:
            ledger = Ledger(state, secret)
        except IncrowdError:
            refused += 1
            continue
        assert seen(ledger) == as_it_was, place
        ledger.close()
    assert refused > 150


def test_a_damaged_block_of_the_snapshots_is_said_with_the_remedy(tmp_path: Path) -> None:
    url, state = world(tmp_path), tmp_path / "state"
    told(url, state, (CLASS,))
    path, chance = part(state, "snapshots.duckdb"), random.Random(0)
    whole = path.read_bytes()
    first = whole.rindex(b"Titanic")
    for place in [first, first + 1, *chance.sample([place for place, byte in enumerate(whole) if byte], 15)]:
        data = bytearray(whole)
        data[place] ^= 1 << chance.randrange(8)
        path.write_bytes(bytes(data))
        try:
            with opened(url, state) as made:
                assert made.decide(ANN, question(CLASS)).repeated
                assert made.decide(ANN, question(WITHOUT)).answer.values == ()
        except IncrowdError:
            continue
        path.write_bytes(whole)


def test_a_ledger_in_which_a_question_could_be_answered_once_only_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, state = world(tmp_path), tmp_path / "state"
    older = ledger_module.TABLES.replace(
        "body BLOB NOT NULL\n)", "body BLOB NOT NULL, UNIQUE (scope, snapshot, key)\n)"
    )
    with monkeypatch.context() as patch:
        patch.setattr(ledger_module, "TABLES", older)
        told(url, state, (CLASS,))
    with opened(url, state) as made:
        assert made.decide(ANN, question(CLASS)).repeated
    with opened(url, state) as made:
        assert made.decide(ANN, question(CLASS)).repeated


@pytest.mark.parametrize("harm", ["missing", "empty", "truncated", "flipped"])
def test_without_knowing_who_changed_what_was_told_stays(harm: str, tmp_path: Path) -> None:
    url, state = world(tmp_path), tmp_path / "state"
    told(url, state, (CLASS,))
    with opened(url, state) as made:
        made.refresh()
    HARMS[harm](state / "prints" / "1.npz", Path(), Path())
    with opened(url, state) as made:
        assert made.decide(ANN, question(CLASS)).repeated
        assert made.decide(ANN, question(WITHOUT)).answer.values == ()


def test_an_audit_log_that_was_deleted_with_its_notes_shows_after_a_restart(tmp_path: Path) -> None:
    import asyncio

    place = Place(tmp_path)
    state, key = place.state, open_secret(place.state).key("audit")
    for _ in range(3):
        place.service.audit.append({"asked": "something"}).result()
    asyncio.run(place.service.look())
    asyncio.run(place.service.close())
    shutil.rmtree(state / "audit")
    (state / "audit.head").unlink()
    assert check_audit(state, key, known=audited(state)).problem == "the end: 3 records are missing"
    log = AuditLog(state, key, known=audited(state))
    assert log.missing == 3
    log.append({"asked": "later"}).result()
    log.close()
    assert check_audit(state, key).problem == "the beginning: 3 records are missing"


def test_rows_that_are_gone_or_changed_are_found_at_the_start(tmp_path: Path) -> None:
    import sqlite3

    url = world(tmp_path)
    for number, sql in enumerate(
        [
            "DELETE FROM entries",
            "DELETE FROM entries WHERE id = (SELECT max(id) FROM entries)",
            "UPDATE entries SET asked = asked + 1",
            "UPDATE entries SET people = zeroblob(9)",
            "DELETE FROM seals WHERE number = (SELECT max(number) FROM seals)",
            "DELETE FROM facts",
        ]
    ):
        state = tmp_path / f"state{number}"
        told(url, state, (CLASS,))
        with sqlite3.connect(state / "ledger.sqlite") as connection:
            connection.execute(sql)
        connection.close()
        with pytest.raises(IncrowdError, match="reset"), opened(url, state):
            pass


def test_a_damaged_note_beside_a_whole_ledger_is_healed(tmp_path: Path) -> None:
    url, state = world(tmp_path), tmp_path / "state"
    told(url, state, (CLASS,))
    for text in ("", "rubbish", None):
        if text is None:
            (state / "ledger.seal").unlink()
        else:
            (state / "ledger.seal").write_text(text)
        with opened(url, state) as made:
            assert made.decide(ANN, question(CLASS)).repeated


def test_a_reset_counts_everything_as_told(tmp_path: Path) -> None:
    url, state = world(tmp_path), tmp_path / "state"
    told(url, state, (CLASS,))
    (state / "secret").unlink()
    refused = CliRunner().invoke(commands, ["reset", "--state", str(state)])
    assert refused.exit_code != 0
    aside = reset(state)
    assert aside is not None
    assert (aside / "ledger.sqlite").exists()
    ledger = Ledger(state, open_secret(state))
    moment = [ledger.started_anew]
    ledger.close()
    made = Gateway(connect(url), policy(), state, clock=lambda: moment[0])
    try:
        assert made.decide(ANN, question(CLASS)).rule == "closed"
        assert "reset" in made.trouble()
        for client in (ANN, None):
            shown = made.explain(question(CLASS), client)
            assert (shown.rule, {one.rule for one in shown.values}) == ("closed", {"closed"})
        budget = made.budget(ANN)
        until = datetime.fromtimestamp(moment[0] + 7 * 86400, UTC).isoformat(timespec="seconds")
        assert (budget["queries_left"], budget["closed_until"], shown.closed_until) == (0, until, until)
        assert activity_report(state, open_secret(state), policy()).closed_until == until
        assert activity_report(state, open_secret(state)).closed_until is None
        moment[0] += 7 * 86400
        assert "closed_until" not in made.budget(ANN)
        assert made.answer(ANN, question(CLASS)).values == ("Titanic",)
    finally:
        made.close()


def test_a_start_after_a_reset_complains_of_no_damage(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url, state = world(tmp_path), tmp_path / "state"
    told(url, state, (CLASS,))
    reset(state)
    with caplog.at_level(logging.INFO, "incrowd.gateway"), opened(url, state):
        pass
    assert not any("damaged" in one.message for one in caplog.records)


def test_a_clock_that_jumps_is_ignored_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    wall, steady = [1000.0], [50.0]
    clock = SteadyClock(lambda: wall[0], lambda: steady[0])
    with caplog.at_level(logging.INFO, "incrowd.gateway"):
        assert clock() == 1000
        wall[0], steady[0] = 1010.5, 60.0
        assert clock() == 1010.5
        wall[0], steady[0] = 1010.5 + 400 * 86400, 61.0
        assert clock() == pytest.approx(1011.5)
        assert clock() == pytest.approx(1011.5)
        wall[0], steady[0] = 1051.5, 101.0
        assert clock() == pytest.approx(1051.5)
        wall[0], steady[0] = 900.0, 102.0
        assert clock() == pytest.approx(1052.5)
    assert sum("jumped" in one.message for one in caplog.records) == 2
    assert any("is back" in one.message for one in caplog.records)


def test_what_a_clock_that_jumped_left_behind_is_healed(tmp_path: Path) -> None:
    url, state, moment = world(tmp_path), tmp_path / "state", [NOW + 400 * 86400]
    rules = policy(budget={"queries": 1, "scope": "organisation"})
    made = Gateway(connect(url), rules, state, clock=lambda: moment[0])
    assert made.answer(ANN, question(CLASS)).values
    made.close()
    moment[0] = NOW
    made = Gateway(connect(url), rules, state, clock=lambda: moment[0])
    try:
        assert made.decide(ANN, question("city = 'Boulder'")).rule == "over-budget"
        moment[0] += 86401
        assert made.due
        assert made.decide(ANN, question("city = 'Boulder'")).rule != "over-budget"
    finally:
        made.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    import asyncio

    made = Place(tmp_path)
    yield made
    asyncio.run(made.service.close())


def test_ready_says_the_truth(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import asyncio

    gateway = place.service.decisions.gateway  # type: ignore[attr-defined]

    def status() -> tuple[int, str]:
        asyncio.run(place.service.look())
        got = send(place.app, ("GET", "/ready"))[0]
        return got.status, got.json["status"]

    assert status() == (200, "ready")
    source = Path(place.url.removeprefix("duckdb:///"))
    moved = source.with_suffix(".away")
    source.rename(moved)
    with caplog.at_level(logging.INFO, "incrowd.gateway"):
        assert status() == (503, "the database cannot be reached")  # strangers do not see where it lies
        assert status() == (503, "the database cannot be reached")
    assert [str(source) in one.message for one in caplog.records].count(True) == 1
    moved.rename(source)
    assert status() == (200, "ready")
    with monkeypatch.context() as patch:
        patch.setattr(gateway, "_clock", lambda: gateway.ledger.snapshot()[1] + 3 * 86400)
        assert status() == (503, "the snapshot is overdue")
    gateway.ledger._connection.execute("PRAGMA query_only = 1")
    assert status() == (503, "the ledger cannot be written")
    gateway.ledger._connection.execute("PRAGMA query_only = 0")
    assert status() == (200, "ready")
    solver = Solver()
    place.service.decisions = DecisionThreads(gateway, solver)
    assert status() == (200, "ready")
    solver._fork_server.kill()
    solver._fork_server.wait()
    assert status() == (503, "the solver is not running")


def test_the_log_names_who_locks_the_source(tmp_path: Path) -> None:
    import subprocess
    import sys

    url = world(tmp_path)
    script = (
        f"import duckdb, time; held = duckdb.connect({str(tmp_path / 'a.db')!r}); "
        "print('open', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with (
            pytest.raises(IncrowdError, match=f"locked by process {holder.pid}"),
            opened(url, tmp_path / "state"),
        ):
            pass
    finally:
        holder.kill()
        holder.wait()
        assert holder.stdout is not None
        holder.stdout.close()


@pytest.mark.parametrize("host", ["127.0.0.1:8401", "localhost", "[::1]:8401", "LOCALHOST:1"])
def test_the_operators_port_answers_this_machine(place: Place, host: str) -> None:
    from tests.gateway.serving import call

    assert send_host(place, host, call).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example:8401", "evil.example:127.0.0.1", "localhost:1@evil", "[::1]x"],
)
def test_the_operators_port_refuses_other_names(place: Place, host: str) -> None:
    from tests.gateway.serving import call

    assert send_host(place, host, call).status == 421


def send_host(place: Place, host: str, call: Callable[..., Any]) -> Any:
    import asyncio

    async def named(scope: dict[str, object], receive: object, send: object) -> None:
        await place.admin({**scope, "headers": [(b"host", host.encode())]}, receive, send)  # type: ignore[arg-type]

    return asyncio.run(call(named, "GET", "/metrics"))  # type: ignore[arg-type]


def test_snapshots_in_postgresql_that_are_gone_or_foreign_are_refused(
    postgres_server: str, tmp_path: Path
) -> None:
    """The secret and the ledger lie in the folder whatever the database; snapshots lie in PostgreSQL itself."""
    import psycopg

    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("CREATE DATABASE corruptions")
    url = postgres_server.replace("/postgres?", "/corruptions?")
    users, likes = crowd({"Titanic": 30})
    users[7] = {**users[7], "age": 77}
    fill_postgres(url, users, {"movies": likes})
    state = tmp_path / "state"
    told(url, state, (CLASS,))
    with opened(url, state) as made:
        assert made.decide(ANN, question(CLASS)).repeated
        assert made.decide(ANN, question(WITHOUT)).answer.values == ()
    with psycopg.connect(url, autocommit=True) as connection:
        (schema,) = connection.execute(
            "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'incrowd%'"
        ).fetchone() or ("",)
        assert schema
        connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
    with pytest.raises(IncrowdError, match=r"copy|original file"), opened(url, state):
        pass
