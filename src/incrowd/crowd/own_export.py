"""One person's own export, read into memory: posts, items and attributes, and nobody else's; nothing is written."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import polars as pl

from incrowd.crowd.readers.base import Batch, ReadOptions, empty_rows
from incrowd.crowd.readers.export import OWNER
from incrowd.crowd.readers.rows import DateOrderNeeded
from incrowd.crowd.schema import COLUMNS, KINDS, MEANING, Kind, check
from incrowd.crowd.sources import FileSource, Paths, Source, open_files
from incrowd.crowd.staging import MISREAD, decided_dates
from incrowd.crowd.tables import IS_ADDRESS
from incrowd.errors import InputError, NotInCrowd, Undecided
from incrowd.wording import say_count

BATCH_BYTES = 16 * 2**20
SEVERAL_ACCOUNTS = "these files hold {accounts} accounts, and this answers about one."
NOBODY = "nobody of that name is in these files. Upper and lower case count."


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
    titles: tuple[str, ...] = ()
    """What files of a service are that gives people their own, such as "Mastodon archive"."""
    unread: str = ""
    """How many rows could not be read, and why; no word of them."""

    @property
    def account(self) -> tuple[str, tuple[str, ...]]:
        """Whose account it is, of which services: of another export with the same, it is a later one."""
        return self.name, self.titles

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
    skipped = replaced = 0
    reasons: Counter[str] = Counter()
    for source in sources:
        batches = own_batches(source, user)
        skipped += sum(batch.skipped for batch in batches)
        replaced += sum(batch.replaced for batch in batches)
        for kind, rows in _rows(batches, reasons):
            frames[kind] = pl.concat([frames[kind], rows])
    name = _account(frames, user, skipped)
    own = {
        kind: rows.with_columns(pl.col("user").fill_null(name))
        .filter(pl.col("user") == name)
        .unique([*COLUMNS[kind], NTH], keep="first", maintain_order=True)
        .drop("user", NTH)
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
        tuple(sorted({source.about.title for source in sources if source.about.whose == "own"})),
        _unread(reasons, replaced),
    )


NTH = "nth"
"""Which of the equal rows of its source a row is: what one file holds twice was said twice, what two hold, once."""
COLUMNS_OF: dict[Kind, pl.DataFrame] = {
    kind: empty_rows(kind).drop("row", "id").with_columns(pl.Series(NTH, [], pl.Int64)) for kind in KINDS
}


def own_batches(source: FileSource, user: str | None) -> list[Batch]:
    """Read a source of one's own; where it does not say whose it is, it is the named person's."""
    try:
        return _decided(source)
    except Undecided as question:
        if question.option != "user":
            raise
        # A table that does not say whose it is, is one's own.
        own = replace(source, options=replace(source.options, user=(user or OWNER).strip()))
        try:
            return _decided(own)
        except Undecided as again:
            # Whoever gave no name is not told that the name they gave is wrong.
            raise question if user is None and again.option == "user" else again from None


def left_out(skipped: int) -> str:
    """Say why an export that holds something may hold nothing to look at; nothing if nothing was left out."""
    if not skipped:
        return ""
    records = "1 record was" if skipped == 1 else f"{skipped:,} records were"
    return f" {records} left out, as no public words of yours: private posts, reposts or drafts."


def _unread(reasons: Mapping[str, int], replaced: int) -> str:
    misread = [reason for reason in MISREAD if reasons.get(reason)]
    told = []
    if misread:
        rows = say_count(sum(reasons[reason] for reason in misread), "row")
        why = ", ".join(f"{reasons[reason]:,}: {MEANING[reason]}" for reason in misread)
        told.append(f"{rows} could not be read ({why})")
    if replaced:
        rows = say_count(replaced, "row")
        told.append(f"in {rows} some letters could not be read: the file is not in UTF-8")
    return "; ".join(told)


def _rows(batches: Sequence[Batch], reasons: Counter[str]) -> list[tuple[Kind, pl.DataFrame]]:
    """Return a source's sound rows by kind, and count why others are not.

    Whoever exports their own account is no program, whatever its name.
    Rows of a source that names nobody have no user: they are those of whoever the other files name.
    """
    now, found = int(time.time()), []
    for kind in dict.fromkeys(batch.kind for batch in batches):
        rows = pl.concat([batch.rows for batch in batches if batch.kind == kind])
        checked = check(rows.with_columns(pl.col("user").fill_null(OWNER)), kind, now=now, allow_bots=True)
        for rejects in (checked.rejects, *(batch.rejects for batch in batches if batch.kind == kind)):
            reasons.update(rejects["reason"].to_list())
        sound = checked.rows
        if kind == "posts":
            again = pl.col("id").is_not_null() & ~pl.struct("user", "community", "id").is_first_distinct()
            sound = sound.filter(~again).with_columns(link=pl.when(IS_ADDRESS).then(pl.col("link")))
        nth = pl.int_range(pl.len(), dtype=pl.Int64).over(list(COLUMNS[kind]))
        found.append((kind, sound.with_columns(nth.alias(NTH)).select(COLUMNS_OF[kind].columns)))
    if all((rows["user"] == OWNER).all() for _, rows in found):
        return [(kind, rows.with_columns(user=pl.lit(None, pl.String))) for kind, rows in found]
    return found


def _decided(source: Source) -> list[Batch]:
    try:
        return list(source.batches(BATCH_BYTES))
    except DateOrderNeeded:
        return list(decided_dates(source, BATCH_BYTES).batches(BATCH_BYTES))


def _account(frames: Mapping[Kind, pl.DataFrame], user: str | None, skipped: int) -> str:
    """Return whose rows to keep, beside those of files that name nobody."""
    users = pl.concat([rows["user"] for rows in frames.values()])
    if users.is_empty():
        raise InputError(
            f"these files hold no posts, items or attributes.{left_out(skipped)} "
            "Give the export of your account, as you got it."
        )
    accounts = users.drop_nulls().unique()
    if user is not None:
        if len(accounts) and user.strip() not in accounts:
            raise NotInCrowd(NOBODY)
        return user.strip()
    if len(accounts) > 1:
        several = SEVERAL_ACCOUNTS.format(accounts=f"{len(accounts):,}")
        raise InputError(f"{several} Name yours with --user.")
    return str(accounts[0]) if len(accounts) else OWNER
