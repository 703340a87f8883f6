"""Short ways to read a whole source."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from incrowd.crowd.readers import Batch, ReadOptions, detect

DEFAULTS = ReadOptions()


def read(path: Path, options: ReadOptions = DEFAULTS, format: str = "auto") -> list[Batch]:
    return list(detect(path, format).read(path, options))


def rows(path: Path, options: ReadOptions = DEFAULTS, format: str = "auto") -> list[dict[str, object]]:
    """Return the rows of the table; where posts are is :func:`links`'s to tell."""
    return (
        pl.concat([batch.rows for batch in read(path, options, format)]).drop("link", strict=False).to_dicts()
    )


def links(path: Path, options: ReadOptions = DEFAULTS) -> list[str | None]:
    return pl.concat([batch.rows for batch in read(path, options)])["link"].to_list()


def rejects(path: Path, options: ReadOptions = DEFAULTS, format: str = "auto") -> dict[int, str]:
    return dict(pl.concat([batch.rejects for batch in read(path, options, format)]).iter_rows())


def outcome(path: Path, options: ReadOptions = DEFAULTS, format: str = "auto") -> tuple[object, ...]:
    """Return everything a source gives, without how it was cut into batches."""
    batches = read(path, options, format)
    return (
        pl.concat([batch.rows for batch in batches]).drop("link", strict=False).to_dicts(),
        sorted(pl.concat([batch.rejects for batch in batches]).iter_rows()),
        sum(batch.replaced for batch in batches),
        sum(batch.skipped for batch in batches),
        any(batch.incomplete for batch in batches),
    )
