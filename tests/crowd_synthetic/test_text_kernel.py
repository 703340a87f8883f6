"""The compiled speller against a plain one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from incrowd import synthetic
from incrowd.crowd.synthetic import kernels, members
from incrowd.crowd.synthetic.posts import Writer
from incrowd.crowd.synthetic.words import FUNCTION_WORDS


def spelt_plainly(words: list[str], signs: list[int]) -> str:
    parts = []
    for word, sign in zip(words, signs, strict=True):
        before, after, gap = members.MARKS[sign % members.CAPITAL]
        parts += [before, word[0].upper() + word[1:] if sign >= members.CAPITAL else word, after, gap]
    return "".join(parts[:-1])


def test_spelling_equals_plain_joining():
    crowd = synthetic.posts(users=2, communities=1, vocabulary=200)
    chooser = np.random.default_rng(1)
    bounds = np.concatenate([[0], np.cumsum(chooser.integers(1, 30, size=50))])
    words = chooser.integers(0, len(crowd.lexicon.words), size=bounds[-1]).astype(np.int32)
    kinds = chooser.integers(0, len(members.MARKS), size=bounds[-1])
    signs = (kinds + members.CAPITAL * chooser.integers(0, 2, size=bounds[-1])).astype(np.uint8)
    spelt = Writer(crowd)._spell(bounds, words, signs)
    names = crowd.lexicon.words.gather(words).to_list()
    expected = [spelt_plainly(names[low:high], signs[low:high].tolist()) for low, high in pairwise(bounds)]
    assert spelt.to_list() == expected


def test_words_come_from_their_sources_in_the_stated_shares():
    crowd = synthetic.posts(users=20, communities=1, vocabulary=20_000)
    writer = Writer(crowd)
    count, length = 400, 200
    post, identity = np.arange(count), np.zeros(count, dtype=np.int64)
    bounds = np.arange(count + 1) * length
    keys, topic = np.full(count, 77, dtype=np.uint64), np.full(count, 2)
    words = np.empty(bounds[-1], dtype=np.int32)
    chunk = kernels.Chunk(post, identity, bounds, keys, topic, np.full(count, 0.4))
    shares = kernels.SourceShares(0.5, 0.2, 0.3, 0.1, 0.2)
    styles = crowd.styles
    kernels.draw_words(
        np.uint64(5), chunk, writer._tables, shares, styles.favourites, styles.function_words, words
    )
    low, high = crowd.lexicon.salient_bounds[[2, 3]]
    salient = (words >= crowd.lexicon.first_salient) & (words < crowd.lexicon.first_made_up)
    on_topic = (words >= low) & (words < high)
    content = words >= len(FUNCTION_WORDS)
    assert abs(content.mean() - 0.5) < 0.01
    assert abs(on_topic[content].mean() - (0.4 + 0.6 * 0.1 / 12)) < 0.01
    assert abs((salient & ~on_topic)[content].mean() - 0.6 * 0.1 * 11 / 12) < 0.01
    own = np.isin(words, styles.favourites[0])
    assert abs(own[content].mean() - 0.6 * 0.3) < 0.015
