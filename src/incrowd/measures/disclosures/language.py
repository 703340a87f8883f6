"""What the finder knows of a language: words, occupations, and rules for how people speak of themselves.

All of it lies in files (``data/LANGUAGE``), so that another language is a folder, not code.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from typing import Any

from incrowd.errors import InputError
from incrowd.measures.disclosures.identifiers import IdentifierPatterns
from incrowd.measures.disclosures.places import Gazetteer

DATA = files("incrowd.measures.disclosures").joinpath("data")
Pair = tuple[str, str]
"""An attribute and a value."""


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
        self.no_names, self.not_mine = frozenset(words["no_names"]), frozenset(words["not_mine"])
        self.subjects, self.unreal = re.compile(words["subjects"]), re.compile(words["unreal"])
        self.implied = re.compile(words["implied"])
        self.progressive: dict[str, str] = words["progressive"]
        self.needs_article = frozenset(words["needs_article"])
        self.verb_form, self.job_title = re.compile(words["verb_form"]), re.compile(words["job_title"])
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
        self.opens_list = frozenset((*words["opens_list"], *words["demonyms"]))
        self.tag = re.compile(words["tag"])
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
        self.phrase_end, self.item_mark = re.compile(words["phrase_end"]), re.compile(words["item_mark"])
        self.after_role, self.label = re.compile(words["after_role"]), re.compile(words["label"])
        self.not_before_role = (
            frozenset(words["not_before_role"]) | frozenset(words["not_paid"]) | self.refused
        )
        self.no_roles, self.no_job_before = frozenset(words["no_roles"]), frozenset(words["no_job_before"])
        self.of_age, self.on_a_side = re.compile(words["of_age"]), re.compile(words["on_a_side"])
        self.job, self.works_at = re.compile(words["job"]), re.compile(words["works_at"])
        self.where, self.before_as = re.compile(words["where"]), frozenset(words["before_as"])
        self.hobbies, self.not_paid = frozenset(words["hobbies"]), frozenset(words["not_paid"])
        self._doubles = re.compile(words["doubles"])
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

    def continuous(self, said: str) -> str:
        """Return what somebody does as what they are doing.

        >>> load_language().grammar.continuous("lay bricks"), load_language().grammar.continuous("cut hair")
        ('laying bricks', 'cutting hair')
        """
        verb, _, rest = said.partition(" ")
        stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb
        twice = verb[-1] if self._doubles.search(verb) else ""
        return f"{stem}{twice}ing {rest}".strip()

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
        words = self.names["words"]
        return IdentifierPatterns(
            **compiled,
            no_handles=frozenset(words["no_handles"]),
            streets_abroad=frozenset(words["streets_abroad"]),
        )

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
    def job_words(self) -> frozenset[str]:
        """The last words of the names of jobs."""
        return frozenset(name.rsplit(" ", 1)[-1] for name in self.occupations) - self.grammar.after_noun

    @cached_property
    def before_title(self) -> frozenset[str]:
        """Words before a job's title that are no part of it: "senior", "Amazon"."""
        return self.modifiers | frozenset(self.words["employers"]["names"])

    @cached_property
    def openers(self) -> frozenset[str]:
        """The words with which a sentence can begin that says what somebody is: "Proud dad of twins"."""
        nouns = (noun.split(" ", 1)[0] for noun, pairs in self.nouns.items() if pairs)
        return frozenset((*nouns, *self.modifiers))

    @cached_property
    def spelling(self) -> dict[str, str]:
        """Employers as people spell them, and their names: "mcdonalds", "woolies"."""
        employers = self.words["employers"]
        plain = {name.replace("'", ""): name for name in employers["names"] if "'" in name}
        return {**plain, **employers["aliases"]}

    @cached_property
    def by_beginning(self) -> dict[str, dict[str, list[str]]]:
        """Employers and schools by their first letters."""
        found: dict[str, dict[str, list[str]]] = {}
        for table in ("employers", "schools"):
            found[table] = {}
            for name in self.words[table]["names"]:
                found[table].setdefault(name[:BEGINNING], []).append(name)
        return found

    @cached_property
    def not_alone(self) -> frozenset[str]:
        """Words that name a town, too, and mean something else where they stand alone: "gay", "union", "rugby"."""
        words = (
            self.words["places"]["not_alone"],
            self.words["pets"]["names"],
            self.words["languages"]["names"],
        )
        return frozenset((*chain.from_iterable(words), *self.nouns, *self.traits))

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
    def work(self) -> dict[str, dict[str, str]]:
        """By slot: what people do, have and run, where and in which branch they work, and the occupation that tells."""
        tables = {
            slot: {said: job for job, some in self.words[table].items() for said in some}
            for slot, table in WORK.items()
        }
        return tables | {"deed": self.deeds}

    @cached_property
    def deeds(self) -> dict[str, str]:
        """What nobody does day in, day out who does not live by it, also as "laying bricks", and the occupation."""
        found = {said: job for job, some in self.words["deeds"].items() for said in some}
        return found | {self.grammar.continuous(said): job for said, job in found.items()}

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
        found |= {  # one letter left out of a long word
            word[:at] + word[at + 1 :]: word
            for word in words["swapped"]
            for at in range(1, len(word) - 1)
            if len(word) >= LONG_WORD
        }
        found = {typo: word for typo, word in found.items() if typo not in words["no_typos"]}
        words = {word: some for word, some in words.items() if word not in ("swapped", "no_typos")}
        return found | {typo: word for word, some in words.items() for typo in some}

    @cached_property
    def first_names(self) -> frozenset[str]:
        """First names that many people have."""
        return frozenset(self.words["first_names"]["names"].split())

    @cached_property
    def guards(self) -> dict[str, re.Pattern[str]]:
        """What takes a statement back."""
        return {name: re.compile(text) for name, text in self.patterns["guards"].items()}


BEGINNING = 2
"""Letters by which the names of a long list are found."""
LONG_WORD = 6
"""Letters of a word that is still known when one of them is missing."""
WORK = {
    "trade": "trades",
    "belonging": "belongings",
    "business": "businesses",
    "workplace": "workplaces",
    "branch": "branches",
}
"""Slots that tell an occupation, and the tables of words that they hold."""
OWN_NAME = "~"
"""Before what a job is also called: it is another job, which the table counts with this one."""
SAME_JOB = "="
"""Between the names of such a job: "mail carrier=postman=postie"."""


def load_language(code: str = "en") -> Language:
    """Return a language, read once: also where one caller names it and another leaves it out."""
    return _read(code)


@cache
def _read(code: str) -> Language:
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
                    own, *others = called[1:].split(SAME_JOB)
                    counted_with[own] = name
                    jobs |= dict.fromkeys((own, *others), own)
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
