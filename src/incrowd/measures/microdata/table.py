"""Who has which item, as sparse rows."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from incrowd.crowd import Crowd
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.microdata.spec import Matching, ProfileFilter
from incrowd.measures.prepared import PreparedCrowd

SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class ItemTable:
    """A crowd's items: one row per person, one column per item, entries in canonical order."""

    matrix: sparse.csr_matrix
    users: pl.Series
    items: pl.Series
    ratings: NDArray[np.float32]
    """Aligned with the matrix's entries; NaN where there is none."""
    days: NDArray[np.float32]
    data_hash: str | None = None
    lengths: NDArray[np.int64] | None = None
    """How many items each person has in all, where the table holds only some of them."""

    def __repr__(self) -> str:
        people, items = self.matrix.shape
        return f"ItemTable({people:,} people, {items:,} items, {self.matrix.nnz:,} entries)"

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many of the items here each person has."""
        return np.asarray(np.diff(self.matrix.indptr), dtype=np.int64)

    @property
    def list_lengths(self) -> NDArray[np.int64]:
        """How many items each person has in all."""
        return self.sizes if self.lengths is None else self.lengths

    @property
    def popularity(self) -> NDArray[np.int64]:
        """How many people have each item."""
        return np.bincount(self.matrix.indices, minlength=self.matrix.shape[1]).astype(np.int64)

    def row_of(self, user: str) -> int:
        """Return a person's row."""
        found = self.users.index_of(user)
        if found is None:
            raise NotInCrowd(
                "the person asked about has no profile of the size asked for among the crowd's items"
            )
        return int(found)

    def profile(self, row: int) -> NDArray[np.int32]:
        """Return the items of one row, as column numbers."""
        start, stop = self.matrix.indptr[row : row + 2]
        return np.asarray(self.matrix.indices[start:stop], dtype=np.int32)

    def without(self, users: Collection[str]) -> ItemTable:
        """Return all but some people (by id)."""
        gone = self.users.is_in(list(users)).to_numpy()
        return restrict(self, np.flatnonzero(~gone)) if gone.any() else self

    def only_items(self, columns: NDArray[np.int32]) -> ItemTable:
        """Return the same people with some of the items: enough for questions about somebody who has no others."""
        keep = np.zeros(self.matrix.shape[1], bool)
        keep[columns] = True
        number = np.cumsum(keep, dtype=np.int32) - 1
        kept = keep[self.matrix.indices]
        starts = np.concatenate([[0], np.cumsum(kept)])[self.matrix.indptr]
        parts = (self.matrix.data[kept], number[self.matrix.indices[kept]], starts)
        matrix = sparse.csr_matrix(parts, shape=(self.matrix.shape[0], int(keep.sum())))
        items = self.items.gather(np.flatnonzero(keep).tolist())
        marks = self.ratings[kept], self.days[kept]
        return ItemTable(matrix, self.users, items, *marks, self.data_hash, self.list_lengths)

    def marks(self, matching: Matching) -> tuple[NDArray[np.float32] | None, tuple[float, ...]]:
        """Return what has to agree besides the item, and how closely; None if nothing has to."""
        wanted = [(self.ratings, matching.rating_within), (self.days, matching.days_within)]
        used = [(values, within) for values, within in wanted if within is not None]
        if not used:
            return None, ()
        return np.stack([values for values, _ in used]), tuple(within for _, within in used)

    def has(self, matching: Matching) -> bool:
        """Say whether the crowd holds the ratings or dates this adversary needs."""
        marks, _ = self.marks(matching)
        return marks is None or not np.isnan(marks).all(axis=1).any()


