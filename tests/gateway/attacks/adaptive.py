"""Attackers who choose each question after the last answer, against a gateway of either mechanism.

Each attack gets a way to ask (in this process, or over HTTP in the benchmark) and the numbers of the people it may
name, and
says how strongly it believes that the victim lists the value. People are named by the filter `zone`, which is
everybody's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tests.gateway.attacks.worlds import SECRET, World

from incrowd.gateway.query import OneOf

Ask = Callable[[Sequence[int]], bool]
"""People -> whether the value the attacker waits for was in the answer about them."""
COMMON = tuple(f"common {number}" for number in range(6))
CANDIDATES = [SECRET, *COMMON]


@dataclass(frozen=True)
class Block:
    """Some people of a database in which nobody else is named: one world of an attack."""

    first: int
    """The victim; accounts of the attacker follow, then strangers."""
    planted: int
    size: int

    @property
    def own(self) -> list[int]:
        return list(range(self.first + 1, self.first + 1 + self.planted))

    @property
    def strangers(self) -> list[int]:
        return list(range(self.first + 1 + self.planted, self.first + self.size))


def lists_of(block: Block, present: bool, chance: np.random.Generator) -> dict[str, list[int]]:
    """The victim lists the value or not; the attacker's accounts do; strangers list common things."""
    held: dict[str, list[int]] = {SECRET: [*([block.first] if present else []), *block.own]}
    for stranger in block.strangers:
        held.setdefault(COMMON[int(chance.integers(len(COMMON)))], []).append(stranger)
    held.setdefault(COMMON[0], []).extend([] if present else [block.first])
    return held


def world_of(blocks: Sequence[Block], presents: Sequence[bool], seed: int) -> World:
    """Put blocks side by side into one database."""
    chance = np.random.default_rng([seed, 23])
    size = sum(block.size for block in blocks)
    held: dict[str, list[int]] = {}
    for block, present in zip(blocks, presents, strict=True):
        for value, people in lists_of(block, present, chance).items():
            held.setdefault(value, []).extend(people)
    columns = {"city": np.full(size, "Aspen"), "age": np.full(size, 30), "zone": np.arange(size)}
    return World(columns, {"states": {value: sorted(people) for value, people in held.items()}})


def swap_strangers(ask: Ask, block: Block, questions: int, seed: int, used: int = 15) -> float:
    """Ask for own accounts, the victim and some strangers, with other strangers each time, until the value appears."""
    chance = np.random.default_rng([seed, 29])
    for _ in range(questions):
        own = chance.choice(block.own, min(used, block.planted), replace=False).tolist()
        strangers = chance.choice(block.strangers, 30, replace=False).tolist()
        if ask([block.first, *own, *strangers]):
            return 1.0
    return 0.0


def find_the_edge(ask: Ask, block: Block, questions: int, seed: int) -> float:
    """Learn with own accounts alone how many it takes, then ask with the victim in the place of the last one.

    A general learner: it keeps a posterior over thresholds and asks where the two worlds are easiest to tell apart.
    """
    chance = np.random.default_rng([seed, 31])
    thresholds = np.arange(1, block.planted + 2)
    width = 3.0
    belief = np.zeros(len(thresholds))

    def passes(count: float) -> np.ndarray:
        return 1 / (1 + np.exp(-(count - thresholds) / width))

    score = 0.0
    for number in range(questions):
        weights = np.exp(belief - belief.max())
        weights /= weights.sum()
        gain = [abs(float(weights @ (passes(n + 1) - passes(n)))) for n in range(block.planted + 1)]
        count = int(np.argmax(np.array(gain) + 1e-9 * chance.random(len(gain))))
        with_victim = number % 2 == 0  # first: under a budget nothing comes after it
        own = chance.choice(block.own, min(count, block.planted), replace=False).tolist()
        strangers = chance.choice(block.strangers, 30, replace=False).tolist()
        seen = ask([*([block.first] if with_victim else []), *own, *strangers])
        if with_victim:
            yes, no = (float(weights @ passes(count + more)) for more in (1, 0))
            score += math.log(max(yes if seen else 1 - yes, 1e-6) / max(no if seen else 1 - no, 1e-6))
        else:
            chances = passes(count)
            belief += np.log(np.clip(chances if seen else 1 - chances, 1e-6, 1))
    return score


def known_lists(ask: Ask, block: Block, questions: int, seed: int) -> float:
    """Without accounts of their own, but with others' lists known: real people who list it take their place."""
    return swap_strangers(ask, block, questions, seed)


def naming(people: Sequence[int]) -> OneOf:
    """Return the condition that selects these people."""
    return OneOf("zone", tuple(sorted(int(person) for person in people)))


def interval(hits: int, worlds: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a rate."""
    z, rate = 1.96, hits / worlds
    centre = (rate + z * z / (2 * worlds)) / (1 + z * z / worlds)
    half = z * math.sqrt(rate * (1 - rate) / worlds + z * z / (4 * worlds**2)) / (1 + z * z / worlds)
    return centre - half, centre + half


@dataclass(frozen=True)
class Measured:
    """How far an attack got."""

    advantage: float
    low: float
    high: float

    @classmethod
    def of(cls, present: Sequence[float], absent: Sequence[float]) -> Measured:
        """The best threshold on scores of the first half of the worlds, measured on all; Newcombe's interval."""
        half = len(present) // 2
        edges = np.unique([*present[:half], *absent[:half]])
        fitted = [
            np.mean(np.array(present[:half]) >= e) - np.mean(np.array(absent[:half]) >= e) for e in edges
        ]
        edge = edges[int(np.argmax(fitted))]
        hits = [int((np.array(scores) >= edge).sum()) for scores in (present, absent)]
        rates = [hits[0] / len(present), hits[1] / len(absent)]
        ends = [interval(hits[0], len(present)), interval(hits[1], len(absent))]
        difference = rates[0] - rates[1]
        low = difference - math.hypot(rates[0] - ends[0][0], ends[1][1] - rates[1])
        high = difference + math.hypot(ends[0][1] - rates[0], rates[1] - ends[1][0])
        return cls(difference, low, high)


def most(epsilon: float, delta: float = 0.0) -> float:
    """What (epsilon, delta) allows any attack at most."""
    return math.tanh(epsilon / 2) + delta
