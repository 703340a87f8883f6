"""What gives somebody away: which habits two sets of their posts have in common, and which posts show them.

An attacker compares profiles by the habits they share, each weighed by how rare it is. Such a resemblance is a sum
over habits, so every habit, and every post that shows it, has its share in it. Posts with the largest shares are what
advice tries to do without; habits with the largest shares are what a person could do differently from now on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.arrays import Floats
from incrowd.measures.findings import GivesAway
from incrowd.measures.prepared import PreparedCrowd
from incrowd.profiles.habits import WEEK, PostHabits, post_habits
from incrowd.result import Evidence
from incrowd.text.mentions import SOMEBODY, without_mentions
from incrowd.text.options import TextOptions

LEAST_SHARE = 0.02
"""A kind of habit that counts for less is not worth a sentence."""
SAME = 1e-9
MOST_NAMED = 60
"""Habits of a family that are looked up by name: the strongest."""


class Kind(StrEnum):
    """Kinds of habits, as a person would call them."""

    NAMES = "names of places, people and things"
    WORDS = "words that few others use"
    LITTLE = "how you use little words"
    PHRASES = "turns of phrase"
    WRITING = "spelling, capitals and punctuation"


ADVICE: dict[Kind, str] = {
    Kind.NAMES: "say it more coarsely: a region instead of a town, a field instead of an employer or a school",
    Kind.WORDS: "use the everyday word",
    Kind.LITTLE: "write shorter posts, which show less of it; it is hard to change at will",
    Kind.PHRASES: "put it another way each time",
    Kind.WRITING: "write as the others there do; a spelling checker helps, and so does turning smart punctuation off",
}
"""What to do about a kind of habit from now on."""
TIMES = "when you are there"
OTHER_TIMES = "post there at other hours, and not in the same weeks"


@dataclass(frozen=True)
class Habit:
    """One habit, and its share in what makes the posts recognisable; all shares add up to 1."""

    kind: Kind
    name: str
    share: float

    @property
    def word(self) -> str:
        """The word that it is; empty for everything that is no single word."""
        single = self.kind in (Kind.NAMES, Kind.WORDS) and self.name != SOMEBODY
        return self.name.strip("“”") if single else ""

    @property
    def said(self) -> str:
        """What it is, in words."""
        return self.name if self.name == SOMEBODY else f"{_SAID[self.kind]} {self.name}"


def rarity_of(profiles: Iterable[sp.csr_matrix], width: int) -> Floats:
    """Return how rare each habit is among some people's profiles; what nobody does counts for nothing."""
    holders, people = np.zeros(width), 0
    for rows in profiles:
        holders[: rows.shape[1]] += np.bincount(rows.indices, minlength=rows.shape[1])
        people += rows.shape[0]
    return np.where(holders > 0, np.log((1 + people) / (1 + holders)) + 1, 0.0)


def common_habits(mine: sp.csr_matrix, theirs: sp.csr_matrix, rarity: NDArray[np.floating]) -> Floats:
    """Return the share of each habit (column) in what two sets of posts have in common; they add up to 1, or to 0."""
    counts = [np.asarray(rows.sum(axis=0), np.float64).ravel() for rows in (mine, theirs)]
    both = np.flatnonzero((counts[0] > 0) & (counts[1] > 0))
    found = np.zeros(len(rarity))
    # What everybody does (rarity 1) makes all alike, and tells nobody apart.
    weight = np.maximum(rarity[both] ** 2 - 1, 0.0)
    found[both] = np.prod([1 + np.log(one[both]) for one in counts], axis=0) * weight
    total = found.sum()
    return found / total if total else found


def shares_of_posts(mine: sp.csr_matrix, habits: Floats) -> Floats:
    """Return the share of each post, given the share of each habit: whoever shows it more often has more of it."""
    used = np.asarray(mine.sum(axis=0), np.float64).ravel()
    per_use = np.divide(habits, used, out=np.zeros_like(habits), where=used > 0)
    return np.asarray(mine @ per_use, np.float64).ravel()


