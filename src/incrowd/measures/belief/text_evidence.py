"""What somebody's words suggest about their attributes: naive Bayes, with its overconfidence taken out.

For each value of an attribute the words of the people who have it are counted; a person's own words are left out of
the counts they are judged by. Naive Bayes counts repeated and related words as independent, so the log-likelihoods
are divided by a temperature, chosen so that the attribute's values of the crowd's own members are predicted best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.errors import NotInCrowd
from incrowd.measures.belief.space import HIDDEN, Floats, Ints
from incrowd.measures.belief.table import AttributeTable

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.crowd import Crowd

TEMPERATURES = np.geomspace(1, 10_000, 33)
FEWEST_WRITERS = 3
"""A value that fewer people with words have is not judged by words."""
PSEUDO = 0.5
DRAWN = 10.0
"""So many made-up people who write like the whole crowd stand behind every value; otherwise rare words would speak
for the value with the fewest people."""


@dataclass(frozen=True, eq=False)
class WordSigns:
    """Which words go with which value of one attribute."""

    counts: Floats
    """(values, words): in how many people's words each word occurs."""
    people: Floats
    temperature: float

    def likelihood(self, used: sp.csr_matrix, own: Ints) -> Floats:
        """Return Pr[words | value] up to a factor, one row a person; `own` is their value or HIDDEN."""
        return np.asarray(
            np.exp(self._relative(_scores(used, own, self.counts, self.people)) / self.temperature)
        )

    @staticmethod
    def _relative(scores: Floats) -> Floats:
        return np.asarray(scores - scores.max(axis=1, keepdims=True))


def learn_signs(used: sp.csr_matrix, codes: Ints, size: int) -> WordSigns | None:
    """Learn from people's words (1 where a word was used) and their codes of one attribute; None: too few."""
    import scipy.sparse as sp

    known = np.flatnonzero(codes != HIDDEN)
    people = np.bincount(codes[known], minlength=size).astype(np.float64)
    if (people >= FEWEST_WRITERS).sum() < 2:
        return None
    groups = sp.csr_matrix((np.ones(len(known)), (codes[known], known)), shape=(size, used.shape[0]))
    counts = np.asarray((groups @ used).todense())
    scores = _scores(used[known], codes[known], counts, people)
    return WordSigns(counts, people, _temperature(scores, codes[known], people))


def _scores(used: sp.csr_matrix, own: Ints, counts: Floats, people: Floats) -> Floats:
    """Return each person's log-likelihood of the words they use under each value, without their own words.

    Taking a person out of their own value's counts lowers each of their words' counts by one there, so the
    corrected term is looked up, not counted again.
    """
    usual = DRAWN * (counts.sum(axis=0) + PSEUDO) / (people.sum() + 2 * PSEUDO)
    rates = (counts + usual) / (people + DRAWN)[:, None]
    # Relative to all words of a value's people, so that those who write more do not seem likelier throughout.
    length = np.log(rates.sum(axis=1, keepdims=True))
    scores = np.asarray(used @ (np.log(rates) - length).T)
    has = np.flatnonzero(own != HIDDEN)
    fewer = np.maximum(people - 1, 0)[:, None] + DRAWN
    lowered = np.log((np.maximum(counts - 1, 0) + usual) / fewer) - length
    mine = used[has]
    rows = np.repeat(np.arange(len(has)), np.diff(mine.indptr))
    terms = lowered[own[has][rows], mine.indices]
    scores[has, own[has]] = np.bincount(rows, terms, minlength=len(has))
    scores[:, people < FEWEST_WRITERS] = scores[:, people >= FEWEST_WRITERS].mean(axis=1, keepdims=True)
    return scores


def _temperature(scores: Floats, codes: Ints, people: Floats) -> float:
    """Return the temperature under which people's own values are predicted best, given how common they are."""
    usual = np.log((people + PSEUDO) / (people + PSEUDO).sum())
    fits = []
    for temperature in TEMPERATURES:
        total = scores / temperature + usual
        total -= np.logaddexp.reduce(total, axis=1, keepdims=True)
        fits.append(total[np.arange(len(codes)), codes].mean())
    return float(TEMPERATURES[int(np.argmax(fits))])


def words_by_person(crowd: Crowd, table: AttributeTable) -> tuple[sp.csr_matrix, Ints]:
    """Return who used which word at all, and each writer's row in the table (HIDDEN for none)."""
    import scipy.sparse as sp

    from incrowd.text.counts import counts

    counted = counts(crowd)
    users, person = np.unique(counted.identities["user"].to_numpy().astype(object), return_inverse=True)
    gather = sp.csr_matrix(
        (np.ones(len(person)), (person, np.arange(len(person)))), shape=(len(users), len(person))
    )
    used = (gather @ counted.matrix).tocsr()
    used.data = np.ones_like(used.data, dtype=np.float64)
    place = np.minimum(np.searchsorted(table.users, users), len(table.users) - 1)
    return used, np.where(table.users[place] == users, place, HIDDEN)


def hints_from_text(crowd: Crowd, table: AttributeTable, user: str) -> dict[int, Floats]:
    """Return what one person's words suggest about every attribute that words can tell."""
    used, rows = words_by_person(crowd, table)
    mine = np.flatnonzero(rows == table.row(user))
    if not mine.size:
        raise NotInCrowd("this person has no words in the crowd; leave --text out")
    return {
        place: signs.likelihood(used[mine], codes[mine])
        for place, codes, signs in _all_signs(table, used, rows)
    }


def _all_signs(table: AttributeTable, used: sp.csr_matrix, rows: Ints) -> list[tuple[int, Ints, Any]]:
    found = []
    for place, size in enumerate(table.space.sizes):
        codes = np.where(rows == HIDDEN, HIDDEN, table.codes[rows, place]).astype(np.int64)
        signs = learn_signs(used, codes, size)
        if signs is not None:
            found.append((place, codes, signs))
    return found
