"""What the finder knows of a language: words, occupations, and rules for how people speak of themselves.

All of it lies in files (``data/LANGUAGE``), so that another language is a folder, not code.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from incrowd.errors import InputError
from incrowd.measures.disclosures.identifiers import IdentifierPatterns
from incrowd.measures.disclosures.places import Gazetteer

DATA = files("incrowd.measures.disclosures").joinpath("data")
Pair = tuple[str, str]
"""An attribute and a value."""
_NAMED = re.compile(r"\(\?P<(\w+)>")


@dataclass(frozen=True, eq=False)
class Rule:
    """One way to say something about oneself."""

    start: str
    pattern: str
    attribute: str
    value: str
    kind: str
    sign: bool
    also_signs: bool
    also: tuple[Pair, ...]
    needs: tuple[str, ...]

    @cached_property
    def match(self) -> re.Pattern[str]:
        """The pattern, compiled when a text first needs it: a draft meets few of the rules."""
        return re.compile(self.pattern)

    @cached_property
    def slots(self) -> frozenset[str]:
        """The names of its groups."""
        return frozenset(_NAMED.findall(self.pattern))

    @property
    def names_anybody(self) -> bool:
        """True if it takes any word for a person, to look it up."""
        return self.kind == "said" and "person" in self.slots


class Grammar:
    """The small words of a language, as the finder asks for them."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        self.after_noun = frozenset(words["after_noun"])
        self.after_trait = self.after_noun - frozenset(words["not_after_trait"])
        self.intensifiers = frozenset(words["intensifiers"])
        self.no_names = frozenset(words["no_names"])
        self.refused = frozenset(words["refused"])
        self.origin_heads = frozenset(words["origin_heads"])
        self.genders: dict[str, str] = words["genders"]
        self.levels: dict[str, str] = words["levels"]
        self.finished: dict[str, str] = words["finished"]
        self.schools = frozenset(words["schools"])
        self.demonyms: dict[str, str] = words["demonyms"]
        self._dogs, self._other_pets = frozenset(words["dogs"]), words["other_pets"]
        self.more, self.subject = re.compile(words["more"]), re.compile(words["subject"])
        self.first_person, self.others = re.compile(words["first_person"]), re.compile(words["others"])
        self.school, self.article = re.compile(words["school"]), re.compile(words["article"])
        self.no_organisation = re.compile(words["no_organisation"], re.I)

    def pet(self, said: str) -> str:
        """Return the animal: a puppy is a dog."""
        return "dog" if said in self._dogs else str(self._other_pets.get(said, said.removesuffix("s")))


