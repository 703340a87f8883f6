"""The LDA space: a post is a mixture of latent dimensions, a topic is one of them.

Training counts how often each word was drawn from each dimension. Folding a post in looks for the mixture
that explains its words under those counts, with the dimensions left as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.exposure.space import Floats, Ints, WordLists, in_parts
from incrowd.measures.exposure.topics import TopicSet

ROUNDS = 20
POSTS_A_PART = 8_192


@dataclass(frozen=True, eq=False)
class LdaSpace:
    """A trained model, sparse: word w has the entries ``word_starts[w]`` up to ``word_starts[w + 1]``."""

    topics: TopicSet
    words: tuple[str, ...]
    word_starts: NDArray[np.int64]
    dims: NDArray[np.int32]
    """The dimension of each entry."""
    weights: NDArray[np.float32]
    """P(word | dimension) of each entry."""
    prior: NDArray[np.float32]
    """alpha: what each dimension counts before any word is read."""
    topic_vectors: NDArray[np.float32]
    """One row a topic, of length 1; a topic that the model does not know is a row of zeros."""
    name = "LDA"

    @cached_property
    def hash(self) -> str:
        """A digest of the topics and the trained numbers."""
        digest = blake2b("\n".join(self.words).encode(), digest_size=8, key=self.topics.hash.encode())
        for array in (self.word_starts, self.dims, self.weights, self.prior, self.topic_vectors):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def _prior_along(self) -> Floats:
        """What the prior adds to every post's scalar product with each topic."""
        return np.asarray(self.prior @ self.topic_vectors.T)

    def mixtures(self, posts: WordLists) -> Floats:
        """Return the (unscaled) mixture of each post; zeros for a post without a known word."""
        from incrowd.measures.exposure.kernels import fold_in as compiled

        out = np.empty((len(posts), len(self.prior)), np.float32)
        compiled(
            posts.words, posts.bounds, self.word_starts, self.dims, self.weights, self.prior, ROUNDS, out
        )
        return out

    def similarities(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic, as far as it comes from the post's words.

        The prior lies in every post, so what it adds says nothing about anybody: it counts in the length only.
        """
        return in_parts(posts, len(self.topics), POSTS_A_PART, self._cosines)

    def _cosines(self, posts: WordLists) -> Floats:
        mixtures = self.mixtures(posts)
        length = np.sqrt(np.einsum("pk,pk->p", mixtures, mixtures))
        along = mixtures @ self.topic_vectors.T - self._prior_along
        # Rounding may leave a trace below 0.
        return np.asarray(
            np.where(length[:, None] > 0, np.maximum(along, 0), 0) / np.maximum(length, 1e-9)[:, None]
        )

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word adds to the cosine."""
        mixture, drawn = fold_in(self, words)
        return np.asarray(drawn @ self.topic_vectors[topic].astype(np.float64) / np.sqrt(mixture @ mixture))


def fold_in(space: LdaSpace, words: Ints) -> tuple[Floats, Floats]:
    """Return a post's mixture, and how much of each word comes from each dimension: the readable reference.

    Start from the prior. In each round, share every word out among the dimensions in proportion to mixture
    times P(word | dimension); the next mixture is the prior plus the shares.
    """
    table = np.zeros((len(words), len(space.prior)))
    for row, word in enumerate(words):
        entries = slice(space.word_starts[word], space.word_starts[word + 1])
        table[row, space.dims[entries]] = space.weights[entries]
    mixture, drawn = space.prior.astype(np.float64), table
    for _ in range(ROUNDS):
        likely = mixture * table
        total = likely.sum(axis=1, keepdims=True)
        drawn = np.divide(likely, total, out=np.zeros_like(likely), where=total > 0)
        mixture = space.prior + drawn.sum(axis=0)
    return mixture, drawn
