"""What one ledger already holds, arranged so that a new question is compared with all of it at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.joint import Clauses, Joint
from incrowd.gateway.ledger import Entry
from incrowd.gateway.people import Group, Words, how_many, members_of, widened
from incrowd.gateway.snapshot import Snapshot

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
    room: int = 0
    """The most that a secret amount adds to `base` for what was told before."""

    @property
    def nbytes(self) -> int:
        """Memory taken, about."""
        classes = sum(entry.people.nbytes for entry in self.told if entry.people is not None)
        return classes + sum(joint.nbytes for joint in self.joints.values()) + 1000 * len(self.by_people)

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

    def same_people(self, attribute: str, group: Group) -> Entry | None:
        """Return the entry of this snapshot about exactly these people, however it was asked for."""
        return self.by_people.get((attribute, group.digest))

    def too_close(self, attribute: str, group: Group, q: int) -> bool:
        """Say whether some but fewer than q people are in this class and not in an answered one, or the reverse."""
        now = self.snapshot.number
        same = [one for one in self.answers.values() if (one.attribute, one.origin) == (attribute, now)]
        if not same:
            return False
        classes, words = np.stack([_people(one) for one in same]), group.words(self.snapshot.size)
        more, less = how_many(words & ~classes), how_many(classes & ~words)
        return bool((((more > 0) & (more < q)) | ((less > 0) & (less < q))).any())

    def overlaps(self, group: Group) -> bool:
        """Say whether somebody of this class is in an answer, on whatever attribute and of whatever snapshot."""
        words = group.words(self.snapshot.size)
        return any((_people(one) & words).any() for one in self.answers.values())

    def nearly_same(
        self, attribute: str, group: Group, enough: Callable[[Entry], int], changed: Changed
    ) -> list[tuple[Entry, int]]:
        """Return entries of older snapshots since when not enough people came, left or changed, and how many."""
        now = self.snapshot.number
        older = [one for one in self.told if one.attribute == attribute and one.origin < now]
        if not older:
            return []
        classes, words = np.stack([_people(one) for one in older]), group.words(self.snapshot.size)
        differ = how_many(classes ^ words)
        found = []
        needed = np.array([enough(one) for one in older])
        for place in np.flatnonzero(differ < needed).tolist():
            moved = changed(self.snapshot, older[place].origin, attribute)
            # Where it is not known any more who changed, somebody may have.
            more = 1 if moved is None else int(moved[members_of(classes[place] & words)].sum())
            if differ[place] + more < needed[place]:
                found.append((older[place], int(differ[place]) + more))
        return found

    def _clauses(self, entry: Entry) -> Clauses:
        codes = self.snapshot.attributes[entry.attribute].code_of
        known = tuple(codes[value] for value in entry.values if value in codes)
        return Clauses(Group(members_of(_people(entry))), entry.attribute, known)

    def _name(self, attribute: str) -> str:
        return "" if self.together else attribute


def _people(entry: Entry) -> Words:
    if entry.people is None:
        raise ValueError("the class of this entry is not remembered")
    return entry.people
