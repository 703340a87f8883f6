"""Two communities side by side: the profiles in each, and who is in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError, NotInCrowd

if TYPE_CHECKING:
    import polars as pl

    from incrowd.crowd import Crowd
    from incrowd.measures.linkability.spec import LinkabilityOptions
    from incrowd.text.counting import Counts

Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class Meeting:
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


def meet(crowd: Crowd, options: LinkabilityOptions) -> Meeting:
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
    return Meeting(both, sources, targets, pairs, people)


def _count(crowd: Crowd, options: LinkabilityOptions) -> Counts:
    from incrowd.profiles.models import recent_counts
    from incrowd.text.counting import counts

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
