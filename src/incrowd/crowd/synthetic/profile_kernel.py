"""Counting drawn words until enough are distinct, compiled. Loaded on first use."""

from __future__ import annotations

import numpy as np

from incrowd.crowd.synthetic.chance import GOLDEN, Array
from incrowd.crowd.synthetic.text_kernel import U40, _mix, _pick, _subject_word, compiled

HALF = np.uint64(2**23)


@compiled
def fill_profiles(
    key: np.uint64,
    community_key: np.uint64,
    bounds: Array,
    communities: int,
    table: Array,
    vocabulary: int,
    words: Array,
    shares: Array,
) -> None:
    """Fill in each row's words, in rising order, and their shares."""
    counts = np.zeros(vocabulary, dtype=np.int32)
    for i in range(len(bounds) - 1):
        state = _mix(key + np.uint64(i) * GOLDEN)
        own_words = _mix(community_key + np.uint64(i % communities) * GOLDEN)
        at, total = bounds[i], 0
        while at < bounds[i + 1]:
            state += GOLDEN
            draw = _mix(state)
            word = _pick(table, draw)
            if draw >> U40 < HALF:
                word = _subject_word(word, own_words, vocabulary)
            if counts[word] == 0:
                words[at] = word
                at += 1
            counts[word] += 1
            total += 1
        row = words[bounds[i] : bounds[i + 1]]
        row.sort()
        for j in range(bounds[i], bounds[i + 1]):
            shares[j] = counts[words[j]] / total
            counts[words[j]] = 0
