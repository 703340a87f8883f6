"""What the adversary sees of each identity, as one sparse row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl
    import scipy.sparse as sp


@dataclass(frozen=True, kw_only=True)
class Profiles:
    """Sparse rows with the identities they belong to."""

    matrix: sp.csr_matrix
    """One row an identity; rows sum to 1 where the model says so."""
    ids: pl.DataFrame
    """Who the rows are: columns user, community, posts, or whatever the caller brought."""
    vocabulary: Sequence[str]
    """What the columns are."""
    model: str
    dropped: dict[str, int] = field(default_factory=dict)
    """How many identities have no row, by reason."""

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def only(self, rows: Any) -> Profiles:
        """Return some of the profiles, chosen by row numbers or a mask."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return replace(self, matrix=self.matrix[chosen], ids=self.ids[chosen.tolist()])
