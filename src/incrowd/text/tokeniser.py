"""The fast twin of the reference: the same tokens, as numbers, for whole columns of posts.

Equal to the reference by construction. A kernel settles the chunks that hold nothing but plain characters. A
chunk with anything else goes to the reference's :func:`~incrowd.text.reference.chunk_tokens`, once for each
distinct chunk. A post that may hold markup goes through its :func:`~incrowd.text.reference.plain_text` first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.crowd.tables import Bytes, Longs, series_of, utf8
from incrowd.text import alphabet
from incrowd.text.options import TextOptions
from incrowd.text.reference import MAX_RUN, chunk_tokens, lexicon_of, plain_text

# Numbers for distinct strings.

Keys = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]


class StringTable:
    """Distinct strings, numbered in order of arrival; grows as needed.

    >>> StringTable().numbers_of(pl.Series(["b", "a", "b"])).tolist()
    [0, 1, 0]
    """

    def __init__(self) -> None:
        from incrowd.text import kernels  # Numba takes a third of a second to load

        self._kernels = kernels
        self._slots = np.zeros(2**16, np.uint64)
        self._starts = np.zeros(2**14, np.int64)
        self._arena = np.empty(2**17, np.uint8)
        self._used = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        """Return how much memory the table takes."""
        return self._slots.nbytes + self._starts.nbytes + self._arena.nbytes

    def __len__(self) -> int:
        return int(self._used[0])

    def strings(self, first: int = 0) -> pl.Series:
        """Return the strings from number `first` on."""
        size, end = self._used.tolist()
        return series_of(self._arena[:end], self._starts[first : size + 1])

    def bytes(self) -> Bytes:
        """Return the strings end to end."""
        return self._arena[: int(self._used[1])]

    def numbers_of(self, strings: pl.Series) -> Ints:
        """Return the strings' numbers, giving new ones to new strings."""
        data, offsets = utf8(strings)
        return self.numbers_of_bytes(data, offsets[1:])

    def numbers_of_bytes(self, data: Bytes, ends: Longs) -> Ints:
        """Return the numbers of byte strings that lie end to end."""
        keys, numbers = np.empty(len(ends), np.uint64), np.empty(len(ends), np.int32)
        self._kernels.key_strings(data, ends, keys)
        self.number(data, ends, keys, np.zeros(len(ends), np.uint8), 0, numbers)
        return numbers

    def number(self, data: Bytes, ends: Longs, keys: Keys, hard: Bytes, wanted: int, numbers: Ints) -> None:
        """Number the wanted strings, doubling the table whenever the kernel asks for room."""
        done = 0
        while done < len(ends):
            table = self._slots, self._starts, self._arena, self._used
            done = self._kernels.number_strings(*table, data, ends, keys, hard, wanted, done, numbers)
            if done < len(ends):
                self._double()

    def _double(self) -> None:
        slots = np.zeros(2 * len(self._slots), np.uint64)
        self._kernels.rehash(self._slots, slots)
        self._slots = slots
        self._starts = np.concatenate([self._starts, np.zeros_like(self._starts)])
        self._arena = np.concatenate([self._arena, np.empty_like(self._arena)])


# Numbers for the distinct rows of tables, in little memory.


class RowTable:
    """Distinct rows, numbered in order of arrival.

    Each column has its own numbers for its distinct values; a row is the few numbers of its values. So a name that
    occurs in many rows is kept once.

    >>> table = RowTable()
    >>> table.numbers_of(pl.DataFrame({"user": ["a", "b", "a"], "community": ["x", "x", "x"]})).tolist()
    [0, 1, 0]
    """

    def __init__(self) -> None:
        self._columns: dict[str, _Values] = {}
        self._rows = StringTable()

    def __len__(self) -> int:
        return len(self._rows)

    def numbers_of(self, table: pl.DataFrame) -> Ints:
        """Return the rows' numbers, giving new ones to new rows."""
        for name in table.columns:
            self._columns.setdefault(name, _Values())
        parts = [self._columns[name].numbers_of(table[name]) for name in table.columns]
        packed = np.ascontiguousarray(np.column_stack(parts), np.int32)
        ends = np.arange(1, len(table) + 1, dtype=np.int64) * packed.itemsize * len(parts)
        return self._rows.numbers_of_bytes(packed.view(np.uint8).ravel(), ends)

    def rows(self) -> pl.DataFrame:
        """Return the distinct rows, by number."""
        packed = self._rows.bytes().view(np.int32).reshape(len(self), -1)
        values = zip(self._columns.items(), packed.T, strict=True)
        return pl.DataFrame({name: column.values().gather(numbers) for (name, column), numbers in values})


