"""Two communities side by side: the profiles in each, and who is in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.crowd import Crowd
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.profiles import indicator, tfidf, unigram
from incrowd.profiles.models import author_topics, recent_counts
from incrowd.text.counting import Counts, counts
from incrowd.text.tokeniser import Tokeniser

Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class TwoCommunities:
    """Source and target identities as rows, and the true pairs among them."""

    counts: Counts
    """Word counts of all identities of both communities."""
    sources: NDArray[np.int64]
    """Rows of `counts` that are sources."""
    targets: NDArray[np.int64]
    pairs: Pairs
    """(place in `sources`, place in `targets`) of each person who is in both."""
    people: NDArray[Any]
    """The person of each pair, for clustering; never shown."""


def read_both(crowd: Crowd, options: LinkabilityOptions) -> TwoCommunities:
    """Count both communities' words and find the people who are in both."""
    check_communities(crowd, (options.source, options.target))
    both = _count(crowd, options)
    community = both.identities["community"].to_numpy()
    sources = np.flatnonzero(community == options.source)
    targets = np.flatnonzero(community == options.target)
    for name, rows in ((options.source, sources), (options.target, targets)):
        if not rows.size:
            raise InputError(
                f"community '{name}' has nobody with at least {options.min_posts} posts with words in them; "
                "lower --min-posts, or give --keep-stopwords"
            )
    pairs, people = true_pairs(both.identities, sources, targets)
    return TwoCommunities(both, sources, targets, pairs, people)


def _count(crowd: Crowd, options: LinkabilityOptions) -> Counts:

    both = [options.source, options.target]
    chosen: dict[str, Any] = {
        "communities": both,
        "options": options.text,
        "min_posts": options.min_posts,
        "memory": options.memory,
    }
    if options.half_life is not None:
        return recent_counts(crowd, options.half_life, **chosen)
    return counts(crowd, **chosen)


def true_pairs(
    identities: pl.DataFrame, sources: NDArray[np.int64], targets: NDArray[np.int64]
) -> tuple[Pairs, NDArray[Any]]:
    """Return the places of the people who are in both, and who they are."""
    users = identities["user"].to_numpy()
    people, of_source, of_target = np.intersect1d(users[sources], users[targets], return_indices=True)
    return np.column_stack([of_source, of_target]).astype(np.int64).reshape(-1, 2), people


def place_in(people: NDArray[Any], user: str, options: LinkabilityOptions) -> int:
    """Return a person's place among those who are in both communities, or say what keeps them out."""
    found = np.flatnonzero(people == user)
    if not found.size:
        raise NotInCrowd(
            f"this person does not have {options.min_posts} posts with words in both '{options.source}' and "
            f"'{options.target}'; a lower --min-posts looks closer, with less to go by"
        )
    return int(found[0])


def check_communities(crowd: Crowd, names: tuple[str, ...]) -> None:
    """Refuse a community that is not there, and say which ones are."""
    there = crowd.communities()["community"].to_list()
    for name in names:
        if name not in there:
            some = ", ".join(there[:8]) + (", …" if len(there) > 8 else "")
            raise NotInCrowd(f"community '{name}' is not in this crowd; it has: {some}")


# The identity models of paper 003, for two communities at once.


def model_rows(
    crowd: Crowd, meeting: TwoCommunities, options: LinkabilityOptions
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


def _topic_rows(crowd: Crowd, meeting: TwoCommunities, options: LinkabilityOptions) -> sp.csr_matrix:
    """Fit author topics to both communities' posts; every identity is an author of its own."""

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
