"""What is known of one person: posts, items and attributes, as they are and after some changes.

A person is read from the crowd bit by bit, as it is asked for: who only adds a post needs no post of theirs.
Nothing of anybody else is in it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.distances.profile_index import Comparison, Keys, Profile, Squares, word_keys
from incrowd.errors import InputError
from incrowd.measures.prepared import PreparedCrowd, numbered_posts
from incrowd.text.mentions import mentioned_words
from incrowd.text.options import TextOptions
from incrowd.text.reference import tokenise

if TYPE_CHECKING:
    import polars as pl
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import Kind

MANY_POSTS = 3_000
"""Posts from which on the compiled tokeniser is worth setting up."""


@dataclass(frozen=True, kw_only=True)
class NewPost:
    """A post that is not in the crowd, or not yet."""

    community: str
    time: int | None
    """UTC seconds; None: without a time."""
    text: str


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What a person might do. Posts go by the numbers of :func:`incrowd.own_posts`."""

    delete_posts: frozenset[int] = frozenset()
    move_posts: frozenset[int] = frozenset()
    """Posts to write under another name, which nobody knows to be theirs."""
    edit_words: frozenset[str] = frozenset()
    """Words to take out of all their posts."""
    drop_items: frozenset[str] = frozenset()
    add_items: frozenset[str] = frozenset()
    """Items to list that they do not list yet."""
    withhold_attributes: frozenset[str] = frozenset()
    add_posts: frozenset[NewPost] = frozenset()

    def __post_init__(self) -> None:
        for part in fields(self):
            given: Any = getattr(self, part.name)
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise InputError(f"changes: expected several in {part.name}, got {type(given).__name__}")
            object.__setattr__(self, part.name, frozenset(given))

    @property
    def gone_posts(self) -> frozenset[int]:
        """The posts that this name no longer has."""
        return self.delete_posts | self.move_posts

    def __bool__(self) -> bool:
        return any(getattr(self, part.name) for part in fields(self))

    def __or__(self, other: Changes) -> Changes:
        """Return both at once; a post that is deleted need not be moved."""
        both = {part.name: getattr(self, part.name) | getattr(other, part.name) for part in fields(self)}
        both["move_posts"] -= both["delete_posts"]
        return Changes(**both)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return sorted lists, ready for JSON."""
        plain: dict[str, list[Any]] = {
            part.name: sorted(getattr(self, part.name)) for part in fields(self) if part.name != "add_posts"
        }
        added = sorted(self.add_posts, key=lambda one: (one.community, one.time or 0, one.text))
        return plain | {"add_posts": [vars(one) for one in added]}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Changes:
        """Read what :meth:`to_dict` wrote; parts may be missing."""
        kinds: dict[str, Any] = {part.name: int if "posts" in part.name else str for part in fields(cls)}
        kinds["add_posts"] = lambda one: NewPost(**one)
        if unknown := set(plain) - set(kinds):
            raise InputError(f"changes: unknown part '{min(unknown)}'; there are: {', '.join(kinds)}")
        try:
            return cls(**{name: frozenset(map(kinds[name], part)) for name, part in plain.items()})
        except (TypeError, ValueError):
            raise InputError("changes: each part is a list: numbers of posts, or names") from None


@dataclass(frozen=True, eq=False)
class PostWords:
    """How often each post uses each word; rows follow the person's posts."""

    matrix: sp.csr_matrix
    vocabulary: pl.Series

    def only(self, keep: NDArray[np.bool_]) -> PostWords:
        """Return some of the posts."""
        return PostWords(self.matrix[keep], self.vocabulary)


