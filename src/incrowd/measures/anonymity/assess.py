"""A community in, everybody's crowd out, kept up to date as posts arrive; one member's crowd in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.crowd import Crowd
from incrowd.crowd.array_cache import identities
from incrowd.distances import Compute, ball_sizes, nearest
from incrowd.distances.choice import linkage_bound, printed_bound
from incrowd.distances.profile_index import CommunityIndex, Profile, distance, divergence_terms, word_keys
from incrowd.distances.reductions import rounded
from incrowd.distances.reference import METRICS
from incrowd.drawing import Chart, Series, picture
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.anonymity.definition import crowd_ranks
from incrowd.measures.anonymity.explain import crowd_assessment
from incrowd.measures.anonymity.spec import ADVERSARY, AnonymityOptions
from incrowd.measures.sampling import SampledRank
from incrowd.profiles import Profiles, build
from incrowd.result import Assessment, Evidence, Result, as_pandas
from incrowd.text import tokenise
from incrowd.text.counting import Counts, counts
from incrowd.text.mentions import mentioned_words, word_evidence
from incrowd.text.options import TextOptions

CURVE = np.arange(0, 101) / 100


@dataclass(frozen=True, repr=False)
class CommunityAnonymity(Result):
    """Everybody's crowd in one community. Rows follow `profiles`; nobody is named in any rendering."""

    options: AnonymityOptions
    profiles: Profiles
    sizes: NDArray[np.int64]
    """Members within the radius, oneself included."""
    curve: NDArray[np.int64]
    """Sizes at `radii`: one row per member."""
    needed: NDArray[np.float64]
    """The smallest radius at which each member hides among the wanted number; NaN if there are too few."""
    data_hash: str

    @property
    def members(self) -> int:
        """Return how many identities were measured."""
        return len(self.sizes)

    @property
    def radii(self) -> NDArray[np.float64]:
        """Return where the curve was measured."""
        return _curve(self.options)

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Return everybody's rank, 1 = smallest crowd."""
        return crowd_ranks(self.sizes)

    @property
    def bounds(self) -> NDArray[np.floating[Any]]:
        """Bound how probably each member is linked to another profile of theirs at distance `radius`."""
        o = self.options
        return linkage_bound(o.radius, o.radius, self.sizes, o.rule)

    def to_frame(self, *, pandas: bool = False) -> Any:
        """Return one row per member, most exposed first, without names: a Polars frame, or a pandas one."""
        o = self.options
        frame = pl.DataFrame(
            {
                "rank": self.ranks,
                "crowd": self.sizes,
                "posts": self.profiles.ids["posts"].to_numpy(),
                "radius_needed": self.needed,
                "bound": self.bounds,
                "bound_as_printed": printed_bound(o.radius, o.radius, self.sizes),
            }
        ).sort("rank", "radius_needed", descending=[False, True])
        return as_pandas(frame) if pandas else frame

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the table as rows."""
        rows: list[dict[str, Any]] = self.to_frame().to_dicts()
        return rows

    @property
    def figure(self) -> Chart:
        """Crowd sizes over the radius: the median member, and the most and least exposed tenth."""
        tenth, half, most = np.quantile(self.curve, (0.1, 0.5, 0.9), axis=0)
        return Chart(
            kind="lines",
            title=f"How large the crowd is in {self.options.community}",
            sentence=(
                "Read upwards from a distance: that many members, oneself included, write at least as alike. "
                f"At {self.options.radius:g} the median member has {np.median(self.sizes):g}."
            ),
            x_label="distance (0 = same words, 1 = none in common)",
            y_label="members within it",
            series=tuple(
                Series.of(name, self.radii, line)
                for name, line in (
                    ("most exposed tenth", tenth),
                    ("median member", half),
                    ("least exposed tenth", most),
                )
            ),
            y_log=True,
            lines=(float(self.options.wanted),),
        )

    def chart(self) -> str:
        """Draw the crowd over the radius as a stand-alone SVG picture."""
        return picture(self.figure)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers other programs rely on."""
        sizes = self.sizes
        alone = int((sizes == 1).sum())
        return {
            "community": self.options.community,
            "members": self.members,
            "radius": self.options.radius,
            "sizes": {
                "min": int(sizes.min()),
                "median": float(np.median(sizes)),
                "mean": float(sizes.mean()),
                "max": int(sizes.max()),
            },
            "alone": alone,
            "below_wanted": int((sizes < self.options.wanted).sum()),
            "curve": {
                "radius": self.radii.tolist(),
                "median": np.median(self.curve, axis=0).tolist(),
                "mean": self.curve.mean(axis=0).tolist(),
            },
            "dropped": self.profiles.dropped,
            "assumptions": {"adversary": ADVERSARY, **self.options.parameters()},
            "data_hash": self.data_hash,
        }

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        o = self.options
        share = float((self.sizes < o.wanted).mean())
        return (
            f"In {o.community}, {share:.0%} of {self.members:,} members have fewer than {o.wanted} people "
            f"(themselves included) within distance {o.radius:g}; half have {np.median(self.sizes):g} or "
            "fewer."
        )


