"""People's attributes: which there are, which values they take, and what somebody saw of people, as arrays of codes.

A *space* names attributes and values; a *table* holds everybody's values, one row per person, one column per attribute;
*evidence* is what was seen of some people. Numbers can be read in bands: an age of 34 among 18, 25, 35 is
"25 to under 35". A band holds its lower edge and not its upper one. Numbers are compared as exact fractions, never as
floating-point numbers, so 24.99999999999999999 stays below 25. What is no number keeps its own value.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from difflib import get_close_matches
from fractions import Fraction
from functools import cached_property
from math import floor
from threading import Lock
from typing import Any

import numpy as np
import polars as pl
from cachetools import LRUCache, cached
from numpy.typing import NDArray

from incrowd.arrays import Floats, Ints
from incrowd.crowd import Crowd
from incrowd.crowd.array_cache import cached_arrays
from incrowd.errors import InputError, NotInCrowd

HIDDEN = -1
"""The code of an attribute that was not shown."""


@dataclass(frozen=True)
class AttributeSpace:
    """Attributes with their values, in a fixed order: a value is known by its place."""

    attributes: tuple[str, ...]
    values: tuple[tuple[str | None, ...], ...]

    @classmethod
    def of(cls, values: Mapping[str, Sequence[str | None]]) -> AttributeSpace:
        """Make a space from attribute: values."""
        return cls(tuple(values), tuple(tuple(one) for one in values.values()))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.attributes)}

    @cached_property
    def _codes(self) -> tuple[dict[str | None, int], ...]:
        return tuple({value: code for code, value in enumerate(one)} for one in self.values)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many values each attribute takes."""
        return tuple(len(one) for one in self.values)

    def has(self, attribute: str) -> bool:
        """Say whether there is such an attribute."""
        return attribute in self._places

    def place(self, attribute: str) -> int:
        """Return an attribute's place."""
        if attribute not in self._places:
            some = ", ".join(self.attributes[:12]) + (", …" if len(self.attributes) > 12 else "")
            raise NotInCrowd(f"attribute '{attribute}' is not in this crowd; it has: {some}")
        return self._places[attribute]

    def code(self, attribute: str, value: str | None) -> int:
        """Return a value's place among its attribute's values."""
        codes = self._codes[self.place(attribute)]
        if value not in codes:
            close = get_close_matches(str(value), [str(known) for known in codes], n=1)
            hint = f" Did you mean '{close[0]}'?" if close else " Check its spelling."
            raise NotInCrowd(f"nobody in this crowd has {attribute} = '{value}'.{hint}")
        return codes[value]

    def encode(self, shown: Mapping[str, str | None]) -> Ints:
        """Return one row of codes, HIDDEN where nothing was shown."""
        row = np.full((1, len(self.attributes)), HIDDEN, dtype=np.int64)
        for attribute, value in shown.items():
            row[0, self.place(attribute)] = self.code(attribute, value)
        return row


