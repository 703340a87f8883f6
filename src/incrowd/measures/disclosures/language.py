"""What the finder knows of a language: words, occupations, and rules for how people speak of themselves.

All of it lies in files (``data/LANGUAGE``), so that another language is a folder, not code.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from typing import Any

from incrowd.errors import InputError
from incrowd.measures.disclosures.beginnings import WORD_END, Beginnings, tree_pattern
from incrowd.measures.disclosures.identifiers import IdentifierPatterns
from incrowd.measures.disclosures.places import Gazetteer

DATA = files("incrowd.measures.disclosures").joinpath("data")
Pair = tuple[str, str]
"""An attribute and a value."""
_ADVERBS = re.compile(r" ?\??(\{adv\}|\{v\}|\(\?:\{adv\}\)|\(\?:\{v\}\)[?*])")
"""Where a rule says that adverbs may come."""
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
    sketch: str
    """The pattern with a letter for each long list, for :class:`Beginnings`."""
    then_pattern: str = ""
    """What must follow the name that a slot holds: "a Detroit *native*"."""
    after_adverbs: bool = False
    """Adverbs and small verbs may come before it ("I have just recently ..."): it is tried after each of them."""
    after_word: bool = False
    """Some word may come before it ("my *black* purse"): it is tried after that, too."""
    asks: bool = False
    """It says something though it is a question: "anybody here from Spokane?"."""

    @cached_property
    def then(self) -> re.Pattern[str] | None:
        """The pattern of what must follow, compiled; none if anything may."""
        return re.compile(self.then_pattern) if self.then_pattern else None

    @cached_property
    def match(self) -> re.Pattern[str]:
        """The pattern, compiled when a text first needs it: a draft meets few of the rules."""
        return re.compile(self.pattern)

    @cached_property
    def slots(self) -> frozenset[str]:
        """The names of its groups."""
        return frozenset(_NAMED.findall(self.pattern))

    @property
    def opens(self) -> bool:
        """Whether it can match at a number that opens a text, and nowhere else: "26m from ..."."""
        return self.pattern.startswith(r"^(?=\d)")

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


class Grammar:
    """The small words of a language, as the finder asks for them."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        self.after_noun = frozenset(words["after_noun"])
        self.after_job = self.after_noun | frozenset(words["after_job"])
        self.after_as = self.after_noun | frozenset(words["after_as"])
        self.after_trait = self.after_noun - frozenset(words["not_after_trait"])
        self.intensifiers = frozenset(words["intensifiers"])
        self.exaggerates, self.undone = tuple(words["exaggerates"]), tuple(words["undone"])
        self.no_longer = frozenset(words["no_longer"])
        self.both, self.lasting = tuple(words["both"]), re.compile(words["lasting"])
        self.no_names = frozenset(words["no_names"])
        self.refused = frozenset(words["refused"])
        self.origin_heads = frozenset(words["origin_heads"])
        self.genders: dict[str, str] = words["genders"]
        self.levels: dict[str, str] = words["levels"]
        self.finished: dict[str, str] = words["finished"]
        self.rites: dict[str, str] = words["rites"]
        self.schools = frozenset(words["schools"])
        self.demonyms: dict[str, str] = words["demonyms"]
        self._dogs, self._other_pets = frozenset(words["dogs"]), words["other_pets"]
        self.more, self.subject = re.compile(words["more"]), re.compile(words["subject"])
        self.first_person, self.others = re.compile(words["first_person"]), re.compile(words["others"])
        self.school, self.article = re.compile(words["school"]), re.compile(words["article"])
        self.no_organisation = re.compile(words["no_organisation"], re.I)
        self.my_clause, self.not_my_clause = (
            re.compile(words["my_clause"]),
            re.compile(words["not_my_clause"]),
        )
        self.profile, self.separator = re.compile(words["profile"]), re.compile(words["separator"])
        self.item_end, self.short_item = re.compile(words["item_end"]), re.compile(words["short_item"])
        self.first_or_third = re.compile(words["first_or_third"])
        self.before_being = frozenset(words["before_being"]) | frozenset(words["before_as"])
        self.after_trait_fragment = re.compile(words["after_trait_fragment"])
        self.after_opener = frozenset(words["modifiers"]) | frozenset(words["after_opener"])
        self.vocatives = frozenset(words["vocatives"])
        self.after_fragment, self.not_fragment = (
            re.compile(words["after_fragment"]),
            re.compile(words["not_fragment"]),
        )
        self.of_age, self.on_a_side = re.compile(words["of_age"]), re.compile(words["on_a_side"])
        self.job, self.works_at = re.compile(words["job"]), re.compile(words["works_at"])
        self.where, self.before_as = re.compile(words["where"]), frozenset(words["before_as"])
        self.hobbies, self.not_paid = frozenset(words["hobbies"]), frozenset(words["not_paid"])
        self._fields, self._cars = words["fields"], words["cars"]
        self._first_person_of = words["first_person_of"]

    def field(self, said: str) -> str:
        """Return the field of study: psych is psychology."""
        return str(self._fields.get(said, said))

    def car(self, said: str) -> str:
        """Return the car with its maker: a Corolla is a Toyota."""
        return str(self._cars.get(said, said))

    def pet(self, said: str) -> str:
        """Return the animal: a puppy is a dog."""
        one = said[:-3] + "y" if said.endswith("ies") else said.removesuffix("s")
        if said in self._dogs or one in self._dogs:
            return "dog"
        return str(self._other_pets.get(said) or self._other_pets.get(one, one))

    def first_person_of(self, verb: str) -> str:
        """Return a verb as it follows "I": lives, live; has, have.

        >>> [load_language().grammar.first_person_of(verb) for verb in ("lives", "has", "studies", "grew")]
        ['live', 'have', 'study', 'grew']
        """
        known = self._first_person_of.get(verb)
        if known is not None:
            return str(known)
        if verb.endswith("ies"):
            return verb[:-3] + "y"
        return verb.removesuffix("s") if not verb.endswith("ss") else verb


