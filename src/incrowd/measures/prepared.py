"""A crowd, prepared: memory-mapped arrays that answer for anybody, made once for the same data.

Opening them takes milliseconds and opening a crowd does not, so the crowd itself is only opened to make what is
missing. Nothing here loads more than NumPy until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.crowd.array_cache import Arrays, DiskArray, cached_arrays, identities, identity
from incrowd.crowd.manifest import load
from incrowd.crowd.pseudonyms import Pseudonyms, load_key
from incrowd.distances.profile_index import (
    CommunityIndex,
    Comparison,
    Profile,
    Squares,
    word_keys,
)
from incrowd.errors import NotInCrowd
from incrowd.measures.sampling import sampled_rows
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    import polars as pl

    from incrowd.cards.made_up import MadeUp
    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import Kind
    from incrowd.result import Assessment
    from incrowd.text.counting import Counts

Made = tuple[Mapping[str, NDArray[Any] | DiskArray], dict[str, Any]]

YOU = "you"
"""The id of an export's owner among people made up from a card; these have none."""
COUNTED_ALONE = 20_000
"""A community of more posts is read for itself: posts of one community lie together. Smaller ones are read at once."""
KEPT_FROM = 2**23
"""Uses of words from which on a comparison takes longer than to read what it said."""
PIECE_BYTES = 2**26
"""Profiles that a sample is compared with at a time, in bytes."""


@dataclass(frozen=True, eq=False)
class Population:
    """Who writes where: one entry for each identity, sorted by person."""

    names: NDArray[Any]
    community: NDArray[np.int32]
    posts: NDArray[np.int64]
    communities: tuple[str, ...]

    def of(self, user: str) -> dict[str, int]:
        """Return a person's communities with their posts there, the largest first; empty if they wrote nothing."""
        name = np.bytes_(identity(user))
        first, last = (int(np.searchsorted(self.names, name, side)) for side in ("left", "right"))
        found = {self.communities[self.community[k]]: int(self.posts[k]) for k in range(first, last)}
        return dict(sorted(found.items(), key=lambda entry: (-entry[1], entry[0])))

    @cached_property
    def posts_in(self) -> dict[str, int]:
        """How many posts each community has."""
        counted = np.bincount(self.community, weights=self.posts, minlength=len(self.communities))
        return dict(zip(self.communities, counted.astype(np.int64).tolist(), strict=True))