@dataclass(frozen=True)
class SeenAttributes:
    """What was seen of n people: exact values, and likelihoods where something only hints at the value.

    ``soft[a][i, x]`` is proportional to the probability of what was seen of person i if their attribute a is x.
    """

    space: AttributeSpace
    seen: Ints
    """(n, attributes) codes; HIDDEN where the attribute was not shown."""
    soft: Mapping[int, Floats] = field(default_factory=dict)
    """By attribute place: (n or 1, values)."""
    own_rows: Ints | None = None
    """Each person's own row in the crowd, which the adversary does not know; HIDDEN for none."""
    traces: NDArray[np.bool_] | None = None
    """(n, traces): which of a person's posts and links are seen, as `Traces` orders them; None: all."""

    @classmethod
    def nothing(cls, space: AttributeSpace, people: int = 1, own_rows: Ints | None = None) -> SeenAttributes:
        """Return the evidence of somebody who saw nothing."""
        return cls(space, np.full((people, len(space.attributes)), HIDDEN, np.int64), {}, own_rows)

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def informative(self) -> list[int]:
        """Return the places of attributes about which anything was seen, of anybody."""
        shown = set(np.flatnonzero((self.seen != HIDDEN).any(axis=0)).tolist())
        return sorted(shown | set(self.soft))

    def likelihood(self, place: int) -> Floats:
        """Return Pr[seen | value], one row per person."""
        codes, size = self.seen[:, place], self.space.sizes[place]
        exact = np.ones((len(self), size))
        shown = np.flatnonzero(codes != HIDDEN)
        exact[shown] = 0.0
        exact[shown, codes[shown]] = 1.0
        return exact * self.soft[place] if place in self.soft else exact

    def hinting(self, place: int, likelihood: NDArray[Any]) -> SeenAttributes:
        """Return the evidence with one more, independent hint about an attribute."""
        more = np.atleast_2d(np.asarray(likelihood, np.float64))
        old = self.soft.get(place)
        return replace(self, soft={**self.soft, place: more if old is None else old * more})

    def people(self, rows: slice) -> SeenAttributes:
        """Return what was seen of some of the people."""
        soft = {place: part if len(part) == 1 else part[rows] for place, part in self.soft.items()}
        own = None if self.own_rows is None else self.own_rows[rows]
        traces = None if self.traces is None else self.traces[rows]
        return SeenAttributes(self.space, self.seen[rows], soft, own, traces)

    def hiding(self, hidden: NDArray[np.bool_]) -> SeenAttributes:
        """Return one person's evidence with something withheld: one row per variant, True = withheld.

        One column per attribute; columns that follow are traces.
        """
        many = len(self.space.attributes)
        seen = np.where(hidden[:, :many], HIDDEN, self.seen[:1])
        soft = {place: np.where(hidden[:, [place]], 1.0, part[:1]) for place, part in self.soft.items()}
        traces = None if self.traces is None else np.repeat(self.traces[:1], len(seen), axis=0)
        if hidden.shape[1] > many:
            traces = ~hidden[:, many:] if traces is None else traces & ~hidden[:, many:]
        return SeenAttributes(self.space, seen, soft, self._own_repeated(len(seen)), traces)

    def showing(self, more: Sequence[tuple[int, int]]) -> SeenAttributes:
        """Return one person's evidence with one more value (place, code) shown: one row per variant."""
        seen = np.repeat(self.seen[:1], len(more), axis=0)
        for row, (place, code) in enumerate(more):
            seen[row, place] = code
        traces = None if self.traces is None else np.repeat(self.traces[:1], len(seen), axis=0)
        return SeenAttributes(self.space, seen, dict(self.soft), self._own_repeated(len(seen)), traces)

    def _own_repeated(self, times: int) -> Ints | None:
        return None if self.own_rows is None else np.repeat(self.own_rows[:1], times)


@dataclass(frozen=True, eq=False)
class AttributeTable:
    """Everybody's attributes. A person who gave two values of an attribute counts with the first in order."""

    space: AttributeSpace
    codes: NDArray[np.int32]
    """(people, attributes); HIDDEN where a person gave no value."""
    users: NDArray[np.object_]
    """Sorted ids, one for each row."""
    data_hash: str
    several: int = 0
    """Values set aside because the same person gave another one of the same attribute."""

    def __repr__(self) -> str:
        return f"AttributeTable({len(self.codes):,} people, {len(self.space.attributes)} attributes)"

    def row(self, user: str) -> int:
        """Return a person's row."""
        place = int(np.searchsorted(self.users, user))
        if place == len(self.users) or self.users[place] != user:
            raise NotInCrowd("this person has no attributes in the crowd; import some with --kind attributes")
        return place

    def of(self, row: int) -> dict[str, str]:
        """Return one person's values by attribute."""
        found = np.flatnonzero(self.codes[row] != HIDDEN)
        return {
            self.space.attributes[place]: str(self.space.values[place][self.codes[row, place]])
            for place in found
        }

    def only(self, rows: Ints) -> AttributeTable:
        """Return the table of some people over the same space."""
        return AttributeTable(self.space, self.codes[rows], self.users[rows], self.data_hash, self.several)


