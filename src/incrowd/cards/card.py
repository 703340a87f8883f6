"""The card itself: one small file of statistics about a crowd, with no name and no text in it.

A card is a zip of ``head.json`` and Arrow files (``docs/reference/card-format.md``). Whoever reads one may have it from
a stranger, so sizes are checked before anything is unpacked, the content against its hash, and tables against what
they should hold. The hash tells damage, not who made the card.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import polars as pl

from incrowd.crowd.disk import check_target
from incrowd.errors import InputError, NotInCrowd, UnreadableSource
from incrowd.text.options import TextOptions

FORMAT, VERSION = "incrowd card", 1
LARGEST_FILE = 2 * 2**20
"""Bytes of a card, at most."""
LARGEST_UNPACKED = 32 * 2**20
"""Bytes of everything in it, at most: what reading one may cost."""
MOST_PARTS, LONGEST_HEAD, MOST_ROWS = 2000, 2**20, 2_000_000
HEAD = "head.json"
PART = re.compile(r"(?:community-\d{1,4}|crowd)/[a-z][a-z0-9_-]{0,60}(?:\.[a-z][a-z0-9_-]{0,60})?\.arrow")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # so that equal cards are equal bytes

Tables = Mapping[str, pl.DataFrame]
"""Small tables by name; those of a measure are called ``measure.table``."""


@dataclass(frozen=True)
class Card:
    """Statistics about one or more communities, to read, write and draw people from.

    >>> card = Card.made({"communities": [{"name": "pets", "people": 120}]}, [{}])
    >>> card.communities
    ('pets',)
    """

    head: Mapping[str, Any]
    """What `incrowd card info` shows; see the reference of the format."""
    parts: tuple[Tables, ...] = ()
    """The tables of each community, in the order of ``head["communities"]``."""
    crowd: Tables = field(default_factory=dict)
    """Tables that are about nobody's community, such as items."""

    @classmethod
    def made(cls, head: Mapping[str, Any], parts: list[Tables], crowd: Tables | None = None) -> Self:
        """Put a new card together; format, version and hash are added here."""
        whole = {"format": FORMAT, "version": VERSION, **head}
        whole["hash"] = _digest(whole, _packed(parts, crowd or {}))
        card = cls(MappingProxyType(whole), tuple(parts), crowd or {})
        card._check()
        return card

    @property
    def communities(self) -> tuple[str, ...]:
        """The communities in it; one of all people together is called as its maker said."""
        return tuple(str(one["name"]) for one in self.head["communities"])

    @property
    def hash(self) -> str:
        """Tells this content from any other."""
        return str(self.head["hash"])

    @cached_property
    def text(self) -> TextOptions:
        """How text became words when it was made: whoever measures with it must do the same."""
        given: dict[str, Any] = {}
        for name, value in self.head.get("text", {}).items():
            if name in {"stop_words", "smileys"} and value is not None:
                # A string would be taken for a file to read.
                given[name] = tuple(str(word) for word in value) if isinstance(value, list) else ()
            elif name != "hash":
                given[name] = value
        return TextOptions(**given)

    def first_community(self) -> str:
        """Return its first community; a card of items alone has none."""
        if not self.communities:
            raise InputError("this card tells nothing about what people write; take one of where you write")
        return self.communities[0]

    def tables(self, community: str) -> Tables:
        """Return the tables of one community."""
        if community not in self.communities:
            raise NotInCrowd(
                f"community '{community}' is not in this card; it has: {', '.join(self.communities)}"
            )
        return self.parts[self.communities.index(community)]

    def facts(self, community: str) -> Mapping[str, Any]:
        """Return what the head says about one community."""
        self.tables(community)
        found: Mapping[str, Any] = self.head["communities"][self.communities.index(community)]
        return found

    def section(self, measure: str, community: str | None = None) -> dict[str, pl.DataFrame]:
        """Return what a measure added, about a community or about the whole crowd; empty: nothing."""
        tables = self.crowd if community is None else self.tables(community)
        prefix = f"{measure}."
        return {name.removeprefix(prefix): table for name, table in tables.items() if name.startswith(prefix)}

    def section_facts(self, measure: str) -> Mapping[str, Any]:
        """Return what the head says about a measure's section; empty: nothing."""
        found = self.head.get("measures", {}).get(measure, {})
        return found if isinstance(found, dict) else {}

    def __repr__(self) -> str:
        return f"Card({', '.join(self.communities)}; {self.hash[:12]})"

    # Files

    def write(self, path: Path | str) -> Path:
        """Write it as one file; a card over 2 MB is refused."""
        data = self.to_bytes()
        if len(data) > LARGEST_FILE:
            raise InputError(
                f"{path}: a card may have {LARGEST_FILE / 2**20:g} MiB, this one has {len(data) / 2**20:.1f}. "
                "Put fewer communities into it, or raise --k so that fewer words are in it."
            )
        target = check_target(Path(path))
        target.write_bytes(data)
        return target

    def to_bytes(self) -> bytes:
        """Return the file's content; equal cards have equal bytes."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
            for name, data in (
                (HEAD, _canonical(self.head).encode()),
                *_packed(self.parts, self.crowd).items(),
            ):
                file.writestr(zipfile.ZipInfo(name, _LONG_AGO), data, zipfile.ZIP_DEFLATED, 9)
        return buffer.getvalue()

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read a card; whatever is wrong with the file is told in a sentence."""
        path = Path(path)
        try:
            size = path.stat().st_size
            if size > LARGEST_FILE:
                raise UnreadableSource(
                    f"{path}: a card has at most {LARGEST_FILE / 2**20:g} MiB, this file has {size / 2**20:,.1f}."
                )
            data = path.read_bytes()
        except OSError as problem:
            reason = problem.strerror or type(problem).__name__
            raise UnreadableSource(f"{path}: the card cannot be read ({reason}).") from None
        return cls.from_bytes(data, str(path))

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "card") -> Self:
        """Read a card from memory; `name` stands in messages."""
        files = _unpacked(data, name)
        head = _parsed_head(files.pop(HEAD, b""), name)
        if head["hash"] != _digest(head, files):
            raise UnreadableSource(f"{name}: the card is damaged: its content does not fit its hash.")
        parts: list[dict[str, pl.DataFrame]] = [{} for _ in head["communities"]]
        crowd: dict[str, pl.DataFrame] = {}
        for file, content in files.items():
            folder, _, table = file.removesuffix(".arrow").partition("/")
            where = crowd if folder == "crowd" else _of_community(parts, folder, name)
            where[table] = _parsed_table(content, f"{name}, {file}")
        card = cls(MappingProxyType(head), tuple(parts), crowd)
        card._check(name)
        return card

    def _check(self, name: str = "card") -> None:
        """Refuse a head that does not say what every reader relies on."""
        communities = self.head.get("communities")
        fine = isinstance(communities, list) and all(
            isinstance(one, dict) and isinstance(one.get("name"), str) and isinstance(one.get("people"), int)
            for one in communities
        )
        if not fine or len(self.parts) != len(self.head["communities"]):
            raise UnreadableSource(f"{name}: the head of the card does not list its communities.")
        if not isinstance(self.head.get("measures", {}), dict):
            raise UnreadableSource(f"{name}: the head of the card does not say what measures tell.")
        if len(set(self.communities)) != len(self.communities):
            raise UnreadableSource(f"{name}: the head of the card lists a community twice.")
        try:
            _ = self.text
        except (TypeError, ValueError, AttributeError):
            raise UnreadableSource(
                f"{name}: the head of the card does not say how text becomes words."
            ) from None


