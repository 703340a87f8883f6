"""The identity models of paper 003, for two communities at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from incrowd.profiles import indicator, tfidf, unigram

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.crowd import Crowd
    from incrowd.measures.linkability.meeting import Meeting
    from incrowd.measures.linkability.spec import LinkabilityOptions


def model_rows(
    crowd: Crowd, meeting: Meeting, options: LinkabilityOptions
) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the rows of the sources and of the targets under the chosen model."""
    if options.model == "topics":
        rows = _topic_rows(crowd, meeting, options)
    elif options.model == "tfidf":
        # Rarity is counted in the target community, as the adversary who searches it would.
        rows = tfidf(meeting.counts, domain=meeting.targets).matrix
    else:
        rows = {"unigram": unigram, "indicator": indicator}[options.model](meeting.counts).matrix
    return rows[np.asarray(meeting.sources)], rows[np.asarray(meeting.targets)]


def _topic_rows(crowd: Crowd, meeting: Meeting, options: LinkabilityOptions) -> sp.csr_matrix:
    """Fit author topics to both communities' posts; every identity is an author of its own."""
    import polars as pl
    import scipy.sparse as sp

    from incrowd.profiles.author_topics import author_topics
    from incrowd.text.tokeniser import Tokeniser

    authors = meeting.counts.identities.select("user", "community").with_row_index("author")
    posts = (
        crowd.posts()
        .filter(pl.col("community").is_in([options.source, options.target]))
        .join(authors.lazy(), on=["user", "community"])
        .sort("author", "time", "text")
        .select("author", "text")
        .collect()
    )
    tokeniser = Tokeniser(options.text)
    tokens = tokeniser.numbers(posts["text"])
    owners = np.repeat(np.arange(posts.height), tokens.lengths)
    mixtures = author_topics(
        tokens.numbers,
        owners,
        posts["author"].to_numpy(),
        len(tokeniser.vocabulary()),
        seed=options.seed,
    )
    return sp.csr_matrix(mixtures)