def shares_by_time(mine: pl.Series, theirs: pl.Series, every: int, of: int | None = None) -> Floats:
    """Return the share of each post in being there at the same times: in the same weeks, or hours of the day.

    Times are UTC seconds, cut into spans of `every` seconds, of which there are `of` before they come again.
    """
    spans = [one.cast(pl.Int64) // every for one in (mine, theirs)]
    if of is not None:
        spans = [one % of for one in spans]
    there = dict(spans[1].drop_nulls().value_counts().iter_rows())
    here = dict(spans[0].drop_nulls().value_counts().iter_rows())
    told = [np.sqrt(there.get(span, 0) / here[span]) if span is not None else 0.0 for span in spans[0]]
    found = np.array(told, np.float64)
    total = found.sum()
    return found / total if total else found


def same_weeks(mine: pl.Series, theirs: pl.Series) -> Floats:
    """Return the share of each post in being active in the same weeks."""
    return shares_by_time(mine, theirs, WEEK)


def same_hours(mine: pl.Series, theirs: pl.Series) -> Floats:
    """Return the share of each post in being active at the same hours of the day."""
    return shares_by_time(mine, theirs, 3600, 24)


@dataclass(frozen=True, eq=False)
class Telling:
    """What one set of a person's posts has in common with another, family by family."""

    mine: PostHabits
    habits: Mapping[str, Floats]

    @classmethod
    def of(cls, mine: PostHabits, theirs: PostHabits, rarity: Mapping[str, NDArray[np.floating]]) -> Telling:
        """Compare them; `rarity` has an entry for each family to look at."""
        found = {
            name: common_habits(mine.rows[name], theirs.rows[name], rare) for name, rare in rarity.items()
        }
        return cls(mine, found)

    def posts(self, weights: Mapping[str, float]) -> Floats:
        """Return how much each post gives away, the families weighed."""
        total = np.zeros(self.mine.count)
        for name, shares in self.habits.items():
            total += weights.get(name, 0.0) * shares_of_posts(self.mine.rows[name], shares)
        return total

    def named(self, texts: Sequence[str], weights: Mapping[str, float]) -> list[Habit]:
        """Return the strongest habits by name, read off the person's own texts, the strongest first."""
        whole = sum(weights[name] for name, shares in self.habits.items() if shares.any()) or 1.0
        found: dict[tuple[Kind, str], float] = {}
        own = [without_mentions(text) for text in texts]
        names = _proper_names(own)
        for family, shares in self.habits.items():
            strongest = np.argsort(-shares, kind="stable")[:MOST_NAMED]
            cells = {int(cell) for cell in strongest if shares[cell] > 0}
            called = habit_names(own, family, cells)
            others = habit_names(texts, family, cells - set(called)) if own != list(texts) else {}
            for cell, name in (called | others).items():
                key = _kind_of(family, name, names) if cell in called else (Kind.NAMES, SOMEBODY)
                found[key] = found.get(key, 0.0) + float(shares[cell]) * weights[family] / whole
        ordered = sorted(found.items(), key=lambda entry: (-entry[1], entry[0]))
        return [Habit(kind, name, share) for (kind, name), share in ordered]


# Names of habits. Profiles hold hashes; the person's own texts hold what they stand for.

_WORD = r"[A-Za-z0-9'\u0080-\U0010ffff]+"
_SHAPES = {
    "abcd": "words in small letters",
    "Abcd": "words with a capital first letter",
    "abCd": "capitals inside words",
    "ABCD": "words in capitals",
}
_SPACES = {"\n": "line breaks", "\n\n": "empty lines between paragraphs", "  ": "double spaces"}


def habit_names(texts: Sequence[str], family: str, cells: set[int]) -> dict[int, str]:
    """Return what some habits of a family are called, as far as the texts show them."""
    if not cells:
        return {}
    pieces = sorted(_pieces(texts, family))
    rows = post_habits(pl.Series(pieces, dtype=pl.String), (family,)).rows[family]
    found: dict[int, str] = {}
    for place, piece in enumerate(pieces):
        for cell in rows.indices[rows.indptr[place] : rows.indptr[place + 1]]:
            if int(cell) in cells:
                found.setdefault(int(cell), piece)
    if family == "style":
        found |= _shapes(cells)
    return found


def _pieces(texts: Sequence[str], family: str) -> set[str]:
    """Cut texts into what each habit of a family is read from."""
    if family == "words":
        return {piece for text in texts for piece in text.split()}
    if family == "style":
        cut = re.compile(rf"{_WORD}|\s+|[^\sA-Za-z0-9'\u0080-\U0010ffff]+ ?")
        return {piece for text in texts for piece in cut.findall(text)}
    words = [[word.lower() for word in re.findall(_WORD, text)] for text in texts]
    if family == "vocabulary":
        return {word for post in words for word in post}
    return {f"{one} {two}" for post in words for one, two in pairwise(post)}


def _shapes(cells: set[int]) -> dict[int, str]:
    rows = post_habits(pl.Series(list(_SHAPES)), ("style",)).rows["style"]
    found = {}
    for place, name in enumerate(_SHAPES.values()):
        for cell in rows.indices[rows.indptr[place] : rows.indptr[place + 1]]:
            if int(cell) in cells:
                found[int(cell)] = name
    return found


def _proper_names(texts: Sequence[str]) -> set[str]:
    """Return the words that the texts write with a capital inside a sentence, more often than not."""
    upper: dict[str, int] = {}
    for text in texts:
        for before, chunk in pairwise(text.split()):
            found = re.search(_WORD, chunk)
            if found is not None and len(found[0]) > 2 and before[-1] not in '.!?:;"”*-':
                word = found[0]
                capital = word[0].isupper() and not word.isupper()
                upper[word.lower()] = upper.get(word.lower(), 0) + (1 if capital else -1)
    return {word for word, lead in upper.items() if lead > 0}


_FACE = re.compile("^[a-z][A-Z]$")
"""Such as "xD": no word, whereas "McKnight" and "iPhone" are."""
_MARKS = ".,;:!?()[]\"'*“”"


@cache
def _little_words() -> frozenset[str]:
    """Return words such as "the", "her" and "didn't": everybody uses them, each person in their own measure."""
    return frozenset(word for word in TextOptions().stop_word_list if len(word) > 1 or word in "ai")


def _kind_of(family: str, name: str, names: set[str]) -> tuple[Kind, str]:
    """Return the kind of a habit and how to call it."""
    if family != "phrases":
        little = name.strip(_MARKS).lower()
        if little in _little_words():
            return Kind.LITTLE, f"“{little}”"
        if little.replace("’", "'") in _little_words():  # everybody's word, as a telephone sets it
            return Kind.WRITING, f"“{little}” with a curly apostrophe"
    if family == "style":
        if name in _SHAPES.values():
            return Kind.WRITING, name
        if name.isspace():
            return Kind.WRITING, _SPACES.get(name, _SPACES["\n\n"])
    if family == "phrases":
        return Kind.PHRASES, f"“{name}”"
    plain = name.strip(_MARKS).lower()
    if not re.fullmatch(_WORD, plain or " ") or _FACE.match(name.strip(_MARKS)):
        return Kind.WRITING, f"“{name.strip()}”"
    return (Kind.NAMES if plain in names else Kind.WORDS), f"“{plain}”"


_SAID = {
    Kind.NAMES: "the name",
    Kind.WORDS: "the word",
    Kind.LITTLE: "the little word",
    Kind.PHRASES: "the phrase",
    Kind.WRITING: "writing",
}


def evidence(habits: Sequence[Habit]) -> tuple[Evidence, ...]:
    """Return habits as parts of what makes somebody recognisable."""
    return tuple(Evidence(what=one.said, contribution=one.share, detail=str(one.kind)) for one in habits)


def by_kind(
    habits: Sequence[Habit], times: Mapping[str, float] | None = None, most: int = 3
) -> tuple[GivesAway, ...]:
    """Return the kinds of habits, strongest first: the share of each among those named, and its strongest few.

    `times`: what being there at the same times counts for, by name, as shares of all that counts; writing is the rest.
    """
    when = {name: share for name, share in (times or {}).items() if share >= LEAST_SHARE}
    whole = (sum(one.share for one in habits) or 1.0) / (1.0 - min(sum(when.values()), 1.0 - SAME))
    kinds: dict[Kind, list[Habit]] = {}
    for one in habits:
        kinds.setdefault(one.kind, []).append(one)
    told = [
        GivesAway(
            kind=str(kind),
            share=sum(one.share for one in some) / whole,
            examples=tuple(one.name for one in some[:most]),
            advice=ADVICE[kind],
        )
        for kind, some in kinds.items()
    ]
    if when:
        told.append(GivesAway(kind=TIMES, share=sum(when.values()), examples=tuple(when), advice=OTHER_TIMES))
    worth_saying = [one for one in told if one.share >= LEAST_SHARE]
    return tuple(sorted(worth_saying, key=lambda one: (-one.share, one.kind)))


def kept_habits(
    crowd: PreparedCrowd, question: Mapping[str, Any], find: Callable[[], Sequence[Habit]]
) -> tuple[Habit, ...]:
    """Return somebody's habits, looked for once for the same question."""

    def look() -> dict[str, NDArray[Any]]:
        found = find()
        return {
            "kinds": np.array([str(one.kind) for one in found], dtype=str),
            "names": np.array([one.name for one in found], dtype=str),
            "shares": np.array([one.share for one in found], np.float64),
        }

    kept = crowd.answer(question, look)
    parts = (kept[name].tolist() for name in ("kinds", "names", "shares"))
    return tuple(Habit(Kind(kind), name, share) for kind, name, share in zip(*parts, strict=True))
