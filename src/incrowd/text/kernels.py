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
_GOLDEN, _LONG = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF << 56)
_ONE, _BYTE, _HALF = np.uint64(1), np.uint64(8), np.uint64(32)


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
    ``hard[n]``, something that only the reference can settle: a raw chunk, or a word with apostrophes in it.
    `clean` needs room for twice the data: lower-casing makes no text twice as long. `ends` and `hard` need room
    for half of it and one a post: two bytes make at most one token, which ends in white space or is an emoji of
    three bytes.
    """
    n, w = 0, 0
    last_kind = np.int64(len(kinds) - 1)
    finds_urls = kinds[58] == HARD  # ":", which means nothing to simple tokens
    for post in range(len(offsets) - 1):
        i, stop = offsets[post], offsets[post + 1]
        while i < stop:
            if finds_urls and data[i] | 32 == 104:  # "h", perhaps of "http"
                host, host_end, end = simple_url(data, i, stop)
                if end:
                    for k in range(host, host_end):
                        clean[w] = data[k] | 32 if 65 <= data[k] <= 90 else data[k]
                        w += 1
                    ends[n], hard[n] = w, 0
                    n += 1
                    i = end
                    continue
            chunk, chunk_n, chunk_w = i, n, w
            word, previous, run = w, np.int64(0), 0
            symbol, symbol_run = np.int64(0), 0
            apostrophes, is_written_so, is_hard = 0, False, False
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
                    while apostrophes:  # kept within a word: the reference looks it up with and without
                        clean[w] = 39
                        w += 1
                        apostrophes -= 1
                        is_written_so, previous = True, np.int64(0)
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
                        ends[n], hard[n] = w, is_written_so
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
                    word, previous, apostrophes, is_written_so = w, np.int64(0), 0, False
                else:
                    symbol = np.int64(0)
                    if kind == APOSTROPHE:
                        apostrophes += w > word
                    elif character == 46 and i >= chunk + 3:  # "www."
                        is_hard = data[i - 1] | 32 == 119 == data[i - 2] | 32 and data[i - 3] | 32 == 119
                i += width
            if is_hard:
                n, w, word = chunk_n, chunk_w, chunk_w
                for k in range(chunk, i):
                    clean[w] = data[k]
                    w += 1
            if w > word:
                ends[n], hard[n] = w, is_hard or is_written_so
                n += 1
            i += width
        post_ends[post] = n
    return n


@njit(cache=True, nogil=True)
def simple_url(data: Bytes, i: int, stop: int) -> tuple[int, int, int]:
    """Return where the host of a URL begins and ends, and where the chunk ends that holds only this URL.

    Simple is a URL of ASCII characters with a host of letters, digits, dots and hyphens, without brackets or
    quotation marks. An end of 0 says that there is none, or one that the reference should look at.
    """
    begin = i = end_of_scheme(data, i, stop)
    if not begin:
        return 0, 0, 0
    while i < stop and (is_alphanumeric(data[i]) or data[i] == 45 or data[i] == 46):
        i += 1
    end = i
    if i < stop and (data[i] == 47 or data[i] == 63 or data[i] == 35):  # "/", "?", "#"
        while i < stop and 33 <= data[i] < 128 and not ends_url(data[i]):
            i += 1
    if i < stop and data[i] != 32 and data[i] != 10:
        return 0, 0, 0
    while begin < end and (data[begin] == 45 or data[begin] == 46):
        begin += 1
    while begin < end and (data[end - 1] == 45 or data[end - 1] == 46):
        end -= 1
    return begin, end, i if begin < end else 0


@njit(cache=True, nogil=True)
def end_of_scheme(data: Bytes, i: int, stop: int) -> int:
    """Return where "http://" or "https://" ends, if it begins here; else 0."""
    if i + 7 > stop or data[i] | 32 != 104 or data[i + 1] | 32 != 116 or data[i + 2] | 32 != 116:
        return 0
    if data[i + 3] | 32 != 112:
        return 0
    i += 5 if data[i + 4] | 32 == 115 else 4
    return i + 3 if i + 3 <= stop and data[i] == 58 and data[i + 1] == 47 and data[i + 2] == 47 else 0


@njit(cache=True, nogil=True)
def ends_url(byte: np.uint8) -> bool:
    """Say whether an ASCII byte may end a URL before the white space: quotation mark, brackets, bar."""
    return bool(
        byte == 34
        or byte == 40
        or byte == 41
        or byte == 60
        or byte == 62
        or byte == 91
        or byte == 93
        or byte == 124
    )


@njit(cache=True, nogil=True)
def number_strings(
    slot_keys: Slots,
    slot_numbers: Ints,
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

    The numbers are those of a table of distinct strings, in order of arrival. String m lies in
    ``arena[starts[m]:starts[m + 1]]``; `used` says how many strings and bytes there are. The slots are an
    open-addressing hash table of a length that is a power of two: a key, and the number + 1 or 0 if free. The
    key of a string of up to 7 bytes is its length and those bytes, so that the arena need not be looked at.
    """
    mask = np.uint64(len(slot_keys) - 1)
    end = ends[first - 1] if first > 0 else 0
    for n in range(first, len(ends)):
        begin, end = end, ends[n]
        if hard[n] != wanted:
            continue
        length = end - begin
        count, tail = used[0], used[1]
        if 2 * count >= len(slot_keys) or count + 2 > len(starts) or tail + length > len(arena):
            return n
        is_short = length <= 7
        if is_short:
            key = np.uint64(length)
            for k in range(begin, end):
                key = key << _BYTE | np.uint64(data[k])
        else:
            key = _FNV_START
            for k in range(begin, end):
                key = (key ^ np.uint64(data[k])) * _FNV_FACTOR
            key |= _LONG
        slot = (key * _GOLDEN >> _HALF) & mask
        while slot_numbers[slot]:
            if slot_keys[slot] == key:
                if is_short:
                    break
                start = starts[slot_numbers[slot] - 1]
                k = length if starts[slot_numbers[slot]] - start == length else -1
                while k > 0 and arena[start + k - 1] == data[begin + k - 1]:
                    k -= 1
                if k == 0:
                    break
            slot = (slot + _ONE) & mask
        if not slot_numbers[slot]:
            slot_keys[slot], slot_numbers[slot] = key, count + 1
            for k in range(length):
                arena[tail + k] = data[begin + k]
            used[0], used[1] = count + 1, tail + length
            starts[count + 1] = tail + length
        numbers[n] = slot_numbers[slot] - 1
    return len(ends)


