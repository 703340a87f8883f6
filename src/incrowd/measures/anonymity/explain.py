"""Which words make a member stand out from their community."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from incrowd.distances.profile_index import divergence_terms
from incrowd.measures.shown_words import word_evidence
from incrowd.profiles import Profiles
from incrowd.result import Evidence


def stand_out(
    profiles: Profiles, row: int, mentioned: Collection[str] = ()
) -> tuple[tuple[Evidence, ...], float]:
    """Return each word's share of the divergence between a member and the average of all others.

    The Jensen-Shannon divergence is a sum over words of terms that are never negative, so the shares are
    exact and add up to the divergence (the square of the distance), which is returned beside them. Only words
    the member uses are named, `mentioned` people are not; words that only others use are one entry.
    """
    p = np.asarray(profiles.matrix[row].toarray()).ravel()
    others = profiles.matrix.shape[0] - 1
    if others == 0:
        return (), 0.0
    q = (np.asarray(profiles.matrix.sum(axis=0)).ravel() - p) / others
    q = np.maximum(q, 0.0)
    terms = divergence_terms(p, q)
    used = np.flatnonzero(p > 0)
    order = used[np.argsort(-terms[used], kind="stable")]
    named = ((str(profiles.vocabulary[w]), float(terms[w])) for w in order.tolist())
    evidence = [*word_evidence(named, mentioned)]
    rest = float(terms[p == 0].sum())
    evidence.append(Evidence(what="words others use and you do not", contribution=rest))
    return tuple(evidence), float(terms.sum())
