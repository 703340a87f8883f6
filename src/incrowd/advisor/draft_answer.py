"""What a draft would change: small frozen values that the terminal, the pages and the JSON read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from incrowd.measures.protocol import AT_RISK_ABOVE
from incrowd.result import fields_to_plain, say_count, say_number

MOST_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Change:
    """One number before and after a post. Higher is safer: it counts people to hide among, or is a rank."""

    measure: str
    subject: str
    """E.g. "you in books", "from books to cooking", "topic debts in books"."""
    adversary: str
    unit: str
    """"people" (the size of a set you hide in) or "rank" (1 = most exposed)."""
    before: float
    after: float
    """NaN: cannot tell, and `reason` says why."""
    of_before: int
    of_after: int
    """Among how many people."""
    rank_before: int | None = None
    rank_after: int | None = None
    """For a set of people: how many members have a smaller one, plus 1."""
    score_before: float = math.nan
    score_after: float = math.nan
    """For a rank: the risk score behind it."""
    reason: str = ""

    @property
    def exposure(self) -> tuple[float, float]:
        """One in how many, before and after: 1 is the worst, 0 if it cannot be told.

        A rank without a score behind it is shared by everybody who has none, and exposes nobody.
        """
        if self.unit == "rank":
            before, after = self.score_before > 0, self.score_after > 0
            return _one_in(self.before) * before, _one_in(self.after) * after
        return _one_in(self.before), _one_in(self.after)

    @property
    def worse(self) -> bool:
        """True if the post leaves fewer people to hide among, or a more exposed rank."""
        before, after = self.exposure
        return after > before

    @property
    def was_silent(self) -> bool:
        """True for the rank of a topic that nothing pointed to before."""
        return self.unit == "rank" and self.score_before <= 0

    @property
    def at_worst(self) -> bool:
        """True if it is as bad as it can be already, so that no post makes it worse."""
        return self.exposure == (1.0, 1.0)

    def sentence(self) -> str:
        """Say it in words."""
        what = {"people": "people to hide among", "rank": "your rank (1 = most exposed)"}[self.unit]
        before, after = "none" if self.was_silent else _say(self.before), _say(self.after)
        told = f"{before} -> {after}" if before != after else after
        return f"{self.measure}, {self.subject}: {what} {told}"

    @property
    def moves(self) -> bool:
        """True if anything is different after the post."""
        return not (_same(self.before, self.after) and _same(self.score_before, self.score_after))

    @property
    def silent(self) -> bool:
        """True for a topic that the person says nothing about, before and after: such a rank is everybody's."""
        return self.unit == "rank" and not (self.score_before > 0 or self.score_after > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return fields_to_plain(self) | {"worse": self.worse, "sentence": self.sentence()}


@dataclass(frozen=True, kw_only=True)
class GivingWord:
    """A word of the draft, and what it gives away."""

    word: str
    others: int
    """Other people of the community who use it."""
    stands_out: float
    """How much it adds to how your words differ from the average of the others there (a divergence, 0 to 1)."""
    links: float
    """How much it adds to what your profile shares with your profiles elsewhere (of 1 for each of them)."""
    topic: str = ""
    topic_share: float = 0.0
    """The sensitive topic it points to most, and its part in the draft's similarity to it."""

    @property
    def weight(self) -> float:
        """What the words are sorted by."""
        return self.stands_out + self.links + self.topic_share


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """Something to leave out, and what the measures say if you post the rest."""

    what: str
    left_out: tuple[str, ...]
    """Words that are no longer in the post."""
    text: str
    """Your post without them."""
    changes: tuple[Change, ...]
    """From now to after posting the rest, measured."""
    gain: float
    """How much less exposed you are than with the whole post: the sum of 1 in N over all numbers."""


@dataclass(frozen=True, kw_only=True)
class DraftCheck:
    """The answer about one draft."""

    community: str
    changes: tuple[Change, ...]
    words: tuple[GivingWord, ...]
    suggestions: tuple[Suggestion, ...]
    not_compared: tuple[str, ...]
    """What could not be looked at, and why."""
    assumptions: Mapping[str, Any]

    @property
    def shown(self) -> tuple[Change, ...]:
        """The changes worth a line: everything about sets, and topics that move or that the draft points to."""
        pointed_to = self._pointed_to
        return tuple(
            change
            for change in self.changes
            if change.unit == "people"
            or (not change.silent and (change.moves or change.subject in pointed_to))
        )

    @property
    def _pointed_to(self) -> dict[str, str]:
        """Each topic that a word of the draft points to, by the subject of its change."""
        return {f"topic {word.topic} in {self.community}": word.topic for word in self.words if word.topic}

    def shown_of(self, suggestion: Suggestion) -> tuple[Change, ...]:
        """The lines of a suggestion: what it makes better or worse than the whole post does, and what stays worse."""
        return tuple(
            change
            for change, whole in zip(suggestion.changes, self.changes, strict=True)
            if change.worse or (not change.silent and not _same(change.after, whole.after))
        )

    @property
    def told(self) -> tuple[Change, ...]:
        """The changes that could be measured."""
        return tuple(change for change in self.changes if not math.isnan(change.after))

    @property
    def worst(self) -> Change | None:
        """The number that gets worse by most."""
        worse = [change for change in self.changes if change.worse]
        return max(worse, key=lambda one: one.exposure[1] - one.exposure[0], default=None)

    @property
    def risk(self) -> float:
        """One in the smallest number after the post: 1 if somebody would be found at once."""
        return max((change.exposure[1] for change in self.changes), default=0.0)

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        told = self.told
        if not told:
            reasons = dict.fromkeys(
                change.reason.partition(": ")[2] or change.reason for change in self.changes
            )
            why = "; ".join([*reasons, *self.not_compared])
            return f"Cannot tell what this post in {self.community} would change: {why}."
        numbers = say_count(len(self.changes), "number")
        looked_at = f"{len(told):,} of {numbers}" if len(told) < len(self.changes) else numbers
        worst = self.worst
        if worst is None:
            said = f"Posting this in {self.community} makes none of the {looked_at} looked at worse"
            return f"{said}{self._already()}."
        count = sum(change.worse for change in self.changes)
        return (
            f"Posting this in {self.community} makes {count} of {len(told)} numbers worse, most of all "
            f"{worst.sentence()}.{self._no_worse()}"
        )

    def _no_worse(self) -> str:
        """Name the topics the draft points to and for which the person is the most exposed already."""
        stuck = [
            self._pointed_to[c.subject] for c in self.changes if c.at_worst and c.subject in self._pointed_to
        ]
        if not stuck:
            return ""
        return f" It also points to {' and '.join(stuck)}, where you are the most exposed already."

    def _already(self) -> str:
        """Say what cannot get much worse: that a post does no further harm must not sound like safety."""
        bad = [change for change in self.changes if change.exposure[1] > AT_RISK_ABOVE]
        if not bad:
            return ""
        worst = max(bad, key=lambda one: one.exposure[1])
        return f", but {len(bad)} {'is' if len(bad) == 1 else 'are'} at risk already, most of all {worst.sentence()}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        told = {"sentence": self.sentence(), "risk": self.risk, "worse": sum(c.worse for c in self.changes)}
        return fields_to_plain(self) | told


def _one_in(value: float) -> float:
    return 0.0 if math.isnan(value) or value <= 0 else 1.0 / value


def _same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _say(value: float) -> str:
    return "cannot tell" if math.isnan(value) else say_number(value)
