"""What somebody's words suggest about their attributes: naive Bayes, with its overconfidence taken out.

For each value of an attribute the words of the people who have it are counted; a person's own words are left out of
the counts they are judged by. Naive Bayes counts repeated and related words as independent, so the log-likelihoods
are divided by a temperature, chosen so that the attribute's values of the crowd's own members are predicted best.
With topics (name: words), the words of a topic are counted together, and words of no topic say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.profiles.attributes import HIDDEN, AttributeTable, Floats, Ints
from incrowd.text.counting import counts

Topics = Mapping[str, Sequence[str]]
TEMPERATURES = np.geomspace(1, 10_000, 33)
FEWEST_WRITERS = 3
"""A value that fewer people with words have is not judged by words."""
PSEUDO = 0.5
DRAWN = 10.0
"""So many made-up people who write like the whole crowd stand behind every value; otherwise rare words would speak
for the value with the fewest people."""


@dataclass(frozen=True, eq=False)
class Signs:
    """Which features (words, or topics) go with which value of one attribute."""

    counts: Floats
    """(values, features): how often the people with each value use each feature; a word counts once a person."""
    people: Floats
    temperature: float

    @property
    def usual(self) -> Floats:
        """How common each value is among people who write."""
        return np.asarray((self.people + PSEUDO) / (self.people + PSEUDO).sum())

    def likelihood(self, used: sp.csr_matrix, own: Ints) -> Floats:
        """Return Pr[words | value] up to a factor, one row per person; `own` is their value or HIDDEN."""
        return relative(_scores(used, own, self.counts, self.people) / self.temperature)

    def scores_of(self, used: Floats, own: int) -> Floats:
        """Return what a use of each feature adds to each value's log-likelihood, without this person's own uses.

        (features, values); `used` is how often the person uses each feature.
        """
        rates, usual, length = _rates(self.counts, self.people)
        scores = (np.log(rates) - length[:, None]).T
        if own != HIDDEN:
            scores[:, own] = _lowered(self.counts[own], used, usual, self.people[own]) - length[own]
        return np.asarray(_unjudged(scores, self.people) / self.temperature)


def relative(scores: Floats) -> Floats:
    """Return likelihoods from log-likelihoods, the largest of each row being 1."""
    return np.asarray(np.exp(scores - scores.max(axis=1, keepdims=True)))


def learn_signs(used: sp.csr_matrix, codes: Ints, size: int) -> Signs | None:
    """Learn from people's features (how many words of each they used) and their codes; None: too few people."""
    known = np.flatnonzero(codes != HIDDEN)
    people = np.bincount(codes[known], minlength=size).astype(np.float64)
    if (people >= FEWEST_WRITERS).sum() < 2:
        return None
    groups = sp.csr_matrix((np.ones(len(known)), (codes[known], known)), shape=(size, used.shape[0]))
    counts = np.asarray((groups @ used).todense())
    scores = _scores(used[known], codes[known], counts, people)
    return Signs(counts, people, _temperature(scores, codes[known], people))


def _rates(counts: Floats, people: Floats) -> tuple[Floats, Floats, Floats]:
    """Return uses a person of each feature by value, what a made-up person adds, and the log of all uses by value.

    Rates are later taken relative to all uses of a value's people, so that those who write more do not seem
    likelier throughout.
    """
    usual = DRAWN * (counts.sum(axis=0) + PSEUDO) / (people.sum() + 2 * PSEUDO)
    rates = (counts + usual) / (people + DRAWN)[:, None]
    return rates, usual, np.log(rates.sum(axis=1))


def _lowered(counts: Floats, used: Floats, usual: Floats, people: Floats | float) -> Floats:
    """Return the log-rates of a value without one of its people."""
    return np.asarray(np.log((np.maximum(counts - used, 0) + usual) / (np.maximum(people - 1, 0) + DRAWN)))


def _unjudged(scores: Floats, people: Floats) -> Floats:
    """Give values of too few people what the others have on average: their words say nothing."""
    few = people < FEWEST_WRITERS
    scores[:, few] = scores[:, ~few].mean(axis=1, keepdims=True)
    return scores


