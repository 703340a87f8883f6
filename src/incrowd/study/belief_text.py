"""What people's words say about attributes they never published: words, or topics, as evidence beside attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from incrowd.measures.belief.calibration import reliability
from incrowd.measures.belief.space import HIDDEN, Evidence, Floats, Ints
from incrowd.measures.belief.table import AttributeTable
from incrowd.measures.belief.text_evidence import Words, learn_signs
from incrowd.study.belief_folds import FEWEST, Fold, Progress
from incrowd.study.figures import Chart, Section, Series, Table

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
    folds: Sequence[Fold], table: AttributeTable, kinds: Mapping[str, Words], progress: Progress
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
    fold: Fold, table: AttributeTable, kinds: Mapping[str, Words], cases: dict[tuple[str, str], _Cases]
) -> None:
    some = next(iter(kinds.values()))
    known = np.isin(some.rows, fold.train_rows)
    writers = np.flatnonzero(np.isin(some.rows, fold.held_rows))
    if not writers.size:
        return
    codes = table.codes[some.rows[writers]].astype(np.int64)
    hints = {name: _hints(words, known, writers, table) for name, words in kinds.items()}
    nothing = Evidence.nothing(table.space)
    for place, attribute in enumerate(table.space.attributes):
        asked = np.flatnonzero(codes[:, place] != HIDDEN)
        if not asked.size or not any(place in hint for hint in hints.values()):
            continue
        truth, prior = codes[asked, place], fold.belief.posteriors([place], nothing)[0][0]
        silent = np.full((len(asked), codes.shape[1]), HIDDEN, dtype=np.int64)
        others = codes[asked].copy()
        others[:, place] = HIDDEN
        seen = {
            "nothing (guessing)": Evidence(table.space, silent),
            "attributes": Evidence(table.space, others),
        }
        for name, hint in hints.items():
            soft = {at: part[asked] for at, part in hint.items()}
            seen[name] = Evidence(table.space, silent, soft)
            seen[f"attributes and {name}"] = Evidence(table.space, others, soft)
        for name, evidence in seen.items():
            sure = fold.belief.posteriors([place], evidence)[0]
            cases.setdefault((attribute, name), _Cases()).add(sure, prior, truth)


def _hints(words: Words, known: np.ndarray, writers: Ints, table: AttributeTable) -> dict[int, Floats]:
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
