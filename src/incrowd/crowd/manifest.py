"""The manifest: the one file that says what a crowd consists of. Renaming it into place is the commit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from incrowd.crowd.disk import Disk
from incrowd.errors import CrowdDamaged, CrowdError

Kind = Literal["posts", "items", "attributes"]
KINDS: tuple[Kind, ...] = ("posts", "items", "attributes")


MANIFEST_NAME = "manifest.json"
PARTS_FOLDER = "parts"
STAGING_FOLDER = "staging"
JOURNAL_FOLDER = "collect"
"""Where `incrowd collect` keeps what it has asked, and whom it met."""
FORMAT = "incrowd crowd"
SCHEMA_VERSION = 1
TABLES = (*KINDS, "quarantine")


@dataclass(frozen=True, kw_only=True)
class TablePart:
    """One Parquet file of a table."""

    file: str
    """Its name inside the crowd's `parts` folder."""
    rows: int
    bytes: int
    blake2b: str
    run: int
    """Parts of one run are sorted among themselves."""


@dataclass(frozen=True, kw_only=True)
class StoredTable:
    """One table: its parts, and a hash of its rows that no order of them changes."""

    parts: tuple[TablePart, ...] = ()
    row_hashes: tuple[int, int] = (0, 0)
    """The sums, modulo 2**64, of the two halves of the rows' hashes."""

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(part.rows for part in self.parts)


@dataclass(frozen=True, kw_only=True)
class SourceRecord:
    """What one source brought: an entry of the import log."""

    name: str
    content_hash: str
    """BLAKE2b of the source's bytes."""
    reader: str
    kind: str = ""
    """The table its rows went to."""
    options: Mapping[str, Any] = field(default_factory=dict)
    rows: int = 0
    """Rows the reader saw, good or bad."""
    added: int = 0
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Rows set aside, by reason code; `duplicate` rows are counted here and nowhere else."""
    replaced: int = 0
    """Rows in which invalid bytes or NULs were replaced by U+FFFD."""
    skipped: int = 0
    """Records that are sound but not a person's own rows of this table, e.g. reposts."""
    incomplete: bool = False

    @property
    def identity(self) -> tuple[str, str]:
        """Two sources with the same identity would bring the same rows."""
        return self.content_hash, json.dumps([self.reader, self.options], sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The whole state of a crowd."""

    names: str
    """`keyed` or `plain`."""
    key_id: str = ""
    """Fingerprint of the key; empty with plain names."""
    generation: int = 0
    tables: Mapping[str, StoredTable] = field(default_factory=lambda: dict.fromkeys(TABLES, StoredTable()))
    imports: tuple[SourceRecord, ...] = ()

    @property
    def parts(self) -> tuple[TablePart, ...]:
        """All parts of all tables."""
        return tuple(part for table in self.tables.values() for part in table.parts)

    @property
    def files(self) -> set[str]:
        """Names of all parts."""
        return {part.file for part in self.parts}

    @property
    def data_hash(self) -> str:
        """A name for the data: the same rows give the same hash, in whatever order they came."""
        digest = blake2b(FORMAT.encode(), digest_size=16)
        for kind in KINDS:
            table = self.tables[kind]
            digest.update(f"{kind} {table.rows} {table.row_hashes[0]} {table.row_hashes[1]}\n".encode())
        return digest.hexdigest()

    def next(self, tables: Mapping[str, StoredTable], imports: tuple[SourceRecord, ...]) -> Manifest:
        """Return the state after an import."""
        log = (*self.imports, *imports)
        return replace(self, generation=self.generation + 1, tables=dict(tables), imports=log)


def save(manifest: Manifest, folder: Path, disk: Disk) -> None:
    """Commit: after this returns the new state is the state, before it the old one was."""
    plain = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **asdict(manifest)}
    disk.write_whole(folder / MANIFEST_NAME, json.dumps(plain, indent=1).encode())


def load(folder: Path) -> Manifest:
    """Read a crowd's state."""
    path = folder / MANIFEST_NAME
    try:
        plain = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise CrowdError(
            f"{folder}: expected a crowd folder with a {MANIFEST_NAME}, found none. "
            f"Make one with: incrowd ingest SOURCE --crowd {folder}"
        ) from None
    except ValueError:
        raise CrowdDamaged(f"{path}: not readable as JSON. Restore it or import anew.") from None
    return _parse(plain, path)


def _parse(plain: Any, path: Path) -> Manifest:
    if not isinstance(plain, dict) or plain.pop("format", None) != FORMAT:
        raise CrowdDamaged(f"{path}: expected the manifest of an incrowd crowd, got another JSON file.")
    version = plain.pop("schema_version", None)
    if version != SCHEMA_VERSION:
        raise CrowdError(
            f"{path}: expected store version {SCHEMA_VERSION}, got {version}. Use the incrowd release that "
            "made this crowd, or import the sources anew."
        )
    try:
        return Manifest(
            **{
                **plain,
                "tables": {name: _table(plain["tables"][name]) for name in TABLES},
                "imports": tuple(SourceRecord(**record) for record in plain["imports"]),
            }
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CrowdDamaged(f"{path}: fields are missing or unknown. Restore it from a backup.") from error


def _table(plain: Mapping[str, Any]) -> StoredTable:
    hi, lo = plain["row_hashes"]
    return StoredTable(parts=tuple(TablePart(**part) for part in plain["parts"]), row_hashes=(hi, lo))
