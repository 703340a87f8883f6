"""Compiled loops of the makers: texts, baskets and word profiles, drawn by place so that chunks do not matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np

from incrowd.crowd.synthetic import members
from incrowd.crowd.synthetic.chance import GOLDEN, MIX_1, MIX_2, Array

F = TypeVar("F", bound=Callable[..., Any])

U16, U24, U30, U27, U31, U32, U40, U48 = (np.uint64(n) for n in (16, 24, 30, 27, 31, 32, 40, 48))
LOW_16, LOW_40 = np.uint64(2**16 - 1), np.uint64(2**40 - 1)
PLAIN, COMMA, STOP, QUESTION = members.PLAIN, members.COMMA, members.STOP, members.QUESTION
EXCLAMATION, ELLIPSIS, CAPITAL = members.EXCLAMATION, members.ELLIPSIS, members.CAPITAL
FIRST_SMILEY, SMILIES = members.FIRST_SMILEY, len(members.SMILIES)
FIRST_WART, WARTS = members.FIRST_WART, len(members.WARTS)
QUOTE_OPENS, QUOTE_CLOSES = members.QUOTE_OPENS, members.QUOTE_CLOSES
TWO_16, TWO_24 = 2.0**16, 2.0**24
SENTENCE_ENDS, QUESTIONS, QUOTED = 1 / 11, 0.93, 3
QUOTE_LENGTH = 6
SMALL_A, SMALL_Z, CASE, SPACE = 97, 122, 32, 32


def compiled(function: F) -> F:
    """Compile a function on its first call and keep the result for the next process."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))


class Tables(NamedTuple):
    """Lookup tables, one for each source of words, and the numbering of the words."""

    function_words: Array
    background: Array
    subject: Array
    favourite: Array
    favourite_function: Array
    salient_bounds: Array
    first_made_up: int


class SourceShares(NamedTuple):
    """How often a word comes from each source."""

    function: float
    """Among all words."""
    favourite_function: float
    """Among function words."""
    favourite: float
    """Among the other words; so are the next two."""
    stray: float
    subject: float


class Chunk(NamedTuple):
    """What is known of some posts before their words are drawn."""

    post: Array
    identity: Array
    bounds: Array
    """Post *i* owns the words from bound *i* up to bound *i* + 1."""
    subject_key: Array
    """What the community talks about in this post: the key of a list of words."""
    topic: Array
    """The sensitive topic, or -1."""
    focus: Array
    """The share of such words."""


@compiled
def _mix(x: np.uint64) -> np.uint64:
    x = (x ^ (x >> U30)) * MIX_1
    x = (x ^ (x >> U27)) * MIX_2
    return x ^ (x >> U31)


@compiled
def _among(draw: np.uint64, low: int, high: int) -> np.int64:
    """Return a number from low up to high - 1, by the draw's low 40 bits."""
    return low + np.int64(((draw & LOW_40) * np.uint64(high - low)) >> U40)


@compiled
def _pick(table: Array, draw: np.uint64) -> np.int64:
    """Read a lookup table at random."""
    return np.int64(table[_among(draw, 0, table.size)])


@compiled
def _subject_word(rank: np.int64, key: np.uint64, vocabulary: int) -> np.int64:
    """Return the subject's r-th word: a hash of r, so that no list is kept for any subject."""
    hashed = _mix(key + np.uint64(rank + 1) * GOLDEN) >> U32
    return np.int64(hashed * np.uint64(vocabulary) >> U32)


@compiled
def draw_words(
    key: np.uint64,
    chunk: Chunk,
    tables: Tables,
    shares: SourceShares,
    favourites: Array,
    function_words: Array,
    words: Array,
) -> None:
    """Fill in the words of every post."""
    posts, identities, bounds, subject_keys, topics, focuses = chunk
    little, background, subject, dear, dear_little, salient, first = tables
    little_share = shares.function
    dear_little_share = shares.function * shares.favourite_function
    upto_favourite = shares.favourite
    upto_stray = upto_favourite + shares.stray
    upto_subject = upto_stray + shares.subject
    vocabulary = background[-1] + 1
    for i in range(len(posts)):
        state = _mix(key + np.uint64(posts[i]) * GOLDEN)
        who, subject_key, topic, focus = identities[i], subject_keys[i], topics[i], focuses[i]
        for j in range(bounds[i], bounds[i + 1]):
            state += GOLDEN
            draw = _mix(state)
            share = (draw >> U40) / TWO_24
            if share < dear_little_share:
                words[j] = function_words[who, _pick(dear_little, draw)]
            elif share < little_share:
                words[j] = _pick(little, draw)
            else:
                share = (share - little_share) / (1.0 - little_share)
                if share < focus:
                    words[j] = _among(draw, salient[topic], salient[topic + 1])
                    continue
                share = (share - focus) / (1.0 - focus)
                if share < upto_favourite:
                    words[j] = favourites[who, _pick(dear, draw)]
                elif share < upto_stray:
                    words[j] = _among(draw, salient[0], salient[-1])
                elif share < upto_subject:
                    words[j] = first + _subject_word(_pick(subject, draw), subject_key, vocabulary)
                else:
                    words[j] = first + _pick(background, draw)


