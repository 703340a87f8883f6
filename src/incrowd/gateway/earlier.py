"""What one ledger already holds, arranged so that a new question is compared with all of it at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.groups import Group, how_many, members_of, widened
from incrowd.gateway.joint import Clauses, Joint
from incrowd.gateway.ledger import Entry
from incrowd.gateway.snapshot import Snapshot

Changed = Callable[[Snapshot, int, str], NDArray[np.bool_] | None]
"""Snapshot, earlier snapshot, attribute -> who lists something else now; None if that is no longer known."""


@dataclass(eq=False, repr=False)
class Earlier:
    """A ledger's entries as far back as they are remembered."""

    snapshot: Snapshot
    base: int
    together: bool
    """Whether attributes are judged together."""
    told: list[Entry] = field(default_factory=list)
    """Entries whose classes are remembered, widened to this snapshot."""
    by_people: dict[tuple[str, bytes], Entry] = field(default_factory=dict)
    """Attribute and class -> entry of this snapshot."""
    classes: set[tuple[str, int, bytes]] = field(default_factory=set)
    """Attribute, snapshot and class of everything in `told`."""
    joints: dict[str, Joint] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Memory taken, about."""
        classes = sum(entry.people.nbytes for entry in self.told if entry.people is not None)
        return classes + sum(joint.nbytes for joint in self.joints.values()) + 1000 * len(self.by_people)

    def add(self, entry: Entry) -> None:
        """Take in a new entry."""
        known = len(self.told)
        self._keep(entry)
        clauses = self._clauses(entry) if len(self.told) > known else None
        joint = self.joints.get(self._name(entry.attribute))
        if joint is not None and clauses is not None:
            joint.add(clauses)

    def joint(self, attribute: str) -> Joint:
        """Return all clauses that a new answer on this attribute is judged with."""
        name = self._name(attribute)
        if name not in self.joints:
            answers = [self._clauses(entry) for entry in self.told if self._name(entry.attribute) == name]
            self.joints[name] = Joint.of(self.snapshot, self.base, [one for one in answers if one])
        return self.joints[name]

    def same_people(self, attribute: str, group: Group) -> Entry | None:
        """Return the entry of this snapshot about exactly these people, however it was asked for."""
        return self.by_people.get((attribute, group.digest))

    def too_close(self, attribute: str, group: Group, q: int) -> bool:
        """Say whether some but fewer than q people are in this class and not in an answered one, or the reverse."""
        now = self.snapshot.number
        same = [e for e in self.told if e.attribute == attribute and e.origin == now and not e.rule]
        if not same:
            return False
        classes, words = _stacked(same), group.words(self.snapshot.size)
        more, less = how_many(words & ~classes), how_many(classes & ~words)
        return bool((((more > 0) & (more < q)) | ((less > 0) & (less < q))).any())

    def nearly_same(self, attribute: str, group: Group, q: int, changed: Changed) -> list[Entry]:
        """Return entries of older snapshots since when fewer than q people came, left or changed."""
        older = [e for e in self.told if e.attribute == attribute and e.origin < self.snapshot.number]
        if not older:
            return []
        classes, words = _stacked(older), group.words(self.snapshot.size)
        differ = how_many(classes ^ words)
        found = []
        for place in np.flatnonzero(differ < q).tolist():
            moved = changed(self.snapshot, older[place].origin, attribute)
            both = members_of(classes[place] & words)
            if moved is None or differ[place] + moved[both].sum() < q:
                found.append(older[place])
        return found

    def _keep(self, entry: Entry) -> None:
        if entry.snapshot == self.snapshot.number:
            self.by_people[entry.attribute, entry.digest] = entry
        if entry.people is not None and entry.attribute in self.snapshot.attributes:
            people = widened(entry.people, self.snapshot.size)
            same = (entry.attribute, entry.origin, blake2b(people.tobytes(), digest_size=16).digest())
            if same not in self.classes:  # otherwise it was told again
                self.classes.add(same)
                self.told.append(replace(entry, people=people))

    def _clauses(self, entry: Entry) -> Clauses | None:
        index = self.snapshot.attributes.get(entry.attribute)
        if index is None or entry.people is None or entry.rule:
            return None
        known = [index.code_of[value] for value in entry.values if value in index.code_of]
        people = members_of(widened(entry.people, self.snapshot.size))
        return Clauses(Group(people), entry.attribute, tuple(known)) if known else None

    def _name(self, attribute: str) -> str:
        return "" if self.together else attribute


def _stacked(entries: list[Entry]) -> NDArray[np.uint64]:
    return np.stack([entry.people for entry in entries if entry.people is not None])
