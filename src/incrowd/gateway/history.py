"""What one ledger already holds, arranged so that a new question is compared with all of it at once.

Everything an organisation was told is judged together with what it would be told next. Each released value of each
answer is a clause: "somebody of this class lists this". NOTES.md says what the conjunction of all clauses means, and
proves the rule kept here: for everybody and each clause they could account for, enough others could account for it,
*for this value alone, and for nothing this person could not*.

The state is held per person, not per clause: the *cell* a person is in (which answered classes they belong
to), and the one value that all clauses they could account for are about, if there is only one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.alternatives import failing_values
from incrowd.gateway.ledger import Entry
from incrowd.gateway.people import Numbers, Selection, Words, how_many, members_of, widened
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


# What one ledger already holds, arranged so that a new question is compared with all of it at once.

NOTHING_DRAWN = frozenset({"too-small", "too-close", "taken", "over-time", "swapped"})
"""Rules that deny a question before what anybody lists is compared with a secret threshold."""
Changed = Callable[[Snapshot, int, str], NDArray[np.bool_] | None]
"""Snapshot, earlier snapshot, attribute -> who lists something else now; None if that is no longer known."""


@dataclass(eq=False, repr=False)
class History:
    """A ledger's entries as far back as they are remembered."""

    snapshot: Snapshot
    base: int
    together: bool
    """Whether attributes are judged together."""
    told: list[Entry] = field(default_factory=list)
    """Entries whose classes are remembered, widened to this snapshot."""
    by_people: dict[tuple[str, bytes], Entry] = field(default_factory=dict)
    """Attribute and class -> entry of this snapshot."""
    answers: dict[tuple[str, int, bytes], Entry] = field(default_factory=dict)
    """Attribute, snapshot and class -> the entry that released something about it first."""
    joints: dict[str, Joint] = field(default_factory=dict)
    counted: dict[int, NDArray[np.int64]] = field(default_factory=dict)
    """Place in `told` -> how many of that class list each value."""
    room: int = 0
    """The most that a secret amount adds to `base` for what was told before."""

    @property
    def nbytes(self) -> int:
        """Memory taken, about."""
        classes = sum(entry.people.nbytes for entry in self.told if entry.people is not None)
        counts = sum(counts.nbytes for counts in self.counted.values())
        return (
            classes
            + counts
            + sum(joint.nbytes for joint in self.joints.values())
            + 1000 * len(self.by_people)
        )

    def add(self, entry: Entry) -> None:
        """Take in an entry."""
        if entry.snapshot == self.snapshot.number:
            self.by_people[entry.attribute, entry.digest] = entry
        if entry.people is None or entry.attribute not in self.snapshot.attributes:
            return
        entry = replace(entry, people=widened(entry.people, self.snapshot.size))
        self.told.append(entry)
        about = (entry.attribute, entry.origin, blake2b(_people(entry).tobytes(), digest_size=16).digest())
        if entry.rule or about in self.answers:
            return
        self.answers[about] = entry
        joint = self.joints.get(self._name(entry.attribute))
        if joint is not None:
            joint.add(self._clauses(entry))

    def joint(self, attribute: str) -> Joint:
        """Return all clauses that a new answer on this attribute is judged with."""
        name = self._name(attribute)
        if name not in self.joints:
            answers = [one for one in self.answers.values() if self._name(one.attribute) == name]
            self.joints[name] = Joint.of(self.snapshot, self.base, map(self._clauses, answers), self.room)
        return self.joints[name]

    def same_people(self, attribute: str, group: Selection) -> Entry | None:
        """Return the entry of this snapshot about exactly these people, however it was asked for."""
        return self.by_people.get((attribute, group.digest))

    def too_close(self, attribute: str, group: Selection, q: int) -> bool:
        """Say whether some but fewer than q people are in this class and not in an answered one, or the reverse."""
        now = self.snapshot.number
        same = [one for one in self.answers.values() if (one.attribute, one.origin) == (attribute, now)]
        if not same:
            return False
        classes, words = np.stack([_people(one) for one in same]), group.words(self.snapshot.size)
        more, less = how_many(words & ~classes), how_many(classes & ~words)
        return bool((((more > 0) & (more < q)) | ((less > 0) & (less < q))).any())

    def overlaps(self, group: Selection) -> bool:
        """Say whether somebody of this class is in an answer, on whatever attribute and of whatever snapshot."""
        words = group.words(self.snapshot.size)
        return any((_people(one) & words).any() for one in self.answers.values())

    def withheld_before(
        self,
        attribute: str,
        group: Selection,
        codes: Sequence[int],
        near: Callable[[Entry, str], int],
        changed: Changed,
    ) -> set[int]:
        """Return the values that an earlier question about nearly the same holders did not get.

        Two classes may differ by a thousand people and have the same holders of a value: whoever swaps those who do
        not list it asks the same question about it. Nearly the same: they differ by fewer than `near` holders, and by
        fewer than half of them. What so many people list otherwise by now is decided anew.
        """
        index, words = self.snapshot.attributes[attribute], group.words(self.snapshot.size)
        left, held = np.array(codes, dtype=np.int64), index.supports(group.members)
        for place, entry in enumerate(self.told):
            if entry.attribute != attribute or entry.rule in NOTHING_DRAWN or not len(left):
                continue
            shared = _people(entry) & words
            if not shared.any():
                continue
            if place not in self.counted:
                self.counted[place] = index.supports(members_of(_people(entry)))
            likely = left[(2 * abs(held - self.counted[place]) < held)[left]]
            told = set(entry.values)
            likely = likely[[index.values[code] not in told for code in likely]]
            if not len(likely):
                continue
            both = members_of(shared)
            differ = held + self.counted[place] - 2 * index.supports(both)
            likely = likely[2 * differ[likely] < held[likely]]
            moved = self._moved(entry, both, changed)
            again = [
                code for code in likely.tolist() if differ[code] + moved < near(entry, index.values[code])
            ]
            left = left[~np.isin(left, again)]
        return set(codes) - set(left.tolist())

    def _moved(self, entry: Entry, people: Numbers, changed: Changed) -> int:
        """How many of these people list something else than when an answer was made; none, if that is not known."""
        if entry.origin == self.snapshot.number:
            return 0
        moved = changed(self.snapshot, entry.origin, entry.attribute)
        return 0 if moved is None else int(moved[people].sum())

    def nearly_same(
        self,
        attribute: str,
        group: Selection,
        enough: Callable[[Entry, Numbers], int],
        most: int,
        changed: Changed,
    ) -> list[tuple[Entry, int]]:
        """Return entries of older snapshots since when not enough people came, left or changed, and how many.

        `enough` says how many that takes, by who they are; `most` is the largest such number.
        """
        now = self.snapshot.number
        older = [one for one in self.told if one.attribute == attribute and one.origin < now]
        if not older:
            return []
        classes, words = np.stack([_people(one) for one in older]), group.words(self.snapshot.size)
        found = []
        for place in np.flatnonzero(how_many(classes ^ words) < most).tolist():
            entry = older[place]
            others, both = members_of(classes[place] ^ words), members_of(classes[place] & words)
            moved = changed(self.snapshot, entry.origin, attribute)
            who = others if moved is None else np.union1d(others, both[moved[both]])
            # Where it is not known any more who changed, somebody may have.
            differ = len(who) + (moved is None)
            if differ < enough(entry, who):
                found.append((entry, differ))
        return found

    def _clauses(self, entry: Entry) -> Clauses:
        codes = self.snapshot.attributes[entry.attribute].code_of
        known = tuple(codes[value] for value in entry.values if value in codes)
        return Clauses(Selection(members_of(_people(entry))), entry.attribute, known)

    def _name(self, attribute: str) -> str:
        return "" if self.together else attribute


def _people(entry: Entry) -> Words:
    if entry.people is None:
        raise ValueError("the class of this entry is not remembered")
    return entry.people
