"""What a community's own past says about how soon people are recognised.

Everybody's history is cut in the middle of its posts, by time. The *trial*: n posts of the later half against
everybody's earlier half. What it would have shown in advance is *rehearsed* with the earlier half alone, cut again,
in both directions. A regression over people turns rehearsals into probabilities; it is judged on people it was not
fitted on. A prediction for today uses the whole history: its two halves rehearse what comes next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.recognition.attack import Attack, Rows
from incrowd.measures.recognition.definition import halves, pick
from incrowd.measures.recognition.spec import KNOWN
from incrowd.profiles.habits import PostHabits
from incrowd.statistics import Logistic, auc, calibration_error, fit_logistic

FOLDS = 10
RIDGE = 3.0
FEWEST = 40
"""Fewer people than this teach nothing reliable about n posts."""
HUB_SAMPLE = 500

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Histories:
    """The posts of some people of a community, in the order of time."""

    posts: PostHabits
    words: Floats
    """Words of each post."""
    days: Floats
    """When each post was written, in days; NaN: unknown."""
    of: tuple[Rows, ...]
    """The posts of each person, earliest first."""
    outside: int = 0
    """People of the community who are not here."""

    def part(self, which: str) -> tuple[Rows, ...]:
        """Return everybody's "earlier" or "later" half, or a half of the earlier half: "first", "second"."""
        cut = [rows[: halves(len(rows))[0]] for rows in self.of]
        if which in ("first", "second"):
            cut_again = [halves(len(rows))[0] for rows in cut]
            return tuple(
                rows[:at] if which == "first" else rows[at:] for rows, at in zip(cut, cut_again, strict=True)
            )
        if which == "earlier":
            return tuple(cut)
        return tuple(rows[len(start) :] for rows, start in zip(self.of, cut, strict=True))

    def facts(self, rows: Rows) -> tuple[float, float, float, float]:
        """Return what a history shows without reading it: posts, words, typical length, days; logarithms."""
        if not len(rows):
            return (np.nan, np.nan, np.nan, np.nan)
        words, days = self.words[rows], self.days[rows]
        span = float(np.nanmax(days) - np.nanmin(days)) if np.isfinite(days).any() else np.nan
        parts = (len(rows) - 1, words.sum(), np.median(words), span)
        return tuple(float(np.log1p(part)) for part in parts)  # type: ignore[return-value]


@dataclass(frozen=True)
class Tried:
    """How people fared who were tried with n posts: one value a person."""

    people: Rows
    first: Floats
    """How often they were named, over the draws."""
    log_rank: Floats
    """The mean logarithm of their rank."""


@dataclass(frozen=True, eq=False)
class Contest:
    """Some posts of people against everybody's profiles."""

    histories: Histories
    profiles: tuple[Rows, ...]
    asked: tuple[Rows, ...]
    """The posts that n are drawn from, of each person."""
    draws: int
    seed: int
    memory: int

    @cached_property
    def _place(self) -> Rows:
        """Everybody's place among those with a profile; -1: none."""
        there = np.array([len(rows) > 0 for rows in self.profiles])
        return np.where(there, np.cumsum(there) - 1, -1)

    @cached_property
    def _attack(self) -> Attack:
        with_profile = [rows for rows in self.profiles if len(rows)]
        h = self.histories
        return Attack(h.posts, with_profile, outside=h.outside, memory=self.memory)

    def can_be_tried(self, n: int) -> Rows:
        """Return who has n posts to ask about and a profile to be found by."""
        enough = np.array([len(rows) >= n for rows in self.asked])
        return np.flatnonzero(enough & (self._place >= 0))

    def tried(self, n: int, people: Rows) -> Tried:
        """Draw n posts of each of some people, several times, and ask whose they are."""
        rng = np.random.default_rng([self.seed, n])
        able = self.can_be_tried(n)
        some = rng.choice(able, min(HUB_SAMPLE, len(able)), replace=False)
        hubs = self._attack.hubs([pick(self.asked[i], n, 1, rng)[0] for i in some])
        groups = [
            drawn
            for i in people
            for drawn in pick(self.asked[i], n, self.draws, np.random.default_rng([self.seed, n, int(i)]))
        ]
        authors = np.repeat(self._place[people], self.draws)
        found = self._attack.outcomes(groups, authors, hubs)
        shape = len(people), self.draws
        return Tried(
            people, found.first.reshape(shape).mean(axis=1), np.log(found.rank).reshape(shape).mean(axis=1)
        )


