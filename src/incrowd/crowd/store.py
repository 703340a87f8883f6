"""The crowd: a folder of people's posts, items and attributes, ready to be measured."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from functools import partial
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from incrowd.crowd import manifest, pseudonyms
from incrowd.crowd.disk import LOCK_NAME, PRIVATE_FOLDER, Disk, import_lock
from incrowd.crowd.manifest import JOURNAL_FOLDER, PARTS_FOLDER, STAGING_FOLDER
from incrowd.crowd.row_groups import read_groups
from incrowd.crowd.schema import COLUMNS, KINDS, Kind
from incrowd.crowd.tables import LINKS_NAME, connect
from incrowd.errors import CrowdBusy, CrowdDamaged, CrowdError, InputError, NotInCrowd
from incrowd.result import Result, say_count

if TYPE_CHECKING:
    import duckdb

    from incrowd.crowd.ingest import Confirm, ImportReport, Progress
    from incrowd.crowd.sources import Paths, Source


# What is in a crowd, in numbers; and tables as CSV for spreadsheets, in which no cell can act as a formula.

FORMULA = r"^[=+\-@\t\r]"
"""What makes a spreadsheet compute a cell instead of showing it."""


def write_csv(frame: pl.LazyFrame | pl.DataFrame, path: Path) -> None:
    """Write a table as CSV; text that a spreadsheet would run gets a leading apostrophe."""
    harmless(frame.lazy()).sink_csv(path)


def harmless(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the table with an apostrophe before every text that starts like a formula."""
    text = pl.col(pl.String)
    return frame.with_columns(
        pl.when(text.str.contains(FORMULA)).then("'" + text).otherwise(text).name.keep()
    )


LARGEST = 10


