"""Secret amounts that are always the same for the same thing: asking again averages nothing out."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b


class Noise:
    """Draws whole numbers from 0 to `amount`, decided by a key and by what the draw is about.

    An amount A moves a threshold so that one person more or less is on the other side of it with a
    probability of at most 1/(A + 1).
    """

    def __init__(self, key: bytes, amount: int) -> None:
        self._key = key
        self._amount = amount

    def __repr__(self) -> str:
        return f"Noise(0..{self._amount})"

    def draw(self, about: str, *parts: bytes | str | int, most: int | None = None) -> int:
        """Return the amount for one purpose and its particulars; `most` takes the place of the usual amount."""
        return int.from_bytes(self._hash(about, parts)[:8], "big") % (
            (self._amount if most is None else most) + 1
        )

    def order(self, about: str, values: Sequence[str]) -> list[str]:
        """Sort values in a way that nobody without the key can foresee and that says nothing about the data."""
        return sorted(values, key=lambda value: self._hash(about, (value,)))

    def _hash(self, about: str, parts: Sequence[bytes | str | int]) -> bytes:
        made = blake2b(key=self._key, digest_size=16)
        for part in (about, *parts):
            plain = part if isinstance(part, bytes) else str(part).encode("utf-8", "surrogatepass")
            made.update(len(plain).to_bytes(8, "big") + plain)  # lengths keep parts apart
        return made.digest()
