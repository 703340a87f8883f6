"""From single finds to what a person has told: votes by value, birth years from dated ages, contradictions, certainty.

Each kind of find has been held against labelled people it was not written on (``data/LANGUAGE/certainty.tsv``): how
often was the value right? The log-odds of that is what one find of the kind is worth. Finds that agree add up, each
further post of the same kind less than the one before; finds of another value take away. Where values exclude each
other (a birth year, a gender), the best value's certainty is its share of all evidence. The later and the more frequent
wins: where a value can change and several are told, a find's weight halves for every `HALVING` years that it is older
than the latest one, and what was told only before the best value was is the past, not a denial.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any

from incrowd.measures.disclosures.find import Reading
from incrowd.measures.disclosures.language import DATA
from incrowd.measures.disclosures.statements import Find

EXCLUSIVE = frozenset(
    (
        "age",
        "age band",
        "gender",
        "relationship",
        "location",
        "birthplace",
        "education",
        "occupation",
        "children",
        "name",
    )
)
"""Attributes of which a person has one value at a time."""
CHANGING = frozenset(
    ("relationship", "location", "education", "occupation", "children", "employer", "car", "pet", "income")
)
HALVING = 3.0
"""Years."""
TOLD = 0.8
"""From this certainty on, something counts as told."""
LISTED = 0.5
"""Below, it is not worth a line."""
YEAR = 365.25 * 86400
BEFORE = (9, 1)
"""What is believed of a kind of statement before any label is seen: nine of ten are right; of a sign, three of four."""
BEFORE_SIGN = (3, 1)
ONE_OF_THEM = frozenset(("emoji", "us girls", "us guys", "being a", "model"))
"""Signs of gender in which somebody counts themselves in; of all others one alone is never enough."""
COARSER = {
    "degree": ("bachelor", "master", "doctorate", "professional degree", "higher degree"),
    "higher degree": ("master", "doctorate", "professional degree"),
    "single": ("divorced", "widowed"),
    "in a relationship": ("engaged", "married"),
    "married": ("widowed",),
}
"""What people also say who could say it more exactly: a divorced person calls themselves single."""


@dataclass(frozen=True, slots=True)
class DatedReading:
    """What one of a person's posts says, and when."""

    number: int
    time: int | None
    reading: Reading