@njit(cache=True, nogil=True)
def rehash(old_keys: Slots, old_numbers: Ints, new_keys: Slots, new_numbers: Ints) -> None:
    """Fill larger slot arrays from smaller ones."""
    mask = np.uint64(len(new_keys) - 1)
    for old in range(len(old_keys)):
        if old_numbers[old]:
            slot = (old_keys[old] * _GOLDEN >> _HALF) & mask
            while new_numbers[slot]:
                slot = (slot + _ONE) & mask
            new_keys[slot], new_numbers[slot] = old_keys[old], old_numbers[old]


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
def flag_markup(data: Bytes, offsets: Longs, suspicious: Bytes, entities: Bytes, flags: Bytes) -> None:
    """Flag the posts whose markup only the reference can take out; a flag too many costs only time."""
    for post in range(len(offsets) - 1):
        start, stop = offsets[post], offsets[post + 1]
        flag = opens_code(data, start, stop)
        i = start
        while i < stop and not flag:
            byte = data[i]
            if suspicious[byte]:
                following = np.uint8(data[i + 1]) if i + 1 < stop else np.uint8(0)
                if byte == 10:
                    flag = opens_code(data, i + 1, stop)
                elif byte == 38:  # "&"
                    flag = len(entities) > 0 and opens_entity(data, i + 1, stop, entities)
                elif byte == 93:  # "](" joins a link's text and address; one that names a host stays as it is
                    flag = following == 40 and not end_of_scheme(data, i + 2, stop)
                else:
                    flag = True
            i += 1
        flags[post] = flag


@njit(cache=True, nogil=True)
def blank_lines(data: Bytes, offsets: Longs, flags: Bytes) -> None:
    """Overwrite quoted lines and the numbers of list items with spaces, in posts that were not flagged."""
    for post in range(len(offsets) - 1):
        i, stop = offsets[post], offsets[post + 1]
        while i < stop and not flags[post]:
            i = skip_margin(data, i, stop)
            blank = i
            if i < stop and data[i] == 62 and (i + 1 == stop or data[i + 1] != 33):  # ">", but no spoiler
                while i < stop and data[i] != 10:
                    i += 1
            else:
                i = end_of_list_number(data, i, stop)
            data[blank:i] = 32
            while i < stop and data[i] != 10:
                i += 1
            i += 1


@njit(cache=True, nogil=True)
def skip_margin(data: Bytes, i: int, stop: int) -> int:
    """Return where a line begins after up to three spaces."""
    margin = min(i + 3, stop)
    while i < margin and data[i] == 32:
        i += 1
    return i


@njit(cache=True, nogil=True)
def opens_code(data: Bytes, i: int, stop: int) -> bool:
    """Say whether a line opens like code: with a fourth space, a tab or a tilde. Backticks are seen anyway."""
    i = skip_margin(data, i, stop)
    return bool(i < stop and (data[i] == 32 or data[i] == 9 or data[i] == 126))


@njit(cache=True, nogil=True)
def end_of_list_number(data: Bytes, i: int, stop: int) -> int:
    """Return where the "1." or "1)" of a list item ends, or `i` if there is none."""
    end = i
    while end < min(i + 9, stop) and 48 <= data[end] <= 57:
        end += 1
    is_number = i < end and end + 1 < stop and (data[end] == 46 or data[end] == 41)
    return end + 1 if is_number and (data[end + 1] == 32 or data[end + 1] == 9) else i


@njit(cache=True, nogil=True)
def opens_entity(data: Bytes, i: int, stop: int, entities: Bytes) -> bool:
    """Say whether what follows "&" may be an entity: it ends in ";", or begins like one that may do without.

    `entities` says by first and second byte whether one that may do without begins so.
    """
    if i + 1 >= stop:
        return False
    if data[i] == 35 or entities[np.int64(data[i]) << 8 | data[i + 1]]:
        return True
    while i < stop and is_alphanumeric(data[i]):
        i += 1
    return bool(i < stop and data[i] == 59)


@njit(cache=True, nogil=True)
def is_alphanumeric(byte: np.uint8) -> bool:
    """Say whether an ASCII byte is a letter or digit."""
    return bool(48 <= byte <= 57 or 97 <= (byte | 32) <= 122)


@njit(cache=True, nogil=True)
def flag_growth(data: Bytes, offsets: Longs, flags: Bytes) -> None:
    """Flag the posts that hold U+0130, the one character whose lower case is two characters."""
    for post in range(len(offsets) - 1):
        for i in range(offsets[post], offsets[post + 1] - 1):
            if data[i] == 0xC4 and data[i + 1] == 0xB0:
                flags[post] = 1
