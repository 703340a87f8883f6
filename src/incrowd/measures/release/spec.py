"""What a question to the release engine is made of: budgets and the adversary, as values."""

from __future__ import annotations

from dataclasses import dataclass

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
