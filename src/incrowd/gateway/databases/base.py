"""What the gateway asks of a database, whichever it is.

The source is only ever read, and only while a snapshot is taken: the named tables and columns are copied
into tables of the gateway's own, under a number. Queries see these copies alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.gateway.policy import DatabasePolicy
from incrowd.gateway.predicate import Predicate

Numbers = NDArray[np.int32]


class Database(Protocol):
    """A source of data and a place for its snapshots."""

    def open(self, state: Path, label: str, seconds: float) -> None:
        """Get ready: `state` and `label` say where snapshots live, queries may take `seconds`."""

    def snapshots(self) -> list[int]:
        """Return the numbers of the complete snapshots, oldest first."""

    def take(self, number: int, policy: DatabasePolicy, created_before: datetime | None) -> None:
        """Copy the source as it is now, all tables at one moment; accounts made later are left out."""

    def drop(self, number: int) -> None:
        """Forget a snapshot's tables."""

    def people(self) -> int:
        """How many people were ever seen. Each keeps one number from 0 on through all snapshots."""

    def members(self, number: int, where: Predicate) -> Numbers:
        """Return the numbers of the people for whom a checked condition holds, in rising order."""

    def sizes(self, number: int, filter: str) -> NDArray[np.int64]:
        """Return how many people share each value of a filter, in no order; for the provider's report."""

    def holders(self, number: int, attribute: str) -> Iterator[tuple[str, Numbers]]:
        """Yield each value of an attribute with the numbers of those who list it."""

    def erase(self) -> None:
        """Remove everything of the gateway's own, for one that was opened only to try."""

    def close(self) -> None:
        """Let go of everything."""
