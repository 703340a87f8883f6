"""Word counts become profiles: frequencies, presence, or weighed by rarity.

Each model takes the counts of :mod:`incrowd.text`, or any matrix of counts (rows: identities, columns: words)
through :func:`from_matrix`. Identities without a word have no profile; they are left out and counted under
``empty_profile``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.text.counting import Counts, counts
from incrowd.text.options import TextOptions

# What the adversary sees of each identity, as one sparse row.


@dataclass(frozen=True, kw_only=True)
class Profiles:
    """Sparse rows with the identities they belong to."""

    matrix: sp.csr_matrix
    """One row per identity; rows sum to 1 where the model says so."""
    ids: pl.DataFrame
    """Who the rows are: columns user, community, posts, or whatever the caller brought."""
    vocabulary: Sequence[str]
    """What the columns are."""
    model: str
    dropped: dict[str, int] = field(default_factory=dict)
    """How many identities have no row, by reason."""

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def only(self, rows: Any) -> Profiles:
        """Return some of the profiles, chosen by row numbers or a mask."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return replace(self, matrix=self.matrix[chosen], ids=self.ids[chosen.tolist()])


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

    if not sp.issparse(matrix) and not isinstance(matrix, np.ndarray | list | tuple):
        import narwhals as nw  # only for tables that are not Polars; it takes a tenth of a second

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


# Profiles that forget: what was written lately counts more.

DAY = 86_400
PERIOD_DAYS = 7


def recent_counts(
    crowd: Crowd,
    half_life: float,
    *,
    communities: Iterable[str] | None = None,
    options: TextOptions | None = None,
    min_posts: int = 1,
    memory: int = 2**30,
) -> Counts:
    """Count words week by week and halve their weight for every `half_life` days before the last post.

    Posts without a time have no place in this; identities that have only such posts are left out.
    """
    week = (pl.col("time") // (PERIOD_DAYS * DAY)).alias("week")
    by_week = counts(
        crowd,
        communities=communities,
        options=options,
        min_posts=min_posts,
        period=week,
        memory=memory,
    )
    return fade(by_week, half_life)


def fade(by_week: Counts, half_life: float) -> Counts:
    """Add up an identity's weeks, each weighed by ``2 ** (-age / half_life)``, age in days."""

    if not half_life > 0:
        raise InputError(f"half-life must be a number of days above 0, got {half_life:g}")
    dated = by_week.identities["period"].is_not_null().to_numpy()
    ids = by_week.identities.filter(dated).with_columns(pl.col("period").cast(pl.Int64))
    if not ids.height:
        raise InputError("half-life: no post has a time, so none is more recent than another")
    week = ids["period"].to_numpy()
    age = (week.max() - week) * float(PERIOD_DAYS)
    weight = np.exp2(-age / half_life)
    owner = ids.select(pl.struct("community", "user").rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    rows = by_week.matrix[np.flatnonzero(dated)]
    gather = sp.csr_matrix((weight, (owner, np.arange(ids.height))), shape=(owner.max() + 1, ids.height))
    identities = (
        ids.group_by("community", "user").agg(pl.col("posts").sum()).sort("community", "user")
    ).select("user", "community", "posts")
    return replace(by_week, matrix=sp.csr_matrix(gather @ rows), identities=identities)


Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True, kw_only=True)
class AuthorTopicOptions:
    """Size and length of the fit."""

    author_topics: int = 25
    document_topics: int = 25
    sweeps: int = 60
    averaged: int = 10
    """Last sweeps that are averaged."""
    alpha: float = 0.1
    beta: float = 0.01
    delta: float = 1.0


def author_topics(
    words: Ints,
    posts: Ints,
    authors: Ints,
    vocabulary: int,
    *,
    options: AuthorTopicOptions | None = None,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Return each author's mixture of author topics; rows sum to 1.

    Parameters
    ----------
    words
        The number of each word, post after post.
    posts
        The number of the post each word is in.
    authors
        The author of each post.
    """
    from incrowd.profiles.kernels import sample

    chosen = options or AuthorTopicOptions()
    people = int(authors.max()) + 1 if authors.size else 0
    if not words.size:
        return np.full((people, chosen.author_topics), 1 / chosen.author_topics)
    mixtures: Any = sample(
        words.astype(np.int32),
        posts.astype(np.int32),
        authors.astype(np.int32),
        vocabulary,
        people,
        chosen.author_topics,
        chosen.document_topics,
        chosen.sweeps,
        chosen.averaged,
        chosen.alpha,
        chosen.beta,
        chosen.delta,
        seed,
    )
    return np.asarray(mixtures)
