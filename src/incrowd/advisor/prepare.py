"""Makes the arrays that drafts and watches look at; takes a while, once for the same data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.advisor.arrays import Arrays, identities, identity, kept
from incrowd.advisor.community_topics import CommunityTopics
from incrowd.advisor.community_words import CommunityWords, Nearness, word_key
from incrowd.distances.profile_index import Profile
from incrowd.errors import NotInCrowd
from incrowd.measures.exposure.space import Space
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.crowd import Crowd
    from incrowd.crowd.pseudonyms import Pseudonyms


@dataclass(frozen=True, eq=False)
class Population:
    """Who writes where: one entry an identity, sorted by person."""

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


class Shelf:
    """The prepared arrays of one state of a crowd; a crowd is opened only to make what is missing."""

    def __init__(
        self, folder: Path, data_hash: str, text: TextOptions, memory: int, crowd: Crowd | None = None
    ):
        self.folder, self.data_hash = folder, data_hash
        self.text, self.memory = text, memory
        self._crowd = crowd
        self._population: Population | None = None
        self._words: dict[str, CommunityWords] = {}

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

    @property
    def population(self) -> Population:
        """Who writes where."""
        if self._population is None:
            arrays, about = kept(self.cache, "population", {}, self.data_hash, self._make_population)
            self._population = Population(**arrays, communities=tuple(about["communities"]))
        return self._population

    def words(self, community: str) -> CommunityWords:
        """Return a community's words."""
        if community not in self._words:
            question = {"community": community, "text": self.text.hash}
            arrays, _ = kept(
                self.cache, "words", question, self.data_hash, lambda: self._make_words(community)
            )
            self._words[community] = CommunityWords(**arrays)
        return self._words[community]

    def sizes(self, community: str, radius: float) -> NDArray[np.int64]:
        """Return how many people each row of a community's words has within the radius, itself included."""
        question = {"community": community, "text": self.text.hash, "radius": radius}
        arrays, _ = kept(
            self.cache, "sizes", question, self.data_hash, lambda: self._make_sizes(community, radius)
        )
        return arrays["sizes"]

    def across(self, user: str, source: str, target: str) -> Nearness:
        """Return how near everybody in one community is to a person's profile in another."""
        there, profile = self.words(target), self._profile(user, source)

        def make() -> tuple[Arrays, dict[str, Any]]:
            return {"squares": there.meeting(profile.keys).nearness(profile).squares}, {}

        question = {
            "user": identity(user).decode(),
            "source": source,
            "target": target,
            "text": self.text.hash,
        }
        arrays, _ = kept(self.cache, "across", question, self.data_hash, make)
        return Nearness(there, profile, arrays["squares"])

    def _profile(self, user: str, community: str) -> Profile:
        words = self.words(community)
        return words.profile(words.row_of(user))

    def topics(self, space: Space, options: ExposureOptions) -> CommunityTopics:
        """Return a community's exposure."""
        question = options.parameters() | {"space": space.hash, "kind": space.name}
        arrays, _ = kept(
            self.cache, "topics", question, self.data_hash, lambda: self._make_topics(space, options)
        )
        return CommunityTopics(**arrays)

    def require(self, community: str) -> None:
        """Refuse a community that nobody wrote in, and say which ones there are."""
        there = self.population.communities
        if community not in there:
            some = ", ".join(there[:8]) + (", …" if len(there) > 8 else "")
            raise NotInCrowd(f"community '{community}' is not in this crowd; it has: {some or 'none'}")

    def _make_population(self) -> tuple[Arrays, dict[str, Any]]:
        import polars as pl

        crowd = self.crowd()
        found = crowd.posts().group_by("user", "community").len().sort("user", "community").collect()
        names, places = identities(found["user"].to_list())
        order = crowd.communities()["community"].to_list()
        number = found["community"].replace_strict(order, list(range(len(order))), return_dtype=pl.Int32)
        arrays = {
            "names": names,
            "community": number.to_numpy()[places],
            "posts": found["len"].cast(pl.Int64).to_numpy()[places],
        }
        return arrays, {"communities": order}

    def _counts(self, community: str) -> Any:
        from incrowd.text.counting import counts

        return counts(self.crowd(), communities=[community], options=self.text, memory=self.memory)

    def _make_words(self, community: str) -> tuple[Arrays, dict[str, Any]]:
        counted = self._counts(community)
        keys = np.array([word_key(word) for word in counted.vocabulary], np.uint64)
        order = np.argsort(keys, kind="stable")
        by_row: sp.csr_matrix = counted.matrix[:, order].tocsr()
        by_row.sort_indices()
        by_word = by_row.tocsc()
        names, rows = identities(counted.identities["user"].to_list())
        arrays = {
            "names": names,
            "rows": rows,
            "posts": counted.identities["posts"].to_numpy().astype(np.int64),
            "totals": np.asarray(by_row.sum(axis=1)).ravel().astype(np.int64),
            "row_starts": by_row.indptr.astype(np.int64),
            "row_words": by_row.indices.astype(np.int32),
            "row_counts": by_row.data.astype(np.int32),
            "keys": keys[order],
            "word_starts": by_word.indptr.astype(np.int64),
            "word_rows": by_word.indices.astype(np.int32),
            "word_counts": by_word.data.astype(np.int32),
        }
        return arrays, {}

    def _make_sizes(self, community: str, radius: float) -> tuple[Arrays, dict[str, Any]]:
        from incrowd.distances import Compute, ball_sizes
        from incrowd.profiles import unigram

        rows = unigram(self._counts(community)).matrix
        sizes = ball_sizes(rows, radii=[radius], compute=Compute(memory=self.memory))
        return {"sizes": sizes[:, 0].astype(np.int64)}, {}

    def _make_topics(self, space: Space, options: ExposureOptions) -> tuple[Arrays, dict[str, Any]]:
        from incrowd.measures.exposure.scoring import score

        scored = score(self.crowd(), space, options)
        names, rows = identities(scored.users.to_list())
        peaks = scored.peaks
        arrays = {
            "names": names,
            "rows": rows,
            "risks": scored.risks(),
            "starts": np.searchsorted(peaks.person, np.arange(peaks.people + 1)).astype(np.int64),
            "period": peaks.period,
            "values": peaks.values,
        }
        return arrays, {}


def open_shelf(folder: Path, text: TextOptions, memory: int) -> Shelf:
    """Open the shelf of a crowd's present state, without opening the crowd."""
    from incrowd.crowd.manifest import load

    return Shelf(folder.absolute(), load(folder.absolute()).data_hash, text, memory)


def naming(folder: Path) -> Pseudonyms | None:
    """Return how a crowd turns names into ids; None: its key was thrown away."""
    from incrowd.crowd.manifest import load
    from incrowd.crowd.pseudonyms import Pseudonyms, load_key

    state = load(folder)
    if state.names == "plain":
        return Pseudonyms(None)
    key = load_key(folder, state.key_id)
    return None if key is None else Pseudonyms(key)


def user_id(shelf: Shelf, name: str) -> str:
    """Return the id under which the store keeps a person, by name, as :meth:`Crowd.user` would."""
    names = naming(shelf.folder)
    if names is not None and shelf.population.of(names.of(name.strip())):
        return names.of(name.strip())
    return shelf.crowd().user(name)
