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
Keys = npt.NDArray[np.uint64]

_EMPTY, _FNV_FACTOR = np.uint64(1), np.uint64(0x100000001B3)
_GOLDEN, _LONG = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFF << 56)
AHEAD = 32
_ONE, _TWO, _BYTE, _HALF = np.uint64(1), np.uint64(2), np.uint64(8), np.uint64(32)


@njit(cache=True, nogil=True)
def longer_key(key: np.uint64, length: int, byte: int | np.integer) -> np.uint64:
    """Return the key of a string of `length` bytes after one more byte.

    Up to 7 bytes the key is the string itself behind a 1, so that equal keys mean equal strings.
    """
    if length < 7:
        return key << _BYTE | np.uint64(byte)
    return (key ^ np.uint64(byte)) * _FNV_FACTOR | _LONG


@njit(cache=True, nogil=True)
def split_posts(
    data: Bytes,
    offsets: Longs,
    kinds: Bytes,
    lower: Codes,
    max_run: int,
    clean: Bytes,
    ends: Longs,
    keys: Keys,
    hard: Bytes,
    post_ends: Longs,
) -> int:
    """Write the cleaned strings of all posts end to end into `clean`; return how many there are.

    String n ends at ``ends[n]`` and has the key ``keys[n]``; the strings of post p end at ``post_ends[p]``. A
    string is a token or, where ``hard[n]``, something that only the reference can settle: a raw chunk, or a word
    with apostrophes in it. `clean` needs room for twice the data: lower-casing makes no text twice as long.
    `ends`, `keys` and `hard` need room for half of it and one a post: two bytes make at most one token, which
    ends in white space or is an emoji of three bytes.
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
                    key = _EMPTY
                    for k in range(host, host_end):
                        clean[w] = data[k] | 32 if 65 <= data[k] <= 90 else data[k]
                        key = longer_key(key, k - host, clean[w])
                        w += 1
                    ends[n], keys[n], hard[n] = w, key, 0
                    n += 1
                    i = end
                    continue
            chunk, chunk_n, chunk_w = i, n, w
            word, key, previous, run = w, _EMPTY, np.int64(0), 0
            symbol, symbol_run = np.int64(0), 0
            apostrophes, is_written_so, is_hard = 0, False, False
            width = 1
            while i < stop:
                character, width = np.int64(data[i]), 1
                if 97 <= character <= 122 and not apostrophes and not is_hard:  # "a" to "z": most of all text
                    symbol = np.int64(0)
                    while True:
                        run = run + 1 if character == previous else 1
                        previous = character
                        if run <= max_run:
                            clean[w] = character
                            key = longer_key(key, w - word, character)
                            w += 1
                        i += 1
                        if i == stop:
                            break
                        character = np.int64(data[i])
                        if character < 97 or character > 122:
                            break
                    continue
                if character >= 0x80:
                    if character >= 0xF0:
                        character = (character & 0x07) << 18 | (data[i + 1] & 0x3F) << 12
                        character |= (data[i + 2] & 0x3F) << 6 | (data[i + 3] & 0x3F)
                        width = 4
                    elif character >= 0xE0:
                        character = (
                            (character & 0x0F) << 12 | (data[i + 1] & 0x3F) << 6 | (data[i + 2] & 0x3F)
                        )
                        width = 3
                    else:
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
                        key = longer_key(key, w - word, 39)
                        w += 1
                        apostrophes -= 1
                        is_written_so, previous = True, np.int64(0)
                    code = np.int64(lower[character])
                    run = run + 1 if code == previous else 1
                    previous, symbol = code, np.int64(0)
                    if run <= max_run:
                        while code:
                            clean[w] = code & 0xFF
                            key = longer_key(key, w - word, code & 0xFF)
                            code >>= 8
                            w += 1
                elif kind == HARD:
                    is_hard = True
                elif kind == SYMBOL:
                    if w > word:
                        ends[n], keys[n], hard[n] = w, key, is_written_so
                        n += 1
                    word, key, previous = w, _EMPTY, np.int64(0)
                    apostrophes, is_written_so = 0, False
                    code = np.int64(lower[character])
                    symbol_run = symbol_run + 1 if code == symbol else 1
                    symbol = code
                    if symbol_run <= max_run:
                        while code:
                            clean[w] = code & 0xFF
                            key = longer_key(key, w - word, code & 0xFF)
                            code >>= 8
                            w += 1
                        ends[n], keys[n], hard[n] = w, key, 0
                        n += 1
                        word, key = w, _EMPTY
                else:
                    symbol = np.int64(0)
                    if kind == APOSTROPHE:
                        apostrophes += w > word
                    elif character == 46 and i >= chunk + 3:  # "www."
                        is_hard = data[i - 1] | 32 == 119 == data[i - 2] | 32 and data[i - 3] | 32 == 119
                i += width
            if is_hard:
                n, w, word, key = chunk_n, chunk_w, chunk_w, _EMPTY
                for k in range(chunk, i):
                    clean[w] = data[k]
                    key = longer_key(key, w - word, data[k])
                    w += 1
            if w > word:
                ends[n], keys[n], hard[n] = w, key, is_hard or is_written_so
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
def is_alphanumeric(byte: np.uint8) -> bool:
    """Say whether an ASCII byte is a letter or digit."""
    return bool(48 <= byte <= 57 or 97 <= (byte | 32) <= 122)


@njit(cache=True, nogil=True)
def key_strings(data: Bytes, ends: Longs, keys: Keys) -> None:
    """Compute the keys of strings that lie end to end."""
    begin = 0
    for n in range(len(ends)):
        key = _EMPTY
        for k in range(begin, ends[n]):
            key = longer_key(key, k - begin, data[k])
        keys[n] = key
        begin = ends[n]


@njit(cache=True, nogil=True)
def number_strings(
    slots: Keys,
    starts: Longs,
    arena: Bytes,
    used: Longs,
    data: Bytes,
    ends: Longs,
    keys: Keys,
    hard: Bytes,
    wanted: int,
    first: int,
    numbers: Ints,
) -> int:
    """Number the strings from `first` on whose `hard` is the wanted one; return the first without room.

    The numbers are those of a table of distinct strings, in order of arrival. String m lies in
    ``arena[starts[m]:starts[m + 1]]``; `used` says how many strings and bytes there are. The slots are an
    open-addressing hash table whose size is a power of two: in turn a key, and the number + 1 or 0 if free.
    """
    mask = np.uint64(len(slots) // 2 - 1)
    fetched, touched = len(ends) if wanted else first, np.zeros(1, np.uint64)
    for n in range(first, len(ends)):
        if n == fetched:  # ask for the slots of the next strings at once, so that memory answers in parallel
            fetched = min(n + AHEAD, len(ends))
            for k in range(n, fetched):
                touched[0] ^= slots[_TWO * ((keys[k] * _GOLDEN >> _HALF) & mask)]
        if hard[n] != wanted:
            continue
        key = keys[n]
        slot = (key * _GOLDEN >> _HALF) & mask
        number = np.int64(slots[_TWO * slot + _ONE]) - 1
        while number >= 0:
            if slots[_TWO * slot] == key:
                if key < _LONG:
                    break
                begin, start = ends[n - 1] if n else 0, starts[number]
                k = ends[n] - begin
                if starts[number + 1] - start != k:
                    k = -1
                while k > 0 and arena[start + k - 1] == data[begin + k - 1]:
                    k -= 1
                if k == 0:
                    break
            slot = (slot + _ONE) & mask
            number = np.int64(slots[_TWO * slot + _ONE]) - 1
        if number < 0:
            number, tail = used[0], used[1]
            begin = ends[n - 1] if n else 0
            end = tail + ends[n] - begin
            if 4 * number >= len(slots) or number + 2 > len(starts) or end > len(arena):
                return n
            slots[_TWO * slot], slots[_TWO * slot + _ONE] = key, np.uint64(number + 1)
            for k in range(tail, end):
                arena[k] = data[begin + k - tail]
            used[0], used[1], starts[number + 1] = number + 1, end, end
        numbers[n] = number
    return len(ends)


@njit(cache=True, nogil=True)
def rehash(old: Keys, new: Keys) -> None:
    """Fill larger slots from smaller ones."""
    mask = np.uint64(len(new) // 2 - 1)
    for k in range(0, len(old), 2):
        if old[k + 1]:
            slot = (old[k] * _GOLDEN >> _HALF) & mask
            while new[_TWO * slot + _ONE]:
                slot = (slot + _ONE) & mask
            new[_TWO * slot], new[_TWO * slot + _ONE] = old[k], old[k + 1]


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


# The compiled part of step 2: which posts need the reference, and which lines can be blanked out at once.


@njit(cache=True, nogil=True)
def flag_markup(data: Bytes, offsets: Longs, suspicious: Bytes, entities: Bytes, flags: Bytes) -> None:
    """Flag the posts whose markup only the reference can take out (1), and those with lines to blank (2).

    A flag too many costs only time.
    """
    for post in range(len(offsets) - 1):
        i, stop = offsets[post], offsets[post + 1]
        opening = line_opening(data, i, stop)
        flag, has_lines = opening == 1, opening == 2
        while i < stop and not flag:
            byte = data[i]
            if suspicious[byte]:
                following = np.uint8(data[i + 1]) if i + 1 < stop else np.uint8(0)
                if byte == 10:
                    opening = line_opening(data, i + 1, stop)
                    flag, has_lines = opening == 1, has_lines or opening == 2
                elif byte == 38:  # "&"
                    flag = len(entities) > 0 and opens_entity(data, i + 1, stop, entities)
                elif byte == 93:  # "](" joins a link's text and address; one that names a host stays as it is
                    flag = following == 40 and not end_of_scheme(data, i + 2, stop)
                else:
                    flag = True
            i += 1
        flags[post] = 1 if flag else 2 * has_lines


@njit(cache=True, nogil=True)
def blank_lines(data: Bytes, offsets: Longs, flags: Bytes) -> None:
    """Overwrite quoted lines and the numbers of list items with spaces, in posts flagged with 2."""
    for post in range(len(offsets) - 1):
        i, stop = offsets[post], offsets[post + 1]
        while i < stop and flags[post] == 2:
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
def line_opening(data: Bytes, i: int, stop: int) -> int:
    """Say whether a line opens like code (1), or like a quote or a numbered item (2), or neither (0).

    Code opens with a fourth space, a tab or a tilde; backticks are seen anyway.
    """
    i = skip_margin(data, i, stop)
    if i == stop:
        return 0
    if data[i] == 32 or data[i] == 9 or data[i] == 126:
        return 1
    return 2 if data[i] == 62 or 48 <= data[i] <= 57 else 0


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
def flag_growth(data: Bytes, offsets: Longs, flags: Bytes) -> None:
    """Flag the posts that hold U+0130, the one character whose lower case is two characters."""
    for post in range(len(offsets) - 1):
        for i in range(offsets[post], offsets[post + 1] - 1):
            if data[i] == 0xC4 and data[i + 1] == 0xB0:
                flags[post] = 1


# The compiled part of :mod:`incrowd.text.counting`. Importing this loads Numba.


@njit(cache=True, nogil=True)
def mark_seen(
    rows: Ints, lengths: Ints, tokens: Ints, row_places: Longs, seen: npt.NDArray[np.bool_]
) -> None:
    """Mark the tokens of posts whose row has a place."""
    start = 0
    for post in range(len(rows)):
        end = start + lengths[post]
        if row_places[rows[post]] >= 0:
            for k in range(start, end):
                seen[tokens[k]] = True
        start = end


@njit(cache=True, nogil=True)
def lay_out(
    rows: Ints,
    lengths: Ints,
    tokens: Ints,
    row_places: Longs,
    token_places: Longs,
    first: int,
    cursors: Longs,
    columns: Ints,
) -> None:
    """Write each post's tokens at its row's cursor, for the rows from place `first` on that have a cursor."""
    start = 0
    for post in range(len(rows)):
        end = start + lengths[post]
        row = row_places[rows[post]] - first
        if 0 <= row < len(cursors):
            at = cursors[row]
            for k in range(start, end):
                columns[at] = token_places[tokens[k]]
                at += 1
            cursors[row] = at
        start = end


@njit(cache=True, nogil=True)
def count_sorted(columns: Ints, starts: Longs, counts: Ints, lengths: Longs) -> int:
    """Sort each row and count equal neighbours; what remains moves to the front. Return how many remain."""
    n = 0
    for row in range(len(starts) - 1):
        begin, end = starts[row], starts[row + 1]
        own = columns[begin:end]
        own.sort()
        before = n
        for k in range(begin, end):
            if n > before and columns[n - 1] == columns[k]:
                counts[n - 1] += 1
            else:
                columns[n], counts[n] = columns[k], 1
                n += 1
        lengths[row] = n - before
    return n
