"""The search for answers by people who list one value alone, held against plain counting."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gateway.test_joint import random_class, random_snapshot, tell

from incrowd.gateway.alternatives import _lists, most_with_sole_holders
from incrowd.measures.release.kernels import lists_from_pairs


def drawn(seed: int) -> tuple:  # type: ignore[type-arg]
    """A crowd with some answers told, a class, and the values of an attribute in question."""
    chance = np.random.default_rng(seed)
    snap = random_snapshot(chance, people=90, values=5)
    joint, _ = tell(chance, snap, base=3, answers=int(chance.integers(0, 3)))
    codes = tuple(sorted(chance.choice(5, int(chance.integers(1, 6)), replace=False).tolist()))
    return snap.attributes["music"], random_class(chance, snap.size), codes, joint.about


def entries(index, people, codes, about):  # type: ignore[no-untyped-def]
    """Person -> which of the values they list, of those who were told about nothing else."""
    open_to = {-1, *(index.offset + code for code in codes)}
    listed = {
        p: [k for k, code in enumerate(codes) if p in index.holders(code)] for p in people.members.tolist()
    }
    return {p: values for p, values in listed.items() if values and int(about[p]) in open_to}


@given(st.integers(0, 10**9))
@settings(max_examples=60)
def test_the_layout_holds_everybody_who_may_count(seed: int) -> None:
    index, people, codes, about = drawn(seed)
    rows = list(entries(index, people, codes, about).values())
    place = np.full(len(index.values), -1)
    place[list(codes)] = np.arange(len(codes))
    got = _lists(index.starts, index.codes, people.members, place, about, index.offset, len(codes))
    pairs = [(row, value) for row, values in enumerate(rows) for value in values]
    flat = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    expected = lists_from_pairs(flat[:, 0], flat[:, 1], np.ones(len(rows), np.int64), len(codes))
    for mine, theirs in zip(got, expected, strict=True):
        assert np.array_equal(mine, theirs)


@given(st.integers(0, 10**9), st.integers(1, 8))
@settings(max_examples=60)
def test_every_value_kept_has_enough_people_alone_and_none_could_be_added(seed: int, least: int) -> None:
    index, people, codes, about = drawn(seed)
    chance = np.random.default_rng(seed + 1)
    rank, blur = chance.permutation(len(codes)), chance.integers(0, 9, len(codes))
    kept = most_with_sole_holders(index, people, codes, about, least, rank, blur)
    rows = entries(index, people, codes, about)

    def alone(some: tuple[int, ...]) -> list[int]:
        sets = [{codes[k] for k in values} & set(some) for values in rows.values()]
        return [sum(one == {code} for one in sets) for code in some]

    assert all(count >= least for count in alone(kept))
    for more in set(codes) - set(kept):
        assert min(alone((*kept, more))) < least
