from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from incrowd import synthetic
from incrowd.errors import InputError


@pytest.mark.parametrize("name", ["paper-000", "paper-003"])
def test_the_forum_has_the_papers_counts(name):
    crowd = synthetic.preset(name)
    members = crowd.members
    assert crowd.rows == members.posts.sum() == 15_000_000
    assert len(members.user) == 58_091
    assert len(np.unique(members.user)) == 37_935
    assert len(np.unique(members.community)) == 1_930
    assert members.posts.min() >= 100
    assert members.posts.max() <= 1_000


@pytest.mark.parametrize(
    ("name", "users", "items", "entries"),
    [
        ("paper-002-netflix", 9_938, 1_763, 426_639),
        ("paper-002-music", 13_265, 13_630, 1_190_496),
        ("paper-002-movies", 7_626, 11_916, 201_579),
        ("netflix-prize", 480_189, 17_770, 100_480_507),
    ],
)
def test_item_tables_have_the_papers_counts(name, users, items, entries):
    table = synthetic.preset(name)
    assert (table.users, table.items, table.rows) == (users, items, entries)
    assert table.choice.sizes.sum() == entries
    if name.startswith("paper"):
        assert table.choice.sizes.min() >= 8
        assert table.choice.sizes.max() <= 5_000


@pytest.mark.parametrize("name", synthetic.PRESETS)
def test_the_first_rows_of_every_preset_come_without_the_rest(name):
    frame = next(islice(synthetic.preset(name).frames(1_000), 1))
    assert 0 < frame.height < 30_000


def test_an_unknown_preset_names_those_there_are():
    with pytest.raises(InputError, match="There are: paper-000"):
        synthetic.preset("paper-999")
