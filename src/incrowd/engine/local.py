"""The cores of this machine."""

from __future__ import annotations

from typing import Self

from incrowd.distances.all_pairs import Threads


class Local(Threads):
    """Threads of this process: matrices are shared, nothing is copied. The default everywhere."""

    def close(self) -> None:
        """Nothing is left running."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
