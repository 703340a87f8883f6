"""Compiled twins of the spaces' arithmetic; each loops over posts and releases the lock."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def fold_in(
    words: Any, bounds: Any, word_starts: Any, dims: Any, weights: Any, prior: Any, rounds: int, mixtures: Any
) -> None:
    """Infer the mixture of every post; see :func:`incrowd.measures.exposure.lda.fold_in`."""
    now, after = np.empty_like(prior), np.empty_like(prior)
    for post in range(len(bounds) - 1):
        first, last = bounds[post], bounds[post + 1]
        mixtures[post, :] = 0.0
        if first == last:
            continue
        now[:] = prior
        for _ in range(rounds):
            after[:] = prior
            for at in range(first, last):
                begin, end = word_starts[words[at]], word_starts[words[at] + 1]
                total = np.float32(0.0)
                for entry in range(begin, end):
                    total += now[dims[entry]] * weights[entry]
                if total > 0:
                    scale = np.float32(1.0) / total
                    for entry in range(begin, end):
                        after[dims[entry]] += now[dims[entry]] * weights[entry] * scale
            now, after = after, now
        mixtures[post, :] = now


@njit(nogil=True, cache=True)
def weighted_cosines(
    words: Any, bounds: Any, vectors: Any, projections: Any, relevance: Any, lengths: Any, out: Any
) -> None:
    """Return each post's cosine with each topic; see :func:`incrowd.measures.exposure.word2vec.post_vector`."""
    dims = vectors.shape[1]
    total = np.empty(dims, np.float32)
    for post in range(len(bounds) - 1):
        for topic in range(relevance.shape[1]):
            total[:] = 0.0
            along = 0.0
            for at in range(bounds[post], bounds[post + 1]):
                weight = relevance[words[at], topic]
                if weight != 0.0:
                    along += weight * projections[words[at], topic]
                    for dim in range(dims):
                        total[dim] += weight * vectors[words[at], dim]
            norm = 0.0
            for dim in range(dims):
                norm += total[dim] * total[dim]
            out[post, topic] = along / (np.sqrt(norm) * lengths[topic]) if norm > 0 else 0.0
