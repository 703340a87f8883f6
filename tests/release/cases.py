"""Small answers to try everything on."""

from __future__ import annotations

import random

from hypothesis import strategies as st


def random_answer(rng: random.Random, values: int = 5, users: int = 7) -> dict[int, list[int]]:
    """A small answer: up to `values` values, each listed by some of up to `users` users."""
    people = rng.randint(1, users)
    return {
        value: rng.sample(range(people), rng.randint(1, people)) for value in range(rng.randint(1, values))
    }


answers = st.dictionaries(
    st.integers(0, 6), st.sets(st.integers(0, 8), min_size=1, max_size=7).map(sorted), min_size=1, max_size=6
)
"""Hypothesis: value -> users."""
