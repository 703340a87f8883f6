"""A space: how an adversary tells how close a post is to a topic; and the plainest one, a bag of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.exposure.topics import TopicSet
from incrowd.text.reference import tokenise

if TYPE_CHECKING:
    import polars as pl
    import scipy.sparse as sp

    from incrowd.text.options import TextOptions
    from incrowd.text.tokeniser import TokenNumbers

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class WordLists:
    """The words of some posts as numbers of a space: post p has ``words[bounds[p]:bounds[p + 1]]``."""

    words: NDArray[np.int32]
    bounds: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def part(self, first: int, last: int) -> WordLists:
        """Return the posts from `first` up to `last`."""
        begin, end = self.bounds[first], self.bounds[last]
        return WordLists(self.words[begin:end], self.bounds[first : last + 1] - begin)

    def counts(self, width: int) -> sp.csr_matrix:
        """Return how often each post has each word."""
        # One post of a draft needs no matrix, and somebody waits for it: SciPy is loaded for whole columns only.
        import scipy.sparse as sp

        ones = np.ones(len(self.words))
        matrix = sp.csr_matrix((ones, self.words, self.bounds), shape=(len(self), width), copy=True)
        matrix.sum_duplicates()
        return matrix


class Space(Protocol):
    """What an adversary knows about words and topics."""

    @property
    def name(self) -> str:
        """The paper's name, BOW, LDA or W2V; or EMB."""
        ...

    @property
    def topics(self) -> TopicSet:
        """The topics, in the order of the columns."""
        ...

    @property
    def words(self) -> Sequence[str]:
        """The words this adversary knows; all others are passed over."""
        ...

    @property
    def hash(self) -> str:
        """A digest of all that decides similarities."""
        ...

    def similarities(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic; a post without a known word has 0."""
        ...

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word of one post adds to its similarity."""
        ...


class Encoder:
    """Turns posts into a space's words, a column of texts at a time."""

    def __init__(self, space: Space, text: TextOptions) -> None:
        # Compiled; a draft is read without it.
        from incrowd.text.tokeniser import Tokeniser

        self._text = text
        self._tokeniser = Tokeniser(text)
        self._known = {word: place for place, word in enumerate(space.words)}
        self._places = np.empty(0, np.int32)

    def encode(self, texts: pl.Series) -> WordLists:
        """Return the posts' known words."""
        return self._known_only(self._tokeniser.numbers(texts))

    def encode_one(self, text: str) -> WordLists:
        """Return one post's known words, without the cost of setting up a whole column."""
        places = [self._known[word] for word in tokenise(text, self._text) if word in self._known]
        return WordLists(np.array(places, np.int32), np.array([0, len(places)], np.int64))

    def _known_only(self, tokens: TokenNumbers) -> WordLists:
        vocabulary = self._tokeniser.vocabulary()
        new = vocabulary[len(self._places) :].to_list()
        found = np.array([self._known.get(word, -1) for word in new], dtype=np.int32)
        self._places = np.concatenate([self._places, found])
        places = self._places[tokens.numbers]
        kept_before = np.concatenate([[0], np.cumsum(places >= 0)])
        bounds = kept_before[np.concatenate([[0], tokens.ends])]
        return WordLists(places[places >= 0], bounds.astype(np.int64))


def in_parts(posts: WordLists, topics: int, size: int, work: Callable[[WordLists], Floats]) -> Floats:
    """Run `work` on parts of the posts, on all cores; kernels release the lock."""
    firsts = range(0, len(posts), size)
    parts = [posts.part(first, min(first + size, len(posts))) for first in firsts]
    if len(parts) <= 1:
        return work(posts) if parts else np.zeros((0, topics), np.float32)
    with ThreadPoolExecutor() as threads:
        return np.concatenate(list(threads.map(work, parts)))


@dataclass(frozen=True)
class BagOfWords:
    """Needs no training. Its features are the salient words of all its topics."""

    topics: TopicSet
    name = "BOW"

    @property
    def words(self) -> tuple[str, ...]:
        """All salient words."""
        return self.topics.vocabulary

    @property
    def hash(self) -> str:
        """The topics decide everything."""
        return self.topics.hash

    @cached_property
    def _topic_words(self) -> Floats:
        """One column a topic: 1/sqrt(its words) for its words, so that the column has length 1."""
        place = {word: at for at, word in enumerate(self.words)}
        matrix = np.zeros((len(self.words), len(self.topics)))
        for column, topic in enumerate(self.topics.topics):
            matrix[[place[word] for word in topic.words], column] = 1 / np.sqrt(len(topic.words))
        return matrix

    def similarities(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic."""
        if len(posts) == 1:
            return self._one(posts.words)
        counts = posts.counts(len(self.words))
        length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
        return np.asarray(counts @ self._topic_words / np.maximum(length, 1.0)[:, None])

    def _one(self, words: Ints) -> Floats:
        """Do the same for one post, to the bit, without loading SciPy: somebody waits for a draft's answer."""
        every = np.bincount(words, minlength=len(self.words))
        used = np.flatnonzero(every)
        counts = every[used]
        length = np.sqrt((counts**2).sum())
        total = (counts[:, None] * self._topic_words[used]).sum(axis=0)
        return np.asarray(total / np.maximum(length, 1.0))[None, :]

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word adds to the cosine."""
        if not len(words):
            return np.zeros(0)
        length = np.sqrt((np.bincount(words) ** 2).sum())
        return np.asarray(self._topic_words[words, topic] / length)
