"""Everything an organisation was told, judged together with what it would be told next.

Each released value of each answer is a clause: "somebody of this class lists this". NOTES.md says what the
conjunction of all clauses means, and proves the rule kept here: for everybody and each clause they could
account for, enough others could account for it *and for nothing that this person could not*.

The state is held per person, not per clause: the *cell* a person is in (which answered classes they belong
to), and the one value that all clauses they could account for are about, if there is only one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.companions import MOST_CELLS, Effort, Listing, alone_suffice, companions_suffice
from incrowd.gateway.groups import Group, Numbers
from incrowd.gateway.snapshot import AttributeIndex, Snapshot

NOTHING, SEVERAL = -1, -2
"""A person could account for no clause; or for clauses about several values."""
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Clauses:
    """What one answer says: each of these values is listed by somebody of the group."""

    group: Group
    attribute: str
    codes: tuple[int, ...]


@dataclass(eq=False, repr=False)
class Joint:
    """All clauses of one ledger on one snapshot."""

    snapshot: Snapshot
    base: int
    """The least number of companions of anybody, for any clause."""
    answers: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    """Attribute and released values of each answer; its class is in `cells`."""
    about: Ids = field(init=False)
    """Person -> the one value (with its attribute's offset) they could account for, NOTHING or SEVERAL."""
    cell: NDArray[np.int32] = field(init=False)
    """Person -> which combination of answered classes they are in."""
    cells: NDArray[np.bool_] = field(init=False)
    """Cell by answer: which classes make up the combination."""
    released_by: dict[int, list[int]] = field(default_factory=dict)
    """Value -> the answers that released it."""
    fragile: set[int] = field(default_factory=set)
    """Values whose companions list other values as well, so that more can disturb them."""
    broken: set[int] = field(default_factory=set)
    """Values of older snapshots that people have left since; they are judged again only if released again."""

    def __post_init__(self) -> None:
        self.about = np.full(self.snapshot.size, NOTHING, dtype=np.int64)
        self.cell = np.zeros(self.snapshot.size, dtype=np.int32)
        self.cells = np.zeros((1, 0), dtype=np.bool_)

    @classmethod
    def of(cls, snapshot: Snapshot, base: int, answers: Iterable[Clauses]) -> Joint:
        """Build the state of a ledger that has answers already."""
        joint = cls(snapshot, base)
        for answer in answers:
            joint._take_in(answer)
        joint._settle(joint.released_by)
        return joint

    @property
    def nbytes(self) -> int:
        """Memory taken, about."""
        return int(self.about.nbytes + self.cell.nbytes + self.cells.nbytes) + 500 * len(self.answers)

    def add(self, answer: Clauses) -> None:
        """Take in an answer that was given."""
        trial = Trial(self, answer)
        touched = trial.values_touched
        self._take_in(answer)
        self._settle(touched)

    def allowed(self, answer: Clauses, threshold: int) -> tuple[int, ...]:
        """Return the values of an answer that may leave: with all before, everybody keeps enough companions.

        Clauses of this answer need `threshold` companions, those before need `base`.
        """
        if self.cells.size > MOST_CELLS:
            return ()
        trial = Trial(self, answer)
        failing = trial.failing(trial.values_touched, threshold)
        while failing and trial.answer is not None:
            blamed = trial.to_blame(failing)
            codes = tuple(code for code in trial.answer.codes if code not in blamed)
            trial = Trial(self, Clauses(answer.group, answer.attribute, codes), trial.effort)
            # Withholding never takes a companion away, so only what failed has to be looked at again.
            older = {value for value in failing if value in self.released_by or value in trial.own}
            failing = trial.failing(older, threshold)
        return trial.answer.codes if trial.answer else ()

    def _take_in(self, answer: Clauses) -> None:
        trial = Trial(self, answer)
        self.about[trial.people] = trial.after
        index = self.snapshot.attributes[answer.attribute]
        for code in answer.codes:
            self.released_by.setdefault(index.offset + code, []).append(len(self.answers))
        split = 2 * self.cell + answer.group.flags(self.snapshot.size)
        there = np.flatnonzero(np.bincount(split, minlength=2 * len(self.cells)))
        number = np.zeros(2 * len(self.cells), dtype=np.int32)
        number[there] = np.arange(len(there))
        self.cell = number[split]
        self.cells = np.column_stack([self.cells[there >> 1], (there & 1).astype(np.bool_)])
        self.answers.append((answer.attribute, answer.codes))

    def _settle(self, values: Iterable[int]) -> None:
        """Find out which values rest on companions that list other values as well, or on too few."""
        now = Trial(self, None)
        for value in values:
            self.fragile.discard(value)
            self.broken.discard(value)
            if not now.alone(value, self.base):
                (self.fragile if now.companions(value, self.base) else self.broken).add(value)


class Trial:
    """A ledger with one answer more (or as it is)."""

    def __init__(self, joint: Joint, answer: Clauses | None, effort: Effort | None = None) -> None:
        self.joint = joint
        self.effort = effort or Effort()
        self.answer = answer
        self.size = joint.snapshot.size
        self.people: Numbers = np.zeros(0, dtype=np.int32)
        """Everybody who could account for a clause of the answer."""
        self.before = self.after = np.zeros(0, dtype=np.int64)
        """The one value each of them could account for, before and after."""
        self.listed = (self.people, self.before)
        """Pairs of a person and a value of the answer."""
        self.own: set[int] = set()
        self.inside = np.zeros(self.size, dtype=np.bool_)
        self.about = joint.about
        if answer is not None:
            self._try(answer)

    def _try(self, answer: Clauses) -> None:
        index = self.joint.snapshot.attributes[answer.attribute]
        self.own = {index.offset + code for code in answer.codes}
        self.inside = answer.group.flags(self.size)
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
    def values_touched(self) -> set[int]:
        """Values somebody may lose companions for: the answer's own, and older ones of the people in it."""
        changed = self.before[(self.before >= 0) & (self.after != self.before)]
        touched = self.own | (set(np.unique(changed).tolist()) - self.joint.broken)
        flags = np.zeros(self.size, dtype=np.bool_)
        flags[self.people] = True
        return touched | {value for value in self.joint.fragile if flags[self._holders(value)].any()}

    def failing(self, values: Iterable[int], threshold: int) -> set[int]:
        """Return the values for which somebody has too few companions."""
        some = {value for value in values if not self.alone(value, threshold)}
        return {value for value in sorted(some) if not self.companions(value, threshold)}

    def alone(self, value: int, threshold: int) -> bool:
        """Test it quickly: count only companions who could account for this value alone."""
        holders = self._holders(value)
        spot = self._spot(holders)
        room = 2 * len(self.joint.cells)
        there = np.flatnonzero(np.bincount(spot, minlength=room))
        alone = np.bincount(spot[self.about[holders] == value], minlength=room)[there]
        answers, least = self._answers(value, threshold)
        return alone_suffice(self._in_answers(there, answers), alone, least, self.effort)

    def companions(self, value: int, threshold: int) -> bool:
        """Test it fully: companions may list other values too, as long as this person lists them as well."""
        answers, least = self._answers(value, threshold)
        holders = self._holders(value)
        spot = self._spot(holders)
        holders = holders[self._in_answers(spot, answers).any(axis=1)]
        needed = np.zeros(len(self.joint.answers) + 1, dtype=np.int64)
        needed[answers] = least
        return companions_suffice(self._listing(holders), value, needed, self.effort)

    def to_blame(self, failing: set[int]) -> set[int]:
        """Choose values to withhold: those that fail, or those that take most from older ones that fail."""
        answer = self.answer
        if answer is None:
            return set()
        offset = self.joint.snapshot.attributes[answer.attribute].offset
        own = failing & self.own
        if own:
            return {value - offset for value in own}
        robbed = np.zeros(self.size, dtype=np.bool_)
        for value in failing:
            robbed[self._holders(value)] = True
        people, values = self.listed
        taken = np.bincount(values[robbed[people]] - offset, minlength=1)
        worst = np.argsort(-taken, kind="stable")[: max(1, len(answer.codes) // 8)]
        return set(worst[taken[worst] > 0].tolist()) or set(answer.codes)

    def _holders(self, value: int) -> Numbers:
        index = self._attribute(value)
        return index.holders(value - index.offset)

    def _attribute(self, value: int) -> AttributeIndex:
        attributes = self.joint.snapshot.attributes.values()
        return next(one for one in attributes if one.offset <= value < one.offset + len(one.values))

    def _spot(self, people: Numbers) -> Ids:
        """Cell and membership of the new class, as one number."""
        return 2 * self.joint.cell[people].astype(np.int64) + self.inside[people]

    def _answers(self, value: int, threshold: int) -> tuple[list[int], Ids]:
        """Return the answers that release a value, the new one last, and how many companions each needs."""
        answers = list(self.joint.released_by.get(value, []))
        least = [self.joint.base] * len(answers)
        if value in self.own:
            answers, least = [*answers, len(self.joint.answers)], [*least, threshold]
        return answers, np.array(least, dtype=np.int64)

    def _in_answers(self, spots: Ids, answers: list[int]) -> NDArray[np.bool_]:
        """Table spot by answer: does the spot belong to its class?"""
        earlier = np.array([one for one in answers if one < len(self.joint.answers)], dtype=np.int64)
        found = self.joint.cells[np.ix_(spots >> 1, earlier)]
        new = (spots & 1).astype(np.bool_)
        return found if len(earlier) == len(answers) else np.column_stack([found, new])

    def _listing(self, people: Numbers) -> Listing:
        """Return every clause that each of these people could account for."""
        found: list[tuple[Ids, Ids, Ids]] = [(np.zeros(0, dtype=np.int64),) * 3]
        answers = list(self.joint.answers)
        if self.answer is not None:
            answers.append((self.answer.attribute, self.answer.codes))
        spots = self._spot(people)
        row_of = np.full(self.size, -1, dtype=np.int64)
        row_of[people] = np.arange(len(people))
        inside = self._in_answers(spots, list(range(len(answers))))
        for number, (attribute, released) in enumerate(answers):
            members = people[inside[:, number]]
            if len(members):
                index = self.joint.snapshot.attributes[attribute]
                listing, codes = index.listed(members, index.flags(released))
                values = codes.astype(np.int64) + index.offset
                found.append((row_of[listing], values, np.full(len(values), number, dtype=np.int64)))
        rows, values, numbers = (np.concatenate(part) for part in zip(*found, strict=True))
        return Listing(people=len(people), answers=len(answers), rows=rows, values=values, numbers=numbers)
