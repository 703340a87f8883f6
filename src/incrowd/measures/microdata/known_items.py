"""What somebody makes of a few of a person's items: how often they name the person, and how few items it takes.

The adversary knows k of the person's items (perhaps also when), each from somebody's list at random. A list of n items
that holds item i accounts for it with probability 1/n; once in a while (`MISTAKEN`) what they think they know is not on
the list, and then it is any item, the popular ones more often. Whoever accounts best for all that is known is named,
ties by chance: of those who have everything the one with the shortest list, and one who lacks an item before others
only if the rest is much rarer or the list much shorter. Probability is over all ways to pick the k items.

What somebody has learnt elsewhere does not change when a person takes items back; that is how advice is measured.
Whoever then does better with fewer of the items they know goes by fewer: knowing more never makes them worse.

The paper's adversary guesses evenly among all who fit, which is E[1/|AS|] (:mod:`.set_sizes`): it makes long lists look
easy to find and short ones hard, the other way round than attacks that compare whole lists find it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from incrowd.measures.microdata.set_sizes import Effort, Estimate, estimate_of
from incrowd.measures.microdata.spec import Matching
from incrowd.measures.microdata.table import ItemTable
from incrowd.statistics import first_place

HALF = 0.5
TRIED = (1, 3, 10)
"""Numbers of known items whose probability is told."""
DATED = Matching(days_within=14)
MISTAKEN = 0.05
"""How often something that is thought to be known is not on the person's list: it was taken back, or is wrong."""
BLOCK = 2**22
"""So many numbers, one a person and choice of items, are held at once."""
MOST_WORK = 4e8
"""Products of a person's weight and a choice of items; fewer choices are drawn where the crowd is large."""
FEWEST_ROUNDS = 200
ROUNDING = 1e-5
"""Two people whose scores differ by less, relatively, are as likely."""
WAYS = ("random", "rarest", "dated")
"""How the known items came to be known: any of them, the rarest first, any of them with their dates."""