def community_anonymity(
    crowd: Crowd, options: AnonymityOptions, *, compute: Compute | None = None
) -> CommunityAnonymity:
    """Measure everybody's crowd in one community."""
    profiles = _profiles(crowd, options)
    compute = compute or Compute(memory=options.memory)
    radii = np.concatenate([_curve(options), [options.radius]])
    sizes = ball_sizes(profiles.matrix, radii=radii, metric=options.distance, compute=compute)
    return CommunityAnonymity(
        options=options,
        profiles=profiles,
        sizes=sizes[:, -1],
        curve=sizes[:, :-1],
        needed=_radius_needed(profiles, options, compute),
        data_hash=crowd.data_hash,
    )


def _curve(options: AnonymityOptions) -> NDArray[np.float64]:
    """Return the radii of the curve: a hundred steps up to the largest distance there is."""
    return CURVE * METRICS[options.distance].largest


def _radius_needed(profiles: Profiles, options: AnonymityOptions, compute: Compute) -> NDArray[np.float64]:
    members = profiles.matrix.shape[0]
    if options.wanted > members:
        return np.full(members, np.nan)
    if options.wanted == 1:
        return np.zeros(members)
    found = nearest(profiles.matrix, k=options.wanted - 1, metric=options.distance, compute=compute)
    return np.asarray(found.distances[:, -1], np.float64)


def mentioned_by(crowd: Crowd, options: AnonymityOptions, user: str) -> frozenset[str]:
    """Return the words of a member's posts that only name somebody else."""
    texts = crowd.posts(community=options.community, user=user).collect()["text"]
    return mentioned_words(texts, options.text)


def member_anonymity(result: CommunityAnonymity, user: str, mentioned: Collection[str] = ()) -> Assessment:
    """Say one member's crowd in words, with what makes them stand out; `mentioned` words are not shown."""
    o = result.options
    found = np.flatnonzero(result.profiles.ids["user"].to_numpy() == user)
    if not found.size:
        raise NotInCrowd(f"this person has no profile with enough words in '{o.community}'")
    row = int(found[0])
    evidence, explained = stand_out(result.profiles, row, mentioned) if o.model == "unigram" else ((), None)
    size, rank = int(result.sizes[row]), int(result.ranks[row])
    exact = SampledRank.of(rank - 1, result.members - 1, result.members - 1)
    return crowd_assessment(o, size, exact, result.members, result.data_hash, evidence, explained)


def _profiles(crowd: Crowd, options: AnonymityOptions) -> Profiles:

    there = crowd.communities()["community"].to_list()
    if options.community not in there:
        some = ", ".join(there[:8]) + (", …" if len(there) > 8 else "")
        raise NotInCrowd(f"community '{options.community}' is not in this crowd; it has: {some}")
    counted = counts(
        crowd,
        communities=[options.community],
        options=options.text,
        min_posts=options.min_posts,
        memory=options.memory,
    )
    if not counted.matrix.shape[0]:
        raise InputError(
            f"community '{options.community}' has nobody with at least {options.min_posts} posts with words "
            "in them; lower --min-posts, or give --keep-stopwords"
        )
    return build(options.model, counted)


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


@dataclass
class LiveCommunity:
    """A community's crowd sizes that follow new posts at the cost of comparing two profiles with everybody.

    After any number of updates, `sizes` equals a computation from scratch.
    """

    index: CommunityIndex
    """Everybody's words at the start."""
    users: list[str]
    text: TextOptions
    radii: NDArray[np.float64]
    sizes: NDArray[np.int64]
    _moved: dict[int, Profile] = field(default_factory=dict, repr=False)
    """The words of those who have posted since, by row."""

    @classmethod
    def of(
        cls, counted: Counts, text: TextOptions, radii: Any, compute: Compute | None = None
    ) -> LiveCommunity:
        """Start from the counts of one community."""
        wanted = np.atleast_1d(np.asarray(radii, np.float64))
        users = counted.identities["user"].to_list()
        names, rows = identities(users)
        posts = counted.identities["posts"].to_numpy().astype(np.int64)
        keys = word_keys(counted.vocabulary)
        index = CommunityIndex.of_matrix(counted.matrix, keys, names=names, rows=rows, posts=posts)
        sizes = ball_sizes(index.shares(slice(None), index.keys), radii=wanted, compute=compute or Compute())
        return cls(index=index, users=users, text=text, radii=wanted, sizes=sizes)

    def add_post(self, user: str, post: str) -> NDArray[np.int64]:
        """Add a member's new post and return their crowd sizes at the radii."""
        if user not in self.users:
            raise NotInCrowd(
                "this person has no profile in the community; count the community again to add one"
            )
        person = self.users.index(user)
        before = self._moved.get(person) or self.index.profile(person)
        words = tokenise(post, self.text)
        if words:
            near_before = self._near(before, person)
            self._moved[person] = before.plus(Profile.of_words(words))
            near = self._near(self._moved[person], person)
            self.sizes = self.sizes + near - near_before.astype(np.int64)
            self.sizes[person] = 1 + near.sum(axis=0)
        return np.asarray(self.sizes[person])

    def _near(self, profile: Profile, person: int) -> NDArray[np.bool_]:
        """Say who else is within each radius of a member's profile: people down, radii across."""
        squares = self.index.squares(profile)
        near = np.column_stack([squares.within(float(radius)) for radius in self.radii])
        for row, words in self._moved.items():
            near[row] = rounded(np.array(distance(profile, words))) <= rounded(self.radii)
        near[person] = False
        return near