class _Values:
    """The distinct values of a column, numbered in order of arrival."""

    def __init__(self) -> None:
        self._strings = StringTable()
        self._others: list[pl.Series] = []

    def numbers_of(self, values: pl.Series) -> Ints:
        known = len(self._strings)
        numbers = self._strings.numbers_of(values.cast(pl.String).fill_null(""))
        if values.dtype != pl.String:
            distinct, first = np.unique(numbers, return_index=True)
            self._others.append(values.gather(first[distinct >= known]))
        return numbers

    def values(self) -> pl.Series:
        return pl.concat(self._others) if self._others else self._strings.strings()


SLICE_BYTES = 4 * 2**20
FORGET_CHUNKS_BYTES = 32 * 2**20
_COMMON = ("&gt;", "&lt;", "&amp;", "&quot;", "&#39;", "&nbsp;", "&#x200B;")
_ENTITIES = {name: unescape(name) for name in _COMMON}
_SUSPICIOUS = np.isin(np.arange(256), np.frombuffer(b"\n&`]|\\", np.uint8)).astype(np.uint8)


@dataclass(frozen=True)
class TokenNumbers:
    """The tokens of some posts, in order: post p has ``numbers[ends[p - 1]:ends[p]]``."""

    numbers: Ints
    ends: Longs

    @property
    def lengths(self) -> Longs:
        """Return how many tokens each post has."""
        return np.diff(self.ends, prepend=0)


