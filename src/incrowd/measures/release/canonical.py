"""One name for one thing: "LOTR", "Lord of the Rings" and "the lord of the rings!" are the same film.

People spell favourites in many ways, and a spelling that few share may not be released. Bringing spellings
together first releases more and is safer (paper 001, section VIII-B). Three steps, from certain to doubtful:
spellings that differ only in case, plain punctuation and articles are one; an alias table says what else is; and
what merely looks alike is proposed in a review file that a person decides row by row.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from incrowd.errors import InputError, MissingExtra, UnreadableSource
from incrowd.measures.release.patterns import Holders, listed

ARTICLE = re.compile(r"the (?=.)|an? (?=[^\W\d_]{2})")
"""A leading article; in "A 1" and "A B" the first word is a letter."""
ENDING = frozenset(" \t\n\r_.,;:!?¡¿…'\"`´‘’“”«»()[]{}\u00a0\u3000")
"""Marks that say nothing at the beginning or the end of a word; between digits they stay."""
_OPENING = "".join(ENDING)
JOINING = frozenset("-–—/&|•·~")
"""Marks that say nothing where they stand alone between words; elsewhere they may be a sign."""
_NARROW = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {0x3000: 0x20, 0x2212: 0x2D, 0xFE63: 0x2D}
"""Full-width letters and marks -> the usual ones; typographic minus signs -> the plain one."""
DENIALS = frozenset(
    {"no", "not", "non", "never", "without", "anti", "un", "nicht", "kein", "ohne", "sans", "pas", "sin"}
)
"""Words that turn a meaning round; spellings that differ in one of them are never proposed as the same."""
REVIEW_COLUMNS = ("value", "canonical", "likeness", "holders", "accept")
YES = frozenset({"yes", "y", "true", "1", "x"})
NO = frozenset({"no", "n", "false", "0", ""})
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Cells that begin like this would run as formulas in a spreadsheet."""
Aliases = Mapping[str, str]
"""A spelling -> the name it stands for."""


@dataclass(frozen=True, kw_only=True)
class SpellingPair:
    """Two spellings that look alike: does the first stand for the second?"""

    value: str
    canonical: str
    likeness: float
    """0 to 100."""
    holders: int
    """How many users list the first."""


def folded(value: str) -> str:
    """Return a spelling without case, plain punctuation, width variants and leading article.

    Nothing goes that can tell two things apart: signs ("HIV+" and "HIV-", "C", "C++" and "C#"), symbols, digits and
    what stands beside them ("9/11" and "911", "x²" and "x2"), words of negation.

    >>> folded("  The Lord of the Rings!! "), folded("Spider-Man"), folded("C++")
    ('lord of the rings', 'spider man', 'c++')
    """
    plain = unicodedata.normalize("NFC", value.translate(_NARROW)).casefold()
    words, before = plain, ""
    while words != before:  # what stood beside a mark that went may be a mark that says nothing now
        words, before = " ".join("".join(_marks_folded(words)).split()), words
    article = ARTICLE.match(words)
    # "A/B", "A & B" and "A. B" begin with a letter, not with an article.
    if article and ARTICLE.match(" ".join(plain.split()).lstrip(_OPENING)):
        words = words[article.end() :]
    return words or plain.strip()


def _marks_folded(text: str) -> Iterator[str]:
    """Yield the characters, with a blank where a mark only separates words or ends them."""
    for place, mark in enumerate(text):
        before, after = text[place - 1 : place] or " ", text[place + 1 : place + 2] or " "
        between_letters = before.isalpha() and after.isalpha()
        if mark.isalnum() or unicodedata.category(mark)[0] == "M":
            yield mark
        elif between_letters and unicodedata.category(mark)[0] == "P":
            yield " "  # Spider-Man, bug's, AC/DC
        elif mark in ENDING and not (_is_sign(after) or _tells(mark, before, after, text[:place])):
            yield " "  # Heat!, "Alien", Alien 3.
        elif mark in JOINING and before.isspace() and after.isspace() and _joins(text, place):
            yield " "  # Tom & Jerry, Alien - the film
        else:
            yield mark


def _is_sign(mark: str) -> bool:
    """Whether a mark is more than punctuation, so that what it leans on stays with it: "Rh(+)", "Rh(-)"."""
    return not (mark.isalnum() or mark.isspace() or mark in ENDING or unicodedata.category(mark)[0] == "M")


