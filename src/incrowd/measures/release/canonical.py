"""One name for one thing: "LOTR", "Lord of the Rings" and "the lord of the rings!" are the same film.

People spell favourites in many ways, and a spelling that few share may not be released. Bringing spellings
together first releases more and is safer (paper 001, section VIII-B). Three steps, from certain to doubtful:
spellings that differ only in case, punctuation and articles are one; an alias table says what else is; and
what merely looks alike is proposed in a review file that a person decides row by row.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.release.patterns import Holders

ARTICLES = ("the ", "a ", "an ")
REVIEW_COLUMNS = ("value", "canonical", "likeness", "holders", "accept")
YES = frozenset({"yes", "y", "true", "1", "x"})
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Cells that begin like this would run as formulas in a spreadsheet."""
Aliases = Mapping[str, str]
"""A spelling -> the name it stands for."""


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Two spellings that look alike: does the first stand for the second?"""

    value: str
    canonical: str
    likeness: float
    """0 to 100."""
    holders: int
    """How many users list the first."""


def folded(value: str) -> str:
    """Return a spelling without case, punctuation, width variants and leading article.

    >>> folded("  The Lord of the Rings!! ")
    'lord of the rings'
    """
    plain = unicodedata.normalize("NFKC", value).casefold()
    words = " ".join(re.findall(r"[^\W_]+", plain))
    short = next((words[len(article) :] for article in ARTICLES if words.startswith(article)), words)
    return short or words or plain.strip()


def canonicalise(holders: Holders, aliases: Aliases | None = None) -> dict[str, list[object]]:
    """Bring spellings together; each name keeps the spelling that most users chose, or the alias table's."""
    listed = {value: dict.fromkeys(users) for value, users in holders.items()}
    sizes: dict[str, int] = {}
    for value, users in listed.items():
        sizes[str(value)] = sizes.get(str(value), 0) + len(users)
    names = canonical_names(sizes, aliases)
    merged: dict[str, dict[object, None]] = {}
    for value, users in listed.items():
        merged.setdefault(names[str(value)], {}).update(users)
    return {name: list(users) for name, users in merged.items()}


def canonical_names(sizes: Mapping[str, int], aliases: Aliases | None = None) -> dict[str, str]:
    """Take how many users list each spelling, and return the name that each goes under."""
    names = _resolved(aliases or {})
    targets = {spelling: names.get(folded(spelling), spelling) for spelling in sizes}
    votes: dict[str, dict[str, int]] = {}
    for spelling, target in targets.items():
        same = votes.setdefault(folded(target), {})
        same[target] = same.get(target, 0) + sizes[spelling]
    chosen = set(names.values())
    best = {key: _best_spelling(same, chosen) for key, same in votes.items()}
    return {spelling: best[folded(target)] for spelling, target in targets.items()}


def uncounted_names(spellings: Iterable[str], aliases: Aliases) -> dict[str, str]:
    """Return the name that each spelling goes under, whoever lists it: the alias table's, or the plain form.

    Where strangers see names, a name that most people chose would tell them who tipped the scales.

    >>> uncounted_names(["LOTR", "the lord of the rings!", "Heat!"], {"LOTR": "The Lord of the Rings"})
    {'LOTR': 'The Lord of the Rings', 'the lord of the rings!': 'The Lord of the Rings', 'Heat!': 'heat'}
    """
    names = _resolved(aliases)
    written = {folded(name): name for name in sorted(aliases.values(), reverse=True)}
    plain = {spelling: folded(names.get(folded(spelling), spelling)) for spelling in spellings}
    return {spelling: written.get(name, name) for spelling, name in plain.items()}


def propose(holders: Holders, *, likeness: float = 90.0, memory: int = 2**27) -> list[Proposal]:
    """Suggest which rarer spellings may stand for which commoner ones, most alike first.

    Spellings with different numbers in them are never suggested: a sequel is another film.
    """
    sizes = {folded(value): (len(users), value) for value, users in canonicalise(holders).items()}
    names = sorted(sizes, key=lambda name: (-sizes[name][0], name))
    found = [
        Proposal(
            value=sizes[names[row]][1],
            canonical=sizes[names[column]][1],
            likeness=round(score, 1),
            holders=sizes[names[row]][0],
        )
        for row, column, score in _most_alike(names, likeness, memory)
    ]
    return sorted(found, key=lambda proposal: (-proposal.likeness, proposal.value))


def _most_alike(names: Sequence[str], likeness: float, memory: int) -> Iterable[tuple[int, int, float]]:
    """For each name the most alike one before it in the list, if alike enough; rows in bounded chunks."""
    import numpy as np
    from rapidfuzz import fuzz, process

    numbers = np.array([" ".join(re.findall(r"\d+", name)) for name in names])
    chunk = max(1, memory // (4 * max(len(names), 1)))
    for first in range(0, len(names), chunk):
        rows = names[first : first + chunk]
        scores = process.cdist(rows, names, scorer=fuzz.WRatio, score_cutoff=likeness, dtype=np.float32)
        place = np.arange(first, first + len(rows))[:, None]
        scores[np.arange(len(names)) >= place] = 0
        scores[numbers[first : first + len(rows), None] != numbers] = 0
        best = scores.argmax(axis=1)
        for row in np.flatnonzero(scores.max(axis=1) >= likeness).tolist():
            yield first + row, int(best[row]), float(scores[row, best[row]])


def read_aliases(path: Path) -> dict[str, str]:
    """Read an alias table: JSON ``{"LOTR": "The Lord of the Rings", ...}``."""
    try:
        table = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        raise UnreadableSource(f"{path}: expected a JSON file of aliases, could not read it") from None
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise InputError(f'{path}: expected {{"alias": "name", ...}}, got another kind of JSON')
    return table


def write_review(path: Path, proposals: Iterable[Proposal]) -> int:
    """Write proposals for a person to decide: put "yes" into the last column. Return how many."""
    rows = [(_safe(p.value), _safe(p.canonical), f"{p.likeness:.1f}", str(p.holders), "") for p in proposals]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([REVIEW_COLUMNS, *rows])
    return len(rows)


def read_review(path: Path) -> dict[str, str]:
    """Return the aliases that were accepted in a review file."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            if tuple(reader.fieldnames or ()) != REVIEW_COLUMNS:
                raise InputError(f"{path}: expected the columns {', '.join(REVIEW_COLUMNS)}")
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error):
        raise UnreadableSource(f"{path}: expected a review file (CSV in UTF-8), could not read it") from None
    accepted = [row for row in rows if (row["accept"] or "").strip().casefold() in YES]
    return {_unsafe(row["value"]): _unsafe(row["canonical"]) for row in accepted}


def _resolved(aliases: Aliases) -> dict[str, str]:
    """Follow aliases of aliases to their end."""
    direct = {folded(alias): name for alias, name in aliases.items() if folded(alias) != folded(name)}
    resolved = {}
    for alias in direct:
        name, steps = direct[alias], 0
        while folded(name) in direct:
            name, steps = direct[folded(name)], steps + 1
            if steps > len(direct):
                raise InputError("aliases: expected each to lead to a name, got some that lead to each other")
        resolved[alias] = name
    return resolved


def _best_spelling(votes: Mapping[str, int], chosen: set[str]) -> str:
    return min(votes, key=lambda spelling: (spelling not in chosen, -votes[spelling], spelling))


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) else cell


def _unsafe(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell
