"""Attackers who adapt, over HTTP, on DuckDB and PostgreSQL, against both mechanisms: 40 + 40 worlds each.

The worlds are blocks of 400 people of one database, so that one gateway is attacked in all of them. The bound of
the private
mechanism is tanh(epsilon / 2) + delta. ``--worlds 10 --database duckdb`` is a quick look.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from tests.gateway.attacks.adaptive import (
    CANDIDATES,
    Ask,
    Block,
    Measured,
    find_the_edge,
    most,
    swap_strangers,
    world_of,
)
from tests.gateway.attacks.worlds import SECRET
from tests.gateway.making import LONG_AGO
from tests.gateway.serving import Running, running

from incrowd.gateway.keys import KeyStore

SIZE, QUESTIONS = 400, {"q": 25, "private": 12}
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
[limits]
choices = 500
reply_seconds = 0.05
solver_seconds = 0.03
[organisations.spy]
"""


Attack = Callable[[Ask, Block, int, int], float]


def with_33_of_40(ask: Ask, block: Block, questions: int, seed: int) -> float:
    return swap_strangers(ask, block, questions, seed, used=33)


ATTACKS: dict[str, tuple[Callable[[Ask, Block, int, int], float], int]] = {
    "15 of 18 planted accounts, other strangers each time": (swap_strangers, 18),
    "33 of 40 planted accounts, other strangers each time": (with_33_of_40, 40),
    "a learner that looks for the edge, 60 accounts": (find_the_edge, 60),
}


def fill(url: str, blocks: Sequence[Block], presents: Sequence[bool]) -> None:
    world = world_of(blocks, presents, 1)
    people = np.arange(world.size)
    pairs = [(p, value) for value, held in world.lists["states"].items() for p in held]
    if url.startswith("duckdb"):
        import duckdb

        with duckdb.connect(url.removeprefix("duckdb:///")) as database:
            columns = f"range AS id, range AS zone, DATE '{LONG_AGO:%Y-%m-%d}' AS joined"
            database.execute(f"CREATE TABLE people AS SELECT {columns} FROM range({len(people)})")
            numbers, values = [p for p, _ in pairs], [v for _, v in pairs]
            columns = "unnest(?::BIGINT[]) AS person, unnest(?::VARCHAR[]) AS value"
            database.execute(f"CREATE TABLE states AS SELECT {columns}", [numbers, values])
        return
    import psycopg

    with psycopg.connect(url) as database:
        database.execute("DROP TABLE IF EXISTS people, states")
        columns = f"g AS id, g AS zone, DATE '{LONG_AGO:%Y-%m-%d}' AS joined"
        database.execute(
            f"CREATE TABLE people AS SELECT {columns} FROM generate_series(0, {len(people) - 1}) g"
        )
        database.execute("CREATE TABLE states (person BIGINT, value TEXT)")
        with database.cursor().copy("COPY states FROM STDIN") as copy:
            for pair in pairs:
                copy.write_row(pair)


def attacked(
    service: Running, key: str, attack: Attack, blocks: Sequence[Block], questions: int
) -> list[float]:
    def one(number: int) -> float:
        def ask(people: Sequence[int]) -> bool:
            where = {"column": "zone", "in": sorted(int(p) for p in people)}
            body = json.dumps({"attribute": "states", "where": where}).encode()
            while (got := service.post(body, key)).status == 503:
                pass
            return SECRET in got.json["values"]

        return attack(ask, blocks[number], questions, number)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(one, range(len(blocks))))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument(
        "--database", choices=["duckdb", "postgres"], nargs="*", default=["duckdb", "postgres"]
    )
    parser.add_argument("--mechanism", choices=["q", "private"], nargs="*", default=["q", "private"])
    chosen = parser.parse_args(arguments)
    print(
        "| database | mechanism | attack | advantage | 95 % interval | bound |\n|---|---|---|---|---|---|",
        flush=True,
    )
    for database in chosen.database:
        for mechanism in chosen.mechanism:
            for name, (attack, planted) in ATTACKS.items():
                presents = [number < chosen.worlds for number in range(2 * chosen.worlds)]
                blocks = [Block(first=SIZE * n, planted=planted, size=SIZE) for n in range(2 * chosen.worlds)]
                found = _measure(database, mechanism, attack, blocks, presents)
                bound = f"{most(1.0, 1e-8):.2f}" if mechanism == "private" else "none"
                cells = [database, mechanism, name, f"{found.advantage:.2f}"]
                cells += [f"{found.low:.2f} to {found.high:.2f}", bound]
                print(f"| {' | '.join(cells)} |", flush=True)


def _measure(
    database: str, mechanism: str, attack: Attack, blocks: Sequence[Block], presents: Sequence[bool]
) -> Measured:
    with tempfile.TemporaryDirectory(prefix="incrowd-adaptive-") as name:
        folder = Path(name)
        (folder / "policy.toml").write_text(POLICY.format(mechanism=mechanism), "utf-8")
        (folder / "candidates.json").write_text(json.dumps(CANDIDATES), "utf-8")
        if database == "duckdb":
            url = f"duckdb:///{folder}/club.duckdb"
        else:
            import pgserver

            url = pgserver.get_server(tempfile.mkdtemp(prefix="incrowd-postgres-")).get_uri()
        fill(url, blocks, presents)
        key = KeyStore(folder / "state").add("spy", "spy")
        with running(url, folder) as service:
            scores = attacked(service, key, attack, blocks, QUESTIONS[mechanism])
        half = len(blocks) // 2
        return Measured.of(scores[:half], scores[half:])


if __name__ == "__main__":
    main()
