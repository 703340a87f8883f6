"""Everybody's attributes are the same read from the rows and from the crowd's cache."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from incrowd.crowd import Crowd
from incrowd.profiles.attributes import attribute_table, from_long


def test_the_kept_table_is_the_table_and_follows_the_crowd(tmp_path: Path) -> None:
    crowd = Crowd.create(tmp_path / "crowd", plain_names=True)
    some = [("b\nc", "town", "Ä, b"), ("a", "town", "Y"), ("b\nc", "age", "34"), ("a", "town", "X")]
    for more in (some, [("ä", "faith", "sun")]):
        crowd.add_frame(pl.DataFrame(more, ["user", "attribute", "value"], orient="row"), "attributes")
        read = from_long(crowd.attributes().collect(), crowd.data_hash)
        for _ in range(2):  # made, then from the cache
            attribute_table.cache_clear()
            kept = attribute_table(crowd)
            assert kept.space == read.space
            assert (kept.data_hash, kept.several) == (read.data_hash, read.several)
            np.testing.assert_array_equal(kept.codes, read.codes)
            np.testing.assert_array_equal(kept.users, read.users)
            assert kept.of(kept.row("a")) == {"town": "X"}