@dataclass(frozen=True, eq=False)
class Language:
    """One language, ready to read with."""

    code: str
    words: Mapping[str, Any]
    patterns: Mapping[str, Any]
    names: Mapping[str, Any]
    occupations: Mapping[str, str]
    """What a job is called: its name here."""
    counted_with: Mapping[str, str]
    """A job that the table counts with others: the row. A barista is counted with waiters, and is none."""
    workers: Mapping[str, tuple[float, float]]
    """Name in the table: thousands of people, and by which factor that may be off."""

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
    def ordinals(self) -> dict[str, int]:
        """Words for places in an order from 13th to 99th, the longest first: "my fortieth birthday"."""
        ones, tens = self.words["number_words"]["ordinals"], self.words["number_words"]["tens"]
        found = {word: number for number, word in enumerate(ones) if number > 12}
        for ten, word in enumerate(tens):
            if word:
                found[f"{word[:-1]}ieth"] = 10 * ten
                found |= {f"{word}{dash}{ones[one]}": 10 * ten + one for one in range(1, 10) for dash in "- "}
        return dict(sorted(found.items(), key=lambda one: -len(one[0])))

    @cached_property
    def nouns(self) -> dict[str, tuple[Pair, ...]]:
        """What a person can call themselves, and what each noun says."""
        found: dict[str, list[Pair]] = {}
        for name, job in self.occupations.items():
            found.setdefault(name, []).append(("occupation", job))
        for gender, some in self.words["gender"].items():
            for noun in some:
                found.setdefault(noun, []).append(("gender", gender))
        for gender, some in self.words["parent"].items():
            for noun in some:
                found.setdefault(noun, []).append(("children", "yes"))
                if gender:
                    found[noun].append(("gender", gender))
                if not noun.endswith("s"):
                    found.setdefault(f"{noun}s", found[noun])  # "we're two proud dads"
                for status in ("single", "divorced", "widowed"):
                    if noun.startswith(f"{status} "):
                        found[noun].append(("relationship", status))
        for gender, some in self.words["kin"].items():
            for noun in some:
                found.setdefault(noun, []).append(("gender", gender))
        for animal in ("dog", "cat"):  # a dog mum has a dog
            for gender, some in (("female", ("mom", "mum", "mama")), ("male", ("dad", "papa"))):
                found |= {f"{animal} {noun}": [("pet", animal), ("gender", gender)] for noun in some}
        for noun in self.words["heads"]["names"]:
            found.setdefault(noun, [])
        for noun in ("wife", "husband"):
            found[noun].append(("relationship", "married"))
        for noun in ("widow", "widower"):
            found[noun].append(("relationship", "widowed"))
        for attribute in ("religion", "politics", "sexuality", "health", "origin", "relationship"):
            for value, some in self.words[attribute].items():
                for phrase in some:
                    if phrase.startswith(("a ", "an ")):
                        found.setdefault(phrase.split(" ", 1)[1], []).append((attribute, value))
                    elif attribute == "origin":  # "as a Kenyan"
                        found.setdefault(phrase, []).append((attribute, value))
        known = {noun: found[noun] for some in self.words["gender"].values() for noun in some}
        known |= {noun: found[noun] for some in self.words["parent"].values() for noun in some}
        for noun, pairs in found.items():  # a black woman is a woman, a stay-at-home mother has children
            last = noun.split()[-1].rsplit("-", 1)[-1]
            if last != noun and not any(attribute == "pet" for attribute, _ in pairs):
                pairs += known.get(last, ())
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
        for noun, pairs in self.nouns.items():  # "we're teachers"
            if pairs and pairs[0][0] in ("occupation", "religion", "politics", "origin"):
                found.setdefault(f"{noun}s", pairs[0])
        return found

    @cached_property
    def first_words(self) -> frozenset[str]:
        """The words with which a noun or a trait can begin: most phrases are passed over by them."""
        return frozenset(phrase.split(" ", 1)[0] for phrase in (*self.nouns, *self.traits))

    @cached_property
    def modifiers(self) -> frozenset[str]:
        """Words that may stand before a noun for a person without praising or blaming them: "retired", "nursing"."""
        fields = (word for name in self.words["education_fields"]["names"] for word in name.split())
        return frozenset((*self.words["grammar"]["modifiers"], *self.traits, *fields))

    @cached_property
    def openers(self) -> frozenset[str]:
        """The words with which a sentence can begin that says what somebody is: "Proud dad of twins"."""
        nouns = (noun.split(" ", 1)[0] for noun, pairs in self.nouns.items() if pairs)
        return frozenset((*nouns, *self.modifiers))

    @cached_property
    def noun_words(self) -> frozenset[str]:
        """The words of which nouns for a person consist."""
        return frozenset(word for noun, pairs in self.nouns.items() if pairs for word in noun.split())

    @cached_property
    def trait_openers(self) -> frozenset[str]:
        """The words with which a sentence can begin that says how somebody is: "Divorced since ...", "HIV positive"."""
        first = {trait.split(" ", 1)[0] for trait in self.traits} | set(self.words["grammar"]["halves"])
        return frozenset(first - set(self.words["grammar"]["no_trait_openers"]))

    @cached_property
    def health(self) -> dict[str, str]:
        """Names of conditions, and the value each stands for."""
        found = {}
        for value, some in self.words["health"].items():
            for name in some:
                found[name.removeprefix("an ").removeprefix("a ")] = value
        return found

    @cached_property
    def languages(self) -> frozenset[str]:
        """Names of languages; what is called so may be taught and studied."""
        return frozenset(self.words["languages"]["names"])

    @cached_property
    def medication(self) -> dict[str, str]:
        """What people take or use, and the condition it suggests."""
        return {name: value for value, some in self.words["medication"].items() for name in some}

    @cached_property
    def work(self) -> dict[str, str]:
        """What people do for a living, where and in which branch they work, and the occupation that is or suggests."""
        return {
            said: job
            for table in ("trades", "workplaces", "branches")
            for job, some in self.words[table].items()
            for said in some
        }

    @cached_property
    def typos(self) -> dict[str, str]:
        """How words are mistyped, and the words."""
        words = self.words["typos"]
        found = {
            word[:at] + word[at + 1] + word[at] + word[at + 2 :]: word
            for word in words["swapped"]
            for at in range(1, len(word) - 1)
            if word[at] != word[at + 1]
        }
        return found | {typo: word for word, some in words.items() if word != "swapped" for typo in some}

    @cached_property
    def first_names(self) -> frozenset[str]:
        """First names that many people have."""
        return frozenset(self.words["first_names"]["names"].split())

    @cached_property
    def rules(self) -> dict[str, tuple[Rule, ...]]:
        """All rules by their start."""
        found: dict[str, list[Rule]] = {name: [] for name in self.patterns["starts"]}
        for entry in self.patterns["rule"]:
            starts = entry["start"] if isinstance(entry["start"], list) else [entry["start"]]
            for start in starts:
                found[start].append(self._rule({**entry, "start": start}))
        # A clause without "I" may begin as one with "I" or "I'm" goes on, if its first letters say so.
        told_apart = [rule for rule in found["am"] if "" not in self.beginnings.of(rule.sketch, SEEN)]
        found["dropped"] += [*found["i"], *told_apart]
        return {start: tuple(rules) for start, rules in found.items()}

    def rules_from(self, start: str, low: str, place: int) -> list[tuple[Rule, re.Match[str]]]:
        """Return the rules of a start that match at a place of a text, or after adverbs or a word there, and how."""
        found: list[tuple[Rule, re.Match[str]]] = []
        _match(self.rules_at(start, low[place : place + SEEN], ""), low, place, found)
        if start == "my":
            second = low.find(" ", place + 1)
            if second >= 0 and low[place + 1 : second].replace("-", "").isalnum():
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
        slots = self.patterns["slots"]
        return re.compile(f" ?(?:{slots['v']}|{slots['adv'].removesuffix('*')})")

    @cached_property
    def adverb_words(self) -> frozenset[str]:
        """The words with which :attr:`adverb` can begin."""
        return frozenset(re.findall(r"[a-z']+", self.adverb.pattern))

    @cached_property
    def rules_at(self) -> Callable[[str, str, str], tuple[Rule, ...]]:
        """The rules of a start that can match a text, by its first `SEEN` letters, or after adverbs or a word."""

        @cache
        def table_of(start: str) -> dict[str, tuple[Rule, ...]]:
            rules = self.rules[start]
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
        groups = "|".join(f"(?P<{name}>{text})" for name, text in self.patterns["starts"].items() if text)
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
        for number, rule in enumerate(self.rules["any"]):
            if rule.opens:
                continue
            for text in rule.needs or self.beginnings.of(rule.sketch, SEEN):
                if len(text) < 2 and not rule.needs:
                    raise InputError(
                        f"data/{self.code}/patterns.toml: rule {rule.kind!r} can begin with anything; "
                        "give the words it `needs`"
                    )
                (words if text[0].isalpha() else marks).setdefault(text, []).append(number)
        for number, texts in (
            (STARTS, self.beginnings.of(self.trigger.pattern, LONGEST_START)),
            (ACCOUNTS, self.names["words"]["services"]),
            (TYPOS, self.typos),
        ):
            for text in texts:
                words.setdefault(text, []).append(number)
        # A longer word that was found stands for all shorter ones that it begins with.
        all_rules = {
            word: tuple(
                sorted(
                    {
                        n
                        for size in range(1, len(word) + 1)
                        for n in words.get(word[:size], ())
                        if n != TYPOS or size == len(word)
                    }
                )
            )
            for word in words
        }
        whole = [
            text
            for text, some in words.items()
            if some == [TYPOS] or (some == [STARTS] and len(text) < LONGEST_START)
        ]
        tree = tree_pattern([text + WORD_END if text in whole else text for text in words])
        return (
            re.compile(rf"[^a-z0-9_](?=({tree}))"),
            all_rules,
            {mark: tuple(some) for mark, some in marks.items()},
        )

    @cached_property
    def opening(self) -> tuple[int, ...]:
        """The rules of the start "any", by number, that only match at a number that opens a text."""
        return tuple(number for number, rule in enumerate(self.rules["any"]) if rule.opens)

    @cached_property
    def guards(self) -> dict[str, re.Pattern[str]]:
        """What takes a statement back."""
        return {name: re.compile(text) for name, text in self.patterns["guards"].items()}

    @cached_property
    def _lists(self) -> dict[str, str]:
        """Slots that hold one of many names."""
        words = self.words
        lists = {
            "health": self.health,
            "language": words["languages"]["names"],
            "pet": {name for one in words["pets"]["names"] for name in (one, f"{one}s", one[:-1] + "ies")},
            "car": words["cars"]["names"],
            "field": words["education_fields"]["names"],
            "employer": words["employers"]["names"],
            "school2": words["schools"]["names"],
            "medication": self.medication,
            **{
                slot: [said for some in self.words[table].values() for said in some]
                for slot, table in (("trade", "trades"), ("workplace", "workplaces"), ("branch", "branches"))
            },
            "demonym": [f"{one}{ending}" for one in self.grammar.demonyms for ending in ("", "s")],
        }
        slots = {name: f"(?:(?P<{name}>{tree_pattern(some)})\\b)" for name, some in lists.items()}
        twice = ("field", "language", "pet", "health")  # "French and German"
        slots |= {f"{name}2": slots[name].replace(f"<{name}>", f"<{name}2>") for name in twice}
        slots["language3"] = slots["language"].replace("<language>", "<language3>")
        return slots

    @cached_property
    def _slots(self) -> dict[str, str]:
        words = self.words
        number = "|".join(sorted(self.numbers, key=len, reverse=True))
        months = "|".join(
            month if month == "may" else f"{month[:3]}(?:{month[3:]})?\\.?"
            for month in words["months"]["names"]
        )
        return self._lists | {
            "age": f"(?P<age>[1-9]\\d(?![\\d%$°'\"]|-?something)|[1-9]-[0o]\\b|{number})",
            "ageth": f"(?P<age>[1-9]\\d(?=st|nd|rd|th)|{'|'.join(self.ordinals)})(?:st|nd|rd|th)?",
            "n": f"(?P<n>\\d{{1,2}}|an?|{number})",
            "n2": f"(?P<n2>\\d{{1,2}}|an?|{number})",
            "country": f"(?P<country>{_alternatives(words['from_country'])})\\b",
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
            **self.patterns["slots"],
        }

    @cached_property
    def beginnings(self) -> Beginnings:
        """Tells with which texts rules can begin."""
        return Beginnings({name: self._slots[name] for name in (*self._lists, "age", "n", "n2", "country")})

    def _filled(self, written: str, entry: Mapping[str, Any], marks: Mapping[str, str]) -> str:
        """Return the pattern that a rule writes with slots; `marks` stand in for slots that they name."""
        seen: Counter[str] = Counter()

        def fill(found: re.Match[str]) -> str:
            name = found.group(1)
            if name not in self._slots:
                raise InputError(
                    f"data/{self.code}/patterns.toml: unknown slot '{{{name}}}' in {entry['kind']!r}"
                )
            group = "age" if name == "ageth" else name
            seen[group] += 1  # a pattern may name a group only once
            again = f"(?P<{group}{'_' * (seen[group] - 1)}>"
            return marks.get(name) or self._slots[name].replace(f"(?P<{group}>", again)

        text = re.sub(r"\{([a-z]\w*)\}", fill, written)
        if "then" in entry:  # seen from afar: most places need not be read
            text = text.replace("(?P<place>", rf"(?P<place>(?=[^\n]{{1,50}}?{entry['then']})")
        # "I've lived" follows its start without a space.
        return text.replace(" ", " ?", 1) if entry["start"] in ("i", "we") and text[0] == " " else text

    def _begins_with_words(self, sketch: str) -> bool:
        """Say whether it can only begin with words long enough to look for."""
        return all(len(text) > 2 and text[0].isalpha() for text in self.beginnings.of(sketch, SEEN))

    def _rule(self, entry: Mapping[str, Any]) -> Rule:
        written = entry["match"]
        adverbs = _ADVERBS.match(written)
        if adverbs is not None:
            written = written[: adverbs.start(1)] + written[adverbs.end() :]
        after_word = written.startswith(" {w}")
        written = written.replace("{w}", "", 1)
        sketch = self._filled(written, entry, self.beginnings.marks)
        return Rule(
            start=entry["start"],
            pattern=self._filled(written, entry, {}),
            sketch=sketch,
            attribute=entry["attribute"],
            value=entry.get("value", ""),
            kind=entry["kind"],
            sign=entry.get("sign", False),
            also_signs=entry.get("also_signs", entry.get("sign", False)),
            also=tuple((str(name), str(value)) for name, value in entry.get("also", ())),
            needs=()
            if entry["start"] == "any" and self._begins_with_words(sketch)
            else tuple(entry.get("needs", ())),
            after_adverbs=adverbs is not None,
            after_word=after_word,
            then_pattern=entry.get("then", ""),
            asks=entry.get("asks", False),
        )


