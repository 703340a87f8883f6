"""What a community's own past says about how soon people are recognised.

Everybody's history is cut in the middle of its posts, by time. The *trial*: n posts of the later half against
everybody's earlier half. What it would have shown in advance is *rehearsed* with the earlier half alone, cut again,
in both directions. A regression over people turns rehearsals into probabilities, one for all numbers of posts, because
few are recognised by one post and what ten posts show of people holds for one, too; its weights are drawn to those of
other communities (:data:`EXPECTED`), and it is judged on people it was not fitted on. A
prediction for today uses the whole history: its two halves rehearse what comes next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.recognition.attack import Attack, Hubs, Rows
from incrowd.measures.recognition.definition import halves, pick
from incrowd.measures.recognition.spec import KNOWN, RIDGE, How
from incrowd.profiles.habits import PostHabits
from incrowd.statistics import Expected, Logistic, auc, calibration_error, fit_along

FOLDS = 10
FEWEST = 40
"""Fewer people than this teach nothing reliable about n posts."""
MANY_POSTS = 10
HUB_SAMPLE = 500
FACTS = 4

Floats = NDArray[np.float64]

EXPECTED = Expected(
    weights=np.array([-0.13, -0.362, -0.131, -0.162, 0.304, 0.087, 0.138, 0.082, -0.509, 0.738, 0.04, -0.21]),
    moves=np.array(
        [0.076, -0.156, -0.08, -0.129, 0.021, -0.044, -0.073, -0.02, 0.142, 0.184, -0.007, -0.049]
    ),
    amount=3.0,
)
"""What other communities taught about recognising people, in the order of `FEATURES` in `spec.py`, for somebody who has
read three posts: the mean of what was found in two communities of a public data set (`python -m
benchmarks.recognition_learnt`; NOTES.md says how strength and communities were chosen).

A hundred and fifty people, as many as one person's answer can wait for, leave the weights of a regression to chance, so
they are drawn to these. Columns are standardised within their community, which is why weights of one hold for another.
"""


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
    """How people fared who were tried with n posts: one value per person."""

    people: Rows
    first: Floats
    """How often they were named, over the draws."""
    log_rank: Floats
    """The mean logarithm of their rank."""
    likeness: Floats
    """How like their posts are to their profile, on average, in units of how like everybody is."""


@dataclass(frozen=True, eq=False)
class Contest:
    """Some posts of people against everybody's profiles."""

    histories: Histories
    profiles: tuple[Rows, ...]
    asked: tuple[Rows, ...]
    """The posts that n are drawn from, of each person."""
    how: How
    _known_hubs: dict[int, Hubs] = field(default_factory=dict, repr=False)

    @cached_property
    def _place(self) -> Rows:
        """Everybody's place among those with a profile; -1: none."""
        there = np.array([len(rows) > 0 for rows in self.profiles])
        return np.where(there, np.cumsum(there) - 1, -1)

    @cached_property
    def _attack(self) -> Attack:
        with_profile = [rows for rows in self.profiles if len(rows)]
        h = self.histories
        return Attack(h.posts, with_profile, outside=h.outside, memory=self.how.memory)

    def can_be_tried(self, n: int) -> Rows:
        """Return who has n posts to ask about and a profile to be found by."""
        enough = np.array([len(rows) >= n for rows in self.asked])
        return np.flatnonzero(enough & (self._place >= 0))

    def tried(self, n: int, people: Rows) -> Tried:
        """Draw n posts of each of some people, several times, and ask whose they are."""
        draws, seed = self.how.draws, self.how.seed
        groups = [
            drawn
            for i in people
            for drawn in pick(self.asked[i], n, draws, np.random.default_rng([seed, n, int(i)]))
        ]
        authors = np.repeat(self._place[people], draws)
        found = self._attack.outcomes(self.histories.posts, groups, authors, self._hubs(n))
        each = found.first, np.log(found.rank), found.likeness
        return Tried(people, *(values.reshape(len(people), draws).mean(axis=1) for values in each))

    def among_others(self) -> AmongOthers:
        """Make ready for somebody who is not among these people; their posts are not needed any more."""
        hubs = {n: self._learn_hubs(n, one_more=True) for n in KNOWN if len(self.can_be_tried(n))}
        return AmongOthers(self._attack, hubs, self.how)

    def _hubs(self, n: int) -> Hubs:
        if n not in self._known_hubs:
            self._known_hubs[n] = self._learn_hubs(n)
        return self._known_hubs[n]

    def _learn_hubs(self, n: int, *, one_more: bool = False) -> Hubs:
        """Return how much each candidate attracts n posts at a time."""
        rng = np.random.default_rng([self.how.seed, n])
        able = self.can_be_tried(n)
        some = rng.choice(able, min(HUB_SAMPLE, len(able)), replace=False)
        groups = [pick(self.asked[i], n, 1, rng)[0] for i in some]
        return self._attack.hubs(self.histories.posts, groups, one_more=one_more)


