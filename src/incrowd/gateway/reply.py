"""One shape for every answer: what a client sees does not tell why there is nothing in it.

Answered, empty, denied and over budget have the same status, the same headers, a length from a short list
of sizes, and leave at the same time after the question arrived.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import shake_256
from math import ceil
from typing import Any

SMALLEST = 4096
"""Bytes of the smallest reply; larger ones double, so a length says at most log2(size / smallest) bits."""
HEADERS = {
    "content-type": "application/json",
    # no-transform: a proxy that compresses would turn the padding back into a hint.
    "cache-control": "no-store, no-transform",
    "x-content-type-options": "nosniff",
}


def padded(values: Sequence[Any] | Mapping[str, Sequence[Any]], *, key: bytes, seed: bytes) -> bytes:
    """Return an answer as JSON of one of the allowed sizes.

    The padding is pseudo-random under the gateway's key, so that it does not compress, and depends on the
    question alone, so that a repeated question gets the same bytes.

    Examples
    --------
    >>> len(padded([], key=b"k", seed=b"q")), len(padded(["Titanic"] * 50, key=b"k", seed=b"q"))
    (4096, 4096)
    """
    plain = dict(values) if isinstance(values, Mapping) else list(values)
    head = json.dumps({"values": plain, "padding": ""}, ensure_ascii=False)[:-2].encode()
    size = size_bucket(len(head) + 2)
    return head + _noise(key + seed, size - len(head) - 2) + b'"}'


def size_bucket(needed: int) -> int:
    """Return the smallest allowed length that fits."""
    size = SMALLEST
    while size < needed:
        size *= 2
    return size


def _noise(seed: bytes, length: int) -> bytes:
    return b64encode(shake_256(seed).digest(-(-length * 3 // 4) + 3))[:length]


@dataclass(frozen=True, kw_only=True)
class ReplyClock:
    """When replies leave: a fixed time after the question arrived, or the next multiple of it.

    The time a decision takes depends on the data, so nobody may see it. A decision that takes longer than
    the deadline waits for the next multiple; after the last one the reply is empty.
    """

    deadline: float
    multiples: int = 4

    @classmethod
    def within(cls, deadline: float, seconds: float) -> ReplyClock:
        """Return the clock that waits for decisions of up to so many seconds."""
        return cls(deadline=deadline, multiples=max(4, ceil(seconds / deadline)))

    @property
    def last(self) -> float:
        """Seconds after which a question is answered with nothing."""
        return self.deadline * self.multiples

    def due(self, taken: float) -> float:
        """Return how long after its arrival a question decided after `taken` seconds is answered."""
        for multiple in range(1, self.multiples + 1):
            if taken <= multiple * self.deadline:
                return multiple * self.deadline
        return self.last

    def kept(self, taken: float) -> str:
        """Name the deadline that was met, for the operator: first, later or missed."""
        if taken <= self.deadline:
            return "first"
        return "later" if taken <= self.last else "missed"
