"""A stopwatch against a running gateway: does the time of a reply tell a hard decision from a refusal?

In each round a client asks, in random order, about a town whose people list much, which takes some deciding, and about
two towns that are too small and refused at once. The two refusals are the control: what they differ by is the network
and the machine. Rounds are paired and shuffled, so the chance of a false alarm does not depend on how busy the machine
is; how small a leak would be found does, and is tested as well.
"""

from __future__ import annotations

import json
import random
import socket
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pytest
from scipy.stats import wilcoxon
from tests.gateway.serving import POLICY, running

from incrowd.gateway.state import KeyStore

REPLY = 0.2
FALSE_ALARM = 0.001
VISIBLE = 0.001
"""Seconds of difference that a stopwatch on the same machine can use; a network hides more."""
OLD_LEAK = 0.006
"""What replies differed by, in the median, as long as questions were decided in the process that replies."""
KINDS = ("hard", "refused", "refused too")


@dataclass(frozen=True)
class Stopped:
    """Seconds by kind of question, one entry a round."""

    replies: dict[str, list[float]]
    decisions: dict[str, list[float]]
    """As the provider's own audit log has them; nobody else sees these."""


def make_towns(folder: Path, rounds: int) -> str:
    """Towns of 2,000 people who list about 12 of 30 films each, and towns of 8."""
    import duckdb

    with duckdb.connect(str(folder / "club.duckdb")) as club:
        towns = ", ".join(f"('{kind}', {2000 if kind == 'hard' else 8})" for kind in KINDS)
        club.execute(
            "CREATE TABLE people AS SELECT row_number() OVER () AS id, kind || town.range AS city, 30 AS age, "
            f"DATE '2020-01-01' AS joined FROM (VALUES {towns}) AS towns(kind, size), range({rounds + 3}) AS town, "
            "range(2000) AS person WHERE person.range < size"
        )
        club.execute(
            "CREATE TABLE likes AS SELECT id AS person, 'Film ' || film.range AS movie FROM people, range(30) AS film "
            "WHERE hash(id * 100 + film.range) % 10 < 4"
        )
    (folder / "policy.toml").write_text(POLICY.format(reply=REPLY, queries=1000))
    return f"duckdb:///{folder}/club.duckdb"


class Client:
    """Keeps one connection and sends a question in one piece, so that nothing but the reply is waited for."""

    def __init__(self, port: int, key: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._key = key

    def seconds(self, town: str) -> float:
        where = {"column": "city", "op": "=", "value": town}
        body = json.dumps({"attribute": "movies", "where": where})
        head = f"POST /v1/query HTTP/1.1\r\nHost: club\r\nAuthorization: Bearer {self._key}\r\n"
        started = perf_counter()
        self._socket.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        got = self._socket.recv(2**16)
        taken = perf_counter() - started
        while not got.endswith(b'"}'):
            got += self._socket.recv(2**16)
        assert got.startswith(b"HTTP/1.1 200")
        return taken

    def close(self) -> None:
        self._socket.close()


def stopped(rounds: int) -> Stopped:
    """Ask a gateway in a process of its own, round by round."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        url = make_towns(folder, rounds)
        key = KeyStore(folder / "state").add("spy", "lab")
        asked: list[str] = []
        replies: dict[str, list[float]] = {kind: [] for kind in KINDS}
        with running(url, folder) as service:
            client = Client(service.port, key)
            order = random.Random(5)
            for number in range(rounds + 3):
                for kind in order.sample(KINDS, 3):
                    seconds = client.seconds(f"{kind}{number}")
                    if number >= 3:  # first questions load code
                        replies[kind].append(seconds)
                    asked.append(kind)
            client.close()
        written = (folder / "state/audit/00000001.jsonl").read_text("utf-8")
    records = map(json.loads, written.splitlines())
    taken = [(kind, one["ms"] / 1000) for kind, one in zip(asked, records, strict=True)][9:]
    return Stopped(replies, {kind: [ms for which, ms in taken if which == kind] for kind in KINDS})


def differs(one: Sequence[float], other: Sequence[float]) -> tuple[float, float]:
    """Return the median difference of the rounds, and how likely chance gives as large a one."""
    by_round = np.asarray(one) - np.asarray(other)
    return float(np.median(by_round)), float(wilcoxon(by_round).pvalue)


def leaks(one: Sequence[float], other: Sequence[float]) -> bool:
    median, chance = differs(one, other)
    return abs(median) > VISIBLE and chance < FALSE_ALARM


@pytest.fixture(scope="module")
def club() -> Stopped:
    return stopped(24)


def test_a_stopwatch_on_decisions_tells_hard_ones_from_refusals(club: Stopped) -> None:
    assert leaks(club.decisions["hard"], club.decisions["refused"])


def test_a_stopwatch_on_replies_does_not(club: Stopped) -> None:
    assert min(min(seconds) for seconds in club.replies.values()) >= REPLY
    assert not leaks(club.replies["hard"], club.replies["refused"])
    assert not leaks(club.replies["refused too"], club.replies["refused"])


def test_it_would_have_found_the_leak_of_deciding_where_replies_are_sent(club: Stopped) -> None:
    late = [seconds + OLD_LEAK for seconds in club.replies["hard"]]
    assert leaks(late, club.replies["refused"])