@dataclass(frozen=True, eq=False)
class Person:
    """One person in a prepared crowd, after some changes."""

    user: str
    """The id in the store."""
    crowd: PreparedCrowd
    changes: Changes = field(default_factory=Changes)
    uncounted: frozenset[str] = frozenset()
    """Words left out of all counts while the texts stay as they are: quick, for a search among words."""
    _before: Person | None = None

    def __repr__(self) -> str:
        return f"Person({len(self.communities)} communities{', changed' if self.changes else ''})"

    @property
    def text(self) -> TextOptions:
        """How words are read."""
        return self.crowd.text

    @property
    def before(self) -> Person:
        """The person as they are in the store."""
        return self._before or self

    # What the crowd holds

    @cached_property
    def posts(self) -> pl.DataFrame:
        """The posts: number, community, time, text. New ones have numbers after all others."""
        import polars as pl

        if self._before is None:
            return self.crowd.own_posts(self.user)
        posts = self._kept_posts
        if self.changes.edit_words:
            words = self._before.words.only(self._stays)
            texts = _without_words(posts["text"], words, self.changes.edit_words, self.text)
            posts = posts.with_columns(text=texts)
        if not self.changes.add_posts:
            return posts
        added = pl.DataFrame(
            [[one.community, one.time, one.text] for one in self._added],
            schema={name: posts.schema[name] for name in ("community", "time", "text")},
            orient="row",
        )
        first = self._before.posts.height
        numbers = pl.Series("number", range(first, first + len(added)), dtype=pl.Int64)
        return pl.concat([posts, added.select(numbers, "community", "time", "text")])

    @cached_property
    def words(self) -> PostWords:
        """How often each post uses each word."""
        if self._before is not None and not (self.changes.edit_words or self.changes.add_posts):
            counted = self._before.words
            counted = counted.only(self._stays) if self.changes.gone_posts else counted
        else:
            counted = post_words(self.posts["text"], self.text)
        return _without_columns(counted, self.uncounted) if self.uncounted else counted

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """Words that only name somebody else: measured like all others, and never shown."""
        return mentioned_words(self.posts["text"], self.text)

    @cached_property
    def items(self) -> frozenset[str]:
        """Likes, ratings or purchases."""
        if self._before is not None:
            return (self._before.items - self.changes.drop_items) | self.changes.add_items
        return self.crowd.own_items(self.user)

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """Attributes with their values; those withheld stay in, as secrets to guess."""
        if self._before is not None:
            return self._before.attributes
        return self.crowd.own_attributes(self.user)

    @property
    def withheld(self) -> frozenset[str]:
        """Attributes that are no longer shown."""
        return self.changes.withhold_attributes

    @cached_property
    def other_name(self) -> Person | None:
        """The posts that went to another name, as somebody of their own."""
        moved, before = self.changes.move_posts, self._before
        if not moved or before is None:
            return None
        gone = frozenset(before.numbers.tolist()) - moved
        return replace(before, changes=Changes(delete_posts=gone), _before=before)

    # Posts by community

    @cached_property
    def communities(self) -> dict[str, int]:
        """Posts by community, the largest first."""
        if self.changes.gone_posts:
            counted = Counter(self._place.tolist())
        else:
            counted = Counter(self.crowd.population.of(self.user))
            counted.update(one.community for one in self._added)
        return dict(sorted(counted.items(), key=lambda part: (-part[1], part[0])))

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The posts' numbers."""
        return self.posts["number"].to_numpy()

    @cached_property
    def _place(self) -> NDArray[Any]:
        return self.posts["community"].to_numpy()

    def rows_in(self, community: str) -> NDArray[np.bool_]:
        """Mark the posts of one community."""
        return np.asarray(self._place == community, bool)

    def added_in(self, community: str) -> list[NewPost]:
        """Return the new posts in a community."""
        return [one for one in self._added if one.community == community]

    @cached_property
    def only_adds(self) -> bool:
        """True if nothing of what the crowd holds was taken away: then the prepared arrays say it all."""
        return not (self.changes.gone_posts or self.changes.edit_words or self.uncounted)

    @cached_property
    def _added(self) -> list[NewPost]:
        return sorted(self.changes.add_posts, key=lambda one: (one.community, one.time or 0, one.text))

    # Words by community

    def row(self, community: str) -> int | None:
        """Return the person's row in a community's index; None if they have no words there."""
        there = community in self.crowd.population.communities
        return self.crowd.words(community).row_of(self.user) if there else None

    def profile(self, community: str) -> Profile:
        """Return how often the person uses each word in a community."""
        if community not in self._profiles:
            self._profiles[community] = self._profile(community)
        return self._profiles[community]

    def _profile(self, community: str) -> Profile:
        if not self.only_adds:
            counts = self.counts(community)
            used = counts > 0
            return Profile.of_counts(self.keys[used], counts[used].astype(np.int64))
        row = self.row(community)
        there = Profile.of_words(()) if row is None else self.crowd.words(community).profile(row)
        for one in self.added_in(community):
            there = there.plus(Profile.of_words(tokenise(one.text, self.text)))
        return there

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        return {}

    def squares(self, own: str, there: str) -> Squares:
        """Return how near everybody in one community is to the person's profile in another, or in the same."""
        if (own, there) not in self._squares:
            profile = self.profile(own)
            comparison = self._comparison(own, there, profile)
            self._squares[own, there] = self.crowd.squares(there, comparison, profile)
        return self._squares[own, there]

    @cached_property
    def _squares(self) -> dict[tuple[str, str], Squares]:
        return {}

    def _comparison(self, own: str, there: str, profile: Profile) -> Comparison:
        """Gather once who uses the person's words: most changes only take words away."""
        gathered = self.before._comparisons
        known = gathered.get((own, there))
        if known is None or not np.isin(profile.keys, known.keys).all():
            keys = self.before.profile(own).plus(profile).keys
            known = gathered[own, there] = self.crowd.words(there).comparison(keys)
        return known

    @cached_property
    def _comparisons(self) -> dict[tuple[str, str], Comparison]:
        return {}

    def counts(self, community: str) -> NDArray[np.float64]:
        """Return how often the person uses each word of their vocabulary in a community."""
        rows = self.words.matrix[self.rows_in(community)]
        return np.asarray(rows.sum(axis=0), np.float64).ravel()

    @cached_property
    def keys(self) -> Keys:
        """The key of each word of the vocabulary."""
        before = self._before
        if before is not None and self.words.vocabulary is before.words.vocabulary:
            return before.keys
        return word_keys(self.words.vocabulary)

    # Changes

    def after(self, changes: Changes) -> Person:
        """Return the person after more changes."""
        if not changes:
            return self
        before = self.before
        before.check(changes)
        return replace(self, changes=self.changes | changes, _before=before)

    def without_counting(self, words: frozenset[str]) -> Person:
        """Return the person with some words counted out."""
        return replace(self, uncounted=self.uncounted | words, _before=self.before)

    def check(self, changes: Changes) -> None:
        """Refuse changes to what the person does not have."""
        for what, missing in (
            ("post number", changes.gone_posts and changes.gone_posts - set(self.numbers.tolist())),
            ("item", changes.drop_items and changes.drop_items - self.items),
            ("attribute", changes.withhold_attributes and changes.withhold_attributes - set(self.attributes)),
        ):
            if missing:
                raise InputError(
                    f"changes: this person has no {what} {min(missing)!r}; take it out of the changes"
                )

    def state(self, kind: Kind) -> Hashable:
        """Return what decides the findings about posts, items or attributes, to know when nothing changed."""
        changed = self.changes
        if kind == "posts":
            words = changed.edit_words, self.uncounted
            return changed.gone_posts, changed.move_posts, changed.add_posts, words
        return (changed.drop_items, changed.add_items) if kind == "items" else changed.withhold_attributes

    def state_in(self, *communities: str) -> Hashable:
        """Return what decides the findings about some communities."""
        gone: frozenset[int] = frozenset()
        if self.changes.gone_posts:
            there = np.isin(self.before._place, communities)
            gone = self.changes.gone_posts & frozenset(self.before.numbers[there].tolist())
        added = frozenset(one for one in self._added if one.community in communities)
        return gone, added, self.changes.edit_words, self.uncounted

    def digest(self, *communities: str) -> str:
        """Return a name for what can be read of the person in some communities."""
        said = self.posts.filter(self.posts["community"].is_in(list(communities)))
        rows = repr([self.user, *said.select("community", "time", "text").rows()])
        return blake2b(rows.encode(), digest_size=12).hexdigest()

    @cached_property
    def _stays(self) -> NDArray[np.bool_]:
        return ~np.isin(self.before.numbers, list(self.changes.gone_posts))

    @cached_property
    def _kept_posts(self) -> pl.DataFrame:
        posts = self.before.posts
        return posts.filter(self._stays) if self.changes.gone_posts else posts


