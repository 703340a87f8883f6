"""What a result is to be compared with: an order that reads no words, and one that has seen labels.

The first counts in how many periods somebody wrote at all. The second, the supervised bound, is a logistic regression
on TF-IDF: for every person it is fitted to the labels of others (cross-validated). No adversary without labels can be
expected to do better by far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.measures.exposure.definition import UNDATED, Floats
from incrowd.measures.exposure.evaluation import sensitive
from incrowd.measures.exposure.peaks import Peaks
from incrowd.measures.exposure.scoring import numbers, post_batches
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.crowd import Crowd

FOLDS = 5
WEIGHT = 1.0
"""How much the labels count against the wish for small weights."""
FEWEST_PEOPLE = 10
"""Words of fewer people are left out, or of a hundredth of the people where that is less."""


def periods_written(peaks: Peaks) -> Floats:
    """Return in how many periods everybody wrote anything at all."""
    dated = peaks.person[peaks.period != UNDATED]
    return np.bincount(dated, minlength=peaks.people).astype(np.float64)


def words_of_people(crowd: Crowd, users: pl.Series, options: ExposureOptions) -> sp.csr_matrix:
    """Return how often each of some people, sorted by id, used each word; small words tell much, so they stay in."""
    import scipy.sparse as sp

    from incrowd.text.fast import Tokeniser

    tokeniser, parts = Tokeniser(TextOptions(keep_stopwords=True)), []
    for batch in post_batches(crowd, options):
        wanted = batch.filter(pl.col("user").is_in(users.implode()))
        tokens = tokeniser.numbers(wanted["text"])
        person = np.repeat(numbers(wanted["user"], users), np.diff(tokens.ends, prepend=0))
        shape = (len(users), len(tokeniser.vocabulary()))
        parts.append(sp.coo_matrix((np.ones(len(person)), (person, tokens.numbers)), shape).tocsr())
    for part in parts:
        part.resize((len(users), len(tokeniser.vocabulary())))
    return sum(parts[1:], parts[0])


def tfidf(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Weigh words by (1 + ln count) times how rare they are among people, every person to length 1."""
    import scipy.sparse as sp

    from incrowd.profiles import from_matrix
    from incrowd.profiles import tfidf as weighed

    held = np.bincount(counts.indices, minlength=counts.shape[1])
    fewest = max(1, min(FEWEST_PEOPLE, counts.shape[0] // 100))
    common, everybody = from_matrix(counts[:, held >= fewest]), np.arange(counts.shape[0])
    rows = weighed(common, domain=everybody, sublinear=True).matrix
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return (sp.diags(1 / np.maximum(length, 1e-12)) @ rows).tocsr()


def fit(features: sp.csr_matrix, truth: NDArray[np.bool_]) -> Floats:
    """Return the weights of a logistic regression with a penalty on their squares, the intercept last.

    Ten lines over SciPy's optimiser: scikit-learn would be a heavy dependency for one smooth sum. A test holds the
    two equal.
    """
    from scipy.optimize import minimize

    sign = np.where(truth, 1.0, -1.0)

    def loss(weights: Any) -> tuple[float, Any]:
        margin = sign * (features @ weights[:-1] + weights[-1])
        pull = -WEIGHT * sign / (1 + np.exp(margin))
        gradient = np.append(weights[:-1] + features.T @ pull, pull.sum())
        return float(0.5 * weights[:-1] @ weights[:-1] + WEIGHT * np.logaddexp(0, -margin).sum()), gradient

    start = np.zeros(features.shape[1] + 1)
    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 300}).x)


def supervised_risks(features: sp.csr_matrix, votes: Floats, *, seed: int = 0) -> Floats:
    """Return a score for everybody from a model that has seen the labels of others only.

    NaN if fewer than two people are labelled on either side: nothing can then be learnt and checked.
    """
    truth = sensitive(votes)
    folds = min(FOLDS, int(truth.sum()), int((~truth).sum()))
    scores = np.full(len(truth), np.nan)
    if folds < 2:
        return scores
    fold = np.empty(len(truth), np.int64)
    rng = np.random.default_rng(seed)
    for side in (truth, ~truth):
        fold[side] = rng.permutation(int(side.sum())) % folds
    for number in range(folds):
        inside = fold == number
        weights = fit(features[~inside], truth[~inside])
        scores[inside] = features[inside] @ weights[:-1] + weights[-1]
    return scores
