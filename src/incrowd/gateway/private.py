"""The differentially private decision (`release.mechanism = "private"`): which values leave is decided by noisy
counts.

Every question spends a part of the budget of everybody it counts, whether it is answered, empty or denied, and
whoever has nothing left is not counted. Noise and accounting are OpenDP's; NOTES.md has the proof and says who is
protected. Two noisy looks at a class make an answer:

1. *Choosing.* Everybody stands for one of the values they list, chosen by a secret key. The noisy number of people
   who stand for each value, and of people who list several, say which set of values is worth testing. Without a
   public list of candidates, only values whose noisy number passes a threshold are known of at all (private
   partition selection).
2. *Testing.* For each value of the set, the noisy number of people who list it and no other of the set. Those that
   pass a threshold leave: then q is at least `release.q` plus `release.known_users` with a probability of 0.999.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from incrowd.arrays import Floats, Ints
from incrowd.errors import InputError, UnreadableSource
from incrowd.gateway.ledger import Charge, Ledger
from incrowd.gateway.people import Selection, Words, members_of
from incrowd.gateway.policy import GatewayPolicy, PrivacyPolicy
from incrowd.gateway.snapshot import AttributeIndex
from incrowd.gateway.state import Secret
from incrowd.measures.release.canonical import read_aliases, uncounted_names
from incrowd.opendp_library import OpenDP, least_threshold

FAILURE = 0.001
"""Probability that an answer holds a value with too few people behind it."""
CHOOSING = 0.15
"""Part of a question's budget for choosing what to test. More finds hardly better sets: 6.3 values of classes of
2,000 against 6.9 at twice as much, 53.5 of 20,000 against 53.8."""
CHOOSING_UNKNOWN = 0.5
"""The same where candidates are not public, so that choosing has to find them, too."""
CHOOSING_GAUSSIAN = 0.05
"""The same in terms of zero-concentrated privacy, which grows with the square of noise."""
MOST_TESTED = 200
"""Candidates among which a set is chosen: those with the most people behind them."""


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What one question costs everybody it counts, and how noisy it is for that.

    `questions` of them together, chosen one after the other by whoever asks, are (epsilon, delta)-differentially
    private.
    """

    kind: str
    """"laplace" adds epsilons up, "gaussian" squares of noise: better for many questions a person."""
    choosing: float
    """Scale of the noise of the first look."""
    testing: float
    """Scale of the noise of the second look."""
    epsilon: float
    delta: float
    """What all questions of a window cost together, at most; delta is 0 with Laplace noise and public candidates."""
    questions: int
    threshold: int
    """Noisy number of people below which a value is not known of; 0: the candidates are public."""

    @property
    def settings(self) -> str:
        """Tells questions that add up in this way from those of other settings."""
        return json.dumps([self.kind, self.epsilon, self.delta, self.questions])

    def margin(self, values: int) -> int:
        """How far above the least count a noisy one must be, so that noise alone hardly lifts one of so many
        values."""
        each = FAILURE / max(1, values)
        if self.kind == "laplace":  # P(noise >= t) = exp(-t / scale) / (1 + exp(-1 / scale)) for whole t > 0
            return math.ceil(-self.testing * math.log(each * (1 + math.exp(-1 / self.testing))))
        return math.ceil(
            self.testing * math.sqrt(-2 * math.log(each))
        )  # discrete Gaussian noise is sub-Gaussian


@cache
def spending_of(policy: PrivacyPolicy, *, public: bool) -> Spending:
    """Choose the noise with which the policy's questions stay within its budget.

    Of the two kinds the one that asks for fewer people: with public candidates or without, so that all questions of a
    policy add up in one way.
    """
    laplace, gaussian = (make(policy, True) for make in (_laplace, _gaussian))
    better = _laplace if laplace.margin(MOST_TESTED) <= gaussian.margin(MOST_TESTED) else _gaussian
    return better(policy, public)


CHOOSING_L1, CHOOSING_L2 = 3, math.sqrt(3)
"""How far one person's list moves the first look: one value less, one more, one more who lists several."""
TESTING_L1, TESTING_L2 = 2, math.sqrt(2)
"""How far it moves the second: one value less, one more."""


def _laplace(policy: PrivacyPolicy, public: bool) -> Spending:
    share = CHOOSING if public else CHOOSING_UNKNOWN
    each = policy.epsilon / policy.questions
    choosing, testing = CHOOSING_L1 / (share * each), TESTING_L1 / ((1 - share) * each)

    def lost(threshold: int) -> float:
        return float(_library().laplace_threshold(choosing, threshold).map((2, 2, 1))[1])

    return Spending(
        kind="laplace",
        choosing=choosing,
        testing=testing,
        epsilon=policy.epsilon,
        delta=policy.delta,
        questions=policy.questions,
        threshold=0 if public else least_threshold(lost, policy.delta / policy.questions),
    )


