"""What a question to the release engine is made of, and what its answer says: budgets, the adversary, proofs."""

from __future__ import annotations

from _thread import LockType, allocate_lock, start_new_thread
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import inf
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError
from incrowd.result import Result, say_percent

ADVERSARY = "someone who sees the released values and knows who is in the class"
"""The adversary of the whole measure: they hold the answer and the list of people it was computed from."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How long, and in how much memory, the solver may look for an exact answer.

    Passing the budget is no error for a measurement: it then says what was proved until then.
    """

    seconds: float = 2.0
    memory: int = 512 * 2**20
    """Bytes for the solver's tables."""


@dataclass(frozen=True, kw_only=True)
class SuppressOptions:
    """How a response is thinned out until it is safe."""

    key: bytes = b"incrowd"
    """Secret of the tie-break and of the order of the released values; a provider sets their own."""
    class_size: int | None = None
    """How many people the query selected, where known; a class below the threshold releases nothing."""
    budget: Budget = Budget()
    """Over the time or memory budget nothing is released."""
    exact_values: int = 6
    """Connected parts up to this many values are solved to the optimum with exact q."""
    rounds: int = 4
    """Ways to weigh the greedy choice in larger parts; the best outcome is kept."""
    blind: bool = False
    """Choose between values by the key alone, not by how common they are: which one was chosen then says nothing
    about counts. For answers to strangers."""
    effort: int = 300_000
    """Rows that exchanges may visit in all. Counted, not timed: the same data give the same answer."""


FINISH_SECONDS = 0.02
"""Kept back from a budget to stop in time and put the result together; at most a quarter of it."""


class Deadline:
    """The moment by which the solver has to stop."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds
        self.set_aside = 0.0
        """Seconds that did not count."""

    @classmethod
    def within(cls, budget: float) -> Deadline:
        """Return a moment early enough for the result to be ready when the budget ends."""
        return cls(budget - min(budget / 4, FINISH_SECONDS))

    @property
    def left(self) -> float:
        """Seconds until then; 0 once it has passed."""
        return max(0.0, self._end - monotonic())

    @property
    def passed(self) -> bool:
        """True once the time is up."""
        return self.left == 0

    @contextmanager
    def not_counting(self) -> Iterator[None]:
        """Leave out what happens inside: compiling code on its first use is not the question's fault."""
        before = monotonic()
        yield
        taken = monotonic() - before
        self._end += taken
        self.set_aside += taken

    @contextmanager
    def watch(self, expected: float, share: float = 1.0, early: float = 0.0) -> Iterator[NDArray[np.int64]]:
        """Yield a flag that is raised when `share` of the time left has passed, or so many seconds before.

        Kernels run without Python's lock, so the timer's thread gets its turn. A kernel expected to need a
        small part of the time gets no timer. `early` is the longest that a kernel goes without a look.
        """
        stop = np.zeros(1, dtype=np.int64)
        allowed = max(0.0, self.left * share - early)
        if expected < allowed / 50 or allowed == inf:
            yield stop
            return
        done = allocate_lock()
        done.acquire()
        # Not a threading.Timer: starting one waits until its thread runs, which on a busy machine takes too long.
        start_new_thread(_raise_flag, (stop, done, monotonic() + allowed))
        try:
            yield stop
        finally:
            done.release()


def _raise_flag(stop: NDArray[np.int64], done: LockType, end: float) -> None:
    """Wait until the work is done or its time is up."""
    if not done.acquire(timeout=max(0.0, end - monotonic())):
        stop[0] = 1


class Method(StrEnum):
    """How far a measurement got."""

    EXACT = "exact"
    """q is known."""
    CERTIFIED = "certified"
    """q was proved to reach the threshold asked for, and not computed further."""
    INTERVAL = "interval"
    """The budget ran out; q was proved to lie in the interval."""
    NOTHING = "nothing"
    """Nothing is released: there is no group, and q is undefined."""


