"""The space of sentence embeddings: what a model that has read a large part of the web makes of a post.

A static model gives every word a vector such that the sum over a sentence says what the sentence is about. What all
posts have in common is taken off, so that posts about nothing in particular lie around the origin, and directions in
which posts differ much are shortened, so that no theme drowns the others.
"""

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
class Embeddings:
    """Word vectors of a sentence model, fitted to a background; a post is the sum of its words."""

    topics: TopicSet
    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    topic_vectors: NDArray[np.float32]
    """One row a topic, of length 1; a topic that the model does not know is a row of zeros."""
    prior: float
    """The length that every post has besides its words': a short post says little."""
    name = "EMB"

    @cached_property
    def hash(self) -> str:
        """A digest of the topics and the vectors."""
        digest = blake2b("\n".join(self.words).encode(), digest_size=8, key=self.topics.hash.encode())
        for array in (self.vectors, self.topic_vectors):
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(np.float64(self.prior).tobytes())
        return digest.hexdigest()

    def sums(self, posts: WordLists) -> Floats:
        """Return each post's vector: the sum of its words' vectors."""
        return np.asarray(posts.counts(len(self.words)).astype(np.float32) @ self.vectors)

    def similarities(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic, with the prior in the length; 0 for posts that point away."""
        return in_parts(posts, len(self.topics), POSTS_A_PART, self._cosines)

    def _cosines(self, posts: WordLists) -> Floats:
        sums = self.sums(posts)
        length = np.hypot(np.linalg.norm(sums, axis=1), self.prior)
        along = sums @ self.topic_vectors.T
        return np.asarray(np.maximum(along, 0) / np.where(length > 0, length, 1)[:, None])

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word adds to the cosine; nothing if the post points away from the topic."""
        chosen = self.vectors[words].astype(np.float64)
        along = chosen @ self.topic_vectors[topic].astype(np.float64)
        length = np.hypot(np.linalg.norm(chosen.sum(axis=0)), self.prior)
        return along / length if along.sum() > 0 else np.zeros(len(words))
