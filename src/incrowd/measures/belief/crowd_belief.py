"""Belief learnt from a population: "you are like somebody in this crowd, give or take".

Every person of the crowd stands for the people like them: an unknown person resembles row r with probability
1/N, and each attribute then has r's value with probability 1 - s, or a value drawn from the whole crowd with
probability s (always, where r gave none). This is a kernel estimate for categories (Aitchison and Aitken 1976,
Biometrika 63:413, with the crowd's shares in place of uniform ones); s = 0 is the plain empirical distribution.

Each attribute has its own smoothing, fitted so that hidden values are guessed best. One that says nothing about the
others (a birthday) is smoothed away, as cross-validation does for irrelevant variables (Hall, Racine and Li 2004,
doi:10.1198/016214504000000548); without that, a chance agreement on many attributes would make the adversary, and so
the report, far too sure.

Where many people are weighed at once, several attributes are looked up as one. Attributes that depend on each other
(zip, city, region) have few combinations that occur, so those are combined by what occurs in the crowd and not by
what could.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.arrays import Floats, Ints
from incrowd.measures.belief.engine import normalised
from incrowd.profiles.attributes import HIDDEN, AttributeSpace, AttributeTable, SeenAttributes


def weigh_plainly(
    codes: NDArray[np.uint32],
    weights: Floats,
    factors: Floats,
    plain: Ints,
    targets: Ints,
    own_rows: Ints,
    sums: Floats,
) -> None:
    """Add up, for each person, the weight of every row by the row's value of each target.

    A row's weight is the product of the factors its values look up; a target's own factor is left out of that
    target's sums. Products and sums are taken in the order of the compiled loop, so that they agree bit by bit.
    """
    others, chosen = codes[:, plain], codes[:, targets]
    for factor, own, total in zip(factors, own_rows.tolist(), sums, strict=True):
        weight = np.multiply.reduce(np.column_stack([weights, factor[others]]), axis=1)
        if own >= 0:
            weight[own] = 0.0
        looked_up = factor[chosen]
        ones = np.ones((len(codes), 1))
        before = np.multiply.accumulate(np.column_stack([ones, looked_up[:, :-1]]), axis=1)
        after = np.multiply.accumulate(np.column_stack([weight, looked_up[:, :0:-1]]), axis=1)[:, ::-1]
        for number in range(len(targets)):
            part = np.bincount(chosen[:, number], before[:, number] * after[:, number], len(total))
            total += part


CELLS = 1024
"""A combined column takes about so many values at most, so that a person's factors stay near the processor."""
SAMPLE = 20_000
"""So many rows decide which attributes are looked up together."""


@dataclass(frozen=True, eq=False)
class ColumnGroups:
    """Columns to look up, each made of one or more attributes."""

    codes: NDArray[np.uint32]
    """(rows, columns): where a row's values lie in the combined factors."""
    groups: tuple[tuple[int, ...], ...]
    combinations: tuple[Ints, ...]
    """For each column: (combinations, attributes of the group) the values that stand behind each code."""

    @cached_property
    def starts(self) -> Ints:
        """Where each column's values begin."""
        return np.concatenate([[0], np.cumsum([len(one) for one in self.combinations])]).astype(np.int64)

    def factors(self, parts: Sequence[Floats]) -> Floats:
        """Multiply the factors of the attributes of each group out; `parts` holds an (n, values) table each."""
        if not self.groups:
            return np.ones((len(parts[0]), 0))
        return np.concatenate(
            [gathered(parts, group, of) for group, of in zip(self.groups, self.combinations, strict=True)],
            axis=1,
        )


def gathered(parts: Sequence[Floats], group: Sequence[int], combinations: Ints) -> Floats:
    """Return for each person the product of a group's factors, combination by combination."""
    if len(group) == 1 and len(combinations) == parts[group[0]].shape[1]:
        return parts[group[0]]  # every value occurs, in order
    product = parts[group[0]][:, combinations[:, 0]]
    for number, place in enumerate(group[1:], start=1):
        product = product * parts[place][:, combinations[:, number]]
    return product