def text_facts(options: TextOptions) -> dict[str, Any]:
    """Return how text becomes words as a head tells it."""
    return {**asdict(options), "hash": options.hash}


def _canonical(head: Mapping[str, Any]) -> str:
    return json.dumps(dict(head), sort_keys=True, ensure_ascii=False, indent=1, allow_nan=False)


def _packed(parts: tuple[Tables, ...] | list[Tables], crowd: Tables) -> dict[str, bytes]:
    """Return every table as the bytes of an Arrow file, by its name in the zip."""
    named = {
        **{f"crowd/{name}.arrow": table for name, table in crowd.items()},
        **{
            f"community-{place}/{name}.arrow": table
            for place, tables in enumerate(parts)
            for name, table in tables.items()
        },
    }
    for name in named:
        if not PART.fullmatch(name):
            raise InputError(f"card: a table cannot be called '{name}'.")
    return {name: _table_bytes(named[name]) for name in sorted(named)}


def _table_bytes(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.rechunk().write_ipc_stream(buffer, compression="uncompressed", compat_level=pl.CompatLevel.oldest())
    return buffer.getvalue()


def _digest(head: Mapping[str, Any], files: Mapping[str, bytes]) -> str:
    digest = blake2b(digest_size=16)
    told = {name: value for name, value in head.items() if name != "hash"}
    for name, data in ((HEAD, _canonical(told).encode()), *sorted(files.items())):
        digest.update(f"{name} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def _unpacked(data: bytes, name: str) -> dict[str, bytes]:
    """Return the files in it; nothing is unpacked beyond the limits, whatever its directory says."""
    if len(data) > LARGEST_FILE:
        raise UnreadableSource(f"{name}: a card has at most {LARGEST_FILE / 2**20:g} MiB.")
    found: dict[str, bytes] = {}
    room = LARGEST_UNPACKED
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            entries = file.infolist()
            if len(entries) > MOST_PARTS:
                raise UnreadableSource(
                    f"{name}: a card has at most {MOST_PARTS} parts, this has {len(entries)}."
                )
            for entry in entries:
                if entry.filename in found or not (entry.filename == HEAD or PART.fullmatch(entry.filename)):
                    raise UnreadableSource(f"{name}: this is no card: a part of it has no name we know.")
                with file.open(entry) as part:
                    content = part.read(room + 1)
                room -= len(content)
                if room < 0:
                    raise UnreadableSource(f"{name}: unpacked, the card is larger than cards may be.")
                found[entry.filename] = content
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, OSError, NotImplementedError, RuntimeError):
        raise UnreadableSource(f"{name}: this is no card, or it is damaged.") from None
    except (ValueError, KeyError, OverflowError, MemoryError) as problem:
        if isinstance(problem, UnreadableSource):
            raise
        raise UnreadableSource(f"{name}: this is no card, or it is damaged.") from None
    except Exception as problem:  # zlib and struct have errors of their own
        if type(problem).__module__ in {"zlib", "struct", "_struct"}:
            raise UnreadableSource(f"{name}: this is no card, or it is damaged.") from None
        raise
    return found


def _parsed_head(data: bytes, name: str) -> dict[str, Any]:
    if not data or len(data) > LONGEST_HEAD:
        raise UnreadableSource(f"{name}: this is no card: it has no head.")
    try:
        head = json.loads(data)
    except (ValueError, RecursionError):
        raise UnreadableSource(f"{name}: the head of the card is damaged.") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT or not isinstance(head.get("hash"), str):
        raise UnreadableSource(f"{name}: this is no card of incrowd.")
    if head.get("version") != VERSION:
        raise UnreadableSource(
            f"{name}: the card has version {head.get('version')!r} of the format, this incrowd reads {VERSION}. "
            "A newer incrowd may read it."
        )
    if not isinstance(head.get("communities"), list):
        raise UnreadableSource(f"{name}: the head of the card does not list its communities.")
    return head


def _of_community(parts: list[dict[str, pl.DataFrame]], folder: str, name: str) -> dict[str, pl.DataFrame]:
    place = int(folder.removeprefix("community-"))
    if place >= len(parts):
        raise UnreadableSource(f"{name}: the card has a table of a community that its head does not list.")
    return parts[place]


def _parsed_table(data: bytes, name: str) -> pl.DataFrame:
    """Read a table of plain columns, none of them compressed: nothing in it can grow when it is read."""
    try:
        for message in _messages(data):
            if _is_compressed(message):
                raise UnreadableSource(f"{name}: the table is compressed, which tables of cards never are.")
            if not _is_plain(message):
                raise UnreadableSource(f"{name}: the table has columns of kinds that cards do not have.")
        table = pl.read_ipc_stream(data)
    except UnreadableSource:
        raise
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        ValueError,
        TypeError,
        IndexError,
        OverflowError,
        struct.error,
    ):
        raise UnreadableSource(f"{name}: the table is damaged.") from None
    if table.height > MOST_ROWS:
        raise UnreadableSource(f"{name}: the table has more rows than tables of cards may have.")
    return table