def _gaussian(policy: PrivacyPolicy, public: bool) -> Spending:
    half = policy.delta / 2  # the other half is for values nobody else lists
    each = _library().most_rho(policy.epsilon, half) / policy.questions
    choosing = CHOOSING_L2 / math.sqrt(2 * CHOOSING_GAUSSIAN * each)
    testing = TESTING_L2 / math.sqrt(2 * (1 - CHOOSING_GAUSSIAN) * each)

    def lost(threshold: int) -> float:
        return float(_library().gaussian_threshold(choosing, threshold).map((2, math.sqrt(2), 1.0))[1])

    return Spending(
        kind="gaussian",
        choosing=choosing,
        testing=testing,
        epsilon=policy.epsilon,
        delta=policy.delta,
        questions=policy.questions,
        threshold=0 if public else least_threshold(lost, half / policy.questions),
    )


class _GatewayMechanisms(OpenDP):
    """What the gateway asks of OpenDP."""

    def __init__(self) -> None:
        super().__init__('mechanism = "private"')
        # Values go in by number: a name that holds a NUL would be cut there, and could then stand for another value.
        number = self._opendp.atom_domain(T=int)
        self._numbered = self._opendp.map_domain(number, number)

    def noisy(self, kind: str, scale: float) -> Any:
        """Add discrete noise to a list of counts."""
        return self.laplace(scale) if kind == "laplace" else self.gaussian(scale)

    def laplace_threshold(self, scale: float, threshold: int) -> Any:
        """Add noise to the counts of numbered values and let only those pass that reach a threshold."""
        metric = self._opendp.l01inf_distance(self._opendp.absolute_distance(T=int))
        return self._opendp.m.make_laplace_threshold(self._numbered, metric, scale=scale, threshold=threshold)

    def gaussian_threshold(self, scale: float, threshold: int) -> Any:
        """Do the same with Gaussian noise."""
        metric = self._opendp.l02inf_distance(self._opendp.absolute_distance(T=float))
        return self._opendp.m.make_gaussian_threshold(
            self._numbered, metric, scale=scale, threshold=threshold
        )


@cache
def _library() -> _GatewayMechanisms:
    return _GatewayMechanisms()


@cache
def _noise(kind: str, scale: float) -> Callable[[list[int]], list[int]]:
    made: Callable[[list[int]], list[int]] = _library().noisy(kind, scale)
    return made


@dataclass(frozen=True, kw_only=True)
class PrivateAnswer:
    """What left, and which values were tested with which threshold."""

    values: tuple[str, ...]
    tested: tuple[str, ...]
    threshold: int


@dataclass(frozen=True, eq=False)
class PrivateMechanism:
    """Decides questions on one attribute."""

    spending: Spending
    base: int
    """The least number of people who list a released value alone."""
    most: int
    """Most values in an answer."""
    key: bytes
    """Decides which of their values somebody stands for."""
    candidates: tuple[str, ...] | None
    """The values that may be asked about at all, known to everybody; None: not known."""

    def release(self, index: AttributeIndex, group: Selection, *, noise: bool = True) -> PrivateAnswer:
        """Decide which values leave, counting the people of this group alone.

        Without noise it says what is to be expected, for the provider's eyes only.
        """
        listed = _Listed.of(index, group, self.candidates, self.key)
        tested = self._choose(listed, noise)
        counts = listed.alone(tested)
        if noise and len(tested):
            counts = np.array(_noise(self.spending.kind, self.spending.testing)(counts.tolist()))
        threshold = self.base + self.spending.margin(len(tested))
        passed = np.flatnonzero(counts >= threshold)
        best = passed[np.argsort(-counts[passed], kind="stable")][: self.most]
        names = [listed.names[place] for place in tested.tolist()]
        return PrivateAnswer(
            values=tuple(names[place] for place in best.tolist()), tested=tuple(names), threshold=threshold
        )

    def _choose(self, listed: _Listed, noise: bool) -> Ints:
        """Return the places of the values that are worth testing."""
        several = listed.several()
        picks = listed.picks()
        kind, scale = self.spending.kind, self.spending.choosing
        if not noise:
            places, numbers = np.arange(len(picks)), picks.astype(np.float64)
            if self.candidates is None:
                places = np.flatnonzero(picks >= self.spending.threshold)
                numbers = numbers[places]
        elif self.candidates is None:
            places, numbers = self._found(listed, picks)
            several = int(_noise(kind, scale)([several])[0])
        else:
            noisy = _noise(kind, scale)([*picks.tolist(), several])
            places, numbers, several = np.arange(len(picks)), np.array(noisy[:-1], np.float64), int(noisy[-1])
        likely = np.argsort(-numbers, kind="stable")[:MOST_TESTED]
        chosen = best_window(numbers[likely], several, self.base, self.spending)
        return np.asarray(places[likely[chosen]], dtype=np.int64)

    def _found(self, listed: _Listed, picks: Ints) -> tuple[Ints, Floats]:
        """Return the values whose noisy numbers reach the threshold below which nothing is known to exist."""
        spent, library = self.spending, _library()
        make = library.laplace_threshold if spent.kind == "laplace" else library.gaussian_threshold
        there = {place: int(picks[place]) for place in np.flatnonzero(picks).tolist()}
        found: Mapping[int, int] = make(spent.choosing, spent.threshold)(there) if there else {}
        places = sorted(found)
        return np.array(places, np.int64), np.array([found[place] for place in places], np.float64)


