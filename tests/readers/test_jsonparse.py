"""JSON lines: the fast path says exactly what the readable one says, line by line."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incrowd.crowd.readers import jsonl
from incrowd.crowd.readers.jsonl import SMALL, parse_json_lines, parse_slowly
from incrowd.crowd.readers.rows import ROW, Parsed
from incrowd.crowd.readers.source import Lines

NAMES = ("author", "t", "text")
STRICT = ("author", "text")

halves = st.sampled_from(
    ["\\ud800", "\\udc00", "\\ud83d\\ude00", "\\u0000", "\\u0061", "\\u2028", "\\n", "\\ud83d"]
)
raw_strings = st.lists(
    halves
    | st.sampled_from(["x", "é", "[", "]", "{", "}", "true", "0", '\\"text\\"', ":", "\\\\", "\x7f", "\t"]),
    max_size=4,
).map(lambda parts: '"' + "".join(parts) + '"')
NUMBERS = "0 -0 7 -1.5 1e3 1E-7 1.0 -0.0 1e22 1e400 01 1. NaN Infinity -Infinity 1500000000.25"
raw_numbers = st.sampled_from(NUMBERS.split()) | st.sampled_from(
    ["9" * digits for digits in (18, 20, 38, 39, 50)]
)
raw_values = st.recursive(
    raw_strings | raw_numbers | st.sampled_from(["null", "true", "false", "[]", "{}", "nul", ""]),
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda values: "[" + ",".join(values) + "]")
        | st.lists(inner, max_size=2).map(lambda values: "{" + ",".join(f'"text":{v}' for v in values) + "}")
    ),
    max_leaves=3,
)
raw_keys = st.sampled_from(
    ['"author"', '"t"', '"text"', '"other"', '"a\\u0075thor"', '"TEXT"', '"\\u0074"', "text"]
)
raw_pairs = st.tuples(raw_keys, st.sampled_from([":", " : ", "\t:"]), raw_values).map("".join)
raw_objects = st.lists(raw_pairs, max_size=4).map(lambda pairs: "{" + ",".join(pairs) + "}")
raw_lines = (
    raw_objects.map(str.encode)
    | raw_values.map(str.encode)
    | st.sampled_from(
        [b"", b"  ", b"\r", b"{} {}", b'{"text":"a"}\r', b'\xef\xbb\xbf{"text":"a"}', b"{", b'{"text":']
    )
    | st.sampled_from(
        [b'{"text":"a\xffb"}', b'{"o":"\xff","text":"a"}', b'{"text":"a\x00b"}', b'\x0b{"text":"a"}']
    )
)


def plain(parsed: Parsed) -> tuple[object, ...]:
    return parsed.rows.rows(), sorted(parsed.rejects), parsed.replaced


def slowly(lines: list[bytes]) -> tuple[object, ...]:
    return plain(parse_slowly(lines, list(range(1, len(lines) + 1)), NAMES, STRICT))


@given(st.lists(raw_lines, min_size=1, max_size=5))
@settings(max_examples=150, deadline=None)
@example([b'{"t": 1}'])
@example([b'{"author":"a"}', b'{"author":"a","author":"b"}', b"{}"])
def test_the_fast_path_agrees_with_the_reference(lines: list[bytes]) -> None:
    assert plain(parse_json_lines(Lines.of(b"\n".join(lines) + b"\n"), NAMES, ["t"])) == slowly(lines)


@given(raw_lines)
@settings(max_examples=50, deadline=None)
def test_a_line_means_the_same_among_many(line: bytes) -> None:
    """Alone in a large block, a line takes another way through the code."""
    sound = b'{"author":"a","t":1,"text":"x"}'
    lines = [sound] * 3 + [line] + [sound] * SMALL
    assert plain(parse_json_lines(Lines.of(b"\n".join(lines) + b"\n"), NAMES, ["t"])) == slowly(lines)


@given(
    st.lists(st.fixed_dictionaries({name: st.text() | st.none() for name in STRICT}), min_size=1, max_size=5)
)
@settings(max_examples=50, deadline=None)
def test_sound_records_come_back(records: list[dict[str, str | None]]) -> None:
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    parsed = parse_json_lines(Lines.of(data), STRICT)
    expected = [
        {
            name: value and value.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
            for name, value in r.items()
        }
        for r in records
    ]
    lone = [any(value and not value.isprintable() for value in r.values()) for r in records]
    got = parsed.rows.drop(ROW).to_dicts()
    assert [g for g, odd in zip(got, lone, strict=True) if not odd] == [
        e for e, odd in zip(expected, lone, strict=True) if not odd
    ]
    assert not parsed.rejects


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": NaN}', "bad_json"),
        (b'{"other": Infinity}', "bad_json"),
        (b'{"text": "a", "text": "b"}', "bad_json"),
        (b'{"text": "a", "te\\u0078t": "b"}', "bad_json"),
        (b'{"text": "a"', "bad_json"),
        (b'{"text": "a"} trailing', "bad_json"),
        (b"not json", "bad_json"),
        (b'{"other": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "bad_json"),
        (b"[1, 2]", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b"7", "not_an_object"),
        (b"null", "not_an_object"),
        (b'{"text": true}', "wrong_type"),
        (b'{"text": ["a"]}', "wrong_type"),
        (b'{"author": {"name": "a"}}', "wrong_type"),
    ],
)
def test_each_fault_has_its_reason(line: bytes, reason: str) -> None:
    sound = b'{"author": "a", "text": "x"}\n'
    parsed = parse_json_lines(Lines.of(sound + line + b"\n" + sound), NAMES, ["t"])
    assert parsed.rejects == [(2, reason)]
    assert parsed.rows[ROW].to_list() == [1, 3]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            b"12345678901234567890123456789012345678901234567890",
            "12345678901234567890123456789012345678901234567890",
        ),
        (b"-0", "0"),
        (b"5.0", "5"),
        (b"1e3", "1000"),
        (b"0.1", "0.1"),
        (b"1e-7", "0.0000001"),
        (b'"true"', "true"),
        (b'"[1, 2]"', "[1, 2]"),
        (b'"{x}"', "{x}"),
        (b'"[deleted]"', "[deleted]"),
        (b'"\\ud83d\\ude00"', "😀"),
        (b"null", None),
    ],
)
def test_values_become_text(value: bytes, text: str | None) -> None:
    parsed = parse_json_lines(Lines.of(b'{"text": ' + value + b"}\n"), ["text"])
    assert parsed.rows["text"].to_list() == [text]
    assert parsed.replaced == 0


@pytest.mark.parametrize("value", [b'"a\\ud800b"', b'"a\\u0000b"', b'"a\xffb"', b'"a\x00b"', b'"a\\udc00b"'])
def test_what_cannot_be_stored_is_replaced_and_counted(value: bytes) -> None:
    parsed = parse_json_lines(Lines.of(b'{"text": "x"}\n{"text": ' + value + b"}\n"), ["text"])
    assert parsed.rows["text"].to_list() == ["x", "a\ufffdb"]
    assert parsed.replaced == 1


def test_deep_nesting_means_the_same_however_deep_the_caller_is() -> None:
    line = b'{"other": ' + b"[" * 900 + b"]" * 900 + b', "text": "x"}'

    def deeper(levels: int) -> pl.DataFrame:
        return deeper(levels - 1) if levels else parse_slowly([line], [1], ["text"], ["text"]).rows

    assert deeper(0).equals(deeper(300))
    assert deeper(0)["text"].to_list() == ["x"]


def test_blank_lines_are_no_rows_but_count() -> None:
    parsed = parse_json_lines(Lines.of(b'\n{"text": "a"}\n  \n\r\n{"text": "b"}\n', 10), ["text"])
    assert parsed.rows.rows() == [(11, "a"), (14, "b")]


def test_a_key_that_is_also_a_value_or_nested_is_no_duplicate() -> None:
    data = b'{"text": "text", "more": {"text": 1}}\n{"x": ["text"], "text": "a"}\n'
    parsed = parse_json_lines(Lines.of(data), ["text"])
    assert parsed.rows["text"].to_list() == ["text", "a"]
    assert not parsed.rejects


@pytest.mark.parametrize("size", [1, 50, 2**20])
def test_a_fault_is_found_wherever_the_lines_are_parted(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonl, "PIECE_BYTES", size)
    lines = [b'{"author": "ann", "t": 7, "text": "x"}'] * 20
    lines[3] = b'{"author": "ann", "t": 7, "text": "x", "text": "y"}'
    lines[11] = b'{"a\\u0075thor": "ann", "t": 7, "text": "x"}'
    lines[19] = b'{"author": "ann", "author": "bob", "t": 7, "text": "x"}'
    parsed = parse_json_lines(Lines.of(b"\n".join(lines) + b"\n"), NAMES, {"t"})
    assert parsed.rejects == [(4, "bad_json"), (20, "bad_json")]
    assert parsed.rows.filter(pl.col("author") == "ann").height == 18


def test_names_beyond_ascii_are_found_however_they_are_written() -> None:
    data = '{"текст": "a"}\n{"\\u0442\\u0435\\u043a\\u0441\\u0442": "b"}\n'.encode()
    assert parse_json_lines(Lines.of(data), ["текст"]).rows["текст"].to_list() == ["a", "b"]
