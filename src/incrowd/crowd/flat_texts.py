"""Columns of texts as compiled loops take them: UTF-8 bytes end to end, and where each text begins."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]


def utf8(texts: pl.Series) -> tuple[Bytes, Longs]:
    """Return a column's bytes, free to be overwritten, and where each text begins, the last end included.

    >>> data, starts = utf8(pl.Series(["ab", None, "c"]))
    >>> bytes(data), starts.tolist()
    (b'abc', [0, 2, 2, 3])
    """
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(texts.str.len_bytes().fill_null(0).to_numpy(), out=starts[1:])
    data = texts.str.join().cast(pl.Binary).item() if len(texts) else b""
    return np.frombuffer(bytearray(data), np.uint8), starts


def series_of(data: Bytes, starts: Longs) -> pl.Series:
    """Return the texts that lie end to end in `data`; the reverse of :func:`utf8`."""
    places = pl.DataFrame({"start": starts[:-1], "size": np.diff(starts)})
    whole = pl.lit(
        pl.Series([data.tobytes()])
    ).first()  # a literal of many bytes would be copied for each text
    return places.select(whole.bin.slice(pl.col("start"), pl.col("size")).cast(pl.String)).to_series()
