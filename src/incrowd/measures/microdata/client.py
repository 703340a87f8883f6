"""The client's side (paper 002, algorithm 2): score yourself from downloaded statistics; nothing is sent."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.arrays import Floats
from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.microdata import explain
from incrowd.measures.microdata.definition import privacy_score, risk_raw
from incrowd.measures.microdata.expected_crowd import (
    LARGEST,
    ActivityGroups,
    class_probabilities,
    expected_others,
    reading,
)
from incrowd.measures.microdata.statistics import Statistics
from incrowd.result import Advice, Assessment, Assumptions, Direction, Result, Standing, Threat, say_count

# The label's scale: how groups become bars with words (paper 002, section 5 and figure 8).

WORDS: dict[int, tuple[str, ...]] = {
    1: ("everybody alike",),
    2: ("safe", "not safe"),
    3: ("safe", "medium risk", "not safe"),
    4: ("very safe", "safe", "medium risk", "not safe"),
    5: ("very safe", "safe", "medium safe", "medium risk", "not safe"),
    6: ("very safe", "safe", "medium safe", "medium risk", "high risk", "not safe"),
    7: ("very safe", "safe", "rather safe", "medium safe", "medium risk", "high risk", "not safe"),
}
"""Best first."""
WANTED_CROWD = 10
"""The target: nobody who hides among fewer people, themselves included, is called safe."""
MARGIN = 2
"""A client only estimates its crowd: so many times the target must be expected before it is called safe."""
MOST_SPLIT = 5
"""Crowds of up to so many groups have their upper groups halved."""


def split_upper(borders: Sequence[float]) -> list[float]:
    """Halve the two safest groups (never the riskiest), unless there are many groups already.

    >>> split_upper([0.6, 0.8])
    [0.6, 0.7, 0.8, 0.9]
    """
    groups = len(borders) + 1
    if groups == 1 or groups > MOST_SPLIT:
        return list(borders)
    halved = min(2, groups - 1)
    middles = [(low + high) / 2 for low, high in list(pairwise([*borders, 1.0]))[-halved:]]
    return sorted([*borders, *middles])


def bar_words(count: int) -> tuple[str, ...]:
    """Return the words of that many bars, best first; beyond seven they repeat, and the letters differ."""
    if count in WORDS:
        return WORDS[count]
    return tuple(WORDS[7][round(k * 6 / (count - 1))] for k in range(count))


def bar_of(score: float, borders: Sequence[float]) -> int:
    """Return the number of a score's bar, 0 = best; on a border the riskier one."""
    return len(borders) - sum(border < score for border in borders)


def shown_bar(bar: int, words: Sequence[str], crowd: float) -> int:
    """Return the bar a person is shown: the paper's, unless it would call safe somebody who may be below the target.

    The paper's score says how somebody hides compared with others; where nobody hides well, the best is not
    safe either. `crowd` is how many people are expected to fit, themselves included. Estimates come from rounded
    counts of items taken one by one, and can be too high; docs/explanation/microdata.md says how often.

    >>> shown_bar(0, ("very safe", "safe", "medium risk", "not safe"), crowd=12)
    2
    """
    if crowd >= MARGIN * WANTED_CROWD or len(words) == 1:
        return bar
    return max(bar, next(place for place, word in enumerate(words) if not claims_safety(word)))


def claims_safety(word: str) -> bool:
    """Say whether the words of a bar call somebody safe."""
    return word.endswith("safe") and word != "not safe"


# Reads a person's own list of items: one a line, a JSON list, or a table with a column "item".


MARKS = ("\t", ",", ";")
FEWEST_COLUMNS = 3
"""Lines of fewer parts may be titles with a comma in them."""


