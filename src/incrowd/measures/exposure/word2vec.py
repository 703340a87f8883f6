"""The word2vec space: related words lie close together, and a post leans towards the words near the topic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.exposure.space import Floats, Ints, WordLists, in_parts
from incrowd.measures.exposure.topics import TopicSet

POSTS_A_PART = 8_192


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Trained word vectors. A topic is the sum of its words' vectors."""

    topics: TopicSet
    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    levels: NDArray[np.float32]
    """For each topic the cosine that posts about anything else reach; 0 as printed."""
    literal: bool = False
    """Let words that point away from a topic count too, turned towards it, as printed."""
    name = "W2V"

    @cached_property
    def hash(self) -> str:
        """A digest of the topics and the vectors."""
        digest = blake2b("\n".join(self.words).encode(), digest_size=8, key=self.topics.hash.encode())
        digest.update(np.ascontiguousarray(self.vectors).tobytes() + bytes([self.literal]))
        digest.update(np.ascontiguousarray(self.levels).tobytes())
        return digest.hexdigest()

    @cached_property
    def topic_vectors(self) -> NDArray[np.float32]:
        """One row a topic; zeros if none of its words is known."""
        place = {word: at for at, word in enumerate(self.words)}
        known = [[place[word] for word in topic.words if word in place] for topic in self.topics.topics]
        return np.array([self.vectors[rows].sum(axis=0) for rows in known], np.float32)

    @cached_property
    def _projections(self) -> NDArray[np.float32]:
        """The scalar product of every word with every topic."""
        return np.asarray(self.vectors @ self.topic_vectors.T)

    @cached_property
    def _topic_lengths(self) -> NDArray[np.float32]:
        return np.asarray(np.linalg.norm(self.topic_vectors, axis=1), np.float32)

    @cached_property
    def relevance(self) -> NDArray[np.float32]:
        """How much each word counts for each topic: its cosine with it, 0 where that is negative."""
        lengths = np.outer(np.linalg.norm(self.vectors, axis=1), self._topic_lengths)
        cosines = np.divide(
            self._projections, lengths, out=np.zeros_like(self._projections), where=lengths > 0
        )
        return cosines if self.literal else np.maximum(cosines, 0)

    def similarities(self, posts: WordLists) -> Floats:
        """Return how far each post's cosine with each topic lies above its level: 0 there or below, 1 at cosine 1."""
        return np.asarray(np.maximum(self.cosines(posts) - self.levels, 0) / (1 - self.levels))

    def cosines(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic."""
        return in_parts(posts, len(self.topics), POSTS_A_PART, self._cosines)

    def _cosines(self, posts: WordLists) -> Floats:
        from incrowd.measures.exposure.kernels import weighted_cosines

        distinct = posts.counts(len(self.words))
        out = np.empty((len(posts), len(self.topics)), np.float32)
        weighted_cosines(
            distinct.indices, distinct.indptr, self.vectors, self._projections, self.relevance,
            self._topic_lengths, out,
        )  # fmt: skip
        return out

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word adds to the similarity; a word said again adds nothing."""
        total = post_vector(self, words, topic)
        length = np.linalg.norm(total) * self._topic_lengths[topic]
        if not length > 0:
            return np.zeros(len(words))
        first = np.zeros(len(words), bool)
        first[np.unique(words, return_index=True)[1]] = True
        parts = first * self.relevance[words, topic] * self._projections[words, topic] / length
        cosine, level = parts.sum(), self.levels[topic]
        above = max(cosine - level, 0) / (1 - level)
        return np.asarray(parts * (above / cosine)) if cosine > 0 else np.zeros(len(words))


def post_vector(space: WordVectors, words: Ints, topic: int) -> Floats:
    """Return a post's vector as seen from a topic: its distinct words, each as far as it points there."""
    distinct = np.unique(words)
    weights = space.relevance[distinct, topic].astype(np.float64)
    return np.asarray(weights @ space.vectors[distinct].astype(np.float64))