@dataclass(frozen=True)
class KnownItems:
    """One person: how often they are named by 1, 3 or 10 items, and how few it takes, by how those are known."""

    items: int
    """How many the person has."""
    probability: Mapping[str, Mapping[int, Estimate]]
    """By way and number of items; a way that the crowd cannot tell is left out."""
    takes: Mapping[str, tuple[float, float, float]]
    """By way: the fewest items with which a guess is right half of the time, with an interval; infinity: none are."""
    parts: Mapping[str, Mapping[int, NDArray[np.float64]]]
    """By way and number of items: what each of the person's items adds to the probability."""

    def tells(self, way: str) -> bool:
        """Say whether items known in this way could be tried: dates have to be there."""
        return way in self.probability

    def to_dict(self) -> dict[str, Any]:
        """Return plain types for JSON: None where not even all items are enough."""
        return {
            "takes": {way: _whole(found[0]) for way, found in self.takes.items()},
            "takes_interval": {way: [_whole(end) for end in found[1:]] for way, found in self.takes.items()},
            "probability": {
                way: {str(k): one.value for k, one in some.items()} for way, some in self.probability.items()
            },
        }

    @classmethod
    def from_arrays(cls, items: int, kept: Mapping[str, NDArray[Any]]) -> KnownItems:
        """Read what :meth:`arrays` gave."""
        probability: dict[str, dict[int, Estimate]] = {}
        parts: dict[str, dict[int, NDArray[np.float64]]] = {}
        takes = {}
        for (way, k, value, low, high), part in zip(kept["told"].tolist(), kept["parts"], strict=True):
            name = WAYS[int(way)]
            if k:
                probability.setdefault(name, {})[int(k)] = Estimate(value=value, low=low, high=high)
                parts.setdefault(name, {})[int(k)] = part
            else:
                takes[name] = (value, low, high)
        return cls(items, probability, takes, parts)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as arrays, to be kept: way, number of items (0: what it takes), three numbers; parts."""
        told = [
            [WAYS.index(way), k, *one.triple]
            for way, some in self.probability.items()
            for k, one in some.items()
        ]
        parts = [part for some in self.parts.values() for part in some.values()]
        told += [[WAYS.index(way), 0, *found] for way, found in self.takes.items()]
        parts += [np.zeros(self.items)] * len(self.takes)
        return {"told": np.array(told, np.float64), "parts": np.array(parts, np.float64)}


@dataclass(frozen=True)
class Success:
    """How often some number of known items names the person, and what each item adds to that."""

    items: int
    choices: Callable[[int], tuple[NDArray[np.int64], bool]]
    """All ways, or a sample of the ways, to know so many items; and whether these are all."""
    rivals: ItemRivals
    _known: dict[int, tuple[Estimate, NDArray[np.float64]]] = field(default_factory=dict)

    def __call__(self, count: int) -> Estimate:
        """Return the probability with so many items known."""
        return self._best(count)[0]

    def parts(self, count: int) -> NDArray[np.float64]:
        """Return what each item adds: of every choice that names the person, each item in it an equal part."""
        return self._best(count)[1]

    def _best(self, count: int) -> tuple[Estimate, NDArray[np.float64]]:
        """Let them go by fewer items if these name the person more often: what they know may have been taken back."""
        fewer = [known for known in TRIED if known < count]
        return max((self._found(known) for known in (count, *fewer)), key=lambda one: one[0].value)

    def _found(self, count: int) -> tuple[Estimate, NDArray[np.float64]]:
        count = min(count, self.items)
        if count not in self._known:
            known, exact = self.choices(count)
            named = self.rivals.named(known)
            each = np.repeat(named / (count * len(named)), count)
            parts = np.zeros(self.items)
            np.add.at(parts, known.ravel(), each)
            self._known[count] = estimate_of(named, exact=exact), parts
        return self._known[count]


def known_items(
    table: ItemTable, row: int, effort: Effort | None = None, elsewhere: NDArray[np.int32] | None = None
) -> KnownItems:
    """Find out for one row of a table how often the person is named by a few known items, and how few it takes.

    `elsewhere` are the items that may become known, if not those of the row: what somebody has learnt of a person does
    not change when the person takes items back.
    """
    items, effort = table.profile(row) if elsewhere is None else elsewhere, effort or Effort()
    rarest = np.argsort(table.popularity[items], kind="stable")  # equally rare ones in the order of the table
    random = any_items(table, row, items, effort)
    ways = {
        "random": random,
        "rarest": Success(len(items), lambda count: (rarest[None, :count], True), random.rivals),
    }
    if table.has(DATED):
        dated = ItemRivals(fitting(table, row, DATED), table, row, items)
        ways["dated"] = Success(len(items), random.choices, dated)
    return KnownItems(
        items=len(items),
        probability={way: {k: one(k) for k in TRIED} for way, one in ways.items()},
        takes={way: _fewest(one, len(items)) for way, one in ways.items()},
        parts={way: {k: one.parts(k) for k in TRIED} for way, one in ways.items()},
    )


def any_items(table: ItemTable, row: int, items: NDArray[np.int32], effort: Effort) -> Success:
    """Find out for one row how often any so many of some items name the person."""
    rivals = ItemRivals(table.matrix, table, row, items)
    rounds = min(effort.rounds, max(FEWEST_ROUNDS, rivals.affordable))
    at_random = partial(choices, len(items), effort=replace(effort, rounds=rounds), row=row)
    return Success(len(items), at_random, rivals)


def fitting(table: ItemTable, row: int, matching: Matching) -> sparse.csr_matrix:
    """Return who has which of one person's items in the way that has to agree, e.g. at about the same time.

    What a person has without a mark of its own agrees with nobody but themselves.
    """
    marks, within = table.marks(matching)
    if marks is None:
        return table.matrix
    matrix, people = table.matrix, np.repeat(np.arange(table.matrix.shape[0]), np.diff(table.matrix.indptr))
    own = np.full((len(marks), matrix.shape[1]), np.nan)
    start, stop = matrix.indptr[row : row + 2]
    own[:, matrix.indices[start:stop]] = marks[:, start:stop]
    with np.errstate(invalid="ignore"):
        near = np.abs(marks - own[:, matrix.indices]) <= np.asarray(within)[:, None]
    agrees = np.array(near.all(axis=0))
    agrees[start:stop] = True
    chosen = people[agrees], matrix.indices[agrees]
    return sparse.csr_matrix((np.ones(int(agrees.sum()), np.int8), chosen), shape=matrix.shape)


def speaks_for(fits: sparse.csr_matrix, table: ItemTable, items: NDArray[Any]) -> sparse.csr_matrix:
    """Return how much each of some items speaks for each person: the logarithm of how much likelier it is theirs.

    The larger, the rarer the item and the shorter the list that holds it.
    """
    held = sparse.csr_matrix(fits[:, items], dtype=np.float32)
    people = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
    share = np.maximum(table.popularity[items], 1) / table.list_lengths.sum()
    mistaken = MISTAKEN * share[held.indices]
    held.data = np.log1p((1 - MISTAKEN) / (mistaken * table.list_lengths[people])).astype(np.float32)
    return held


class ItemRivals:
    """Everybody, and how much each of some items speaks for each person as the one who is meant."""

    def __init__(self, fits: sparse.csr_matrix, table: ItemTable, row: int, items: NDArray[np.int32]) -> None:
        """Weigh who has which of the items that may be known, all of which the person has, or had before a change."""
        held = speaks_for(fits, table, items)
        self._own = held[row].toarray().ravel()
        # Whoever has none of them is never meant.
        others = np.flatnonzero(np.diff(held.indptr))
        self._weights = held[others[others != row]]

    @property
    def affordable(self) -> int:
        """How many choices of items can be tried in a second or so."""
        return int(MOST_WORK // max(self._weights.nnz, 1))

    def named(self, known: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return how likely the person is named by each set of items (a row of places among the items)."""
        step = max(1, BLOCK // max(self._weights.shape[0], 1))
        return np.concatenate([self._named(known[at : at + step]) for at in range(0, len(known), step)])

    def _named(self, known: NDArray[np.int64]) -> NDArray[np.float64]:
        asked = np.zeros((self._weights.shape[1], len(known)), np.float32)
        np.put_along_axis(asked, known.T, np.float32(1), axis=0)
        scores, own = np.asarray(self._weights @ asked), self._own @ asked
        reach = np.float32(ROUNDING) * np.maximum(own, 1)
        above = (scores > own + reach).sum(axis=0)
        ties = (scores >= own - reach).sum(axis=0) - above
        return np.where(own > 0, first_place(above, ties), 0.0)


def choices(items: int, count: int, *, effort: Effort, row: int) -> tuple[NDArray[np.int64], bool]:
    """Return all ways to choose so many items, or a random sample of the ways where they are too many."""
    if math.comb(items, count) <= effort.rounds:
        return np.array(list(itertools.combinations(range(items), count)), np.int64), True
    rng = np.random.default_rng([effort.seed, row, count])
    # Those in between are only looked at on the way to how few it takes.
    rounds = effort.rounds if count in TRIED else max(effort.rounds // 4, 2)
    drawn = [rng.choice(items, count, replace=False, shuffle=False) for _ in range(rounds)]
    return np.array(drawn, np.int64), False


def _fewest(success: Success, items: int) -> tuple[float, float, float]:
    """Return the fewest known items that are enough, and between which numbers it lies where that was sampled."""
    return (
        _first(lambda k: success(k).value >= HALF, items),
        _first(lambda k: success(k).high >= HALF, items),
        _first(lambda k: success(k).low >= HALF, items),
    )


def _first(enough: Callable[[int], bool], most: int) -> float:
    """Return the smallest number up to `most` that is enough, if larger ones are, too; infinity if none is."""
    reach = 1
    while reach < most and not enough(reach):
        reach = min(2 * reach, most)
    if not enough(reach):
        return math.inf
    low, high = reach // 2, reach  # not enough (or 0), enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)


def _whole(number: float) -> int | None:
    return int(number) if math.isfinite(number) else None
