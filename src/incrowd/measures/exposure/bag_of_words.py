"""The plainest space: a post is how often it uses each salient word, a topic is its list of words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from incrowd.measures.exposure.space import Floats, Ints, WordLists
from incrowd.measures.exposure.topics import TopicSet


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