# What is said here of Arrow's messages, which are flatbuffers, stands in Schema.fbs and Message.fbs of its format.


def _messages(data: bytes) -> Iterator[bytes]:
    """Yield the messages of an Arrow stream, without their bodies."""
    place = 0
    while place < len(data):
        mark, size = struct.unpack_from("<Ii", data, place)
        if size == 0:
            return
        message = data[place + 8 : place + 8 + size]
        body = _field(message, _root(message), 3)
        length = struct.unpack_from("<q", message, body)[0] if body else 0
        if mark != 0xFFFFFFFF or size < 0 or length < 0:
            raise ValueError("no stream of Arrow")
        yield message
        place += 8 + size + length


def _root(message: bytes) -> int:
    return int(struct.unpack_from("<I", message, 0)[0])


def _field(message: bytes, table: int, number: int) -> int:
    """Return where a field of a flatbuffer's table lies; 0: it is not there."""
    start = table - struct.unpack_from("<i", message, table)[0]
    size = struct.unpack_from("<H", message, start)[0]
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", message, start + place)[0] if place < size else 0
    return table + offset if offset else 0


def _table(message: bytes, place: int) -> int:
    """Return where the table or vector lies that a field refers to."""
    return place + int(struct.unpack_from("<I", message, place)[0])


