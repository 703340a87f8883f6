"""The smallest change that reaches a target: tried out, not extrapolated. Every search for advice goes through here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from incrowd.measures.person import Changes, Person
from incrowd.measures.protocol import Proposal
from incrowd.result import say_count

Lack = Callable[[Person], float]
"""How far a changed person is from the target; at most 0: reached."""

MOST_WORDS = 24
"""Nobody edits out more words than this."""
NAMED = 6
STEPS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1)
"""Shares of what may be given up, tried where each try takes long."""
NEW_NAME = (5, 10, 20, 40, 80)
"""How many posts a new name may have before the next one, as tried."""


def fewest(most: int, lack: Callable[[int], float], now: float) -> int | None:
    """Return the smallest tried count that leaves no lack, else that with the least; None if nothing helps.

    More need not help more, so counts are doubled until one reaches the goal and the gap below it is halved.

    >>> fewest(100, lambda count: 14.0 - 2 * count, 14.0)
    7
    """
    tried: dict[int, float] = {}

    def measured(count: int) -> float:
        if count not in tried:
            tried[count] = lack(count)
        return tried[count]

    if most < 1 or now <= 0:
        return None
    high = 1
    while measured(min(high, most)) > 0 and high < most:
        high *= 2
    high = min(high, most)
    if tried[high] > 0:
        best = min(tried, key=lambda count: (tried[count], count))
        return best if tried[best] < now else None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if measured(middle) <= 0 else (middle, high)
    return high


def post_order(person: Person, inside: NDArray[np.bool_], per_use: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the numbers of some posts, those first whose words weigh most; `per_use`: one weight per word."""
    weights = person.words.matrix[inside] @ per_use
    return np.asarray(person.numbers[inside][np.argsort(-weights, kind="stable")], np.int64)


def alternating(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return both lists as one, each used up at the same pace.

    >>> alternating(np.array([1, 2, 3, 4]), np.array([8, 9])).tolist()
    [1, 8, 2, 3, 9, 4]
    """
    pace = np.concatenate([(np.arange(len(one)) + 0.5) / len(one) for one in (first, second)])
    return np.asarray(np.concatenate([first, second])[np.argsort(pace, kind="stable")])


def fewer_posts(
    person: Person, order: NDArray[np.int64], lack: Lack, where: str, most: float
) -> Iterator[Proposal]:
    """Propose to delete, or to move to another name, the fewest posts from the front of `order`, at most that share."""
    count = fewest(
        int(most * len(order)),
        lambda n: lack(person.after(Changes(delete_posts=frozenset(order[:n].tolist())))),
        lack(person),
    )
    if count is None:
        return
    chosen = frozenset(order[:count].tolist())
    what = f"{count:,} of your {say_count(len(order), 'post')} in {where}"
    yield delete_first(order, count, where)
    yield Proposal(
        what=f"Split this identity: write {what} under another name",
        loss="readers who know you by this name",
        changes=Changes(move_posts=chosen),
    )


def fewer_words(person: Person, weights: NDArray[np.float64], lack: Lack, where: str) -> Iterator[Proposal]:
    """Propose to take out the fewest words that weigh most."""
    others = person.words.vocabulary.is_in(list(person.mentioned)).to_numpy()  # advice names its words
    order = np.argsort(-weights, kind="stable")
    order = order[(weights[order] > 0) & ~others[order]][:MOST_WORDS]
    words = person.words.vocabulary.gather(order).to_list()
    count = fewest(len(order), lambda n: lack(person.without_counting(frozenset(words[:n]))), lack(person))
    if count is None:
        return
    words = words[:count]
    named = ", ".join(f"“{word}”" for word in words[:NAMED])
    more = f" and {count - NAMED} more" if count > NAMED else ""
    uses = int(person.words.matrix[:, order[:count]].sum())
    yield Proposal(
        what=f"Edit your posts: take out {'the word' if count == 1 else say_count(count, 'word')} {named}{more}",
        loss=f"{say_count(uses, 'use')} of {say_count(count, 'word')} in your posts",
        changes=Changes(edit_words=frozenset(words)),
    )


# Where one try takes long: a few steps instead of a search, all of them known before the first is tried.


def steps(most: int) -> list[int]:
    """Return the counts to try, up to the most that may be given up.

    >>> steps(40)
    [3, 5, 10, 20, 40]
    """
    return sorted({int(np.ceil(most * share)) for share in STEPS} - {0})


def in_place(where: str) -> str:
    """Say where, unless it need not be said.

    >>> in_place("chess"), in_place("")
    (' in chess', '')
    """
    return f" in {where}" if where else ""


def delete_first(order: NDArray[np.int64], count: int, where: str) -> Proposal:
    """Propose to delete the first posts of an order."""
    what = f"{count:,} of your {say_count(len(order), 'post')}{in_place(where)}"
    return Proposal(
        what=f"Delete {what}: {'the one that gives' if count == 1 else 'those that give'} you away most",
        loss=what,
        changes=Changes(delete_posts=frozenset(order[:count].tolist())),
    )


def take_out(person: Person, words: Sequence[str], where: str) -> Proposal:
    """Propose to take some words out of all posts."""
    known = set(person.words.vocabulary.to_list()) - person.mentioned  # advice names its words
    words = [word for word in words if word in known]
    places = np.flatnonzero(person.words.vocabulary.is_in(words).to_numpy())
    uses = int(person.words.matrix[:, places].sum())
    named = ", ".join(f"“{word}”" for word in words[:NAMED])
    more = f" and {len(words) - NAMED} more" if len(words) > NAMED else ""
    return Proposal(
        what=f"Reword your posts without {'the word' if len(words) == 1 else f'these {len(words)} words:'} "
        f"{named}{more}",
        loss=f"{say_count(uses, 'use')} of {say_count(len(words), 'word')}{in_place(where)}",
        changes=Changes(edit_words=frozenset(words)),
    )


def start_over(person: Person, community: str, inside: NDArray[np.bool_] | None = None) -> list[Proposal]:
    """Propose a new name in a community, for fewer and fewer posts; tried out as if only the latest ones were there.

    `inside` marks the posts there, if the crowd counts them elsewhere.
    """
    numbers = person.numbers[person.rows_in(community) if inside is None else inside]  # in the order of time
    proposals = []
    for count in sorted(NEW_NAME, reverse=True):
        if count <= len(numbers) // 2:
            proposals.append(
                Proposal(
                    what=f"Write{in_place(community)} under a new name from now on, and take another one after "
                    f"{say_count(count, 'post')}",
                    loss="readers who know you by this name; the old posts stay as findable as they are",
                    changes=Changes(delete_posts=frozenset(numbers[:-count].tolist())),
                    from_now_on=True,
                )
            )
    return proposals


def first_to_reach(tried: Sequence[tuple[Proposal, float]], now: float) -> Proposal | None:
    """Return the first proposal that leaves no lack, else that with the least; None if none is better than now."""
    reached = next((proposal for proposal, lack in tried if lack <= 0), None)
    if reached is not None or not tried:
        return reached
    best, least = min(tried, key=lambda one: one[1])
    return best if least < now else None
