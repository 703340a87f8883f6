"""Attackers who adapt, over HTTP, on DuckDB and PostgreSQL, against both mechanisms: 40 + 40 worlds each.

The worlds are blocks of 400 people of one database, so that one gateway is attacked in all of them. The bound of the
private mechanism is tanh(epsilon / 2) + delta; for a number that is guessed, a linear program. All traffic stays on
this machine. ``--worlds 10 --database duckdb --attack swap`` is a quick look.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from tests.gateway.attacks.adaptive import (
    CANDIDATES,
    Ask,
    Block,
    Measured,
    after_change,
    before_change,
    exactly_right,
    find_the_edge,
    how_many,
    most,
    most_right,
    rehearse,
    swap_strangers,
    world_of,
)
from tests.gateway.attacks.worlds import World
from tests.gateway.making import LONG_AGO
from tests.gateway.serving import Running, running

from incrowd.gateway.state import KeyStore

T = TypeVar("T")
SIZE, QUESTIONS, NUMBERS = 400, {"q": 25, "private": 12}, 7
POLICY = """
allow_weak = true
[database]
users = "people"
id = "id"
created = "joined"
[database.filters]
zone = "integer"
[database.attributes.states]
table = "states"
user = "person"
value = "value"
candidates = "candidates.json"
[release]
mechanism = "{mechanism}"
[budget]
queries = 1000000
[snapshots]
period_hours = {period}
[limits]
choices = 500
reply_seconds = 0.05
solver_seconds = 0.03
[organisations.spy]
"""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One attack, and the worlds it is tried in."""

    name: str
    run: Callable[[Ask, Block, int, int], float] | None
    """None: it takes two days (`before_change`, `after_change`)."""
    planted: int
    targets: int = 1
    also: float = 0.0
    questions: dict[str, int] | None = None
    rivals: int = 0
    against: tuple[str, ...] = ("q", "private")
    """The mechanisms it is made for."""

    @property
    def guesses_a_number(self) -> bool:
        return self.targets > 1


PLANS = {
    "swap": Plan(name="15 of 18 planted accounts, other strangers each time", run=swap_strangers, planted=18),
    "swap 40": Plan(
        name="33 of 40 planted accounts, other strangers each time",
        run=partial(swap_strangers, used=33),
        planted=40,
    ),
    "swap 60": Plan(
        name="15 of 60 planted accounts, other strangers each time", run=swap_strangers, planted=60
    ),
    "known": Plan(
        name="no account, 30 people's lists known, other strangers each time",
        run=swap_strangers,
        planted=30,
        also=0.5,
    ),
    "edge": Plan(name="a learner that looks for the edge, 60 accounts", run=find_the_edge, planted=60),
    "rehearsed": Plan(
        name="the mechanism rehearsed, the one question that tells most, 60 accounts",
        run=rehearse,
        planted=60,
        rivals=30,
        against=("private",),
    ),
    "how many": Plan(
        name="how many of 30 people list it, 60 accounts",
        run=how_many,
        planted=60,
        targets=30,
        questions={"q": 49, "private": 12},
    ),
    "changed": Plan(
        name="who changed: 20 accounts, 20 questions a day",
        run=None,
        planted=20,
        questions={"q": 20, "private": 20},
    ),
}


def fill(url: str, world: World) -> None:
    pairs = [(p, value) for value, held in world.lists["states"].items() for p in held]
    if url.startswith("duckdb"):
        import duckdb

        with duckdb.connect(url.removeprefix("duckdb:///")) as database:
            columns = f"range AS id, range AS zone, DATE '{LONG_AGO:%Y-%m-%d}' AS joined"
            database.execute(f"CREATE OR REPLACE TABLE people AS SELECT {columns} FROM range({world.size})")
            numbers, values = [p for p, _ in pairs], [v for _, v in pairs]
            columns = "unnest(?::BIGINT[]) AS person, unnest(?::VARCHAR[]) AS value"
            database.execute(f"CREATE OR REPLACE TABLE states AS SELECT {columns}", [numbers, values])
        return
    import psycopg

    with psycopg.connect(url) as database:
        database.execute("DROP TABLE IF EXISTS people, states")
        columns = f"g AS id, g AS zone, DATE '{LONG_AGO:%Y-%m-%d}' AS joined"
        database.execute(
            f"CREATE TABLE people AS SELECT {columns} FROM generate_series(0, {world.size - 1}) g"
        )
        database.execute("CREATE TABLE states (person BIGINT, value TEXT)")
        with database.cursor().copy("COPY states FROM STDIN") as copy:
            for pair in pairs:
                copy.write_row(pair)


