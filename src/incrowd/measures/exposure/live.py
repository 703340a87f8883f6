"""Follow a stream of posts: everybody's risk after each post, and a word when somebody crosses their line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from incrowd.errors import InputError
from incrowd.measures.exposure.definition import UNDATED, Floats, periods
from incrowd.measures.exposure.peaks import Peaks
from incrowd.measures.exposure.scoring import Scored
from incrowd.measures.exposure.space import Encoder, Space
from incrowd.measures.exposure.spec import ExposureOptions


@dataclass(frozen=True, kw_only=True)
class Alert:
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


@dataclass
class _Watch:
    """One line somebody set, and where they stand."""

    row: int
    topic: int
    line: int
    rank: int


@dataclass
class LiveExposure:
    """Risks that follow new posts. After any number of posts they equal a computation from scratch."""

    space: Space
    options: ExposureOptions
    people: dict[str, int] = field(default_factory=dict)
    _weeks: list[dict[int, Floats]] = field(default_factory=list, repr=False)
    _watches: list[_Watch] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.options.literal:
            raise InputError("a stream follows the corrected definitions; leave out --literal")
        self._encoder = Encoder(self.space, self.options.text)
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
        rank = self.rank(user, topic)
        self._watches.append(_Watch(self.people[user], self.space.topics.place(topic), line, rank))

    def rank(self, user: str, topic: str) -> int:
        """Return a person's rank; 1 = most exposed, equals share the best rank, undefined comes last."""
        return self._rank(self.people[user], self.space.topics.place(topic))

    def _rank(self, row: int, topic: int) -> int:
        risks = _undefined_last(self.risks[:, topic])
        return 1 + int((risks > risks[row]).sum())

    def add_post(self, user: str, time: int | None, text: str) -> tuple[Alert, ...]:
        """Take in a post and return the alerts it sets off, of whomever it moved across their line."""
        row = self._row(user)
        period = UNDATED if time is None else int(periods(time, self.options.days))
        similar = self.space.similarities(self._encoder.encode_one(text))[0]
        weeks = self._weeks[row]
        weeks[period] = np.maximum(weeks[period], similar) if period in weeks else similar
        before = self.risks[row].copy()
        self.risks[row] = self._risk_of(weeks)
        return tuple(self._alerts(row, before))

    def _alerts(self, row: int, before: Floats) -> Iterator[Alert]:
        """Bring the watched ranks up to date: one person moved, so everybody else's changes by one at most."""
        old, new = _undefined_last(before), _undefined_last(self.risks[row])
        for watch in self._watches:
            was = watch.rank
            if watch.row == row:
                watch.rank = self._rank(row, watch.topic)
            else:
                mine = _undefined_last(self.risks[watch.row, watch.topic])
                watch.rank += int(new[watch.topic] > mine) - int(old[watch.topic] > mine)
            if (was <= watch.line) != (watch.rank <= watch.line):
                name = self.space.topics.names[watch.topic]
                people = len(self.people)
                yield Alert(topic=name, before=was, after=watch.rank, line=watch.line, people=people)

    def _row(self, user: str) -> int:
        if user not in self.people:
            self.people[user] = len(self.people)
            self._weeks.append({})
            if len(self._risks) < len(self.people):
                # Room for twice as many, so that newcomers cost little.
                room = np.full((max(16, len(self._risks)), len(self.space.topics)), np.nan)
                self._risks = np.concatenate([self._risks, room])
        return self.people[user]

    def _risk_of(self, weeks: dict[int, Floats]) -> Floats:
        order = sorted(weeks)
        own = Peaks(
            np.zeros(len(order), np.int64),
            np.array(order, np.int64),
            np.stack([weeks[period] for period in order]),
            people=1,
        )
        return np.asarray(own.risks(self.space.topics, self.options.dimension, self.options)[0])


def _undefined_last(risks: Floats) -> Floats:
    return np.where(np.isnan(risks), -np.inf, risks)