def item_table(
    source: Crowd | pl.DataFrame | pl.LazyFrame, profiles: ProfileFilter | None = None
) -> ItemTable:
    """Read a crowd's items (or a frame with user, item, and perhaps value and time) into rows.

    People with fewer or more items than `profiles` allows are left out; None keeps everybody. Names become
    numbers while they are read, so that a row takes a few bytes whatever the names. Of repeated pairs the first
    in time counts.
    """
    frame, data_hash = _rows(source)
    if profiles is not None:
        sizes = frame.group_by("user").agg(pl.col("item").n_unique().alias("size"))
        kept = sizes.filter(pl.col("size").is_between(profiles.fewest, profiles.most)).select("user")
        frame = frame.join(kept, on="user", how="semi")
    users, items = _names(frame, "user"), _names(frame, "item")
    day = (pl.col("time") / SECONDS_A_DAY).cast(pl.Float32).fill_null(float("nan"))
    coded = frame.select(
        _code("user", users),
        _code("item", items),
        pl.col("value").cast(pl.Float32).fill_null(float("nan")),
        day=day,
    )
    rows = (
        coded.collect(engine="streaming").sort("user", "item", "day").unique(["user", "item"], keep="first")
    )
    rows = rows.sort("user", "item")
    starts = np.searchsorted(rows["user"].to_numpy(), np.arange(len(users) + 1))
    columns = rows["item"].to_numpy().astype(np.int32)
    ones = np.ones(len(columns), dtype=np.int8)
    matrix = sparse.csr_matrix((ones, columns, starts), shape=(len(users), len(items)))
    return ItemTable(matrix, users, items, rows["value"].to_numpy(), rows["day"].to_numpy(), data_hash)


def kept_item_table(crowd: PreparedCrowd) -> ItemTable:
    """Read a crowd's items once; afterwards the rows come from its cache."""

    def make() -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        table = item_table(crowd.crowd())
        names = {name: json.dumps(getattr(table, name).to_list()).encode() for name in ("users", "items")}
        return {
            "starts": table.matrix.indptr,
            "columns": table.matrix.indices,
            "ratings": table.ratings,
            "days": table.days,
            **{name: np.frombuffer(text, np.uint8) for name, text in names.items()},
        }, {}

    kept, _ = crowd.arrays("items", {}, make)
    users, items = (
        pl.Series(column, json.loads(kept[name].tobytes()), pl.String)
        for column, name in (("user", "users"), ("item", "items"))
    )
    parts = np.ones(len(kept["columns"]), np.int8), kept["columns"], kept["starts"]
    matrix = sparse.csr_matrix(parts, shape=(len(users), len(items)))
    return ItemTable(matrix, users, items, kept["ratings"], kept["days"], crowd.data_hash)


def _names(frame: pl.LazyFrame, column: str) -> pl.Series:
    return frame.select(pl.col(column).unique()).collect(engine="streaming")[column].sort()


def _code(column: str, names: pl.Series) -> pl.Expr:
    """Turn names into their places in the sorted list of names."""
    return pl.col(column).cast(pl.Enum(names)).to_physical().cast(pl.UInt32)


def restrict(table: ItemTable, rows: NDArray[np.int64]) -> ItemTable:
    """Return the table of some of the people; items nobody of them has are gone."""
    part = table.matrix[rows]
    used = np.unique(part.indices)
    entries = entries_of(table.matrix, rows)
    columns = np.searchsorted(used, part.indices).astype(np.int32)
    matrix = sparse.csr_matrix((part.data, columns, part.indptr), shape=(len(rows), len(used)))
    names = table.users.gather(rows.tolist()), table.items.gather(used.tolist())
    return ItemTable(matrix, *names, table.ratings[entries], table.days[entries], table.data_hash)


def entries_of(matrix: sparse.csr_matrix, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the given rows' entries in the table."""
    starts, sizes = matrix.indptr[rows], np.diff(matrix.indptr)[rows]
    first = np.repeat(starts - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes)
    return np.asarray(first + np.arange(int(sizes.sum())), dtype=np.int64)


def _rows(source: Crowd | pl.DataFrame | pl.LazyFrame) -> tuple[pl.LazyFrame, str | None]:
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        frame, data_hash = source.lazy(), None
    else:
        frame, data_hash = source.items(), source.data_hash
    names = frame.collect_schema().names()
    for name in ("user", "item"):
        if name not in names:
            raise InputError(f"items: expected a column '{name}', got {', '.join(names)}")
    kinds = {"user": pl.String, "item": pl.String, "value": pl.Float64, "time": pl.Int64}
    columns = [
        (pl.col(name) if name in names else pl.lit(None).alias(name)).cast(kind)
        for name, kind in kinds.items()
    ]
    return frame.select(columns), data_hash


def require_people(table: ItemTable, fewest: int = 2) -> None:
    """Refuse a crowd in which nobody can hide."""
    people = table.matrix.shape[0]
    if people < fewest:
        raise InputError(
            f"items: expected at least {fewest} people with profiles of the size asked for, got {people}. "
            "Import items first (incrowd ingest --kind items), or allow smaller profiles."
        )