def _header(message: bytes) -> tuple[int, int]:
    """Return a message's kind and where its header lies; kind 0: it has none."""
    kind, header = _field(message, _root(message), 1), _field(message, _root(message), 2)
    return (message[kind], _table(message, header)) if kind and header else (0, 0)


def _is_compressed(message: bytes) -> bool:
    """Say whether a message holds compressed columns: field 3 of RecordBatch; Polars would unpack without asking."""
    kind, header = _header(message)
    if kind == _DICTIONARY_BATCH:
        return True  # the writer makes none
    return kind == _RECORD_BATCH and bool(_field(message, header, 3))


def _is_plain(message: bytes) -> bool:
    """Say whether a message, if it is a schema, has columns of numbers and texts alone.

    Fields 1 of Schema, and 2 (kind) and 4 (dictionary) of Field.
    """
    kind, header = _header(message)
    if kind != _SCHEMA:
        return True
    vector = _table(message, _field(message, header, 1))
    for number in range(struct.unpack_from("<I", message, vector)[0]):
        column = _table(message, vector + 4 + 4 * number)
        told = _field(message, column, 2)
        if not told or message[told] not in _PLAIN or _field(message, column, 4):
            return False
    return True


_SCHEMA, _DICTIONARY_BATCH, _RECORD_BATCH = 1, 2, 3
"""Kinds of messages."""
_PLAIN = {2, 3, 5, 20}
"""Kinds of columns: whole and broken numbers, texts by short and by long offsets."""
