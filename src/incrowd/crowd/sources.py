"""What is imported: files and data frames, each with a name, a hash of its bytes, and batches of rows."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from incrowd.crowd import readers
from incrowd.crowd.pseudonyms import Pseudonyms
from incrowd.crowd.readers.base import Batch, Reader, ReadOptions
from incrowd.crowd.schema import KINDS
from incrowd.errors import InputError, UnreadableSource

READ_BYTES = 2**20


class Source(Protocol):
    """Something that can be imported."""

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        ...

    @property
    def content_hash(self) -> str:
        """BLAKE2b of its bytes."""
        ...

    @property
    def options(self) -> ReadOptions:
        """How to read it."""
        ...

    @property
    def format(self) -> str:
        """Name of the reader."""
        ...

    def batches(self, batch_bytes: int) -> Iterator[Batch]:
        """Yield the rows in order, about `batch_bytes` of input at a time."""
        ...


@dataclass(frozen=True, kw_only=True)
class FileSource:
    """One file and the reader that understands it."""

    path: Path
    name: str
    content_hash: str
    reader: Reader
    options: ReadOptions
    state: tuple[int, ...]

    @property
    def format(self) -> str:
        """The reader's name."""
        return self.reader.name

    def batches(self, batch_bytes: int) -> Iterator[Batch]:
        """Yield the rows; refuse a file that changed since it was hashed."""
        yield from self.reader.read(self.path, replace(self.options, batch_bytes=batch_bytes))
        if _state(self.path) != self.state:
            raise UnreadableSource(f"{self.path}: the file changed while it was read. Import it again.")


Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def require_files(paths: Paths) -> list[Path]:
    """Refuse anything that is no plain, non-empty file."""
    found = [Path(path) for path in ([paths] if isinstance(paths, str | os.PathLike) else paths)]
    if not found:
        raise InputError("ingest: expected at least one source, got none.")
    for path in found:
        _state(path)
    return found


def open_files(paths: Paths, format: str, options: ReadOptions) -> list[FileSource]:
    """Check, hash and recognise files; the order of the arguments does not matter."""
    if options.kind is not None and options.kind not in KINDS:
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, got '{options.kind}'.")
    found = [_open_file(path, format, options) for path in require_files(paths)]
    return sorted(found, key=lambda source: (source.name, source.content_hash))


def _open_file(path: Path, format: str, options: ReadOptions) -> FileSource:
    state = _state(path)
    digest = _hash_file(path)
    reader = readers.detect(path, format)
    if options.columns and reader.name not in readers.ANY_COLUMNS:
        raise InputError(
            f"{path}: recognised as {reader.name}, whose columns are known, so --columns would not be used. "
            "Leave it out, or name the columns yourself with --format csv, tsv, jsonl or parquet."
        )
    return FileSource(
        path=path, name=path.name, content_hash=digest, reader=reader, options=options, state=state
    )


def _state(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is replaced or written to; refuse what is no plain file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        raise UnreadableSource(f"{path}: no such file.") from None
    except OSError as error:
        raise UnreadableSource(f"{path}: {error.strerror}.") from None
    if stat.S_ISDIR(status.st_mode):
        raise UnreadableSource(f"{path}: expected a file, got a folder. Name the files in it, e.g. {path}/*")
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableSource(
            f"{path}: expected a plain file, got a pipe or device. Write it to a file first: "
            "an import reads its source twice."
        )
    if status.st_size == 0:
        raise UnreadableSource(f"{path}: the file is empty. Was the download interrupted?")
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _hash_file(path: Path) -> str:
    digest = blake2b(digest_size=32)
    try:
        with path.open("rb") as file:
            while block := file.read(READ_BYTES):
                digest.update(block)
    except OSError as error:
        raise UnreadableSource(f"{path}: cannot be read: {error.strerror}.") from None
    return digest.hexdigest()


def described(options: ReadOptions, pseudonyms: Pseudonyms) -> Mapping[str, Any]:
    """Return the options that decide which rows come out, for the import log; no name in the clear."""
    facts = {
        "kind": options.kind,
        "columns": dict(options.columns),
        "community": options.community,
        "user": None if options.user is None else pseudonyms.of(options.user.strip()),
        "keep_complete": options.keep_complete,
    }
    return {name: value for name, value in facts.items() if value}
