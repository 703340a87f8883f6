"""Where new posts come from: a file that grows, standard input, or the crowd itself.

Lines go through the readers and the checks of an import, and what the crowd has already is left out, so that what is
watched is the crowd as it would be after importing the file.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl

from incrowd.crowd import Crowd
from incrowd.crowd.manifest import PARTS_FOLDER, load
from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.schema import check
from incrowd.crowd.sources import open_files
from incrowd.crowd.staging import add_hashes
from incrowd.errors import CrowdDamaged, CrowdError, InputError, UnreadableSource
from incrowd.measures.lines import FollowedPost
from incrowd.measures.prepared import naming

PIECE_BYTES = 16 * 2**20
ATTEMPTS = 3


@dataclass
class Skipped:
    """Lines that brought nothing, by reason; never their text."""

    reasons: Counter[str] = field(default_factory=Counter)

    def sentence(self) -> str:
        """Say how many and why."""
        return ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.reasons.items()))


class Newcomers:
    """Tells posts that the crowd does not have, by the rule of an import."""

    def __init__(self, crowd: Crowd) -> None:
        with crowd.connect() as database:
            rows = database.sql(
                "SELECT coalesce(id_hi, content_hi) AS hi FROM "
                + crowd.source_sql("posts", ("content_hi", "id_hi"))
            ).fetchnumpy()
        hashes = np.ma.getdata(rows["hi"]).astype(np.uint64) if len(rows["hi"]) else np.zeros(0, np.uint64)
        self._there = np.sort(hashes)
        self._seen: Counter[int] = Counter()

    def is_new(self, content: int, named: int | None) -> bool:
        """Say whether a post is new: by its own id if it has one, else by being one more of its content."""
        key = content if named is None else named
        self._seen[key] += 1
        at = np.uint64(key)
        there = int(np.searchsorted(self._there, at, "right") - np.searchsorted(self._there, at, "left"))
        allowed = there if named is None else (1 if there else 0)
        return self._seen[key] > allowed and (named is None or self._seen[key] == 1)


class GrowingFile:
    """JSON lines that somebody else appends to; only finished lines are read."""

    def __init__(self, path: Path, crowd: Crowd, format: str = "auto") -> None:
        self._path, self._crowd, self._format = path, crowd, format
        self._at = self._lines = 0
        self._newcomers = Newcomers(crowd)
        self.skipped = Skipped()

    def posts(self) -> Iterator[tuple[int, FollowedPost]]:
        """Yield what was appended since the last call: the number of its line, and the post."""
        for piece in self._pieces():
            count = piece.count(b"\n")
            yield from self._read(piece, self._lines)
            self._lines += count

    def _pieces(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._at:
                    raise InputError(
                        f"{self._path}: the file became shorter than what was read of it. Import what it held with "
                        "incrowd ingest, then start the watch with a new --state."
                    )
                file.seek(self._at)
                rest = b""
                while data := file.read(PIECE_BYTES):
                    rest += data
                    whole, rest = rest[: rest.rfind(b"\n") + 1], rest[rest.rfind(b"\n") + 1 :]
                    if whole:
                        self._at += len(whole)
                        yield whole
        except FileNotFoundError:
            raise UnreadableSource(f"{self._path}: no such file to follow; make it, even empty") from None

    def _read(self, piece: bytes, lines_before: int) -> Iterator[tuple[int, FollowedPost]]:
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            file.write(piece)
            file.flush()
            try:
                for rows in self._checked(Path(file.name)):
                    yield from self._new(rows, lines_before)
            except InputError:
                # A piece without one readable record; the next one may have some.
                self.skipped.reasons["unreadable"] += piece.count(b"\n")

    def _checked(self, piece: Path) -> Iterator[pl.DataFrame]:
        """Read, check, pseudonymise and hash rows as an import does."""
        (source,) = open_files([piece], self._format, ReadOptions(kind="posts"))
        names = naming(self._crowd.path)
        if names is None:
            raise CrowdError(
                f"{self._crowd.path}: the crowd's key was thrown away, so new posts have no owner here"
            )
        with self._crowd.connect() as database:
            for batch in source.batches(PIECE_BYTES):
                checked = check(batch.rows, "posts", now=int(time.time()))
                for rejects in (batch.rejects, checked.rejects):
                    self.skipped.reasons.update(rejects["reason"].to_list())
                named = checked.rows.with_columns(names.replace(checked.rows["user"]).alias("user"))
                yield add_hashes(database, named, "posts")

    def _new(self, rows: pl.DataFrame, lines_before: int) -> Iterator[tuple[int, FollowedPost]]:
        columns = ("row", "user", "community", "time", "text", "content_hi", "id_hi")
        for row, user, community, when, text, content, named in rows.select(columns).iter_rows():
            if self._newcomers.is_new(content, named):
                yield lines_before + row, FollowedPost(user, community, when, text)
            else:
                self.skipped.reasons["duplicate"] += 1


class CrowdFolder:
    """The crowd itself: what imports added since the last look."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd

    def look(self) -> tuple[Crowd, pl.DataFrame | None] | None:
        """Return the crowd's new state and the posts it brought, or None if it is unchanged.

        No posts: an import has put the tables together anew, and everything must be read again.
        """

        if load(self.crowd.path).data_hash == self.crowd.data_hash:
            return None
        before = {part.file for part in self.crowd.state.tables["posts"].parts}
        self.crowd = _opened(self.crowd.path)
        after = {part.file for part in self.crowd.state.tables["posts"].parts}
        if not before <= after:
            return self.crowd, None
        paths = [self.crowd.path / PARTS_FOLDER / name for name in sorted(after - before)]
        wanted = ["user", "community", "time", "text"]
        frames = [pl.read_parquet(path, columns=wanted).select(wanted) for path in paths]
        return self.crowd, pl.concat(frames) if frames else pl.DataFrame(
            schema=dict.fromkeys(wanted, pl.String)
        )


def _opened(path: Path) -> Crowd:
    """Open a crowd; an import that commits in this very moment takes old parts away, so try again."""
    for _ in range(ATTEMPTS):
        try:
            return Crowd(path)
        except CrowdDamaged:
            time.sleep(0.1)
    return Crowd(path)
