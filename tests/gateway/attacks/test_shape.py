"""Attacks on the shape of a reply: how long it is, what its headers say, what an error quotes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest
from tests.gateway.attacks.worlds import (
    ALL,
    SECRET,
    Attack,
    InMemory,
    World,
    advantage,
    standing,
)
from tests.gateway.serving import Got, ask, call
from tests.gateway.weakened import Defences

from incrowd.gateway.audit import AuditLog
from incrowd.gateway.databases.common import Numbers
from incrowd.gateway.http import gateway_app
from incrowd.gateway.query import Compare, Predicate
from incrowd.gateway.service import GatewayService
from incrowd.gateway.state import KeyStore, open_secret
from incrowd.gateway.worker import DecisionThreads

IN_TOWN = Compare("city", "=", "Aspen")
BODY = json.dumps({"attribute": "states", "where": {"column": "city", "op": "=", "value": "Aspen"}}).encode()
NO_NOISE = Defences(noise=False)


class Served:
    """A gateway behind its web interface, inside the test."""

    def __init__(self, service: GatewayService, key: str) -> None:
        self.service, self.key, self.app = service, key, gateway_app(service)

    def ask(self, body: bytes = BODY) -> Got:
        return ask(self.app, ("POST", "/v1/query", body, self.key))[0]


@contextmanager
def served(
    world: World, folder: Path, seed: int, defences: Defences = ALL, reply: float = 0.01, concurrency: int = 8
) -> Iterator[Served]:
    limits = {"reply_seconds": reply, "solver_seconds": 5.0, "concurrency": concurrency}
    with standing(world, folder, seed, defences, limits=limits) as gateway:
        state = folder / f"state-{seed}"
        secret, keys = open_secret(state), KeyStore(state)
        key = keys.add("spy", "acme")
        audit = AuditLog(state, secret.key("audit"))
        service = GatewayService(
            decisions=DecisionThreads(gateway), keys=keys, policy=gateway.policy, audit=audit, secret=secret
        )
        try:
            yield Served(service, key)
        finally:
            asyncio.run(service.close())


def town(lists: dict[str, list[int]], inside: int) -> World:
    size = 120
    columns = {
        "city": np.where(np.arange(size) < inside, "Aspen", "Boulder"),
        "age": np.full(size, 30),
        "zone": np.zeros(size, np.int64),
    }
    return World(columns, {"states": lists})


def counting(folder: Path, padded: bool) -> Attack:
    """Guess from the length whether the answer has one value more."""

    def attack(number: int, present: bool) -> Sequence[float]:
        shared = {f"state {k}": list(range(12 * k, 12 * k + 12)) for k in range(number % 6)}
        lists = {**shared, **({SECRET: list(range(100, 120))} if present else {})}
        with served(town(lists, 120), folder, number, NO_NOISE) as service:
            got = service.ask()
        return [len(got.body) if padded else len(json.dumps(got.json["values"]))]

    return attack


def test_the_length_of_the_values_tells_how_many_there_are(folder: Path) -> None:
    assert advantage(counting(folder, padded=False), worlds=12).named > 0.15
    unpadded = counting(folder, padded=False)
    assert all(unpadded(n, True) > unpadded(n, False) for n in range(4))


def test_the_length_of_a_reply_does_not(folder: Path) -> None:
    assert advantage(counting(folder, padded=True), worlds=12).best == 0


def test_answered_denied_and_failed_have_one_shape(folder: Path) -> None:
    answered_world = town({SECRET: list(range(60))}, 60)
    shapes = set()
    with served(answered_world, folder, 1) as service:
        bodies = [BODY, BODY.replace(b"Aspen", b"Nowhere")]
        replies = [service.ask(body) for body in bodies]
        assert replies[0].json["values"] == [SECRET]
        assert replies[1].json["values"] == []
        shapes |= {(got.status, got.headers, len(got.body)) for got in replies}
    with served(answered_world, folder, 2) as service:
        service.service.decisions.gateway.ledger.close()  # the ledger cannot be written any more
        broken = service.ask()
        assert broken.json["values"] == []
        shapes.add((broken.status, broken.headers, len(broken.body)))
    assert len(shapes) == 1


class Talkative(InMemory):
    """A database whose errors quote what they were about, as most do."""

    def members(self, number: int, where: Predicate) -> Numbers:
        raise RuntimeError(f"could not convert '{SECRET}' of user 'Ann Smith'")


def test_an_error_is_logged_without_what_it_quotes(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    world = town({SECRET: list(range(60))}, 60)
    with served(world, folder, 1) as service:
        gateway = service.service.decisions.gateway
        talkative = Talkative(world)
        with pytest.raises(RuntimeError, match="Ann Smith"):
            talkative.members(1, IN_TOWN)
        gateway.database = talkative
        got = service.ask()
    assert got.json["values"] == []
    assert "unforeseen RuntimeError" in caplog.text
    for said in (caplog.text, got.body.decode(), repr(gateway), repr(gateway.snapshot)):
        assert SECRET not in said
        assert "Smith" not in said


class Slow(InMemory):
    """A database that takes its time over one town."""

    def members(self, number: int, where: Predicate) -> Numbers:
        if where == IN_TOWN:
            sleep(0.2)
        return super().members(number, where)


def second_of_two(folder: Path, seed: int, slow: bool) -> int:
    """One question at a time is allowed: ask one, and half a reply later another; return what becomes of that."""
    elsewhere = BODY.replace(b"Aspen", b"Boulder")
    with served(town({SECRET: list(range(60))}, 60), folder, seed, reply=0.3, concurrency=1) as service:
        if slow:
            gateway = service.service.decisions.gateway
            known, gateway.database = gateway.database, Slow(gateway.database.world)
            gateway.database._kept = known._kept

        async def both() -> tuple[Got, Got]:
            first = asyncio.create_task(call(service.app, "POST", "/v1/query", BODY, service.key))
            await asyncio.sleep(0.15)
            later = await call(service.app, "POST", "/v1/query", elsewhere, service.key)
            return await first, later

        first, later = asyncio.run(both())
        assert first.status == 200
        return later.status


def budget_meanwhile(folder: Path, seed: int, slow: bool) -> list[tuple[int, bytes]]:
    """Ask, and a few times before the reply what is left; return that."""
    with served(town({SECRET: list(range(60))}, 60), folder, seed, reply=0.5) as service:
        if slow:
            gateway = service.service.decisions.gateway
            known, gateway.database = gateway.database, Slow(gateway.database.world)
            gateway.database._kept = known._kept

        async def looking() -> list[Got]:
            first = asyncio.create_task(call(service.app, "POST", "/v1/query", BODY, service.key))
            seen = []
            for _ in range(3):
                await asyncio.sleep(0.1)
                seen.append(await call(service.app, "GET", "/v1/budget", b"", service.key))
            await first
            started = monotonic()
            seen.append(await call(service.app, "GET", "/v1/budget", b"", service.key))
            assert monotonic() - started >= 0.5
            return seen

        return [(got.status, got.body) for got in asyncio.run(looking())]


def test_what_is_left_does_not_tell_when_a_question_was_decided(folder: Path) -> None:
    """A number that falls as soon as a question is decided would be a stopwatch beside the clock."""
    quick, slow = (budget_meanwhile(folder, 3 + slow, slow) for slow in (False, True))
    assert quick == slow
    assert [status for status, _ in quick] == [503, 503, 503, 200]


def test_being_too_busy_does_not_tell_how_long_a_decision_took(folder: Path) -> None:
    """A place that were free as soon as a question is decided would be a stopwatch beside the clock."""
    assert second_of_two(folder, 1, slow=True) == second_of_two(folder, 2, slow=False) == 503
