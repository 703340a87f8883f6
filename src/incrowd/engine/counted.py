"""From the Parquet files of :func:`~incrowd.engine.count.count_files` to the counts that profiles are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from scipy import sparse

from incrowd.engine.count import IDENTITY
from incrowd.text.counting import Counts, dropped_table
from incrowd.text.filters import Dropped, Filters, reasons
from incrowd.text.options import TextOptions


def read_counts(
    folder: Path | str, text: TextOptions | None = None, filters: Filters | None = None
) -> Counts:
    """Return what `count_tokens` would for the posts of all files together; `text` as given to `count_files`."""
    people = pl.read_parquet(Path(folder) / "identities.parquet")
    words = pl.read_parquet(Path(folder) / "words.parquet")
    why = _why_dropped(people, words, filters or Filters())
    kept = people.filter(why.is_null()).sort("community", "user")
    said = words.join(kept.select(IDENTITY).with_row_index("row"), on=IDENTITY)
    vocabulary = said["word"].unique().sort().rename("token")
    column = pl.DataFrame({"word": vocabulary}).with_row_index("column")
    said = said.join(column, on="word").sort("row", "column")
    starts = np.searchsorted(said["row"].to_numpy(), np.arange(len(kept) + 1))
    parts = (said["count"].to_numpy().astype(np.int32), said["column"].to_numpy().astype(np.int32), starts)
    return Counts(
        matrix=sparse.csr_matrix(parts, shape=(len(kept), len(vocabulary))),
        identities=kept,
        vocabulary=vocabulary,
        dropped=dropped_table(people, why),
        options_hash=(text or TextOptions()).hash,
    )


def _why_dropped(people: pl.DataFrame, words: pl.DataFrame, filters: Filters) -> pl.Series:
    speakers = words.select(IDENTITY).unique().with_columns(speaks=pl.lit(True))
    speaks = people.join(speakers, on=IDENTITY, how="left", maintain_order="left")["speaks"]
    silent = pl.when(speaks.is_null()).then(pl.lit(Dropped.EMPTY_PROFILE.value))
    return reasons(people, filters).fill_null(pl.select(silent).to_series())
