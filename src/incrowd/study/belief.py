"""Paper 000, section 4, on any crowd with attributes: what gives what away, how honestly, and what repairs it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from incrowd.measures.belief.adversary import Adversary
from incrowd.measures.belief.calibration import Guesses, hide_and_guess
from incrowd.measures.belief.critical import critical_sets
from incrowd.measures.belief.crowd_belief import CrowdBelief
from incrowd.measures.belief.engine import Belief
from incrowd.measures.belief.fit import fitted_belief
from incrowd.measures.belief.network import NetworkBelief
from incrowd.measures.belief.policy import Policy, Requirement
from incrowd.measures.belief.space import HIDDEN, Evidence, Floats
from incrowd.measures.belief.table import AttributeTable
from incrowd.study.figures import Chart, Section, Series, Study, Table

ADVERSARY = "someone who knows four fifths of the crowd, and of the others all attributes but one"
WORST = 0.05


@dataclass(frozen=True, kw_only=True)
class BeliefStudyOptions:
    """How many people, and what the tried policy allows."""

    held_out: float = 0.2
    people: int = 400
    """Held-out people looked at, at most."""
    policies: int = 60
    """People for whom a policy is repaired."""
    sigma: float = 0.5
    seed: int = 0


def belief_study(table: AttributeTable, options: BeliefStudyOptions | None = None) -> Study:
    """Run every experiment on one table of attributes."""
    options = options or BeliefStudyOptions()
    train, held = _split(table, options)
    belief = fitted_belief(train, seed=options.seed)
    beliefs: dict[str, Belief] = {
        "people like you": belief,
        "network": NetworkBelief.learn(train),
        "guessing": CrowdBelief.learn(train, 1.0),
    }
    guesses = {name: hide_and_guess(one, held) for name, one in beliefs.items()}
    return Study(
        name="belief",
        title="What published attributes give away",
        summary=_summary(guesses["people like you"], len(held.codes)),
        sections=(
            _raise_section(belief, held),
            _calibration_section(guesses),
            _repair_section(belief, held, options),
            _counts_section(guesses["people like you"], train, held),
        ),
        facts=_facts(table, options),
    )


def _split(table: AttributeTable, options: BeliefStudyOptions) -> tuple[AttributeTable, AttributeTable]:
    order = np.random.default_rng(options.seed).permutation(len(table.codes))
    cut = max(1, int(len(order) * options.held_out))
    return table.only(np.sort(order[cut:])), table.only(np.sort(order[:cut][: options.people]))


def _summary(guesses: Guesses, people: int) -> str:
    rise = guesses.true - guesses.prior
    return (
        f"Of {people:,} people the adversary never saw, a hidden attribute is guessed right "
        f"{guesses.right.mean():.0%} of the time. Belief in the true value rises by {rise.mean():.2f} on average over "
        f"a blind guess, and by {np.quantile(rise, 1 - WORST):.2f} or more for the worst {WORST:.0%}. The calibration "
        f"error is {guesses.reliability().error:.3f}."
    )


def _facts(table: AttributeTable, options: BeliefStudyOptions) -> dict[str, Any]:
    from incrowd import __version__

    return {
        "paper": "000, section 4 (open-world framework)",
        "adversary": ADVERSARY,
        **asdict(options),
        "people in the crowd": len(table.codes),
        "attributes": len(table.space.attributes),
        "data hash": table.data_hash,
        "incrowd": __version__,
    }


def rises(belief: Belief, held: AttributeTable) -> list[tuple[str, str, float, float]]:
    """Return for each pair (published, hidden) how much publishing one attribute alone raises belief in the other.

    The rise is of the true value's probability: the mean, and the least of the worst five in a hundred.
    """
    names, codes = held.space.attributes, held.codes.astype(np.int64)
    everything = list(range(len(names)))
    prior = belief.posteriors(everything, Evidence.nothing(held.space))
    found = []
    for shown in everything:
        known = np.flatnonzero(codes[:, shown] != HIDDEN)
        seen = np.full((len(known), len(names)), HIDDEN, dtype=np.int64)
        seen[:, shown] = codes[known, shown]
        targets = [place for place in everything if place != shown]
        after = belief.posteriors(targets, Evidence(held.space, seen)) if known.size else []
        for place, sure in zip(targets, after, strict=False):
            rise = _rise(sure, prior[place][0], codes[known, place])
            if rise.size:
                found.append(
                    (names[shown], names[place], float(rise.mean()), float(np.quantile(rise, 1 - WORST)))
                )
    return sorted(found, key=lambda row: -row[2])


def _rise(sure: Floats, prior: Floats, truth: np.ndarray) -> Floats:
    rows = np.flatnonzero((truth != HIDDEN) & ~np.isnan(sure[:, 0]))
    return np.asarray(sure[rows, truth[rows]] - prior[truth[rows]])


def _raise_section(belief: Belief, held: AttributeTable) -> Section:
    table = Table(
        title="The strongest pairs: one attribute published, another one hidden",
        columns=("published", "hidden", "mean rise", "worst 5 %"),
        rows=tuple(rises(belief, held)[:25]),
        note="Rise of the probability of the true value over a blind guess: 0 = says nothing, 1 = gives it away.",
    )
    text = "How much surer does somebody become of a hidden attribute when one other is published?"
    return Section(heading="What gives what away", text=text, parts=(table,))


def _calibration_section(guesses: dict[str, Guesses]) -> Section:
    curves = {name: one.reliability() for name, one in guesses.items()}
    rows = tuple(
        (name, curves[name].error, float(one.right.mean()), float(one.true.mean()))
        for name, one in guesses.items()
    )
    series = [Series.of("honest", (0.0, 1.0), (0.0, 1.0))]
    for name, curve in curves.items():
        there = curve.count > 0
        series.append(Series.of(name, curve.sure[there], curve.right[there]))
    chart = Chart(
        kind="lines",
        title="Reliability on held-out people",
        sentence="On the diagonal, “70 % sure” is right seven times in ten; below it, the adversary is too sure.",
        x_label="how sure",
        y_label="how often right",
        series=tuple(series),
    )
    table = Table(
        title="Adversaries compared",
        columns=("adversary", "calibration error", "right", "mean belief in the truth"),
        rows=rows,
        note="Calibration error: mean gap between how sure and how often right; 0 = honest, 1 = worst.",
    )
    return Section(heading="Are beliefs honest?", text="", parts=(chart, table))


def _repair_section(belief: Belief, held: AttributeTable, options: BeliefStudyOptions) -> Section:
    rows = tuple(
        row
        for place, name in enumerate(held.space.attributes)
        if (row := _repaired(belief, held, place, name, options)) is not None
    )
    table = Table(
        title=f"Nobody should be surer than {options.sigma:g} of a person's own hidden value",
        columns=("hidden", "people", "violated", "repaired by at most 3", "attributes withheld", "bits lost"),
        rows=rows,
        note="Repaired: share of violated profiles that withholding up to three attributes repairs, the cheapest way.",
    )
    return Section(heading="Can withholding repair it?", text="", parts=(table,))


def _repaired(
    belief: Belief, held: AttributeTable, place: int, name: str, options: BeliefStudyOptions
) -> tuple[str, int, float, float, float, float] | None:
    codes = held.codes.astype(np.int64)
    enough = (codes[:, place] != HIDDEN) & ((codes != HIDDEN).sum(axis=1) >= 3)
    people = np.flatnonzero(enough)[: options.policies]
    if not people.size:
        return None
    seen = codes[people].copy()
    seen[:, place] = HIDDEN
    sure = belief.posteriors([place], Evidence(held.space, seen))[0]
    broken = np.flatnonzero(sure[np.arange(len(people)), codes[people, place]] > options.sigma)
    cheapest = []
    for row in broken[:10]:
        own = str(held.space.values[place][codes[people[row], place]])
        policy = Policy(requirements=(Requirement(values={name: own}, sigma=options.sigma),))
        found = critical_sets(Adversary(belief), Evidence(held.space, seen[[row]]), policy, largest=3)
        cheapest += [found.sets[0]] if found.sets else []
    tried = min(len(broken), 10)
    return (
        name,
        len(people),
        len(broken) / len(people),
        len(cheapest) / tried if tried else float("nan"),
        float(np.mean([len(one.attributes) for one in cheapest])) if cheapest else float("nan"),
        float(np.mean([one.loss for one in cheapest])) if cheapest else float("nan"),
    )


def _counts_section(guesses: Guesses, train: AttributeTable, held: AttributeTable) -> Section:
    """Compare belief with k-anonymity's view: how many people share the value."""
    shares = [
        np.bincount(c[c != HIDDEN], minlength=s)
        for c, s in zip(train.codes.T, train.space.sizes, strict=True)
    ]
    k = np.array([shares[p][held.codes[i, p]] for p, i in zip(guesses.place, guesses.person, strict=True)])
    edges = ((0, 1), (2, 4), (5, 9), (10, 49), (50, 10**12))
    rows = []
    for low, high in edges:
        inside = (k >= low) & (k <= high)
        if inside.any():
            label = f"{low} to {high}" if high < 10**9 else f"{low} or more"
            rows.append((label, int(inside.sum()), *_means(guesses, inside)))
    table = Table(
        title="People who share the hidden value, and belief in it",
        columns=("share the value (k)", "cases", "belief in the truth", "blind guess", "above one half"),
        rows=tuple(rows),
        note="A count per attribute says how common a value is, not how well the rest of a profile gives it away.",
    )
    return Section(heading="Beside counting: k-anonymity of single attributes", text="", parts=(table,))


def _means(guesses: Guesses, inside: np.ndarray) -> tuple[float, float, float]:
    true = guesses.true[inside]
    return float(true.mean()), float(guesses.prior[inside].mean()), float((true > 0.5).mean())
