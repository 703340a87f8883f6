"""CSV for spreadsheets, in which no cell can act as a formula."""

from __future__ import annotations

from pathlib import Path

import polars as pl

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
