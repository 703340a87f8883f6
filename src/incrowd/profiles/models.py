"""Word counts become profiles: frequencies, presence, or weighed by rarity.

Each model takes the counts of :mod:`incrowd.text`, or any matrix of counts (rows: identities, columns: words)
through :func:`from_matrix`. Identities without a word have no profile; they are left out and counted under
``empty_profile``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.errors import InputError
from incrowd.profiles.profiles import Profiles

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.text.counts import Counts


def unigram(counts: Counts | Profiles) -> Profiles:
    """Return word frequencies: ``p(w) = count(w) / all counts``; rows sum to 1."""
    return _modelled(counts, "unigram", lambda rows: rows)


def indicator(counts: Counts | Profiles) -> Profiles:
    """Return which words occur at all, each with the same weight; rows sum to 1."""
    return _modelled(counts, "indicator", lambda rows: (rows > 0).astype(np.float64))


def tfidf(counts: Counts | Profiles, *, domain: Any = None, sublinear: bool = False) -> Profiles:
    """Return frequencies weighed by rarity, ``tf * (ln((1+n)/(1+df)) + 1)``; rows sum to 1.

    Parameters
    ----------
    domain
        Rows (numbers or mask) over which rarity is counted: the target community and the source profile.
        None: all rows.
    sublinear
        Use ``1 + ln(tf)`` in place of tf, so that repeating a word adds little.
    """

    def weigh(rows: sp.csr_matrix) -> sp.csr_matrix:
        seen = rows if domain is None else rows[np.asarray(domain)]
        holders = np.bincount(seen.indices, minlength=rows.shape[1])
        rarity = np.log((1 + seen.shape[0]) / (1 + holders)) + 1
        weighed = rows.copy()
        damped = 1 + np.log(rows.data) if sublinear else rows.data
        weighed.data = damped * rarity[rows.indices]
        return weighed

    return _modelled(counts, "tfidf", weigh, keep_empty=domain is not None)


MODELS: dict[str, Callable[..., Profiles]] = {"unigram": unigram, "indicator": indicator, "tfidf": tfidf}


def build(model: str, counts: Counts | Profiles) -> Profiles:
    """Return the profiles of a model chosen by name."""
    if model not in MODELS:
        raise InputError(f"model must be one of {', '.join(MODELS)}; got '{model}'")
    return MODELS[model](counts)


def from_matrix(matrix: Any, *, ids: Any = None, vocabulary: Sequence[str] | None = None) -> Profiles:
    """Wrap a plain matrix or data frame of counts, so that the models above can take it.

    `matrix` is anything SciPy or NumPy can read as rows of counts, or a data frame (pandas, Polars, Arrow)
    whose columns are the words.
    """
    import polars as pl
    import scipy.sparse as sp

    if not sp.issparse(matrix) and not isinstance(matrix, np.ndarray | list | tuple):
        import narwhals as nw

        frame = nw.from_native(matrix, eager_only=True)
        matrix, vocabulary = frame.to_numpy(), vocabulary or frame.columns
    rows = sp.csr_matrix(matrix, dtype=np.float64)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if rows.nnz and not (rows.data > 0).all():
        raise InputError("from_matrix: counts must be numbers of at least 0")
    names = pl.DataFrame({"user": range(rows.shape[0]) if ids is None else list(ids)})
    words = vocabulary if vocabulary is not None else [str(i) for i in range(rows.shape[1])]
    if names.height != rows.shape[0] or len(words) != rows.shape[1]:
        raise InputError(
            f"from_matrix: {rows.shape[0]} rows and {rows.shape[1]} columns, but {names.height} ids and "
            f"{len(words)} words"
        )
    return Profiles(matrix=rows, ids=names, vocabulary=words, model="counts")


def _modelled(
    counts: Counts | Profiles,
    model: str,
    weigh: Callable[[sp.csr_matrix], sp.csr_matrix],
    *,
    keep_empty: bool = False,
) -> Profiles:
    import scipy.sparse as sp

    raw = sp.csr_matrix(counts.matrix, dtype=np.float64)
    ids = counts.ids if isinstance(counts, Profiles) else counts.identities
    dropped = dict(counts.dropped) if isinstance(counts, Profiles) else _by_reason(counts)
    filled = np.diff(raw.indptr) > 0
    if not filled.all() and not keep_empty:
        dropped["empty_profile"] = dropped.get("empty_profile", 0) + int((~filled).sum())
        raw, ids = raw[filled], ids.filter(filled)
    rows = weigh(raw)
    totals = np.asarray(rows.sum(axis=1)).ravel()
    rows = sp.csr_matrix(sp.diags(1.0 / np.where(totals > 0, totals, 1.0)) @ rows)
    words = list(counts.vocabulary)
    return Profiles(matrix=rows, ids=ids, vocabulary=words, model=model, dropped=dropped)


def _by_reason(counts: Counts) -> dict[str, int]:
    return dict(counts.dropped.group_by("reason").len().sort("reason").iter_rows())
