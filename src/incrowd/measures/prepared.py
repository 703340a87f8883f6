"""A crowd, prepared: memory-mapped arrays that answer for anybody, made once for the same data.

Opening them takes milliseconds and opening a crowd does not, so the crowd itself is only opened to make what is
missing. Nothing here loads more than NumPy until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.crowd.array_cache import Arrays, cached_arrays, identities, identity
from incrowd.distances.profile_index import CommunityIndex, Keys, word_keys
from incrowd.errors import NotInCrowd
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.crowd.pseudonyms import Pseudonyms
    from incrowd.text.counting import Counts

Made = tuple[Arrays, dict[str, Any]]


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


class PreparedCrowd:
    """One state of a crowd, ready for anybody."""

    def __init__(
        self, folder: Path, data_hash: str, text: TextOptions, memory: int, crowd: Crowd | None = None
    ):
        self.folder, self.data_hash = folder, data_hash
        self.text, self.memory = text, memory
        self._crowd = crowd
        self._population: Population | None = None
        self._words: dict[str, CommunityIndex] = {}
        self._together: tuple[str, ...] = ()
        self._counted: tuple[Counts, Keys] | None = None

    @classmethod
    def of(cls, crowd: Crowd, text: TextOptions | None = None, memory: int = 2**30) -> PreparedCrowd:
        """Prepare a crowd that is open."""
        return cls(crowd.path, crowd.data_hash, text or TextOptions(), memory, crowd)

    @classmethod
    def in_folder(cls, folder: Path, text: TextOptions, memory: int) -> PreparedCrowd:
        """Prepare the present state of a crowd's folder, without opening the crowd."""
        from incrowd.crowd.manifest import load

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

    def arrays(self, kind: str, question: Mapping[str, Any], make: Callable[[], Made]) -> Made:
        """Return arrays (and facts) of this state of the crowd, made on the first time."""
        return cached_arrays(self.cache, kind, question, self.data_hash, make)

    def answer(self, question: Mapping[str, Any], answer: Callable[[], Mapping[str, NDArray[Any]]]) -> Arrays:
        """Return named arrays for a question that holds every option which decides them."""
        return self.arrays("answer", question, lambda: (dict(answer()), {}))[0]

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

    def count_together(self, communities: Iterable[str]) -> None:
        """Say which communities will be asked for, so that posts are read once for all that are not there yet."""
        if not set(communities) <= set(self._together):
            self._together, self._counted = tuple(communities), None

    def sizes(self, community: str, radius: float) -> NDArray[np.int64]:
        """Return how many people each row of a community's words has within the radius, itself included."""
        question = {"community": community, "text": self.text.hash, "radius": radius}
        arrays, _ = self.arrays("sizes", question, lambda: self._make_sizes(community, radius))
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

    def _make_words(self, community: str) -> Made:
        counted, keys = self._counts(community)
        inside = np.flatnonzero((counted.identities["community"] == community).to_numpy())
        matrix = counted.matrix[inside]
        used = np.unique(matrix.indices)
        names, rows = identities(counted.identities["user"].gather(inside).to_list())
        posts = counted.identities["posts"].to_numpy()[inside].astype(np.int64)
        laid_out = CommunityIndex.arrays(matrix[:, used], keys[used])
        return {"names": names, "rows": rows, "posts": posts, **laid_out}, {}

    def _counts(self, community: str) -> tuple[Counts, Keys]:
        """Count words where they were announced, or in one community."""
        from incrowd.text.counting import counts

        if self._counted is None or community not in self._together:
            self.count_together([community])
            some = counts(
                self.crowd(), communities=list(self._together), options=self.text, memory=self.memory
            )
            self._counted = some, word_keys(some.vocabulary)
        return self._counted

    def _make_sizes(self, community: str, radius: float) -> Made:
        from incrowd.distances import Compute, ball_sizes

        index = self.words(community)
        shares = index.shares(slice(None), index.keys)
        sizes = ball_sizes(shares, radii=[radius], compute=Compute(memory=self.memory))
        return {"sizes": sizes[:, 0].astype(np.int64)}, {}


def naming(folder: Path) -> Pseudonyms | None:
    """Return how a crowd turns names into ids; None: its key was thrown away."""
    from incrowd.crowd.manifest import load
    from incrowd.crowd.pseudonyms import Pseudonyms, load_key

    state = load(folder)
    if state.names == "plain":
        return Pseudonyms(None)
    key = load_key(folder, state.key_id)
    return None if key is None else Pseudonyms(key)