@dataclass(frozen=True, eq=False)
class Language:
    """One language, ready to read with."""

    code: str
    words: Mapping[str, Any]
    patterns: Mapping[str, Any]
    names: Mapping[str, Any]
    occupations: Mapping[str, tuple[str, float]]
    """What a job is called: its name in the table, and thousands of people."""

    @cached_property
    def gazetteer(self) -> Gazetteer:
        """Places by the names this language has for them."""
        return Gazetteer(self.words["places"])

    @cached_property
    def identifiers(self) -> IdentifierPatterns:
        """What direct identifiers look like."""
        compiled = {name: re.compile(text) for name, text in self.names["patterns"].items()}
        return IdentifierPatterns(**compiled, no_handles=frozenset(self.names["words"]["no_handles"]))

    @cached_property
    def grammar(self) -> Grammar:
        """Its small words."""
        return Grammar(self.words["grammar"])

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number words up to 99."""
        small, tens = self.words["number_words"]["names"], self.words["number_words"]["tens"]
        found = {word: number for number, word in enumerate(small)}
        for ten, word in enumerate(tens):
            if word:
                found[word] = 10 * ten
                for one in range(1, 10):
                    found[f"{word}-{small[one]}"] = found[f"{word} {small[one]}"] = 10 * ten + one
        return found

    @cached_property
    def nouns(self) -> dict[str, tuple[Pair, ...]]:
        """What a person can call themselves, and what each noun says."""
        found: dict[str, list[Pair]] = {}
        for name, (job, _) in self.occupations.items():
            found.setdefault(name, []).append(("occupation", job))
        for gender, some in self.words["gender"].items():
            for noun in some:
                found.setdefault(noun, []).append(("gender", gender))
        for gender, some in self.words["parent"].items():
            for noun in some:
                found.setdefault(noun, []).append(("children", "yes"))
                if gender:
                    found[noun].append(("gender", gender))
                if noun.startswith("single "):
                    found[noun].append(("relationship", "single"))
        for gender, some in self.words["kin"].items():
            for noun in some:
                found.setdefault(noun, []).append(("gender", gender))
        for noun in ("wife", "husband"):
            found[noun].append(("relationship", "married"))
        for noun in ("widow", "widower"):
            found[noun].append(("relationship", "widowed"))
        for attribute in ("religion", "politics", "sexuality", "health", "origin", "relationship"):
            for value, some in self.words[attribute].items():
                for phrase in some:
                    if phrase.startswith(("a ", "an ")):
                        found.setdefault(phrase.split(" ", 1)[1], []).append((attribute, value))
        genders = {noun: gender for gender, some in self.words["gender"].items() for noun in some}
        for noun, pairs in found.items():  # a black woman is a woman
            if (last := noun.split()[-1]) in genders:
                pairs.append(("gender", genders[last]))
        return {noun: tuple(dict.fromkeys(pairs)) for noun, pairs in found.items()}

    @cached_property
    def traits(self) -> dict[str, Pair]:
        """What a person can be without being a noun: "gay", "divorced", "german"."""
        found: dict[str, Pair] = {}
        for attribute in ("relationship", "religion", "politics", "sexuality", "origin", "health"):
            for value, some in self.words[attribute].items():
                for phrase in some:
                    if not phrase.startswith(("a ", "an ")):
                        found.setdefault(phrase, (attribute, value))
        return found

    @cached_property
    def first_words(self) -> frozenset[str]:
        """The words with which a noun or a trait can begin: most phrases are passed over by them."""
        return frozenset(phrase.split(" ", 1)[0] for phrase in (*self.nouns, *self.traits))

    @cached_property
    def health(self) -> dict[str, str]:
        """Names of conditions, and the value each stands for."""
        found = {}
        for value, some in self.words["health"].items():
            for name in some:
                found[name.removeprefix("an ").removeprefix("a ")] = value
        return found

    @cached_property
    def rules(self) -> dict[str, tuple[Rule, ...]]:
        """All rules by their start."""
        found: dict[str, list[Rule]] = {name: [] for name in self.patterns["starts"]}
        for entry in self.patterns["rule"]:
            found[entry["start"]].append(self._rule(entry))
        return {start: tuple(rules) for start, rules in found.items()}

    def any_of(self, start: str) -> re.Pattern[str]:
        """Return whether any rule of a start can match, as one test in place of many."""
        if start not in self._any_of:
            tried = [rule for rule in self.rules[start] if start != "am" or not rule.names_anybody]
            self._any_of[start] = re.compile(
                "|".join(f"(?:{_NAMED.sub('(?:', rule.pattern)})" for rule in tried)
            )
        return self._any_of[start]

    @cached_property
    def _any_of(self) -> dict[str, re.Pattern[str]]:
        return {}

    @cached_property
    def next_words(self) -> dict[str, frozenset[str]]:
        """For a start, the words that can follow it: all that its rules name. Most "I think" are passed over by this.

        Rules in which any word may follow ("my old beard") are not among them.
        """
        found = {}
        for start, rules in self.rules.items():
            sources = [entry["match"] for entry in self.patterns["rule"] if entry["start"] == start]
            if (
                rules
                and not any(source.startswith((" (?:\\w", " {", "{")) for source in sources)
                and start in ("i", "we")
            ):
                found[start] = frozenset(word for source in sources for word in re.findall(r"[a-z]+", source))
        return found

    @cached_property
    def rules_for_anybody(self) -> tuple[Rule, ...]:
        """The rules after "I'm" that any word can follow, so that no test can pass over them."""
        return tuple(rule for rule in self.rules["am"] if rule.names_anybody)

    @cached_property
    def trigger(self) -> re.Pattern[str]:
        """Finds where somebody may begin to speak of themselves; the group says which start it is."""
        starts = self.patterns["starts"]
        order = [name for name in starts if starts[name]]
        letters = "".join(sorted({letter for name in order for letter in _first_letters(starts[name])}))
        groups = "|".join(f"(?P<{name}>{starts[name]})" for name in order)
        return re.compile(rf"\b(?=[{letters}])(?:{groups})(?!\w)")

    @cached_property
    def needed(self) -> tuple[re.Pattern[str], dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]:
        """One search for the words without which no rule of the start "any" can match, and the rules for each.

        Words begin where words begin; marks ("(", an emoji) come apart, for they need no boundary.
        """
        words: dict[str, list[int]] = {}
        marks: dict[str, list[int]] = {}
        for number, rule in enumerate(self.rules["any"]):
            for need in rule.needs:
                (words if need[0].isalpha() else marks).setdefault(need, []).append(number)
        # A longer word that was found stands for all shorter ones that it begins with.
        all_rules = {
            word: tuple(sorted({n for other, some in words.items() if word.startswith(other) for n in some}))
            for word in words
        }
        tree = _tree_pattern(list(words))
        return re.compile(rf"\b(?=({tree}))"), all_rules, {mark: tuple(some) for mark, some in marks.items()}

    @cached_property
    def guards(self) -> dict[str, re.Pattern[str]]:
        """What takes a statement back."""
        return {name: re.compile(text) for name, text in self.patterns["guards"].items()}

    @cached_property
    def _slots(self) -> dict[str, str]:
        words = self.words
        number = "|".join(sorted(self.numbers, key=len, reverse=True))
        months = "|".join(
            month if month == "may" else f"{month[:3]}(?:{month[3:]})?\\.?"
            for month in words["months"]["names"]
        )
        lists = {
            "health": self.health,
            "language": words["languages"]["names"],
            "pet": words["pets"]["names"],
            "car": words["cars"]["names"],
            "field": words["education_fields"]["names"],
        }
        slots = {name: f"(?:(?P<{name}>{_alternatives(some)})\\b)" for name, some in lists.items()}
        slots |= {
            f"{name}2": slots[name].replace(f"<{name}>", f"<{name}2>") for name in ("field", "language")
        }
        return slots | {
            "age": f"(?P<age>[1-9]\\d(?![\\d%$°'\"])|{number})",
            "n": f"(?P<n>\\d{{1,2}}|an?|{number})",
            "year": r"(?P<year>(?:19[2-9]\d|20[0-2]\d)|'\d\d)",
            "day": r"(?P<day>[0-3]?\d)",
            "month": f"(?P<month>{months})",
            "place": r"(?P<place>\S[^\n!?;:\"]{1,60})",
            "org": r"(?P<org>\S[^\n!?;:\"]{1,50})",
            "school": r"(?P<school>\S[^\n!?;:\"]{1,60})",
            "name": r"(?P<name>[^\W\d_][\w'’.-]*(?: [^\W\d_][\w'’.-]*){0,2})",
            "person": r"(?P<person>[a-z0-9][\w'’/&+-]*(?: [\w'’/&+-]+){0,7})",
            **self.patterns["slots"],
        }

    def _rule(self, entry: Mapping[str, Any]) -> Rule:
        seen: Counter[str] = Counter()

        def fill(found: re.Match[str]) -> str:
            name = found.group(1)
            if name not in self._slots:
                raise InputError(
                    f"data/{self.code}/patterns.toml: unknown slot '{{{name}}}' in {entry['kind']!r}"
                )
            seen[name] += 1  # a pattern may name a group only once
            return self._slots[name].replace(f"(?P<{name}>", f"(?P<{name}{'_' * (seen[name] - 1)}>")

        text = re.sub(r"\{([a-z]\w*)\}", fill, entry["match"])
        # "I've lived" follows its start without a space.
        pattern = text.replace(" ", " ?", 1) if entry["start"] in ("i", "we") and text[0] == " " else text
        return Rule(
            start=entry["start"],
            pattern=pattern,
            attribute=entry["attribute"],
            value=entry.get("value", ""),
            kind=entry["kind"],
            sign=entry.get("sign", False),
            also_signs=entry.get("also_signs", entry.get("sign", False)),
            also=tuple((str(name), str(value)) for name, value in entry.get("also", ())),
            needs=tuple(entry.get("needs", ())),
        )


def _first_letters(pattern: str) -> set[str]:
    return set(re.findall(r"(?:^|\||\(\?:)([a-z])", pattern))


def _tree_pattern(words: list[str]) -> str:
    """Return a pattern that finds the longest of many words by walking down their letters, not trying one by one."""
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}

    def pattern(node: dict[str, Any]) -> str:
        ways = [re.escape(letter) + pattern(below) for letter, below in sorted(node.items()) if letter]
        if not ways:
            return ""
        together = ways[0] if len(ways) == 1 and "" not in node else f"(?:{'|'.join(ways)})"
        return f"{together}?" if "" in node else together

    return pattern(tree)


def _alternatives(names: Any) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


@cache
def load_language(code: str = "en") -> Language:
    """Read a language's files."""
    folder = DATA.joinpath(code)
    if not folder.is_dir():
        known = ", ".join(
            sorted(one.name for one in DATA.iterdir() if one.joinpath("patterns.toml").is_file())
        )
        raise InputError(
            f"language: '{code}' cannot be read yet; there is: {known}. "
            "How to add one: docs/how-to/disclosures-language.md"
        )
    jobs: dict[str, tuple[str, float]] = {}
    for line in folder.joinpath("occupations.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, thousands, *also = line.split("\t")
            for called in (name, *(one for one in "".join(also).split("|") if one)):
                jobs.setdefault(called, (name, float(thousands)))
    return Language(
        code,
        tomllib.loads(folder.joinpath("words.toml").read_text("utf-8")),
        tomllib.loads(folder.joinpath("patterns.toml").read_text("utf-8")),
        tomllib.loads(folder.joinpath("identifiers.toml").read_text("utf-8")),
        jobs,
    )
