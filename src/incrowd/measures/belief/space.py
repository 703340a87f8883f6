"""Which attributes there are, which values they take, and what somebody saw of people: arrays of codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import NotInCrowd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
HIDDEN = -1
"""The code of an attribute that was not shown."""


@dataclass(frozen=True)
class Space:
    """Attributes with their values, in a fixed order: a value is known by its place."""

    attributes: tuple[str, ...]
    values: tuple[tuple[str | None, ...], ...]

    @classmethod
    def of(cls, values: Mapping[str, Sequence[str | None]]) -> Space:
        """Make a space from attribute: values."""
        return cls(tuple(values), tuple(tuple(one) for one in values.values()))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.attributes)}

    @cached_property
    def _codes(self) -> tuple[dict[str | None, int], ...]:
        return tuple({value: code for code, value in enumerate(one)} for one in self.values)

    @property
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
class Evidence:
    """What was seen of n people: exact values, and likelihoods where something only hints at the value.

    ``soft[a][i, x]`` is proportional to the probability of what was seen of person i if their attribute a is x.
    """

    space: Space
    seen: Ints
    """(n, attributes) codes; HIDDEN where the attribute was not shown."""
    soft: Mapping[int, Floats] = field(default_factory=dict)
    """By attribute place: (n or 1, values)."""
    own_rows: Ints | None = None
    """Each person's own row in the crowd, which the adversary does not know; HIDDEN for none."""
    traces: NDArray[np.bool_] | None = None
    """(n, traces): which of a person's posts and links are seen, as `Traces` orders them; None: all."""

    @classmethod
    def nothing(cls, space: Space, people: int = 1, own_rows: Ints | None = None) -> Evidence:
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
        """Return Pr[seen | value], one row a person."""
        codes, size = self.seen[:, place], self.space.sizes[place]
        exact = np.ones((len(self), size))
        shown = np.flatnonzero(codes != HIDDEN)
        exact[shown] = 0.0
        exact[shown, codes[shown]] = 1.0
        return exact * self.soft[place] if place in self.soft else exact

    def hinting(self, place: int, likelihood: NDArray[Any]) -> Evidence:
        """Return the evidence with one more, independent hint about an attribute."""
        more = np.atleast_2d(np.asarray(likelihood, np.float64))
        old = self.soft.get(place)
        return replace(self, soft={**self.soft, place: more if old is None else old * more})

    def people(self, rows: slice) -> Evidence:
        """Return what was seen of some of the people."""
        soft = {place: part if len(part) == 1 else part[rows] for place, part in self.soft.items()}
        own = None if self.own_rows is None else self.own_rows[rows]
        traces = None if self.traces is None else self.traces[rows]
        return Evidence(self.space, self.seen[rows], soft, own, traces)

    def hiding(self, hidden: NDArray[np.bool_]) -> Evidence:
        """Return one person's evidence with something withheld: one row a variant, True = withheld.

        A column an attribute; columns that follow are traces.
        """
        many = len(self.space.attributes)
        seen = np.where(hidden[:, :many], HIDDEN, self.seen[:1])
        soft = {place: np.where(hidden[:, [place]], 1.0, part[:1]) for place, part in self.soft.items()}
        traces = None if self.traces is None else np.repeat(self.traces[:1], len(seen), axis=0)
        if hidden.shape[1] > many:
            traces = ~hidden[:, many:] if traces is None else traces & ~hidden[:, many:]
        return Evidence(self.space, seen, soft, self._own_repeated(len(seen)), traces)

    def showing(self, more: Sequence[tuple[int, int]]) -> Evidence:
        """Return one person's evidence with one more value (place, code) shown: one row a variant."""
        seen = np.repeat(self.seen[:1], len(more), axis=0)
        for row, (place, code) in enumerate(more):
            seen[row, place] = code
        traces = None if self.traces is None else np.repeat(self.traces[:1], len(seen), axis=0)
        return Evidence(self.space, seen, dict(self.soft), self._own_repeated(len(seen)), traces)

    def _own_repeated(self, times: int) -> Ints | None:
        return None if self.own_rows is None else np.repeat(self.own_rows[:1], times)
