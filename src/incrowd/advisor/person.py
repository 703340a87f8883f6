"""What is known of one person: their posts, items and attributes, and the same after some changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.advisor.answer import Changes
from incrowd.advisor.edit import without_words
from incrowd.errors import InputError

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import Kind
    from incrowd.text.options import TextOptions


MANY = 3_000
"""Posts from which on the compiled tokeniser is worth setting up."""


@dataclass(frozen=True, eq=False)
class PostWords:
    """How often each post uses each word; rows follow the person's posts."""

    matrix: sp.csr_matrix
    vocabulary: pl.Series

    def only(self, keep: NDArray[np.bool_]) -> PostWords:
        """Return some of the posts."""
        return PostWords(self.matrix[keep], self.vocabulary)


@dataclass(frozen=True, eq=False)
class Own:
    """One person's own data. Nothing of anybody else is in it."""

    user: str
    """The id in the store."""
    posts: pl.DataFrame
    """number, community, time, text."""
    words: PostWords
    items: frozenset[str]
    attributes: Mapping[str, str]
    text: TextOptions
    withheld: frozenset[str] = frozenset()
    """Attributes that are no longer shown; their values stay known here, as secrets to guess."""
    edited: frozenset[str] = frozenset()
    """Words that were taken out of the posts."""
    other_name: Own | None = None
    """The posts that went to another name."""

    def __repr__(self) -> str:
        return (
            f"Own({self.posts.height:,} posts, {len(self.items):,} items, {len(self.attributes)} attributes)"
        )

    @property
    def communities(self) -> dict[str, int]:
        """Posts a community, the largest first."""
        counted = Counter(self._place.tolist())
        return dict(sorted(counted.items(), key=lambda part: (-part[1], part[0])))

    @cached_property
    def _place(self) -> NDArray[Any]:
        return self.posts["community"].to_numpy()

    @cached_property
    def numbers(self) -> NDArray[np.int64]:
        """The posts' numbers."""
        return self.posts["number"].to_numpy()

    def state(self, kind: Kind) -> Hashable:
        """Return what decides the findings about posts, items or attributes, to know when nothing changed."""
        if kind == "posts":
            moved = b"" if self.other_name is None else self.other_name.numbers.tobytes()
            return self.numbers.tobytes(), self.edited, moved
        return self.items if kind == "items" else self.withheld

    def state_in(self, *communities: str) -> Hashable:
        """Return what decides the findings about some communities."""
        return tuple(self.numbers[self.rows_in(name)].tobytes() for name in communities), self.edited

    def rows_in(self, community: str) -> NDArray[np.bool_]:
        """Mark the posts of one community."""
        return np.asarray(self._place == community, bool)

    def after(self, changes: Changes) -> Own:
        """Return what is left after the changes."""
        if not changes:
            return self
        self._check(changes)
        posts, words = self.posts, self.words
        if changes.gone_posts:
            kept = ~np.isin(self.numbers, list(changes.gone_posts))
            posts, words = posts.filter(kept), words.only(kept)
        if changes.edit_words:
            posts = posts.with_columns(text=_edited(posts["text"], words, changes.edit_words, self.text))
            words = post_words(posts["text"], self.text)
        return replace(
            self,
            other_name=self._moved(changes.move_posts) if changes.move_posts else self.other_name,
            posts=posts,
            words=words,
            edited=self.edited | changes.edit_words,
            items=self.items - changes.drop_items,
            withheld=self.withheld | changes.withhold_attributes,
        )

    def _moved(self, numbers: frozenset[int]) -> Own:
        moved = np.isin(self.numbers, list(numbers))
        nothing: dict[str, str] = {}
        return Own(
            self.user, self.posts.filter(moved), self.words.only(moved), frozenset(), nothing, self.text
        )

    def _check(self, changes: Changes) -> None:
        numbers = set(self.numbers.tolist())
        for what, missing in (
            ("post number", changes.gone_posts - numbers),
            ("item", changes.drop_items - self.items),
            ("attribute", changes.withhold_attributes - set(self.attributes)),
        ):
            if missing:
                raise InputError(
                    f"changes: this person has no {what} {min(missing)!r}; take it out of the changes"
                )


def known(crowd: Crowd, user: str, text: TextOptions) -> Own:
    """Read what the crowd holds of one person (by id)."""
    posts = own_posts(crowd, user)
    mine = pl.col("user") == user
    items = crowd.items().filter(mine).select("item").collect()["item"]
    attributes = crowd.attributes().filter(mine).collect().group_by("attribute").agg(pl.col("value").min())
    return Own(
        user=user,
        posts=posts,
        words=post_words(posts["text"], text),
        items=frozenset(items.to_list()),
        attributes=dict(attributes.select("attribute", "value").sort("attribute").iter_rows()),
        text=text,
    )


def own_posts(crowd: Crowd, user: str) -> pl.DataFrame:
    """Return a person's posts (by id), numbered: by community, then time, then text."""
    found = crowd.posts(user=user).select("community", "time", "text").collect()
    ordered = found.sort("community", "time", "text", nulls_last=True, maintain_order=True)
    return ordered.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64))


def post_words(texts: pl.Series, options: TextOptions) -> PostWords:
    """Count the words of each post."""
    import scipy.sparse as sp

    said, lengths = _words_of_many(texts, options) if len(texts) > MANY else _words_of_few(texts, options)
    vocabulary = said.unique().sort()
    column = np.asarray(vocabulary.search_sorted(said), np.int64)
    row = np.repeat(np.arange(len(texts)), lengths)
    matrix = sp.coo_matrix((np.ones(len(row)), (row, column)), shape=(len(texts), len(vocabulary)))
    return PostWords(matrix.tocsr(), vocabulary.rename("token"))


def _words_of_few(texts: pl.Series, options: TextOptions) -> tuple[pl.Series, NDArray[np.int64]]:
    """Return all words in order, and how many each post has: quick to start, for one person's posts."""
    from incrowd.text.reference import chunk_tokens, lexicon_of, plain_text

    # Like tokenise, but each distinct chunk is looked at once: people repeat themselves.
    tokens_of = cache(partial(chunk_tokens, lexicon=lexicon_of(options)))
    words = [
        [word for chunk in plain_text(text, options).split() for word in tokens_of(chunk)] for text in texts
    ]
    said = pl.Series([word for post in words for word in post], dtype=pl.String)
    return said, np.array([len(post) for post in words], np.int64)


def _words_of_many(texts: pl.Series, options: TextOptions) -> tuple[pl.Series, NDArray[np.int64]]:
    """Return the same by the compiled twin."""
    from incrowd.text.tokeniser import Tokeniser

    tokeniser = Tokeniser(options)
    tokens = tokeniser.numbers(texts)
    return tokeniser.vocabulary().gather(tokens.numbers), tokens.lengths


def _edited(texts: pl.Series, words: PostWords, gone: frozenset[str], options: TextOptions) -> pl.Series:
    """Take words out of the posts that hold one of them."""
    columns = np.flatnonzero(words.vocabulary.is_in(list(gone)).to_numpy())
    touched = np.flatnonzero(np.diff(words.matrix[:, columns].indptr))
    edited = texts.to_list()
    for row in touched:
        edited[row] = without_words(edited[row], gone, options)
    return pl.Series(edited, dtype=pl.String)