def contest(histories: Histories, profiles: str, asked: str, draws: int, seed: int, memory: int) -> Contest:
    """Let one part of everybody's history be asked about, and another be what is known of them."""
    return Contest(histories, histories.part(profiles), histories.part(asked), draws, seed, memory)


class Rehearsal:
    """Features of people: how they fared when one part of their history was held against another."""

    def __init__(self, there: Contest, back: Contest, known: Sequence[Rows]) -> None:
        self.there, self.back, self.known = there, back, known

    def features(self, people: Rows) -> Floats:
        """Return a row a person: the mean log rank with 1, 3, … posts (NaN: too few), and plain facts."""
        columns = [self._log_rank(n, people) for n in KNOWN]
        facts = np.array([self.there.histories.facts(self.known[i]) for i in people]).reshape(len(people), 4)
        return np.column_stack([*columns, facts])

    def _log_rank(self, n: int, people: Rows) -> Floats:
        both = [self._one_way(contest, n, people) for contest in (self.there, self.back)]
        count = np.isfinite(both).sum(axis=0)
        total = np.nansum(both, axis=0)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    @staticmethod
    def _one_way(contest: Contest, n: int, people: Rows) -> Floats:
        values = np.full(len(people), np.nan)
        able = np.isin(people, contest.can_be_tried(n))
        if able.any():
            values[able] = contest.tried(n, people[able]).log_rank
        return values


@dataclass(frozen=True)
class Judged:
    """One number of posts: who was tried, what happened, what had been predicted for each by others' histories."""

    people: Rows
    happened: Floats
    predicted: Floats

    @property
    def auc(self) -> float:
        """How well the prediction tells those recognised at least half of the time from the rest."""
        return auc(self.happened >= 0.5, self.predicted)

    @property
    def calibration_error(self) -> float:
        """The mean gap between predicted and happened."""
        return calibration_error(self.predicted, self.happened)


@dataclass(frozen=True)
class Lesson:
    """What the past taught about n posts: a regression, and how it did on people it was not fitted on."""

    model: Logistic
    judged: Judged


def learn(
    histories: Histories, *, draws: int, most: int, seed: int, memory: int, known: Iterable[int] = KNOWN
) -> dict[int, Lesson]:
    """Try people out on the later half of their history, and learn to predict it from the earlier half."""
    trial = contest(histories, "earlier", "later", draws, seed, memory)
    rehearsal = Rehearsal(
        contest(histories, "first", "second", draws, seed + 1, memory),
        contest(histories, "second", "first", draws, seed + 2, memory),
        histories.part("earlier"),
    )
    lessons = {}
    for n in known:
        able = trial.can_be_tried(n)
        able = able[[len(trial.profiles[i]) >= n for i in able]] if len(able) else able
        rng = np.random.default_rng([seed, n, 0])
        people = np.sort(rng.choice(able, min(most, len(able)), replace=False))
        if len(people) >= FEWEST:
            lessons[n] = _lesson(trial.tried(n, people), rehearsal.features(people), seed)
    return lessons


def _lesson(tried: Tried, features: Floats, seed: int) -> Lesson:
    fold = np.random.default_rng(seed).permutation(len(tried.people)) % FOLDS
    predicted = np.zeros(len(fold))
    for one in range(FOLDS):
        model = fit_logistic(features[fold != one], tried.first[fold != one], RIDGE)
        predicted[fold == one] = model.predict(features[fold == one])
    judged = Judged(tried.people, tried.first, predicted)
    return Lesson(fit_logistic(features, tried.first, RIDGE), judged)


def whole_history(histories: Histories, *, draws: int, seed: int, memory: int) -> Rehearsal:
    """Rehearse what comes next: the later half of each history against the earlier ones, and the other way round."""
    return Rehearsal(
        contest(histories, "earlier", "later", draws, seed + 1, memory),
        contest(histories, "later", "earlier", draws, seed + 2, memory),
        histories.of,
    )


def as_days(seconds: Any) -> Floats:
    """Return times as days, unknown ones as NaN."""
    return np.asarray(seconds, float) / 86_400
