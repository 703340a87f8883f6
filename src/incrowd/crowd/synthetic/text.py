"""Turning drawn posts into text: the mixture of word sources, then Arrow strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from incrowd.crowd.synthetic import marks, style
from incrowd.crowd.synthetic.chance import Array, Floats, Ints, lookup_table, normal, stream, zipf
from incrowd.crowd.synthetic.vocabulary import FUNCTION_WORDS, pack

if TYPE_CHECKING:
    from incrowd.crowd.synthetic.posts import SyntheticPosts

LONGEST_POST = 400
LENGTH_SPREAD = 0.8
WORD_TAIL, SUBJECT_TAIL, SUBJECT_WORDS = 1.1, 1.0, 1_500
FUNCTION_SHARE, FAVOURITE_FUNCTION_SHARE, SUBJECT_SHARE = 0.42, 0.15, 0.3
WART_SHARE = 0.01


class Writer:
    """Writes the posts of one crowd."""

    def __init__(self, crowd: SyntheticPosts) -> None:
        from incrowd.crowd.synthetic import text_kernel

        self._kernel = text_kernel
        self._crowd = crowd
        self._words, self._word_ends = crowd.lexicon.spelling
        parts = [marks.column(part) for part in range(3)]
        self._marks, self._mark_ends = pack(pl.concat(parts))
        self._mark_sizes = np.diff(self._mark_ends).reshape(3, -1)
        self._word_key, self._mark_key = stream(crowd.seed, "words"), stream(crowd.seed, "marks")
        self._tables = text_kernel.Tables(
            function_words=lookup_table(zipf(len(FUNCTION_WORDS), 0.9, shift=1.0)),
            background=lookup_table(zipf(crowd.vocabulary, WORD_TAIL, shift=3.0)),
            subject=lookup_table(zipf(min(SUBJECT_WORDS, crowd.vocabulary), SUBJECT_TAIL, shift=2.0)),
            favourite=lookup_table(style.favourite_weights(style.FAVOURITES)),
            favourite_function=lookup_table(style.favourite_weights(style.FAVOURITE_FUNCTION_WORDS)),
            salient_bounds=crowd.lexicon.salient_bounds,
            first_made_up=crowd.lexicon.first_made_up,
        )
        self._shares = text_kernel.Shares(
            function=FUNCTION_SHARE,
            favourite_function=FAVOURITE_FUNCTION_SHARE,
            favourite=crowd.individuality,
            stray=crowd.occasional,
            subject=SUBJECT_SHARE,
        )

    def texts(self, post: Ints, identity: Ints, subject_key: Array, topic: Ints, focus: Floats) -> pl.Series:
        """Return the text of each post."""
        bounds = np.concatenate([[0], np.cumsum(self._lengths(post))])
        words, signs = np.empty(bounds[-1], dtype=np.int32), np.empty(bounds[-1], dtype=np.uint8)
        chunk = self._kernel.Chunk(post, identity, bounds, subject_key, topic, focus)
        styles, warts = self._crowd.styles, WART_SHARE if self._crowd.warts else 0.0
        self._kernel.draw_words(
            self._word_key, chunk, self._tables, self._shares, styles.favourites, styles.function_words, words
        )
        self._kernel.draw_marks(self._mark_key, post, identity, bounds, styles.habits, warts, signs)
        return self._spell(bounds, words, signs)

    def _lengths(self, post: Ints) -> Ints:
        """Return the number of words of each post: a lognormal tail, never none."""
        median = self._crowd.words_per_post / np.exp(LENGTH_SPREAD**2 / 2)
        lengths = median * np.exp(LENGTH_SPREAD * normal(stream(self._crowd.seed, "length"), post))
        return np.asarray(np.clip(np.rint(lengths), 1, LONGEST_POST), dtype=np.int64)

    def _spell(self, bounds: Ints, words: Array, signs: Array) -> pl.Series:
        import pyarrow as pa

        ends = np.zeros(len(bounds), dtype=np.int64)
        self._kernel.measure(bounds, words, signs, self._word_ends, self._mark_sizes, ends)
        text = np.empty(ends[-1], dtype=np.uint8)
        self._kernel.spell(
            bounds, words, signs, self._words, self._word_ends, self._marks, self._mark_ends, text
        )
        arrow = pa.LargeStringArray.from_buffers(len(bounds) - 1, pa.py_buffer(ends), pa.py_buffer(text))
        strings = pl.from_arrow(arrow)
        if not isinstance(strings, pl.Series):
            raise TypeError("an Arrow array becomes a series")
        return strings