def _scores(used: sp.csr_matrix, own: Ints, counts: Floats, people: Floats) -> Floats:
    """Return each person's log-likelihood of the words they use under each value, without their own words.

    Taking a person out of their own value's counts changes the terms of the features they use there and no
    others, so these are looked up, not counted again.
    """
    rates, usual, length = _rates(counts, people)
    scores = np.asarray(used @ (np.log(rates) - length[:, None]).T)
    has = np.flatnonzero(own != HIDDEN)
    mine = used[has]
    rows, features = np.repeat(np.arange(len(has)), np.diff(mine.indptr)), mine.indices
    value = own[has][rows]
    terms = _lowered(counts[value, features], mine.data, usual[features], people[value]) - length[value]
    scores[has, own[has]] = np.bincount(rows, mine.data * terms, minlength=len(has))
    return _unjudged(scores, people)


def _temperature(scores: Floats, codes: Ints, people: Floats) -> float:
    """Return the temperature under which people's own values are predicted best, given how common they are."""
    usual = np.log((people + PSEUDO) / (people + PSEUDO).sum())
    fits = []
    for temperature in TEMPERATURES:
        total = scores / temperature + usual
        total -= np.logaddexp.reduce(total, axis=1, keepdims=True)
        fits.append(total[np.arange(len(codes)), codes].mean())
    return float(TEMPERATURES[int(np.argmax(fits))])


@dataclass(frozen=True, eq=False)
class Words:
    """Who of a crowd used which word at all, and where."""

    identities: sp.csr_matrix
    """(identities, words): how often; an identity is one person in one community."""
    person: Ints
    """Each identity's writer."""
    community: NDArray[np.object_]
    posts: Ints
    rows: Ints
    """Each writer's row in the table, HIDDEN for none."""
    pool: sp.csr_matrix | None = None
    """(words, topics): 1 where a word belongs to a topic; None: every word stands for itself."""

    def used(self) -> sp.csr_matrix:
        """Return how many words of each feature every writer used; each word counts once."""
        many = len(self.person)
        gather = sp.csr_matrix((np.ones(many), (self.person, np.arange(many))), shape=(len(self.rows), many))
        used = (gather @ self.identities).tocsr()
        used.data = np.ones_like(used.data, dtype=np.float64)
        return used if self.pool is None else (used @ self.pool).tocsr()

    def codes(self, table: AttributeTable, place: int) -> Ints:
        """Return every writer's value of an attribute."""
        return np.where(self.rows == HIDDEN, HIDDEN, table.codes[self.rows, place]).astype(np.int64)


def read_words(crowd: Crowd, table: AttributeTable, topics: Topics | None = None) -> Words:
    """Count the words of everybody who writes in a crowd."""
    counted = counts(crowd)
    users, person = np.unique(counted.identities["user"].to_numpy().astype(object), return_inverse=True)
    place = np.minimum(np.searchsorted(table.users, users), len(table.users) - 1)
    return Words(
        counted.matrix,
        person,
        counted.identities["community"].to_numpy().astype(object),
        counted.identities["posts"].to_numpy().astype(np.int64),
        np.where(table.users[place] == users, place, HIDDEN),
        None if topics is None else _pool(np.asarray(counted.vocabulary).tolist(), topics),
    )


def _pool(vocabulary: Sequence[str], topics: Topics) -> sp.csr_matrix:
    """Return which word belongs to which topic; topics without a word of this crowd are left out."""
    column = {word: place for place, word in enumerate(vocabulary)}
    found = [sorted({column[word] for word in words if word in column}) for words in topics.values()]
    found = [places for places in found if places]
    if not found:
        raise InputError("topics: nobody in this crowd uses a word of any topic; give topics in its language")
    rows = np.concatenate(found)
    columns = np.repeat(np.arange(len(found)), [len(places) for places in found])
    return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(vocabulary), len(found)))
