"""Turns private counts into publishable ones, so that neither a count nor a change of one points at a person.

Three rules, with k = ``ReleaseSpec.crowd`` (derivation in NOTES.md):

* an item is listed only if more than k people have it, and its count is told as a band at least k wide;
* what was told of an item is told again until at least k people more (or fewer) have it: releases mostly repeat
  themselves, and a change is about at least k people;
* where the lines lie is secret: each item's count is shifted by a secret 0..k-1 before it is banded, and the
  change that opens a band again is k plus a secret 0..k-1.

Even somebody who knows everybody else's profile gains at most 2/k from all releases together on whether one
person has one item (total variation distance), against certainty with exact counts.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.measures.microdata.definition import Floats, Ints
from incrowd.measures.microdata.spec import ReleaseSpec

STATE_SCHEMA: dict[str, pl.DataType] = {
    "item": pl.String(),
    "base": pl.Int64(),
    "shift": pl.Int64(),
    "step": pl.Int64(),
    "told": pl.Float64(),
}


@dataclass(frozen=True)
class ReleaseState:
    """What a provider keeps between releases, and keeps secret."""

    secret: bytes
    number: int
    """Of the last release; 0 before the first."""
    items: pl.DataFrame
    """Per item: its count when last told, its secret shift and step, and what was told (0: not listed)."""

    @classmethod
    def fresh(cls, secret: bytes | None = None) -> ReleaseState:
        """Start with nothing released. A given secret makes the releases repeatable (tests, studies)."""
        return cls(secret or secrets.token_bytes(32), 0, pl.DataFrame(schema=STATE_SCHEMA))

    def __repr__(self) -> str:
        return f"ReleaseState(number={self.number}, items={self.items.height:,}, secret=hidden)"


@dataclass(frozen=True)
class Bands:
    """The lines between published counts. Band b holds shifted counts from edges[b] up to edges[b + 1]."""

    edges: Ints
    people: Floats
    """What a band says: about so many people."""

    def tell(self, shifted: Ints) -> Floats:
        """Return what is said of shifted counts; 0 below the first line."""
        band = np.searchsorted(self.edges, shifted, side="right") - 1
        return np.where(band < 0, 0.0, self.people[np.maximum(band, 0)])


def make_bands(largest: int, threshold: int, spec: ReleaseSpec) -> Bands:
    """Draw the lines for counts up to `largest`; one lies where items turn from rare to popular."""
    if spec.literal:
        every = np.arange(1, largest + 2)
        return Bands(every, every.astype(np.float64))
    k = spec.crowd
    line = threshold + k // 2  # in shifted counts, which are (k - 1) / 2 too large on average
    edges = [line if 2 * k < line < 3 * k else 2 * k]
    while edges[-1] <= largest + k:
        following = max(edges[-1] + k, int(np.ceil(edges[-1] * spec.step)))
        # A band may be a little wider, never narrower, to end exactly on the line.
        edges.append(line if edges[-1] < line < following + k and line - edges[-1] >= k else following)
    lines = np.array(edges)
    people = np.sqrt(lines[:-1] * (lines[1:] - 1.0)) - (k - 1) / 2
    return Bands(lines[:-1], people.round(1))


def release_counts(
    counts: pl.DataFrame, state: ReleaseState, threshold: int, spec: ReleaseSpec
) -> tuple[pl.DataFrame, ReleaseState]:
    """Return the listed items with what is told of them, and what to keep secret for the next release.

    `counts` has columns item and people. Items that vanished count as zero people.
    """
    merged = counts.join(state.items, on="item", how="full", coalesce=True).sort("item")
    new = merged["base"].is_null().to_numpy()
    count, base, shift, step = (
        merged[name].fill_null(0).to_numpy().astype(np.int64) for name in ("people", "base", "shift", "step")
    )
    told = merged["told"].fill_null(0.0).to_numpy().copy()
    new_shift, new_step, next_step = _draws(state.secret, state.number + 1, 3 * len(count), spec).reshape(
        3, -1
    )
    shift[new], step[new] = new_shift[new], new_step[new]
    # Release by release nothing but a large enough change opens an item's band again.
    opened = np.ones(len(count), dtype=bool) if spec.literal else np.abs(count - base) >= spec.crowd + step
    bands = make_bands(int(count.max(initial=0)), threshold, spec)
    told[opened] = bands.tell((count + shift)[opened])
    base[opened], step[opened] = count[opened], next_step[opened]
    kept = pl.DataFrame(
        {"item": merged["item"], "base": base, "shift": shift, "step": step, "told": told},
        schema=STATE_SCHEMA,
    )
    listed = kept.filter(pl.col("told") > 0).select("item", people="told")
    return listed, ReleaseState(state.secret, state.number + 1, kept)


def _draws(secret: bytes, number: int, count: int, spec: ReleaseSpec) -> NDArray[np.int64]:
    """Return secret numbers 0..k-1 that nobody without the secret can predict."""
    if spec.literal:
        return np.zeros(count, dtype=np.int64)
    stream = hashlib.shake_256(secret + number.to_bytes(8, "big")).digest(8 * count)
    return (np.frombuffer(stream, dtype="<u8") % np.uint64(spec.crowd)).astype(np.int64)


def release_number_of(people: int, spec: ReleaseSpec) -> int:
    """Round a count of people in a large group down, so that one more or fewer rarely shows."""
    return people if spec.literal else people // spec.crowd * spec.crowd
