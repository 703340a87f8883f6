"""What a draft would change: small frozen values that the terminal, the pages and the JSON read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from incrowd.measures.protocol import DraftNote, Effect, Level, WordShare
from incrowd.result import Result, fields_to_plain, say_count, to_plain


@dataclass(frozen=True, kw_only=True)
class DraftWord:
    """A word of the draft, and what it gives away."""

    word: str
    shares: tuple[WordShare, ...]
    """One from each measure that looks at words."""

    @property
    def weight(self) -> float:
        """What the words are sorted by."""
        return sum(one.weight for one in self.shares)

    @property
    def facts(self) -> dict[str, Any]:
        """What the measures count about it, by name."""
        return {name: value for one in self.shares for name, value in one.facts.items()}

    @property
    def columns(self) -> dict[str, str]:
        """What to show beside it in a table, by heading."""
        return {heading: value for one in self.shares for heading, value in one.columns.items()}

    @property
    def says(self) -> tuple[str, ...]:
        """What it gives away, in words."""
        return tuple(one.says for one in self.shares if one.says)

    @property
    def points_to(self) -> dict[str, str]:
        """What it points to, by the subject of the finding."""
        return {subject: name for one in self.shares for subject, name in one.points_to.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return {"word": self.word, **to_plain(self.facts)}


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """Something to leave out, and what the measures say if you post the rest."""

    what: str
    left_out: tuple[str, ...]
    """Words that are no longer in the post."""
    text: str
    """Your post without them."""
    changes: tuple[Effect, ...]
    """From now to after posting the rest, measured."""
    gain: float
    """How much less often somebody would be right than with the whole post, over all answers, and 1 for each red note
    that is gone."""


@dataclass(frozen=True, kw_only=True, repr=False)
class DraftCheck(Result):
    """The answer about one draft."""

    community: str
    changes: tuple[Effect, ...]
    words: tuple[DraftWord, ...]
    suggestions: tuple[Suggestion, ...]
    not_compared: tuple[str, ...]
    """What could not be looked at, and why."""
    assumptions: Mapping[str, Any]
    notes: tuple[DraftNote, ...] = ()
    """What has to be said before all numbers: what names the person, what the text newly tells."""
    unread: str = ""
    """Why the text could not be read for what it tells; empty: it was."""

    @property
    def answers(self) -> tuple[Effect, ...]:
        """What decides a level; the papers' own numbers are in `changes`, too, and decide nothing."""
        return tuple(change for change in self.changes if change.decides)

    @property
    def shown(self) -> tuple[Effect, ...]:
        """The answers worth a line: those that move, topics that the draft points to, and whether one is found."""
        pointed_to = self._pointed_to
        return tuple(
            change
            for change in self.answers
            if change.unit != "rank"
            or change.subject in pointed_to
            or (not change.silent and change.said_before != change.said_after)
        )

    @property
    def _pointed_to(self) -> dict[str, str]:
        """Each topic that a word of the draft points to, by the subject of its effect."""
        return {subject: name for word in self.words for subject, name in word.points_to.items()}

    def shown_of(self, suggestion: Suggestion) -> tuple[Effect, ...]:
        """The lines of a suggestion: what it makes better or worse than the whole post does, and what stays worse."""
        return tuple(
            change
            for change, whole in zip(suggestion.changes, self.changes, strict=False)
            if change.decides
            and (change.worse or (not change.silent and change.said_after != whole.said_after))
        )

    @property
    def told(self) -> tuple[Effect, ...]:
        """The answers that could be measured."""
        return tuple(change for change in self.answers if not math.isnan(change.after))

    @property
    def worst(self) -> Effect | None:
        """The answer that gets worse by most."""
        worse = [change for change in self.answers if change.worse]
        return max(worse, key=lambda one: one.exposure[1] - one.exposure[0], default=None)

    @property
    def risk(self) -> float:
        """How often somebody would be right after the post, at worst; 1: it names the person, NaN: nothing is told."""
        if any(note.red for note in self.notes):
            return 1.0
        return max((change.exposure[1] for change in self.told), default=math.nan)

    def sentence(self) -> str:
        """Say it in one plain sentence; what could not be read is no all-clear."""
        if self.unread and self.told:
            judged = self._sentence()
            return f"What this post tells about you could not be judged: {self.unread}. As for the rest: {judged}"
        return self._sentence()

    def _sentence(self) -> str:
        told = self.told
        if not told:
            reasons = dict.fromkeys(
                change.reason.partition(": ")[2] or change.reason for change in self.changes if change.reason
            )
            why = "; ".join([*reasons, *self.not_compared])
            return f"Cannot tell what this post in {self.community} would change: {why}."
        looked_at = say_count(len(told), "answer")
        worst = self.worst
        if worst is None:
            makes = "does not make the one answer" if len(told) == 1 else f"makes none of the {looked_at}"
            said = f"Posting this in {self.community} {makes} looked at worse"
            return f"{said}{self._already()}.{self._fewer()}"
        count = sum(change.worse for change in told)
        turned = f" ({worst.level_before} → {worst.level_after})" if worst.turns else ""
        return (
            f"Posting this in {self.community} makes {count} of {looked_at} worse, {_most_of_all(count)}"
            f"{worst.short_sentence()}{turned}.{self._no_worse()}"
        )

    def _no_worse(self) -> str:
        """Name the topics the draft points to and for which the person is at risk already."""
        stuck = [
            self._pointed_to[c.subject]
            for c in self.answers
            if c.at_risk_already and c.subject in self._pointed_to
        ]
        return f" It also points to {' and '.join(stuck)}, where you are at risk already." if stuck else ""

    def _fewer(self) -> str:
        """Name a crowd that a post makes much smaller, though it is still large."""
        fewer = [change for change in self.told if change.leaves_fewer]
        if not fewer:
            return ""
        least = min(fewer, key=lambda one: one.after)
        return f" But it leaves fewer people to hide among: {least.short_sentence()}."

    def _already(self) -> str:
        """Say what is at risk anyway: that a post does no further harm must not sound like safety."""
        bad = [change for change in self.answers if change.level_after is Level.AT_RISK]
        if not bad:
            return ""
        worst = max(bad, key=lambda one: one.exposure[1])
        verb = "is" if len(bad) == 1 else "are"
        return f", but {len(bad)} {verb} at risk already, {_most_of_all(len(bad))}{worst.short_sentence()}"

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each number, before and after."""
        return [one.to_dict() for one in self.changes]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return what gets worse or better: how often somebody would be right, after minus before."""
        moved = [(one.subject, one.exposure[1] - one.exposure[0]) for one in self.answers if one.moves]
        return sorted(moved, key=lambda one: -abs(one[1]))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        told = {
            "sentence": self.sentence(),
            "risk": to_plain(self.risk),
            "worse": sum(c.worse for c in self.answers),
        }
        return fields_to_plain(self) | told


def _most_of_all(count: int) -> str:
    return "most of all " if count > 1 else ""
