"""JSON lines to columns of text: a fast path for sound lines, a readable one for the rest.

:func:`parse_slowly` is the reference: what it says of a line is what a line means.

- A line that is no JSON, holds NaN or Infinity, or names a wanted field twice is ``bad_json``; JSON that is
  no object is ``not_an_object``; a wanted field that is a boolean, list or object is ``wrong_type``.
- Numbers become their shortest decimal text. An absent field and null are the same.
- Invalid UTF-8, NUL and half surrogate pairs become U+FFFD, and the row counts as replaced.

The fast path hands a block of lines to Polars and sends back to the reference every line on which the two
could differ: Polars turns lists and booleans into text, half pairs into NUL, and keeps the first of two equal
keys.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.crowd.readers.shape import ROW, Parsed
from incrowd.crowd.readers.unicode import decoded, storable
from incrowd.crowd.schema import Reason

Rows = npt.NDArray[np.uint64]

SMALL = 256
NO_NUMBER = "?"
"""What a list, object or boolean becomes where a number is read later: something that is none."""
FAN_OUT = 16
_PLAIN_NAME = re.compile(r"[ !#-\[\]-~]+")
_DELETED = ["[deleted]", "[removed]"]


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


def parse_json_lines(
    data: bytes, first_row: int, names: Sequence[str], numbers: Iterable[str] = ()
) -> Parsed:
    """Read the fields `names` of every line; blank lines are no rows, but count.

    `numbers` are the fields read as numbers later: whatever they hold is passed on as text.
    """
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    rows = np.arange(first_row, first_row + lines, dtype=np.uint64)
    strict = [name for name in names if name not in set(numbers)]
    parts: list[Parsed] = []
    fast = all(_PLAIN_NAME.fullmatch(name) for name in names)
    _parse(data, rows, names, strict, parts, fast=fast)
    return _merged(parts, names)


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
    return Parsed(_frame([row for row, _ in kept], columns, names), rejects, replaced)


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
    frame = _polars(line, names)
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


def _parse(
    data: bytes,
    rows: Rows,
    names: Sequence[str],
    strict: Sequence[str],
    parts: list[Parsed],
    *,
    fast: bool,
) -> None:
    frame = _polars(data, names) if fast and len(rows) else None
    if frame is not None and frame.height == len(rows):
        parts.append(_checked(frame, data, rows, names, strict))
        return
    lines = data.split(b"\n")[: len(rows)]
    if frame is not None:
        full = [i for i, line in enumerate(lines) if line.strip()]
        if frame.height == len(full):
            parts.append(_checked(frame, b"\n".join(lines[i] for i in full), rows[full], names, strict))
            return
    if len(rows) <= SMALL or not fast:
        parts.append(parse_slowly(lines, rows.tolist(), names, strict))
        return
    step = max(SMALL, -(-len(rows) // FAN_OUT))
    for start in range(0, len(rows), step):
        block = b"\n".join(lines[start : start + step])
        _parse(block, rows[start : start + step], names, strict, parts, fast=fast)


def _polars(data: bytes, names: Sequence[str]) -> pl.DataFrame | None:
    try:
        return pl.read_ndjson(io.BytesIO(data), schema=dict.fromkeys(names, pl.String()))
    except pl.exceptions.PolarsError:
        return None


def _checked(
    frame: pl.DataFrame, data: bytes, rows: Rows, names: Sequence[str], strict: Sequence[str]
) -> Parsed:
    """Send the lines on which Polars may differ from the reference back to it."""
    doubtful = _doubtful_values(frame) | _doubtful_keys(frame, data, names)
    frame = frame.select(pl.Series(ROW, rows), *names)
    if not doubtful:
        return Parsed(frame)
    chosen = sorted(doubtful)
    lines = data.split(b"\n")
    again = parse_slowly([lines[i] for i in chosen], rows[chosen].tolist(), names, strict)
    keep = np.ones(len(rows), dtype=bool)
    keep[chosen] = False
    merged = pl.concat([frame.filter(pl.Series(keep)), again.rows]).sort(ROW)
    return Parsed(merged, again.rejects, again.replaced)


def _doubtful_values(frame: pl.DataFrame) -> set[int]:
    """Find rows with text that Polars may have made from a list, an object, a boolean or half a pair."""
    doubts = pl.any_horizontal(_may_be_coerced(pl.col(name)) for name in frame.columns)
    return set(frame.select(doubts.fill_null(False).arg_true()).to_series().to_list())


def _may_be_coerced(text: pl.Expr) -> pl.Expr:
    bracketed = (text.str.starts_with("[") & text.str.ends_with("]") & ~text.is_in(_DELETED)) | (
        text.str.starts_with("{") & text.str.ends_with("}")
    )
    return bracketed | text.is_in(["true", "false"]) | text.str.contains("\x00", literal=True)


def _doubtful_keys(frame: pl.DataFrame, data: bytes, names: Sequence[str]) -> set[int]:
    """Find rows that may hold a wanted key twice, or spell one with escapes.

    One pass over the whole block counts keys: as many as there are values means that no row has two.
    """
    block = pl.Series([data], dtype=pl.Binary).cast(pl.String)
    keys = {name: rf'"{re.escape(name)}"[ \t\r]*:' for name in names}
    escapes = rf"\\u00(?:{'|'.join(_letter_codes(names))})"
    values = sum(frame.height - frame[name].null_count() for name in names)
    if block.str.count_matches("|".join([*keys.values(), escapes])).item() == values:
        return set()
    lines = block.str.split("\n").explode()
    doubts = [lines.str.count_matches(key) > 1 for key in keys.values()] + [lines.str.contains(escapes)]
    return set(reduce(or_, doubts).arg_true().to_list())


def _letter_codes(names: Sequence[str]) -> list[str]:
    codes = {f"{ord(letter):02x}" for name in names for letter in name}
    return sorted(codes | {code.upper() for code in codes})


def _frame(rows: Sequence[int], columns: dict[str, list[str | None]], names: Sequence[str]) -> pl.DataFrame:
    schema = {ROW: pl.UInt64(), **dict.fromkeys(names, pl.String())}
    return pl.DataFrame({ROW: rows, **columns}, schema=schema)


def _merged(parts: list[Parsed], names: Sequence[str]) -> Parsed:
    if len(parts) == 1:
        return parts[0]
    frames = [part.rows for part in parts] or [_frame([], {name: [] for name in names}, names)]
    rejects = [reject for part in parts for reject in part.rejects]
    return Parsed(pl.concat(frames), rejects, sum(part.replaced for part in parts))
