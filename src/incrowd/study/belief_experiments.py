"""The experiments of the belief study: people left out of a crowd, and what is believed of them.

Every experiment starts with crowds without some of their people. Then: which policies fail and what it takes to repair
them, beside what counting people would have said; and what people's words, or the topics they write about, say about
attributes they never published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from incrowd.arrays import Floats, Ints
from incrowd.drawing import Chart, Series
from incrowd.measures.belief.adversary import BeliefAdversary, CrowdWords, learn_signs
from incrowd.measures.belief.critical import CriticalSet, critical_sets, loss_of_withholding
from incrowd.measures.belief.crowd_belief import CrowdBelief, fitted_belief
from incrowd.measures.belief.engine import BeliefModel, Guesses, hide_and_guess, reliability
from incrowd.measures.belief.network import NetworkBelief
from incrowd.measures.belief.policy import Policy, Requirement
from incrowd.measures.protocol import Progress
from incrowd.profiles.attributes import HIDDEN, AttributeTable, SeenAttributes
from incrowd.study.figures import Section, Table

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
    beliefs: dict[str, BeliefModel]
    name: str = PEOPLE
    """The belief that experiments use unless they compare several."""

    @property
    def belief(self) -> BeliefModel:
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
        beliefs: dict[str, BeliefModel] = {
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


FEWEST_SHOWN = 2
"""Of a profile that shows less, nothing could be withheld."""


def repair_section(folds: Sequence[Fold], options: BeliefStudyOptions, progress: Progress) -> Section:
    """Hide each attribute, see how often its own value is believed too much, and withhold more until it is not."""
    names = folds[0].held.space.attributes
    rows = []
    for place, name in enumerate(names):
        progress(place, len(names), "repairing policies")
        rows.append(_row(name, [_Repaired(fold, place, options) for fold in folds]))
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


class _Repaired:
    """One attribute hidden for the people of one fold, and the cheapest repair of some violated profiles."""

    def __init__(self, fold: Fold, place: int, options: BeliefStudyOptions) -> None:
        codes = fold.held.codes.astype(np.int64)
        enough = (codes[:, place] != HIDDEN) & ((codes != HIDDEN).sum(axis=1) > FEWEST_SHOWN)
        people = np.flatnonzero(enough)[: options.policies]
        own, seen = codes[people, place], codes[people].copy()
        seen[:, place] = HIDDEN
        everybody = np.arange(len(people))
        sure = fold.belief.posteriors([place], SeenAttributes(fold.held.space, seen))[0][everybody, own]
        prior = fold.belief.posteriors([place], SeenAttributes.nothing(fold.held.space))[0][0, own]
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
    adversary, evidence = BeliefAdversary(fold.belief), SeenAttributes(space, seen)
    found = critical_sets(adversary, evidence, Policy(requirements=(requirement,)), largest=3)
    shown = sum(loss_of_withholding(adversary, evidence).values())
    return (found.sets[0] if found.sets else None), shown


Row = tuple[str, int, float, float, int, float, float, float, float]


def _row(name: str, tried: Sequence[_Repaired]) -> Row | None:
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


WORST = 0.05


@dataclass(eq=False)
class _Cases:
    """Beliefs about one attribute of people whose words were seen, and whether they were right."""

    top: list[Floats] = field(default_factory=list)
    right: list[Floats] = field(default_factory=list)
    rise: list[Floats] = field(default_factory=list)
    true: list[Floats] = field(default_factory=list)

    def add(self, sure: Floats, prior: Floats, truth: Ints) -> None:
        sure = np.where(np.isnan(sure), prior, sure)
        true = sure[np.arange(len(truth)), truth]
        self.top.append(sure.max(axis=1))
        self.right.append((sure.argmax(axis=1) == truth).astype(np.float64))
        self.true.append(true)
        self.rise.append(true - prior[truth])

    def row(self) -> tuple[int, float, float, float, float, float]:
        top, right, rise, true = map(np.concatenate, (self.top, self.right, self.rise, self.true))
        return (
            len(top),
            float(right.mean()),
            float(true.mean()),
            round(float(rise.mean()), 3),
            round(float(np.quantile(rise, 1 - WORST)), 3),
            reliability(top, right).error,
        )


def text_section(
    folds: Sequence[Fold], table: AttributeTable, kinds: Mapping[str, CrowdWords], progress: Progress
) -> Section | None:
    """Guess the attributes of held-out writers from their words, from their attributes, and from both."""
    cases: dict[tuple[str, str], _Cases] = {}
    for done, fold in enumerate(folds):
        progress(done, len(folds), "guessing from words")
        _guess(fold, table, kinds, cases)
    rows = [(*key, *row) for key, found in cases.items() if (row := found.row())[0] >= FEWEST]
    if not rows:
        return None
    columns = ("hidden", "seen", "people", "right", "belief", "mean rise", "worst 5 %", "calibration")
    note = (
        "Belief: in the true value; rise: over a blind guess. Calibration: the error, 0 = honest. Words and topics are "
        "learnt from the people the adversary knows, and cooled so that they are no surer than they are right."
    )
    text = (
        "Somebody never published an attribute, but wrote. How often is it guessed right from the words alone, from "
        "their other attributes alone, and from both together?"
    )
    table_part = Table(title="Text as evidence", columns=columns, rows=tuple(rows), note=note)
    return Section(heading="What words give away", text=text, parts=(_bars(rows), table_part))


def _guess(
    fold: Fold, table: AttributeTable, kinds: Mapping[str, CrowdWords], cases: dict[tuple[str, str], _Cases]
) -> None:
    some = next(iter(kinds.values()))
    known = np.isin(some.rows, fold.train_rows)
    writers = np.flatnonzero(np.isin(some.rows, fold.held_rows))
    if not writers.size:
        return
    codes = table.codes[some.rows[writers]].astype(np.int64)
    hints = {name: _hints(words, known, writers, table) for name, words in kinds.items()}
    nothing = SeenAttributes.nothing(table.space)
    for place, attribute in enumerate(table.space.attributes):
        asked = np.flatnonzero(codes[:, place] != HIDDEN)
        if not asked.size or not any(place in hint for hint in hints.values()):
            continue
        truth, prior = codes[asked, place], fold.belief.posteriors([place], nothing)[0][0]
        silent = np.full((len(asked), codes.shape[1]), HIDDEN, dtype=np.int64)
        others = codes[asked].copy()
        others[:, place] = HIDDEN
        seen = {
            "nothing (guessing)": SeenAttributes(table.space, silent),
            "attributes": SeenAttributes(table.space, others),
        }
        for name, hint in hints.items():
            soft = {at: part[asked] for at, part in hint.items()}
            seen[name] = SeenAttributes(table.space, silent, soft)
            seen[f"attributes and {name}"] = SeenAttributes(table.space, others, soft)
        for name, evidence in seen.items():
            sure = fold.belief.posteriors([place], evidence)[0]
            cases.setdefault((attribute, name), _Cases()).add(sure, prior, truth)


def _hints(words: CrowdWords, known: np.ndarray, writers: Ints, table: AttributeTable) -> dict[int, Floats]:
    """Return what the words of held-out writers suggest, learnt from the known ones."""
    used, found = words.used(), {}
    strangers = np.full(len(writers), HIDDEN)
    for place, size in enumerate(table.space.sizes):
        signs = learn_signs(used[np.flatnonzero(known)], words.codes(table, place)[known], size)
        if signs is not None:
            found[place] = signs.likelihood(used[writers], strangers)
    return found


def _bars(rows: Sequence[tuple[str, str, int, float, float, float, float, float]]) -> Chart:
    attributes = tuple(dict.fromkeys(row[0] for row in rows))
    kinds = tuple(dict.fromkeys(row[1] for row in rows))
    right = {(row[0], row[1]): row[3] for row in rows}
    series = [
        Series.of(kind, range(len(attributes)), [right[attribute, kind] for attribute in attributes])
        for kind in kinds
    ]
    return Chart(
        kind="bars",
        title="How often a hidden attribute is guessed right",
        sentence="The first bar of each group guesses blindly; every other bar shows what was read besides.",
        x_label="hidden attribute",
        y_label="share guessed right",
        series=tuple(series),
        categories=attributes,
    )
