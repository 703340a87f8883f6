"""A person's own export: what the readers of services share, so that each of them is about forty lines.

A service's reader is an :class:`Export` of parts; a part says how to tell its files by their first bytes (``knows``),
how records lie in them (``records``) and what one of them means (``row``). Here is the rest: bare files and zip
archives, JSON, CSV, whose export it is, batches, counts, and records that are not what they should be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from incrowd.crowd.readers.archive import ZIP_MAGIC, Zip
from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions
from incrowd.crowd.readers.jsonstream import JsonStream
from incrowd.crowd.readers.rows import ITEMS, POSTS, RowBatch, Whole, batch_of
from incrowd.crowd.readers.source import Bytes, DecompressedFile, Utf8, decoded, lines_of
from incrowd.crowd.readers.table import RecordSplitter, split_records
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError, Undecided, UnreadableSource

HEAD_BYTES = 2**16
CACHED_HEADS = 4
"""Many readers ask the same of a file's beginning; they are answered once."""
SMALL_JSON = 2**25
"""A list of a workspace's people may have some megabytes."""
OWNER = "me"
"""Under this name an export is kept that does not say whose it is."""
FAULTS = (
    KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError, StopIteration,
)  # fmt: skip


class FirstLook:
    """A look at a file: its first bytes and, in a zip, the names and first bytes of the files in it.

    An archive stays open until the look is over: some hold tens of thousands of files.
    """

    def __init__(self, path: Path, head: bytes) -> None:
        self.path, self.head = path, head
        self._heads: dict[str, bytes] = {}

    def __enter__(self) -> FirstLook:
        return self

    def __exit__(self, *_: object) -> None:
        if self._archive is not None:
            self._archive.__exit__()

    @cached_property
    def _archive(self) -> Zip | None:
        return Zip(self.path, ReadOptions()) if self.head.startswith(ZIP_MAGIC) else None

    @property
    def names(self) -> list[str]:
        """The files in it, if it is a zip archive."""
        return [] if self._archive is None else self._archive.names

    def head_of(self, name: str) -> bytes:
        """Return the first bytes of one of these, as UTF-8."""
        if name not in self._heads and self._archive is not None:
            with self._archive.open(name) as member:
                self._heads[name] = _head(member)
        return self._heads[name]


def _head(file: Bytes) -> bytes:
    text = Utf8(file)
    head = b""
    while len(head) < HEAD_BYTES and (piece := text.read(HEAD_BYTES)):
        head += piece
    return head


@dataclass(frozen=True)
class File:
    """One file of an export, opened."""

    name: str
    """Its path in the archive, or the file's own name."""
    bytes: Bytes
    options: ReadOptions
    place: str
    among: Files
    """The files it came with."""

    def json(self, *keys: str) -> Iterator[object]:
        """Yield the values of a list: the document itself, or the one under these keys, however deep.

        A key ``*`` stands for every member of an object or list.
        """
        stream = self.stream()
        yield from _walk(stream, keys)
        if stream.incomplete:
            yield CUT

    def stream(self) -> JsonStream:
        """Return a reading position at the beginning of a JSON document."""
        return JsonStream(self.bytes, self.place, self.options)

    def table(self, *, skip: int = 0) -> Iterator[object]:
        """Yield a CSV's records as dictionaries from normalised header names; `skip` lines come before the header."""
        header: list[str] | None = None
        delimiter = ""
        splitter: RecordSplitter | None = None
        for lines in lines_of(self.bytes, self.options):
            data = lines.data
            if splitter is None:
                for _ in range(skip):
                    data = data.partition(b"\n")[2]
                first = decoded(data.partition(b"\n")[0].removesuffix(b"\r"))[0]
                delimiter = max(",;\t", key=first.count)
                splitter = RecordSplitter(delimiter.encode(), self.options.max_line_bytes, self.place)
                lines = replace(lines, data=data, count=data.count(b"\n"))
            records = splitter.split(lines)
            each = records.data.split(b"\n")[:-1] if records.data is not None else records.each
            texts = [text for one in each if (text := decoded(one)[0].strip("\r"))]
            for fields in split_records(texts, delimiter):
                if header is None:
                    header = [plain(name) for name in fields]
                elif len(fields) != len(header):
                    yield Reason.RAGGED_ROW
                else:
                    yield dict(zip(header, fields, strict=True))
            yield from [Reason.TEXT_TOO_LONG] * len(records.too_long)
        if splitter is not None:
            splitter.finish(incomplete=False)

    def text(self) -> Iterator[str]:
        """Yield lines of text."""
        for lines in lines_of(self.bytes, self.options):
            for line in lines.data.split(b"\n")[:-1]:
                yield decoded(line.removesuffix(b"\r"))[0]


CUT = object()
"""Yielded where a cut-off document ends, if its complete records are wanted."""
LEFT = object()
"""Yielded for a record of somebody else's."""
SKIP = object()
"""Yielded for a record that is sound, and not of this table."""


