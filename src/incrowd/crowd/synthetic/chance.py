"""Chance by number: draw *i* of a named stream depends on the seed, the name and *i* alone.

A usual random generator hands out draws in order, so what comes out depends on how the work was cut. Here
every draw is a hash of its own index (the finaliser of SplitMix64, Steele, Lea & Flood 2014). Chunks of any
size, in any order, therefore give the same bytes, and a row can be made without the rows before it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from incrowd.arrays import Floats, Ints

Array = npt.NDArray[Any]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
BISECTIONS = 100


def stream(seed: int, name: str) -> np.uint64:
    """Return the key of one named stream of draws."""
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def bits(key: np.uint64, index: Array) -> npt.NDArray[np.uint64]:
    """Return 64 random bits for each index."""
    x = np.array(index, dtype=np.uint64, ndmin=1)
    x *= GOLDEN
    x += key
    x ^= x >> np.uint64(30)
    x *= MIX_1
    x ^= x >> np.uint64(27)
    x *= MIX_2
    x ^= x >> np.uint64(31)
    return x


def uniform(key: np.uint64, index: Array) -> Floats:
    """Return a number in [0, 1) for each index."""
    return np.asarray((bits(key, index) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)


def integers(key: np.uint64, index: Array, below: int) -> Ints:
    """Return a whole number in [0, below) for each index."""
    return np.minimum((uniform(key, index) * below).astype(np.int64), below - 1)


def normal(key: np.uint64, index: Array) -> Floats:
    """Return a standard normal number for each index (Box and Muller)."""
    doubled = np.asarray(index, dtype=np.uint64) * np.uint64(2)
    radius = np.sqrt(-2.0 * np.log1p(-uniform(key, doubled)))
    return radius * np.cos(2.0 * np.pi * uniform(key, doubled + np.uint64(1)))


def zipf(count: int, exponent: float, shift: float = 0.0) -> Floats:
    """Return the weights 1/(rank + shift)^exponent of `count` ranks, adding up to 1 (Zipf, Mandelbrot)."""
    weights = (np.arange(1, count + 1) + shift) ** -exponent
    return np.asarray(weights / weights.sum())


def apportion(weights: Floats, total: int, *, low: int = 0, high: int | None = None) -> Ints:
    """Split `total` into whole shares in proportion to the weights, each between `low` and `high`.

    The shares add up to `total` exactly; the largest remainders are rounded up.
    """
    top = float(total if high is None else high)
    if not low * len(weights) <= total <= top * len(weights):
        raise ValueError(f"{total} does not split into {len(weights)} shares between {low} and {top:g}")
    ideal = np.clip(weights * _scale(weights, total, low, top), low, top)
    shares = np.floor(ideal)
    short = int(total - shares.sum())
    room = np.where(shares < top, ideal - shares, -1.0)
    shares[np.argsort(-room, kind="stable")[:short]] += 1
    return shares.astype(np.int64)


def _scale(weights: Floats, total: int, low: int, top: float) -> float:
    """Find the factor with which the clipped weights add up to `total`, from below."""
    small, large = 0.0, top / float(weights.min())
    for _ in range(BISECTIONS):
        middle = (small + large) / 2
        fits = np.clip(weights * middle, low, top).sum() <= total
        small, large = (middle, large) if fits else (small, middle)
    return small


def lookup_table(weights: Floats) -> npt.NDArray[np.int32]:
    """Return a table in which entry *i* appears in proportion to its weight: one random read is one draw.

    Probabilities are rounded to the table's size, at least 16 places an entry; nothing becomes impossible.
    """
    size = max(2**12, 1 << (16 * len(weights) - 1).bit_length())
    return np.repeat(np.arange(len(weights), dtype=np.int32), apportion(weights, size, low=1))


def interleave(position: Ints, count: int) -> Ints:
    """Send each position in [0, count) to another one, all distinct, neighbours far apart.

    Rows made person by person then come out mixed, as they do in a real dump.
    """
    step = max(1, int(count * 0.6180339887498949))
    while np.gcd(step, count) != 1:
        step += 1
    return np.asarray(position * step % count)
