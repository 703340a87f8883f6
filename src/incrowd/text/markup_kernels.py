"""The compiled part of step 2: which posts need the reference, and which lines can be blanked out at once."""

from __future__ import annotations

import numpy as np
from numba import njit

from incrowd.text.kernels import Bytes, Longs, end_of_scheme, is_alphanumeric


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