@dataclass(frozen=True, eq=False)
class _Listed:
    """Who of a class lists which candidates, as pairs sorted by person."""

    names: tuple[str, ...]
    first: Ints
    """Where each person's pairs begin."""
    people: Ints
    places: Ints
    """Positions in `names`."""
    key: bytes

    @classmethod
    def of(
        cls, index: AttributeIndex, group: Selection, candidates: Sequence[str] | None, key: bytes
    ) -> _Listed:
        names = index.values if candidates is None else tuple(candidates)
        place = np.full(len(index.values), -1, dtype=np.int64)
        if candidates is None:
            place = np.arange(len(names), dtype=np.int64)
        else:
            for position, name in enumerate(names):
                code = index.code_of.get(name)
                if code is not None:
                    place[code] = position
        people, codes = index.listed(group.members, place >= 0)
        first = np.flatnonzero(np.diff(people, prepend=-1))
        return cls(tuple(names), first, people.astype(np.int64), place[codes], key)

    def several(self) -> int:
        """How many people list more than one candidate."""
        return int((np.diff(np.append(self.first, len(self.people))) > 1).sum())

    def picks(self) -> Ints:
        """How many people stand for each candidate: each for one, by a key, whatever others list."""
        if not len(self.first):
            return np.zeros(len(self.names), dtype=np.int64)
        lots = _lots(self.people, self._hashes[self.places])
        least = np.minimum.reduceat(lots, self.first)
        sizes = np.diff(np.append(self.first, len(self.people)))
        chosen = np.flatnonzero(lots == np.repeat(least, sizes))
        _, once = np.unique(self.people[chosen], return_index=True)
        return np.bincount(self.places[chosen[once]], minlength=len(self.names))

    def alone(self, tested: Ints) -> Ints:
        """For each of these candidates how many people list it and no other of them."""
        position = np.full(len(self.names), -1, dtype=np.int64)
        position[tested] = np.arange(len(tested))
        where = position[self.places]
        inside = where >= 0
        people, where = self.people[inside], where[inside]
        if not len(people):
            return np.zeros(len(tested), dtype=np.int64)
        first = np.flatnonzero(np.diff(people, prepend=-1))
        single = np.diff(np.append(first, len(people))) == 1
        return np.bincount(where[first[single]], minlength=len(tested))

    @property
    def _hashes(self) -> NDArray[np.uint64]:
        return _hashes_of(self.names, self.key)


@lru_cache(maxsize=8)
def _hashes_of(names: tuple[str, ...], key: bytes) -> NDArray[np.uint64]:
    """Return a number that stands for each value, by name: its place would change with what others list."""
    digests = [blake2b(n.encode("utf-8", "surrogatepass"), key=key, digest_size=8) for n in names]
    return np.array([int.from_bytes(one.digest(), "big") for one in digests], dtype=np.uint64)


