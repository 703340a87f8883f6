"""Which attributes count and how their values are read, before anybody believes anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from incrowd.measures.belief.bands import HowToBand, banded
from incrowd.measures.belief.space import HIDDEN, Space
from incrowd.measures.belief.table import AttributeTable


@dataclass(frozen=True, kw_only=True)
class TableChoices:
    """Numbers in bands, attributes to leave out, and values that stand for "not given"."""

    bands: Mapping[str, HowToBand] = field(default_factory=dict)
    ignore: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def apply(self, table: AttributeTable) -> AttributeTable:
        """Return the table as chosen."""
        return banded(_known(_without(table, self.ignore), self.unknown), self.bands)


def _without(table: AttributeTable, names: tuple[str, ...]) -> AttributeTable:
    gone = {table.space.place(name) for name in names}
    kept = [place for place in range(len(table.space.attributes)) if place not in gone]
    space = Space(
        tuple(table.space.attributes[place] for place in kept),
        tuple(table.space.values[place] for place in kept),
    )
    return replace(table, space=space, codes=table.codes[:, kept])


def _known(table: AttributeTable, unknown: tuple[str, ...]) -> AttributeTable:
    """Take values that mean "unknown" away from every attribute that has others."""
    codes, values = table.codes.copy(), list(table.space.values)
    for place, old in enumerate(values):
        kept = tuple(value for value in old if value not in unknown)
        new = np.array([kept.index(value) if value in kept else HIDDEN for value in old], dtype=np.int32)
        if kept and len(kept) < len(old):
            given = codes[:, place] != HIDDEN
            codes[given, place] = new[codes[given, place]]
            values[place] = kept
    return replace(table, space=Space(table.space.attributes, tuple(values)), codes=codes)
