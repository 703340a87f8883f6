"""Two communities side by side, and the papers' adversary: profiles, a distance, and all that follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.crowd import Crowd
from incrowd.distances import Compute, ball_sizes, mean_distance, nearest, pair_distances, ranks, within_both
from incrowd.distances.reference import METRICS
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.linkability.definition import (
    RADII,
    Ranking,
    best_threshold,
    conformity,
    consistent_ranking,
    precision_recall,
    shuffled_pairs,
)
from incrowd.measures.linkability.rates import LinkRates, hit_rates
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.profiles import indicator, tfidf, unigram
from incrowd.profiles.models import author_topics, recent_counts
from incrowd.statistics import spearman
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


def _model_rows(
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


SMALL_LABELLED_SET = 20
"""How many true pairs the rational adversary knows when they choose a threshold."""
MOST_WANTED = 100
"""Largest set size looked at when ranking by convergence."""
CURVE = np.arange(0, 101) / 100


@dataclass(frozen=True)
class DistanceAttack:
    """Both communities as rows of one model, ready for questions."""

    meeting: TwoCommunities
    x: sp.csr_matrix
    y: sp.csr_matrix
    metric: str
    compute: Compute

    @property
    def largest(self) -> float:
        """Return the largest distance there is: thresholds end there."""
        return METRICS[self.metric].largest

    @property
    def pairs(self) -> Any:
        """Return (source row, target row) of each true pair."""
        return self.meeting.pairs


def prepare(crowd: Crowd, options: LinkabilityOptions, compute: Compute | None = None) -> DistanceAttack:
    """Build the chosen model's rows for both communities."""
    meeting = read_both(crowd, options)
    x, y = _model_rows(crowd, meeting, options)
    return DistanceAttack(meeting, x, y, options.distance, compute or Compute(memory=options.memory))


def measure(attack: DistanceAttack, options: LinkabilityOptions, data_hash: str) -> LinkRates:
    """Run the attack on everybody who is in both communities."""
    meeting = attack.meeting
    pairs = attack.pairs
    known: dict[str, Any] = {"metric": attack.metric, "compute": attack.compute}
    control = np.column_stack([pairs[:, 0], shuffled_pairs(pairs[:, 1], options.seed)])
    true, fake = ranks(attack.x, attack.y, pairs, **known), ranks(attack.x, attack.y, control, **known)
    rates = hit_rates(true.nearer, true.ties, meeting.people, attack.y.shape[0], fake.nearer, fake.ties)
    return LinkRates(
        source=options.source,
        target=options.target,
        adversary=options.adversary,
        sources=attack.x.shape[0],
        targets=attack.y.shape[0],
        pairs=len(pairs),
        hit_rates=rates,
        parameters=options.parameters(),
        data_hash=data_hash,
        figures=_distances(attack) | _sets(attack) | _thresholds(attack, options.seed) | _relative(attack),
    )


def _distances(attack: DistanceAttack) -> dict[str, Any]:
    known: dict[str, Any] = {"metric": attack.metric, "compute": attack.compute}
    within = mean_distance(attack.y, include_self=False, **known)
    across = mean_distance(attack.x, attack.y, **known)
    match = pair_distances(attack.x, attack.y, attack.pairs, **known)
    source = attack.pairs[:, 0]
    others = across.row_counts[source] - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        stranger = np.where(others > 0, (across.row_sums[source] - match) / others, np.nan)
    below = match < stranger
    return {
        "mean_distance": {"within": within.mean, "across": across.mean},
        "distance_range": {
            "within": [within.minimum, within.maximum],
            "across": [across.minimum, across.maximum],
        },
        "match_below_mean": float(below.mean()) if below.size else float("nan"),
    }


def _sets(attack: DistanceAttack) -> dict[str, Any]:
    """Compare matching, anonymity and local matching sets at each pair's own distance."""
    if not len(attack.pairs):
        undefined = float("nan")
        names = ("anonymity_matching_spearman", "anonymity_larger", "conformity_080", "ratio_near_one")
        return dict.fromkeys(names, undefined)
    sets = within_both(attack.x, attack.y, attack.pairs, metric=attack.metric, compute=attack.compute)
    ratio = sets.anonymity / sets.matching
    return {
        "anonymity_matching_spearman": spearman(sets.anonymity, sets.matching),
        "anonymity_larger": float((ratio > 1).mean()),
        "ratio_near_one": float(((ratio >= 0.8) & (ratio < 1.2)).mean()),
        "conformity_080": float((conformity(sets.both, sets.matching) >= 0.8).mean()),
        "set_sizes": {
            name: {"median": float(np.median(sizes)), "mean": float(sizes.mean())}
            for name, sizes in (
                ("matching", sets.matching),
                ("anonymity", sets.anonymity),
                ("local", sets.both),
            )
        },
    }