def ungrouped(codes: NDArray[np.uint32], sizes: Sequence[int]) -> ColumnGroups:
    """Pack nothing: every attribute is a column."""
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.uint32)
    return ColumnGroups(
        codes + starts, tuple((place,) for place in range(len(sizes))), tuple(map(_itself, sizes))
    )


def group_columns(
    columns: Sequence[Ints], sizes: Sequence[int], plain: Sequence[int], alone: Sequence[int]
) -> ColumnGroups:
    """Pack the plain attributes into as few columns as fit, and keep the others as they are, in last place."""
    together = grouped(columns, sizes, plain)
    groups = (*together, *((place,) for place in alone))
    grouped_columns = [combined(columns, sizes, group) for group in together]
    kept = [*grouped_columns, *((columns[place], _itself(sizes[place])) for place in alone)]
    codes, start = np.empty((len(columns[0]), len(groups)), dtype=np.uint32), 0
    for number, (column, combinations) in enumerate(kept):
        codes[:, number] = column + start
        start += len(combinations)
    return ColumnGroups(codes, groups, tuple(combinations for _, combinations in kept))


def combined(columns: Sequence[Ints], sizes: Sequence[int], group: Sequence[int]) -> tuple[Ints, Ints]:
    """Return each row's combination of a group's values by number, and the combinations that occur."""
    flat = columns[group[0]]
    for place in group[1:]:
        flat = flat * sizes[place] + columns[place]
    occurring, which = np.unique(flat, return_inverse=True)
    return which.astype(np.int64), np.stack(
        np.unravel_index(occurring, [sizes[place] for place in group]), axis=1
    )


def grouped(columns: Sequence[Ints], sizes: Sequence[int], places: Sequence[int]) -> list[tuple[int, ...]]:
    """Put attributes into groups with about CELLS occurring combinations at most, each where it adds fewest."""
    some = [column[:SAMPLE] for column in columns]
    groups: list[tuple[int, ...]] = []
    for place in sorted(places, key=lambda p: (-sizes[p], p)):
        fits = [(_occurring(some, sizes, (*group, place)), at) for at, group in enumerate(groups)]
        fewest, at = min(fits, default=(CELLS + 1, 0))
        if fewest <= CELLS:
            groups[at] = (*groups[at], place)
        else:
            groups.append((place,))
    return groups


def _occurring(columns: Sequence[Ints], sizes: Sequence[int], group: Sequence[int]) -> int:
    if np.prod([float(sizes[place]) for place in group]) > 2**62:
        return CELLS + 1
    return len(combined(columns, sizes, group)[1])


def _itself(size: int) -> Ints:
    return np.arange(size, dtype=np.int64)[:, None]


BLOCK_BYTES = 2**24
"""Working memory of one thread."""
WORTH_GROUPING = 16
"""From so many people on, joining columns first saves time."""
FEW_CELLS = 4_000_000
FEW_PEOPLE = 32
"""One person's secrets, one at a time: few people, rows and columns, for which plain NumPy is quick enough."""
WORTH_THREADS = 500_000
"""People times rows times columns; for less, starting threads takes longer than the work."""
Block = Callable[[slice], None]


