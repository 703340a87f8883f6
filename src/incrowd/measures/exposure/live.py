"""Follow a stream of posts: everybody's risk after each post, and a word when somebody crosses their line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from incrowd.errors import InputError
from incrowd.measures.exposure.definition import (
    UNDATED,
    Floats,
    Ints,
    periods,
    place_in_order,
    undefined_last,
)
from incrowd.measures.exposure.scoring import Scored
from incrowd.measures.exposure.space import Encoder, Space
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import TopicSet


class PersonRisks:
    """The corrected definitions for one person, laid out so that all topics take a few array operations."""

    def __init__(self, topics: TopicSet, options: ExposureOptions) -> None:
        self._options = options
        siblings = [topics.siblings(topic) for topic in range(len(topics))]
        widest = max(map(len, siblings), default=0)
        # Topics with fewer siblings are filled up with one that nobody writes about.
        nobody = len(topics)
        self._siblings = np.array([row + [nobody] * (widest - len(row)) for row in siblings], np.intp)
        places = np.array([place_in_order(options.breadth, len(row)) for row in siblings])
        self._with_siblings = np.flatnonzero(places)
        self._from_the_top = widest - places[self._with_siblings]

    def risks(self, weeks: Mapping[int, Floats]) -> Floats:
        """Return the risk for every topic from the peaks of each period; NaN where time is unknown."""
        peaks = np.stack(list(weeks.values())).astype(np.float64)
        strength = peaks.max(axis=0)
        risk = self._lasting(weeks, peaks) if "T" in self._options.dimension else strength.copy()
        if "D" in self._options.dimension and len(self._with_siblings):
            known = np.append(risk if self._options.breadth_over == "periods" else strength, -np.inf)
            ordered = np.sort(known[self._siblings[self._with_siblings]], axis=1)
            risk[self._with_siblings] -= ordered[np.arange(len(ordered)), self._from_the_top]
        return risk

    def _lasting(self, weeks: Mapping[int, Floats], peaks: Floats) -> Floats:
        dated = np.fromiter(weeks, np.int64, len(weeks)) != UNDATED
        if not dated.any():
            return np.full(peaks.shape[1], np.nan)
        m = self._options.weeks
        # Added from the largest down, as for a whole crowd, so that both agree to the last bit.
        best = -np.sort(-peaks[dated], axis=0)[:m]
        return np.asarray(np.cumsum(best, axis=0)[-1] / m)


@dataclass(frozen=True, kw_only=True)
class RankAlert:
    """Somebody's rank for a topic has crossed the line they set."""

    topic: str
    before: int
    after: int
    line: int
    people: int

    def sentence(self) -> str:
        """Say it in plain words."""
        way = "up to" if self.after <= self.line else "back down to"
        return (
            f"For {self.topic} you moved from number {self.before:,} {way} number {self.after:,} of "
            f"{self.people:,} (1 is the most exposed; your line is {self.line:,})."
        )


@dataclass(frozen=True)
class _Watches:
    """The lines people set, and where each of them stands: one entry each."""

    row: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    topic: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    line: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    rank: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def and_one(self, row: int, topic: int, line: int, rank: int) -> _Watches:
        return _Watches(
            np.append(self.row, row),
            np.append(self.topic, topic),
            np.append(self.line, line),
            np.append(self.rank, rank),
        )


@dataclass
class LiveExposure:
    """Risks that follow new posts. After any number of posts they equal a computation from scratch."""

    space: Space
    options: ExposureOptions
    people: dict[str, int] = field(default_factory=dict)
    _weeks: list[dict[int, Floats]] = field(default_factory=list, repr=False)
    _watches: _Watches = field(default_factory=_Watches, repr=False)

    def __post_init__(self) -> None:
        if self.options.literal:
            raise InputError("a stream follows the corrected definitions; leave out --literal")
        if self.space.pooling == "mean" and "T" not in self.options.dimension:
            raise InputError(
                "a stream keeps the best of every period; choose dimension T or DT in this space"
            )
        self._encoder = Encoder(self.space, self.options.text)
        self._of_person = PersonRisks(self.space.topics, self.options)
        self._risks: Floats = np.zeros((0, len(self.space.topics)))

    @classmethod
    def of(cls, scored: Scored) -> LiveExposure:
        """Go on from a scored crowd."""
        live = cls(scored.space, scored.options, {user: row for row, user in enumerate(scored.users)})
        live._weeks = [{} for _ in scored.users]
        peaks = scored.peaks
        for person, period, values in zip(peaks.person, peaks.period, peaks.values, strict=True):
            live._weeks[person][int(period)] = values
        live._risks = scored.risks().copy()
        return live

    @property
    def risks(self) -> Floats:
        """Everybody's risk for every topic, people down in the order of `people`."""
        return self._risks[: len(self.people)]

    def watch(self, user: str, topic: str, line: int) -> None:
        """Ask for an alert when the person's rank for the topic crosses `line`."""
        if user not in self.people:
            raise InputError("this person has not written anything yet; watch them after their first post")
        place = self.space.topics.place(topic)
        self._watches = self._watches.and_one(self.people[user], place, line, self.rank(user, topic))

    def rank(self, user: str, topic: str) -> int:
        """Return a person's rank; 1 = most exposed, equals share the best rank, undefined comes last."""
        return self._rank(self.people[user], self.space.topics.place(topic))

    def _rank(self, row: int, topic: int) -> int:
        risks = undefined_last(self.risks[:, topic])
        return 1 + int((risks > risks[row]).sum())

    def add_post(self, user: str, time: int | None, text: str) -> tuple[RankAlert, ...]:
        """Take in a post and return the alerts it sets off, of whomever it moved across their line."""
        row = self._row(user)
        period = UNDATED if time is None else int(periods(time, self.options.days))
        similar = self.space.similarities(self._encoder.encode_one(text))[0]
        weeks = self._weeks[row]
        weeks[period] = np.maximum(weeks[period], similar) if period in weeks else similar
        before = self.risks[row].copy()
        self.risks[row] = self._of_person.risks(weeks)
        return tuple(self._alerts(row, before))

    def _alerts(self, row: int, before: Floats) -> Iterator[RankAlert]:
        """Bring the watched ranks up to date: one person moved, so everybody else's changes by one at most."""
        watches = self._watches
        was = watches.rank.copy()
        mine = undefined_last(self.risks[watches.row, watches.topic])
        old, new = (undefined_last(risks[watches.topic]) for risks in (before, self.risks[row]))
        watches.rank[:] += (new > mine).astype(np.int64) - (old > mine)
        for own in np.flatnonzero(watches.row == row):
            watches.rank[own] = self._rank(row, int(watches.topic[own]))
        for at in np.flatnonzero((was <= watches.line) != (watches.rank <= watches.line)):
            yield RankAlert(
                topic=self.space.topics.names[watches.topic[at]],
                before=int(was[at]),
                after=int(watches.rank[at]),
                line=int(watches.line[at]),
                people=len(self.people),
            )

    def _row(self, user: str) -> int:
        if user not in self.people:
            self.people[user] = len(self.people)
            self._weeks.append({})
            if len(self._risks) < len(self.people):
                # Room for twice as many, so that newcomers cost little.
                room = np.full((max(16, len(self._risks)), len(self.space.topics)), np.nan)
                self._risks = np.concatenate([self._risks, room])
        return self.people[user]