def _thresholds(attack: DistanceAttack, seed: int) -> dict[str, Any]:
    """Return precision and recall over thresholds, and what a rational adversary reaches."""
    known: dict[str, Any] = {"metric": attack.metric, "compute": attack.compute}
    curve = CURVE * attack.largest
    inside = ball_sizes(attack.x, attack.y, radii=curve, **known)
    match = pair_distances(attack.x, attack.y, attack.pairs, **known)
    source = attack.pairs[:, 0]
    closed = precision_recall(match, inside[source].sum(axis=0), curve)
    openly = precision_recall(match, inside.sum(axis=0), curve)
    return {
        "curve": {
            "threshold": curve,
            "recall": closed.recall,
            "precision_closed": closed.precision,
            "precision_open": openly.precision,
        },
        "matching_set_median": np.median(inside, axis=0),
        "rational": _rational(match, inside[source], curve, seed),
    }


def _rational(match: Any, inside: Any, curve: Any, seed: int) -> dict[str, Any] | None:
    """Choose a threshold on a few labelled pairs, then judge it on all others."""
    if len(match) < 2 * SMALL_LABELLED_SET:
        return None
    order = np.random.default_rng(seed).permutation(len(match))
    labelled, rest = order[:SMALL_LABELLED_SET], order[SMALL_LABELLED_SET:]
    threshold = best_threshold(precision_recall(match[labelled], inside[labelled].sum(axis=0), curve))
    judged = precision_recall(match[rest], inside[rest].sum(axis=0), curve)
    place = int(np.searchsorted(curve, threshold))
    return {
        "labelled": SMALL_LABELLED_SET,
        "threshold": threshold,
        "precision": float(judged.precision[place]),
        "recall": float(judged.recall[place]),
    }


def _relative(attack: DistanceAttack) -> dict[str, Any]:
    """Rank targets by how small their anonymity sets are, and ask how well that predicts matching sets.

    Matching sets are taken at one threshold for everybody, the median distance of a true pair.
    """
    known: dict[str, Any] = {"metric": attack.metric, "compute": attack.compute}
    ranking = relative_ranking(attack)
    found = {"method": ranking.method, "agreement": ranking.agreement}
    source, target = attack.pairs.T
    if not len(source):
        return {"relative": found | {"threshold": float("nan"), "spearman": float("nan")}}
    threshold = float(np.median(pair_distances(attack.x, attack.y, attack.pairs, **known)))
    matching = ball_sizes(attack.x[source], attack.y, radii=[threshold], **known)[:, 0]
    by_convergence = ranking_by_convergence(attack)
    return {
        "relative": found
        | {
            "threshold": threshold,
            "spearman": spearman(ranking.ranks[target], matching),
            "spearman_by_convergence": spearman(by_convergence.ranks[target], matching),
        }
    }


def relative_ranking(attack: DistanceAttack) -> Ranking:
    """Return the consistent ranking of the targets over the 1,001 radii of paper 003."""
    sizes = ball_sizes(attack.y, radii=RADII * attack.largest, metric=attack.metric, compute=attack.compute)
    return consistent_ranking(sizes, _target_users(attack))


def ranking_by_convergence(attack: DistanceAttack) -> Ranking:
    """Return paper 003's variant: for every wanted size k, rank by the radius it takes, largest first."""
    most = min(attack.y.shape[0] - 1, MOST_WANTED)
    if most < 1:
        return consistent_ranking(np.zeros((attack.y.shape[0], 1)), _target_users(attack))
    found = nearest(attack.y, k=most, metric=attack.metric, compute=attack.compute)
    return consistent_ranking(-found.distances, _target_users(attack))


def _target_users(attack: DistanceAttack) -> Any:
    return attack.meeting.counts.identities["user"].to_numpy()[attack.meeting.targets]
