"""How many others fit a handful of profiles, in plain NumPy.

Setting the compiled kernels up takes about a second, which is worth it for a whole crowd and not for one person.
The overlaps are the same integers; the weights are those of :mod:`definition`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from incrowd.measures.microdata.definition import Floats, Ints, fit_weights, known_sizes
from incrowd.measures.microdata.overlaps import clean

if TYPE_CHECKING:
    from incrowd.measures.microdata.anonymity_set import Marks
    from incrowd.measures.microdata.spec import Knowledge


def few_others(
    profiles: sparse.csr_matrix,
    crowd: sparse.csr_matrix,
    asked: Sequence[Knowledge],
    marks: Marks | None = None,
) -> Floats:
    """Return what :func:`anonymity_set.expected_others` does for members of the crowd: one row a knowledge."""
    crowd = clean(crowd)
    found = np.empty((len(asked), profiles.shape[0]))
    for row, size in enumerate(np.diff(profiles.indptr).tolist()):
        counts = np.bincount(_overlaps(profiles, row, crowd, marks), minlength=size + 1)
        counts[size] -= 1  # oneself
        for number, knowledge in enumerate(asked):
            found[number, row] = counts @ fit_weights(size, knowledge)
    return found


def _overlaps(profiles: sparse.csr_matrix, row: int, crowd: sparse.csr_matrix, marks: Marks | None) -> Ints:
    """Return how many of a profile's items each person of the crowd shares."""
    own = slice(profiles.indptr[row], profiles.indptr[row + 1])
    person, place, entry = _shared(profiles.indices[own], crowd)
    if marks is not None:
        agrees = np.ones(len(entry), bool)
        for known, seen, within in zip(marks.profiles[:, own], marks.crowd, marks.within, strict=True):
            # What the person has not rated nobody can know: it agrees. A rating against none does not.
            value = known[place]
            agrees &= np.isnan(value) | (np.abs(seen[entry] - value) <= np.float32(within))
        person = person[agrees]
    return np.bincount(person, minlength=crowd.shape[0])


def few_rarest_first(
    profiles: sparse.csr_matrix, crowd: sparse.csr_matrix, asked: Sequence[Knowledge]
) -> Floats:
    """Return what :func:`adversaries.rarest_first` does: one row a knowledge."""
    crowd = clean(crowd)
    popularity = np.bincount(crowd.indices, minlength=crowd.shape[1])
    found = np.empty((len(asked), profiles.shape[0]))
    for row in range(profiles.shape[0]):
        items = np.sort(profiles.indices[profiles.indptr[row] : profiles.indptr[row + 1]])
        others = _having_the_first(items[np.argsort(popularity[items], kind="stable")], crowd) - 1
        for number, knowledge in enumerate(asked):
            sizes, weights = known_sizes(len(items), knowledge)
            found[number, row] = weights @ others[sizes]
    return found


def _having_the_first(ordered: Ints, crowd: sparse.csr_matrix) -> Ints:
    """Return how many people have all of the first 0, 1, 2, ... of some items."""
    person, place, _ = _shared(ordered, crowd)
    order = np.lexsort((place, person))
    person, place = person[order], place[order]
    before = np.arange(len(person)) - np.searchsorted(person, person)
    # Nothing is missing before an entry exactly if it is its person's place-th.
    unbroken = np.bincount(person[place == before], minlength=crowd.shape[0])
    return np.cumsum(np.bincount(unbroken, minlength=len(ordered) + 1)[::-1])[::-1]


def _shared(items: Ints, crowd: sparse.csr_matrix) -> tuple[Ints, Ints, Ints]:
    """Return who has one of the items, the item's place in the list, and the crowd's entry that says so."""
    place = np.full(crowd.shape[1], -1, np.int64)
    place[items] = np.arange(len(items))
    entry = np.flatnonzero(place[crowd.indices] >= 0)
    person = np.searchsorted(crowd.indptr, entry, side="right") - 1
    return person, place[crowd.indices[entry]], entry
