"""What one ledger already holds, arranged so that a new question is compared with all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.joint import Clauses, Joint
from incrowd.gateway.ledger import Entry
from incrowd.gateway.people import Numbers, Selection, Words, how_many, members_of, widened
from incrowd.gateway.snapshot import Snapshot

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
