"""Which policies fail, and what it takes to repair them; beside what counting people would have said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from incrowd.measures.belief.adversary import Adversary
from incrowd.measures.belief.calibration import Guesses
from incrowd.measures.belief.critical import CriticalSet, critical_sets, loss_of_withholding
from incrowd.measures.belief.policy import Policy, Requirement
from incrowd.measures.belief.space import HIDDEN, Evidence, Ints
from incrowd.study.belief_folds import FEWEST, BeliefStudyOptions, Fold, Progress
from incrowd.study.figures import Section, Table

FEWEST_SHOWN = 2
"""Of a profile that shows less, nothing could be withheld."""


def repair_section(folds: Sequence[Fold], options: BeliefStudyOptions, progress: Progress) -> Section:
    """Hide each attribute, see how often its own value is believed too much, and withhold more until it is not."""
    names = folds[0].held.space.attributes
    rows = []
    for place, name in enumerate(names):
        progress(place, len(names), "repairing policies")
        rows.append(_row(name, [_Tried(fold, place, options) for fold in folds]))
    table = Table(
        title=f"Nobody should be surer than {options.sigma:g} of a person's own hidden value",
        columns=(
            "hidden",
            "people",
            "violated",
            "by guess",
            "tried",
            "repaired",
            "withheld",
            "bits lost",
            "share lost",
        ),
        rows=tuple(row for row in rows if row is not None),
        note=(
            "By guess: violated before anything is read; no withholding repairs that. Repaired: share of the violated "
            "profiles tried that withholding up to three attributes repairs. Withheld: how many attributes the "
            "cheapest repair takes. Bits lost: what they told; a value half of all people have tells 1 bit. Share "
            "lost: of all bits the profile tells."
        ),
    )
    text = (
        "A policy is violated when somebody who reads the rest of a profile is too sure of what was left out."
    )
    return Section(heading="Can withholding repair it?", text=text, parts=(table,))


class _Tried:
    """One attribute hidden for the people of one fold, and the cheapest repair of some violated profiles."""

    def __init__(self, fold: Fold, place: int, options: BeliefStudyOptions) -> None:
        codes = fold.held.codes.astype(np.int64)
        enough = (codes[:, place] != HIDDEN) & ((codes != HIDDEN).sum(axis=1) > FEWEST_SHOWN)
        people = np.flatnonzero(enough)[: options.policies]
        own, seen = codes[people, place], codes[people].copy()
        seen[:, place] = HIDDEN
        everybody = np.arange(len(people))
        sure = fold.belief.posteriors([place], Evidence(fold.held.space, seen))[0][everybody, own]
        prior = fold.belief.posteriors([place], Evidence.nothing(fold.held.space))[0][0, own]
        broken = np.flatnonzero(sure > options.sigma)
        self.people, self.violated, self.guessed = (
            len(people),
            len(broken),
            int((prior > options.sigma).sum()),
        )
        self.tried = broken[: options.repairs]
        self.repairs = [
            _cheapest(fold, place, seen[[row]], int(own[row]), options.sigma) for row in self.tried
        ]


def _cheapest(fold: Fold, place: int, seen: Ints, own: int, sigma: float) -> tuple[CriticalSet | None, float]:
    """Return the cheapest repair of one profile and the bits it shows in all."""
    space = fold.held.space
    requirement = Requirement(values={space.attributes[place]: str(space.values[place][own])}, sigma=sigma)
    adversary, evidence = Adversary(fold.belief), Evidence(space, seen)
    found = critical_sets(adversary, evidence, Policy(requirements=(requirement,)), largest=3)
    shown = sum(loss_of_withholding(adversary, evidence).values())
    return (found.sets[0] if found.sets else None), shown


Row = tuple[str, int, float, float, int, float, float, float, float]


def _row(name: str, tried: Sequence[_Tried]) -> Row | None:
    people = sum(one.people for one in tried)
    if people < FEWEST:
        return None
    repairs = [pair for one in tried for pair in one.repairs]
    found = [(cheapest, shown) for cheapest, shown in repairs if cheapest is not None]
    return (
        name,
        people,
        sum(one.violated for one in tried) / people,
        sum(one.guessed for one in tried) / people,
        len(repairs),
        len(found) / len(repairs) if repairs else float("nan"),
        _mean([len(one.attributes) for one, _ in found]),
        _mean([one.loss for one, _ in found]),
        _mean([one.loss / shown for one, shown in found if shown > 0]),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


def counts_section(guesses: Guesses, sharing: Ints) -> Section:
    """Compare belief with k-anonymity's view: how many people share the value."""
    rows = []
    for low, high in ((0, 1), (2, 4), (5, 9), (10, 49), (50, 10**12)):
        inside = (sharing >= low) & (sharing <= high)
        if inside.sum() >= FEWEST:
            label = f"{low} to {high}" if high < 10**9 else f"{low} or more"
            true = guesses.true[inside]
            rows.append(
                (
                    label,
                    int(inside.sum()),
                    float(true.mean()),
                    float(guesses.prior[inside].mean()),
                    float((true > 0.5).mean()),
                )
            )
    table = Table(
        title="People who share the hidden value, and belief in it",
        columns=("share the value (k)", "cases", "belief in the truth", "blind guess", "above one half"),
        rows=tuple(rows),
        note=(
            "A count per attribute says how common a value is, not how well the rest of a profile gives it away. Where "
            "belief is far above the blind guess, or above one half at a large k, the count reassures wrongly."
        ),
    )
    return Section(heading="Beside counting: k-anonymity of single attributes", text="", parts=(table,))
