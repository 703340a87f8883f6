"""What a community's own past says about how soon people are recognised.

Everybody's history is cut in the middle of its posts, by time. The *trial*: n posts of the later half against
everybody's earlier half. What it would have shown in advance is *rehearsed* with the earlier half alone, cut again,
in both directions. A regression over people turns rehearsals into probabilities; it is judged on people it was not
fitted on. A prediction for today uses the whole history: its two halves rehearse what comes next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.recognition.attack import Attack, Hubs, Rows
from incrowd.measures.recognition.definition import halves, pick
from incrowd.measures.recognition.spec import KNOWN
from incrowd.profiles.habits import PostHabits
from incrowd.statistics import Logistic, auc, calibration_error, fit_logistic

FOLDS = 10
RIDGE = 3.0
FEWEST = 40
"""Fewer people than this teach nothing reliable about n posts."""
HUB_SAMPLE = 500
FACTS = 4

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

    def without(self, person: int) -> Histories:
        """Return everybody else's histories."""
        return replace(self, of=(*self.of[:person], *self.of[person + 1 :]))


def history_facts(words: Floats, days: Floats) -> tuple[float, ...]:
    """Return what a history shows without reading it: posts, words, typical length, days; logarithms."""
    if not len(words):
        return (np.nan,) * FACTS
    span = float(np.nanmax(days) - np.nanmin(days)) if np.isfinite(days).any() else np.nan
    return tuple(float(np.log1p(part)) for part in (len(words) - 1, words.sum(), np.median(words), span))


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
    _known_hubs: dict[int, tuple[Hubs, list[Rows]]] = field(default_factory=dict, repr=False)

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
        groups = [
            drawn
            for i in people
            for drawn in pick(self.asked[i], n, self.draws, np.random.default_rng([self.seed, n, int(i)]))
        ]
        authors = np.repeat(self._place[people], self.draws)
        found = self._attack.outcomes(groups, authors, self._hubs(n)[0])
        shape = len(people), self.draws
        return Tried(
            people, found.first.reshape(shape).mean(axis=1), np.log(found.rank).reshape(shape).mean(axis=1)
        )

    def log_rank_of_one_more(self, n: int, posts: PostHabits, known: Rows, asked: Rows) -> float:
        """Try somebody who is not among these people; NaN if too few posts are there."""
        if len(asked) < n or not len(known) or not len(self.can_be_tried(n)):
            return float("nan")
        hubs, sample = self._hubs(n)
        groups = pick(asked, n, self.draws, np.random.default_rng([self.seed, n]))
        found = self._attack.outcomes_of_one_more(posts, known, groups, hubs, sample)
        return float(np.log(found.rank).mean())

    def _hubs(self, n: int) -> tuple[Hubs, list[Rows]]:
        """Return how much each candidate attracts n posts at a time, and whose posts showed it."""
        if n not in self._known_hubs:
            rng = np.random.default_rng([self.seed, n])
            able = self.can_be_tried(n)
            some = rng.choice(able, min(HUB_SAMPLE, len(able)), replace=False)
            sample = [pick(self.asked[i], n, 1, rng)[0] for i in some]
            self._known_hubs[n] = self._attack.hubs(sample), sample
        return self._known_hubs[n]


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
        h = self.there.histories
        facts = [history_facts(h.words[self.known[i]], h.days[self.known[i]]) for i in people]
        return np.column_stack([*columns, np.array(facts).reshape(len(people), FACTS)])

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


@dataclass(frozen=True, eq=False)
class OwnHistory:
    """One person's posts in a community, earliest first, as they are or would be."""

    posts: PostHabits
    words: Floats
    days: Floats

    @property
    def rows(self) -> Rows:
        """The places of all posts."""
        return np.arange(self.posts.count)


class Rivals:
    """Everybody else in a community, ready to be held against one person's history, however often it changes.

    What comes next is rehearsed with the whole history: its later half against its earlier one, and back.
    """

    def __init__(self, others: Histories, *, draws: int, seed: int, memory: int) -> None:
        self.draws, self.seed = draws, seed
        self._ways = [
            contest(others, "earlier", "later", draws, seed + 1, memory),
            contest(others, "later", "earlier", draws, seed + 2, memory),
        ]

    def features(self, own: OwnHistory) -> Floats:
        """Return the person's features, one row, as :class:`Rehearsal` makes them for others."""
        cut = halves(own.posts.count)[0]
        earlier, later = own.rows[:cut], own.rows[cut:]
        parts = [(earlier, later), (later, earlier)]
        ranks = [
            [
                way.log_rank_of_one_more(n, own.posts, *part)
                for way, part in zip(self._ways, parts, strict=True)
            ]
            for n in KNOWN
        ]
        known = [[rank for rank in both if not np.isnan(rank)] for both in ranks]
        facts = history_facts(own.words, own.days)
        return np.array([[*(float(np.mean(both)) if both else np.nan for both in known), *facts]])


def as_days(seconds: Any) -> Floats:
    """Return times as days, unknown ones as NaN."""
    return np.asarray(seconds, float) / 86_400