class Tokeniser:
    """Numbers tokens in order of appearance, over as many columns of posts as it is given.

    >>> tokeniser = Tokeniser(TextOptions())
    >>> tokens = tokeniser.numbers(pl.Series(["Cats & dogs", "dogs!"]))
    >>> tokeniser.vocabulary().gather(tokens.numbers).to_list(), tokens.lengths.tolist()
    (['cats', 'dogs', 'dogs'], [2, 1])
    """

    def __init__(self, options: TextOptions) -> None:
        self.options = options
        self.posts = 0
        self.routed_posts = 0
        from incrowd.text import kernels  # Numba takes a third of a second to load

        self._kernels = kernels
        self._lexicon = lexicon_of(options)
        self._kinds, self._lower = alphabet.tables(options)
        self._entities = np.empty(0, np.uint8) if options.compat_gt else alphabet.open_entities()
        self._max_run = MAX_RUN if options.tokens == "full" else np.iinfo(np.int64).max
        self._tokens = StringTable()
        self._stop_words = len(self._tokens.numbers_of(pl.Series(options.stop_word_list, dtype=pl.String)))
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._chunks = StringTable()
        self._meaning_starts: Longs = np.zeros(1, np.int64)
        self._meanings: Ints = np.empty(0, np.int32)

    @property
    def bytes_used(self) -> int:
        """Return how much memory the vocabulary and the chunks seen take."""
        return self._tokens.nbytes + self._chunks.nbytes

    def vocabulary(self) -> pl.Series:
        """Return the token of each number."""
        return self._tokens.strings()

    def numbers(self, texts: pl.Series) -> TokenNumbers:
        """Return the tokens of some posts."""
        parts = [self._slice_numbers(piece) for piece in _slices(texts.fill_null(""))]
        if not parts:
            return TokenNumbers(np.empty(0, np.int32), np.empty(0, np.int64))
        before = np.cumsum([0, *(len(part.numbers) for part in parts[:-1])])
        ends = [part.ends + start for part, start in zip(parts, before, strict=True)]
        return TokenNumbers(np.concatenate([part.numbers for part in parts]), np.concatenate(ends))

    def _slice_numbers(self, texts: pl.Series) -> TokenNumbers:
        self.posts += len(texts)
        if self._chunks.nbytes > FORGET_CHUNKS_BYTES:
            self._forget_chunks()
        strings = self._split(texts)
        numbers = np.empty(len(strings.ends), np.int32)
        for table, wanted in ((self._tokens, 0), (self._chunks, 1)):
            table.number(strings.data, strings.ends, strings.keys, strings.hard, wanted, numbers)
        self._learn_chunks()
        extra = np.diff(self._meaning_starts)[numbers[strings.hard == 1]].sum()
        out = np.empty(len(numbers) + int(extra), np.int32)
        meanings = self._meaning_starts, self._meanings
        size = self._kernels.resolve(
            numbers, strings.hard, strings.post_ends, self._stop_words, *meanings, out
        )
        return TokenNumbers(out[:size], strings.post_ends)

    def _split(self, texts: pl.Series) -> _Strings:
        """Take the markup out and cut what is left into strings."""
        data, offsets = self._without_markup(texts) if self.options.tokens == "full" else self._simple(texts)
        clean = self._scratch("clean", 2 * len(data), np.uint8)
        most = len(data) // 2 + len(texts)
        ends, keys = self._scratch("ends", most, np.int64), self._scratch("keys", most, np.uint64)
        hard = self._scratch("hard", most, np.uint8)
        post_ends = np.empty(len(texts), np.int64)
        characters = self._kinds, self._lower, self._max_run
        count = self._kernels.split_posts(data, offsets, *characters, clean, ends, keys, hard, post_ends)
        return _Strings(clean, ends[:count], keys[:count], hard[:count], post_ends)

    def _scratch(self, name: str, size: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """Return an array of at least this size, the same one each time: fresh memory costs time."""
        if name not in self._arrays or len(self._arrays[name]) < size:
            self._arrays[name] = np.empty(size, dtype)
        return self._arrays[name]

    def _without_markup(self, texts: pl.Series) -> tuple[Bytes, Longs]:
        """Run steps 0 to 2, except for lower-casing: common cases in bulk, the rest through the reference."""
        decoded = texts if self.options.compat_gt else _without_common_entities(texts)
        data, offsets = utf8(decoded)
        flags = np.zeros(len(texts), np.uint8)
        self._kernels.flag_markup(data, offsets, _SUSPICIOUS, self._entities, flags)
        if (flags == 1).any():
            data, offsets = self._through_reference(texts, decoded, flags)
        self._kernels.blank_lines(data, offsets, flags)
        return data, offsets

    def _simple(self, texts: pl.Series) -> tuple[Bytes, Longs]:
        """Lower-case where that yields more characters than there were."""
        data, offsets = utf8(texts)
        flags = np.zeros(len(texts), np.uint8)
        self._kernels.flag_growth(data, offsets, flags)
        return self._through_reference(texts, texts, flags) if flags.any() else (data, offsets)

    def _through_reference(self, texts: pl.Series, decoded: pl.Series, flags: Bytes) -> tuple[Bytes, Longs]:
        """Put the reference's plain text in place of the flagged posts."""
        rows = np.flatnonzero(flags == 1)
        self.routed_posts += len(rows)
        plain = [plain_text(text, self.options) for text in texts.gather(rows)]
        return utf8(decoded.clone().scatter(rows, pl.Series(plain, dtype=pl.String)))

    def _learn_chunks(self) -> None:
        """Ask the reference about the chunks that are new."""
        known = len(self._meaning_starts) - 1
        meanings = [chunk_tokens(chunk.lower(), self._lexicon) for chunk in self._chunks.strings(known)]
        tokens = [token for meaning in meanings for token in meaning]
        numbers = self._tokens.numbers_of(pl.Series(tokens, dtype=pl.String))
        ends = self._meaning_starts[-1] + np.cumsum([len(meaning) for meaning in meanings], dtype=np.int64)
        self._meanings = np.concatenate([self._meanings, numbers])
        self._meaning_starts = np.concatenate([self._meaning_starts, ends])

    def _forget_chunks(self) -> None:
        """Forget what the reference said; it can be asked again, and memory stays bounded."""
        self._chunks = StringTable()
        self._meaning_starts = np.zeros(1, np.int64)
        self._meanings = np.empty(0, np.int32)


@dataclass(frozen=True)
class _Strings:
    """What the splitting kernel found (see there)."""

    data: Bytes
    ends: Longs
    keys: Keys
    hard: Bytes
    post_ends: Longs


def _without_common_entities(texts: pl.Series) -> pl.Series:
    """Decode the entities that make up nearly all, twice as the reference does; it sees what is left."""
    rows = texts.str.contains("&", literal=True).arg_true()
    if not len(rows):
        return texts
    decoded = texts.gather(rows)
    for _ in range(2):
        decoded = decoded.str.replace_many(list(_ENTITIES), list(_ENTITIES.values()))
    return texts.clone().scatter(rows, decoded)


def _slices(texts: pl.Series) -> Iterator[pl.Series]:
    """Cut a column into pieces of about :data:`SLICE_BYTES`, at least one post each."""
    ends = texts.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy()
    start = 0
    while start < len(texts):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + SLICE_BYTES, side="right")))
        yield texts.slice(start, stop - start)
        start = stop
