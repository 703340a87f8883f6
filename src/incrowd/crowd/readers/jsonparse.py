"""JSON lines to columns of text, many at a time.

:mod:`~incrowd.crowd.readers.jsonslow` says what a line means. Here a block of lines goes to Polars, and every
line on which the two could differ goes back to the reference: Polars turns lists and booleans into text, half
surrogate pairs into NUL, and keeps the first of two equal keys. A block with a faulty line is parted until
the fault is in a small one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.crowd.readers.jsonslow import parse_slowly, read_ndjson, text_frame
from incrowd.crowd.readers.lines import Lines
from incrowd.crowd.readers.shape import ROW, Parsed

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
    columns = [pl.col(name) for name in frame.columns]
    first = pl.any_horizontal(_begins_doubtfully(text) for text in columns)
    some = frame.with_row_index(ROW).filter(first)
    doubts = pl.any_horizontal(_may_be_coerced(text) for text in columns)
    return set(some.filter(doubts)[ROW].to_list())


def _begins_doubtfully(text: pl.Expr) -> pl.Expr:
    """Mark the few values worth a closer look, at little cost for the many."""
    beginnings = reduce(or_, (text.str.starts_with(start) for start in ("[", "{", "true", "false")))
    return beginnings | text.str.contains("\x00", literal=True)


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


def _merged(parts: list[Parsed], names: Sequence[str]) -> Parsed:
    if len(parts) == 1:
        return parts[0]
    frames = [part.rows for part in parts] or [text_frame([], {name: [] for name in names}, names)]
    rejects = [reject for part in parts for reject in part.rejects]
    return Parsed(pl.concat(frames), rejects, sum(part.replaced for part in parts))
