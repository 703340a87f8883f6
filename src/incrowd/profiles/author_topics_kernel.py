"""The Gibbs sampler behind `author_topics.py`, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def sample(
    words: Any,
    posts: Any,
    authors: Any,
    vocabulary: int,
    people: int,
    n_author: int,
    n_document: int,
    sweeps: int,
    averaged: int,
    alpha: float,
    beta: float,
    delta: float,
    seed: int,
) -> Any:
    """Sample a topic for every word, sweep after sweep; return the averaged author mixtures."""
    np.random.seed(seed)
    n_topics = n_author + n_document  # author topics first
    by_author = np.zeros((people, n_author), np.int32)
    from_author = np.zeros(people, np.int32)
    from_post = np.zeros(people, np.int32)
    by_post = np.zeros((authors.size, n_document), np.int32)
    post_total = np.zeros(authors.size, np.int32)
    by_word = np.zeros((vocabulary, n_topics), np.int32)
    topic_total = np.zeros(n_topics, np.int64)
    topics = np.empty(words.size, np.int32)
    for i in range(words.size):
        topics[i] = np.random.randint(n_topics)
        a = authors[posts[i]]
        by_word[words[i], topics[i]] += 1
        topic_total[topics[i]] += 1
        if topics[i] < n_author:
            by_author[a, topics[i]] += 1
            from_author[a] += 1
        else:
            by_post[posts[i], topics[i] - n_author] += 1
            post_total[posts[i]] += 1
            from_post[a] += 1

    mixtures = np.zeros((people, n_author))
    cumulative = np.empty(n_topics)
    for sweep in range(sweeps):
        for i in range(words.size):
            w, d = words[i], posts[i]
            a, t = authors[d], topics[i]
            by_word[w, t] -= 1
            topic_total[t] -= 1
            if t < n_author:
                by_author[a, t] -= 1
                from_author[a] -= 1
            else:
                by_post[d, t - n_author] -= 1
                post_total[d] -= 1
                from_post[a] -= 1

            total = 0.0
            share = (from_author[a] + delta) / (from_author[a] + n_author * alpha)
            for t in range(n_author):
                word = (by_word[w, t] + beta) / (topic_total[t] + vocabulary * beta)
                total += share * (by_author[a, t] + alpha) * word
                cumulative[t] = total
            share = (from_post[a] + delta) / (post_total[d] + n_document * alpha)
            for t in range(n_document):
                word = (by_word[w, n_author + t] + beta) / (topic_total[n_author + t] + vocabulary * beta)
                total += share * (by_post[d, t] + alpha) * word
                cumulative[n_author + t] = total
            t = int(np.searchsorted(cumulative, np.random.random() * total, side="right"))
            t = min(t, n_topics - 1)

            topics[i] = t
            by_word[w, t] += 1
            topic_total[t] += 1
            if t < n_author:
                by_author[a, t] += 1
                from_author[a] += 1
            else:
                by_post[d, t - n_author] += 1
                post_total[d] += 1
                from_post[a] += 1
        if sweep >= sweeps - averaged:
            for a in range(people):
                for t in range(n_author):
                    mixtures[a, t] += (by_author[a, t] + alpha) / (from_author[a] + n_author * alpha)
    return mixtures / min(averaged, sweeps)