@dataclass(frozen=True, kw_only=True)
class PartMeasurement:
    """One connected part of the answer, after absorption."""

    values: int
    users: int
    at_least: Fraction
    at_most: Fraction
    solver: str
    """What counted it; empty if only bounds are known."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {
            "values": self.values,
            "users": self.users,
            "at_least": float(self.at_least),
            "at_most": float(self.at_most),
            "solver": self.solver,
        }


@dataclass(frozen=True, kw_only=True, repr=False)
class QMeasurement(Result):
    """How sure an answer could make somebody: q, or what is proved about it.

    q ranges from 1 (some person is certain to be tied to the answer) up to the number of holders of the
    least common value; higher is safer. It is a heuristic posterior, not a guarantee (see NOTES.md).
    """

    method: Method
    n: int | None
    """How many minimal groups of people account for the answer; None where not counted."""
    m: int | None
    """How many of them hold the most frequent person."""
    q: Fraction | None
    interval: tuple[Fraction, Fraction] | None
    """Proved bounds on q; None if q is exact or undefined."""
    lcv: int | None
    """Holders of the least common value: q is at most this."""
    p_min: int | None
    """The fewest users who list one released value and no other: q is at least this."""
    users: int
    values: int
    parts: tuple[PartMeasurement, ...]
    posteriors: Mapping[Any, Fraction] | None = None
    """How likely each user is tied to the answer: by user, or by the values they list if users are unknown."""
    seconds: float
    budget: Budget

    @property
    def at_least(self) -> Fraction | None:
        """The proved lower end: q itself where it is exact."""
        if self.q is not None:
            return self.q
        return self.interval[0] if self.interval else None

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        low = self.at_least
        if low is None:
            return "Nothing is known of q: the answer is empty, or there was no time to bound it."
        sure, bound = ("", "") if self.q is not None else ("at most ", " at least")
        return (
            f"Somebody could be tied to this answer with a probability of {sure}{say_percent(float(1 / low))} "
            f"(q is{bound} {float(low):.4g})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types; integers that may be long become decimal strings."""
        return {
            "n": None if self.n is None else decimal(self.n),
            "m": None if self.m is None else decimal(self.m),
            "q": None if self.q is None else float(self.q),
            "method": str(self.method),
            "interval": None if self.interval is None else [float(end) for end in self.interval],
            "lcv": self.lcv,
            "p_min": self.p_min,
            "users": self.users,
            "values": self.values,
            "parts": [part.to_dict() for part in self.parts],
            "seconds": round(self.seconds, 6),
            "budget": {"seconds": self.budget.seconds, "memory": self.budget.memory},
        }


def decimal(number: int) -> str:
    """Write a non-negative integer of any length; Python itself refuses more than 4,300 digits."""
    if number < 10**4000:
        return str(number)
    half = int(number.bit_length() * 0.30103) // 2
    high, low = divmod(number, 10**half)
    return decimal(high) + decimal(low).zfill(half)


@dataclass(frozen=True, kw_only=True)
class PartCertificate:
    """Why one part of the released values reaches the threshold; no user lists values of two parts.

    Either q was counted (`exact`): `at_least` is q of the part, and `without` holds q after withholding each
    single value in turn. Or every local count is at least `at_least`: then q is at least that, also after
    withholding any further values.
    """

    values: tuple[Hashable, ...]
    at_least: Fraction
    exact: bool
    without: tuple[Fraction, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The released values in parts, each with its reason."""

    threshold: int
    parts: tuple[PartCertificate, ...]

    @property
    def released(self) -> frozenset[Hashable]:
        """Every value of every part."""
        return frozenset(value for part in self.parts for value in part.values)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types; fractions are written "5/3"."""
        return {
            "threshold": self.threshold,
            "parts": [
                {
                    "values": list(part.values),
                    "at_least": str(part.at_least),
                    "exact": part.exact,
                    "without": [str(q) for q in part.without],
                }
                for part in self.parts
            ],
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Certificate:
        """Read what `to_dict` wrote."""
        try:
            return cls(
                threshold=int(plain["threshold"]),
                parts=tuple(
                    PartCertificate(
                        values=tuple(part["values"]),
                        at_least=Fraction(part["at_least"]),
                        exact=bool(part["exact"]),
                        without=tuple(Fraction(q) for q in part["without"]),
                    )
                    for part in plain["parts"]
                ),
            )
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            raise InputError(
                "certificate: expected an object with threshold and parts as `release suppress --certificate` "
                "writes it, got something else"
            ) from None
