"""Plain NumPy for one person, against the compiled kernels for a whole crowd."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from incrowd.measures.microdata.anonymity_set import others_against
from incrowd.measures.microdata.assess import expected_assessment, others_of
from incrowd.measures.microdata.set_sizes import SetSizeFinder
from incrowd.measures.microdata.spec import ADVERSARIES, Knowledge, adversary
from incrowd.measures.microdata.table import ItemTable


@pytest.mark.parametrize("name", ADVERSARIES)
def test_one_person_is_counted_like_everybody(table: ItemTable, name: str) -> None:
    everybody = others_against(table, adversary(name))
    for row in range(0, len(table.users), 7):
        alone = others_of(table, row, [table.profile(row)], adversary(name))
        assert alone[0, 0] == pytest.approx(everybody[row], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", ["paper", "rarest", "ratings"])
def test_unrated_items_are_counted_like_everybodys(table: ItemTable, name: str) -> None:
    ratings = np.where(np.arange(table.matrix.nnz) % 3 == 0, np.nan, table.ratings).astype(np.float32)
    holes = replace(table, ratings=ratings)
    everybody = others_against(holes, adversary(name))
    found = [others_of(holes, row, [holes.profile(row)], adversary(name))[0, 0] for row in range(20)]
    assert found == pytest.approx(everybody[:20].tolist(), rel=1e-12, abs=1e-12)


def test_items_that_the_person_lacks_do_not_matter(table: ItemTable) -> None:
    row = 11
    cut = table.only_items(table.profile(row))
    assert cut.items.to_list() == table.items.gather(table.profile(row).tolist()).to_list()
    assert cut.users.to_list() == table.users.to_list()
    for who in ADVERSARIES.values():
        whole, part = expected_assessment(table, row, who), expected_assessment(cut, row, who)
        assert part == replace(whole, value=part.value, explained=part.explained, evidence=part.evidence)
        assert part.value == pytest.approx(whole.value, rel=1e-14)
    sizes, again = (
        SetSizeFinder(one.matrix, Knowledge()).find(one.profile(row), member=row, number=row)
        for one in (table, cut)
    )
    assert np.array_equal(sizes.probabilities, again.probabilities)