@cached(LRUCache(maxsize=1), key=lambda crowd: (crowd.path, crowd.data_hash), lock=Lock())
def attribute_table(crowd: Crowd) -> AttributeTable:
    """Read everybody's attributes; the table is kept in the crowd's cache, the last one also in memory."""

    def make() -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        frame = crowd.attributes().collect()
        if frame.is_empty():
            raise InputError(
                f"{crowd.path}: this crowd holds no attributes. Add some: incrowd ingest FILE --kind attributes"
            )
        table = from_long(frame)
        about = {"names": table.space.attributes, "values": table.space.values, "several": table.several}
        names = json.dumps(table.users.tolist()).encode()
        return {"codes": table.codes, "users": np.frombuffer(names, np.uint8)}, about

    kept, about = cached_arrays(crowd.path / "cache", "attributes", {}, crowd.data_hash, make)
    space = AttributeSpace(tuple(about["names"]), tuple(tuple(one) for one in about["values"]))
    users = np.array(json.loads(kept["users"].tobytes()), object)
    return AttributeTable(space, kept["codes"], users, crowd.data_hash, about["several"])


def from_long(frame: pl.DataFrame, data_hash: str = "") -> AttributeTable:
    """Turn rows (user, attribute, value) into a table."""
    once = frame.group_by("user", "attribute").agg(pl.col("value").min())
    rows = once.select(
        person=pl.col("user").rank("dense").cast(pl.Int64) - 1,
        place=pl.col("attribute").rank("dense").cast(pl.Int64) - 1,
        code=pl.col("value").rank("dense").over("attribute").cast(pl.Int32) - 1,
    )
    users, names = once["user"].unique().sort(), once["attribute"].unique().sort()
    codes = np.full((len(users), len(names)), HIDDEN, dtype=np.int32)
    codes[rows["person"].to_numpy(), rows["place"].to_numpy()] = rows["code"].to_numpy()
    values = (
        once.group_by("attribute").agg(pl.col("value").unique().sort()).sort("attribute")["value"].to_list()
    )
    space = AttributeSpace(tuple(names.to_list()), tuple(tuple(one) for one in values))
    return AttributeTable(space, codes, users.to_numpy(), data_hash, len(frame.unique()) - len(once))


_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2})?")
"""Longer ones are codes or serial numbers, not quantities."""


def number(text: str | None) -> Fraction | None:
    """Return a number exactly, or None if the text is none.

    >>> number("2.5"), number("1/2"), number("unknown")
    (Fraction(5, 2), None, None)
    """
    return Fraction(text.strip()) if text is not None and _NUMBER.fullmatch(text.strip()) else None


@dataclass(frozen=True)
class BandEdges:
    """Bands between stated edges, and one below and one above them all."""

    edges: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if not self.edges or list(self.edges) != sorted(set(self.edges)):
            raise InputError("bands: edges must be numbers that rise, e.g. 18, 25, 35")

    def band(self, value: Fraction) -> tuple[Fraction, str]:
        """Return where a number's band begins, for sorting, and the band's name."""
        place = bisect_right(self.edges, value)
        if place == 0:
            return self.edges[0] - 1, f"under {_text(self.edges[0])}"
        lower = self.edges[place - 1]
        upper = f"{_text(lower)} to under {_text(self.edges[place])}" if place < len(self.edges) else ""
        return lower, upper or f"{_text(lower)} or more"


@dataclass(frozen=True)
class Width:
    """Bands of one width that begin at its multiples."""

    width: Fraction

    def __post_init__(self) -> None:
        if self.width <= 0:
            raise InputError("bands: the width must be above 0")

    def band(self, value: Fraction) -> tuple[Fraction, str]:
        """Return where a number's band begins and the band's name."""
        lower = floor(value / self.width) * self.width
        return lower, f"{_text(lower)} to under {_text(lower + self.width)}"