def _walk(stream: JsonStream, keys: Sequence[str]) -> Iterator[object]:
    if not keys:
        if stream.peek() == "[":
            yield from stream.items()
        else:
            yield stream.value()
        return
    if stream.peek() == "[":
        for _ in stream.places():
            yield from _walk(stream, keys[1:] if keys[0] == "*" else keys)
        return
    if stream.peek() != "{":
        stream.value()
        return
    for key in stream.members():
        if keys[0] not in ("*", key):
            stream.value()
        elif len(keys) == 1:
            yield from _walk(stream, ())
        else:
            yield from _walk(stream, keys[1:])


def plain(name: str) -> str:
    """Return a column's name in lower case with single blanks: ``Start Time`` and ``start_time`` are one."""
    return " ".join(re.sub(r"[_\ufeff\s]+", " ", name).lower().split())


@lru_cache(CACHED_HEADS)
def header_of(head: bytes) -> frozenset[str]:
    """Return the normalised names of a CSV's first line."""
    line = decoded(head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].removesuffix(b"\r"))[0]
    names = split_records([line], max(",;\t", key=line.count))[0] if line else []
    return frozenset(plain(name) for name in names)


@lru_cache(CACHED_HEADS)
def first_object(head: bytes) -> Mapping[str, Any]:
    """Return the first JSON object of a list at a file's beginning (or the object it is), as far as its head shows."""
    text = decoded(head.lstrip())[0].lstrip("[ \t\r\n\ufeff")
    if not text.startswith("{"):
        return {}
    try:
        value, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


@lru_cache(CACHED_HEADS)
def top_keys(head: bytes) -> frozenset[str]:
    """Return the keys of the outermost object that a head shows, also where it is cut."""
    text = decoded(head)[0]
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return frozenset()
    found, depth, at = set(), 0, 0
    for match in re.finditer(r'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', text):
        at = match.start()
        if text[at] in "{[":
            depth += 1
        elif text[at] in "}]":
            depth -= 1
        elif match[2] and depth == 1:
            found.add(match[1])
    return frozenset(found)


def is_nothing(head: bytes) -> bool:
    """Say whether a file is empty: no bytes, an empty list or object, or blanks."""
    return head.removeprefix(b"\xef\xbb\xbf").translate(None, b" \t\n\r\f") in (b"", b"[]", b"{}")


def pick(record: Mapping[str, Any], *names: str) -> Any:
    """Return the first of several columns that is there and not empty."""
    return next((record[name] for name in names if record.get(name) not in (None, "")), None)


@dataclass(frozen=True)
class Row:
    """A post or an item, before it has an owner."""

    text: str | None = None
    item: str | None = None
    value: Any = None
    time: Any = None
    community: str | None = None
    id: Any = None
    link: Any = None
    """The post's address, where the export has it."""
    user: str | None = None
    """Only in formats about many people, whose records name their authors."""


