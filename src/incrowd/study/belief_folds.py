"""Crowds without some of their people, and what is believed of those: every belief experiment starts here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from incrowd.measures.belief.calibration import Guesses, hide_and_guess
from incrowd.measures.belief.crowd_belief import CrowdBelief
from incrowd.measures.belief.engine import Belief
from incrowd.measures.belief.fit import fitted_belief
from incrowd.measures.belief.network import NetworkBelief
from incrowd.measures.belief.space import HIDDEN, Ints
from incrowd.measures.belief.table import AttributeTable

Progress = Callable[[float, float | None, str], None]
PEOPLE, NETWORK, GUESSING = "people like you", "network", "guessing"
FEWEST = 10
"""No row of a table stands for fewer cases: a rate over a handful would be about somebody."""
LEAST = 1e-6
"""A truth that was ruled out costs this much, not everything."""


@dataclass(frozen=True, kw_only=True)
class BeliefStudyOptions:
    """How many people, and what the tried policy allows."""

    held_out: float = 0.2
    """Share of the crowd the adversary does not know; the crowd is split anew until enough people were left out."""
    people: int = 400
    """Held-out people looked at, at most."""
    policies: int = 200
    """People for whom a policy is checked, for each attribute."""
    repairs: int = 25
    """Violated policies that are repaired, for each attribute."""
    sigma: float = 0.5
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Fold:
    """People the adversary knows, people they do not, and what is believed from the first."""

    train_rows: Ints
    held_rows: Ints
    train: AttributeTable
    held: AttributeTable
    beliefs: dict[str, Belief]
    name: str = PEOPLE
    """The belief that experiments use unless they compare several."""

    @property
    def belief(self) -> Belief:
        """The belief of that name."""
        return self.beliefs[self.name]

    def guesses(self, name: str) -> Guesses:
        """Hide each attribute of each held-out person in turn."""
        return hide_and_guess(self.beliefs[name], self.held)

    def sharing(self, guesses: Guesses) -> Ints:
        """Return how many known people share the true value of each guess: per-attribute k-anonymity."""
        sizes = self.train.space.sizes
        counts = [
            np.bincount(codes[codes != HIDDEN], minlength=size)
            for codes, size in zip(self.train.codes.T, sizes, strict=True)
        ]
        true = self.held.codes[guesses.person, guesses.place]
        return np.array([counts[place][code] for place, code in zip(guesses.place, true, strict=True)])


def folds(table: AttributeTable, options: BeliefStudyOptions, progress: Progress) -> Iterator[Fold]:
    """Leave one part of the crowd out after the other, until enough people were left out once."""
    order = np.random.default_rng(options.seed).permutation(len(table.codes))
    size = max(1, int(len(order) * options.held_out))
    most = min(options.people, size * max(1, int(1 / options.held_out)))
    for first in range(0, most, size):
        progress(first, most, "learning from the others")
        held = np.sort(order[first : min(first + size, most)])
        known = np.sort(np.concatenate([order[:first], order[first + size :]]))
        train = table.only(known)
        beliefs: dict[str, Belief] = {
            PEOPLE: fitted_belief(train, seed=options.seed),
            NETWORK: NetworkBelief.learn(train),
            GUESSING: CrowdBelief.learn(train, 1.0),
        }
        yield Fold(known, held, train, table.only(held), beliefs)


def stronger(guesses: Mapping[str, Guesses]) -> str:
    """Name the belief that gives the truth the higher probability (geometric mean): the adversary to reckon with."""

    def score(name: str) -> float:
        return float(np.log(np.maximum(guesses[name].true, LEAST)).mean())

    return max((PEOPLE, NETWORK), key=score)


def pooled(parts: list[Guesses]) -> Guesses:
    """Put the guesses of several folds together; a person's number is then their place within their fold."""
    columns = [
        np.concatenate([getattr(one, name) for one in parts])
        for name in ("place", "person", "top", "right", "true", "prior")
    ]
    return Guesses(*columns)
