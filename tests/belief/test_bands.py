"""Numbers in bands: stated, exact, and the same whether a table or a publication is coarser."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InputError
from incrowd.measures.belief.crowd_belief import CrowdBelief
from incrowd.measures.belief.policy import Band, Publication, read_policy
from incrowd.profiles.attributes import (
    HIDDEN,
    AttributeTable,
    BandEdges,
    EqualBands,
    Width,
    band_name,
    banded,
    from_long,
    number,
    parse_bands,
)

AGES = BandEdges((Fraction(18), Fraction(25), Fraction(35)))


def people(*ages: str | None) -> AttributeTable:
    rows = [(f"u{n:03}", "age", age) for n, age in enumerate(ages) if age is not None]
    rows += [(f"u{n:03}", "sport", "ball" if n % 2 else "swim") for n in range(len(ages))]
    return from_long(pl.DataFrame(rows, schema=["user", "attribute", "value"], orient="row"))


@pytest.mark.parametrize(
    ("value", "band"),
    [
        ("17.9", "under 18"),
        ("18", "18 to under 25"),
        ("24.99999999999999999999999", "18 to under 25"),
        ("25.0", "25 to under 35"),
        ("2.5e1", "25 to under 35"),
        ("35", "35 or more"),
        ("unknown", "unknown"),
        ("1_8", "1_8"),
        ("nan", "nan"),
    ],
)
def test_a_band_holds_its_lower_edge_and_not_its_upper(value: str, band: str) -> None:
    assert band_name(AGES, value) == band


def test_widths_count_from_zero_downwards_too() -> None:
    tens = Width(Fraction(10))
    assert [band_name(tens, v) for v in ("-0.5", "0", "9.99", "10")] == [
        "-10 to under 0",
        "0 to under 10",
        "0 to under 10",
        "10 to under 20",
    ]
    assert band_name(Width(Fraction(1, 10)), "0.3") == "0.3 to under 0.4"  # as floats, 0.3 / 0.1 < 3


def test_a_table_in_bands_by_hand() -> None:
    table = banded(people("17", "24", "18", "?", None, "40"), {"age": AGES})
    place = table.space.place("age")
    assert table.space.values[place] == ("under 18", "18 to under 25", "35 or more", "?")
    assert table.codes[:, place].tolist() == [0, 1, 1, 3, HIDDEN, 2]


@given(
    st.lists(st.one_of(st.integers(-50, 120).map(str), st.just("?")), min_size=1, max_size=40),
    st.integers(1, 30),
)
@settings(max_examples=40, deadline=None)
def test_everybody_keeps_their_number_within_their_band(ages: list[str], width: int) -> None:
    table = banded(people(*ages), {"age": Width(Fraction(width))})
    place = table.space.place("age")
    for age, code in zip(ages, table.codes[:, place], strict=True):
        name = str(table.space.values[place][code])
        if age == "?":
            assert name == "?"
        else:
            low, high = name.split(" to under ")
            assert int(low) <= int(age) < int(high)


@given(st.lists(st.integers(0, 30), min_size=2, max_size=60), st.integers(2, 6))
@settings(max_examples=40, deadline=None)
def test_groups_hold_about_as_many_people_each(ages: list[int], count: int) -> None:
    if len(set(ages)) == 1:
        with pytest.raises(InputError, match="same number"):
            banded(people(*map(str, ages)), {"age": EqualBands(count)})
        return
    table = banded(people(*map(str, ages)), {"age": EqualBands(count)})
    place = table.space.place("age")
    sizes = np.bincount(table.codes[:, place])
    assert 2 <= len(sizes) <= count
    most = max(np.bincount(ages))
    assert (sizes < len(ages) / count + most).all()


def test_bands_are_read_from_text() -> None:
    assert parse_bands(["age=18, 25,35", "pay=groups:4", "height=width:2.5"]) == {
        "age": AGES,
        "pay": EqualBands(4),
        "height": Width(Fraction(5, 2)),
    }


@pytest.mark.parametrize(
    "text", ["age", "=18", "age=18,x", "age=25,18", "age=width:0", "age=groups:1", "age=mean:3"]
)
def test_wrong_bands_are_explained(text: str) -> None:
    with pytest.raises(InputError, match="bands"):
        parse_bands([text])


def test_no_numbers_no_groups() -> None:
    with pytest.raises(InputError, match="no value of 'sport' is a number"):
        banded(people("3", "4"), {"sport": EqualBands(2)})


def test_showing_a_band_is_believing_in_its_numbers() -> None:
    """Showing a band of exact numbers tells as much about the rest as the band itself in a banded table."""
    table = people(*[str(18 + n % 23) for n in range(46)])
    shown = Publication(ways={"age": Band(AGES)})
    place = table.space.place("sport")
    seen = shown.show({"age": "20", "sport": "ball"}, table.space)
    assert seen == {"age": "18 to under 25", "sport": "ball"}
    exact = CrowdBelief.learn(table, 0.0).posteriors(
        [place], shown.observe({"age": seen["age"]}, table.space)
    )
    coarse = banded(table, {"age": AGES})
    plain = Publication().observe({"age": seen["age"]}, coarse.space)
    np.testing.assert_allclose(exact[0], CrowdBelief.learn(coarse, 0.0).posteriors([place], plain)[0])


def test_a_policy_may_publish_bands() -> None:
    content = {
        "require": [{"attribute": "sport", "sigma": 0.5}],
        "publish": {"generalise": {"age": [18, 25, 35]}},
    }
    assert read_policy(content, {}).publication.ways["age"] == Band(AGES)
    content["publish"] = {"generalise": {"age": {"width": 10}}}
    assert read_policy(content, {}).publication.ways["age"] == Band(Width(Fraction(10)))
    content["publish"] = {"generalise": {"age": "groups:4"}}
    with pytest.raises(InputError, match="by edges, a width or groups of values"):
        read_policy(content, {})


def test_numbers_are_exact_or_none() -> None:
    assert number(" 1.50 ") == Fraction(3, 2)
    assert number("1/2") is None
    assert number("9" * 41) is None
