"""The rules of a language: how people speak of themselves, and with which letters each way can begin.

By their beginnings most rules are passed over before they are tried: one search over a tree of letters finds all places
of a text where any rule can begin, and a table by the first letters the few rules to try there. Many patterns hold the
same long list ("asthma|diabetes|..."). In a *sketch* of a pattern one letter stands for each such list, and what the
list can begin with is worked out once: reading the lists again in every pattern took most of the time in which a
language got ready.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from re import _compiler, _parser  # type: ignore[attr-defined]  # how `re` reads a pattern; no other is as right
from typing import Any

from incrowd.errors import InputError
from incrowd.measures.disclosures.language import Language, Pair

SEEN = 7
"""Letters of a text by which rules are passed over."""
LONGEST_START = 16
"""Letters of a start ("as someone who") by which it is found; where a shorter one ends, no word may go on."""
STARTS, ACCOUNTS, TYPOS = -1, -2, -3
"""Stand for no rule of their own in :attr:`Rules.anywhere`."""
_ADVERBS = re.compile(r" ?\??(\{adv\}|\{v\}|\(\?:\{adv\}\)|\(\?:\{v\}\)[?*])")
"""Where a rule says that adverbs may come."""
_MARKS = re.compile(r"^\W+")
_NAMED = re.compile(r"\(\?P<(\w+)>")


@dataclass(frozen=True, eq=False)
class Rule:
    """One way to say something about oneself."""

    start: str
    attribute: str
    value: str
    kind: str
    sign: bool
    also_signs: bool
    also: tuple[Pair, ...]
    needs: tuple[str, ...]
    sketch: str
    """The pattern with a letter for each long list, for :class:`Beginnings`."""
    beginnings: Beginnings
    then_pattern: str = ""
    """What must follow the name that a slot holds: "a Detroit *native*"."""
    after_adverbs: bool = False
    """Adverbs and small verbs may come before it ("I have just recently ..."): it is tried after each of them."""
    after_word: bool = False
    """Any word may come before it ("my *black* purse"): it is tried after that, too."""
    asks: bool = False
    """It says something though it is a question: "anybody here from Spokane?"."""

    cue_pattern: str | None = None
    """It is a mere mention: this (or, if empty, nothing) must come before it, and the sentence speak of the writer."""

    loose: bool = False
    """A mention that counts even if its sentence has no subject: "The Corolla failed its inspection"."""

    @cached_property
    def cue(self) -> re.Pattern[str]:
        """What must come before a mention, compiled."""
        return re.compile(self.cue_pattern or "")

    @cached_property
    def then(self) -> re.Pattern[str] | None:
        """The pattern of what must follow, compiled; none if anything may."""
        return re.compile(self.then_pattern) if self.then_pattern else None

    @property
    def pattern(self) -> str:
        """The pattern, with all names of its lists."""
        return self.beginnings.written_out(self.sketch)

    @cached_property
    def match(self) -> re.Pattern[str]:
        """The pattern, compiled when a text first needs it: a draft meets few of the rules."""
        return self.beginnings.compiled(self.sketch)

    @cached_property
    def slots(self) -> frozenset[str]:
        """The names of its groups."""
        return frozenset(_NAMED.findall(self.sketch))

    @property
    def opens(self) -> bool:
        """Whether it can match at a number that opens a text, and nowhere else: "26m from ..."."""
        return self.sketch.startswith(r"^(?=\d)")

    def finds(self, low: str, places: Sequence[int]) -> Sequence[re.Match[str]]:
        """Find it in a text: where it may begin, if that is known (without `needs`), else anywhere."""
        if self.needs:
            return list(self.match.finditer(low))
        match = self.match.match
        if len(places) == 1:  # the usual case
            found = match(low, places[0])
            return () if found is None else (found,)
        some: list[re.Match[str]] = []
        for place in places:
            found = match(low, place) if not some or place >= some[-1].end() else None
            if found is not None:
                some.append(found)
        return some


class Rules:
    """All rules of a language, and where in a text they may match."""

    def __init__(self, language: Language) -> None:
        self.language = language

    @cached_property
    def by_start(self) -> dict[str, tuple[Rule, ...]]:
        """All rules by their start."""
        found: dict[str, list[Rule]] = {name: [] for name in self.language.patterns["starts"]}
        for entry in self.language.patterns["rule"]:
            starts = entry["start"] if isinstance(entry["start"], list) else [entry["start"]]
            for start in starts:
                found[start].append(self._rule({**entry, "start": start}))
        # A clause without "I" may begin as one with "I" or "I'm" goes on, if its first letters say so.
        told_apart = [rule for rule in found["am"] if "" not in self.beginnings.of(rule.sketch, SEEN)]
        found["dropped"] += [*found["i"], *told_apart]
        return {start: tuple(rules) for start, rules in found.items()}

    def matching(self, start: str, low: str, place: int) -> list[tuple[Rule, re.Match[str]]]:
        """Return the rules of a start that match at a place of a text, or after adverbs or a word there, and how."""
        found: list[tuple[Rule, re.Match[str]]] = []
        _match(self.rules_at(start, low[place : place + SEEN], ""), low, place, found)
        if start == "my":
            second = low.find(" ", place + 1)
            word = low[place + 1 : second]
            if second >= 0 and word.replace("-", "").isalnum() and word not in self.not_mine:
                _match(self.rules_at(start, low[second : second + SEEN], "word"), low, second, found)
            return found
        if low[place : place + 1] == " ":
            word = low[place + 1 : place + 20].lstrip().split(" ", 1)[0]
            if word and word not in self.adverb_words:  # the usual case, and quickly seen
                return found
        adverb = self.adverb.match(low, place)
        while adverb is not None:
            place = adverb.end()
            _match(self.rules_at(start, low[place : place + SEEN], "adverbs"), low, place, found)
            adverb = self.adverb.match(low, place)
        return found

    @cached_property
    def adverb(self) -> re.Pattern[str]:
        """One word that may stand between "I" or "I'm" and what follows."""
        slots = self.language.patterns["slots"]
        return re.compile(f" ?(?:{slots['v']}|{slots['adv'].removesuffix('*')})")

    @cached_property
    def not_mine(self) -> frozenset[str]:
        """Words after "my" with which what follows is another's, or no more: "my sisters husband", "my former job"."""
        return self.language.grammar.not_mine

    @cached_property
    def adverb_words(self) -> frozenset[str]:
        """The words with which :attr:`adverb` can begin."""
        return frozenset(re.findall(r"[a-z']+", self.adverb.pattern))

    @cached_property
    def rules_at(self) -> Callable[[str, str, str], tuple[Rule, ...]]:
        """The rules of a start that can match a text, by its first `SEEN` letters, or after adverbs or a word."""

        @cache
        def table_of(start: str) -> dict[str, tuple[Rule, ...]]:
            rules = self.by_start[start]
            begun: dict[str, set[int]] = {"": set()}
            for number, rule in enumerate(rules):
                for text in self.beginnings.of(rule.sketch, SEEN):
                    begun.setdefault(text, set()).add(number)
            # Whatever begins with a text begins with all shorter ones, too.
            return {
                text: tuple(
                    rules[n]
                    for n in sorted({n for size in range(len(text) + 1) for n in begun.get(text[:size], ())})
                )
                for text in begun
            }

        @lru_cache(65536)
        def rules_at(start: str, letters: str, after: str) -> tuple[Rule, ...]:
            table = table_of(start)
            some = next(
                table[letters[:size]] for size in range(len(letters), -1, -1) if letters[:size] in table
            )
            if not after:
                return some
            return tuple(one for one in some if (one.after_word if after == "word" else one.after_adverbs))

        return rules_at

    @cached_property
    def trigger(self) -> re.Pattern[str]:
        """Matches where somebody may begin to speak of themselves; the group says which start it is."""
        groups = "|".join(
            f"(?P<{name}>{text})" for name, text in self.language.patterns["starts"].items() if text
        )
        return re.compile(rf"\b(?:{groups})(?!\w)")

    @cached_property
    def anywhere(self) -> tuple[re.Pattern[str], dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
        """One search for all that rules of the start "any" can begin with or need, and the rules for each text.

        It finds the sign before a word: a search for one out of few signs is the fastest there is. (A letter with an
        accent counts as a sign, too; patterns look at the boundary themselves.)
        Words begin where words begin; marks ("m)", an emoji) come apart, for they need no boundary. The same search
        finds where all other starts may be (`STARTS`), what hints at an account elsewhere (`ACCOUNTS`) and mistyped
        words (`TYPOS`).
        """
        words: dict[str, list[int]] = {}
        marks: dict[str, list[int]] = {}
        for number, rule in enumerate(self.by_start["any"]):
            if rule.opens:
                continue
            for text in rule.needs or self.beginnings.of(rule.sketch, SEEN, ends=True):
                if len(text) < 2 and not rule.needs:
                    raise InputError(
                        f"data/{self.language.code}/patterns.toml: rule {rule.kind!r} can begin with anything; "
                        "give the words it `needs`"
                    )
                (words if text[0].isalnum() else marks).setdefault(text, []).append(number)
        for text in self.beginnings.of(self.trigger.pattern, LONGEST_START):
            words.setdefault(text + WORD_END * (len(text) < LONGEST_START), []).append(STARTS)
        for text in self.language.names["words"]["services"]:
            words.setdefault(text, []).append(ACCOUNTS)
        for text in self.language.typos:
            words.setdefault(text + WORD_END, []).append(TYPOS)
        return (
            re.compile(rf"[^a-z0-9_](?=({tree_pattern(words)}))"),
            {text: tuple(sorted(_all_begun(text, words))) for text in words},
            {mark: tuple(some) for mark, some in marks.items()},
        )

    @cached_property
    def opening(self) -> tuple[int, ...]:
        """The rules of the start "any", by number, that only match at a number that opens a text."""
        return tuple(number for number, rule in enumerate(self.by_start["any"]) if rule.opens)

    @cached_property
    def _lists(self) -> dict[str, str]:
        """Slots that hold one of many names."""
        words = self.language.words
        lists = {
            "health": self.language.health,
            "language": words["languages"]["names"],
            "pet": {name for one in words["pets"]["names"] for name in (one, f"{one}s", one[:-1] + "ies")},
            "car": words["cars"]["names"],
            "model": words["models"]["names"],
            "field": words["education_fields"]["names"],
            "employer": words["employers"]["names"],
            "school2": words["schools"]["names"],
            "medication": self.language.medication,
            **self.language.work,
            "demonym": [f"{one}{ending}" for one in self.language.grammar.demonyms for ending in ("", "s")],
        }
        return {name: tree_pattern(some) for name, some in lists.items()}

    @cached_property
    def beginnings(self) -> Beginnings:
        """Tells with which texts rules can begin, and compiles them."""
        number = "|".join(sorted(self.language.numbers, key=len, reverse=True))
        return Beginnings(
            self._lists
            | {
                "age": f"[1-9]\\d(?![\\d%$°'\"]|-?something)|[1-9]-[0o]\\b|{number}",
                "n": f"\\d{{1,2}}|an?|{number}",
                "country": _alternatives(self.language.words["from_country"]),
            }
        )

    @cached_property
    def _slots(self) -> dict[str, str]:
        """The pattern of each slot, with a letter for each long list."""
        words, marks = self.language.words, self.beginnings.marks
        slots = {name: f"(?:(?P<{name}>{marks[name]})\\b)" for name in self._lists}
        twice = ("field", "language", "pet", "health")  # "French and German"
        slots |= {f"{name}2": slots[name].replace(f"<{name}>", f"<{name}2>") for name in twice}
        slots["language3"] = slots["language"].replace("<language>", "<language3>")
        months = "|".join(
            month if month == "may" else f"{month[:3]}(?:{month[3:]})?\\.?"
            for month in words["months"]["names"]
        )
        return slots | {
            "age": f"(?P<age>{marks['age']})",
            "ageth": f"(?P<age>[1-9]\\d(?=st|nd|rd|th)|{'|'.join(self.language.ordinals)})(?:st|nd|rd|th)?",
            "n": f"(?P<n>{marks['n']})",
            "n2": f"(?P<n2>{marks['n']})",
            "country": f"(?P<country>{marks['country']})\\b",
            "year": r"(?P<year>(?:19[2-9]\d|20[0-2]\d)|'\d\d)",
            "day": r"(?P<day>[0-3]?\d)",
            "month": f"(?P<month>{months})",
            "ndate": r"(?P<ndate>\d{1,2}[/.-]\d{1,2}[/.-](?:19|20)?\d\d|(?:19|20)\d\d-\d\d-\d\d)\b",
            "place": r"(?P<place>\S[^\n!?;:\"]{1,60})",
            "org": r"(?P<org>\S[^\n!?;:\"]{1,50})",
            "school": r"(?P<school>\S[^\n!?;:\"]{1,60})",
            "name": r"(?P<name>[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){0,2})",
            "firstname": r"(?P<firstname>[^\W\d_]+)(?!\w)",
            "fullname": r"(?P<fullname>[^\W\d_][\w'’-]+(?: [^\W\d_]\.)? [^\W\d_][\w'’-]+)",
            "person": r"(?P<person>[a-z0-9][\w'’/&+-]*(?: [\w'’/&+-]+){0,7})",
            **self.language.patterns["slots"],
        }

    def _filled(self, written: str, entry: Mapping[str, Any]) -> str:
        """Return the sketch of the pattern that a rule writes with slots."""
        seen: Counter[str] = Counter()

        def fill(found: re.Match[str]) -> str:
            name = found.group(1)
            if name not in self._slots:
                raise InputError(
                    f"data/{self.language.code}/patterns.toml: unknown slot '{{{name}}}' in {entry['kind']!r}"
                )
            group = "age" if name == "ageth" else name
            seen[group] += 1  # a pattern may name a group only once
            again = f"(?P<{group}{'_' * (seen[group] - 1)}>"
            return self._slots[name].replace(f"(?P<{group}>", again)

        text = re.sub(r"\{([a-z]\w*)\}", fill, written)
        if "then" in entry:  # seen from afar: most places need not be read
            text = text.replace("(?P<place>", rf"(?P<place>(?=[^\n]{{1,50}}?{entry['then']})")
        # "I've lived" follows its start without a space.
        return text.replace(" ", " ?", 1) if entry["start"] in ("i", "we") and text[0] == " " else text

    def _needs(self, entry: Mapping[str, Any], sketch: str) -> tuple[str, ...]:
        """Return words of which a text must hold one before a rule is looked for all over it.

        None where all that a rule can begin with is words long enough to look for: they also say where to try it. One
        that may begin with a mark (", bcom fresher", "-based") is looked for by the words behind the marks.
        """
        given = tuple(entry.get("needs", ()))
        if entry["start"] != "any":
            return given
        some = self.beginnings.of(sketch, SEEN)
        if all(text[:1].isalnum() and len(text) > (1 if text.isalpha() else 2) for text in some):
            return ()
        if given or min(map(len, some)) < 2 or all(text[0].isalnum() for text in some):
            return given
        return tuple(sorted({_MARKS.sub("", text) or text for text in some}))

    def _rule(self, entry: Mapping[str, Any]) -> Rule:
        written = entry["match"]
        adverbs = _ADVERBS.match(written)
        if adverbs is not None:
            written = written[: adverbs.start(1)] + written[adverbs.end() :]
        sketch = self._filled(written, entry)
        return Rule(
            start=entry["start"],
            sketch=sketch,
            beginnings=self.beginnings,
            attribute=entry["attribute"],
            value=entry.get("value", ""),
            kind=entry["kind"],
            sign=entry.get("sign", False),
            also_signs=entry.get("also_signs", entry.get("sign", False)),
            also=tuple((str(name), str(value)) for name, value in entry.get("also", ())),
            needs=self._needs(entry, sketch),
            after_adverbs=adverbs is not None or entry["start"] in ("i", "we"),
            after_word=entry["start"] == "my" and written[:1] == " ",
            then_pattern=entry.get("then", ""),
            asks=entry.get("asks", False),
            cue_pattern=entry.get("cue"),
            loose=entry.get("loose", False),
        )


@cache
def rules_of(language: Language) -> Rules:
    """Return the rules of a language, made once."""
    return Rules(language)


def _match(rules: Iterable[Rule], low: str, place: int, found: list[tuple[Rule, re.Match[str]]]) -> None:
    """Add to `found` the rules that match at a place, and how."""
    for rule in rules:
        if rule.needs and not any(word in low for word in rule.needs):
            continue
        match = rule.match.match(low, place)
        if match is not None:
            found.append((rule, match))


def _alternatives(names: Any) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))


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

    The letter stands alone in a group: `re` would make a set of letters that stand side by side.

    >>> some = Beginnings({"pet": "(?:cat|dog)"})
    >>> sketch = f"my ({some.marks['pet']})s?"
    >>> sorted(some.of(sketch, 20)), some.compiled(sketch).match("my cats")[1]
    (['my cat', 'my cats', 'my dog', 'my dogs'], 'cat')
    """

    def __init__(self, lists: Mapping[str, str] | None = None) -> None:
        lists = lists or {}
        self.marks = {name: chr(FIRST_MARK + place) for place, name in enumerate(lists)}
        self._lists = dict(enumerate(lists.values(), FIRST_MARK))
        self._parsed: dict[str, Any] = {}
        self._known: dict[tuple[str, int], frozenset[str]] = {}
        self._begun_by: dict[tuple[int, int], _Begun] = {}

    def of(self, pattern: str, longest: int, *, ends: bool = False) -> frozenset[str]:
        """Return texts such that whatever a pattern matches begins with one of them, each at most `longest` letters.

        With `ends`, a text whose last word must end there has `WORD_END` behind it.

        >>> sorted(Beginnings().of(r" (?:i|we) (?:really )?like \\w+", 20))
        [' i like ', ' i really like ', ' we like ', ' we really like ']
        """
        key = pattern, longest
        if key not in self._known:
            self._known[key] = frozenset(text for text, _ in self._begun(self._parse(pattern), longest))
        return self._known[key] if ends else frozenset(text.rstrip(WORD_END) for text in self._known[key])

    def written_out(self, sketch: str) -> str:
        """Return the pattern that a sketch stands for."""
        return sketch.translate(self._lists)

    def compiled(self, sketch: str) -> re.Pattern[str]:
        """Return the pattern that a sketch stands for, compiled; a list is read once for all sketches."""
        found: re.Pattern[str] = _compiler.compile(self._with_lists(self._parse(sketch)))
        return found

    def _with_lists(self, part: Any) -> Any:
        """Return a part of a sketch, as `re` reads it, with what the letters stand for."""
        if isinstance(part, _parser.SubPattern):
            written = _parser.SubPattern(part.state)
            for name, value in part:
                if name is _parser.LITERAL and value in self._lists:
                    written.data += self._parse(self._lists[value]).data
                else:
                    written.append((name, self._with_lists(value)))
            return written
        if isinstance(part, tuple | list):
            return type(part)(map(self._with_lists, part))
        return part

    def _parse(self, pattern: str) -> Any:
        if pattern not in self._parsed:
            self._parsed[pattern] = _parser.parse(pattern)
        return self._parsed[pattern]

    def _begun(self, tokens: Iterable[Any], longest: int) -> _Begun:
        going_on, ended = {""}, set[str]()
        for name, value in tokens:
            if not going_on:
                break
            if name is _parser.AT and value is _parser.AT_BOUNDARY:
                going_on = {text + WORD_END if text[-1:].isalnum() else text for text in going_on}
                continue
            parts: Collection[tuple[str, bool]]
            if name is _parser.LITERAL and value not in self._lists:  # most are
                parts = ((chr(value), True),)
            else:
                shortest = min(len(text.rstrip(WORD_END)) for text in going_on)
                parts = self._begun_by_token(name, value, longest - shortest)
            if len(going_on) * len(parts) > MOST_BEGINNINGS:
                return frozenset((text, False) for text in ended | going_on)
            longer = set[str]()
            for text in going_on:
                for part, more in parts:
                    if part and text.endswith(WORD_END):
                        if part[0].isalnum():  # no word goes on where one must end
                            continue
                        both = text[:-1] + part
                    else:
                        both = text + part
                    if more and len(both.rstrip(WORD_END)) < longest:
                        longer.add(both)
                    else:
                        ended.add(both[:longest])
            going_on = longer
        return frozenset((*((text, False) for text in ended), *((text, True) for text in going_on)))

    def _begun_by_token(self, name: Any, value: Any, longest: int) -> _Begun:
        if name is _parser.LITERAL:
            return self._begun_by_list(value, longest)
        if name is _parser.IN and (letters := _letters_in(value)):
            return frozenset((letter, True) for letter in letters)
        if name is _parser.SUBPATTERN:
            return self._begun(value[-1], longest)
        if name is _parser.BRANCH:
            return frozenset(one for way in value[1] for one in self._begun(way, longest))
        if name in (_parser.MAX_REPEAT, _parser.MIN_REPEAT):
            least, most, inner = value
            once = self._begun(inner, longest)
            repeated = once if most == 1 else frozenset((text, False) for text, _ in once)
            return repeated | {_NOTHING} if least == 0 else repeated
        if name is _parser.ASSERT and value[0] > 0:  # what must follow here
            return frozenset((text, False) for text, _ in self._begun(value[1], longest))
        nothing = name in (_parser.AT, _parser.ASSERT, _parser.ASSERT_NOT)
        return frozenset((_NOTHING,) if nothing else (_ANYTHING,))

    def _begun_by_list(self, letter: int, longest: int) -> _Begun:
        key = letter, longest
        if key not in self._begun_by:
            if longest < SEEN:  # what begins with seven letters begins with the first of them
                begun = self._begun_by_list(letter, SEEN)
                shorter = ((text[:longest], more and len(text) < longest) for text, more in begun)
                self._begun_by[key] = frozenset(shorter)
            else:
                self._begun_by[key] = self._begun(self._parse(self._lists[letter]), longest)
        return self._begun_by[key]


def _all_begun(text: str, words: Mapping[str, Iterable[int]]) -> set[int]:
    """Return the rules of a text and of all shorter ones that it begins with."""
    begun = set(words[text])
    for size in range(1, len(text.rstrip(WORD_END))):
        begun.update(words.get(text[:size], ()))
        if not (text[size].isalnum() or text[size] == "_"):
            begun.update(words.get(text[:size] + WORD_END, ()))
    if text.endswith(WORD_END):
        begun.update(words.get(text[:-1], ()))
    return begun


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
    return r"\W" if letter == WORD_END else re.escape(letter)
