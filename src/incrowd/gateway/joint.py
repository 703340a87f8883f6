"""Everything an organisation was told, judged together with what it would be told next.

Each released value of each answer is a clause: "somebody of this class lists this". NOTES.md says what the
conjunction of all clauses means, and proves the rule kept here: for everybody and each clause they could
account for, enough others could account for it, *for this value alone, and for nothing this person could not*.

The state is held per person, not per clause: the *cell* a person is in (which answered classes they belong
to), and the one value that all clauses they could account for are about, if there is only one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.alternatives import failing_values
from incrowd.gateway.people import Numbers, Selection
from incrowd.gateway.snapshot import AttributeIndex, Snapshot

NOTHING, SEVERAL = -1, -2
"""A person could account for no clause; or for clauses about several values."""
MOST_CELL_WORDS = 2**23
"""Room for cells, in words of 64 answers; beyond, nothing more is released to this ledger."""
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Clauses:
    """What one answer says: each of these values is listed by somebody of the group."""

    group: Selection
    attribute: str
    codes: tuple[int, ...]


@dataclass(eq=False, repr=False)
class Joint:
    """All clauses of one ledger on one snapshot."""

    snapshot: Snapshot
    base: int
    """The least number of alternatives of anybody, for any clause."""
    answers: int = 0
    about: Ids = field(init=False)
    """Person -> the one value (with its attribute's offset) they could account for, NOTHING or SEVERAL."""
    cell: NDArray[np.int32] = field(init=False)
    """Person -> which combination of answered classes they are in."""
    cells: NDArray[np.uint64] = field(init=False)
    """Cell -> bits of the answered classes that make up the combination."""
    released_by: dict[int, list[int]] = field(default_factory=dict)
    """Value -> the answers that released it."""
    broken: set[int] = field(default_factory=set)
    """Values of older snapshots that people have left since; they are judged again only if released again."""
    room: int = 0
    """The most that a secret amount adds to `base` for earlier clauses."""
    weakened: set[int] = field(default_factory=set)
    """Values whose alternatives have become fewer than `base` and `room`: a secret amount may stop answers near them.

    Not only answers that take an alternative away: whether one is stopped must not tell what somebody lists.
    """

    def __post_init__(self) -> None:
        self.about = np.full(self.snapshot.size, NOTHING, dtype=np.int64)
        self.cell = np.zeros(self.snapshot.size, dtype=np.int32)
        self.cells = np.zeros((1, 1), dtype=np.uint64)

    @classmethod
    def of(cls, snapshot: Snapshot, base: int, answers: Iterable[Clauses], room: int = 0) -> Joint:
        """Build the state of a ledger that has answers already."""
        joint = cls(snapshot, base, room=room)
        for answer in answers:
            joint._take_in(answer)
        joint.broken = LedgerTrial(joint, None).failing(set(joint.released_by), base, base)
        joint._note_weakened(set(joint.released_by))
        return joint

    @property
    def nbytes(self) -> int:
        """Memory taken, about."""
        return int(self.about.nbytes + self.cell.nbytes + self.cells.nbytes) + 1000 * self.answers

    def add(self, answer: Clauses) -> None:
        """Take in an answer that was given."""
        self._note_weakened(self._take_in(answer))

    def _note_weakened(self, values: set[int]) -> None:
        """Note which of these values have few alternatives left."""
        if self.room:
            least = self.base + self.room
            self.weakened = (self.weakened - values) | (
                LedgerTrial(self, None).failing(values, least, least) - self.broken
            )

    def _take_in(self, answer: Clauses) -> set[int]:
        """Return the values that may have lost alternatives by it."""
        trial = LedgerTrial(self, answer)
        self.about[trial.people] = trial.after
        self.broken -= trial.own
        for value in trial.own:
            self.released_by.setdefault(value, []).append(self.answers)
        self._split(answer.group)
        self.answers += 1
        return trial.touched

    def _split(self, group: Selection) -> None:
        """Part every cell into those inside and those outside the new class."""
        split = 2 * self.cell + group.flags(self.snapshot.size)
        there = np.flatnonzero(np.bincount(split, minlength=2 * len(self.cells)))
        number = np.zeros(2 * len(self.cells), dtype=np.int32)
        number[there] = np.arange(len(there))
        self.cell = number[split]
        word, bit = divmod(self.answers, 64)
        cells = self.cells[there >> 1]
        if word == cells.shape[1]:
            cells = np.column_stack([cells, np.zeros(len(cells), dtype=np.uint64)])
        cells[:, word] |= (there & 1).astype(np.uint64) << np.uint64(bit)
        self.cells = cells

    def allowed(self, answer: Clauses, threshold: int, before: int | None = None) -> tuple[int, ...]:
        """Return the values of an answer that may leave: with all before, everybody keeps enough alternatives.

        Clauses of this answer need `threshold` alternatives, those before need `before` (`base` if not given).
        """
        before = self.base if before is None else before
        if self.cells.size > MOST_CELL_WORDS:
            return ()
        codes, trial = answer.codes, LedgerTrial(self, answer)
        near = self.weakened & set(np.unique(self.about[answer.group.members]).tolist())
        failing = trial.failing(trial.touched | near, threshold, before)
        while failing and codes:
            blamed = trial.to_blame(failing)
            codes = tuple(code for code in codes if code not in blamed)
            trial = LedgerTrial(self, Clauses(answer.group, answer.attribute, codes))
            # Withholding never takes an alternative away, so only what failed has to be looked at again.
            again = {value for value in failing if value in self.released_by or value in trial.own}
            failing = trial.failing(again, threshold, before)
        return codes


class LedgerTrial:
    """A ledger with one answer more (or as it is)."""

    def __init__(self, joint: Joint, answer: Clauses | None) -> None:
        self.joint = joint
        self.answer = answer
        self.people: Numbers = np.zeros(0, dtype=np.int32)
        """Everybody who could account for a clause of the answer."""
        self.before = self.after = np.zeros(0, dtype=np.int64)
        """The one value each of them could account for, before and after."""
        self.listed = (self.people, self.before)
        """Pairs of a person and a value of the answer."""
        self.own: set[int] = set()
        """The values of the answer."""
        self.inside = np.zeros(joint.snapshot.size, dtype=np.bool_)
        self.about = joint.about
        if answer is not None:
            self._try(answer)

    def _try(self, answer: Clauses) -> None:
        index = self.joint.snapshot.attributes[answer.attribute]
        self.own = {index.offset + code for code in answer.codes}
        self.inside = answer.group.flags(self.joint.snapshot.size)
        people, codes = index.listed(answer.group.members, index.flags(answer.codes))
        values = codes.astype(np.int64) + index.offset
        self.listed = (people, values)
        first = np.flatnonzero(np.diff(people, prepend=-1))
        if len(first):
            least, most = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
            now = np.where(least == most, least, SEVERAL)
            self.people = people[first]
            self.before = self.joint.about[self.people]
            both = np.where(self.before == now, now, SEVERAL)
            self.after = np.where(self.before == NOTHING, now, both)
            self.about = self.joint.about.copy()
            self.about[self.people] = self.after

    @property
    def touched(self) -> set[int]:
        """Values that somebody may lose alternatives for: the answer's own, and older ones of the people in it."""
        changed = self.before[(self.before >= 0) & (self.after != self.before)]
        return self.own | (set(np.unique(changed).tolist()) - self.joint.broken)

    def failing(self, values: set[int], threshold: int, before: int) -> set[int]:
        """Return the values for which somebody has too few alternatives."""
        found: set[int] = set()
        for index in self.joint.snapshot.attributes.values():
            here = [value for value in sorted(values) if 0 <= value - index.offset < len(index.values)]
            if here:
                found.update(self._failing_of(index, np.array(here, dtype=np.int64), threshold, before))
        return found

    def _failing_of(self, index: AttributeIndex, values: Ids, threshold: int, before: int) -> list[int]:

        flags = failing_values(
            starts=index.index.starts,
            members=index.index.members,
            codes=values - index.offset,
            names=values,
            answers=self._answers(values),
            cell=self.joint.cell,
            cells=self.joint.cells,
            inside=self.inside,
            about=self.about,
            new=self.joint.answers,
            base=before,
            threshold=threshold,
        )
        return [int(value) for value in values[flags]]

    def _answers(self, values: Ids) -> NDArray[np.uint64]:
        """For each value the bits of the answers that release it, the new one included."""
        bits = np.zeros((len(values), self.joint.answers // 64 + 1), dtype=np.uint64)
        for row, value in enumerate(values.tolist()):
            answers = [
                *self.joint.released_by.get(value, []),
                *([self.joint.answers] if value in self.own else []),
            ]
            for answer in answers:
                bits[row, answer >> 6] |= np.uint64(1 << (answer & 63))
        return bits

    def to_blame(self, failing: set[int]) -> set[int]:
        """Choose values to withhold: those that fail, or those that take most from older ones that fail."""
        if self.answer is None:
            return set()
        offset = self.joint.snapshot.attributes[self.answer.attribute].offset
        own = failing & self.own
        if own:
            return {value - offset for value in own}
        people, values = self.listed
        robbed = np.zeros(self.joint.snapshot.size, dtype=np.bool_)
        robbed[self.people[np.isin(self.before, list(failing))]] = True
        taken = np.bincount(values[robbed[people]] - offset, minlength=1)
        worst = np.argsort(-taken, kind="stable")[: max(1, len(self.answer.codes) // 8)]
        return set(worst[taken[worst] > 0].tolist()) or set(self.answer.codes)
