"""One person's own export, read into memory: posts, items and attributes, and nobody else's; nothing is written."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import polars as pl

from incrowd.crowd.links import IS_ADDRESS
from incrowd.crowd.readers.base import ReadOptions, empty_rows
from incrowd.crowd.readers.export import OWNER
from incrowd.crowd.readers.rows import DateOrderNeeded
from incrowd.crowd.schema import COLUMNS, KINDS, Kind, check
from incrowd.crowd.sources import Paths, Source, open_files
from incrowd.crowd.staging import decided_dates
from incrowd.errors import InputError, NotInCrowd

BATCH_BYTES = 16 * 2**20


@dataclass(frozen=True, eq=False)
class OwnExport:
    """What the files of one account hold, as an import would keep it."""

    posts: pl.DataFrame = field(repr=False)
    """Columns number, community, time, text, link; numbered by community, then time, then text."""
    items: frozenset[str] = field(repr=False)
    attributes: Mapping[str, str] = field(repr=False)
    name: str = field(repr=False)
    """The account's name, as the files have it."""
    data_hash: str
    """Of the files' bytes."""

    @property
    def times(self) -> pl.Series:
        """When each post was written, UTC seconds."""
        return self.posts["time"]


def read_export(paths: Paths, user: str | None = None, *, format: str = "auto") -> OwnExport:
    """Read one account from the files of an export, in any format that an import reads.

    Files that hold several accounts are refused until one of them is named: this is about oneself.
    """
    sources = open_files(paths, format, ReadOptions(community=None))
    frames = {kind: COLUMNS_OF[kind] for kind in KINDS}
    for source in sources:
        for kind, rows in _rows(source):
            frames[kind] = pl.concat([frames[kind], rows])
    name = _account(frames, user)
    own = {
        kind: rows.filter(pl.col("user") == name).unique(list(COLUMNS[kind])).drop("user")
        for kind, rows in frames.items()
    }
    posts = own["posts"].sort("community", "time", "text", nulls_last=True).with_row_index("number")
    values = own["attributes"].group_by("attribute").agg(pl.col("value").min()).sort("attribute")
    digest = blake2b("".join(source.content_hash for source in sources).encode(), digest_size=16)
    return OwnExport(
        posts.with_columns(pl.col("number").cast(pl.Int64)),
        frozenset(own["items"]["item"].to_list()),
        dict(values.iter_rows()),
        name,
        digest.hexdigest(),
    )


COLUMNS_OF: dict[Kind, pl.DataFrame] = {kind: empty_rows(kind).drop("row", "id") for kind in KINDS}


def _rows(source: Source) -> list[tuple[Kind, pl.DataFrame]]:
    """Return a source's sound rows; whoever exports their own account is no program, whatever its name."""
    try:
        batches = list(source.batches(BATCH_BYTES))
    except DateOrderNeeded:
        batches = list(decided_dates(source, BATCH_BYTES).batches(BATCH_BYTES))
    found = []
    for batch in batches:
        named = batch.rows.with_columns(pl.col("user").fill_null(OWNER))
        sound = check(named, batch.kind, now=int(time.time()), allow_bots=True).rows
        if batch.kind == "posts":
            sound = sound.with_columns(link=pl.when(IS_ADDRESS).then(pl.col("link")))
        found.append((batch.kind, sound.select(*COLUMNS_OF[batch.kind].columns)))
    return found


def _account(frames: Mapping[Kind, pl.DataFrame], user: str | None) -> str:
    """Return whose rows to keep."""
    accounts = pl.concat([rows["user"] for rows in frames.values()]).unique()
    if accounts.is_empty():
        raise InputError(
            "these files hold no posts, items or attributes. Give the export of your account, as you got it."
        )
    if user is not None:
        if user.strip() not in accounts:
            raise NotInCrowd("nobody of that name is in these files. Upper and lower case count.")
        return user.strip()
    if len(accounts) > 1:
        raise InputError(
            f"these files hold {len(accounts):,} accounts, and this answers about one. Name yours with --user."
        )
    return str(accounts[0])
