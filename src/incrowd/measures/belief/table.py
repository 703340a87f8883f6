"""People's attributes as a table of codes: one row a person, one column an attribute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.belief.space import HIDDEN, Ints, Space

if TYPE_CHECKING:
    import polars as pl

    from incrowd.crowd import Crowd


@dataclass(frozen=True, eq=False)
class AttributeTable:
    """Everybody's attributes. A person who gave two values of an attribute counts with the first in order."""

    space: Space
    codes: NDArray[np.int32]
    """(people, attributes); HIDDEN where a person gave no value."""
    users: NDArray[np.object_]
    """Sorted ids, one a row."""
    data_hash: str
    several: int = 0
    """Values set aside because the same person gave another one of the same attribute."""

    def __repr__(self) -> str:
        return f"AttributeTable({len(self.codes):,} people, {len(self.space.attributes)} attributes)"

    def row(self, user: str) -> int:
        """Return a person's row."""
        place = int(np.searchsorted(self.users, user))
        if place == len(self.users) or self.users[place] != user:
            raise NotInCrowd("this person has no attributes in the crowd; import some with --kind attributes")
        return place

    def of(self, row: int) -> dict[str, str]:
        """Return one person's values by attribute."""
        found = np.flatnonzero(self.codes[row] != HIDDEN)
        return {
            self.space.attributes[place]: str(self.space.values[place][self.codes[row, place]])
            for place in found
        }

    def only(self, rows: Ints) -> AttributeTable:
        """Return the table of some people over the same space."""
        return AttributeTable(self.space, self.codes[rows], self.users[rows], self.data_hash, self.several)


def attribute_table(crowd: Crowd) -> AttributeTable:
    """Read everybody's attributes."""
    frame = crowd.attributes().collect()
    if frame.is_empty():
        raise InputError(
            f"{crowd.path}: this crowd holds no attributes. Add some: incrowd ingest FILE --kind attributes"
        )
    return from_long(frame, crowd.data_hash)


def from_long(frame: pl.DataFrame, data_hash: str = "") -> AttributeTable:
    """Turn rows (user, attribute, value) into a table."""
    import polars as pl

    once = frame.group_by("user", "attribute").agg(pl.col("value").min())
    rows = once.select(
        person=pl.col("user").rank("dense").cast(pl.Int64) - 1,
        place=pl.col("attribute").rank("dense").cast(pl.Int64) - 1,
        code=pl.col("value").rank("dense").over("attribute").cast(pl.Int32) - 1,
    )
    users, names = once["user"].unique().sort(), once["attribute"].unique().sort()
    codes = np.full((len(users), len(names)), HIDDEN, dtype=np.int32)
    codes[rows["person"].to_numpy(), rows["place"].to_numpy()] = rows["code"].to_numpy()
    values = (
        once.group_by("attribute").agg(pl.col("value").unique().sort()).sort("attribute")["value"].to_list()
    )
    space = Space(tuple(names.to_list()), tuple(tuple(one) for one in values))
    return AttributeTable(space, codes, users.to_numpy(), data_hash, len(frame.unique()) - len(once))
