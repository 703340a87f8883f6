"""Large JSON documents in small pieces."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.readers.jsonstream import JsonStream
from incrowd.errors import UnreadableSource

from .test_source import Pieces

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def stream(data: bytes, size: int = 3, **options: object) -> JsonStream:
    return JsonStream(Pieces(data, size), "here", ReadOptions(**options))  # type: ignore[arg-type]


@settings(max_examples=80, deadline=None)
@given(st.lists(values, max_size=5), st.integers(1, 7), st.sampled_from([None, 1]), st.booleans())
def test_a_list_gives_its_values(items: list[object], size: int, indent: int | None, escaped: bool) -> None:
    data = json.dumps(items, indent=indent, ensure_ascii=escaped).encode()
    assert list(stream(data, size).items()) == items


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(texts, values, max_size=5), st.integers(1, 7))
def test_an_object_gives_its_pairs(pairs: dict[str, object], size: int) -> None:
    document = stream(json.dumps(pairs).encode(), size)
    assert {key: document.value() for key in document.members()} == pairs


def test_numbers_stay_text() -> None:
    digits = "9" * 5000
    assert list(stream(f"[1, 2.50, {digits}]".encode()).items()) == ["1", "2.50", digits]


@pytest.mark.parametrize(
    "data", [b"", b"[", b"[1", b"[1,", b"[1 2]", b"[1,]", b'["x', b"[NaN]", b"{}", b"[nul]", b"[" * 5000]
)
def test_what_is_no_list_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableSource, match="at character"):
        list(stream(data).items())


@pytest.mark.parametrize("data", [b'{"a": 1', b'{"a"}', b"{1: 2}", b'{"a": 1 "b": 2}', b"[]"])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    document = stream(data)
    with pytest.raises(UnreadableSource, match="at character"):
        list((key, document.value()) for key in document.members())  # noqa: C400 - each value is read in turn


def test_what_is_complete_can_be_kept() -> None:
    document = stream(b'["a", "b", {"c": ', keep_complete=True)
    assert list(document.items()) == ["a", "b"]
    assert document.incomplete


def test_a_value_over_the_cap_is_refused() -> None:
    with pytest.raises(UnreadableSource, match="longer than 100 characters"):
        list(stream(b'["' + b"x" * 10_000 + b'"]', 50, max_line_bytes=100).items())


def test_what_comes_before_the_document_is_passed_over() -> None:
    document = stream(b"window.YTD.tweets.part0 = [1]")
    document.skip_to("[")
    assert list(document.items()) == ["1"]
