"""The work behind :mod:`incrowd.text.counts`: posts in any order in, one sorted count matrix out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.errors import BudgetExceeded, SchemaError
from incrowd.text.fast import Tokeniser
from incrowd.text.filters import Dropped, Filters, reasons
from incrowd.text.options import TextOptions
from incrowd.text.row_table import RowTable
from incrowd.text.strings import Ints, Longs
from incrowd.text.tally import Tally

if TYPE_CHECKING:
    import scipy.sparse as sp

MIB = 2**20
LIBRARIES = 448 * MIB
"""What Python, the libraries and the posts at hand take, whatever the crowd's size."""
LEAST_MEMORY = 512 * MIB
IDENTITY = ["user", "community"]
_NOBODY = dict.fromkeys([*IDENTITY, "period"], pl.String)


@dataclass(frozen=True)
class Counts:
    """How often each identity used each token.

    Identities are sorted by community and user, tokens by code point, so that the same posts give the same
    matrix however they arrive.
    """

    matrix: sp.csr_matrix
    """Rows: identities; columns: tokens; no row and no column is empty."""
    identities: pl.DataFrame
    """user, community (and period, if asked for), and how many posts they wrote."""
    vocabulary: pl.Series
    dropped: pl.DataFrame
    """user, community, reason (:class:`~incrowd.text.filters.Dropped`)."""
    options_hash: str

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"Counts({rows:,} identities, {columns:,} tokens, {len(self.dropped):,} identities dropped)"


class Counting:
    """Counts tokens of identities, table by table, within a memory budget."""

    def __init__(
        self, options: TextOptions, period: pl.Expr | None, memory: int, folder: Path | None = None
    ) -> None:
        if memory < LEAST_MEMORY:
            least, got = LEAST_MEMORY // MIB, memory / MIB
            raise BudgetExceeded(f"memory: counting words needs at least {least} MiB, got {got:,.0f} MiB.")
        self._options = options
        self._period = period
        self._memory = memory
        self._tokeniser = Tokeniser(options)
        self._tally = Tally(memory - LIBRARIES, folder)
        self._identities = RowTable()
        self._posts: Longs = np.zeros(0, np.int64)
        self._tokens: Longs = np.zeros(0, np.int64)

    def add(self, posts: pl.DataFrame) -> None:
        """Count the posts of one table; rows without a user or a community are left out."""
        missing = [name for name in (*IDENTITY, "text") if name not in posts.columns]
        if missing:
            raise SchemaError(
                f"posts: expected the columns user, community and text, got {', '.join(posts.columns)}. "
                f"Rename what stands for: {', '.join(missing)}."
            )
        posts = posts.filter(pl.col("user").is_not_null() & pl.col("community").is_not_null())
        keys = (
            posts.select(IDENTITY) if self._period is None else posts.select(*IDENTITY, period=self._period)
        )
        rows = self._identities.numbers_of(keys)
        found = self._tokeniser.numbers(posts["text"])
        self._tally.add(rows, found.numbers, found.lengths)
        self._posts = _added(self._posts, rows, np.ones(len(rows), np.int64), len(self._identities))
        self._tokens = _added(self._tokens, rows, found.lengths, len(self._identities))
        self._check_vocabulary()

    def _check_vocabulary(self) -> None:
        if self._tokeniser.bytes_used > self._memory // 2:
            raise BudgetExceeded(
                f"memory: the distinct words alone take more than half of {self._memory / MIB:,.0f} MiB. "
                "Give more memory, or count fewer communities at a time."
            )

    def result(self, filters: Filters) -> Counts:
        """Return the counts of those who pass the filters; call it once, last."""
        everyone = self._identities.rows() if len(self._identities) else pl.DataFrame(schema=_NOBODY)
        everyone = everyone.with_columns(
            posts=pl.Series(self._posts), tokens=pl.Series(self._tokens), number=pl.int_range(pl.len())
        )
        owners = everyone
        if self._period is not None:
            owners = everyone.group_by(IDENTITY).agg(pl.col("posts", "tokens").sum())
        empty = pl.when(owners["tokens"] == 0).then(pl.lit(Dropped.EMPTY_PROFILE.value))
        why = reasons(owners, filters).fill_null(pl.select(empty).to_series())
        kept = everyone.filter(pl.col("tokens") > 0)
        if why.count():
            kept = kept.join(owners.filter(why.is_null()), on=IDENTITY, how="semi")
        kept = kept.sort("community", "user", *(["period"] if self._period is not None else []))
        row_places = _places(kept["number"].to_numpy(), len(everyone))
        tokens = self._tokeniser.vocabulary()
        seen = np.flatnonzero(self._tally.tokens_seen(row_places, len(tokens)))
        order = tokens.gather(seen).arg_sort().to_numpy()
        return Counts(
            matrix=self._tally.matrix(row_places, _places(seen[order], len(tokens))),
            identities=kept.drop("tokens", "number"),
            vocabulary=tokens.gather(seen[order]).rename("token"),
            dropped=dropped_table(owners, why),
            options_hash=self._options.hash,
        )


def dropped_table(owners: pl.DataFrame, why: pl.Series) -> pl.DataFrame:
    """Return those who have a reason to be dropped, in a fixed order."""
    table = owners.select(IDENTITY).with_columns(reason=why)
    return table.filter(pl.col("reason").is_not_null()).sort("community", "user")


def _added(totals: Longs, rows: Ints, amounts: Longs, size: int) -> Longs:
    """Return the totals by row, after adding amounts to some rows."""
    added = np.bincount(rows, weights=amounts, minlength=size).astype(np.int64)
    added[: len(totals)] += totals
    return added


def _places(members: npt.NDArray[np.int64], size: int) -> Longs:
    """Return, for each of `size` numbers, its place among the members; -1: it is none."""
    places = np.full(size, -1, np.int64)
    places[members] = np.arange(len(members))
    return places
