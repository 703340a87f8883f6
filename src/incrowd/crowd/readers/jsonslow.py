"""What one line of JSON means: the readable reading, which the fast one must agree with.

- A line that is no JSON, holds NaN or Infinity, or names a wanted field twice is ``bad_json``; JSON that is
  no object is ``not_an_object``; a wanted field that is a boolean, list or object is ``wrong_type``.
- Numbers become their shortest decimal text. An absent field and null are the same.
- Invalid UTF-8, NUL and half surrogate pairs become U+FFFD, and the row counts as replaced.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from decimal import Decimal

import polars as pl

from incrowd.crowd.readers.shape import ROW, Parsed
from incrowd.crowd.readers.unicode import decoded, storable
from incrowd.crowd.schema import Reason

NO_NUMBER = "?"
"""What a list, object or boolean becomes where a number is read later: something that is none."""


class _Pairs(list[tuple[str, object]]):
    """A JSON object before duplicate keys are merged."""


class _Integer(str):
    """An integer's digits, unread: a million of them cost nothing."""


class _Float(str):
    """A fraction's digits."""


def _refuse(constant: str) -> object:
    raise ValueError("JSON has no " + constant)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_Pairs, parse_int=_Integer, parse_float=_Float, parse_constant=_refuse
)


class _FaultError(Exception):
    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason


def parse_slowly(
    lines: Sequence[bytes], rows: Sequence[int], names: Sequence[str], strict: Sequence[str]
) -> Parsed:
    """Read lines one by one: the reference."""
    kept: list[tuple[int, list[str | None]]] = []
    rejects: list[tuple[int, Reason]] = []
    replaced = 0
    for row, line in zip(rows, lines, strict=True):
        if not line.strip():
            continue
        try:
            values, touched = _line(line, names, set(strict))
        except _FaultError as fault:
            rejects.append((int(row), fault.reason))
        else:
            kept.append((int(row), values))
            replaced += touched
    columns = {name: [values[i] for _, values in kept] for i, name in enumerate(names)}
    return Parsed(text_frame([row for row, _ in kept], columns, names), rejects, replaced)


def _line(line: bytes, names: Sequence[str], strict: set[str]) -> tuple[list[str | None], bool]:
    text, touched = decoded(line)
    found = _fields(text, line, names)
    values = [_text(found.get(name), name in strict) for name in names]
    clean = [None if value is None else storable(value) for value in values]
    return clean, touched or clean != values


def _fields(text: str, line: bytes, names: Sequence[str]) -> dict[str, object]:
    try:
        record = _DECODER.decode(text)
    except RecursionError:
        return _deep_fields(line, names)
    except ValueError:
        raise _FaultError(Reason.BAD_JSON) from None
    if not isinstance(record, _Pairs):
        raise _FaultError(Reason.NOT_AN_OBJECT)
    wanted = set(names)
    pairs = [pair for pair in record if pair[0] in wanted]
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _FaultError(Reason.BAD_JSON)
    return found


def _deep_fields(line: bytes, names: Sequence[str]) -> dict[str, object]:
    """Ask the parser without recursion: how deep Python can go depends on who called it."""
    frame = read_ndjson(line, names)
    if frame is None or frame.height != 1 or any(line.count(json.dumps(name).encode()) > 1 for name in names):
        raise _FaultError(Reason.BAD_JSON)
    values = frame.row(0, named=True)
    return {name: [] if value and value[0] in "[{" else value for name, value in values.items()}


def _text(value: object, strict: bool) -> str | None:
    if value is None:
        return None
    if isinstance(value, _Integer):
        return "0" if value == "-0" else str(value)
    if isinstance(value, _Float):
        return _shortest(float(value))
    if isinstance(value, str):
        return value
    if strict:
        raise _FaultError(Reason.WRONG_TYPE)
    return NO_NUMBER


def _shortest(number: float) -> str:
    """Return the fewest decimals that give the number back, without an exponent."""
    if not math.isfinite(number):
        return str(number)
    text = format(Decimal(repr(number)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def read_ndjson(data: bytes, names: Sequence[str]) -> pl.DataFrame | None:
    """Let Polars read lines; None if it finds a fault anywhere."""
    try:
        return pl.read_ndjson(io.BytesIO(data), schema=dict.fromkeys(names, pl.String()))
    except pl.exceptions.PolarsError:
        return None


def text_frame(
    rows: Sequence[int], columns: dict[str, list[str | None]], names: Sequence[str]
) -> pl.DataFrame:
    """Return columns of text with their row numbers."""
    schema = {ROW: pl.UInt64(), **dict.fromkeys(names, pl.String())}
    return pl.DataFrame({ROW: rows, **columns}, schema=schema)