@dataclass(frozen=True, eq=False)
class AmongOthers:
    """Everybody else's profiles, and who of them attracts posts, ready for one more person."""

    attack: Attack
    hubs: Mapping[int, Hubs]
    how: How

    def tried(self, known: PostHabits, asked: PostHabits) -> dict[int, tuple[float, float]]:
        """Try the person (`known` makes the profile) with each number of posts they have: mean log rank, likeness."""
        tried = [n for n in self.hubs if asked.count >= n and known.count]
        if not tried:
            return {}
        posts = np.arange(asked.count)
        groups = [pick(posts, n, self.how.draws, np.random.default_rng([self.how.seed, n])) for n in tried]
        found = self.attack.outcomes_of_one_more(known, asked, groups, [self.hubs[n] for n in tried])
        means = [(float(np.log(one.rank).mean()), float(one.likeness.mean())) for one in found]
        return dict(zip(tried, means, strict=True))


def contest(histories: Histories, profiles: str, asked: str, how: How) -> Contest:
    """Let one part of everybody's history be asked about, and another be what is known of them."""
    return Contest(histories, histories.part(profiles), histories.part(asked), how)


def features(
    histories: Histories, known: tuple[str, str], of: Sequence[Rows], people: Rows, how: How
) -> Floats:
    """Return how people fared when two parts of their history, `known`, were held against each other.

    One row per person: the mean log rank and the likeness with 1, 3, … posts over both directions (NaN: too few posts),
    and plain facts of the posts that are known `of` everybody. One direction after the other: each holds everybody's
    profiles.
    """
    total, count = np.zeros((len(people), 2, len(KNOWN))), np.zeros((len(people), 1, len(KNOWN)))
    for turn, parts in enumerate((known, known[::-1]), start=1):
        way = contest(histories, *parts, replace(how, seed=how.seed + turn))
        for place, n in enumerate(KNOWN):
            able = np.isin(people, way.can_be_tried(n))
            if able.any():
                tried = way.tried(n, people[able])
                total[able, :, place] += np.column_stack([tried.log_rank, tried.likeness])
                count[able, :, place] += 1
    rehearsed = np.where(count > 0, total / np.maximum(count, 1), np.nan).reshape(len(people), -1)
    facts = [history_facts(histories.words[of[i]], histories.days[of[i]]) for i in people]
    return np.column_stack([rehearsed, np.array(facts).reshape(len(people), FACTS)])


@dataclass(frozen=True)
class Judged:
    """One number of posts: who was tried, what happened, what had been predicted for each by others' histories."""

    people: Rows
    happened: Floats
    predicted: Floats
    posts: Rows
    """In the earlier half of each: what the prediction had to go by."""

    def part(self, which: Rows) -> Judged:
        """Return some of the people, by their places here."""
        return Judged(*(getattr(self, name)[which] for name in ("people", "happened", "predicted", "posts")))

    @property
    def auc(self) -> float:
        """How well the prediction tells those recognised at least half of the time from the rest."""
        return auc(self.happened >= 0.5, self.predicted)

    @property
    def auc_of_many_posts(self) -> float:
        """The same among people of whose earlier half there were at least ten posts."""
        many = self.posts >= MANY_POSTS
        return auc(self.happened[many] >= 0.5, self.predicted[many])

    @property
    def calibration_error(self) -> float:
        """The mean gap between predicted and happened."""
        return calibration_error(self.predicted, self.happened)


@dataclass(frozen=True)
class Lesson:
    """What the past taught about n posts: a regression, and how it did on people it was not fitted on."""

    model: Logistic
    judged: Judged


@dataclass(frozen=True)
class Examples:
    """What a regression learns from: each person tried, once for each number of posts."""

    happened: Mapping[int, Tried]
    everybody: Rows
    """Who was tried with any number of posts."""
    features: Floats
    """Of each of them, by the earlier half."""
    posts: Rows
    """In the earlier half of each of them."""

    @cached_property
    def known(self) -> Rows:
        """The number of posts of each example."""
        return np.repeat(list(self.happened), [len(one.people) for one in self.happened.values()])

    @cached_property
    def person(self) -> Rows:
        """Whose example it is, as a place among everybody."""
        tried = [one.people for one in self.happened.values()]
        return np.searchsorted(self.everybody, np.concatenate(tried))

    @cached_property
    def share(self) -> Floats:
        """How often they were named."""
        return np.concatenate([one.first for one in self.happened.values()])

    def fit(self, which: Any, ridge: float, expected: Expected | None) -> dict[int, Logistic]:
        """Fit a regression to some of the examples."""
        person = self.person[which]
        return fit_along(self.features[person], self.share[which], self.known[which], person, ridge, expected)


