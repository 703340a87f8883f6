from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import synthetic
from incrowd.crowd.schema import COLUMNS
from incrowd.errors import InputError

PEOPLE = synthetic.attributes(users=500, seed=6)
ROWS = PEOPLE.to_frame()

RAIN = synthetic.Network(
    (
        synthetic.Node("rain", ("no", "yes"), (), np.array([[0.8, 0.2]])),
        synthetic.Node("sprinkler", ("off", "on"), ("rain",), np.array([[0.6, 0.4], [0.99, 0.01]])),
        synthetic.Node(
            "grass",
            ("dry", "wet"),
            ("rain", "sprinkler"),
            np.array([[1.0, 0.0], [0.1, 0.9], [0.2, 0.8], [0.01, 0.99]]),
        ),
    )
)


@settings(max_examples=10, deadline=None)
@given(chunk=st.integers(1, 9_000))
def test_rows_do_not_depend_on_the_chunk_size(chunk):
    people = replace(PEOPLE, users=40)
    assert pl.concat(people.frames(chunk)).equals(people.to_frame())


def test_rows_have_the_columns_of_the_table_and_only_known_values():
    assert dict(ROWS.schema) == COLUMNS["attributes"]
    assert ROWS.height == PEOPLE.rows
    assert ROWS.n_unique(["user", "attribute"]) == ROWS.height
    known = {(node.name, value) for node in PEOPLE.truth.nodes for value in node.values}
    assert set(ROWS.select("attribute", "value").iter_rows()) <= known


def test_wide_and_long_say_the_same():
    wide = pl.concat(PEOPLE.wide())
    long = wide.unpivot(index="user", variable_name="attribute").drop_nulls()
    assert long.sort("user", "attribute").equals(ROWS.sort("user", "attribute"))
    assert len(wide.columns) == 21


def test_the_zip_code_decides_the_city_and_the_city_the_region():
    full = pl.concat(replace(PEOPLE, missing=0.0, users=3_000).wide())
    assert full.group_by("zip").agg(pl.col("city").n_unique())["city"].max() == 1
    assert full.group_by("city").agg(pl.col("region").n_unique())["region"].max() == 1
    assert full["city"].n_unique() == 15


def test_people_come_in_the_shares_of_the_network():
    people = synthetic.attributes(users=60_000, network=RAIN, missing=0.0)
    codes = people.codes(np.arange(people.users))
    for cell in product(range(2), repeat=3):
        chosen = {name: np.array([code]) for name, code in zip(codes, cell, strict=True)}
        expected = RAIN.probability(chosen).item()
        found = np.mean(
            [all(row) for row in zip(*(codes[n] == c[0] for n, c in chosen.items()), strict=True)]
        )
        assert found == pytest.approx(expected, abs=4 * np.sqrt(0.25 / people.users))
        if expected == 0:
            assert found == 0


def test_the_joint_probability_by_hand():
    # Pr(rain, sprinkler off, wet) = 0.2 * 0.99 * 0.8
    person = {"rain": np.array([1]), "sprinkler": np.array([0]), "grass": np.array([1])}
    assert RAIN.probability(person).item() == pytest.approx(0.1584)


def test_joint_probabilities_add_up_to_one():
    cells = np.array(list(product(range(2), repeat=3))).T
    codes = dict(zip(("rain", "sprinkler", "grass"), cells, strict=True))
    assert RAIN.probability(codes).sum() == pytest.approx(1)


def test_tables_are_distributions_and_can_be_read_as_frames():
    for node in PEOPLE.truth.nodes:
        assert np.allclose(node.table.sum(axis=1), 1)
        assert (node.table >= 0).all()
    frame = PEOPLE.truth.conditional("politics")
    totals = frame.group_by("religion", "age").agg(pl.col("probability").sum())["probability"]
    assert np.allclose(totals, 1)


def test_parents_matter():
    full = pl.concat(replace(PEOPLE, missing=0.0, users=20_000).wide())
    cells = full.group_by("age", "income").len().pivot("income", index="age", values="len").drop("age")
    shares = cells.fill_null(0).to_numpy() / cells.fill_null(0).sum_horizontal().to_numpy()[:, None]
    assert shares.std(axis=0).max() > 0.08


def test_values_are_missing_as_often_as_asked():
    people = replace(PEOPLE, users=5_000, missing={"religion": 0.3})
    wide = pl.concat(people.wide())
    assert wide["religion"].is_null().mean() == pytest.approx(0.3, abs=0.03)
    assert wide["age"].null_count() == 0


def test_the_cast_has_the_values_it_is_given_and_hides_none():
    people = replace(PEOPLE, cast=(("sam", {"pet": "dog"}),), missing=0.5)
    sam = dict(people.to_frame().filter(user="sam").select("attribute", "value").iter_rows())
    assert sam["pet"] == "dog"
    assert len(sam) == 20


def test_shares_that_are_none_are_refused():
    with pytest.raises(InputError, match="synthetic missing: expected"):
        synthetic.attributes(missing=1.2)
