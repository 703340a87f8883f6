"""Compiled loops: overlaps of two people's items, set sizes, attacks, expected crowds. Importing this loads Numba."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numba.extending import intrinsic

# Numba types these loops when it compiles them.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,assignment,misc"


@intrinsic
def _ones(typing_context: Any, word: Any) -> Any:
    """Count the set bits of a word: one machine instruction."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), generate


@nb.njit(cache=True)
def lay_out(indptr, indices, marks, bit_of, cursor, holders, sorted_marks, words):
    """Fill posting lists and bit rows in one pass over the table; lists come out ascending."""
    for person in range(len(indptr) - 1):
        for entry in range(indptr[person], indptr[person + 1]):
            item = indices[entry]
            bit = bit_of[item]
            if bit >= 0:
                words[person, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
                continue
            at = cursor[item]
            holders[at] = person
            for m in range(len(marks)):
                sorted_marks[m, at] = marks[m, entry]
            cursor[item] = at + 1


@nb.njit(cache=True, nogil=True)
def count_overlaps(
    indptr, indices, marks, within, mine,
    people, words, bit_of, list_starts, holders, list_marks,
    starts, counts, block,
):  # fmt: skip
    """Fill the histograms of the profiles named in `mine`, a block of people at a time."""
    longest = 0
    for r in mine:
        longest = max(longest, indptr[r + 1] - indptr[r])
    cursor = np.empty((len(mine), longest), dtype=np.int64)
    bits = np.zeros((len(mine), words.shape[1]), dtype=np.uint64)
    for k in range(len(mine)):
        _start(indptr, indices, mine[k], bit_of, list_starts, cursor[k], bits[k])
    shared = np.zeros(block, dtype=np.uint32)
    for first in range(0, people, block):
        last = min(first + block, people)
        for k in range(len(mine)):
            r = mine[k]
            _compare_words(bits[k], words, first, last, shared)
            _walk(indptr, indices, marks, within, r, cursor[k], list_starts, holders, list_marks,
                  first, last, shared)  # fmt: skip
            base = starts[r]
            for j in range(last - first):
                counts[base + shared[j]] += np.uint32(1)


@nb.njit(cache=True)
def _start(indptr, indices, r, bit_of, list_starts, cursor, bits):
    for k in range(indptr[r + 1] - indptr[r]):
        item = indices[indptr[r] + k]
        bit = bit_of[item]
        if bit >= 0:
            bits[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
        cursor[k] = list_starts[item]


@nb.njit(cache=True)
def _compare_words(mine, words, first, last, shared):
    width = words.shape[1]
    for j in range(last - first):
        total = np.uint64(0)
        for w in range(width):
            total += _ones(mine[w] & words[first + j, w])
        shared[j] = np.uint32(total)


@nb.njit(cache=True)
def _walk(
    indptr, indices, marks, within, r, cursor, list_starts, holders, list_marks, first, last, shared
):  # fmt: skip
    """Go on along the posting list of each of a profile's items, up to the end of the block."""
    for k in range(indptr[r + 1] - indptr[r]):
        entry = indptr[r] + k
        at, end = cursor[k], list_starts[indices[entry] + 1]
        while at < end and holders[at] < last:
            agrees = True
            for m in range(len(marks)):
                # What the person has not rated nobody can know: it agrees. A rating against none does not.
                agrees &= np.isnan(marks[m, entry]) or abs(list_marks[m, at] - marks[m, entry]) <= within[m]
            shared[holders[at] - first] += np.uint32(agrees)
            at += 1
        cursor[k] = at


@nb.njit(cache=True)
def weigh(starts, counts, level_starts, sizes, weights, wrong, log_factorial, out):
    """Sum count(o) * Pr(a profile sharing o fits) over each histogram: fit_weights, only where needed."""
    for r in range(len(starts) - 1):
        n = starts[r + 1] - starts[r] - 1
        total = 0.0
        for level in range(level_starts[n], level_starts[n + 1]):
            s = sizes[level]
            log_all = log_factorial[n] - log_factorial[s] - log_factorial[n - s]
            part = 0.0
            for o in range(max(0, s - wrong), n + 1):
                count = counts[starts[r] + o]
                if count == 0:
                    continue
                fits = 0.0
                for slips in range(min(wrong, s) + 1):
                    if s - slips > o or slips > n - o:
                        continue
                    fits += np.exp(
                        log_factorial[o] - log_factorial[s - slips] - log_factorial[o - s + slips]
                        + log_factorial[n - o] - log_factorial[slips] - log_factorial[n - o - slips] - log_all
                    )  # fmt: skip
                part += count * min(fits, 1.0)
            total += weights[level] * part
        out[r] = total


# Compiled loops behind :mod:`set_sizes`: who shares what, the exact search, the random samples.

# Numba types these loops when it compiles them.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,assignment,misc"


@nb.njit(cache=True, nogil=True)
def shared_bits(starts, holders, people, items, member, least):
    """Return a row of bits (one an item) for everybody who shares at least `least` items."""
    overlap = np.zeros(people, dtype=np.int32)
    for item in items:
        for at in range(starts[item], starts[item + 1]):
            overlap[holders[at]] += 1
    if member >= 0:
        overlap[member] = -1
    place = np.full(people, -1, dtype=np.int32)
    count = 0
    for person in range(people):
        if overlap[person] >= least:
            place[person] = count
            count += 1
    bits = np.zeros((count, (len(items) + 63) // 64), dtype=np.uint64)
    for k in range(len(items)):
        for at in range(starts[items[k]], starts[items[k] + 1]):
            row = place[holders[at]]
            if row >= 0:
                bits[row, k >> 6] |= np.uint64(1) << np.uint64(k & 63)
    return bits


@nb.njit(cache=True)
def _has(shares, person, item):
    return (shares[person, item >> 6] >> np.uint64(item & 63)) & np.uint64(1)


@nb.njit(cache=True)
def _by_item(shares, who, items):
    """Turn rows of people into rows of items, for the people named in `who`."""
    table = np.zeros((items, (len(who) + 63) // 64), dtype=np.uint64)
    for k in range(len(who)):
        for item in range(items):
            table[item, k >> 6] |= _has(shares, who[k], item) << np.uint64(k & 63)
    return table


@nb.njit(cache=True)
def _left(shares, a, b, first):
    """Count the items from `first` on that both a and b share."""
    total = np.uint64(0)
    for w in range(first >> 6, shares.shape[1]):
        word = shares[a, w] & shares[b, w]
        if w == first >> 6:
            word &= np.uint64(0xFFFFFFFFFFFFFFFF) << np.uint64(first & 63)
        total += _ones(word)
    return np.int64(total)


@nb.njit(cache=True)
def _surplus(part, whole):
    """Keep a difference of probabilities only where it is more than rounding."""
    return part if part > 1e-14 * whole else 0.0


@nb.njit(cache=True)
def _settle(shares, fitting, count, depth, first, items, tail, found):
    """Count all larger samples on this branch in closed form: at most two others still fit."""
    rest = tail[depth, items - first]
    if count == 0:
        found[0] += rest
        return
    one = tail[depth, _left(shares, fitting[0], fitting[0], first)]
    if count == 1:
        found[1] += one
        found[0] += _surplus(rest - one, rest)
        return
    two = tail[depth, _left(shares, fitting[1], fitting[1], first)]
    both = tail[depth, _left(shares, fitting[0], fitting[1], first)]
    found[2] += both
    found[1] += _surplus(one + two - 2 * both, rest)
    found[0] += _surplus(rest - one - two + both, rest)


@nb.njit(cache=True)
def _members(words, who, fitting, most):
    """List the first `most` people whose bit is set."""
    count = 0
    for w in range(len(words)):
        word = words[w]
        while word != 0 and count < most:
            low = word & (~word + np.uint64(1))
            fitting[count] = who[(w << 6) + np.int64(_ones(low - np.uint64(1)))]
            count += 1
            word ^= low
    return count


@nb.njit(cache=True)
def _branch(shares, who, table, items, start, depth0, least, most, leaf, tail, budget, found):
    """Walk all samples that extend a branch at `depth0` by items from `start` on; False if out of budget.

    Once 64 people or fewer are left, the walk goes on in :func:`_narrow`; not by calling itself, since
    Numba's cache does not survive recursion.
    """
    width = table.shape[1]
    fits = np.empty((most + 2, width), dtype=np.uint64)
    for w in range(width):
        fits[depth0, w] = ~np.uint64(0)
    if len(who) & 63:
        fits[depth0, width - 1] = (np.uint64(1) << np.uint64(len(who) & 63)) - np.uint64(1)
    next_item = np.empty(most + 2, dtype=np.int64)
    next_item[depth0] = start
    fitting = np.empty(64, dtype=np.int64)
    depth = depth0
    while depth >= depth0:
        item = next_item[depth]
        # Too few items are left to reach the smallest sample, or the largest is reached.
        if item >= items or depth >= most or depth + items - item < least:
            depth -= 1
            continue
        next_item[depth] = item + 1
        budget[0] -= width
        if budget[0] < 0:
            return False
        count = 0
        for w in range(width):
            fits[depth + 1, w] = fits[depth, w] & table[item, w]
            count += np.int64(_ones(fits[depth + 1, w]))
        found[count] += leaf[depth + 1]
        if depth + 1 == most:
            continue
        if count <= 2:
            _members(fits[depth + 1], who, fitting, 2)
            _settle(shares, fitting, count, depth + 1, item + 1, items, tail, found)
        elif count <= 64 and width > 1:
            _members(fits[depth + 1], who, fitting, 64)
            few = np.empty(count, dtype=np.int64)
            for k in range(count):
                few[k] = fitting[k]
            narrow = _by_item(shares, few, items)
            budget[0] -= items * count // 16
            if not _narrow(
                shares, few, narrow, items, item + 1, depth + 1, least, most, leaf, tail, budget, found
            ):
                return False
        else:
            depth += 1
            next_item[depth] = item + 1
    return True


@nb.njit(cache=True)
def _narrow(shares, who, table, items, start, depth0, least, most, leaf, tail, budget, found):
    """The same walk for at most 64 people: one word says who still fits."""
    fits = np.empty(most + 2, dtype=np.uint64)
    fits[depth0] = ~np.uint64(0) if len(who) == 64 else (np.uint64(1) << np.uint64(len(who))) - np.uint64(1)
    next_item = np.empty(most + 2, dtype=np.int64)
    next_item[depth0] = start
    fitting = np.empty(64, dtype=np.int64)
    word = np.empty(1, dtype=np.uint64)
    depth = depth0
    while depth >= depth0:
        item = next_item[depth]
        if item >= items or depth >= most or depth + items - item < least:
            depth -= 1
            continue
        next_item[depth] = item + 1
        budget[0] -= 1
        if budget[0] < 0:
            return False
        word[0] = fits[depth] & table[item, 0]
        count = np.int64(_ones(word[0]))
        found[count] += leaf[depth + 1]
        if depth + 1 == most:
            continue
        if count <= 2:
            _members(word, who, fitting, 2)
            _settle(shares, fitting, count, depth + 1, item + 1, items, tail, found)
        else:
            depth += 1
            fits[depth] = word[0]
            next_item[depth] = item + 1
    return True


@nb.njit(cache=True, nogil=True)
def search(shares, items, least, most, leaf, tail, steps, found):
    """Fill found[k] = Pr(k others fit) exactly; False if it would take more than `steps`."""
    people, zero = np.int64(len(shares)), np.int64(0)
    everybody, budget = np.empty(people, dtype=np.int64), np.empty(1, dtype=np.int64)
    for person in range(people):
        everybody[person] = person
    budget[0] = steps
    found[people] += leaf[0]
    if people <= 2:
        _settle(shares, everybody, people, zero, zero, items, tail, found)
        return True
    table = _by_item(shares, everybody, items)
    return _branch(shares, everybody, table, items, zero, zero, least, most, leaf, tail, budget, found)


@nb.njit(cache=True)
def _mix(state):
    """SplitMix64: a counter turned into 64 random bits, the same on every machine and thread."""
    z = state * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@nb.njit(cache=True)
def _uniform(state):
    """A number from 0 up to 1."""
    return np.float64(_mix(state) >> np.uint64(11)) / 2.0**53


@nb.njit(cache=True)
def _place(ascending, value):
    """How many numbers of an ascending list are at most `value` (np.searchsorted takes seconds to compile)."""
    low, high = 0, len(ascending)
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@nb.njit(cache=True, nogil=True)
def draw(shares, items, sizes, cumulative, wrong, rounds, seed, number, found):
    """Count in found[k] how many of `rounds` random samples fit exactly k others."""
    people, width = shares.shape
    state = _mix(_mix(np.uint64(seed) + np.uint64(1)) ^ np.uint64(number))
    pool, sample = np.empty(items, dtype=np.int64), np.zeros(width, dtype=np.uint64)
    for k in range(items):
        pool[k] = k
    for _ in range(rounds):
        state += np.uint64(1)
        level = _place(cumulative, _uniform(state) * cumulative[-1])
        size = sizes[min(level, len(sizes) - 1)]
        for w in range(width):
            sample[w] = np.uint64(0)
        for k in range(size):  # the first `size` places of a shuffle
            state += np.uint64(1)
            # 2^64 is so much larger than any profile that the remainder's bias is below 1e-14.
            pick = k + np.int64(_mix(state) % np.uint64(items - k))
            pool[k], pool[pick] = pool[pick], pool[k]
            sample[pool[k] >> 6] |= np.uint64(1) << np.uint64(pool[k] & 63)
        count = 0
        for person in range(people):
            missing = np.uint64(0)
            for w in range(width):
                missing += _ones(sample[w] & ~shares[person, w])
                if missing > wrong:
                    break
            count += np.int64(missing <= wrong)
        found[count] += 1


# Compiled loops of :mod:`adversaries`.

# Numba types these loops when it compiles them.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,assignment,misc"


@nb.njit(cache=True, nogil=True)
def rarest_first(
    rows, indptr, indices, starts, holders, level_starts, sizes, weights, people, inside, out
):  # fmt: skip
    """Intersect posting lists item by item, rarest first, and note how many others are left at each size."""
    for row in rows:
        n = indptr[row + 1] - indptr[row]
        left = np.empty(0, dtype=np.int32)
        taken, total = 0, 0.0
        for level in range(level_starts[n], level_starts[n + 1]):
            while taken < sizes[level] and (taken == 0 or len(left) > 0):
                item = indices[indptr[row] + taken]
                posting = holders[starts[item] : starts[item + 1]]
                left = posting.copy() if taken == 0 else _common(left, posting)
                taken += 1
            fitting = people if sizes[level] == 0 else len(left)
            total += weights[level] * (fitting - 1 if inside else fitting)
        out[row] = total


@nb.njit(cache=True)
def _common(some, others):
    """Keep those of a sorted list that are in another sorted list."""
    kept = np.empty(len(some), dtype=np.int32)
    count = 0
    for person in some:
        at = _place(others, person)
        if at > 0 and others[at - 1] == person:
            kept[count] = person
            count += 1
    return kept[:count]


@nb.njit(cache=True)
def _believe(items, size, wrong, popular, state, pool, believed):
    """Draw `size` of the person's items, then `wrong` others by popularity; return the generator's state."""
    for k in range(len(items)):
        pool[k] = k
    for k in range(size):
        state += np.uint64(1)
        pick = k + np.int64(_uniform(state) * (len(items) - k))
        pool[k], pool[pick] = pool[pick], pool[k]
        believed[k] = pool[k]
    for k in range(wrong):
        item = -1
        for _ in range(100):  # nearly always the first draw; a person who has everything keeps a doubtful one
            state += np.uint64(1)
            item = min(_place(popular, _uniform(state)), len(popular) - 1)
            at = _place(items, item)
            if at == 0 or items[at - 1] != item:
                break
        believed[size + k] = item
    return state


@nb.njit(cache=True, nogil=True)
def scoring_attack(
    part, rows, indptr, indices, starts, holders, entries, marks, scales, item_weight, popular,
    level_starts, sizes, weights, wrong, clear, rounds, seed, counts,
):  # fmt: skip
    """Fill counts[k] = rounds that found person rows[k], accepted somebody else, or stayed undecided."""
    people = len(indptr) - 1
    points = np.zeros(people)
    touched = np.empty(people, dtype=np.int64)
    for k in part:
        row = rows[k]
        items = indices[indptr[row] : indptr[row + 1]]
        n = len(items)
        low, high = level_starts[n], level_starts[n + 1]
        cumulative = np.cumsum(weights[low:high])
        state = _mix(_mix(np.uint64(seed) + np.uint64(7)) ^ np.uint64(row))
        pool, believed = np.empty(n, dtype=np.int64), np.empty(n + wrong, dtype=np.int64)
        for _ in range(rounds):
            state += np.uint64(1)
            level = min(_place(cumulative, _uniform(state) * cumulative[-1]), high - low - 1)
            size = sizes[low + level]
            state = _believe(items, size, wrong, popular, state, pool, believed)
            seen = 0
            for b in range(size + wrong):
                mine = b < size
                item = np.int64(items[believed[b]]) if mine else believed[b]
                own = indptr[row] + believed[b]
                for at in range(starts[item], starts[item + 1]):
                    gain = item_weight[item]
                    if mine and len(marks):
                        near = 0.0
                        for m in range(len(marks)):
                            gap = abs(marks[m, entries[at]] - marks[m, own])
                            near += np.exp(-gap / scales[m]) if gap == gap else 0.0
                        gain *= near
                    person = holders[at]
                    if points[person] == 0.0 and gain > 0.0:
                        touched[seen] = person
                        seen += 1
                    points[person] += gain
            counts[k, _verdict(points, touched, seen, people, row, clear)] += 1
            for t in range(seen):
                points[touched[t]] = 0.0


@nb.njit(cache=True)
def _verdict(points, touched, seen, people, row, clear):
    """Return 0 if the right person stands out, 1 if another does, 2 if nobody does."""
    best, second, winner, total, squares = 0.0, 0.0, -1, 0.0, 0.0
    for t in range(seen):
        value = points[touched[t]]
        total += value
        squares += value * value
        if value > best:
            best, second, winner = value, best, touched[t]
        elif value > second:
            second = value
    spread = np.sqrt(max(squares / people - (total / people) ** 2, 0.0))
    if winner < 0 or spread == 0.0 or best - second < clear * spread:
        return 2
    return 0 if winner == row else 1


# Compiled loop of :mod:`expected_crowd` for whole crowds.

# Numba types these loops when it compiles them.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,call-arg,assignment,misc"


@nb.njit(cache=True, nogil=True)
def expected_crowds(
    rows, indptr, indices, probabilities, people, level_starts, sizes, weights, negligible, out
):  # fmt: skip
    """Fill the expected number of others of the given rows.

    The mean product m_s of s out of j + 1 items mixes two cases, item j left out or taken:
    m_s = (1 - s/(j+1)) m_s + s/(j+1) p_j m_(s-1).
    """
    for row in rows:
        first, n = indptr[row], indptr[row + 1] - indptr[row]
        if n == 0:
            continue
        low, high = level_starts[n], level_starts[n + 1]
        total = 0.0
        for c in range(len(people)):
            average = 0.0
            for j in range(n):
                average += probabilities[indices[first + j], c]
            log_average = np.log(average / n)
            most = 0
            for level in range(low, high):
                if np.log(people[c]) + sizes[level] * log_average >= negligible:
                    most = max(most, sizes[level])
            means = np.zeros(most + 1)
            means[0] = 1.0
            if most > 0:
                for j in range(n):
                    p = probabilities[indices[first + j], c]
                    for s in range(min(most, j + 1), 0, -1):
                        taken = s / (j + 1)
                        means[s] = (1.0 - taken) * means[s] + taken * p * means[s - 1]
            for level in range(low, high):
                if sizes[level] <= most:
                    total += people[c] * weights[level] * means[sizes[level]]
        out[row] = total