@dataclass(frozen=True, eq=False)
class CrowdBelief:
    """The smoothed empirical distribution of a population of any size."""

    space: AttributeSpace
    codes: NDArray[np.uint32]
    """(rows, attributes); the code after an attribute's last one stands for "not given"."""
    weights: Floats
    shares: tuple[Floats, ...]
    """Each value's share among those who gave the attribute."""
    smoothing: Floats
    """s of each attribute."""
    column_groups: dict[tuple[tuple[int, ...], tuple[int, ...]], ColumnGroups] = field(
        default_factory=dict, repr=False
    )
    """Columns grouped before; copies with another smoothing share them."""

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

    def mass(self, evidence: SeenAttributes) -> Floats:
        """Return the probability of the evidence; a person's own row is not in it."""
        from incrowd.measures.belief.crowd_kernel import total_weight

        look, plain, _ = self._column_groups(evidence.informative, (), len(evidence))
        sums, own = np.empty(len(evidence)), self._own_rows(evidence)

        def block(part: slice) -> None:
            factors = look.factors(self._parts(evidence.people(part)))
            total_weight(look.codes, self.weights, factors, plain, own[part], sums[part])

        self._run(block, len(evidence), int(look.starts[-1]))
        left_out = np.where(own == HIDDEN, 0.0, self.weights[own])
        return np.asarray(sums / (self.weights.sum() - left_out))

    def posteriors(self, targets: Sequence[int], evidence: SeenAttributes) -> list[Floats]:
        """Return what the crowd suggests about each target attribute."""
        blind = self._blind(targets, evidence)
        return [
            normalised(table * evidence.likelihood(place))
            for place, table in zip(targets, blind, strict=True)
        ]

    def predictions(self, targets: Sequence[int], evidence: SeenAttributes) -> list[Floats]:
        """Return what everything but the target itself suggests about each target: hide one, guess it."""
        return [normalised(table) for table in self._blind(targets, evidence)]

    def _blind(self, targets: Sequence[int], evidence: SeenAttributes) -> list[Floats]:
        """Return the weight of each value of each target, with nothing seen of that target."""
        if not len(targets):
            return []
        places = sorted(set(evidence.informative) - set(targets))
        # What an attribute that is smoothed away says is the same for every row.
        plain = [place for place in places if self.smoothing[place] < 1]
        if self._worth_grouping(evidence) and self._few(targets):
            found = self._tallied(plain, targets, evidence)
        else:
            found = self._weighed(plain, targets, evidence)
        possible = np.ones((len(evidence), 1), dtype=bool)
        for place in set(places) - set(plain):
            possible &= (evidence.likelihood(place) @ self.shares[place])[:, None] > 0
        return [table * possible for table in found]

    def weighs_grouped(self, targets: Sequence[int], evidence: SeenAttributes) -> bool:
        """Say whether the compiled loop goes over people, rows and all targets one by one."""
        return self._worth_grouping(evidence) and not self._few(targets)

    def _worth_grouping(self, evidence: SeenAttributes) -> bool:
        return len(evidence) >= WORTH_GROUPING and not self._quick(evidence)

    def _quick(self, evidence: SeenAttributes) -> bool:
        """Say whether plain NumPy is done before the compiled loops are loaded, which takes a second."""
        return len(evidence) <= FEW_PEOPLE and len(evidence) * self.codes.size <= FEW_CELLS

    def _few(self, targets: Sequence[int]) -> bool:
        return float(np.prod([self.space.sizes[place] + 1.0 for place in targets])) <= CELLS

    def _tallied(
        self, plain: Sequence[int], targets: Sequence[int], evidence: SeenAttributes
    ) -> list[Floats]:
        """Add rows up by their combination of targets, and take the combinations apart afterwards."""
        from incrowd.measures.belief.crowd_kernel import by_value, tally

        look, _, _ = self._column_groups(plain, (), len(evidence))
        joint, combinations = combined(self._columns, [size + 1 for size in self.space.sizes], targets)
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

    def _weighed(
        self, plain: Sequence[int], targets: Sequence[int], evidence: SeenAttributes
    ) -> list[Floats]:
        """Add rows up target by target: for many targets, or few people."""
        look, together, alone = self._column_groups(plain, targets, len(evidence))
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

    def _column_groups(
        self, plain: Sequence[int], alone: Sequence[int], people: int
    ) -> tuple[ColumnGroups, Ints, Ints]:
        """Return how rows look factors up, and which of its columns are plain and which stand alone."""
        if people < WORTH_GROUPING:
            return self._ungrouped, np.array(plain, dtype=np.int64), np.array(alone, dtype=np.int64)
        asked = tuple(plain), tuple(alone)
        if asked not in self.column_groups:
            sizes = [size + 1 for size in self.space.sizes]
            self.column_groups[asked] = group_columns(self._columns, sizes, plain, alone)
        look = self.column_groups[asked]
        columns = np.arange(len(look.groups))
        first = len(columns) - len(alone)
        return look, columns[:first], columns[first:]

    @cached_property
    def _ungrouped(self) -> ColumnGroups:
        """Every attribute alone: a few people are not worth joining columns for."""
        return ungrouped(self.codes, [size + 1 for size in self.space.sizes])

    @cached_property
    def _columns(self) -> list[Ints]:
        return [self.codes[:, place].astype(np.int64) for place in range(self.codes.shape[1])]

    def _smoothed(self, sums: Floats, place: int) -> Floats:
        """Turn the weight of rows with each value into the weight of each value."""
        s, size = self.smoothing[place], self.space.sizes[place]
        spread = s * sums[:, :size].sum(axis=1, keepdims=True) + sums[:, size:]
        return np.asarray((1 - s) * sums[:, :size] + spread * self.shares[place])

    def _parts(self, evidence: SeenAttributes) -> list[Floats]:
        """Return for each attribute what a row's weight is multiplied by for each value it may have, or none."""
        informative = set(evidence.informative)
        return [
            self._part(evidence, place) if place in informative else np.ones((len(evidence), size + 1))
            for place, size in enumerate(self.space.sizes)
        ]

    def _part(self, evidence: SeenAttributes, place: int) -> Floats:
        likelihood, s = evidence.likelihood(place), self.smoothing[place]
        anybody = (likelihood @ self.shares[place])[:, None]
        return np.concatenate([(1 - s) * likelihood + s * anybody, anybody], axis=1)

    def _own_rows(self, evidence: SeenAttributes) -> Ints:
        return np.full(len(evidence), HIDDEN) if evidence.own_rows is None else evidence.own_rows

    def _run(self, block: Block, people: int, width: int) -> None:
        """Run blocks of people side by side; the loops let go of Python's lock."""
        size = max(1, BLOCK_BYTES // (16 * max(width, 1)))
        workers = min(os.cpu_count() or 1, max(people, 1))
        if people * self.codes.size > WORTH_THREADS:
            size = max(1, min(size, -(-people // workers)))
        parts = [slice(first, min(first + size, people)) for first in range(0, people, size)]
        if len(parts) <= 1:
            for part in parts:
                block(part)
            return
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(block, parts))

    def focused(self, evidence: SeenAttributes, keep: Collection[int]) -> tuple[CrowdBelief, SeenAttributes]:
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
        space = AttributeSpace(self.space.attributes, tuple(values))
        small, weights = _merged(columns, space, self._weights_without(evidence))
        belief = CrowdBelief(space, small, weights, tuple(shares), self.smoothing)
        return belief, SeenAttributes(space, seen, dict(evidence.soft))

    def _weights_without(self, evidence: SeenAttributes) -> Floats:
        own = self._own_rows(evidence)[0]
        if own == HIDDEN:
            return self.weights
        weights = self.weights.copy()
        weights[own] = 0.0
        return weights


def _weigher(quick: bool) -> Callable[..., None]:
    """Return the compiled loop or its plain twin; they agree to the last bit."""
    if quick:
        return weigh_plainly
    from incrowd.measures.belief.crowd_kernel import weigh  # Numba starts only where it pays

    return weigh


def _merged(columns: list[Ints], space: AttributeSpace, weights: Floats) -> tuple[NDArray[np.uint32], Floats]:
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


GRID = (0.01, 0.1, 0.4, 0.8, 0.97, 1.0)
ROWS = 2000
PEOPLE = 150
SWEEPS = 2
START = 0.9
WORTH = 2.0
"""Trusting an attribute more must explain the sample better by so many nats in all, or it is chance."""
FLOOR = 1e-6
"""A value that was ruled out and is true costs this much, not everything."""


def fitted_belief(table: AttributeTable, targets: Sequence[int] | None = None, seed: int = 0) -> CrowdBelief:
    """Return the crowd's belief with the smoothing that guesses the targets of left-out people best.

    At most ROWS people are compared with PEOPLE of them, so the cost does not grow with the crowd.
    """
    whole = CrowdBelief.learn(table, START)
    asked = range(len(table.space.attributes)) if targets is None else targets
    if len(table.codes) < 3 or not asked:
        return whole
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(len(table.codes))[:ROWS])
    some = table.only(rows)
    belief = replace(
        CrowdBelief.learn(some, START), shares=whole.shares
    )  # every value of the whole crowd has a share
    own = np.sort(rng.permutation(len(rows))[:PEOPLE])
    evidence = SeenAttributes(table.space, some.codes[own].astype(np.int64), {}, own)
    return replace(whole, smoothing=_best(belief, evidence, list(asked)))


def _best(belief: CrowdBelief, evidence: SeenAttributes, targets: list[int]) -> Floats:
    """Improve one attribute's smoothing at a time."""
    score_of = _scorer(belief, evidence, targets)
    chosen, score = belief.smoothing.copy(), score_of(belief.smoothing)
    needed = WORTH / max(1, int((evidence.seen[:, targets] != HIDDEN).sum()))
    for _ in range(SWEEPS):
        before = score
        for place in range(len(chosen)):
            for value in GRID:
                if value == chosen[place]:
                    continue
                tried = chosen.copy()
                tried[place] = value
                reached = score_of(tried)
                if reached > score + (needed if value < chosen[place] else 0.0):
                    chosen, score = tried, reached
        if score - before < 1e-4:
            break
    return chosen


def _scorer(belief: CrowdBelief, evidence: SeenAttributes, targets: list[int]) -> Callable[[Floats], float]:
    """Return what says how good a smoothing is."""
    if belief.weighs_grouped(targets, evidence) and set(evidence.informative) <= set(targets):
        return Tries(belief, evidence, targets).score
    return lambda smoothing: _score(replace(belief, smoothing=smoothing), evidence, targets)


class Tries:
    """One smoothing after the other, where every attribute is guessed: :func:`_score`, bit by bit and sooner.

    A try differs from the one before in one attribute or two, and only these are looked up anew.
    """

    def __init__(self, belief: CrowdBelief, evidence: SeenAttributes, targets: list[int]) -> None:
        self._belief, self._evidence, self._targets = belief, evidence, targets
        self._look, _, self._columns = belief._column_groups((), targets, len(evidence))
        shares = [np.append(belief.shares[place], 0.0) for place in targets]
        self._shares = np.concatenate(shares)
        self._seen = np.ascontiguousarray(evidence.seen[:, targets])
        self._factors = np.ones((len(evidence), len(self._shares)))
        self._tried = np.full(len(belief.smoothing), np.nan)
        self._parts: dict[tuple[int, float], Floats] = {}
        self._informative = set(evidence.informative)

    def score(self, smoothing: Floats) -> float:
        """Return the mean log-probability given to people's true values when they are hidden."""
        from incrowd.measures.belief.crowd_kernel import guessed_truth, weigh

        self._look_up(smoothing)
        belief, codes, starts = self._belief, self._look.codes, self._look.starts
        own, none = belief._own_rows(self._evidence), np.zeros(0, np.int64)
        guessed = np.empty(self._seen.shape)

        def block(part: slice) -> None:
            factors = self._factors[part]
            sums = np.zeros_like(factors)
            weigh(codes, belief.weights, factors, none, self._columns, own[part], sums)
            guessed_truth(
                sums, starts, smoothing[self._targets], self._shares, self._seen[part], guessed[part]
            )

        belief._run(block, len(guessed), int(starts[-1]))
        truth = guessed.T[self._seen.T != HIDDEN]
        return float(np.log(np.maximum(truth, FLOOR)).mean()) if len(truth) else 0.0

    def _look_up(self, smoothing: Floats) -> None:
        """Bring the factors of attributes that are smoothed differently up to date."""
        starts = self._look.starts
        belief = replace(self._belief, smoothing=smoothing)
        for number, place in enumerate(self._targets):
            if place not in self._informative or smoothing[place] == self._tried[place]:
                continue
            asked = place, float(smoothing[place])
            if asked not in self._parts:
                self._parts[asked] = belief._part(self._evidence, place)
            self._factors[:, starts[number] : starts[number + 1]] = self._parts[asked]
        self._tried = smoothing


def _score(belief: CrowdBelief, evidence: SeenAttributes, targets: list[int]) -> float:
    """Return the mean log-probability given to people's true values when they are hidden."""
    guesses = belief.predictions(targets, evidence)
    logs = [
        _log_of_truth(guess, evidence.seen[:, place]) for guess, place in zip(guesses, targets, strict=True)
    ]
    return float(np.concatenate(logs).mean()) if any(map(len, logs)) else 0.0


def _log_of_truth(guess: Floats, codes: Ints) -> Floats:
    known = np.flatnonzero(codes != HIDDEN)
    return np.asarray(np.log(np.maximum(guess[known, codes[known]], FLOOR)))
