"""Follow a stream of posts: everybody's risk after each post, and a word when somebody crosses their line."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

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
class LiveExposure:
    """Risks that follow new posts. After any number of posts they equal a computation from scratch."""

    space: Space
    options: ExposureOptions
    people: dict[str, int] = field(default_factory=dict)
    _weeks: list[dict[int, Floats]] = field(default_factory=list, repr=False)
    _risks: Floats | None = field(default=None, repr=False)
    _lines: dict[tuple[str, str], int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.options.literal:
            raise InputError("a stream follows the corrected definitions; leave out --literal")
        self._encoder = Encoder(self.space, self.options.text)
        if self._risks is None:
            self._risks = np.zeros((0, len(self.space.topics)))

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
        rows = self._risks if self._risks is not None else np.zeros((0, len(self.space.topics)))
        return rows[: len(self.people)]

    def watch(self, user: str, topic: str, line: int) -> None:
        """Ask for an alert when the person's rank for the topic crosses `line`."""
        self.space.topics.place(topic)
        self._lines[user, topic] = line

    def rank(self, user: str, topic: str) -> int:
        """Return a person's rank; 1 = most exposed, equals share the best rank."""
        risks = self.risks[:, self.space.topics.place(topic)]
        mine = risks[self.people[user]]
        return 1 + int((~np.isnan(risks)).sum() if np.isnan(mine) else (risks > mine).sum())

    def add_post(self, user: str, time: int | None, text: str) -> tuple[Alert, ...]:
        """Take in a post and return the alerts it sets off, of whomever it moved across their line."""
        before = {who: self.rank(*who) for who in self._lines if who[0] in self.people}
        row = self._row(user)
        period = UNDATED if time is None else int(periods(time, self.options.days))
        similar = self.space.similarities(self._encoder.encode(pl.Series([text])))[0]
        weeks = self._weeks[row]
        weeks[period] = np.maximum(weeks[period], similar) if period in weeks else similar
        self.risks[row] = self._risk_of(weeks)
        return tuple(self._alerts(before))

    def _alerts(self, before: dict[tuple[str, str], int]) -> list[Alert]:
        found = []
        for (user, topic), was in before.items():
            now, line = self.rank(user, topic), self._lines[user, topic]
            if (was <= line) != (now <= line):
                found.append(Alert(topic=topic, before=was, after=now, line=line, people=len(self.people)))
        return found

    def _row(self, user: str) -> int:
        if user not in self.people:
            self.people[user] = len(self.people)
            self._weeks.append({})
            self._grow()
        return self.people[user]

    def _grow(self) -> None:
        rows = self._risks if self._risks is not None else np.zeros((0, len(self.space.topics)))
        if len(rows) < len(self.people):
            # Room for twice as many, so that newcomers cost little.
            room = np.full((max(16, len(rows)), len(self.space.topics)), np.nan)
            self._risks = np.concatenate([rows, room])

    def _risk_of(self, weeks: dict[int, Floats]) -> Floats:
        order = sorted(weeks)
        own = Peaks(
            np.zeros(len(order), np.int64),
            np.array(order, np.int64),
            np.stack([weeks[period] for period in order]),
            people=1,
        )
        return np.asarray(own.risks(self.space.topics, self.options.dimension, self.options)[0])
