"""Who lists what, with the people forgotten: users who list the same released values are one pattern.

q depends on a response only through how many people share each pattern of values. A million users who
answered about ten values are at most 1,023 patterns, so everything after this file works on few rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError

WORD = 64
FEW_CELLS = 2**18
"""Tables up to this size are summed as they are; larger ones, mostly empty, by a compiled loop over the entries."""
Masks = NDArray[np.uint64]
Holders = Mapping[Any, Iterable[Any]]
"""Value -> the users who list it."""


@dataclass(frozen=True, eq=False, repr=False)
class PatternCounts:
    """How many users share each pattern of values; users who list none of them are left out.

    Parameters
    ----------
    values
        The labels of the released values, in the order of the bits.
    masks
        One row per pattern, bit i of the row set if the pattern has value i; 64 values per word.
    weights
        How many users have the pattern.
    """

    values: tuple[Hashable, ...]
    masks: Masks
    weights: NDArray[np.int64]

    @classmethod
    def from_holders(cls, holders: Holders) -> PatternCounts:
        """Group the users of a response by what they list."""
        return HolderIndex.from_holders(holders).patterns()

    @classmethod
    def from_counts(
        cls, counts: Mapping[int, int], values: Sequence[Hashable] | None = None
    ) -> PatternCounts:
        """Take bit mask -> number of users, e.g. ``{0b01: 400, 0b10: 500, 0b11: 100}``."""
        if any(mask < 0 or users < 0 for mask, users in counts.items()):
            raise InputError("pattern counts: expected bit masks and counts of 0 or more, got a negative one")
        width = max((mask.bit_length() for mask in counts), default=0)
        labels = tuple(range(width)) if values is None else tuple(values)
        if len(labels) < width:
            raise InputError(f"pattern counts: expected at least {width} value labels, got {len(labels)}")
        words = words_for(len(labels))
        rows = [[(mask >> (WORD * w)) & (2**WORD - 1) for w in range(words)] for mask in counts]
        masks = np.array(rows, dtype=np.uint64).reshape(len(rows), words)
        made = cls(labels, *_merge(masks, np.array(list(counts.values()), dtype=np.int64)))
        if not made.supports.all():
            raise InputError("pattern counts: expected every value to have a user, got one that nobody lists")
        return made

    def __repr__(self) -> str:
        return f"PatternCounts({len(self.values)} values, {len(self.weights)} patterns, {self.users} users)"

    @property
    def users(self) -> int:
        """How many people list at least one of the values."""
        return int(self.weights.sum())

    @cached_property
    def table(self) -> NDArray[np.bool_]:
        """Patterns by values, as a table of booleans."""
        return unpack(self.masks, len(self.values))

    @cached_property
    def supports(self) -> NDArray[np.int64]:
        """How many users list each value."""
        return self.holders_by_value[0]

    @cached_property
    def holders_by_value(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many users list each value, and how many list it and no other."""
        if self.cells <= FEW_CELLS:
            single = self.table.sum(axis=1) == 1
            alone = self.weights[single] @ self.table[single]
            return np.asarray(self.weights @ self.table, np.int64), np.asarray(alone, np.int64)
        from incrowd.measures.release.kernels import tally

        return tally(self.masks, self.weights, len(self.values))

    @property
    def cells(self) -> int:
        """Size of the table; most work before counting grows with it."""
        return len(self.weights) * len(self.values)

    def select(self, keep: Sequence[int] | NDArray[np.int64]) -> PatternCounts:
        """Release only these values (by position): patterns that become alike merge."""
        keep = np.asarray(keep, dtype=np.int64)
        labels = tuple(self.values[i] for i in keep)
        return PatternCounts(labels, *_merge(pack(self.table[:, keep]), self.weights))

    def integers(self) -> list[int]:
        """Return the masks as Python integers of any width."""
        rows = self.masks.astype("<u8")
        return [int.from_bytes(row.tobytes(), "little") for row in rows]