def _tells(mark: str, before: str, after: str, earlier: str) -> bool:
    """Whether plain punctuation says something where it stands."""
    if mark == "!":
        return before.isspace() and after.isalnum()  # "!gay" is not gay
    if mark in ".," and after.isnumeric():
        return True  # 3.5, .5
    if mark in "'\"" and before.isnumeric():
        # 5' and 5" are lengths, 5'3" is one; "Alien 3" is quoted
        return mark not in earlier or after.isnumeric()
    return before.isnumeric() and after.isnumeric()  # 10:30


def _joins(text: str, place: int) -> bool:
    """Whether a mark that stands alone has a word on either side: "HIV -" ends with a sign, "- 5" begins with one."""
    left, right = text[:place].rstrip(), text[place + 1 :].lstrip()
    return left[-1:].isalpha() and right[:1].isalpha()


def canonicalise(holders: Holders, aliases: Aliases | None = None) -> dict[str, list[object]]:
    """Bring spellings together; each name keeps the spelling that most users chose, or the alias table's."""
    merged: dict[str, dict[object, None]] = {}
    for _, name, users in _named(holders, aliases):
        merged.setdefault(name, {}).update(dict.fromkeys(users))
    return {name: list(users) for name, users in merged.items()}


def merged_spellings(holders: Holders, aliases: Aliases | None = None) -> dict[str, list[str]]:
    """Return each name that several spellings go under, with those spellings: what a person should look over.

    >>> merged_spellings({"Heat": ["a"], "heat!": ["b", "c"], "C": ["a"], "C++": ["b"]})
    {'heat!': ['Heat', 'heat!']}
    """
    together: dict[str, list[str]] = {}
    for spelling, name, _ in _named(holders, aliases):
        together.setdefault(name, []).append(spelling)
    return {name: same for name, same in together.items() if len(same) > 1 or same != [name]}


def _named(holders: Holders, aliases: Aliases | None) -> list[tuple[str, str, list[object]]]:
    """Return each spelling with the name that it goes under and the users who list it."""
    by_value = [(str(value), listed(users, place)) for place, (value, users) in enumerate(holders.items(), 1)]
    sizes: Counter[str] = Counter()
    for spelling, users in by_value:
        sizes[spelling] += len(users)
    names = canonical_names(sizes, aliases)
    return [(spelling, names[spelling], users) for spelling, users in by_value]


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


def propose(holders: Holders, *, likeness: float = 90.0, memory: int = 2**27) -> list[SpellingPair]:
    """Suggest which rarer spellings may stand for which commoner ones, most alike first.

    Spellings that a number, a sign or a word of negation tells apart are never suggested: a sequel is another film.
    """
    sizes = {folded(value): (len(users), value) for value, users in canonicalise(holders).items()}
    names = sorted(sizes, key=lambda name: (-sizes[name][0], name))
    found = [
        SpellingPair(
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
    try:
        from rapidfuzz import fuzz, process
    except ImportError:
        raise MissingExtra("finding values that are spelt alike", "spellings") from None

    numbers = np.array([_telling(name) for name in names])
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


def _telling(name: str) -> str:
    """Return the numbers, signs and negations of a name."""
    marks = [mark for mark in name if mark.isnumeric() or not (mark.isalpha() or mark.isspace())]
    return "".join(marks) + " ".join(word for word in name.split() if word in DENIALS)


def read_aliases(path: Path) -> dict[str, str]:
    """Read an alias table: JSON ``{"LOTR": "The Lord of the Rings", ...}``."""
    try:
        table = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        raise UnreadableSource(f"{path}: expected a JSON file of aliases, could not read it") from None
    if not isinstance(table, dict) or not all(isinstance(name, str) for name in table.values()):
        raise InputError(f'{path}: expected {{"alias": "name", ...}}, got another kind of JSON')
    return table


def write_review(path: Path, proposals: Iterable[SpellingPair]) -> int:
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
    answers = [(row["accept"] or "").strip().casefold() for row in rows]
    for number, (row, answer) in enumerate(zip(rows, answers, strict=True), start=2):
        if answer not in YES | NO or None in row:  # None: cells behind the last column
            raise InputError(
                f"{path}, row {number}: expected yes, no or nothing in the last column, got another answer"
            )
    accepted = [row for row, answer in zip(rows, answers, strict=True) if answer in YES]
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
