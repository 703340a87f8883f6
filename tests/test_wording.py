"""Numbers in words: a percentage never says more, or another level, than the number does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.measures.findings import AT_RISK_ABOVE, WATCH_ABOVE, level_of
from incrowd.wording import LINES, ON_LINE, say_amount, say_many, say_percent


@given(st.floats(0, 1))
def test_what_is_written_as_a_line_lies_on_it(share: float) -> None:
    said = say_percent(share)
    for line in LINES:
        assert (said == f"{100 * line:.0f}%") == (abs(share - line) <= ON_LINE)


@given(st.floats(0, 1))
def test_a_percentage_that_can_be_read_as_a_number_has_the_level_of_the_number(share: float) -> None:
    said = say_percent(share).removesuffix("%")
    for words, off in (
        ("just above ", 1e-6),
        ("just under ", -1e-6),
        ("more than ", 0.0),
        ("less than ", 0.0),
    ):
        if said.startswith(words):
            assert level_of(float(said.removeprefix(words)) / 100 + off) is level_of(share)
            return
    assert level_of(float(said) / 100) is level_of(share)


def test_lines_are_those_of_the_levels() -> None:
    assert LINES == (WATCH_ABOVE, AT_RISK_ABOVE)


@pytest.mark.parametrize(
    ("number", "said"),
    [(1.5, "1.5"), (3_300_000, "3,300,000"), (10_000_000, "10 million"), (2.2e9, "2.2 billion")],
)
def test_a_number_of_people_that_nobody_counts_is_in_words(number: float, said: str) -> None:
    assert say_many(number) == said
    assert say_amount(number, "people") == f"{said} people"
