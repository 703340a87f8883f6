"""How an import shares out the memory it was given."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.errors import BudgetExceeded

MIB = 2**20
LIBRARIES = 160 * MIB
"""What Python and the libraries hold before the first row is read."""
LEAST = 512 * MIB
DATABASE_SHARE = 0.45
"""DuckDB may exceed its limit by a part of it, so it gets less than half of the rest."""
BATCHES_AT_ONCE = 72
"""Parsing, checking, hashing and writing a batch hold it in several forms at once."""
BUCKETS_AT_ONCE = 16
"""A bucket is held unsorted, sorted and being written."""
LEAST_BATCH, MOST_BATCH = 1 * MIB, 32 * MIB


@dataclass(frozen=True)
class Budget:
    """Bytes for each step."""

    database: int
    """The memory limit of DuckDB."""
    batch: int
    """How much of a source is read at a time."""
    bucket: int
    """How much is sorted at a time."""

    @classmethod
    def of(cls, memory: int) -> Budget:
        """Share out a number of bytes; too few are refused rather than exceeded."""
        if memory < LEAST:
            raise BudgetExceeded(
                f"--memory: an import needs at least {LEAST // MIB} MiB, got {memory / MIB:,.0f} MiB."
            )
        free = memory - LIBRARIES
        batch = min(MOST_BATCH, max(LEAST_BATCH, free // BATCHES_AT_ONCE))
        return cls(database=int(free * DATABASE_SHARE), batch=batch, bucket=free // BUCKETS_AT_ONCE)