def read_items(path: str | Path) -> list[str]:
    """Return the items of a file, repeats and blanks left out, in order."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSource(
            f"{path}: expected a text file of items, but it cannot be read ({type(error).__name__})"
        ) from None
    try:
        return _items_of_table(Path(path)) if _other_table(text) else parse_items(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _other_table(text: str) -> bool:
    """Say whether a text is a table that names no column `item`: every line has as many fields as the first."""
    lines = text.strip().splitlines()
    if len(lines) < 2 or lines[0].startswith("[") or _item_column(lines[0]) is not None:
        return False
    for mark in MARKS:
        fields = {len(row) for row in csv.reader(io.StringIO(text.strip()), delimiter=mark) if row}
        if len(fields) == 1 and fields.pop() >= FEWEST_COLUMNS:
            return True
    return False


def _items_of_table(path: Path) -> list[str]:
    """Read a table as an import does: the list of a service (books, films) names its items in its own way."""
    from incrowd.crowd.own_export import read_export  # here: whoever scores a plain list need not wait for it

    expected = "expected one item a line, or a table with a column 'item'"
    try:
        items = read_export([path]).items
    except InputError:
        raise InputError(f"{expected}, got a table whose items cannot be told") from None
    if not items:
        raise InputError(f"{expected}, got a table without items")
    return sorted(items)


def _item_column(header: str) -> tuple[str, int] | None:
    """Return what parts the columns of a table, and which of them holds the items; None: no such table."""
    for mark in MARKS:
        names = [name.strip().lower().split(":")[0] for name in header.split(mark)]
        if len(names) > 1 and "item" in names:
            return mark, names.index("item")
    return None


def parse_items(text: str) -> list[str]:
    """Return the items of a text.

    >>> parse_items("a\\n\\nb\\na")
    ['a', 'b']
    >>> parse_items("user,item\\nme,a\\nme,b")
    ['a', 'b']
    """
    stripped = text.strip()
    if stripped.startswith("["):
        return _tidy(_json_list(stripped))
    lines = stripped.splitlines()
    found = _item_column(lines[0]) if lines else None
    if found is None:
        return _tidy(lines)
    mark, column = found
    rows = csv.reader(io.StringIO("\n".join(lines[1:])), delimiter=mark)
    return _tidy([row[column] for row in rows if len(row) > column])


def _json_list(text: str) -> list[str]:
    try:
        return [str(one["item"] if isinstance(one, dict) else one) for one in json.loads(text)]
    except (json.JSONDecodeError, KeyError, TypeError):
        raise InputError(
            "expected a JSON list of items (or of objects with an 'item'), got something else"
        ) from None


def _tidy(items: list[str]) -> list[str]:
    return list(dict.fromkeys(item.strip() for item in items if item.strip()))


MOST_HURTING = 10


@dataclass(frozen=True)
class Hurting:
    """An item that gives you away, and how you would stand without it."""

    item: str
    people: float | None
    """About how many people have it; None: too few to be listed."""
    score_without: float
    others_without: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Score(Result):
    """How well a profile hides, by the provider's statistics."""

    items: int
    rare: int
    """Items that fewer than `rare_below` people have, unknown ones included."""
    unknown: int
    """Items the statistics do not list: too few people have them."""
    raw: float
    """rare/all + log(all); higher is riskier."""
    score: float
    """0 (riskiest) to 1 (safest); NaN if the statistics have no scale."""
    clamped: bool
    """The profile lies outside the scale of the crowd; the score was cut to 0 or 1."""
    group: int | None
    """0 = riskiest."""
    others: float
    """How many other people would fit what the adversary knows, on average."""
    hurting: tuple[Hurting, ...]
    """The least popular items, most harmful first."""
    score_without_all: float
    others_without_all: float
    statistics: Statistics

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        scored = "has no scale here" if math.isnan(self.score) else f"is {self.score:.2f} of 1"
        return f"Your score {scored}; of your {say_count(self.items, 'item')}, {reading(self.others)}."

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the items that hurt most, or the score alone if none does."""
        hurting: list[dict[str, Any]] = self.to_dict()["hurting"]
        return hurting or super().rows()

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the score as it is, and without the items that hurt most."""
        both = (("your score", self.score), ("without the items that hurt", self.score_without_all))
        return [(name, value) for name, value in both if not math.isnan(value)]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        names = ("items", "rare", "unknown", "clamped", "group")
        numbers = ("raw", "score", "others", "score_without_all", "others_without_all")
        return {
            **{name: getattr(self, name) for name in names},
            **{name: _finite(getattr(self, name)) for name in numbers},
            "groups": len(self.statistics.groups),
            "reading": reading(self.others),
            "hurting": [
                {
                    "item": one.item,
                    "people": one.people,
                    "score_without": _finite(one.score_without),
                    "others_without": _finite(one.others_without),
                }
                for one in self.hurting
            ],
            "statistics": {"release": self.statistics.number, "date": self.statistics.date},
        }