@dataclass(frozen=True, kw_only=True)
class Told:
    """One fact about the person, as their posts tell it."""

    attribute: str
    value: str
    certainty: float
    """Calibrated probability that it is so."""
    said: bool
    """False: suggested by signs alone, not stated."""
    posts: tuple[int, ...]
    """The posts that tell it, by number."""
    times: tuple[int, ...] = ()
    """When, UTC seconds, as far as known, oldest first."""
    spans: tuple[tuple[int, int, int], ...] = field(default=(), repr=False)
    """(post, start, end) in the cleaned text."""
    against: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Other values that other posts tell: a contradiction."""
    calibrated: bool = True
    """False: no labelled people tell how often this kind of statement is right."""

    @property
    def told(self) -> bool:
        """True if it is certain enough to count."""
        return self.certainty >= TOLD

    @property
    def years(self) -> tuple[int, ...]:
        """The years in which it was told."""
        return tuple(sorted({datetime.fromtimestamp(time, UTC).year for time in self.times}))

    def to_dict(self) -> dict[str, Any]:
        """Return plain types; posts by number, no text."""
        dates = [datetime.fromtimestamp(time, UTC).date().isoformat() for time in self.times]
        return {
            "attribute": self.attribute,
            "value": self.value,
            "certainty": round(self.certainty, 3),
            "calibrated": self.calibrated,
            "said": self.said,
            "posts": list(self.posts),
            "first": dates[0] if dates else None,
            "last": dates[-1] if dates else None,
            "against": {value: list(posts) for value, posts in self.against.items()},
        }


@dataclass(frozen=True, kw_only=True)
class Named:
    """A direct identifier in the person's posts: its kind and where it stands, never what it is."""

    kind: str
    posts: tuple[int, ...]
    spans: tuple[tuple[int, int, int], ...] = field(default=(), repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {"kind": self.kind, "posts": list(self.posts)}


@dataclass(frozen=True, slots=True)
class _Vote:
    value: str
    weight: float
    post: int
    time: int | None
    find: Find


def gather(readings: Iterable[DatedReading]) -> tuple[tuple[Told, ...], tuple[Named, ...], int]:
    """Put a person's readings together: facts, direct identifiers, and how many statements were about others."""
    readings = list(readings)
    last = max((one.time for one in readings if one.time is not None), default=None)
    votes: dict[str, list[_Vote]] = defaultdict(list)
    named: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    others = 0
    for one in readings:
        others += one.reading.others
        for found in one.reading.identifiers:
            named[found.kind].append((one.number, found.start, found.end))
        for find in one.reading.finds:
            if find.attribute == "name":
                named["name"].append((one.number, find.start, find.end))
            else:
                attribute, vote = _vote(find, one, last)
                votes[attribute].append(vote)
    facts: list[Told] = []
    for attribute, some in votes.items():
        facts += _decide(attribute, some, last)
    facts.sort(key=lambda fact: (_order(fact.attribute), -fact.certainty, fact.value))
    names = tuple(
        Named(kind=kind, posts=tuple(sorted({post for post, _, _ in some})), spans=tuple(some))
        for kind, some in sorted(named.items())
    )
    return tuple(fact for fact in facts if fact.certainty >= LISTED), names, others


ATTRIBUTES = (
    "age", "age band", "birth date", "gender", "relationship", "children", "location", "birthplace", "school",
    "education", "field of study", "occupation", "employer", "income", "health", "religion", "politics", "sexuality",
    "origin", "language", "pet", "car", "absence",
)  # fmt: skip


def _order(attribute: str) -> int:
    return ATTRIBUTES.index(attribute) if attribute in ATTRIBUTES else len(ATTRIBUTES)


def _vote(find: Find, post: DatedReading, last: int | None) -> tuple[str, _Vote]:
    attribute, value = find.attribute, find.value
    weight = worth(find)
    if attribute in ("age", "birth year"):
        attribute, value = "age", _birth_year(find, post, last)
    return attribute, _Vote(value, weight, post.number, post.time, find)


def _birth_year(find: Find, post: DatedReading, last: int | None) -> str:
    """Return the year of birth a find speaks for; without a date of its own, the last post's stands in."""
    if find.attribute == "birth year":
        return find.value
    time = post.time if post.time is not None else last
    year = (1970 + time / YEAR) if time is not None else datetime.now(UTC).year + 0.5
    # Half a year has passed since the birthday on average; somebody who is about to turn n is n - 1 still.
    age = int(find.value) + (0.0 if find.kind in ("age turned", "age soon", "age birthday") else 0.5)
    return str(math.floor(year - age))


def worth(find: Find) -> float:
    """Return what one find is worth: the log-odds that it is right."""
    before = BEFORE_SIGN if find.sign else BEFORE
    right, wrong = counts_of(find)
    odds = math.log((right + before[0]) / (wrong + before[1]))
    if find.sign and find.attribute == "gender" and find.kind not in ONE_OF_THEM:
        # Whom one loves and what one carries ("my purse") says little of one person, once.
        odds = min(odds, math.log(BEFORE_SIGN[0] / BEFORE_SIGN[1]))
    return max(0.05, odds)


def counts_of(find: Find) -> tuple[int, int]:
    """Return how often finds of a kind were right and wrong about labelled people."""
    table = calibration()
    for key in ((find.kind, find.attribute, find.value), (find.kind, find.attribute, "*")):
        if key in table:
            return table[key]
    return 0, 0


@cache
def calibration(code: str = "en") -> dict[tuple[str, str, str], tuple[int, int]]:
    """Read how often each kind of find was right."""
    found = {}
    for line in DATA.joinpath(code, "certainty.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            kind, attribute, value, right, wrong, *_ = line.split("\t")
            found[kind, attribute, value] = int(right), int(wrong)
    return found


def _decide(attribute: str, votes: Sequence[_Vote], last: int | None) -> list[Told]:
    """Weigh the votes for the values of one attribute."""
    by_value: dict[str, list[_Vote]] = defaultdict(list)
    for vote in votes:
        by_value[vote.value].append(vote)
    if attribute == "age":
        return _decide_age(by_value, last)
    whole = {value: _score(some) for value, some in by_value.items()}
    if attribute not in EXCLUSIVE:
        return [
            _told(attribute, value, by_value, {value}, _certainty(whole[value], 0.0)) for value in by_value
        ]
    scores = _refined(attribute, _aged(by_value) if attribute in CHANGING else whole)
    best = max(scores, key=lambda value: (scores[value], _latest(by_value[value]), value))
    agreeing = {value for value in by_value if _agree(attribute, value, best)}
    against = max(
        (
            score
            for value, score in scores.items()
            if value not in agreeing
            and not (attribute in CHANGING and _is_past(by_value[value], by_value[best]))
        ),
        default=0.0,
    )
    # Age decides between values; what nobody denies stays as certain as it was.
    score = scores[best] if against else _refined(attribute, whole)[best]
    return [_told(attribute, best, by_value, agreeing, _certainty(score, against))]


def _is_past(votes: Sequence[_Vote], best: Sequence[_Vote]) -> bool:
    """Say whether a value was told before the best one only: married once, divorced since, is no contradiction."""
    begun = min((vote.time for vote in best if vote.time is not None), default=None)
    return begun is not None and all(vote.time is not None and vote.time < begun for vote in votes)


def _aged(by_value: Mapping[str, list[_Vote]]) -> dict[str, float]:
    """Score each value with older votes counting less."""
    latest = max(map(_latest, by_value.values()))
    scores = {}
    for value, votes in by_value.items():
        younger = [
            replace(vote, weight=vote.weight * 0.5 ** ((latest - vote.time) / YEAR / HALVING))
            if vote.time is not None
            else vote
            for vote in votes
        ]
        scores[value] = _score(younger)
    return scores


def _refined(attribute: str, scores: Mapping[str, float]) -> dict[str, float]:
    """Let what is coarser speak for what is finer: "degree" for "master", "has children" for "two children"."""
    refined = {}
    for value, score in scores.items():
        coarser = [
            other for other in scores if other != value and _agree(attribute, other, value, finer_only=True)
        ]
        refined[value] = score + sum(scores[other] for other in coarser) * 0.5
    return refined


def _agree(attribute: str, one: str, other: str, *, finer_only: bool = False) -> bool:
    """Say whether two values can both be true; with `finer_only`, whether the first contains the second."""
    if one == other:
        return not finer_only
    if attribute in ("location", "birthplace"):
        return other.endswith(f", {one}") or (not finer_only and one.endswith(f", {other}"))
    if attribute == "children":
        return (one == "yes" and other != "0") or (not finer_only and other == "yes" and one != "0")
    if other in COARSER.get(one, ()):
        return True
    return not finer_only and one in COARSER.get(other, ())


def _decide_age(by_value: Mapping[str, list[_Vote]], last: int | None) -> list[Told]:
    """Birth years a year apart agree: a birthday lies between them."""
    years = sorted(int(year) for year in by_value)
    groups = {year: [other for other in (year - 1, year, year + 1) if other in years] for year in years}
    scores = {
        year: _score([vote for other in some for vote in by_value[str(other)]])
        for year, some in groups.items()
    }
    best = max(
        years, key=lambda year: (scores[year], len(by_value[str(year)]), _latest(by_value[str(year)]), year)
    )
    agreeing = {str(year) for year in groups[best]}
    against = max((scores[year] for year in years if abs(year - best) > 2), default=0.0)
    told = _told("age", str(best), by_value, agreeing, _certainty(scores[best], against))
    now = (1970 + last / YEAR) if last is not None else datetime.now(UTC).year + 0.5
    age = max(0, math.floor(now - best - 0.5 + 1e-9))
    reached = [
        int(vote.find.value)
        for year in agreeing
        for vote in by_value[year]
        if vote.find.attribute == "age" and (vote.time is None or last is None or last - vote.time < YEAR)
    ]
    if reached:  # what was said within the last year is the age itself
        age = max(reached)
    return [
        Told(
            **{
                **vars(told),
                "value": str(age),
                "against": {f"born {value}": posts for value, posts in told.against.items()},
            }
        )
    ]


def _score(votes: Sequence[_Vote]) -> float:
    """Add up what finds are worth; the n-th post of a kind adds half as much as the one before."""
    kinds: dict[str, dict[int, float]] = defaultdict(dict)
    for vote in votes:
        posts = kinds[vote.find.kind]
        posts[vote.post] = max(posts.get(vote.post, 0.0), vote.weight)
    total = 0.0
    for posts in kinds.values():
        for place, weight in enumerate(sorted(posts.values(), reverse=True)):
            total += weight * 0.5**place
    return total


def _certainty(score: float, against: float) -> float:
    return 1 / (1 + math.exp(-(score - against)))


def _latest(votes: Sequence[_Vote]) -> float:
    return max((vote.time for vote in votes if vote.time is not None), default=-math.inf)


def _told(
    attribute: str, value: str, by_value: Mapping[str, list[_Vote]], agreeing: set[str], certainty: float
) -> Told:
    mine = [vote for one in agreeing for vote in by_value[one]]
    known = calibration()
    return Told(
        attribute=attribute,
        value=value,
        certainty=certainty,
        said=any(not vote.find.sign for vote in mine),
        posts=tuple(sorted({vote.post for vote in mine})),
        times=tuple(sorted({vote.time for vote in mine if vote.time is not None})),
        spans=tuple(sorted({(vote.post, vote.find.start, vote.find.end) for vote in mine})),
        against={
            other: tuple(sorted({vote.post for vote in some}))
            for other, some in sorted(by_value.items())
            if other not in agreeing and attribute in EXCLUSIVE
        },
        calibrated=any(
            (vote.find.kind, vote.find.attribute, key) in known
            for vote in mine
            for key in (vote.find.value, "*")
        ),
    )
