"""Topics of authors, kept apart from topics of documents (DADT; Seroussi, Zukerman & Bohnert 2014).

Every word of a post comes either from what the post is about (a *document topic*) or from how its author
writes (an *author topic*); the two kinds of topics share no counts. A profile is the author's mixture of
author topics. Fitted by collapsed Gibbs sampling: the chance that a word w of author a in post d comes from
author topic t is proportional to::

    (A_a + delta) * (n_at + alpha) / (A_a + T * alpha) * (n_tw + beta) / (n_t + V * beta)

where A_a counts a's words that come from author topics; for document topics the post's counts take the place
of the author's. Profiles are averages over the last sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