def _lots(people: Ints, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix a person and a value into a number that looks random (the finaliser of splitmix64)."""
    mixed = people.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) ^ hashes
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def best_window(numbers: Floats, several: float, base: int, spending: Spending) -> Ints:
    """Choose which candidates to test, from noisy numbers alone: it looks at nothing else.

    Of candidates in falling order, a window is tested: without the commonest ones more people list one value alone,
    without the rarest ones fewer have to pass. How many will pass is foreseen as if values were listed independently.

    Parameters
    ----------
    numbers
        Noisy numbers of people who stand for each candidate, falling.
    several
        Noisy number of people who list more than one.
    """
    if not len(numbers):
        return np.zeros(0, dtype=np.int64)
    standing = np.maximum(numbers, 0.0)
    total = max(float(standing.sum()), 1.0)
    length = _mean_length(min(max(several / total, 1e-3), 0.999))
    share = standing / total
    holders = standing * length / -math.expm1(-length)
    margins = np.array([0, *(spending.margin(size) for size in range(1, len(numbers) + 1))], dtype=np.float64)
    first, end = _best_window(holders, share, length, base + margins, spending.testing)
    return np.arange(first, end)


@njit(cache=True, nogil=True)
def _best_window(holders, share, length, thresholds, scale):  # type: ignore[no-untyped-def]
    best, best_first, best_end = -1.0, 0, len(holders)
    for first in range(len(holders)):
        inside = 0.0
        for end in range(first + 1, len(holders) + 1):
            inside += share[end - 1]
            expected = 0.0
            for place in range(first, end):
                alone = holders[place] * math.exp(-length * (inside - share[place]))
                above = (alone - thresholds[end - first]) / scale
                expected += 1 - 0.5 * math.exp(-above) if above >= 0 else 0.5 * math.exp(above)
            if expected > best + 1e-9:
                best, best_first, best_end = expected, first, end
    return best_first, best_end


@cache
def compile_windows() -> None:
    """Compile the kernel beforehand (or read it from the cache)."""
    one = np.ones(1, dtype=np.float64)
    _best_window(one, one, 1.0, np.ones(2, dtype=np.float64), 1.0)


def _mean_length(several: float) -> float:
    """Return the mean of the Poisson lists of which this share, of those that are not empty, has several entries."""
    low, high = 1e-6, 30.0
    for _ in range(50):
        middle = (low + high) / 2
        share = 1 + middle * math.exp(-middle) / math.expm1(-middle)
        low, high = (middle, high) if share < several else (low, middle)
    return low


class PersonBudgets:
    """How often each person was counted within the window; who has nothing left is left out.

    Only who is in a class matters, never what anybody lists, so leaving people out says nothing about that. Questions
    under other settings, or another mechanism, do not add up with these: whoever was in one waits until the window has
    passed.
    """

    def __init__(self, kept: Ledger, scope: str, policy: PrivacyPolicy, settings: str) -> None:
        self._kept, self._scope, self._settings = kept, scope, settings
        self._window, self._questions = policy.window_days * 86400, policy.questions
        self._counted: deque[tuple[Charge, Words | None]] = deque()
        """With those whom another rule's answer was about: the ledger may forget them before the window has passed."""
        self._last = 0
        self._silent_until = 0.0
        self._times = np.zeros(0, dtype=np.int32)

    def with_budget(self, group: Selection, size: int, now: float) -> Selection:
        """Return the people of a class who may still be counted."""
        self._catch_up(size, now)
        if now <= self._silent_until:
            return Selection(group.members[:0])
        return Selection(group.members[self._times[group.members] < self._questions])

    def _catch_up(self, size: int, now: float) -> None:
        """Take in charges that were written since, and let go of those that have left the window."""
        since = now - self._window
        self._times = np.pad(self._times, (0, max(0, size - len(self._times))))
        for charge in self._kept.charges(self._scope, since, self._last):
            self._last = charge.entry
            people = self._kept.charged(charge.entry)
            if (
                people is None
            ):  # told by another rule, and whom it was about is forgotten: it may have been anybody
                self._silent_until = max(self._silent_until, charge.asked + self._window)
            elif people.any():  # questions that counted nobody need not be remembered
                self._count(charge, people, 1)
                self._counted.append((charge, None if charge.settings else people))
        while self._counted and self._counted[0][0].asked < since:
            charge, people = self._counted.popleft()
            self._count(charge, self._kept.charged(charge.entry) if people is None else people, -1)

    def _count(self, charge: Charge, people: Words | None, times: int) -> None:
        """Count those who were in a question, or take them out again."""
        members = members_of(people) if people is not None else np.zeros(0, np.int32)
        self._times = np.pad(self._times, (0, max(0, int(members.max(initial=-1)) + 1 - len(self._times))))
        self._times[members] += times * (1 if charge.settings == self._settings else self._questions)


def read_candidates(path: Path) -> tuple[str, ...]:
    """Read the values that may be asked about at all: a JSON list, public, made without a look at the data."""
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        raise UnreadableSource(f"{path}: expected a JSON file of candidates, could not read it") from None
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        raise InputError(f'{path}: expected a list of values ["Jazz", "Rock", ...], got another kind of JSON')
    return tuple(dict.fromkeys(values))


def mechanisms_of(policy: GatewayPolicy, secret: Secret) -> dict[str, PrivateMechanism]:
    """Return the private mechanism of each attribute."""
    made = {}
    for name, source in policy.database.attributes.items():
        candidates = None if source.candidates is None else read_candidates(source.candidates)
        if candidates is not None and source.aliases is not None:  # brought together as values are
            names = uncounted_names(candidates, read_aliases(source.aliases))
            candidates = tuple(dict.fromkeys(names[spelling] for spelling in candidates))
        made[name] = PrivateMechanism(
            spending=spending_of(policy.privacy, public=candidates is not None),
            base=policy.least,
            most=policy.release.max_values,
            key=secret.key("picks"),
            candidates=candidates,
        )
    return made
