"""What every synthetic table can do: come in chunks, come whole, be written, become a crowd."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import polars as pl

from incrowd.crowd.schema import COLUMNS, Kind
from incrowd.errors import InputError

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

CHUNK = 65_536


class SyntheticTable(ABC):
    """A table that is made as it is read. The rows depend on options and seed, never on the chunks."""

    kind: ClassVar[Kind]

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many rows there are; known without making them."""

    @abstractmethod
    def frames(self, chunk: int = CHUNK) -> Iterator[pl.DataFrame]:
        """Yield the rows in order, about `chunk` at a time."""

    def to_frame(self) -> pl.DataFrame:
        """Return all rows at once."""
        return pl.concat([pl.DataFrame(schema=COLUMNS[self.kind]), *self.frames()])

    def write(self, path: Path | str) -> Path:
        """Write a file as the real readers expect it; the name's ending decides the format."""
        from incrowd.crowd.synthetic.write import write

        return write(self, Path(path))

    def crowd(self, path: Path | str | None = None, *, plain_names: bool = True) -> Crowd:
        """Import the table into a crowd through the real readers; without a path, into a temporary one."""
        from incrowd.crowd.synthetic.write import as_crowd

        return as_crowd([self], path, plain_names=plain_names)


def require(condition: bool, what: str, expected: str, got: object) -> None:
    """Refuse an option that cannot be met."""
    if not condition:
        raise InputError(f"synthetic {what}: expected {expected}, got {got}. Change that option.")
