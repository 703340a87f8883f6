"""Excel workbooks (.xlsx): the first sheet with any columns, by mapping or by common names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any
from xml.parsers import expat

from incrowd.crowd.readers.archive import Zip, find
from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions, layout_of
from incrowd.crowd.readers.rows import RowBatch, batch_of
from incrowd.crowd.readers.source import Bytes
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError, UnreadableSource

WORKBOOK, STRINGS = "xl/workbook.xml", "xl/sharedStrings.xml"
SHEET = re.compile(r"xl/worksheets/sheet(\d+)\.xml$")
MOST_STRINGS_BYTES, MOST_COLUMNS, MOST_CELL = 2**28, 1_000, 2**20
EXCEL_EPOCH_DAYS, DAY = 25_569, 86_400
"""Excel counts days from the last days of 1899; 1970 began on this one."""


class Excel:
    """A sheet whose first row names the columns."""

    name = "excel"
    about = About("Excel workbook")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether the archive is a workbook."""
        return find(look.names, WORKBOOK) is not None

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the first sheet's rows in order; a row's number is the sheet's own."""
        with Zip(path, options) as archive:
            sheets = sorted((int(found[1]), name) for name in archive.names if (found := SHEET.search(name)))
            if not sheets:
                raise UnreadableSource(f"{path}: the workbook has no sheet.")
            strings = _strings(archive, path)
            with archive.open(sheets[0][1]) as member:
                rows = _rows(member, strings, path)
                header = next(rows, (0, []))[1]
                names = [name or "" for name in header]
                if len(set(names)) < len(names) or not names:
                    raise SchemaError(
                        f"{path}: the first row of the first sheet must name every column, each once."
                    )
                layout = layout_of(names, options, str(path))
                yield from _batches(rows, names, layout, options)


def _batches(
    rows: Iterator[tuple[int, list[str | None]]], names: list[str], layout: Layout, options: ReadOptions
) -> Iterator[Batch]:
    wanted = [names.index(name) for name in layout.sources]
    times = {names.index(name) for name in layout.columns.get("time", ())}
    collector = RowBatch(
        Layout(kind=layout.kind, columns={name: (name,) for name in layout.sources}), options.batch_bytes
    )
    first = list(islice(rows, 1))
    for number, cells in chain(first, rows):
        cells = [*cells, *[None] * (len(names) - len(cells))]
        if len(cells) > len(names):
            collector.reject(number, Reason.RAGGED_ROW)
            continue
        collector.add(number, [_date(cells[place]) if place in times else cells[place] for place in wanted])
        if collector.full:
            yield batch_of(collector.take(), layout, options)
    yield batch_of(collector.take(), layout, options)


def _date(cell: str | None) -> str | None:
    """Turn Excel's number of a day into UTC seconds; other cells stay as they are."""
    try:
        days = float(cell or "")
    except ValueError:
        return cell
    return str(round((days - EXCEL_EPOCH_DAYS) * DAY)) if 10_000 < days < 80_000 else cell


class _Parser:
    """Walks through a part of a workbook; entities, which no workbook has, are refused."""

    def __init__(self, member: Bytes, path: Path) -> None:
        self._member, self._path = member, path
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.EntityDeclHandler = self._refuse

    def _refuse(self, *_: object) -> None:
        raise ValueError("declares entities")

    def pieces(self) -> Iterator[None]:
        try:
            while piece := self._member.read(2**16):
                self.parser.Parse(piece, False)
                yield
            self.parser.Parse(b"", True)
            yield
        except (expat.ExpatError, ValueError, OverflowError, MemoryError) as error:
            raise UnreadableSource(
                f"{self._path}: the workbook is damaged. Save it again, or as CSV."
            ) from error


def _strings(archive: Zip, path: Path) -> list[str]:
    name = find(archive.names, STRINGS)
    found: list[str] = []
    if name is None:
        return found
    with archive.open(name) as member:
        walk = _Parser(member, path)
        inside = [False]
        held = [0]

        def start(tag: str, _: object) -> None:
            if tag.endswith(" si"):
                found.append("")
            inside[0] = tag.endswith(" t")

        def data(text: str) -> None:
            if inside[0] and found and len(found[-1]) < MOST_CELL:
                held[0] += len(text)
                if held[0] > MOST_STRINGS_BYTES:
                    raise ValueError("too many texts")
                found[-1] += text

        def end(tag: str) -> None:
            inside[0] = False

        walk.parser.StartElementHandler, walk.parser.EndElementHandler = start, end
        walk.parser.CharacterDataHandler = data
        for _ in walk.pieces():
            pass
    return found


def _rows(member: Bytes, strings: list[str], path: Path) -> Iterator[tuple[int, list[str | None]]]:
    walk = _Parser(member, path)
    done: list[tuple[int, list[str | None]]] = []
    state: dict[str, Any] = {"row": 0, "column": 0, "type": "", "in": False}
    cells: list[str | None] = []
    text: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(" ")[2]
        if tag == "row":
            state["row"] = int(attributes.get("r", state["row"] + 1))
            cells.clear()
        elif tag == "c":
            letters = re.match(r"[A-Z]+", attributes.get("r", ""))
            state["column"] = _column(letters[0]) if letters else len(cells)
            state["type"] = attributes.get("t", "")
            text.clear()
        state["in"] = tag in ("v", "t")

    def data(part: str) -> None:
        if state["in"] and sum(map(len, text)) < MOST_CELL:
            text.append(part)

    def end(tag: str) -> None:
        tag = tag.rpartition(" ")[2]
        state["in"] = False
        if tag == "c":
            column = state["column"]
            if column >= MOST_COLUMNS:
                raise ValueError("too many columns")
            cells.extend([None] * (column + 1 - len(cells)))
            value = "".join(text)
            if state["type"] == "s" and value:
                number = int(value)
                value = strings[number] if 0 <= number < len(strings) else ""
            cells[column] = value or None
        elif tag == "row" and any(cell is not None for cell in cells):
            done.append((state["row"], list(cells)))

    walk.parser.StartElementHandler, walk.parser.EndElementHandler = start, end
    walk.parser.CharacterDataHandler = data
    for _ in walk.pieces():
        yield from done
        done.clear()


def _column(letters: str) -> int:
    number = 0
    for letter in letters[:4]:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1