@dataclass(frozen=True, kw_only=True, repr=False)
class CrowdInfo(Result):
    """A crowd at a glance; no field is about a single person."""

    posts: int
    users: int
    """Distinct people over all tables."""
    communities: int
    identities: int
    """(user, community) pairs."""
    users_in_several: int
    """People who post in more than one community."""
    largest_communities: Mapping[str, int]
    """The largest communities and their posts."""
    first_post: int | None
    """UTC seconds."""
    last_post: int | None
    undated_posts: int
    items: int
    """Distinct items."""
    item_rows: int
    attributes: int
    """Distinct attributes."""
    attribute_rows: int
    quarantined: int
    quarantine: Mapping[str, int]
    """Rows in quarantine, by reason."""
    set_aside: Mapping[str, int]
    """Rows every import so far left out, by reason, duplicates included."""
    imports: int
    """Sources imported."""
    incomplete: int
    """Sources of which only the complete records could be kept."""
    bytes: int
    names: str
    """`keyed`, `plain`, or `forgotten`: nobody can turn a name into an id any more."""
    data_hash: str

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        people, posts = say_count(self.users, "person", "people"), say_count(self.posts, "post")
        communities = say_count(self.communities, "community", "communities")
        return f"{people}: {posts} in {communities}, {say_count(self.items, 'different item')}."

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the posts of the largest communities."""
        return [(name, float(posts)) for name, posts in self.largest_communities.items()]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return asdict(self)


def describe(crowd: Crowd) -> CrowdInfo:
    """Count what is in a crowd."""
    state = crowd.state
    connection = crowd.connect()
    try:
        posts = _row(
            connection,
            """SELECT count(DISTINCT community), min("time"), max("time"), count(*) - count("time")
               FROM posts""",
        )
        identities, several = _row(
            connection,
            """SELECT coalesce(sum(n), 0)::BIGINT, count(*) FILTER (n > 1)
               FROM (SELECT count(DISTINCT community) AS n FROM posts GROUP BY "user")""",
        )
        (items,) = _row(connection, "SELECT count(DISTINCT item) FROM items")
        (attributes,) = _row(connection, "SELECT count(DISTINCT attribute) FROM attributes")
        largest = connection.sql(
            f"SELECT community, count(*) AS n FROM posts GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {LARGEST}"
        ).fetchall()
        reasons = connection.sql("SELECT reason, count(*) FROM quarantine GROUP BY 1 ORDER BY 1").fetchall()
    finally:
        connection.close()
    return CrowdInfo(
        posts=state.tables["posts"].rows,
        users=crowd.people(),
        communities=posts[0],
        identities=identities,
        users_in_several=several,
        largest_communities=dict(largest),
        first_post=posts[1],
        last_post=posts[2],
        undated_posts=posts[3],
        items=items,
        item_rows=state.tables["items"].rows,
        attributes=attributes,
        attribute_rows=state.tables["attributes"].rows,
        quarantined=state.tables["quarantine"].rows,
        quarantine=dict(reasons),
        set_aside=dict(sorted(sum((Counter(s.reasons) for s in state.imports), Counter()).items())),
        imports=len(state.imports),
        incomplete=sum(source.incomplete for source in state.imports),
        bytes=sum(part.bytes for part in state.parts),
        names=crowd.names,
        data_hash=crowd.data_hash,
    )


def _row(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """Return the one row an aggregate has."""
    return tuple(connection.execute(sql).fetchall()[0])


CACHE_FOLDER = "cache"
FOLDERS = (PARTS_FOLDER, STAGING_FOLDER, CACHE_FOLDER)
OWN_NAMES = {*FOLDERS, LOCK_NAME, pseudonyms.KEY_NAME, manifest.MANIFEST_NAME}
QUARANTINE_COLUMNS: dict[str, pl.DataType] = {"file": pl.String(), "row": pl.UInt64(), "reason": pl.String()}
DEFAULT_MEMORY = 2**30
RESTORE = "Restore the crowd from a backup, or import its sources into a new one."


class Crowd:
    """A population: what its members posted, chose and are, under pseudonyms.

    ``Crowd(folder)`` opens a crowd that :meth:`create`, :meth:`from_frame` or ``incrowd ingest`` made.
    An open crowd keeps showing the state it was opened in, except after its own imports.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._disk = Disk()
        self._manifest = manifest.load(self.path)
        self._check_parts()

    def __repr__(self) -> str:
        rows = ", ".join(f"{self._manifest.tables[kind].rows:,} {kind}" for kind in KINDS)
        return f"Crowd({str(self.path)!r}: {rows})"

    @classmethod
    def create(cls, path: str | os.PathLike[str], *, plain_names: bool = False) -> Self:
        """Make an empty crowd in a new or empty folder."""
        return cls._create(Path(path), plain_names=plain_names, disk=Disk())

    @classmethod
    def open_or_create(cls, path: str | os.PathLike[str], *, plain_names: bool = False) -> Self:
        """Open the crowd in a folder, or make one if there is none."""
        crowd = cls._create(Path(path), plain_names=plain_names, disk=Disk(), exist_ok=True)
        if plain_names and crowd.names != "plain":
            raise CrowdError(
                f"{path}: this crowd keeps names as pseudonyms; plain names cannot be mixed in. "
                "Make a new crowd for them."
            )
        return crowd

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        kind: Kind = "posts",
        columns: Mapping[str, str] | None = None,
        path: str | os.PathLike[str] | None = None,
        *,
        plain_names: bool = True,
    ) -> Self:
        """Make a crowd from a data frame: pandas, Polars, Arrow or a DuckDB relation.

        `columns` maps our names to the frame's, e.g. ``{"user": "author"}``. Without a `path` the crowd lives
        in a temporary folder as long as the returned object.
        """
        from incrowd.crowd.sources import frame_source

        source = frame_source(frame, kind, columns)
        disk = Disk(durable=path is not None)
        folder = Path(path) if path is not None else Path(tempfile.mkdtemp(prefix="incrowd-"))
        crowd = cls._create(folder, plain_names=plain_names, disk=disk)
        if path is None:
            weakref.finalize(crowd, shutil.rmtree, folder, ignore_errors=True)
        crowd._import(lambda: [source], DEFAULT_MEMORY, wait=False, progress=None)
        return crowd

    @classmethod
    def _create(cls, path: Path, *, plain_names: bool, disk: Disk, exist_ok: bool = False) -> Self:
        if not (exist_ok and _is_crowd(path)):
            if path.exists() and not path.is_dir():
                raise CrowdError(f"{path}: expected a folder for the crowd, got a file. Name a new folder.")
            disk.make_folder(path, PRIVATE_FOLDER)
            disk.sync_folder(path.parent)
            with import_lock(path, wait=True):
                # Another process may have made it while we waited.
                if not (exist_ok and _is_crowd(path)):
                    _initialise(path, plain_names, disk)
        crowd = cls(path)
        crowd._disk = disk
        return crowd

    # What goes in

    def ingest(
        self,
        sources: Paths,
        *,
        kind: Kind | None = None,
        format: str = "auto",
        columns: Mapping[str, str] | None = None,
        community: str | None = None,
        user: str | None = None,
        dates: str | None = None,
        keep_complete: bool = False,
        memory: int = DEFAULT_MEMORY,
        wait: bool = False,
        dry_run: bool = False,
        confirm: Confirm | None = None,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import files, all or nothing; what the crowd has already is not added again.

        `dates` (`dmy` or `mdy`) says how dates such as 3/4/2020 are meant. With `dry_run` nothing changes: the report
        says what was understood. `confirm` is shown the same before anything changes, and raises to stop.
        """
        from incrowd.crowd.sources import ReadOptions, open_files

        options = ReadOptions(
            kind=kind,
            columns=columns or {},
            community=community,
            user=user,
            dates=_checked_dates(dates),
            keep_complete=keep_complete,
        )
        find = partial(open_files, sources, format, options)
        return self._import(find, memory, wait, progress, confirm=confirm, dry_run=dry_run)

    def add_frame(
        self,
        frame: Any,
        kind: Kind | None = None,
        columns: Mapping[str, str] | None = None,
        *,
        memory: int = DEFAULT_MEMORY,
    ) -> ImportReport:
        """Import a data frame; see :meth:`from_frame`."""
        from incrowd.crowd.sources import frame_source

        source = frame_source(frame, kind, columns)
        return self._import(lambda: [source], memory, wait=False, progress=None)

    def _import(
        self,
        find: Callable[[], Sequence[Source]],
        memory: int,
        wait: bool,
        progress: Progress | None,
        *,
        confirm: Confirm | None = None,
        dry_run: bool = False,
    ) -> ImportReport:
        from incrowd.crowd.ingest import Import, ImportBudget

        with import_lock(self.path, wait=wait):
            # Another process may have imported since this object was opened.
            self._manifest = manifest.load(self.path)
            job = Import(
                folder=self.path,
                disk=self._disk,
                manifest=self._manifest,
                pseudonyms=self.naming(),
                budget=ImportBudget.of(memory),
                progress=progress or _silent,
                confirm=confirm,
                dry_run=dry_run,
            )
            self._manifest, report = job.run(find())
        return report

    def discard_if_empty(self) -> None:
        """Take a crowd nobody is in away again, unless somebody is importing into it just now."""
        with suppress(CrowdBusy), import_lock(self.path):
            if not manifest.load(self.path).parts:
                shutil.rmtree(self.path, ignore_errors=True)

    # Names

    @property
    def names(self) -> str:
        """`keyed`, `plain`, or `forgotten` once the key was thrown away."""
        if self._manifest.names == "keyed" and not (self.path / pseudonyms.KEY_NAME).exists():
            return "forgotten"
        return self._manifest.names

    def user(self, name: str) -> str:
        """Return the id under which the store keeps a person, found by name (or by that very id)."""
        known = self._pseudonyms()
        candidates = [name.strip()] if known is None else [known.of(name.strip()), name.strip()]
        for candidate in candidates:
            if self._has_user(candidate):
                return candidate
        if known is None:
            raise NotInCrowd(
                f"{self.path}: the crowd's key was thrown away, so a name can no longer be looked up. "
                "Give the person's id instead."
            )
        raise NotInCrowd(f"{self.path}: nobody of that name is in this crowd. Upper and lower case count.")

    def forget_key(self) -> None:
        """Throw the key away: from now on nobody can find a person by name, nor add to this crowd."""
        with import_lock(self.path):
            self._disk.remove(self.path / pseudonyms.KEY_NAME)
            self._disk.remove(self.path / JOURNAL_FOLDER)  # it names accounts
            self._disk.remove(self.path / LINKS_NAME)  # addresses do, too
            self._disk.sync_folder(self.path)

    def _pseudonyms(self) -> pseudonyms.Pseudonyms | None:
        if self._manifest.names == "plain":
            return pseudonyms.Pseudonyms(None)
        key = pseudonyms.load_key(self.path, self._manifest.key_id)
        return None if key is None else pseudonyms.Pseudonyms(key)

    def naming(self) -> pseudonyms.Pseudonyms:
        """Return the rule that gives people their ids, for whoever adds to this crowd."""
        known = self._pseudonyms()
        if known is None:
            raise CrowdError(
                f"{self.path}: the crowd's key was thrown away, so the same person would get a second id. "
                "Import everything into a new crowd."
            )
        return known

    def _has_user(self, user: str) -> bool:
        frames = (self._scan(kind).filter(pl.col("user") == user).head(1) for kind in KINDS)
        return any(frame.collect().height for frame in frames)

    # What comes out

    def posts(self, community: str | None = None, user: str | None = None) -> pl.LazyFrame:
        """Return posts, of one community or one user (by id) if asked."""
        frame = self._scan("posts")
        if community is not None:
            frame = frame.filter(pl.col("community") == community)
            if not frame.head(1).collect().height:
                raise NotInCrowd(
                    f"{self.path}: no community '{community}' in this crowd.{self._close_to(community)}"
                )
        return frame if user is None else frame.filter(pl.col("user") == user)

    def _close_to(self, community: str) -> str:
        names = self.communities()["community"].to_list()
        close = get_close_matches(community.lower(), [name.lower() for name in names], n=3)
        matches = [name for name in names if name.lower() in close]
        return f" Did you mean {' or '.join(matches)}?" if matches else " List them with: incrowd info"

    def pieces(
        self, kind: Kind, columns: Sequence[str], where: pl.Expr | None = None
    ) -> Iterator[pl.DataFrame]:
        """Yield a table's rows, or some of them, bit by bit: whatever its size, little of it is in memory."""
        for path in self._part_paths(kind):
            yield from read_groups(path, columns, where=where)

    def items(self) -> pl.LazyFrame:
        """Return who has or rated which item."""
        return self._scan("items")

    def attributes(self) -> pl.LazyFrame:
        """Return people's attributes."""
        return self._scan("attributes")

    def quarantine(self) -> pl.LazyFrame:
        """Return the rows that were set aside: file, row number, reason; never their text."""
        return self._scan("quarantine")

    def communities(self) -> pl.DataFrame:
        """Return every community with its posts and users, largest first."""
        posts = self._scan("posts").select("community", "user")
        return (
            posts.group_by("community")
            .agg(posts=pl.len().cast(pl.Int64), users=pl.col("user").n_unique().cast(pl.Int64))
            .sort(["posts", "community"], descending=[True, False])
            .collect()
        )

    def people(self) -> int:
        """Return how many people are in the crowd, whatever is known of them."""
        held = [kind for kind in KINDS if self._manifest.tables[kind].rows]
        if not held:
            return 0
        with self.connect() as connection:
            users = " UNION ".join(f'SELECT "user" FROM {kind}' for kind in held)
            ((count,),) = connection.sql(
                f"SELECT count(*) FROM (SELECT DISTINCT * FROM ({users}))"
            ).fetchall()
        return int(count)

    def user_ids(self) -> list[str]:
        """Return everybody's id, sorted."""
        held = [kind for kind in KINDS if self._manifest.tables[kind].rows]
        if not held:
            return []
        users = " UNION ".join(f'SELECT "user" FROM {kind}' for kind in held)
        with self.connect() as connection:
            found = connection.sql(f'SELECT DISTINCT "user" FROM ({users}) ORDER BY 1').fetchall()
        return [user for (user,) in found]

    def info(self) -> CrowdInfo:
        """Return what is in the crowd, in numbers."""
        return describe(self)

    def connect(self, memory: int = DEFAULT_MEMORY) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection with views `posts`, `items`, `attributes` and `quarantine`."""
        connection = connect(memory, self.cache / "spill")
        for table in _TABLES:
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {self.source_sql(table)}")
        return connection

    @property
    def state(self) -> manifest.Manifest:
        """The manifest: parts, import log, store version."""
        return self._manifest

    def reload(self) -> None:
        """Show the crowd as it is now: somebody else may have changed it."""
        self._manifest = manifest.load(self.path)
        self._check_parts()

    @property
    def disk(self) -> Disk:
        """What writes this crowd's files."""
        return self._disk

    @property
    def data_hash(self) -> str:
        """A name for the data: the same rows under the same key give the same hash, however they came."""
        return self._manifest.data_hash

    @property
    def cache(self) -> Path:
        """A folder for what can be computed again; safe to delete."""
        folder = self.path / CACHE_FOLDER
        folder.mkdir(exist_ok=True)
        return folder

    def _part_paths(self, table: str) -> list[Path]:
        return [self.path / PARTS_FOLDER / part.file for part in self._manifest.tables[table].parts]

    def _scan(self, table: str) -> pl.LazyFrame:
        paths, columns = self._part_paths(table), _TABLES[table]
        if not paths:
            return pl.LazyFrame(schema=columns)
        return pl.scan_parquet(paths, glob=False).select(list(columns))

    def source_sql(self, table: str, extra: tuple[str, ...] = ()) -> str:
        """Return SQL for a table's rows, with `extra` columns of the store's own."""
        from incrowd.crowd.tables import parquet_sql

        paths, columns = self._part_paths(table), _TABLES[table]
        if paths:
            names = ", ".join(f'"{name}"' for name in (*columns, *extra))
            return f"(SELECT {names} FROM {parquet_sql(paths)})"
        empty = [f'NULL::{_SQL_TYPES[dtype]} AS "{name}"' for name, dtype in columns.items()]
        return f"(SELECT {', '.join([*empty, *(f'0 AS {name}' for name in extra)])} LIMIT 0)"

    def _check_parts(self) -> None:
        """Notice missing or cut parts at once; :meth:`verify` also reads them."""
        for part in self._manifest.parts:
            path = self.path / PARTS_FOLDER / part.file
            size = path.stat().st_size if path.exists() else None
            if size != part.bytes:
                found = "it is missing" if size is None else f"it has {size:,}"
                raise CrowdDamaged(f"{path}: expected {part.bytes:,} bytes, but {found}. {RESTORE}")

    def verify(self) -> None:
        """Read every part and compare it with the hash in the manifest."""
        for part in self._manifest.parts:
            path = self.path / PARTS_FOLDER / part.file
            with path.open("rb") as file:
                digest = file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()
            if digest != part.blake2b:
                raise CrowdDamaged(f"{path}: its contents differ from what was imported. {RESTORE}")


def _checked_dates(dates: str | None) -> str | None:
    if dates not in (None, "dmy", "mdy"):
        raise InputError(f"dates: expected dmy (day first) or mdy (month first), got '{dates}'.")
    return dates


def _is_crowd(path: Path) -> bool:
    return (path / manifest.MANIFEST_NAME).exists()


def _initialise(path: Path, plain_names: bool, disk: Disk) -> None:
    """Write the state of a crowd without anybody in it."""
    if _is_crowd(path):
        raise CrowdError(f"{path}: there is a crowd here already. Open it, or choose another folder.")
    # What a killed attempt left behind is ours.
    strangers = {entry.name.removesuffix(".tmp") for entry in path.iterdir()} - OWN_NAMES
    if strangers:
        raise CrowdError(f"{path}: expected a new or empty folder, got one with other files in it.")
    for name in FOLDERS:
        disk.make_folder(path / name)
    key_id = "" if plain_names else pseudonyms.fingerprint(pseudonyms.make_key(path, disk))
    manifest.save(manifest.Manifest(names="plain" if plain_names else "keyed", key_id=key_id), path, disk)


_TABLES: dict[str, dict[str, pl.DataType]] = {
    **{str(kind): columns for kind, columns in COLUMNS.items()},
    "quarantine": QUARANTINE_COLUMNS,
}
_SQL_TYPES = {pl.String(): "VARCHAR", pl.Int64(): "BIGINT", pl.Float64(): "DOUBLE", pl.UInt64(): "UBIGINT"}


def _silent(done: float, total: float | None, what: str) -> None:
    """Report to nobody."""
