from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import synthetic
from incrowd.errors import InputError

TABLE = synthetic.holders(users=200, values=300, favourites=5.0, spellings=4, seed=1)
ROWS = TABLE.to_frame()


@settings(max_examples=8, deadline=None)
@given(chunk=st.integers(1, 2_000))
def test_rows_do_not_depend_on_the_chunk_size(chunk):
    assert pl.concat(TABLE.frames(chunk)).equals(ROWS)


def test_everybody_has_a_location_an_affiliation_and_the_stated_number_of_favourites():
    counts = dict(ROWS["attribute"].value_counts().iter_rows())
    assert counts == {"location": 200, "affiliation": 200, "favourite": 1_000}
    assert ROWS.height == TABLE.rows
    assert ROWS.is_unique().all()


def test_holders_are_those_who_name_the_value():
    favourites = ROWS.filter(attribute="favourite")
    holders = TABLE.holders()
    assert sum(map(len, holders.values())) == favourites.height
    value = favourites["value"][0]
    assert set(holders[value]) == set(favourites.filter(value=value)["user"])


def test_a_class_holds_its_members_only():
    place = TABLE.classes["location"].mode()[0]
    members = set(TABLE.classes.filter(location=place)["user"])
    named = TABLE.holders(location=place)
    assert {user for users in named.values() for user in users} == members
    with pytest.raises(InputError, match="synthetic selection"):
        TABLE.holders(planet="Mars")


def test_spellings_hide_what_canonical_values_show():
    raw, canonical = TABLE.holders(), TABLE.holders(canonical=True)
    assert len(raw) > 1.5 * len(canonical)
    assert sum(map(len, raw.values())) == sum(map(len, canonical.values()))
    meaning = dict(TABLE.truth.iter_rows())
    assert len(meaning) == 300 * 4
    for value, users in raw.items():
        assert set(users) <= set(canonical[meaning[value]])


def test_a_few_classes_hold_half_of_the_people():
    sizes = synthetic.preset("paper-001").classes["location"].value_counts(sort=True)["count"]
    assert sizes.head(5).sum() > 0.4 * 700
    assert (sizes < 10).mean() > 0.2


def test_at_the_papers_size_nearly_all_raw_values_are_rare_and_spelling_is_why():
    # Paper 001: over 95 % of raw values fall short of ten holders; canonical names let over 4x as many pass.
    table = synthetic.preset("paper-001")
    raw = [len(users) >= 10 for users in table.holders().values()]
    canonical = [len(users) >= 10 for users in table.holders(canonical=True).values()]
    assert sum(raw) < 0.05 * len(raw)
    assert sum(canonical) > 4 * sum(raw)