def score(items: Iterable[str], statistics: Statistics, *, hurting: int = MOST_HURTING) -> Score:
    """Score a list of items by the paper's formula and by the expected crowd, on this machine.

    `hurting`: how many harmful items to name, each with the score without it.
    """
    profile = LookedUpItems.of(items, statistics)
    profile.require_known()
    raw, value, clamped = profile.paper()
    worst = np.argsort(profile.people, kind="stable")[: max(0, min(hurting, len(profile.items) - 1))]
    without_all = profile.without(worst)
    return Score(
        items=len(profile.items),
        rare=profile.rare,
        unknown=int(profile.unknown.sum()),
        raw=raw,
        score=value,
        clamped=clamped,
        group=group_of(value, statistics),
        others=profile.others(),
        hurting=tuple(profile.hurting(int(index)) for index in worst),
        score_without_all=without_all.paper()[1],
        others_without_all=without_all.others(),
        statistics=statistics,
    )


def group_of(value: float, statistics: Statistics) -> int | None:
    """Return the nearest group, 0 = riskiest; a tie goes to the riskier one."""
    return None if math.isnan(value) else int(np.searchsorted(statistics.borders, value, side="left"))


@dataclass(frozen=True)
class LookedUpItems:
    """A person's items, looked up in the statistics."""

    items: np.ndarray[Any, np.dtype[np.object_]]
    people: Floats
    unknown: np.ndarray[Any, np.dtype[np.bool_]]
    probabilities: Floats
    """One row per class of people, one column per item."""
    crowd: Floats
    """How many people are in each class."""
    statistics: Statistics

    @classmethod
    def of(cls, items: Iterable[str], statistics: Statistics) -> LookedUpItems:
        """Look items up; repeats count once, blanks not at all."""
        names = sorted({item.strip() for item in items} - {""})
        if not names:
            raise InputError(
                "items: expected at least one item, got an empty profile; there is nothing to score"
            )
        told = statistics.told(names)
        unknown = np.isnan(told)
        people = np.where(unknown, statistics.unlisted, told)
        probabilities, crowd = class_model(names, people, statistics)
        return cls(np.array(names, dtype=object), people, unknown, probabilities, crowd, statistics)

    def require_known(self) -> None:
        """Refuse a profile that shares nothing with the statistics: they may be about something else."""
        if self.unknown.all():
            raise InputError(
                f"cannot tell: of your {say_count(len(self.items), 'item')} none is in these statistics. Is this the "
                "right file? If it is, whatever you listed is too rare to be named, and gives you away"
            )

    @property
    def rare(self) -> int:
        """How many items are rare; unknown ones are."""
        return int((self.unknown | (self.people < self.statistics.rare_below)).sum())

    def paper(self) -> tuple[float, float, bool]:
        """Return raw risk, score, and whether the score had to be cut to 0..1."""
        statistics = self.statistics
        raw = float(risk_raw(len(self.items), self.rare, statistics.log_base))
        free = float(privacy_score(raw, statistics.raw_min, statistics.raw_max))
        inside = min(max(free, 0.0), 1.0) if not math.isnan(free) else free
        return raw, inside, inside != free and not math.isnan(free)

    def others(self) -> float:
        """Return the expected number of other people who fit."""
        return expected_others(self.probabilities, self.crowd, self.statistics.knowledge)

    def without(self, dropped: Any) -> LookedUpItems:
        """Return the profile with some items (by number) left out."""
        keep = np.ones(len(self.items), dtype=bool)
        keep[dropped] = False
        rest = (self.items[keep], self.people[keep], self.unknown[keep], self.probabilities[:, keep])
        return LookedUpItems(*rest, self.crowd, self.statistics)

    def hurting(self, index: int) -> Hurting:
        """Say what one item costs."""
        rest = self.without(index)
        people = None if self.unknown[index] else float(self.people[index])
        return Hurting(str(self.items[index]), people, rest.paper()[1], rest.others())