@dataclass(frozen=True, kw_only=True)
class ExportPart:
    """Files of one sort in an export."""

    knows: Callable[[bytes], bool]
    """Says by its first bytes whether a file is one of these."""
    row: Callable[[Any, str], Row | object]
    """Says what a record means, given the owner: a :class:`Row`, SKIP, LEFT, or a reason to set it aside."""
    records: Callable[[File], Iterator[object]]
    """Yields the raw records of a file."""
    files: str = r"(?!)"
    """Pattern of their paths in an archive."""
    kind: Kind = "posts"
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our column -> the service's, where it differs from what the export says of itself."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """A service's export: bare, or in the zip archive it comes in. Of several kinds of rows the first one's is read."""

    name: str
    about: About
    parts: tuple[ExportPart, ...]
    owner: Callable[[Files], str | None] = lambda files: None
    """Finds the owner's name in the export."""
    community: str | None = None
    """Where the posts were written, unless a row says so itself."""

    @property
    def kind(self) -> Kind:
        """What it holds first of all."""
        return self.parts[0].kind

    def probe(self, look: Look) -> bool:
        """Say whether the file, or one in the archive, is of this service."""
        if look.head.startswith(ZIP_MAGIC):
            return any(
                part.knows(look.head_of(name)) for part in self.parts for name in _matching(part, look.names)
            )
        return any(part.knows(look.head) for part in self.parts)

    def is_empty(self, look: Look) -> bool:
        """Say whether an archive has this service's files, and nothing is in them."""
        found = [name for part in self.parts for name in _matching(part, look.names)]
        return bool(found) and all(is_nothing(look.head_of(name)) for name in found)

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the rows of one kind, file after file."""
        with Files.of(path, options) as files:
            chosen = self._chosen(files, path)
            kinds = list(dict.fromkeys(part.kind for part, _ in chosen))
            kind = options.kind or (kinds[0] if kinds else self.kind)
            if kind not in kinds:
                held = " and ".join(kinds) or "none of what it should"
                raise SchemaError(f"{path}: a {self.about.title}, expected to hold {kind}, holds {held}.")
            owner = options.user or self.owner(files) or self._unnamed(path)
            layout = POSTS if kind == "posts" else ITEMS
            rows = _Numbered(RowBatch(layout, options.batch_bytes), self, options, owner)
            for part, name in chosen:
                if part.kind == kind:
                    with files.open(name) as file:
                        for record in part.records(file):
                            rows.take_in(record, part)
                            if rows.collected.full:
                                yield rows.batch(layout)
            if rows.others and not rows.found:
                raise Undecided(
                    f"{path.name}: none of its {rows.others:,} records is by the name given. Under which name do you "
                    "appear in it?",
                    "user",
                )
            yield rows.batch(layout)

    def _chosen(self, files: Files, path: Path) -> list[tuple[ExportPart, str]]:
        """Return the files to read, in the order of the parts, each once."""
        found: dict[str, ExportPart] = {}
        for part in self.parts:
            for name in _matching(part, files.names) if files.names else [path.name]:
                if name not in found and part.knows(files.head_of(name)):
                    found[name] = part
        if not found:
            raise UnreadableSource(f"{path}: holds no file of a {self.about.title}.")
        return [(part, name) for part in self.parts for name, own in found.items() if own is part]

    def _unnamed(self, path: Path) -> str:
        if self.about.whose == "chat":
            raise Undecided(
                f"{path.name}: a {self.about.title} holds several people's words, and only yours are read. "
                "Under which name do you appear in it?",
                "user",
            )
        return OWNER


def _matching(part: ExportPart, names: Sequence[str]) -> list[str]:
    return sorted(name for name in names if re.search(part.files, name, re.IGNORECASE))


class _Numbered:
    """Numbers records across the files of an export and gathers their rows."""

    def __init__(self, collected: RowBatch, export: Export, options: ReadOptions, owner: str) -> None:
        self.collected, self._export, self._options, self._owner = collected, export, options, owner
        self._number = 0
        self._incomplete = False
        self._columns: Mapping[str, str] = export.about.columns
        self.found = self.others = 0

    def take_in(self, record: object, part: ExportPart) -> None:
        if record is CUT:
            self._incomplete = True
            return
        self._number += 1
        self._columns = part.columns or self._columns
        try:
            row = record if isinstance(record, Reason) else part.row(record, self._owner)
            values = self._values(row, part.kind) if isinstance(row, Row) else None
        except FAULTS:
            row, values = Reason.WRONG_TYPE, None
        if values is not None:
            self.found += 1
            self.collected.add(self._number, values)
        elif isinstance(row, Reason):
            self.collected.reject(self._number, row)
        elif row is LEFT:
            self.others += 1
            self.collected.leave()
        else:
            self.collected.skip()

    def _values(self, row: Row, kind: Kind) -> tuple[str | None, ...]:
        many = self._export.about.whose == "many"
        user = (row.user if self._options.user is None else self._owner) if many else self._owner
        if kind == "items":
            return user, _text(row.item), _text(row.value), _text(row.time)
        community = row.community or self._options.community or self._export.community
        return _text(row.id), user, _text(community), _text(row.time), _text(row.text), _text(row.link)

    def batch(self, layout: Layout) -> Batch:
        left = self.collected.left
        batch = batch_of(self.collected.take(), layout, self._options, Whole(incomplete=self._incomplete))
        return replace(batch, columns=self._columns, left=left)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else str(value)


class Files:
    """The files of an export: one, or those in a zip."""

    def __init__(self, path: Path, options: ReadOptions, archive: Zip | None) -> None:
        self._path, self._options, self._archive = path, options, archive
        self._small: dict[str, Any] = {}

    @classmethod
    @contextmanager
    def of(cls, path: Path, options: ReadOptions) -> Iterator[Files]:
        """Open a bare file or an archive."""
        with ExitStack() as opened:
            with DecompressedFile(path, options) as source:
                packed = source.read(4) == ZIP_MAGIC
            yield cls(path, options, opened.enter_context(Zip(path, options)) if packed else None)

    @property
    def names(self) -> list[str]:
        """The files in the archive; none for a bare file."""
        return [] if self._archive is None else self._archive.names

    def head_of(self, name: str) -> bytes:
        """Return a file's first bytes."""
        with self.open(name) as file:
            return _head(file.bytes)

    def find(self, pattern: str) -> str | None:
        """Return the first file whose path matches."""
        return next((name for name in self.names if re.search(pattern, name, re.IGNORECASE)), None)

    @contextmanager
    def open(self, name: str) -> Iterator[File]:
        """Open one of the files."""
        if self._archive is None:
            with DecompressedFile(self._path, self._options) as source:
                yield File(name, source, self._options, str(self._path), self)
        else:
            with self._archive.open(name) as member:
                yield File(name, member, self._options, f"{self._path}/{name}", self)

    def json(self, pattern: str) -> Any:
        """Return a small JSON file of the archive as a value; None if it is not there or not sound."""
        name = self.find(pattern)
        if name is None:
            return None
        if name not in self._small:
            self._small = {
                name: self._json(name)
            }  # one at a time: the same file is asked for again and again
        return self._small[name]

    def _json(self, name: str) -> Any:
        try:
            with self.open(name) as file:
                return json.loads(decoded(file.bytes.read(SMALL_JSON))[0].lstrip("\ufeff"))
        except (ValueError, RecursionError, UnreadableSource):
            return None
