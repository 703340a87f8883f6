"""Worlds for attacks: the same people with and without what the victim lists, and a gateway in front of each.

A world is a database in memory: the gateway's own code runs on it unchanged, hundreds of worlds in a few
seconds. Secrets are seeded, so that every run measures the same numbers.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.gateway.weakened import AskedAnew, Defences

from incrowd.gateway.core import Gateway
from incrowd.gateway.databases.common import Numbers
from incrowd.gateway.policy import DatabasePolicy, GatewayPolicy, read_policy
from incrowd.gateway.predicate import And, Between, Box, Compare, Not, OneOf, Or, Predicate
from incrowd.gateway.query import Client, Query

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OLD, YOUNG = 400.0, 3.0
"""Age of an account in days."""
SECRET = "illness X"
"""The value the attacker wants to tie the victim to."""
SPY = Client("spy", "acme")
ALL = Defences()
COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass
class World:
    """People by number: filter columns, and who lists what. It may change while a gateway stands before it."""

    columns: dict[str, NDArray[Any]]
    lists: dict[str, dict[str, list[int]]]
    days: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """How old each account is."""

    def __post_init__(self) -> None:
        self.size = len(next(iter(self.columns.values())))
        self.days = self.days if len(self.days) else np.full(self.size, OLD)


class InMemory:
    """A world as the gateway's database."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[Predicate] = []
        self._owner: str | None = None
        self._kept: dict[int, tuple[dict[str, Any], dict[str, dict[str, Numbers]], NDArray[np.bool_]]] = {}

    def open(self, state: Path, label: str, seconds: float) -> None:
        pass

    def identity(self) -> str | None:
        return self._owner

    def claim(self, identity: str) -> None:
        self._owner = identity

    def check(self) -> None:
        pass

    def snapshots(self) -> list[int]:
        return sorted(self._kept)

    def take(self, number: int, policy: DatabasePolicy, created_before: datetime | None) -> None:
        made = [NOW.replace(tzinfo=None) - timedelta(days=days) for days in self.world.days.tolist()]
        there = np.array([created_before is None or moment <= created_before for moment in made])
        lists = {
            name: {
                value: np.array([p for p in people if there[p]], np.int32) for value, people in held.items()
            }
            for name, held in self.world.lists.items()
        }
        kept = {name: {v: p for v, p in held.items() if len(p)} for name, held in lists.items()}
        self._kept[number] = ({k: v.copy() for k, v in self.world.columns.items()}, kept, there)

    def drop(self, number: int) -> None:
        del self._kept[number]

    def people(self) -> int:
        return self.world.size

    def members(self, number: int, where: Predicate) -> Numbers:
        self.asked.append(where)
        columns, _, there = self._kept[number]
        return np.flatnonzero(_holds(where, columns, len(there)) & there).astype(np.int32)

    def sizes(self, number: int, filter: str) -> NDArray[np.int64]:
        columns, _, there = self._kept[number]
        return np.unique(columns[filter][there], return_counts=True)[1]

    def erase(self) -> None:
        self._kept.clear()

    def holders(self, number: int, attribute: str) -> Iterator[tuple[str, Numbers]]:
        yield from self._kept[number][1][attribute].items()

    def close(self) -> None:
        pass


def _holds(where: Predicate, columns: Mapping[str, NDArray[Any]], size: int) -> NDArray[np.bool_]:
    match where:
        case Compare(column, op, value):
            return np.asarray(COMPARE[op](columns[column], value), dtype=np.bool_)
        case OneOf(column, values):
            return np.isin(columns[column], list(values))
        case Between(column, low, high):
            return (columns[column] >= low) & (columns[column] <= high)
        case And(parts):
            return np.all([np.ones(size, np.bool_), *(_holds(one, columns, size) for one in parts)], axis=0)
        case Or(parts):
            return np.any([np.zeros(size, np.bool_), *(_holds(one, columns, size) for one in parts)], axis=0)
        case Not(part):
            return ~_holds(part, columns, size)
        case Box():
            raise ValueError("these worlds have no map")


