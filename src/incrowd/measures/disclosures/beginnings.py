"""With which letters can a pattern begin? By them most rules are passed over before they are tried.

Many patterns hold the same long list ("asthma|diabetes|..."). In a *sketch* of a pattern one letter stands for each
such list, and what the list can begin with is worked out once: reading the lists again in every pattern took most of
the time in which a language got ready.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from re import _parser  # type: ignore[attr-defined]  # how `re` itself reads a pattern; no other reader is as right
from typing import Any

MOST_BEGINNINGS = 1500
MOST_LETTERS = 10
"""In a set ("[ab]", a digit) whose letters are told apart."""
FIRST_MARK = 0xE000
"""Letters from here on are nobody's own, and stand for lists."""
WORD_END = "\b"
"""As the last letter of a word in a tree: nothing may follow it."""
_Begun = frozenset[tuple[str, bool]]
"""Beginnings, and of each whether it may go on."""
_NOTHING, _ANYTHING = ("", True), ("", False)


class Beginnings:
    """Tells with which texts patterns can begin; `lists` are the patterns that sketches name by a letter.

    >>> some = Beginnings({"pet": "(?:cat|dog)"})
    >>> sorted(some.of(f"my {some.marks['pet']}s?", 20))
    ['my cat', 'my cats', 'my dog', 'my dogs']
    """

    def __init__(self, lists: Mapping[str, str] | None = None) -> None:
        lists = lists or {}
        # In a group: `re` would make a set of letters that stand side by side.
        self.marks = {name: f"({chr(FIRST_MARK + place)})" for place, name in enumerate(lists)}
        self._lists = dict(enumerate(lists.values(), FIRST_MARK))
        self._parsed: dict[str, Any] = {}
        self._known: dict[tuple[str, int], frozenset[str]] = {}
        self._begun_by: dict[tuple[int, int], _Begun] = {}

    def of(self, pattern: str, longest: int) -> frozenset[str]:
        """Return texts such that whatever a pattern matches begins with one of them, each at most `longest` letters.

        >>> sorted(Beginnings().of(r" (?:i|we) (?:really )?like \\w+", 20))
        [' i like ', ' i really like ', ' we like ', ' we really like ']
        """
        key = pattern, longest
        if key not in self._known:
            self._known[key] = frozenset(text for text, _ in self._begun(self._parse(pattern), longest))
        return self._known[key]

    def _parse(self, pattern: str) -> Any:
        if pattern not in self._parsed:
            self._parsed[pattern] = _parser.parse(pattern)
        return self._parsed[pattern]

    def _begun(self, tokens: Iterable[Any], longest: int) -> _Begun:
        found: _Begun = frozenset((_NOTHING,))
        for name, value in tokens:
            going_on = [text for text, more in found if more]
            if not going_on:
                break
            parts = self._begun_by_token(str(name), value, longest - min(map(len, going_on)))
            if len(going_on) * len(parts) > MOST_BEGINNINGS:
                return frozenset((text, False) for text, _ in found)
            ended = [one for one in found if not one[1]]
            found = frozenset(
                (
                    *ended,
                    *(
                        ((text + part)[:longest], more and len(text) + len(part) < longest)
                        for text in going_on
                        for part, more in parts
                    ),
                )
            )
        return found

    def _begun_by_token(self, name: str, value: Any, longest: int) -> _Begun:
        if name == "LITERAL":
            return self._begun_by_letter(value, longest)
        if name == "IN" and (letters := _letters_in(value)):
            return frozenset((letter, True) for letter in letters)
        if name == "SUBPATTERN":
            return self._begun(value[-1], longest)
        if name == "BRANCH":
            return frozenset(one for way in value[1] for one in self._begun(way, longest))
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            least, most, inner = value
            once = self._begun(inner, longest)
            repeated = once if most == 1 else frozenset((text, False) for text, _ in once)
            return repeated | {_NOTHING} if least == 0 else repeated
        if name == "ASSERT" and value[0] > 0:  # what must follow here
            return frozenset((text, False) for text, _ in self._begun(value[1], longest))
        return frozenset((_NOTHING,) if name in ("AT", "ASSERT", "ASSERT_NOT") else (_ANYTHING,))

    def _begun_by_letter(self, letter: int, longest: int) -> _Begun:
        if letter not in self._lists:
            return frozenset(((chr(letter), True),))
        key = letter, longest
        if key not in self._begun_by:
            self._begun_by[key] = self._begun(self._parse(self._lists[letter]), longest)
        return self._begun_by[key]


def _letters_in(some: Iterable[Any]) -> set[str]:
    """Return the letters of a set in a pattern if they are few, else none; digits are 0 to 9 here."""
    letters: set[str] = set()
    for kind, value in some:
        if str(kind) == "LITERAL":
            letters.add(chr(value))
        elif str(kind) == "RANGE":
            letters.update(map(chr, range(value[0], min(value[1], value[0] + MOST_LETTERS) + 1)))
        elif str(value) == "CATEGORY_DIGIT":
            letters.update("0123456789")
        else:
            return set()
    return letters if len(letters) <= MOST_LETTERS else set()


def tree_pattern(words: Iterable[str]) -> str:
    """Return a pattern that finds the longest of many words by walking down their letters, not trying one by one.

    >>> tree_pattern(["cat", "car", "dog"])
    '(?:ca(?:r|t)|dog)'
    """
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _tree_pattern(tree)


def _tree_pattern(node: dict[str, Any]) -> str:
    order = sorted(letter for letter in node if letter not in ("", WORD_END)) + [WORD_END] * (
        WORD_END in node
    )
    ways = [_letter(letter) + _tree_pattern(node[letter]) for letter in order]
    if not ways:
        return ""
    together = ways[0] if len(ways) == 1 and "" not in node else f"(?:{'|'.join(ways)})"
    return f"{together}?" if "" in node else together


def _letter(letter: str) -> str:
    return r"(?!\w)" if letter == WORD_END else re.escape(letter)
