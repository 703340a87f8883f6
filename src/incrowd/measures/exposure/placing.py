"""Where a topic lies in a learnt space: at what background posts that use its words hold more of than others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.exposure.space import Floats, WordLists
from incrowd.measures.exposure.topics import TopicSet

ENOUGH_WORDS = 2
"""A background post is on a topic if it uses so many of its salient words."""


def word_lists(posts: Sequence[Sequence[str]], words: Sequence[str]) -> WordLists:
    """Return the posts as numbers of the words that are known; the others are left out."""
    place = {word: at for at, word in enumerate(words)}
    sizes = np.fromiter(map(len, posts), np.int64, len(posts))
    tokens = chain.from_iterable(posts)
    numbers = np.fromiter((place.get(token, -1) for token in tokens), np.int32, int(sizes.sum()))
    kept = np.concatenate([[0], np.cumsum(numbers >= 0)])
    return WordLists(numbers[numbers >= 0], kept[np.concatenate([[0], np.cumsum(sizes)])])


def known_words(topics: TopicSet, words: Sequence[str]) -> list[list[int]]:
    """Return, for each topic, the numbers of those of its salient words that a space knows."""
    place = {word: at for at, word in enumerate(words)}
    return [[place[word] for word in topic.words if word in place] for topic in topics.topics]


def posts_on_topics(posts: WordLists, columns: Sequence[Sequence[int]], width: int) -> NDArray[np.bool_]:
    """Say which post is on which topic: it uses two of its salient words, or the only one that is known."""
    held = posts.counts(width).tocsc() > 0
    on = np.zeros((len(posts), len(columns)), np.bool_)
    for topic, some in enumerate(columns):
        if some:
            hits = np.asarray(held[:, list(some)].sum(axis=1)).ravel()
            on[:, topic] = hits >= min(ENOUGH_WORDS, len(some))
    return on


def excess(parts: Iterable[Floats], on: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how the mean of the posts on each topic differs from the mean of all, one row a topic.

    `parts` are the posts' vectors in order, some at a time. A topic that no post is on is a row of zeros.

    >>> excess([np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])], np.array([[True, False], [False, False]])).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """
    inside: Any = 0.0
    everything: Any = 0.0
    begin = 0
    for part in parts:
        inside = inside + on[begin : begin + len(part)].T.astype(np.float64) @ part
        everything = everything + part.sum(axis=0, dtype=np.float64)
        begin += len(part)
    posts = on.sum(axis=0)[:, None]
    return np.where(posts > 0, inside / np.maximum(posts, 1) - everything / len(on), 0.0)


def unit(vectors: Floats) -> NDArray[np.float32]:
    """Bring every row to length 1; a row of zeros stays."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0), np.float32)