def policy(**changes: Mapping[str, Any]) -> GatewayPolicy:
    """A policy with the q-only rule for the tables of a world, all else as if a provider sets nothing."""
    content: dict[str, Any] = {
        "database": {
            "users": "users",
            "id": "id",
            "created": "created",
            "filters": {"city": "text", "age": "integer", "zone": "integer"},
            "attributes": {"states": {"table": "states", "user": "person", "value": "value"}},
        },
        "organisations": {"acme": {}, "uni": {}},
        "release": {"mechanism": "q"},
        "budget": {"scope": "organisation"},
        "limits": {"solver_seconds": 5.0},  # a busy machine must not change what is measured
    }
    for section, settings in changes.items():
        if isinstance(settings, Mapping):
            content[section] = {**content.get(section, {}), **settings}
        else:
            content[section] = settings
    return read_policy(content)


@contextmanager
def standing(
    world: World, folder: Path, seed: int, defences: Defences = ALL, **changes: Any
) -> Iterator[Gateway]:
    """Put a gateway with a secret of this seed in front of a world."""
    state = folder / f"state-{seed}"
    rmtree(state, ignore_errors=True)
    state.mkdir(mode=0o700)
    secret = state / "secret"
    secret.touch(mode=0o600)
    secret.write_text(np.random.default_rng([seed, 17]).bytes(32).hex())
    weak = defences != ALL
    rules = defences.policy(policy(**changes)) if weak else policy(**changes)
    gateway = Gateway(InMemory(world), rules, state, rules=defences.rules, clock=lambda: NOW.timestamp())
    try:
        yield gateway
    finally:
        gateway.close()


def asked_anew(world: World, defences: Defences, seed: int) -> AskedAnew:
    """Put a gateway that remembers nothing in front of a world."""
    rules = defences.policy(policy())
    chance = np.random.default_rng([seed, 19])
    return AskedAnew(
        lambda state: Gateway(
            InMemory(world), rules, state, rules=defences.rules, clock=lambda: NOW.timestamp()
        ),
        chance.bytes,
    )


def states(where: Predicate) -> Query:
    return Query("states", where)


def has(gateway: Gateway | AskedAnew, where: Predicate, client: Client = SPY, value: str = SECRET) -> bool:
    """Ask, and say whether the value the attacker waits for was in the answer."""
    return value in gateway.answer(client, states(where)).values


Attack = Callable[[int, bool], Sequence[float]]
"""Number of a world and whether the victim lists the value -> what the attacker saw, as numbers."""


@dataclass(frozen=True)
class Advantage:
    """|2 * accuracy - 1| of guessing whether the victim lists the value; 0 is chance, 1 is certainty."""

    named: float
    """Of the best threshold on the sum of what was seen."""
    learned: float
    """Of a linear rule fitted to half of the worlds, on the other half."""

    @property
    def best(self) -> float:
        return max(self.named, self.learned)


def advantage(attack: Attack, worlds: int) -> Advantage:
    """Attack as many worlds with as without; give the attacker the best of two rules."""
    seen = {
        present: np.array([attack(n, present) for n in range(worlds)], float) for present in (True, False)
    }
    with_victim, without = seen[True], seen[False]
    return Advantage(_threshold(with_victim.sum(axis=1), without.sum(axis=1)), _linear(with_victim, without))


def _threshold(present: NDArray[np.float64], absent: NDArray[np.float64]) -> float:
    edges = np.unique(np.concatenate([present, absent]))
    return float(max(abs(np.mean(present >= edge) - np.mean(absent >= edge)) for edge in edges))


def _linear(present: NDArray[np.float64], absent: NDArray[np.float64]) -> float:
    half = len(present) // 2
    rows = np.concatenate([present[:half], absent[:half]])
    rows = np.column_stack([rows, np.ones(len(rows))])
    truth = np.repeat([1.0, -1.0], half)
    ridge = rows.T @ rows + 1e-3 * len(rows) * np.eye(rows.shape[1])
    rule = np.linalg.solve(ridge, rows.T @ truth)
    test = np.concatenate([present[half:], absent[half:]])
    guess = np.column_stack([test, np.ones(len(test))]) @ rule > 0
    right = guess == np.repeat([True, False], [len(present) - half, len(absent) - half])
    return abs(2 * float(right.mean()) - 1)
