"""Which of many patterns can match at a place of a text: an automaton that is built while it reads.

Most rules match nowhere in most texts, and trying them one after another is what takes time. Here all of them are
followed at once, letter by letter: a *state* is what may come next in each pattern that the letters read so far allow.
A state is worked out when a text first leads to it, as other engines of regular expressions do (RE2); from then on a
letter costs one look into a table.

What only looks around (``(?<=my )``, ``(?!s)``) is left out, but for the ends of words and for what must follow where
the pattern itself allows nearly everything; where any words may come, nothing is told any more. So a pattern that is
passed over could not have matched, and one that is not must still be tried.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from re import _compiler, _parser  # type: ignore[attr-defined]  # how `re` reads a pattern; no other is as right
from typing import Any

FIRST, FAR = 4, 10
"""Letters that are looked up at once, and letters that are read at all: trying what is left then costs less memory."""
END = "\n\n"
"""Comes after a text, so that what would have to go on there is passed over, too."""
MOST_LETTERS = 10
"""In a set ("[ab]", a digit) whose letters are told apart."""
_CLASSES = (_parser.NOT_LITERAL, _parser.IN, _parser.ANY)
_WIDTHLESS = (_parser.AT, _parser.ASSERT, _parser.ASSERT_NOT)
_REPEATS = (_parser.MAX_REPEAT, _parser.MIN_REPEAT)
_BOUNDARY, _NO_WORD, _LINE_END = "boundary", "no word", "line end"
"""What the next letter must be: of a word if the last was none, or the other way; of no word; the end of a line."""
_FREE = frozenset[str]()
_Head = tuple[Container[str], frozenset[str], "Node"]
"""Letters that may come next, what else must hold of them, and the place in the pattern after them."""


class Node:
    """A place in a pattern: an item of a part of it, and where to go on after the part; nowhere once it has matched."""

    __slots__ = ("at", "heads", "number", "part", "rest", "vague")

    def __init__(
        self, part: Sequence[Any], at: int, rest: Node | None, number: int, *, vague: bool = False
    ) -> None:
        """`vague`: any word may have come before it."""
        self.part, self.at, self.rest, self.number, self.vague = part, at, rest, number, vague
        self.heads: tuple[_Head, ...] | None = None


class State(dict[str, "State"]):
    """All places in patterns that some letters lead to; `state[letter]` is the state after one letter more."""

    __slots__ = ("_automaton", "_in_word", "_nodes", "open", "rules")

    def __init__(self, automaton: Automaton, nodes: frozenset[Node], *, in_word: bool | None) -> None:
        """`in_word`: whether the last letter was one of a word, if that is known."""
        self._automaton, self._nodes, self._in_word = automaton, nodes, in_word
        self.rules = tuple(sorted({node.number for node in nodes}))
        """The patterns, by number, that have matched or still may."""
        self.open = any(node.rest is not None for node in nodes)
        """Whether what comes next can tell more."""

    def __missing__(self, letter: str) -> State:
        self[letter] = self._automaton.step(self._nodes, letter, in_word=self._in_word)
        return self[letter]


class Opening(dict[str, State]):
    """Where some patterns begin; `opening[letters]` is the state after the first letters."""

    __slots__ = ("_state",)

    def __init__(self, state: State) -> None:
        self._state = state

    def __missing__(self, letters: str) -> State:
        self[letters] = state = follow(self._state, letters)
        return state

    def rules(self, text: str, place: int) -> tuple[int, ...]:
        """Return the patterns, by number, that can match at a place of a text."""
        if place + FAR > len(text):
            text, place = text[place:] + END, 0
        state = self[text[place : place + FIRST]]
        return (follow(state, text[place + FIRST : place + FAR]) if state.open else state).rules


def follow(state: State, letters: str) -> State:
    """Return the state after some letters, or the first in which the next one tells nothing."""
    for letter in letters:
        state = state[letter]
        if not state.open:
            break
    return state


class Automaton:
    """Follows many patterns at once; `lists` are parsed patterns that one letter stands for in others.

    >>> opening = Automaton().opening({1: _parser.parse("my cats?\\\\b"), 2: _parser.parse("my (?:dog|cow)")})
    >>> [opening.rules(text, 0) for text in ("my", "my cat ran", "my catapult", "my dogs", "mine")]
    [(1, 2), (1,), (), (2,), ()]
    """

    def __init__(self, lists: Mapping[int, Any] | None = None) -> None:
        self._lists = lists or {}
        self._nodes: dict[tuple[int, int, Node, bool], Node] = {}
        self._matched: dict[int, Node] = {}
        self._states: dict[tuple[frozenset[Node], bool | None], State] = {}
        self._loops: dict[int, tuple[Any, ...]] = {}
        self._letters: dict[str, Container[str]] = {}

    def __len__(self) -> int:
        """How many states there are by now."""
        return len(self._states)

    def opening(self, patterns: Mapping[int, Sequence[Any]]) -> Opening:
        """Return where some patterns begin, as `re` parses them, each with its number."""
        nodes = frozenset(
            self._node(parsed, 0, self._has_matched(number)) for number, parsed in patterns.items()
        )
        return Opening(State(self, nodes, in_word=None))

    def step(self, nodes: frozenset[Node], letter: str, *, in_word: bool | None) -> State:
        """Return the state after one more letter."""
        is_word = letter.isalnum() or letter == "_"
        allowed = {
            gate
            for gate, holds in (
                (_BOUNDARY, in_word is not is_word),
                (_NO_WORD, not is_word),
                (_LINE_END, letter == "\n"),
            )
            if holds
        }
        further = {
            after
            for node in nodes
            for letters, gates, after in self.heads(node)
            if letter in letters and gates <= allowed
        }
        matched = {node.number for node in further if node.rest is None}
        left = frozenset(node for node in further if node.rest is None or node.number not in matched)
        key = left, is_word
        if key not in self._states:
            self._states[key] = State(self, left, in_word=is_word)
        return self._states[key]

    def begins_with(self, parsed: Sequence[Any]) -> frozenset[str] | None:
        """Return the letters with which a pattern can begin; none if these are many."""
        letters = [letters for letters, _, _ in self.heads(self._node(parsed, 0, self._has_matched(0)))]
        closed = [some for some in letters if isinstance(some, frozenset)]
        return frozenset().union(*closed) if len(closed) == len(letters) else None

    def heads(self, node: Node) -> tuple[_Head, ...]:
        """Return the letters that may come next at a place, what else must hold of them, and the place after them."""
        if node.heads is None:
            node.heads = tuple(self._find_heads(node))
        return node.heads

    def _find_heads(self, node: Node) -> Iterator[_Head]:
        matched, vague = (_ANYTHING, _FREE, self._has_matched(node.number)), node.vague
        seen: set[tuple[int, int, Node | None, frozenset[str]]] = set()
        todo = [(node.part, node.at, node.rest, _FREE)]
        while todo:
            part, at, rest, gates = todo.pop()
            key = id(part), at, rest, gates
            if key in seen:
                continue
            seen.add(key)
            if rest is None:  # it has matched, whatever comes next
                yield _ANYTHING, gates, matched[2]
                continue
            if at == len(part):
                todo.append((rest.part, rest.at, rest.rest, gates))
                continue
            name, value = part[at]
            after = rest if at + 1 == len(part) else self._node(part, at + 1, rest)
            if name in _CLASSES or (name is _parser.LITERAL and value not in self._lists):
                letters = self._letters_of(name, value)
                if " " in letters and "a" in letters:  # any words may come
                    yield matched
                else:
                    any_word = vague or not isinstance(letters, frozenset)
                    yield letters, gates, self._vague(after) if any_word else after
            elif name is _parser.LITERAL:
                if vague:  # each letter of a long list after each word would be a state of its own
                    yield matched
                else:
                    todo.append((self._lists[value], 0, after, gates))
            elif name is _parser.SUBPATTERN:
                todo.append((value[-1], 0, after, gates))
            elif name is _parser.BRANCH:
                todo += ((way, 0, after, gates) for way in value[1])
            elif name in _REPEATS:
                least, most, inner = value
                todo.append(
                    (inner, 0, after if most == 1 else self._node(self._loop(inner), 0, after), gates)
                )
                if least == 0:
                    todo.append((after.part, after.at, after.rest, gates))
            elif name in _WIDTHLESS:
                todo.append(self._around(name, value, after, gates))
            else:  # rare: a group again, a choice by a group
                yield matched

    def _around(
        self, name: Any, value: Any, after: Node, gates: frozenset[str]
    ) -> tuple[Sequence[Any], int, Node | None, frozenset[str]]:
        """Return where an item leads that takes up no letters."""
        if name is _parser.AT:
            gates |= {_BOUNDARY} if value is _parser.AT_BOUNDARY else _FREE
            gates |= {_LINE_END} if value is _parser.AT_END else _FREE
        elif value[0] > 0 and name is _parser.ASSERT_NOT and list(value[1]) == _WORD_LETTER:
            gates |= {_NO_WORD}
        elif value[0] > 0 and name is _parser.ASSERT and _tells_little(after.part, after.at, after.rest):
            return value[1], 0, self._has_matched(after.number), gates
        return after.part, after.at, after.rest, gates

    def _loop(self, inner: Any) -> tuple[Any, ...]:
        """Return "as often as you like", one and the same for the same part."""
        return self._loops.setdefault(id(inner), ((_parser.MAX_REPEAT, (0, _parser.MAXREPEAT, inner)),))

    def _letters_of(self, name: Any, value: Any) -> Container[str]:
        """Return the letters of a set: all of them if they are few."""
        written = f"{name} {value}"
        if written not in self._letters:
            some = (
                {chr(value)} if name is _parser.LITERAL else letters_in(value) if name is _parser.IN else None
            )
            self._letters[written] = frozenset(some) if some else _Class(name, value)
        return self._letters[written]

    def _node(self, part: Sequence[Any], at: int, rest: Node, *, vague: bool = False) -> Node:
        key = id(part), at, rest, vague
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = Node(part, at, rest, rest.number, vague=vague)
        return found

    def _vague(self, place: Node) -> Node:
        """Return a place as it is after any word."""
        return place if place.rest is None else self._node(place.part, place.at, place.rest, vague=True)

    def _has_matched(self, number: int) -> Node:
        if number not in self._matched:
            self._matched[number] = Node((), 0, None, number)
        return self._matched[number]


class _Class:
    """The letters of a large set."""

    def __init__(self, name: Any, value: Any) -> None:
        state = _parser.State()
        state.flags = re.UNICODE.value
        item = _parser.SubPattern(state, [(name, value)])
        self._match: re.Pattern[str] = _compiler.compile(item)

    def __contains__(self, letter: object) -> bool:
        return isinstance(letter, str) and self._match.match(letter) is not None


class _Anything:
    def __contains__(self, letter: object) -> bool:
        return True


_ANYTHING = _Anything()
_WORD_LETTER = [(_parser.IN, [(_parser.CATEGORY, _parser.CATEGORY_WORD)])]


def _tells_little(part: Sequence[Any], at: int, rest: Node | None) -> bool:
    """Say whether nothing or one of many letters comes next at a place: then what must follow there tells more."""
    while rest is not None:
        for name, value in part[at:]:
            if name is _parser.SUBPATTERN:
                return _tells_little(value[-1], 0, Node((), 0, None, 0))
            if name not in _WIDTHLESS:
                return name in _CLASSES
        part, at, rest = rest.part, rest.at, rest.rest
    return True


def letters_in(some: Iterable[Any]) -> set[str]:
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
