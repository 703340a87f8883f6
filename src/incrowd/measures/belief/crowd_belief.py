"""Belief learnt from a population: "you are like somebody in this crowd, give or take".

Every person of the crowd stands for the people like them: an unknown person resembles row r with probability
1/N, and each attribute then has r's value with probability 1 - s, or a value drawn from the whole crowd with
probability s (always, where r gave none). This is a kernel estimate for categories (Aitchison and Aitken 1976,
Biometrika 63:413, with the crowd's shares in place of uniform ones); s = 0 is the plain empirical distribution.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.belief.engine import normalised
from incrowd.measures.belief.packing import CELLS, Packing, apart, joined, packing
from incrowd.measures.belief.space import HIDDEN, Evidence, Floats, Ints, Space
from incrowd.measures.belief.table import AttributeTable

BLOCK_BYTES = 2**24
"""Working memory of one thread."""
WORTH_PACKING = 16
"""From so many people on, joining columns first saves time."""
FEW_CELLS = 4_000_000
FEW_PEOPLE = 32
"""One person's secrets, one at a time: few people, rows and columns, for which plain NumPy is quick enough."""
Block = Callable[[slice], None]


@dataclass(frozen=True, eq=False)
class CrowdBelief:
    """The smoothed empirical distribution of a population of any size."""

    space: Space
    codes: NDArray[np.uint32]
    """(rows, attributes); the code after an attribute's last one stands for "not given"."""
    weights: Floats
    shares: tuple[Floats, ...]
    """Each value's share among those who gave the attribute."""
    smoothing: Floats
    """s of each attribute."""
    packings: dict[tuple[tuple[int, ...], tuple[int, ...]], Packing] = field(default_factory=dict, repr=False)
    """Columns packed before; copies with another smoothing share them."""

    @classmethod
    def learn(cls, table: AttributeTable, smoothing: float = 0.05) -> CrowdBelief:
        """Believe what a table of people shows."""
        sizes = np.array(table.space.sizes)
        codes = np.where(table.codes == HIDDEN, sizes, table.codes).astype(np.uint32)
        shares = tuple(_shares(table.codes[:, place], size) for place, size in enumerate(sizes))
        people = len(table.codes)
        return cls(
            table.space, codes, np.full(people, 1 / people), shares, np.full(len(sizes), float(smoothing))
        )

    @property
    def words(self) -> str:
        """Say where the belief comes from."""
        return f"someone who knows a crowd of {len(self.codes):,} people like you"

    def mass(self, evidence: Evidence) -> Floats:
        """Return the probability of the evidence; a person's own row is not in it."""
        from incrowd.measures.belief.crowd_kernel import total_weight

        look, plain, _ = self._packing(evidence.informative, (), len(evidence))
        sums, own = np.empty(len(evidence)), self._own_rows(evidence)

        def block(part: slice) -> None:
            factors = look.factors(self._parts(evidence.people(part)))
            total_weight(look.codes, self.weights, factors, plain, own[part], sums[part])

        self._run(block, len(evidence), int(look.starts[-1]))
        left_out = np.where(own == HIDDEN, 0.0, self.weights[own])
        return np.asarray(sums / (self.weights.sum() - left_out))

    def posteriors(self, targets: Sequence[int], evidence: Evidence) -> list[Floats]:
        """Return what the crowd suggests about each target attribute."""
        blind = self._blind(targets, evidence)
        return [
            normalised(table * evidence.likelihood(place))
            for place, table in zip(targets, blind, strict=True)
        ]

    def predictions(self, targets: Sequence[int], evidence: Evidence) -> list[Floats]:
        """Return what everything but the target itself suggests about each target: hide one, guess it."""
        return [normalised(table) for table in self._blind(targets, evidence)]

    def _blind(self, targets: Sequence[int], evidence: Evidence) -> list[Floats]:
        """Return the weight of each value of each target, with nothing seen of that target."""
        if not len(targets):
            return []
        places = sorted(set(evidence.informative) - set(targets))
        # What an attribute that is smoothed away says is the same for every row.
        plain = [place for place in places if self.smoothing[place] < 1]
        packed = len(evidence) >= WORTH_PACKING and not self._quick(evidence)
        if packed and self._few(targets):
            found = self._tallied(plain, targets, evidence)
        else:
            found = self._weighed(plain, targets, evidence)
        possible = np.ones((len(evidence), 1), dtype=bool)
        for place in set(places) - set(plain):
            possible &= (evidence.likelihood(place) @ self.shares[place])[:, None] > 0
        return [table * possible for table in found]

    def _quick(self, evidence: Evidence) -> bool:
        """Say whether plain NumPy is done before the compiled loops are loaded, which takes a second."""
        return len(evidence) <= FEW_PEOPLE and len(evidence) * self.codes.size <= FEW_CELLS

    def _few(self, targets: Sequence[int]) -> bool:
        return float(np.prod([self.space.sizes[place] + 1.0 for place in targets])) <= CELLS

    def _tallied(self, plain: Sequence[int], targets: Sequence[int], evidence: Evidence) -> list[Floats]:
        """Add rows up by their combination of targets, and take the combinations apart afterwards."""
        from incrowd.measures.belief.crowd_kernel import by_value, tally

        look, _, _ = self._packing(plain, (), len(evidence))
        joint, combinations = joined(self._columns, [size + 1 for size in self.space.sizes], targets)
        found = [np.empty((len(evidence), self.space.sizes[place])) for place in targets]
        own = self._own_rows(evidence)

        def block(part: slice) -> None:
            parts = self._parts(evidence.people(part))
            sums = np.empty((len(parts[0]), len(combinations)))
            tally(look.codes, joint, self.weights, look.factors(parts), own[part], sums)
            for number, place in enumerate(targets):
                each = sums
                for at, other in enumerate(targets):
                    each = each if at == number else each * parts[other][:, combinations[:, at]]
                weights = np.zeros((len(each), self.space.sizes[place] + 1))
                by_value(each, combinations[:, number], weights)
                found[number][part] = self._smoothed(weights, place)

        self._run(block, len(evidence), int(look.starts[-1]) + len(combinations))
        return found

    def _weighed(self, plain: Sequence[int], targets: Sequence[int], evidence: Evidence) -> list[Floats]:
        """Add rows up target by target: for many targets, or few people."""
        look, together, alone = self._packing(plain, targets, len(evidence))
        found = [np.empty((len(evidence), self.space.sizes[place])) for place in targets]
        own = self._own_rows(evidence)
        weigh = _weigher(self._quick(evidence))

        def block(part: slice) -> None:
            factors = look.factors(self._parts(evidence.people(part)))
            sums = np.zeros_like(factors)
            weigh(look.codes, self.weights, factors, together, alone, own[part], sums)
            for table, place, number in zip(found, targets, alone, strict=True):
                table[part] = self._smoothed(sums[:, look.starts[number] : look.starts[number + 1]], place)

        self._run(block, len(evidence), int(look.starts[-1]))
        return found

    def _packing(self, plain: Sequence[int], alone: Sequence[int], people: int) -> tuple[Packing, Ints, Ints]:
        """Return how rows look factors up, and which of its columns are plain and which stand alone."""
        if people < WORTH_PACKING:
            return self._unpacked, np.array(plain, dtype=np.int64), np.array(alone, dtype=np.int64)
        asked = tuple(plain), tuple(alone)
        if asked not in self.packings:
            sizes = [size + 1 for size in self.space.sizes]
            self.packings[asked] = packing(self._columns, sizes, plain, alone)
        look = self.packings[asked]
        columns = np.arange(len(look.groups))
        first = len(columns) - len(alone)
        return look, columns[:first], columns[first:]

    @cached_property
    def _unpacked(self) -> Packing:
        """Every attribute alone: a few people are not worth joining columns for."""
        return apart(self.codes, [size + 1 for size in self.space.sizes])

    @cached_property
    def _columns(self) -> list[Ints]:
        return [self.codes[:, place].astype(np.int64) for place in range(self.codes.shape[1])]

    def _smoothed(self, sums: Floats, place: int) -> Floats:
        """Turn the weight of rows with each value into the weight of each value."""
        s, size = self.smoothing[place], self.space.sizes[place]
        spread = s * sums[:, :size].sum(axis=1, keepdims=True) + sums[:, size:]
        return np.asarray((1 - s) * sums[:, :size] + spread * self.shares[place])

    def _parts(self, evidence: Evidence) -> list[Floats]:
        """Return for each attribute what a row's weight is multiplied by for each value it may have, or none."""
        informative = set(evidence.informative)
        return [
            self._part(evidence, place) if place in informative else np.ones((len(evidence), size + 1))
            for place, size in enumerate(self.space.sizes)
        ]

    def _part(self, evidence: Evidence, place: int) -> Floats:
        likelihood, s = evidence.likelihood(place), self.smoothing[place]
        anybody = (likelihood @ self.shares[place])[:, None]
        return np.concatenate([(1 - s) * likelihood + s * anybody, anybody], axis=1)

    def _own_rows(self, evidence: Evidence) -> Ints:
        return np.full(len(evidence), HIDDEN) if evidence.own_rows is None else evidence.own_rows

    def _run(self, block: Block, people: int, width: int) -> None:
        """Run blocks of people side by side; the loops let go of Python's lock."""
        size = max(1, BLOCK_BYTES // (16 * max(width, 1)))
        workers = min(os.cpu_count() or 1, max(people, 1))
        size = max(1, min(size, -(-people // workers)))
        parts = [slice(first, min(first + size, people)) for first in range(0, people, size)]
        if len(parts) <= 1:
            for part in parts:
                block(part)
            return
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(block, parts))

    def focused(self, evidence: Evidence, keep: Collection[int]) -> tuple[CrowdBelief, Evidence]:
        """Return a crowd in which values other than the person's own are one, and equal rows are one."""
        whole = set(keep) | set(evidence.soft)
        columns, values, shares, seen = [], [], [], evidence.seen[:1].copy()
        for place in range(len(self.space.attributes)):
            codes = self._columns[place]
            own, size = int(seen[0, place]), self.space.sizes[place]
            if place in whole:
                columns.append(codes)
                values.append(self.space.values[place])
                shares.append(self.shares[place])
            elif own == HIDDEN:
                columns.append(np.zeros_like(codes))
                values.append(("any",))
                shares.append(np.ones(1))
            else:
                columns.append(np.where(codes == size, 2, (codes != own).astype(np.int64)))
                values.append(("own", "other"))
                shares.append(np.array([self.shares[place][own], 1 - self.shares[place][own]]))
                seen[0, place] = 0
        space = Space(self.space.attributes, tuple(values))
        small, weights = _merged(columns, space, self._weights_without(evidence))
        belief = CrowdBelief(space, small, weights, tuple(shares), self.smoothing)
        return belief, Evidence(space, seen, dict(evidence.soft))

    def _weights_without(self, evidence: Evidence) -> Floats:
        own = self._own_rows(evidence)[0]
        if own == HIDDEN:
            return self.weights
        weights = self.weights.copy()
        weights[own] = 0.0
        return weights


def _weigher(quick: bool) -> Callable[..., None]:
    """Return the compiled loop or its plain twin; they agree to the last bit."""
    if quick:
        from incrowd.measures.belief.crowd_few import weigh
    else:
        from incrowd.measures.belief.crowd_kernel import weigh
    return weigh


def _merged(columns: list[Ints], space: Space, weights: Floats) -> tuple[NDArray[np.uint32], Floats]:
    """Return the distinct rows, each with the weight of all rows like it."""
    group = np.zeros(len(weights), dtype=np.int64)
    groups = 1
    for column, size in zip(columns, space.sizes, strict=True):
        if groups * (size + 1) >= 2**62:
            distinct, group = np.unique(group, return_inverse=True)
            groups = len(distinct)
        group = group * (size + 1) + column
        groups *= size + 1
    _, first, which = np.unique(group, return_index=True, return_inverse=True)
    codes = np.stack([column[first] for column in columns], axis=1)
    return codes.astype(np.uint32), np.bincount(which, weights).astype(np.float64)


def _shares(codes: NDArray[np.int32], size: int) -> Floats:
    counted = np.bincount(codes[codes != HIDDEN], minlength=size).astype(np.float64)
    # Of an attribute nobody here gave, nothing is known: every value is as probable.
    return np.asarray(counted / counted.sum() if counted.any() else np.full(size, 1 / size))