def own_posts(crowd: Crowd, user: str) -> pl.DataFrame:
    """Return a person's posts (by name), numbered as :class:`Changes` names them."""
    return numbered_posts(crowd, crowd.user(user))


def post_words(texts: pl.Series, options: TextOptions) -> PostWords:
    """Count the words of each post."""
    import scipy.sparse as sp

    many = len(texts) > MANY_POSTS
    said, lengths = _words_of_many(texts, options) if many else _words_of_some(texts, options)
    vocabulary = said.unique().sort()
    column = np.asarray(vocabulary.search_sorted(said), np.int64)
    row = np.repeat(np.arange(len(texts)), lengths)
    matrix = sp.coo_matrix((np.ones(len(row)), (row, column)), shape=(len(texts), len(vocabulary)))
    return PostWords(matrix.tocsr(), vocabulary.rename("token"))


def _words_of_some(texts: pl.Series, options: TextOptions) -> tuple[pl.Series, NDArray[np.int64]]:
    """Return all words in order, and how many each post has: quick to start, for one person's posts."""
    import polars as pl

    words = [tokenise(text, options) for text in texts]
    said = pl.Series([word for post in words for word in post], dtype=pl.String)
    return said, np.array([len(post) for post in words], np.int64)


def _words_of_many(texts: pl.Series, options: TextOptions) -> tuple[pl.Series, NDArray[np.int64]]:
    """Return the same by the compiled twin."""
    from incrowd.text.tokeniser import Tokeniser

    tokeniser = Tokeniser(options)
    tokens = tokeniser.numbers(texts)
    return tokeniser.vocabulary().gather(tokens.numbers), tokens.lengths


