"""The compiled part of the fast twin: bytes of posts in, token numbers out. Importing this loads Numba.

The kernels know nothing about Unicode or Markdown; tables made from the reference's own definitions tell them
what each character is (:mod:`incrowd.text.alphabet`). What they cannot settle, they hand back.

Each hot kernel is one flat loop over plain arrays: Numba counts references at every call that passes an
array, which would cost more than the work itself.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from incrowd.text.alphabet import APOSTROPHE, HARD, SPACE, SYMBOL, WORD

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]
Slots = npt.NDArray[np.uint64]

_FNV_START, _FNV_FACTOR = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_LOW, _HALF, _ONE = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(1)


@njit(cache=True, nogil=True)
def split_posts(
    data: Bytes,
    offsets: Longs,
    kinds: Bytes,
    lower: Codes,
    max_run: int,
    clean: Bytes,
    ends: Longs,
    hard: Bytes,
    post_ends: Longs,
) -> int:
    """Write the cleaned strings of all posts end to end into `clean`; return how many there are.

    String n ends at ``ends[n]``, the strings of post p at ``post_ends[p]``. A string is a token or, where
    ``hard[n]``, a raw chunk that only the reference can settle. `clean` needs room for twice the data:
    lower-casing makes no text twice as long. `ends` and `hard` need room for half of it and one a post: two
    bytes make at most one token, which ends in white space or is an emoji of three bytes.
    """
    n, w = 0, 0
    last_kind = np.int64(len(kinds) - 1)
    for post in range(len(offsets) - 1):
        i, stop = offsets[post], offsets[post + 1]
        while i < stop:
            chunk, chunk_n, chunk_w = i, n, w
            word, previous, run = w, np.int64(0), 0
            symbol, symbol_run = np.int64(0), 0
            apostrophe, is_hard = False, False
            width = 1
            while i < stop:
                character, width = np.int64(data[i]), 1
                if character >= 0xF0:
                    character = (character & 0x07) << 18 | (data[i + 1] & 0x3F) << 12
                    character |= (data[i + 2] & 0x3F) << 6 | (data[i + 3] & 0x3F)
                    width = 4
                elif character >= 0xE0:
                    character = (character & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | (data[i + 2] & 0x3F)
                    width = 3
                elif character >= 0x80:
                    character = (character & 0x1F) << 6 | (data[i + 1] & 0x3F)
                    width = 2
                character = min(character, last_kind)
                kind = kinds[character]
                if kind == SPACE:
                    break
                if is_hard:
                    pass
                elif kind == WORD:
                    is_hard = apostrophe  # "don't": the reference looks it up with and without
                    code = np.int64(lower[character])
                    run = run + 1 if code == previous else 1
                    previous, symbol = code, np.int64(0)
                    while code and run <= max_run:
                        clean[w] = code & 0xFF
                        code >>= 8
                        w += 1
                elif kind == HARD:
                    is_hard = True
                elif kind == SYMBOL:
                    if w > word:
                        ends[n], hard[n] = w, 0
                        n += 1
                    code = np.int64(lower[character])
                    symbol_run = symbol_run + 1 if code == symbol else 1
                    symbol = code
                    if symbol_run <= max_run:
                        while code:
                            clean[w] = code & 0xFF
                            code >>= 8
                            w += 1
                        ends[n], hard[n] = w, 0
                        n += 1
                    word, previous, apostrophe = w, np.int64(0), False
                else:
                    symbol = np.int64(0)
                    if kind == APOSTROPHE:
                        apostrophe = w > word
                    elif character == 46 and i >= chunk + 3:  # "www."
                        is_hard = data[i - 1] | 32 == 119 == data[i - 2] | 32 and data[i - 3] | 32 == 119
                i += width
            if is_hard:
                n, w, word = chunk_n, chunk_w, chunk_w
                for k in range(chunk, i):
                    clean[w] = data[k]
                    w += 1
            if w > word:
                ends[n], hard[n] = w, is_hard
                n += 1
            i += width
        post_ends[post] = n
    return n


@njit(cache=True, nogil=True)
def number_strings(
    slots: Slots,
    starts: Longs,
    arena: Bytes,
    used: Longs,
    data: Bytes,
    ends: Longs,
    hard: Bytes,
    wanted: int,
    first: int,
    numbers: Ints,
) -> int:
    """Number the strings from `first` on whose `hard` is the wanted one; return the first without room.

    The numbers are those of a table of distinct strings, in order of arrival. `slots` is its open-addressing
    hash table: hash in the upper half, number + 1 in the lower, 0 where free; its length is a power of two.
    String m lies in ``arena[starts[m]:starts[m + 1]]``; `used` says how many strings and bytes there are.
    """
    mask = np.uint64(len(slots) - 1)
    end = ends[first - 1] if first > 0 else 0
    for n in range(first, len(ends)):
        begin, end = end, ends[n]
        if hard[n] != wanted:
            continue
        length = end - begin
        count, tail = used[0], used[1]
        if 2 * count >= len(slots) or count + 2 > len(starts) or tail + length > len(arena):
            return n
        digest = _FNV_START
        for k in range(begin, end):
            digest = (digest ^ np.uint64(data[k])) * _FNV_FACTOR
        digest = (digest ^ (digest >> _HALF)) & _LOW
        slot = digest & mask
        number = np.int64(-1)
        while slots[slot]:
            if slots[slot] >> _HALF == digest:
                number = np.int64(slots[slot] & _LOW) - 1
                start = starts[number]
                k = length if starts[number + 1] - start == length else -1
                while k > 0 and arena[start + k - 1] == data[begin + k - 1]:
                    k -= 1
                if k == 0:
                    break
                number = np.int64(-1)
            slot = (slot + _ONE) & mask
        if number < 0:
            number = count
            slots[slot] = digest << _HALF | np.uint64(number + 1)
            for k in range(length):
                arena[tail + k] = data[begin + k]
            used[0], used[1] = number + 1, tail + length
            starts[number + 1] = tail + length
        numbers[n] = number
    return len(ends)


@njit(cache=True, nogil=True)
def rehash(old: Slots, new: Slots) -> None:
    """Fill a larger slot array from a smaller one."""
    mask = np.uint64(len(new) - 1)
    for entry in old:
        if entry:
            slot = (entry >> _HALF) & mask
            while new[slot]:
                slot = (slot + _ONE) & mask
            new[slot] = entry


@njit(cache=True, nogil=True)
def resolve(
    numbers: Ints,
    hard: Bytes,
    post_ends: Longs,
    stop_words: int,
    meaning_starts: Longs,
    meanings: Ints,
    out: Ints,
) -> int:
    """Drop stop words and replace hard chunks by their tokens; return how many there are.

    `post_ends` is brought up to date in place.
    """
    n, i = 0, 0
    for post in range(len(post_ends)):
        while i < post_ends[post]:
            number = numbers[i]
            if hard[i]:
                for k in range(meaning_starts[number], meaning_starts[number + 1]):
                    out[n] = meanings[k]
                    n += 1
            elif number >= stop_words:
                out[n] = number
                n += 1
            i += 1
        post_ends[post] = n
    return n


@njit(cache=True, nogil=True)
def may_hold_markup(data: Bytes, offsets: Longs, suspicious: Bytes, entities: bool, flags: Bytes) -> None:
    """Flag the posts in which steps 0 to 2 might do more than lower-case; a flag too many costs only time."""
    for post in range(len(offsets) - 1):
        start, stop = offsets[post], offsets[post + 1]
        flag = line_needs_care(data, start, stop)
        i = start
        while i < stop and not flag:
            byte = data[i]
            if suspicious[byte]:
                following = np.uint8(data[i + 1]) if i + 1 < stop else np.uint8(0)
                if byte == 10:
                    flag = line_needs_care(data, i + 1, stop)
                elif byte == 38:  # "&": an entity goes on with "#", a letter or a digit
                    flag = entities and (following == 35 or is_alphanumeric(following))
                elif byte == 93:  # "](" joins a link's text and address
                    flag = following == 40
                else:
                    flag = True
            i += 1
        flags[post] = flag


@njit(cache=True, nogil=True)
def is_alphanumeric(byte: np.uint8) -> bool:
    """Say whether an ASCII byte is a letter or digit."""
    return bool(48 <= byte <= 57 or 97 <= (byte | 32) <= 122)


@njit(cache=True, nogil=True)
def line_needs_care(data: Bytes, i: int, stop: int) -> bool:
    """Say whether a line opens like a quote, a code block or a numbered item."""
    margin = i + 3
    while i < stop and i < margin and data[i] == 32:
        i += 1
    if i >= stop:
        return False
    byte = data[i]
    if byte == 62:  # ">", unless it opens a spoiler
        return bool(i + 1 == stop or data[i + 1] != 33)
    if 48 <= byte <= 57:
        while i < stop and 48 <= data[i] <= 57:
            i += 1
        ends_in_dot = i + 1 < stop and (data[i] == 46 or data[i] == 41)
        return bool(ends_in_dot and (data[i + 1] == 32 or data[i + 1] == 9))
    return bool(byte == 32 or byte == 9 or byte == 126)


@njit(cache=True, nogil=True)
def may_grow_in_lower_case(data: Bytes, offsets: Longs, flags: Bytes) -> None:
    """Flag the posts that hold U+0130, the one character whose lower case is two characters."""
    for post in range(len(offsets) - 1):
        for i in range(offsets[post], offsets[post + 1] - 1):
            if data[i] == 0xC4 and data[i + 1] == 0xB0:
                flags[post] = 1
