"""Compiled loops: the Gibbs sampler of author topics, and counting and comparing habits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


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


# Counts writing habits straight from UTF-8 bytes, compiled; see `habits.py` for what they are.
#
# Each family of habits walks a post and names what it sees by a hash; the counts of one identity are
# gathered in a table with one cell a hash value. Two habits that share a cell are counted as one: with a
# million cells that is rare, and it can only blur a resemblance, never make one up for a single person.

SPELLING, WORDS, VOCABULARY, PHRASES, STYLE = range(5)

_OFFSET = np.uint64(14695981039346656037)  # FNV-1a
_PRIME = np.uint64(1099511628211)
_SPACE, _NEWLINE, _APOSTROPHE = np.uint8(32), np.uint8(10), np.uint8(39)
_SHORT = 3


@njit(cache=True, inline="always")
def _is_space(byte: int) -> bool:
    return byte == 32 or 9 <= byte <= 13


@njit(cache=True, inline="always")
def _is_word(byte: int) -> bool:
    return 97 <= byte <= 122 or 65 <= byte <= 90 or 48 <= byte <= 57 or byte == 39 or byte >= 128


@njit(cache=True, inline="always")
def _bump(key: Any, mask: Any, table: Any, touched: Any, n: int) -> int:
    mixed = key ^ (key >> np.uint64(29))
    mixed = mixed * np.uint64(0xBF58476D1CE4E5B9)
    cell = (mixed >> np.uint64(32)) & mask
    if table[cell] == 0:
        touched[n] = cell
        n += 1
    table[cell] += 1
    return n


@njit(cache=True)
def _spelling(data: Any, start: int, stop: int, mask: Any, table: Any, touched: Any, n: int) -> int:
    gram = np.uint64(0)
    for i in range(start, stop):
        gram = ((gram << np.uint64(8)) | np.uint64(data[i])) & np.uint64(0xFFFFFFFF)
        if i - start >= 3:
            n = _bump(gram, mask, table, touched, n)
    return n


@njit(cache=True)
def _words(data: Any, start: int, stop: int, mask: Any, table: Any, touched: Any, n: int) -> int:
    key, inside = _OFFSET, False
    for i in range(start, stop + 1):
        if i == stop or _is_space(data[i]):
            if inside:
                n = _bump(key, mask, table, touched, n)
            key, inside = _OFFSET, False
        else:
            key, inside = (key ^ np.uint64(data[i])) * _PRIME, True
    return n


@njit(cache=True)
def _vocabulary(
    data: Any, start: int, stop: int, phrases: bool, mask: Any, table: Any, touched: Any, n: int
) -> int:
    key, inside, previous, any_before = _OFFSET, False, _OFFSET, False
    for i in range(start, stop + 1):
        if i == stop or not _is_word(data[i]):
            if inside:
                if not phrases:
                    n = _bump(key, mask, table, touched, n)
                elif any_before:
                    n = _bump((previous * _PRIME) ^ key, mask, table, touched, n)
                previous, any_before = key, True
            key, inside = _OFFSET, False
        else:
            byte = data[i]
            if 65 <= byte <= 90:
                byte = np.uint8(byte + 32)
            key, inside = (key ^ np.uint64(byte)) * _PRIME, True
    return n


@njit(cache=True)
def _style(data: Any, start: int, stop: int, mask: Any, table: Any, touched: Any, n: int) -> int:
    i = start
    while i < stop:
        first = i
        key = _OFFSET
        if _is_word(data[i]):
            capitals, letters = 0, 0
            while i < stop and _is_word(data[i]):
                key = (key ^ np.uint64(data[i])) * _PRIME
                letters += 1
                if 65 <= data[i] <= 90:
                    capitals += 1
                i += 1
            if letters <= _SHORT or (capitals == letters and letters > 1):
                n = _bump(key, mask, table, touched, n)
            # The shape of a word: capitals nowhere, in front, everywhere, or mixed.
            shape = 0 if capitals == 0 else 1 if capitals == 1 and 65 <= data[first] <= 90 else 2
            shape = 3 if capitals == letters and letters > 1 else shape
            n = _bump(np.uint64(shape + 1), mask, table, touched, n)
        elif _is_space(data[i]):
            while i < stop and _is_space(data[i]):
                key = (key ^ np.uint64(data[i])) * _PRIME
                i += 1
            if i - first > 1 or data[first] == _NEWLINE:
                n = _bump(key, mask, table, touched, n)
        else:
            while i < stop and not _is_word(data[i]) and not _is_space(data[i]):
                key = (key ^ np.uint64(data[i])) * _PRIME
                i += 1
            if i < stop and _is_space(data[i]):
                key = (key ^ np.uint64(_SPACE)) * _PRIME
            n = _bump(key, mask, table, touched, n)
    return n


@njit(cache=True)
def _walk(family: int, data: Any, start: int, stop: int, mask: Any, table: Any, touched: Any, n: int) -> int:
    if family == SPELLING:
        return _spelling(data, start, stop, mask, table, touched, n)
    if family == WORDS:
        return _words(data, start, stop, mask, table, touched, n)
    if family == STYLE:
        return _style(data, start, stop, mask, table, touched, n)
    return _vocabulary(data, start, stop, family == PHRASES, mask, table, touched, n)


@njit(cache=True, nogil=True)
def count_habits(
    family: int,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    posts_of: NDArray[np.int64],
    bits: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """Return CSR parts (indptr, indices, counts); identity i owns posts posts_of[i]:posts_of[i + 1]."""
    mask = np.uint64((1 << bits) - 1)
    table = np.zeros(1 << bits, np.uint32)
    touched = np.empty(1 << bits, np.int32)
    rows = posts_of.size - 1
    indptr = np.zeros(rows + 1, np.int64)
    indices = np.empty(1 << 16, np.int32)
    counts = np.empty(1 << 16, np.float32)
    used = 0
    for i in range(rows):
        n = 0
        for post in range(posts_of[i], posts_of[i + 1]):
            n = _walk(family, data, offsets[post], offsets[post + 1], mask, table, touched, n)
        touched[:n].sort()
        while used + n > indices.size:
            more_indices = np.empty(indices.size * 2, np.int32)
            more_indices[:used] = indices[:used]
            indices = more_indices
            more_counts = np.empty(counts.size * 2, np.float32)
            more_counts[:used] = counts[:used]
            counts = more_counts
        for j in range(n):
            cell = touched[j]
            indices[used + j] = cell
            counts[used + j] = table[cell]
            table[cell] = 0
        used += n
        indptr[i + 1] = used
    return indptr, indices[:used], counts[:used]  # what was not written takes no memory


@njit(cache=True, nogil=True)
def dense_rows(starts: Any, places: Any, values: Any, common: int) -> Any:
    """Return rows of the common habits alone."""
    dense = np.zeros((len(starts) - 1, common), np.float32)
    for row in range(len(starts) - 1):
        for k in range(starts[row], starts[row + 1]):
            if 0 <= places[k] < common:
                dense[row, places[k]] = values[k]
    return dense


@njit(cache=True, nogil=True)
def sum_rows(
    groups: Any, members: Any, starts: Any, habits: Any, values: Any, width: int
) -> tuple[Any, Any, Any]:
    """Return CSR parts: the sum of the rows `members[groups[i]:groups[i + 1]]` of a matrix of so many columns.

    What a row met last comes first, as in a product of sparse matrices by SciPy; that marks all columns anew each time.
    """
    most = 0
    for member in members:
        most += starts[member + 1] - starts[member]
    indptr = np.zeros(len(groups), np.int32)
    indices, data = np.empty(most, np.int32), np.empty(most, np.float32)
    place = np.zeros(width, np.int32)  # where each habit of the row is, from 1 on
    end = 0
    for row in range(len(groups) - 1):
        first = end
        for member in members[groups[row] : groups[row + 1]]:
            for k in range(starts[member], starts[member + 1]):
                habit = habits[k]
                if place[habit] == 0:
                    indices[end], data[end] = habit, values[k]
                    end += 1
                    place[habit] = end - first
                else:
                    data[first + place[habit] - 1] += values[k]
        for k in range(first, end):
            place[indices[k]] = 0
        indices[first:end] = indices[first:end][::-1].copy()
        data[first:end] = data[first:end][::-1].copy()
        indptr[row + 1] = end
    return indptr, indices[:end], data[:end]  # what was not written takes no memory


@njit(cache=True, nogil=True)
def scale_to_one(starts: Any, values: Any, rarity: Any) -> Any:
    """Return the values of sparse rows, each times the rarity of its habit, with every row of length 1."""
    out = np.empty(len(values), np.float32)
    for row in range(len(starts) - 1):
        squares = 0.0
        for k in range(starts[row], starts[row + 1]):
            out[k] = values[k] * rarity[k]
            squares += out[k] * out[k]
        length = np.sqrt(np.float32(squares))
        if length > 0:
            for k in range(starts[row], starts[row + 1]):
                out[k] /= length
    return out


@njit(cache=True, nogil=True)
def add_products(
    starts: Any, places: Any, values: Any, common: Any, list_starts: Any, holders: Any, weights: Any, out: Any
) -> None:
    """Add to each row of `out` what everybody has of the row's habits, each times the row's own value.

    A habit's place is a row of `common`, or, after those, a list of those who have it; less than 0: it is left out.
    """
    for row in range(len(starts) - 1):
        mine = out[row]
        for k in range(starts[row], starts[row + 1]):
            place, value = places[k], values[k]
            if place >= len(common):
                place -= len(common)
                for at in range(list_starts[place], list_starts[place + 1]):
                    mine[holders[at]] += value * weights[at]
            elif place >= 0:
                theirs = common[place]
                for person in range(len(mine)):
                    mine[person] += value * theirs[person]


@njit(cache=True, nogil=True)
def pull_and_scale(cosines: Any, neighbours: int) -> tuple[Any, float]:
    """Return the mean of each column's largest values, and how far twice a value less that mean spreads."""
    rows, columns = cosines.shape
    best = np.full((columns, neighbours), -np.inf, np.float32)
    lowest = np.full(
        columns, -np.inf, np.float32
    )  # of the best, side by side: most are looked at and passed over
    for row in range(rows):
        for column in range(columns):
            value = cosines[row, column]
            if value > lowest[column]:
                place = 0
                while place + 1 < neighbours and best[column, place + 1] < value:
                    best[column, place] = best[column, place + 1]
                    place += 1
                best[column, place] = value
                lowest[column] = best[column, 0]
    pull = np.empty(columns, np.float32)
    for column in range(columns):
        pull[column] = best[column].sum() / neighbours
    total, squares = 0.0, 0.0
    for row in range(rows):
        for column in range(columns):
            left = float(2 * cosines[row, column] - pull[column])
            total += left
            squares += left * left
    mean = total / cosines.size
    return pull, np.sqrt(max(squares / cosines.size - mean * mean, 0.0))