class PreparedCrowd:
    """One state of a crowd, ready for anybody."""

    is_made_up = False
    """True if everybody but the person is made up from a card."""

    def __init__(
        self,
        folder: Path,
        data_hash: str,
        text: TextOptions,
        memory: int,
        crowd: Crowd | None = None,
        exact: bool = False,
    ):
        self.folder, self.data_hash = folder, data_hash
        self.text, self.memory, self.exact = text, memory, exact
        self._crowd = crowd
        self._population: Population | None = None
        self._words: dict[str, CommunityIndex] = {}
        self._together: tuple[str, ...] = ()
        self._counted: Counts | None = None

    @classmethod
    def of(
        cls, crowd: Crowd, text: TextOptions | None = None, memory: int = 2**30, *, exact: bool = False
    ) -> PreparedCrowd:
        """Prepare a crowd that is open; `exact`: no sample stands for everybody, however long it takes."""
        return cls(crowd.path, crowd.data_hash, text or TextOptions(), memory, crowd, exact)

    @classmethod
    def in_folder(cls, folder: Path, text: TextOptions, memory: int) -> PreparedCrowd:
        """Prepare the present state of a crowd's folder, without opening the crowd."""
        return cls(folder.absolute(), load(folder.absolute()).data_hash, text, memory)

    @property
    def cache(self) -> Path:
        """Where the arrays lie."""
        return self.folder / "cache"

    def crowd(self) -> Crowd:
        """Open the crowd; slow beside everything else here."""
        from incrowd.crowd import Crowd

        if self._crowd is None:
            self._crowd = Crowd(self.folder)
        return self._crowd

    def arrays(
        self, kind: str, question: Mapping[str, Any], make: Callable[[], Made]
    ) -> tuple[Arrays, dict[str, Any]]:
        """Return arrays (and facts) of this state of the crowd, made on the first time."""
        return cached_arrays(self.cache, kind, question, self.data_hash, make)

    def answer(self, question: Mapping[str, Any], answer: Callable[[], Mapping[str, NDArray[Any]]]) -> Arrays:
        """Return named arrays for a question that holds every option which decides them."""
        return self.arrays("answer", question, lambda: (dict(answer()), {}))[0]

    @property
    def people(self) -> int:
        """How many people there are in all."""
        counted = self.answer({"what": "people"}, lambda: {"people": np.array(self.crowd().people())})
        return int(counted["people"])

    # What one person has

    def own_posts(self, user: str) -> pl.DataFrame:
        """Return a person's posts (by id), numbered: by community, then time, then text."""
        return numbered_posts(self.crowd(), user)

    def own_links(self, user: str) -> Mapping[int, str]:
        """Return where a person's posts are, by number, as far as their own export said."""
        from incrowd.crowd.tables import links_of

        return links_of(self.folder, user, self.own_posts(user))

    def own_places(self, user: str) -> Mapping[int, str]:
        """Return where a person wrote, by number of the post, where it is not the community they are compared in."""
        return {}

    @property
    def places(self) -> Mapping[str, str]:
        """Return where the owner of an export writes, and the community of a card in which that counts."""
        return {}

    def own_items(self, user: str) -> frozenset[str]:
        """Return a person's likes, ratings or purchases."""
        import polars as pl

        mine = self.crowd().items().filter(pl.col("user") == user)
        return frozenset(mine.select("item").collect()["item"].to_list())

    def own_attributes(self, user: str) -> Mapping[str, str]:
        """Return a person's attributes with their values."""
        import polars as pl

        mine = self.crowd().attributes().filter(pl.col("user") == user).collect()
        found = mine.group_by("attribute").agg(pl.col("value").min())
        return dict(found.select("attribute", "value").sort("attribute").iter_rows())

    def nothing_of_yours(self, kind: Kind) -> tuple[str, str]:
        """Say that nothing of a kind is known of the person, and what would help."""
        if kind == "posts":
            remedy = "import your export and other people's posts: incrowd ingest FILE --crowd DIR"
        else:
            remedy = f"import yours and other people's: incrowd ingest FILE --crowd DIR --kind {kind}"
        return f"the crowd holds no {kind} of yours", remedy

    @property
    def unread(self) -> str:
        """How many rows of the person's own files could not be read, and why; an import has said so before."""
        return ""

    # What rows stand for

    def made_up(self, community: str) -> tuple[MadeUp, NDArray[np.float64]]:
        """Return people made up from a card, and the share of people who use each of its words."""
        raise TypeError("this crowd is real: nobody in it is made up")

    def members(self, community: str) -> int:
        """Return how many people there are in a community."""
        return len(self.words(community))

    def section(self, measure: str, community: str | None = None) -> Mapping[str, pl.DataFrame]:
        """Return what a card tells by a measure, about a community or everybody; a real crowd has no card."""
        return {}

    def section_facts(self, measure: str) -> Mapping[str, Any]:
        """Return what a card's head says about a measure."""
        return {}

    def doubt(self, community: str) -> str:
        """Say why the people of a community may be the wrong ones to compare with; empty: they are not."""
        return ""

    def whom(self, community: str) -> str:
        """Say whom an assessment in a community is about."""
        return f"you in {community}"

    def elsewhere(self, community: str) -> str:
        """Say so if the person writes on another service than the people of a community; empty: they do not."""
        return ""

    def where(self, community: str) -> str:
        """Name the place of the posts that count in a community, for advice; empty: it goes without saying."""
        return community

    def within(self, community: str, squares: Squares, limit: float) -> NDArray[np.bool_]:
        """Mark the rows of a community's words that are within a distance of a profile, or stand for people who are."""
        return squares.within(limit)

    def count(self, community: str, rows: NDArray[np.bool_]) -> int:
        """Return how many people some rows of a community's words stand for."""
        return int(rows.sum())

    def told(self, assessment: Assessment, community: str) -> Assessment:
        """Return an assessment that counts rows of a community's words as it is to be told: as it is, if it is real."""
        return assessment

    @property
    def population(self) -> Population:
        """Who writes where."""
        if self._population is None:
            arrays, about = self.arrays("population", {}, self._make_population)
            self._population = Population(**arrays, communities=tuple(about["communities"]))
        return self._population

    def words(self, community: str) -> CommunityIndex:
        """Return a community's words."""
        if community not in self._words:
            question = {"community": community, "text": self.text.hash}
            arrays, _ = self.arrays("words", question, lambda: self._make_words(community))
            self._words[community] = CommunityIndex(**arrays)
        return self._words[community]

    def squares(self, community: str, comparison: Comparison, profile: Profile) -> Squares:
        """Compare everybody in a community with a profile made of the compared words; kept where it took a while."""
        if comparison.entries <= KEPT_FROM:
            return comparison.squares(profile)
        said = blake2b(profile.keys.tobytes() + profile.counts.tobytes(), digest_size=16).hexdigest()
        question = {"what": "squares", "community": community, "text": self.text.hash, "profile": said}
        kept = self.answer(
            question, lambda: {"squares": comparison.squares(profile).squares.astype(np.float32)}
        )
        return Squares(self.words(community), profile, kept["squares"].astype(np.float64))

    def count_together(self, communities: Iterable[str]) -> None:
        """Say which communities will be asked for, so that posts are read once for all that are not there yet."""
        posts = self.population.posts_in
        small = tuple(name for name in communities if posts[name] <= COUNTED_ALONE)
        if not set(small) <= set(self._together):
            self._together, self._counted = small, None

    def sizes(self, community: str, radius: float) -> NDArray[np.int64]:
        """Return how many people each row of a community's words has within the radius, itself included."""
        return self._sizes(community, radius, None)

    def some_sizes(self, community: str, radius: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the same of a fixed random sample of rows, with these: of all rows where these are few."""
        rows = sampled_rows(len(self.words(community)), exact=self.exact)
        everybody = np.arange(len(self.words(community)))
        return (everybody if rows is None else rows), self._sizes(community, radius, rows)

    def _sizes(self, community: str, radius: float, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
        question = {"community": community, "text": self.text.hash, "radius": radius}
        question |= {} if rows is None else {"sampled": len(rows)}
        arrays, _ = self.arrays("sizes", question, lambda: self._make_sizes(community, radius, rows))
        return arrays["sizes"]

    def require(self, community: str) -> None:
        """Refuse a community that nobody wrote in, and say which ones there are."""
        there = self.population.communities
        if community not in there:
            some = ", ".join(there[:8]) + (", …" if len(there) > 8 else "")
            raise NotInCrowd(f"community '{community}' is not in this crowd; it has: {some or 'none'}")

    def user_id(self, name: str) -> str:
        """Return the id under which the store keeps a person, by name, as :meth:`Crowd.user` would."""
        names = naming(self.folder)
        if names is not None and self.population.of(names.of(name.strip())):
            return names.of(name.strip())
        return self.crowd().user(name)

    def _make_population(self) -> Made:
        import polars as pl

        from incrowd.crowd.tables import fetched

        with self.crowd().connect(max(self.memory // 4, 2**28)) as database:
            counted = 'SELECT "user", community, count(*) AS posts FROM posts GROUP BY ALL ORDER BY ALL'
            found = fetched(database.sql(counted))
        there = found.group_by("community").agg(pl.col("posts").sum())
        order = there.sort(["posts", "community"], descending=[True, False])["community"].to_list()
        names, places = identities(found["user"].to_list())
        number = found["community"].replace_strict(order, list(range(len(order))), return_dtype=pl.Int32)
        arrays = {
            "names": names,
            "community": number.to_numpy()[places].astype(np.int32),
            "posts": found["posts"].cast(pl.Int64).to_numpy()[places],
        }
        return arrays, {"communities": order}

    def _make_words(self, community: str) -> Made:
        from incrowd.distances.index_layout import lay_out
        from incrowd.text.counting import count_rows

        if community in self._together:
            return self._words_of_small(community)
        counted = count_rows(self.crowd(), community, self.text, self.memory)
        users, posts = counted.identities["user"].to_list(), counted.identities["posts"].to_numpy()
        keys = word_keys(counted.vocabulary)
        order = np.argsort(keys, kind="stable")
        names, rows = identities(users)
        people = {"names": names, "rows": rows, "posts": posts.astype(np.int64), "keys": keys[order]}
        blocks = ((one.columns, one.counts, one.lengths) for one in counted.blocks(order))
        return {**people, **lay_out(blocks, len(keys), self.memory // 4, self.cache)}, {}

    def _words_of_small(self, community: str) -> Made:
        """Take a community's words out of those that were counted together."""
        from incrowd.text.counting import counts

        if self._counted is None:
            together = list(self._together)
            self._counted = counts(self.crowd(), communities=together, options=self.text, memory=self.memory)
        counted = self._counted
        inside = np.flatnonzero((counted.identities["community"] == community).to_numpy())
        matrix = counted.matrix[inside]
        used = np.unique(matrix.indices)
        names, rows = identities(counted.identities["user"].gather(inside).to_list())
        posts = counted.identities["posts"].to_numpy()[inside].astype(np.int64)
        keys = word_keys(counted.vocabulary.gather(used))
        index = CommunityIndex.of_matrix(matrix[:, used], keys, names=names, rows=rows, posts=posts)
        return vars(index), {}

    def _make_sizes(self, community: str, radius: float, rows: NDArray[np.int64] | None) -> Made:
        from incrowd.distances import Compute, ball_sizes

        index, compute = self.words(community), Compute(memory=self.memory // 2)
        if rows is None:
            shares = index.shares(slice(None), index.keys)
            return {"sizes": ball_sizes(shares, radii=[radius], compute=compute)[:, 0].astype(np.int64)}, {}
        some = index.shares(rows, index.keys)
        sizes = np.zeros(len(rows), np.int64)
        for piece in index.pieces(PIECE_BYTES):
            sizes += ball_sizes(some, index.shares(piece, index.keys), radii=[radius], compute=compute)[:, 0]
        return {"sizes": sizes}, {}


def numbered_posts(crowd: Crowd, user: str) -> pl.DataFrame:
    """Return a person's posts (by id), numbered: by community, then time, then text."""
    import polars as pl

    found = crowd.posts(user=user).select("community", "time", "text").collect()
    ordered = found.sort("community", "time", "text", nulls_last=True, maintain_order=True)
    return ordered.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64))


def naming(folder: Path) -> Pseudonyms | None:
    """Return how a crowd turns names into ids; None: its key was thrown away."""
    state = load(folder)
    if state.names == "plain":
        return Pseudonyms(None)
    key = load_key(folder, state.key_id)
    return None if key is None else Pseudonyms(key)
