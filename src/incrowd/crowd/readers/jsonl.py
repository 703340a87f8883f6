"""JSON lines with any keys. What a line means is told by the readable reading, which the fast one must agree with.

- A line that is no JSON, holds NaN or Infinity, or names a wanted field twice is ``bad_json``; JSON that is
  no object is ``not_an_object``; a wanted field that is a boolean, list or object is ``wrong_type``.
- Numbers become their shortest decimal text. An absent field and null are the same.
- Invalid UTF-8, NUL and half surrogate pairs become U+FFFD, and the row counts as replaced.

A block of lines goes to Polars, and every line on which it could differ goes back to the readable reading: Polars
turns lists and booleans into text, half surrogate pairs into NUL, and keeps the first of two equal keys. A block
with a faulty line is parted until the fault is in a small one.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from operator import or_
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.crowd.readers.base import About, Batch, Look, ReadOptions, guess, layout_of
from incrowd.crowd.readers.rows import ROW, Parsed, batch_of
from incrowd.crowd.readers.source import Lines, decoded, first_lines, read_lines, storable
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError

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


Rows = npt.NDArray[np.uint64]

SMALL = 256
FAN_OUT = 16
_PLAIN_NAME = re.compile(r"[ !#-\[\]-~]+")
_DELETED = ["[deleted]", "[removed]"]


def parse_json_lines(lines: Lines, names: Sequence[str], numbers: Iterable[str] = ()) -> Parsed:
    """Read the fields `names` of every line; blank lines are no rows, but count.

    `numbers` are the fields read as numbers later: whatever they hold is passed on as text.
    """
    rows = np.arange(lines.first_row, lines.first_row + lines.count, dtype=np.uint64)
    strict = [name for name in names if name not in set(numbers)]
    parts: list[Parsed] = []
    fast = all(_PLAIN_NAME.fullmatch(name) for name in names)
    _parse(lines.data, rows, names, strict, parts, fast=fast)
    return _merged(parts, names)


def _parse(
    data: bytes,
    rows: Rows,
    names: Sequence[str],
    strict: Sequence[str],
    parts: list[Parsed],
    *,
    fast: bool,
) -> None:
    frame = read_ndjson(data, names) if fast and len(rows) else None
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


def _checked(
    frame: pl.DataFrame, data: bytes, rows: Rows, names: Sequence[str], strict: Sequence[str]
) -> Parsed:
    """Send the lines on which Polars may differ from the reference back to it."""
    doubtful = _doubtful_values(frame) | _doubtful_keys(frame, data, names)
    frame = frame.select(pl.Series(ROW, rows), *names)
    if not doubtful:
        return Parsed(frame)
    chosen = sorted(doubtful)
    again = parse_slowly(_lines(data, chosen), rows[chosen].tolist(), names, strict)
    keep = np.ones(len(rows), dtype=bool)
    keep[chosen] = False
    merged = pl.concat([frame.filter(pl.Series(keep)), again.rows]).sort(ROW)
    return Parsed(merged, again.rejects, again.replaced)


def _lines(data: bytes, chosen: Sequence[int]) -> list[bytes]:
    """Return a few of many lines without making objects of the rest."""
    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == ord("\n"))
    starts = np.concatenate([[0], ends + 1])
    ends = np.append(ends, len(data))
    return [data[starts[i] : ends[i]] for i in chosen]


def _doubtful_values(frame: pl.DataFrame) -> set[int]:
    """Find rows with text that Polars may have made from a list, an object, a boolean or half a pair."""
    filled = [name for name in frame.columns if frame[name].null_count() < frame.height]
    marks = [mark.alias(f"{n}") for n, mark in enumerate(m for name in filled for m in _worth_a_look(name))]
    some = frame.select(mark.any() for mark in marks).row(0) if marks else ()
    marks = [mark for mark, found in zip(marks, some, strict=True) if found]
    if not marks:
        return set()
    rows = frame.select(reduce(or_, (mark.fill_null(value=False) for mark in marks))).to_series().arg_true()
    doubts = frame[rows].select(pl.any_horizontal(_may_be_coerced(pl.col(name)) for name in filled))
    return set(rows.filter(doubts.to_series().fill_null(value=False)).to_list())


def _worth_a_look(name: str) -> Iterator[pl.Expr]:
    """Mark the few values worth a closer look, at little cost for the many."""
    text = pl.col(name)
    for start in ("[", "{", "true", "false"):
        yield text.str.starts_with(start)
    yield text.str.contains("\x00", literal=True)


def _may_be_coerced(text: pl.Expr) -> pl.Expr:
    bracketed = (text.str.starts_with("[") & text.str.ends_with("]") & ~text.is_in(_DELETED)) | (
        text.str.starts_with("{") & text.str.ends_with("}")
    )
    return bracketed | text.is_in(["true", "false"]) | text.str.contains("\x00", literal=True)


def _doubtful_keys(frame: pl.DataFrame, data: bytes, names: Sequence[str]) -> set[int]:
    """Find rows that may hold a wanted key twice, or spell one with escapes.

    One pass over the whole block counts keys: as many as there are values means that no row has two.
    """
    keys = {name: rf'"{re.escape(name)}"[ \t\r]*:' for name in names}
    escapes = rf"\\u00(?:{'|'.join(_letter_codes(names))})"
    values = sum(frame.height - frame[name].null_count() for name in names)
    if _pieces(data).str.count_matches("|".join([*keys.values(), escapes])).sum() == values:
        return set()
    lines = pl.Series([data], dtype=pl.Binary).cast(pl.String).str.split("\n").explode()
    doubts = [lines.str.count_matches(key) > 1 for key in keys.values()] + [lines.str.contains(escapes)]
    return set(reduce(or_, doubts).arg_true().to_list())


PIECE_BYTES = 2**18
"""What is looked through at a time; in a longer text Polars would take time for fresh memory."""


def _pieces(data: bytes) -> pl.Series:
    """Return lines as long strings."""
    ends = [0]
    while 0 < (end := data.find(b"\n", ends[-1] + PIECE_BYTES)) < len(data) - 1:
        ends.append(end + 1)
    pieces = [data[start:end] for start, end in pairwise([*ends, len(data)])]
    return pl.Series(pieces, dtype=pl.Binary).cast(pl.String)


def _letter_codes(names: Sequence[str]) -> list[str]:
    codes = {f"{ord(letter):02x}" for name in names for letter in name}
    return sorted(codes | {code.upper() for code in codes})


def _merged(parts: list[Parsed], names: Sequence[str]) -> Parsed:
    if len(parts) == 1:
        return parts[0]
    frames = [part.rows for part in parts] or [text_frame([], {name: [] for name in names}, names)]
    rejects = [reject for part in parts for reject in part.rejects]
    return Parsed(pl.concat(frames), rejects, sum(part.replaced for part in parts))


SAMPLED_LINES = 200


class JsonLines:
    """One JSON object a line."""

    name = "jsonl"
    about = About("JSON lines", whose="many")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether lines are JSON objects of which a known key holds a plain value."""
        records = sample_records(look.head)
        plain = [
            key for record in records for key, value in record.items() if not isinstance(value, (list, dict))
        ]
        return bool(guess(plain)) or (len(records) > 1 and bool(plain))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        keys = sample_keys(first_lines(path))
        if not keys:
            raise SchemaError(
                f"{path}: none of the first lines is a JSON object. Expected one object per line."
            )
        layout = layout_of(keys, options, str(path))
        for lines in read_lines(path, options):
            parsed = parse_json_lines(lines, layout.sources, layout.numbers)
            yield batch_of(parsed, layout, options, lines)


def sample_keys(data: bytes) -> list[str]:
    """Return the keys of the objects in the first lines, in order of appearance, if a table can have them."""
    keys = dict.fromkeys(key for record in sample_records(data) for key in record)
    return [key for key in keys if storable(key) == key]


def sample_records(data: bytes) -> list[dict[str, object]]:
    """Return the objects in the first lines."""
    records = []
    for line in data.split(b"\n", SAMPLED_LINES)[:SAMPLED_LINES]:
        try:
            record = json.loads(line) if line.lstrip().startswith(b"{") else None
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records