def examples(histories: Histories, how: How, *, most: int, known: Iterable[int] = KNOWN) -> Examples | None:
    """Try people out on the later half of their history, and rehearse it with the earlier half; None: too few."""
    happened = _tried_out(histories, how, most, known)
    if not happened:
        return None
    everybody = np.unique(np.concatenate([one.people for one in happened.values()]))
    earlier = histories.part("earlier")
    found = features(histories, ("first", "second"), earlier, everybody, how)
    return Examples(happened, everybody, found, np.array([len(earlier[i]) for i in everybody]))


def learn(histories: Histories, how: How, *, most: int, known: Iterable[int] = KNOWN) -> dict[int, Lesson]:
    """Try people out on the later half of their history, and learn to predict it from the earlier half."""
    tried = examples(histories, how, most=most, known=known)
    return {} if tried is None else _lessons(tried, how.seed)


def _tried_out(histories: Histories, how: How, most: int, known: Iterable[int]) -> dict[int, Tried]:
    trial = contest(histories, "earlier", "later", how)
    # The same people are tried with every number of posts, as far as they have so many: each is rehearsed once.
    turn = np.random.default_rng([how.seed, 0]).permutation(len(histories.of))
    chosen = {n: _first(_able(trial, n), turn, most) for n in known}
    return {n: trial.tried(n, people) for n, people in chosen.items() if len(people) >= FEWEST}


def _able(trial: Contest, n: int) -> Rows:
    """Return who has n posts in both halves."""
    able = trial.can_be_tried(n)
    return able[[len(trial.profiles[i]) >= n for i in able]] if len(able) else able


def _first(people: Rows, turn: Rows, most: int) -> Rows:
    """Return those whose turn comes first, in order."""
    return np.sort(people[np.argsort(turn[people])[:most]])


def _lessons(tried: Examples, seed: int) -> dict[int, Lesson]:
    """Fit all numbers of posts together, and once more without each tenth of the people, to be judged on them."""
    fold = (np.random.default_rng(seed).permutation(len(tried.everybody)) % FOLDS)[tried.person]
    predicted = np.zeros(len(fold))
    for left_out in range(FOLDS):
        for n, model in tried.fit(fold != left_out, RIDGE, EXPECTED).items():
            asked = (fold == left_out) & (tried.known == n)
            predicted[asked] = model.predict(tried.features[tried.person[asked]])
    models = tried.fit(slice(None), RIDGE, EXPECTED)
    lessons = {}
    for n, one in tried.happened.items():
        asked = tried.known == n
        posts = tried.posts[tried.person[asked]]
        lessons[n] = Lesson(models[n], Judged(one.people, one.first, predicted[asked], posts))
    return lessons


@dataclass(frozen=True, eq=False)
class OwnHistory:
    """One person's posts in a community, earliest first, as they are or would be."""

    posts: PostHabits
    words: Floats
    days: Floats
    cut: int
    """So many posts belong to the earlier half; after a change still those that did before."""

    @property
    def earlier(self) -> PostHabits:
        """The posts of the earlier half."""
        return self.posts.only(slice(None, self.cut))

    @property
    def later(self) -> PostHabits:
        """The posts of the later half."""
        return self.posts.only(slice(self.cut, None))


class Rivals:
    """Everybody else in a community, ready to be held against one person's history, however often it changes.

    What comes next is rehearsed with the whole history: its later half against its earlier one, and back.
    """

    def __init__(self, others: Histories, how: How) -> None:
        parts = ("earlier", "later"), ("later", "earlier")
        self._ways = [
            contest(others, *part, replace(how, seed=how.seed + turn)).among_others()
            for turn, part in enumerate(parts, start=1)
        ]

    @property
    def rarity(self) -> dict[str, NDArray[np.float32]]:
        """How rare each habit is among the others, by family."""
        return self._ways[0].attack.rarity

    def features(self, own: OwnHistory, elsewhere: OwnHistory) -> Floats:
        """Return the person's features, one row, as :func:`features` makes them for others.

        `own` is what the community holds of them, perhaps after changes; `elsewhere` is how they wrote before: what
        somebody has read in another place does not change with it.
        """
        parts = [(own.earlier, elsewhere.later), (own.later, elsewhere.earlier)]
        tried = [way.tried(*part) for way, part in zip(self._ways, parts, strict=True)]
        both = [[one[n] for one in tried if n in one] or [(np.nan, np.nan)] for n in KNOWN]
        means = np.array([np.mean(some, axis=0) for some in both])
        return np.array([[*means.T.ravel(), *history_facts(own.words, own.days)]])


def as_days(seconds: Any) -> Floats:
    """Return times as days, unknown ones as NaN."""
    return np.asarray(seconds, float) / 86_400