@dataclass(frozen=True)
class EqualBands:
    """So many bands of about as many people each; the edges are values of the crowd."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 2:
            raise InputError(f"bands: at least 2 groups, got {self.count}")

    def edges(self, values: Mapping[Fraction, int]) -> BandEdges:
        """Return the edges. Equal numbers stay together, in the group in which the middle one of them falls."""
        people, below, last = sum(values.values()), 0, 0
        edges: list[Fraction] = []
        for value in sorted(values):
            group = (2 * below + values[value]) * self.count // (2 * people)
            if group > last and below:
                edges.append(value)
            below, last = below + values[value], group
        if not edges:
            raise InputError("bands: everybody has the same number, so there is nothing to group")
        return BandEdges(tuple(edges))


Bands = BandEdges | Width
HowToBand = Bands | EqualBands


def band_name(bands: Bands, value: str | None) -> str | None:
    """Return the name of a value's band; what is no number keeps its own.

    >>> band_name(Edges((Fraction(18), Fraction(25))), "24.9")
    '18 to under 25'
    """
    exact = number(value)
    return value if exact is None else bands.band(exact)[1]


def parse_bands(texts: Iterable[str]) -> dict[str, HowToBand]:
    """Read ``age=18,25,35``, ``age=width:10`` or ``salary=groups:4``."""
    return dict(_parsed(text) for text in texts)


def _parsed(text: str) -> tuple[str, HowToBand]:
    name, _, how = text.partition("=")
    kind, colon, size = how.partition(":")
    numbers = [number(part) for part in (size if colon else how).split(",")]
    exact = [one for one in numbers if one is not None]
    if not name.strip() or len(exact) < len(numbers) or (colon and len(exact) != 1):
        raise _wrong(text)
    if not colon:
        return name.strip(), BandEdges(tuple(exact))
    if kind == "width":
        return name.strip(), Width(exact[0])
    if kind == "groups" and exact[0].denominator == 1:
        return name.strip(), EqualBands(int(exact[0]))
    raise _wrong(text)


def _wrong(text: str) -> InputError:
    return InputError(f"bands: expected age=18,25,35 or age=width:10 or age=groups:4, got '{text}'")


def banded(table: AttributeTable, wanted: Mapping[str, HowToBand]) -> AttributeTable:
    """Return the table with some attributes in bands. Bands come in the order of numbers, other values after them."""
    codes, values = table.codes.copy(), list(table.space.values)
    for name, how in wanted.items():
        place = table.space.place(name)
        bands = how.edges(_people_by_number(table, place)) if isinstance(how, EqualBands) else how
        names, of_value = _merged(bands, values[place])
        given = codes[:, place] != HIDDEN
        codes[given, place] = of_value[codes[given, place]]
        values[place] = names
    return replace(table, space=AttributeSpace(table.space.attributes, tuple(values)), codes=codes)


def _people_by_number(table: AttributeTable, place: int) -> dict[Fraction, int]:
    codes = table.codes[:, place]
    people = np.bincount(codes[codes != HIDDEN], minlength=table.space.sizes[place]).tolist()
    found: dict[Fraction, int] = {}
    for value, count in zip(table.space.values[place], people, strict=True):
        exact = number(value)
        if exact is not None:
            found[exact] = found.get(exact, 0) + count
    if not found:
        raise InputError(f"bands: no value of '{table.space.attributes[place]}' is a number")
    return found


def _merged(bands: Bands, values: tuple[str | None, ...]) -> tuple[tuple[str | None, ...], np.ndarray]:
    """Return the new values and, for each old one, the place of its new one."""
    exact = [number(value) for value in values]
    found = {bands.band(one) for one in exact if one is not None}
    rest = [value for value, one in zip(values, exact, strict=True) if one is None]
    names: list[str | None] = [name for _, name in sorted(found)]
    names += [value for value in rest if value not in names]
    places = {name: place for place, name in enumerate(names)}
    new = [value if one is None else bands.band(one)[1] for value, one in zip(values, exact, strict=True)]
    return tuple(names), np.array([places[name] for name in new], dtype=np.int32)


def _text(value: Fraction) -> str:
    with localcontext(prec=100):
        exact = Decimal(value.numerator) / Decimal(value.denominator)
    text = format(exact, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


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
    space = AttributeSpace(
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
    return replace(table, space=AttributeSpace(table.space.attributes, tuple(values)), codes=codes)