def asking(service: Running, key: str) -> Ask:
    def ask(people: Sequence[int]) -> frozenset[str]:
        where = {"column": "zone", "in": sorted(int(p) for p in people)}
        body = json.dumps({"attribute": "states", "where": where}).encode()
        while (got := service.post(body, key)).status == 503:
            time.sleep(0.05)
        return frozenset(got.json["values"])

    return ask


def in_each(work: Callable[[int], T], worlds: int) -> list[T]:
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(work, range(worlds)))


def attacked(plan: Plan, url: str, folder: Path, mechanism: str, truths: Sequence[int]) -> list[float]:
    """Return what the attack concludes in each world."""
    blocks = [
        Block(first=SIZE * n, planted=plan.planted, size=SIZE, targets=plan.targets, rivals=plan.rivals)
        for n in range(len(truths))
    ]
    questions = (plan.questions or QUESTIONS)[mechanism]
    key = KeyStore(folder / "state").add("spy", "spy")
    if plan.run is not None:
        fill(url, world_of(blocks, truths, 1, plan.also))
        with running(url, folder) as service:
            ask, run = asking(service, key), plan.run
            if plan.guesses_a_number and mechanism == "private":
                run = partial(how_many, first=31)
            return in_each(lambda number: run(ask, blocks[number], questions, number), len(blocks))
    fill(url, world_of(blocks, [0] * len(blocks), 1))
    with running(url, folder) as service:
        ask = asking(service, key)
        seen = in_each(lambda number: before_change(ask, blocks[number], questions, number), len(blocks))
    fill(url, world_of(blocks, [0] * len(blocks), 1, changed=[bool(truth) for truth in truths]))
    known = snapshot_in_use(folder)
    time.sleep(4)  # the next snapshot is due
    with running(url, folder) as service:
        while snapshot_in_use(folder) == known:
            time.sleep(0.2)
        ask = asking(service, key)
        return in_each(lambda number: after_change(ask, seen[number]), len(blocks))


def snapshot_in_use(folder: Path) -> int:
    with sqlite3.connect(f"file:{folder}/state/ledger.sqlite?mode=ro", uri=True) as ledger:
        return int(ledger.execute("SELECT max(number) FROM snapshots").fetchone()[0])


@contextmanager
def databases(kind: str, folder: Path) -> Iterator[str]:
    if kind == "duckdb":
        yield f"duckdb:///{folder}/club.duckdb"
        return
    import pgserver

    place = tempfile.mkdtemp(prefix="incrowd-postgres-")
    server = pgserver.get_server(place)  # type: ignore[attr-defined]
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(place, ignore_errors=True)


def row(plan: Plan, database: str, mechanism: str, worlds: int) -> str:
    """Attack, and put bound and measurement side by side."""
    truths = [int(number < worlds) for number in range(2 * worlds)]
    if plan.guesses_a_number:
        truths = np.random.default_rng(43).permutation(np.arange(2 * worlds) % NUMBERS).tolist()
    with (
        tempfile.TemporaryDirectory(prefix="incrowd-adaptive-") as name,
        databases(database, Path(name)) as url,
    ):
        folder = Path(name)
        period = 24 if plan.run is not None else 0.001
        (folder / "policy.toml").write_text(POLICY.format(mechanism=mechanism, period=period), "utf-8")
        (folder / "candidates.json").write_text(json.dumps(CANDIDATES), "utf-8")
        scores = attacked(plan, url, folder, mechanism, truths)
    if plan.guesses_a_number:
        value, low, high = exactly_right(scores, truths)
        said, bound = f"{value:.2f} right (chance {1 / NUMBERS:.2f})", most_right(1.0, NUMBERS)
    else:
        found = Measured.of(scores[:worlds], scores[worlds:])
        said, low, high, bound = f"{found.advantage:.2f}", found.low, found.high, most(1.0, 1e-8)
    shown = f"{bound:.2f}" if mechanism == "private" else "none"
    return f"| {database} | {mechanism} | {plan.name} | {said} | {low:.2f} to {high:.2f} | {shown} |"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=40)
    both = ["duckdb", "postgres"]
    parser.add_argument("--database", choices=both, nargs="*", default=both)
    parser.add_argument("--mechanism", choices=["q", "private"], nargs="*", default=["q", "private"])
    parser.add_argument("--attack", choices=list(PLANS), nargs="*", default=list(PLANS))
    chosen = parser.parse_args(arguments)
    print("| database | mechanism | attack | advantage | 95 % interval | bound |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    for database in chosen.database:
        for mechanism in chosen.mechanism:
            for name in chosen.attack:
                if mechanism in PLANS[name].against:
                    print(row(PLANS[name], database, mechanism, chosen.worlds), flush=True)


if __name__ == "__main__":
    main()