def without_words(text: str, words: frozenset[str], options: TextOptions) -> str:
    """Return a text without the chunks (as spaces cut it) that hold one of the words; the rest stays as it is.

    >>> without_words("My cat is great", frozenset({"cat"}), TextOptions())
    'My is great'
    """
    lines = (line.split(" ") for line in text.split("\n"))
    return "\n".join(
        " ".join(chunk for chunk in line if not words.intersection(_tokens(chunk, options))) for line in lines
    )


@lru_cache(maxsize=2**16)
def _tokens(chunk: str, options: TextOptions) -> tuple[str, ...]:
    """Return the words of a piece of the person's own text; the same pieces come again with every change tried."""
    return tuple(tokenise(chunk, options))


def _without_words(
    texts: pl.Series, words: PostWords, gone: frozenset[str], options: TextOptions
) -> pl.Series:
    """Take words out of the posts that hold one of them."""
    import polars as pl

    columns = np.flatnonzero(words.vocabulary.is_in(list(gone)).to_numpy())
    touched = np.flatnonzero(np.diff(words.matrix[:, columns].indptr))
    edited = texts.to_list()
    for row in touched:
        edited[row] = without_words(edited[row], gone, options)
    return pl.Series(edited, dtype=pl.String)


def _without_columns(words: PostWords, gone: frozenset[str]) -> PostWords:
    """Count some words out; the vocabulary stays as it is."""
    from scipy import sparse

    keep = ~words.vocabulary.is_in(list(gone)).to_numpy()
    matrix = sparse.csr_matrix(words.matrix @ sparse.diags(keep.astype(np.float64)))
    matrix.eliminate_zeros()
    return PostWords(matrix, words.vocabulary)
