"""Attackers who choose each question after the last answer, against a gateway of either mechanism.

Each attack gets a way to ask (in this process, or over HTTP in the benchmark) and the numbers of the people it may
name, and
says how strongly it believes that the victim lists the value. People are named by the filter `zone`, which is
everybody's own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from tests.gateway.attacks.worlds import SECRET, World

from incrowd.gateway.people import Selection
from incrowd.gateway.policy import PrivacyPolicy
from incrowd.gateway.private import PrivateMechanism, spending_of
from incrowd.gateway.query import OneOf
from incrowd.gateway.snapshot import _indexed

Ask = Callable[[Sequence[int]], frozenset[str]]
"""People -> the values in the answer about them."""
COMMON = tuple(f"common {number}" for number in range(6))
CANDIDATES = [SECRET, *COMMON]


@dataclass(frozen=True)
class Block:
    """Some people of a database in which nobody else is named: one world of an attack."""

    first: int
    """The victim, or the first of the targets; accounts of the attacker follow, then strangers."""
    planted: int
    size: int
    targets: int = 1
    rivals: int = 0
    """So many of the accounts list what the victim lists in the other world, instead."""

    @property
    def victims(self) -> list[int]:
        return list(range(self.first, self.first + self.targets))

    @property
    def own(self) -> list[int]:
        return list(range(self.first + self.targets, self.first + self.targets + self.planted))

    @property
    def strangers(self) -> list[int]:
        return list(range(self.first + self.targets + self.planted, self.first + self.size))


def lists_of(
    block: Block, listing: int, chance: np.random.Generator, also: float = 0.0
) -> dict[str, list[int]]:
    """So many of the targets list the value; the attacker's accounts do; strangers list common things.

    `also`: the share of the "accounts" that list something common, too, as real people do whose lists are known.
    """
    loyal = block.planted - block.rivals
    held: dict[str, list[int]] = {SECRET: [*block.victims[:listing], *block.own[:loyal]]}
    more = [account for account in block.own[15:loyal] if chance.random() < also]
    others = [*block.strangers, *more]
    if block.rivals:
        held[COMMON[0]] = [*block.own[loyal:], *block.victims[listing:]]
    else:
        others += block.victims[listing:]
    for person in others:
        held.setdefault(COMMON[int(chance.integers(len(COMMON)))], []).append(person)
    return held


def after_changes(block: Block, held: dict[str, list[int]], present: bool) -> dict[str, list[int]]:
    """The next day: nine accounts list something common instead, and the victim does so, too, or not."""
    moved = {*block.own[:9], *(block.victims if present else [])}
    after = {value: [p for p in people if p not in moved] for value, people in held.items()}
    after["something new"] = sorted(moved)
    return after


def world_of(
    blocks: Sequence[Block],
    listing: Sequence[int],
    seed: int,
    also: float = 0.0,
    changed: Sequence[bool] | None = None,
) -> World:
    """Put blocks side by side into one database; with `changed`, as it is the day after."""
    chance = np.random.default_rng([seed, 23])
    size = sum(block.size for block in blocks)
    held: dict[str, list[int]] = {}
    for number, (block, count) in enumerate(zip(blocks, listing, strict=True)):
        lists = lists_of(block, int(count), chance, also)
        if changed is not None:
            lists = after_changes(block, lists, changed[number])
        for value, people in lists.items():
            held.setdefault(value, []).extend(people)
    columns = {"city": np.full(size, "Aspen"), "age": np.full(size, 30), "zone": np.arange(size)}
    return World(columns, {"states": {value: sorted(people) for value, people in held.items()}})


def swap_strangers(ask: Ask, block: Block, questions: int, seed: int, used: int = 15) -> float:
    """Ask for own accounts, the victim and some strangers, with other strangers each time, until the value appears."""
    chance = np.random.default_rng([seed, 29])
    for _ in range(questions):
        own = chance.choice(block.own, min(used, block.planted), replace=False).tolist()
        strangers = chance.choice(block.strangers, 30, replace=False).tolist()
        if SECRET in ask([block.first, *own, *strangers]):
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
        seen = SECRET in ask([*([block.first] if with_victim else []), *own, *strangers])
        if with_victim:
            yes, no = (float(weights @ passes(count + more)) for more in (1, 0))
            score += math.log(max(yes if seen else 1 - yes, 1e-6) / max(no if seen else 1 - no, 1e-6))
        else:
            chances = passes(count)
            belief += np.log(np.clip(chances if seen else 1 - chances, 1e-6, 1))
    return score


def how_many(ask: Ask, block: Block, questions: int, seed: int, first: int = 15) -> float:
    """Find out how many of the targets list it: how few accounts of one's own does it take beside them?

    Every number of accounts is tried with other strangers until the value appears, at most seven times.
    """
    chance = np.random.default_rng([seed, 37])
    fewest, asked = first + 1, 0
    while asked < questions and fewest > 1:
        for _ in range(7):
            own = chance.choice(block.own, fewest - 1, replace=False).tolist()
            strangers = chance.choice(block.strangers, 30, replace=False).tolist()
            asked += 1
            if SECRET in ask([*block.victims, *own, *strangers]):
                fewest -= 1
                break
        else:
            break
    return float(first + 1 - fewest)


def rehearse(ask: Ask, block: Block, questions: int, seed: int, draws: int = 500) -> float:
    """Know the mechanism: rehearse it at home, ask the one question that tells most, and weigh the answer.

    The victim lists one value or another, both near the threshold by accounts of one's own: one goes up and the other
    down, which is as far as one list moves anything.
    """
    count, chances = rehearsed(min(block.rivals, block.planted - block.rivals), draws)
    loyal = block.own[: block.planted - block.rivals][:count]
    seen = ask([block.first, *loyal, *block.own[block.planted - block.rivals :][:count]])
    yes, no = (float(one.get(seen & {SECRET, COMMON[0]}, 0) + 1) for one in chances)
    return math.log(yes / no)


@cache
def rehearsed(most: int, draws: int) -> tuple[int, tuple[Counter[frozenset[str]], Counter[frozenset[str]]]]:
    """Return how many accounts of each kind tell the two worlds apart best, and how often which answer came."""
    spent = spending_of(PrivacyPolicy(), public=True)
    made = PrivateMechanism(spending=spent, base=12, most=200, key=b"r" * 32, candidates=tuple(CANDIDATES))

    def answers(secret: int, other: int) -> Counter[frozenset[str]]:
        everybody = np.arange(secret + other, dtype=np.int32)
        held = {SECRET: everybody[:secret], COMMON[0]: everybody[secret:]}
        index, group = _indexed(held, secret + other, 0), Selection(everybody)
        return Counter(frozenset(made.release(index, group).values) for _ in range(draws))

    tried = {
        count: (answers(count + 1, count), answers(count, count + 1))
        for count in (26, 28, 30)
        if count <= most
    }
    return max(tried.items(), key=lambda one: (one[1][0] - one[1][1]).total())


Remembered = list[tuple[list[int], bool]]
"""Questions of the first day, and whether the value was in the answer."""


def before_change(ask: Ask, block: Block, questions: int, seed: int) -> Remembered:
    """The first day: the victim and all accounts, with other strangers each time."""
    chance = np.random.default_rng([seed, 41])
    asked = [
        [*block.victims, *block.own, *chance.choice(block.strangers, 30, replace=False).tolist()]
        for _ in range(questions)
    ]
    return [(people, SECRET in ask(people)) for people in asked]


def after_change(ask: Ask, remembered: Remembered) -> float:
    """The next day nine accounts no longer list it. If the victim changed as well, some answer may be a new one."""
    return float(sum(shown and SECRET not in ask(people) for people, shown in remembered))


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


def exactly_right(scores: Sequence[float], truths: Sequence[int]) -> tuple[float, float, float]:
    """How often a number is guessed: what each score stands for is learnt on half of the worlds; with its interval."""
    half = len(scores) // 2
    meant: dict[float, list[int]] = {}
    for score, truth in zip(scores[:half], truths[:half], strict=True):
        meant.setdefault(score, []).append(truth)
    usual = {score: max(set(found), key=found.count) for score, found in meant.items()}
    other = max(set(truths[:half]), key=list(truths[:half]).count)
    hits = sum(
        usual.get(score, other) == truth for score, truth in zip(scores[half:], truths[half:], strict=True)
    )
    return (hits / (len(scores) - half), *interval(hits, len(scores) - half))


def most_right(epsilon: float, numbers: int) -> float:
    """How often any attack can guess one of so many numbers, all as likely, if each person has a budget of epsilon.

    Neighbouring numbers differ in one person, so no guess is more than exp(epsilon) times as likely under one as under
    the next; the best guessing under that is a linear program.
    """
    from scipy.optimize import linprog

    def place(truth: int, guess: int) -> int:
        return truth * numbers + guess

    rows = []
    for truth in range(numbers - 1):
        for guess in range(numbers):
            for one, other in ((truth, truth + 1), (truth + 1, truth)):
                row = np.zeros(numbers * numbers)
                row[place(one, guess)], row[place(other, guess)] = 1, -math.exp(epsilon)
                rows.append(row)
    sums = np.kron(np.eye(numbers), np.ones(numbers))
    right = np.zeros(numbers * numbers)
    right[[place(number, number) for number in range(numbers)]] = -1 / numbers
    found = linprog(right, np.array(rows), np.zeros(len(rows)), sums, np.ones(numbers), bounds=(0, 1))
    return float(-found.fun)


def most(epsilon: float, delta: float = 0.0) -> float:
    """What (epsilon, delta) allows any attack at most."""
    return math.tanh(epsilon / 2) + delta