def _match(rules: Iterable[Rule], low: str, place: int, found: list[tuple[Rule, re.Match[str]]]) -> None:
    """Add to `found` the rules that match at a place, and how."""
    for rule in rules:
        if rule.needs and not any(word in low for word in rule.needs):
            continue
        match = rule.match.match(low, place)
        if match is not None:
            found.append((rule, match))


OWN_NAME = "~"
"""Before what a job is also called: it is another job, which the table counts with this one."""
SEEN = 7
"""Letters of a text by which rules are passed over."""
LONGEST_START = 16
"""Letters of a start ("as someone who") by which it is found; where a shorter one ends, no word may go on."""
ENGLISH_FROM = 0.12
"""In English texts every third word is one of the commonest twenty; below this share a text is in no known language."""
FEWEST_WORDS = 15
MOST_LOOKED_AT = 200
"""Texts, spread over all, by which the language is known."""
STARTS, ACCOUNTS, TYPOS = -1, -2, -3
"""Stand for no rule of their own in :attr:`Language.anywhere`."""


def _alternatives(names: Any) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=lambda name: (-len(name), name)))


def is_readable(texts: Sequence[str], language: str = "en") -> bool:
    """Say whether texts are in a language the finder knows, by its commonest words and those of other languages.

    A few words are taken for readable unless they are another language's, or in another script.

    >>> is_readable(["Nice bike!"]), is_readable(["Ich bin 31 und komme aus Hamburg"]), is_readable(["Мне 31 год"])
    (True, False, False)
    """
    grammar = load_language(language).words["grammar"]
    common, elsewhere = frozenset(grammar["common"]), frozenset(grammar["common_elsewhere"])
    some = texts[:: len(texts) // MOST_LOOKED_AT + 1]
    words = [word.strip(".,!?;:'\"()") for text in some for word in text.lower().split()[:200]]
    known, other = sum(word in common for word in words), sum(word in elsewhere for word in words)
    if len(words) < FEWEST_WORDS:
        letters = [letter for word in words for letter in word if letter.isalpha()]
        return known >= other and sum(map(str.isascii, letters)) >= len(letters) / 2
    return known >= max(ENGLISH_FROM * len(words), other)


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
    jobs: dict[str, str] = {}
    counted_with: dict[str, str] = {}
    workers: dict[str, tuple[float, float]] = {}
    for line in folder.joinpath("occupations.tsv").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, thousands, off, also, *_ = line.split("\t")
            workers[name] = float(thousands), float(off)
            for called in (name, *(one for one in also.split("|") if one)):
                if called.startswith(OWN_NAME):
                    counted_with[called[1:]] = name
                    jobs.setdefault(called[1:], called[1:])
                else:
                    jobs.setdefault(called, name)
    return Language(
        code,
        tomllib.loads(folder.joinpath("words.toml").read_text("utf-8")),
        tomllib.loads(folder.joinpath("patterns.toml").read_text("utf-8")),
        tomllib.loads(folder.joinpath("identifiers.toml").read_text("utf-8")),
        jobs,
        counted_with,
        workers,
    )
