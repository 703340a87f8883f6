"""Stronger adversaries, against plain NumPy and against common sense."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from incrowd.errors import InputError
from incrowd.measures.microdata.anonymity_set import (
    ScoringAttack,
    others_against,
    rarest_first,
    scoring_attack,
)
from incrowd.measures.microdata.definition import known_sizes
from incrowd.measures.microdata.spec import ADVERSARIES, Knowledge, adversary
from incrowd.measures.microdata.table import ItemTable, entries_of, item_table, restrict


def test_the_rarest_items_first_equals_plain_counting(table: ItemTable) -> None:
    dense, popularity = table.matrix.toarray().astype(bool), table.popularity
    got = rarest_first(table.matrix, table.matrix, Knowledge())
    for row in range(len(dense)):
        items = table.profile(row)
        items = items[np.lexsort((items, popularity[items]))]
        sizes, weights = known_sizes(len(items), Knowledge())
        fitting = [dense[:, items[:size]].all(axis=1).sum() - 1 for size in sizes]
        assert got[row] == pytest.approx(float(weights @ fitting))


def test_knowing_more_about_each_item_leaves_fewer_people(table: ItemTable) -> None:
    paper = others_against(table, adversary("paper"))
    for stronger in ("ratings", "dates", "friend", "rarest"):
        assert np.median(others_against(table, adversary(stronger))) <= np.median(paper)
    assert np.all(others_against(table, adversary("ratings")) <= paper + 1e-12)
    assert np.all(others_against(table, adversary("unsure")) >= paper - 1e-12)


def test_some_rows_are_answered_like_all(table: ItemTable) -> None:
    rows = np.array([3, 17, 40])
    for name in ADVERSARIES:
        every, some = others_against(table, adversary(name)), others_against(table, adversary(name), rows)
        assert some == pytest.approx(every[rows], abs=1e-12)


def test_a_crowd_without_ratings_cannot_be_attacked_by_them(frame: pl.DataFrame) -> None:
    bare = item_table(frame.select("user", "item"))
    assert not bare.has(adversary("ratings").matching)
    with pytest.raises(InputError, match="the crowd holds no"):
        others_against(bare, adversary("ratings"))
    with pytest.raises(InputError, match=r"expected one of three-items, .*paper"):
        adversary("martian")


def test_a_unique_person_is_found_and_a_twin_is_not() -> None:
    common = [(f"u{k}", f"c{i}") for k in range(30) for i in range(10)]
    odd = [("odd", f"x{i}") for i in range(10)]
    frame = pl.DataFrame([*common, *odd], schema=["user", "item"], orient="row")
    table = item_table(frame)
    attack = ScoringAttack(rounds=50, wrong_items=0)
    rates = scoring_attack(table, attack)
    odd_row = table.row_of("odd")
    assert rates.found[odd_row] == 1
    assert np.delete(rates.found, odd_row).max() == 0


def test_outcomes_add_up_and_wrong_beliefs_do_not_help(table: ItemTable) -> None:
    attack = ScoringAttack(rounds=300, wrong_items=0, seed=3)
    right, wrong = scoring_attack(table, attack), scoring_attack(table, replace(attack, wrong_items=3))
    for rates in (right, wrong):
        assert rates.found + rates.mistaken + rates.undecided == pytest.approx(np.ones(60))
        assert np.all((rates.reach > 0) & (rates.reach < 1))
    assert wrong.found.mean() <= right.found.mean()
    assert wrong.mistaken.mean() >= right.mistaken.mean()


def test_ratings_and_dates_help_the_scoring_attack_a_lot(table: ItemTable) -> None:
    attack = ScoringAttack(rounds=100, wrong_items=1)
    with_both = replace(attack, use_ratings=True, use_dates=True)
    assert scoring_attack(table, with_both).found.mean() > 2 * scoring_attack(table, attack).found.mean()
    assert "ratings and dates" in with_both.words


def test_the_same_seed_gives_the_same_attack_whoever_else_is_attacked(table: ItemTable) -> None:
    attack = ScoringAttack(rounds=40, seed=1)
    every = scoring_attack(table, attack)
    some = scoring_attack(table, attack, np.array([5, 9]))
    assert some.found.tolist() == every.found[[5, 9]].tolist()


def test_a_part_of_the_table_is_the_table_of_the_part(frame: pl.DataFrame, table: ItemTable) -> None:
    rows = np.array([2, 3, 11])
    part = restrict(table, rows)
    names = table.users.gather(rows.tolist())
    fresh = item_table(frame.filter(pl.col("user").is_in(names.implode())))
    assert (part.matrix != fresh.matrix).nnz == 0
    assert part.items.to_list() == fresh.items.to_list()
    assert part.ratings.tolist() == fresh.ratings.tolist()
    assert part.days.tolist() == fresh.days.tolist()
    assert (
        entries_of(table.matrix, rows).tolist()
        == np.concatenate([np.arange(*table.matrix.indptr[row : row + 2]) for row in rows]).tolist()
    )