def class_model(items: list[str], people: Floats, statistics: Statistics) -> tuple[Floats, Floats]:
    """Return p(item | class) and the number of people in each class, with or without taste groups."""
    activity, users = statistics.activity, max(statistics.users, 1)
    if not statistics.taste:
        return class_probabilities(people / users, activity), users * activity.shares
    listed = np.array([[one.popularity.get(item, 0.0) for item in items] for one in statistics.taste])
    sizes = np.array([one.people for one in statistics.taste], dtype=np.float64)
    shares = taste_shares(listed, people, sizes)
    rows, crowd = [], []
    for share, one in zip(shares, statistics.taste, strict=True):
        rows.append(class_probabilities(share, ActivityGroups(one.activity_shares, activity.levels)))
        crowd.append(one.people * one.activity_shares)
    return np.vstack(rows), np.concatenate(crowd)


def taste_shares(listed: Floats, people: Floats, sizes: Floats) -> Floats:
    """Return which share of each taste group has each item.

    Where a group's own count is not listed, the people not accounted for by the listed groups are spread
    evenly over the other groups; a fiftieth at least, since counts are rounded.
    """
    rest = np.maximum(people - listed.sum(axis=0), people / 50.0)
    unlisted_people = np.where(listed > 0, 0.0, sizes[:, None]).sum(axis=0)
    spread = rest / np.maximum(unlisted_people, 1.0)
    return np.minimum(np.where(listed > 0, listed / sizes[:, None], spread), LARGEST)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# A client's own score as assessments: from the provider's statistics alone.

MEASURE = "microdata"


def score_assessments(score: Score) -> tuple[Assessment, Assessment]:
    """Return a client's two results: the paper's score and the expected crowd."""
    statistics = score.statistics
    parameters = {
        "release": statistics.number,
        "date": statistics.date,
        "rare_below": statistics.rare_below,
        "log_base": statistics.log_base,
        "knowledge": statistics.knowledge.to_dict(),
        "unknown_items": score.unknown,
        "clamped": score.clamped,
    }
    assumptions = Assumptions(adversary=statistics.knowledge.words, parameters=parameters)
    subject = f"your {score.items} items"
    undefined = "no_scale: everybody in the statistics has the same raw risk" if score.group is None else ""
    paper = Assessment(
        measure=MEASURE,
        subject=subject,
        value=score.score,
        unit=explain.SCORE_UNIT,
        direction=Direction.HIGHER_IS_SAFER,
        meaning=_group(score),
        standing=Standing.REPRODUCTION,
        assumptions=assumptions,
        crowd_size=statistics.users,
        threats=(Threat.SINGLING_OUT,),
        evidence=explain.of_raw_risk(score.items, score.rare, score.raw),
        explained=score.raw,
        advice=_client_advice(score, score.score, score.score_without_all, "score"),
        reason=undefined,
    )
    crowd = Assessment(
        measure=MEASURE,
        subject=subject,
        value=1 + score.others,
        unit="people",
        direction=Direction.HIGHER_IS_SAFER,
        meaning=explain.estimate_meaning(score.others, statistics.knowledge.words),
        standing=Standing.HEURISTIC,
        assumptions=assumptions,
        baseline=float(statistics.users),
        crowd_size=statistics.users,
        threats=(Threat.SINGLING_OUT,),
        advice=_client_advice(score, 1 + score.others, 1 + score.others_without_all, "crowd"),
    )
    return paper, crowd


def _group(score: Score) -> str:
    if score.group is None:
        return "The statistics have no scale to compare you on."
    groups = score.statistics.groups
    return explain.group_meaning(score.items, score.group, len(groups), groups[score.group].people)


def _client_advice(score: Score, before: float, after: float, kind: str) -> tuple[Advice, ...]:
    """Name what to leave out, where that helps."""
    advice = []
    for one in score.hurting[:3]:
        then = one.score_without if kind == "score" else 1 + one.others_without
        advice.append(Advice(what=f"Leave out '{one.item}'", before=before, after=then, loss="one item"))
    if len(score.hurting) > 1:
        count = len(score.hurting)
        action = f"Leave out your {count} least popular items"
        advice.append(
            Advice(what=action, before=before, after=after, loss=f"{count} of your {score.items} items")
        )
    return tuple(one for one in advice if one.after > one.before)