@compiled
def _mark(draw: np.uint64, habits: Array, last: bool, wart_share: float) -> int:
    """Choose what surrounds a word; 16 bits of the draw for each decision."""
    exclamation, ellipsis, bare = habits[1], habits[2], habits[3]
    comma, smiley, which_smiley = habits[4], habits[5], habits[6]
    first = (draw & LOW_16) / TWO_16
    second = ((draw >> U16) & LOW_16) / TWO_16
    third = (draw >> U48) / TWO_16
    if ((draw >> U32) & LOW_16) / TWO_16 < wart_share:
        return FIRST_WART + int(third * WARTS)
    if not last and first >= SENTENCE_ENDS:
        return COMMA if first - SENTENCE_ENDS < comma else PLAIN
    if second < exclamation:
        return EXCLAMATION
    if second < exclamation + ellipsis:
        return ELLIPSIS
    if third < smiley:
        return FIRST_SMILEY + int(which_smiley * SMILIES)
    if third < smiley + bare:
        return PLAIN
    return QUESTION if third > QUESTIONS else STOP


@compiled
def draw_marks(
    key: np.uint64,
    posts: Array,
    identities: Array,
    bounds: Array,
    habits: Array,
    wart_share: float,
    signs: Array,
) -> None:
    """Fill in the mark beside every word."""
    for i in range(len(posts)):
        state = _mix(key + np.uint64(posts[i]) * GOLDEN)
        who, starts, ends = identities[i], bounds[i], bounds[i + 1]
        sentence = True
        for j in range(starts, ends):
            state += GOLDEN
            draw = _mix(state)
            sign = _mark(draw, habits[who], j == ends - 1, wart_share)
            capital = sentence and ((draw >> U24) & LOW_16) / TWO_16 < habits[who, 0]
            signs[j] = sign + CAPITAL if capital else sign
            sentence = STOP <= sign < FIRST_SMILEY + SMILIES
        if ends - starts > 2 * QUOTE_LENGTH and (_mix(state) >> U40) / TWO_24 < QUOTED * wart_share:
            signs[starts] = QUOTE_OPENS
            signs[starts + QUOTE_LENGTH - 1] = QUOTE_CLOSES


@compiled
def measure(
    bounds: Array, words: Array, signs: Array, word_ends: Array, mark_sizes: Array, ends: Array
) -> None:
    """Compute where each post's bytes end."""
    total = 0
    for i in range(len(bounds) - 1):
        for j in range(bounds[i], bounds[i + 1]):
            sign = signs[j] & (CAPITAL - 1)
            total += word_ends[words[j] + 1] - word_ends[words[j]] + mark_sizes[0, sign] + mark_sizes[1, sign]
            if j < bounds[i + 1] - 1:
                total += mark_sizes[2, sign]
        ends[i + 1] = total


@compiled
def _copy(source: Array, ends: Array, which: np.int64, target: Array, at: int) -> int:
    """Append string number `which` and return where it ends."""
    for k in range(ends[which], ends[which + 1]):
        target[at] = source[k]
        at += 1
    return at


@compiled
def spell(
    bounds: Array,
    words: Array,
    signs: Array,
    word_bytes: Array,
    word_ends: Array,
    mark_bytes: Array,
    mark_ends: Array,
    text: Array,
) -> None:
    """Write every post's bytes, one post after another."""
    at = 0
    kinds = (len(mark_ends) - 1) // 3
    for i in range(len(bounds) - 1):
        for j in range(bounds[i], bounds[i + 1]):
            sign, last = np.int64(signs[j] & (CAPITAL - 1)), j == bounds[i + 1] - 1
            if sign != PLAIN:
                at = _copy(mark_bytes, mark_ends, sign, text, at)
            begin = at
            at = _copy(word_bytes, word_ends, words[j], text, at)
            if signs[j] >= CAPITAL and SMALL_A <= text[begin] <= SMALL_Z:
                text[begin] -= CASE
            if sign != PLAIN:
                at = _copy(mark_bytes, mark_ends, kinds + sign, text, at)
            if last:
                continue
            if sign == PLAIN:  # nine words in ten: nothing but a space
                text[at] = SPACE
                at += 1
            else:
                at = _copy(mark_bytes, mark_ends, 2 * kinds + sign, text, at)


PATIENCE = 6


@compiled
def choose_items(
    key: np.uint64,
    first_user: int,
    bounds: Array,
    clusters: Array,
    taste: float,
    popular: Array,
    of_cluster: Array,
    cluster_bounds: Array,
    item_count: int,
    chosen: Array,
) -> None:
    """Fill in the items of users `first_user`, `first_user` + 1, ..., each once, in rising order.

    With probability `taste` the next item comes from the user's cluster, otherwise from everything, both by
    popularity. Whoever has had PATIENCE draws an item still lacks some gets the most popular ones left:
    people with very long profiles have seen all there is to see.
    """
    taken_by = np.full(item_count, -1, dtype=np.int64)
    for i in range(len(bounds) - 1):
        user, low, high = first_user + i, bounds[i], bounds[i + 1]
        state = _mix(key + np.uint64(user) * GOLDEN)
        cluster_low, cluster_high = cluster_bounds[clusters[i]], cluster_bounds[clusters[i] + 1]
        at = low
        for _ in range(PATIENCE * (high - low)):
            state += GOLDEN
            draw = _mix(state)
            if (draw >> U40) / TWO_24 < taste:
                item = of_cluster[_among(draw, cluster_low, cluster_high)]
            else:
                item = popular[_among(draw, 0, popular.size)]
            if taken_by[item] != user:
                taken_by[item] = user
                chosen[at] = item
                at += 1
                if at == high:
                    break
        item = 0
        while at < high:
            if taken_by[item] != user:
                chosen[at] = item
                at += 1
            item += 1
        chosen[low:high].sort()


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
