"""Numbers in bands: an age of 34 among 18, 25, 35 is "25 to under 35". Nothing is rounded on the way.

A band holds its lower edge and not its upper one. Numbers are compared as exact fractions, never as floating-point
numbers, so 24.99999999999999999 stays below 25. What is no number keeps its own value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor

import numpy as np

from incrowd.errors import InputError
from incrowd.measures.belief.space import HIDDEN, Space
from incrowd.measures.belief.table import AttributeTable

_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2})?")
"""Longer ones are codes or serial numbers, not quantities."""


def number(text: str | None) -> Fraction | None:
    """Return a number exactly, or None if the text is none.

    >>> number("2.5"), number("1/2"), number("unknown")
    (Fraction(5, 2), None, None)
    """
    return Fraction(text.strip()) if text is not None and _NUMBER.fullmatch(text.strip()) else None


@dataclass(frozen=True)
class Edges:
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
class Groups:
    """So many bands of about as many people each; the edges are values of the crowd."""

    count: int

    def __post_init__(self) -> None:
        if self.count < 2:
            raise InputError(f"bands: at least 2 groups, got {self.count}")

    def edges(self, values: Mapping[Fraction, int]) -> Edges:
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
        return Edges(tuple(edges))


Bands = Edges | Width
HowToBand = Bands | Groups


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
        return name.strip(), Edges(tuple(exact))
    if kind == "width":
        return name.strip(), Width(exact[0])
    if kind == "groups" and exact[0].denominator == 1:
        return name.strip(), Groups(int(exact[0]))
    raise _wrong(text)


def _wrong(text: str) -> InputError:
    return InputError(f"bands: expected age=18,25,35 or age=width:10 or age=groups:4, got '{text}'")


def banded(table: AttributeTable, wanted: Mapping[str, HowToBand]) -> AttributeTable:
    """Return the table with some attributes in bands. Bands come in the order of numbers, other values after them."""
    codes, values = table.codes.copy(), list(table.space.values)
    for name, how in wanted.items():
        place = table.space.place(name)
        bands = how.edges(_people_by_number(table, place)) if isinstance(how, Groups) else how
        names, of_value = _merged(bands, values[place])
        given = codes[:, place] != HIDDEN
        codes[given, place] = of_value[codes[given, place]]
        values[place] = names
    return replace(table, space=Space(table.space.attributes, tuple(values)), codes=codes)


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