@dataclass(frozen=True, eq=False, repr=False)
class HolderIndex:
    """A table value -> user numbers, prepared once, from which any response is grouped quickly.

    `starts[i]:starts[i + 1]` are the places in `members` of the user numbers that hold value i.
    """

    values: tuple[Hashable, ...]
    starts: NDArray[np.int64]
    members: NDArray[np.int32]
    users: int
    names: tuple[Hashable, ...] | None = None
    """User number -> user, where known."""
    position: Mapping[Hashable, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", {value: i for i, value in enumerate(self.values)})

    @classmethod
    def from_holders(cls, holders: Holders) -> HolderIndex:
        """Number the users of a mapping value -> users."""
        lists = [listed(users, place) for place, users in enumerate(holders.values(), start=1)]
        numbers = dict(zip(dict.fromkeys(chain.from_iterable(lists)), count(), strict=False))
        sizes = np.array([len(users) for users in lists], dtype=np.int64)
        flat = map(numbers.__getitem__, chain.from_iterable(lists))
        members = np.fromiter(flat, dtype=np.int32, count=int(sizes.sum()))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(tuple(holders), starts, members, len(numbers), tuple(numbers))

    @classmethod
    def from_pairs(cls, users: NDArray[Any], values: NDArray[Any]) -> HolderIndex:
        """Take two columns, a row for each user and a value they list, as a database returns them."""
        names, rows = _numbered(users)
        labels, columns = _numbered(values)
        from scipy.sparse import csr_array

        table = csr_array((np.ones(len(rows), np.bool_), (columns, rows)), shape=(len(labels), len(names)))
        table.sum_duplicates()
        starts, members = table.indptr.astype(np.int64), table.indices.astype(np.int32)
        return cls(tuple(labels.tolist()), starts, members, len(names), tuple(names.tolist()))

    def __repr__(self) -> str:
        return f"HolderIndex({len(self.values)} values, {self.users} users, {len(self.members)} entries)"

    @property
    def supports(self) -> NDArray[np.int64]:
        """How many users list each value."""
        return np.diff(self.starts)

    def holders(self, place: int) -> NDArray[np.int32]:
        """Return the user numbers that hold the value at this position."""
        return self.members[self.starts[place] : self.starts[place + 1]]

    def patterns(
        self, values: Sequence[Hashable] | None = None, within: NDArray[np.bool_] | None = None
    ) -> PatternCounts:
        """Group the users of a response: these values, as far as somebody in the class lists them.

        Parameters
        ----------
        values
            The released values; all of them if not given.
        within
            True for each user number in the class the query selected; everybody if not given.
        """
        labels = self.values if values is None else tuple(values)
        try:
            places = [self.position[value] for value in labels]
        except KeyError:
            raise InputError("values: expected values of the index, got one that it does not have") from None
        if within is not None:
            places = [place for place in places if within[self.holders(place)].any()]
            labels = tuple(self.values[place] for place in places)
        masks = self.masks(places, within)
        if len(labels) > 20:
            return PatternCounts(labels, *_merge(masks, np.ones(len(masks), dtype=np.int64)))
        # Few values: count into a table instead of sorting a million users.
        counts = np.bincount(masks[:, 0].astype(np.int64), minlength=1).astype(np.int64)
        counts[0] = 0
        present = np.flatnonzero(counts)
        return PatternCounts(labels, present.astype(np.uint64)[:, None], counts[present])

    def masks(self, places: Sequence[int], within: NDArray[np.bool_] | None = None) -> Masks:
        """For each user number the pattern of the values at these positions."""
        chosen = [self.holders(place) for place in places]
        if len(places) > WORD and self.users * len(places) < 2**24:
            table = np.zeros((self.users, len(places)), dtype=np.bool_)
            table[np.concatenate(chosen), np.repeat(np.arange(len(places)), list(map(len, chosen)))] = True
            masks = pack(table)
        else:
            masks = np.zeros((self.users, words_for(len(places))), dtype=np.uint64)
            for bit, users in enumerate(chosen):
                masks[users, bit // WORD] |= np.uint64(1 << (bit % WORD))
        if within is not None:
            masks[~within] = 0
        return masks


def words_for(values: int) -> int:
    """How many 64-bit words hold one bit per value."""
    return max(1, -(-values // WORD))


def pack(table: NDArray[np.bool_]) -> Masks:
    """Turn a table patterns-by-values into rows of bit masks."""
    padded = np.zeros((table.shape[0], words_for(table.shape[1]) * WORD), dtype=np.bool_)
    padded[:, : table.shape[1]] = table
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def unpack(masks: Masks, values: int) -> NDArray[np.bool_]:
    """Turn rows of bit masks into a table patterns-by-values."""
    rows = np.ascontiguousarray(masks).astype("<u8").view(np.uint8)
    return np.unpackbits(rows, axis=1, bitorder="little", count=values).view(np.bool_)


def listed(users: Iterable[Any], place: int) -> list[Any]:
    """Return the users of one value, each once; refuse what is no list of them, naming the value by its place."""
    if isinstance(users, str | bytes) or not isinstance(users, Iterable):
        kind = type(users).__name__
        raise InputError(f"holders, value number {place}: expected a list of users, got {kind}")
    try:
        distinct = list(dict.fromkeys(users.tolist() if isinstance(users, np.ndarray) else users))
    except TypeError:
        raise InputError(
            f"holders, value number {place}: expected users given as text or numbers, got lists or objects"
        ) from None
    if not distinct:
        raise InputError(
            f"holders, value number {place}: expected at least one user, got none; "
            "a value that nobody lists cannot be in a response, leave it out"
        )
    return distinct


def _numbered(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct entries in rising order, and for each row the place of its entry."""
    if column.dtype.kind in "iu" and len(column) and column.min() >= 0 and column.max() < 4 * len(column):
        # Small numbers: mark them in a table instead of sorting millions of rows.
        seen = np.zeros(int(column.max()) + 1, dtype=np.bool_)
        seen[column] = True
        return np.flatnonzero(seen), (np.cumsum(seen) - 1)[column]
    distinct, place = np.unique(column, return_inverse=True)
    return distinct, place.astype(np.int64)


def _merge(masks: Masks, weights: NDArray[np.int64]) -> tuple[Masks, NDArray[np.int64]]:
    """Add up equal rows, drop users without any value, and sort by mask."""
    used = masks.any(axis=1) & (weights > 0)
    masks, weights = masks[used], weights[used]
    order = np.lexsort(masks.T)
    masks, weights = masks[order], weights[order]
    first = np.ones(len(masks), dtype=np.bool_)
    first[1:] = (masks[1:] != masks[:-1]).any(axis=1)
    if not len(masks):
        return masks, weights
    return masks[first], np.add.reduceat(weights, np.flatnonzero(first))


SIDE_BY_SIDE = 2**22
"""Words of masks that are laid side by side to compare holders: 32 MiB."""


def absorb(patterns: PatternCounts) -> PatternCounts:
    """Leave out every value whose holders include all holders of another value."""
    keep = np.flatnonzero(~redundant(patterns))
    return patterns if len(keep) == len(patterns.values) else patterns.select(keep)


def redundant(patterns: PatternCounts) -> NDArray[np.bool_]:
    """Mark the absorbed values; of values with the same holders the first stays."""
    masks, values = patterns.masks, len(patterns.values)
    holders = np.packbits(patterns.table, axis=0).T
    first_with = {row.tobytes(): value for value, row in reversed(list(enumerate(holders)))}
    firsts = np.array(sorted(first_with.values()))
    # Bit j of row i: every holder of the i-th value also lists value j. A few values at a time: the rows of
    # all their holders lie side by side.
    absorbed = np.zeros(masks.shape[1], dtype=np.uint64)
    at_once = max(1, SIDE_BY_SIDE // masks.size)
    for start in range(0, len(firsts), at_once):
        some = firsts[start : start + at_once]
        places, rows = np.nonzero(patterns.table[:, some].T)
        starts = np.searchsorted(places, np.arange(len(some)))
        in_all = np.bitwise_and.reduceat(masks[rows], starts, axis=0)
        in_all[np.arange(len(some)), some // WORD] &= ~(np.uint64(1) << (some % WORD).astype(np.uint64))
        absorbed |= np.bitwise_or.reduce(in_all, axis=0)
    return np.asarray(unpack(absorbed[None], values)[0])


def parts(patterns: PatternCounts) -> list[PatternCounts]:
    """Split into connected parts: no user lists values of two of them."""
    return [part for _, part in parts_with_places(patterns, connected(patterns))] if patterns.values else []


def parts_with_places(
    patterns: PatternCounts, part_of: NDArray[np.int64]
) -> list[tuple[NDArray[np.int64], PatternCounts]]:
    """Split into connected parts, as `connected` numbers them, each with the positions of its values."""
    table = patterns.table
    found = []
    for rows, places in zip(_members(part_of[table.argmax(axis=1)]), _members(part_of), strict=True):
        # All values of a row are in its part, so the rows stay different from each other.
        masks = pack(table[rows][:, places])
        labels = tuple(patterns.values[place] for place in places.tolist())
        found.append((places, PatternCounts(labels, masks, patterns.weights[rows])))
    return found


def _members(part_of: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return for each part the places that belong to it, in rising order."""
    by_part = np.argsort(part_of, kind="stable")
    ends = np.searchsorted(part_of[by_part], np.arange(part_of.max() + 1), side="right")
    return np.split(by_part, ends[:-1])


def connected(patterns: PatternCounts) -> NDArray[np.int64]:
    """Number the connected parts, in order of their first value; return the part of each value."""
    rows, values = np.nonzero(patterns.table)
    row_start = np.searchsorted(rows, np.arange(len(patterns.weights)))
    label = np.arange(len(patterns.values))
    while True:  # the smallest label spreads over shared users until nothing changes
        smallest = np.minimum.reduceat(label[values], row_start)
        spread = label.copy()
        np.minimum.at(spread, values, smallest[rows])
        spread = spread[spread]
        if np.array_equal(spread, label):
            return np.unique(label, return_inverse=True)[1].astype(np.int64)
        label = spread


@dataclass(frozen=True, kw_only=True)
class SweepStep:
    """Use one pattern: first open the values it brings in, then close those that no later pattern holds."""

    opens: tuple[int, ...]
    pattern: int
    closes: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One sweep over all patterns."""

    steps: tuple[SweepStep, ...]
    width: int
    """The most values open at a time."""
    cost: float
    """Table cells touched, in all."""
    cells: float
    """Table cells in memory: the table, its derivatives, and what the way back needs."""


def plan(
    masks: list[int],
    values: int,
    widest: float = math.inf,
    starts: int = 6,
    late: Callable[[], bool] = lambda: False,
) -> Sweep | None:
    """Return the cheapest of a few greedy sweeps over patterns given as bit masks.

    None if all of them keep more than `widest` values open at a time, which is found out early, or if it got
    late before one was found.
    """
    neighbours = [0] * values
    for mask in masks:
        if late():
            return None
        for value in bits(mask):
            neighbours[value] |= mask
    by_degree = sorted(range(values), key=lambda value: (neighbours[value].bit_count(), value))
    sweeps = (_closing_order(neighbours, first, widest, late) for first in by_degree[:starts])
    return min(
        (_lay_out(masks, order) for order in sweeps if order), key=lambda found: found.cost, default=None
    )


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the set bits."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _closing_order(
    neighbours: list[int], first: int, widest: float, late: Callable[[], bool]
) -> list[int] | None:
    left = (1 << len(neighbours)) - 1
    order, opened, value = [], 0, first
    while True:
        order.append(value)
        if (opened | neighbours[value]).bit_count() > widest or late():
            return None
        left &= ~(1 << value)
        if not left:
            return order
        opened = (opened | neighbours[value]) & left
        value = min(bits(opened or left), key=lambda v: (((opened | neighbours[v]) & left).bit_count(), v))


def _lay_out(masks: list[int], order: list[int]) -> Sweep:
    """Sort the patterns by the value they help to close, and count what the sweep costs."""
    sequence = _sequence(masks, order)
    last = {value: place for place, pattern in enumerate(sequence) for value in bits(masks[pattern])}
    opened: set[int] = set()
    steps, width, cost, saved = [], 0, 0.0, 0.0
    for place, pattern in enumerate(sequence):
        values = set(bits(masks[pattern]))
        opens = sorted(values - opened)
        opened |= values
        closes = sorted(value for value in values if last[value] == place)
        width = max(width, len(opened))
        cost += 3.0 ** len(opened)
        saved += 3.0 ** len(opened) if closes else 0
        opened.difference_update(closes)
        steps.append(SweepStep(opens=tuple(opens), pattern=pattern, closes=tuple(closes)))
    return Sweep(steps=tuple(steps), width=width, cost=cost, cells=saved + 2 * 3.0**width)


def _sequence(masks: list[int], order: list[int]) -> list[int]:
    place_of = {value: place for place, value in enumerate(order)}
    first_closed: list[list[int]] = [[] for _ in order]
    for pattern, mask in enumerate(masks):
        first_closed[min(place_of[value] for value in bits(mask))].append(pattern)
    sequence: list[int] = []
    opened = 0
    for now in first_closed:
        # Patterns that open few values go first: small tables as long as possible.
        now.sort(key=lambda pattern: ((masks[pattern] & ~opened).bit_count(), masks[pattern]))
        sequence += now
        for pattern in now:
            opened |= masks[pattern]
    return sequence
