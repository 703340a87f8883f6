"""What one text says about its writer: statements found by a small grammar, with where they stand.

The grammar starts at words in which people speak of themselves ("I'm", "my", "as a"), reads what follows by the rules
of a language, and takes a find back where the words around it do: a wish, a condition, a negation, a question, another
person's words. Quotations are blanked out first. Whose text it is does not matter here, and nothing is kept of it but
places in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from incrowd.measures.disclosures.identifiers import Identifier
from incrowd.measures.disclosures.language import (
    ACCOUNTS,
    SEEN,
    STARTS,
    Language,
    Pair,
    Rule,
    load_language,
)

LONGEST = 100_000
"""Characters of a post that are read; nobody says who they are after a hundred pages."""
MOST_MODIFIERS = 3
"""Words between the article and the noun: "a tired old divorced nurse"."""
MOST_INITIALS = 4
_ONES_OWN = ("age", "age band", "gender")
"""What "we are" does not tell of the writer."""
_STRAIGHT = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00b4": "'", "\u00a0": " "}
_QUOTED = re.compile(
    r'"[^"\n]{2,600}?"|\u00ab[^\u00bb\n]{2,600}\u00bb|^[ \t]*(?:>|&gt;)[^\n]*|```.*?```'
    r"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){3,300}'(?!\w)",
    re.M | re.S,
)
_SENTENCE_END = re.compile(r"[.!?\n](?=\s|$)|\n|$")
_WORD = re.compile(r"[\w'/&+-]+")
_NEXT = re.compile(r" ([\w'-]+)")
_SLOT = re.compile(r"\{(\w+)\}")
_CAPITALS = re.compile(r"[A-Z][\w&'.-]*(?: (?:(?:of|the|and|&|at|for|in) )?[A-Z][\w&'.-]*){0,4}")
_BIG, _SMALL = "A-Z\u00c0-\u00d6\u00d8-\u00de", "a-z\u00df-\u00f6\u00f8-\u017f"
_PERSON_NAME = re.compile(rf"[{_BIG}][{_SMALL}'-]+(?: (?:[{_BIG}]\.|[{_BIG}][{_BIG}{_SMALL}'-]+)){{0,2}}")
_FULL_NAME = re.compile(rf"[{_BIG}][{_SMALL}'-]+(?: [{_BIG}]\.)? [{_BIG}][{_SMALL}][{_BIG}{_SMALL}'-]*\b")
_OPENING_LIST = re.compile(r"(?P<list>)(?=\d\d(?:s| ?[mf])?\s*[,/|]\s*[a-z])")
_NOT_LETTERS = re.compile(r"[^\n]")


@dataclass(frozen=True, slots=True)
class Find:
    """One thing a text says about its writer."""

    attribute: str
    value: str
    kind: str
    """How it was said: finds of one kind are right about as often."""
    sign: bool
    """It suggests, and does not state."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Reading:
    """All that one text says."""

    finds: tuple[Find, ...] = ()
    identifiers: tuple[Identifier, ...] = ()
    others: int = 0
    """Statements about other people; only their number is kept."""


NOTHING = Reading()


def read_text(text: str, language: Language | None = None) -> Reading:
    """Return what one text says about its writer.

    >>> [(find.attribute, find.value) for find in read_text("I'm 31, divorced, and I live in Duluth.").finds]
    [('age', '31'), ('relationship', 'divorced'), ('location', 'Duluth, Minnesota')]
    """
    return _Text(text[:LONGEST], language or load_language()).read()


def clean(text: str) -> str:
    """Return a text with straight quotation marks, and apostrophes that a wrong decoding broke; finds point into it."""
    if "\u00e2\x80" in text:
        for broken, mark in (("\u00e2\x80\x99", "'"), ("\u00e2\x80\x9c", '"'), ("\u00e2\x80\x9d", '"')):
            text = text.replace(broken, mark)
    if not text.isascii():
        for curly, straight in _STRAIGHT.items():
            text = text.replace(curly, straight)
    return text


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a phrase, and where each stands."""

    said: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @classmethod
    def of(cls, low: str, start: int, end: int) -> _Words:
        found = list(_WORD.finditer(low, start, end))
        return cls(
            tuple(one.group() for one in found),
            tuple(one.start() for one in found),
            tuple(one.end() for one in found),
        )

    def __len__(self) -> int:
        return len(self.said)

    def phrases(self, first: int) -> Iterator[tuple[str, int]]:
        """Return the phrases that begin at a word, the longest first, with the word after the phrase."""
        for last in range(min(first + 4, len(self)), first, -1):
            yield " ".join(self.said[first:last]), last


class _Text:
    """One text while it is read."""

    __slots__ = ("finds", "guards", "language", "low", "others", "text")

    def __init__(self, text: str, language: Language) -> None:
        self.text = clean(text)
        low = self.text.lower()
        if len(low) != len(self.text):  # a few letters grow when they are made small
            low = "".join(small if len(small := letter.lower()) == 1 else letter for letter in self.text)
        self.low, self.language, self.guards = low, language, language.guards
        self.finds: list[Find] = []
        self.others = 0

    def read(self) -> Reading:
        low = self.low
        places = self._places(low)
        named = self.language.identifiers.find(self.text, low, accounts=ACCOUNTS in places)
        if '"' in low or ">" in low or "\u00ab" in low or " '" in low or "`" in low or low.startswith("'"):
            low = self.low = _QUOTED.sub(_blank, low)
        for place in places.get(STARTS, ()):
            found = self.language.trigger.match(low, place)
            if found is not None:
                self._at(found)
        self._opening_list()
        self._anywhere(places)
        if not (self.finds or named or self.others):
            return NOTHING
        if self.finds and self.guards["joke"].search(low):
            self.finds = []
        return Reading(tuple(_once(self.finds)), named, self.others)

    # Where somebody begins to speak of themselves

    def _at(self, found: re.Match[str]) -> None:
        start, end = found.lastgroup or "", found.end()
        if start == "am":
            before = len(self.finds)
            self._am(found)
            if not found.group().startswith("i"):  # "we are 18 in class", "we're girls who ..."
                self.finds[before:] = [one for one in self.finds[before:] if one.attribute not in _ONES_OWN]
            return
        if start == "list":
            self._list(found)
            return
        if start == "my" and self.guards["other"].match(self.low, found.start()):
            self.others += 1
        rules = self.language.rules_at(start, self.low[end : end + SEEN])
        matches = [(rule, match) for rule in rules if (match := rule.match.match(self.low, end)) is not None]
        if not matches or self._taken_back(found.start()) or (start == "i" and self._asked(found.start())):
            return
        if start == "as" and not self._about_me(found):
            return
        for rule, match in matches:
            self._apply(rule, match)

    def _am(self, found: re.Match[str]) -> None:
        """Read a list of what somebody is: "I'm 31, divorced and from Duluth", "About me: 31, divorced, Duluth"."""
        low, end, more = self.low, found.end(), self.language.grammar.more
        starts = ("am",) if found.lastgroup == "am" else ("list", "am")
        stop = _SENTENCE_END.search(low, end)
        last = min(stop.start() if stop else len(low), end + 200)
        place, guarded = end, False
        for _ in range(8):
            while place < last and low[place] in " \t,":
                place += 1
            first = place <= end + 1
            if place >= last or not (first or self.language.grammar.subject.match(low, place) is None):
                return
            reached = place
            letters = low[place : place + SEEN]
            for rule in (rule for start in starts for rule in self.language.rules_at(start, letters)):
                match = rule.match.match(low, place)
                if match is None or not (first or rule.attribute != "age" or low[place].isdigit()):
                    continue
                if not guarded and self._taken_back(found.start()):
                    return
                guarded = True
                reached = max(reached, self._apply(rule, match, listed=len(starts) > 1))
            reached = reached if reached > place else self._over_some_words(place)
            further = more.match(low, reached) if reached > place else None
            if further is None or further.end() <= place:
                return
            place = further.end()

    def _opening_list(self) -> None:
        """Read a text that opens with a list of facts ("40s, single dad, Glasgow")."""
        found = _OPENING_LIST.match(self.low)
        if found is not None:
            self._list(found)

    def _list(self, found: re.Match[str]) -> None:
        """Read a list of facts; one that tells a single fact is none ("me: 30 of them!")."""
        before = len(self.finds)
        self._am(found)
        if len({find.attribute for find in self.finds[before:]}) < 2:
            del self.finds[before:]

    def _over_some_words(self, place: int) -> int:
        """Pass over up to three words that say nothing, if the list goes on after them."""
        word = _WORD.match(self.low, place)
        for _ in range(3):
            if word is None:
                return place
            if self.language.grammar.more.match(self.low, word.end()):
                return word.end()
            if word.group().endswith("ing"):  # what follows may be about others: "dating a doctor from Spain"
                return place
            word = _WORD.match(self.low, word.end() + 1)
        return place

    def _places(self, low: str) -> dict[int, list[int]]:
        """Return which rules may match anywhere in the text, by number, and where they may begin."""
        words, by_word, by_mark = self.language.anywhere
        places: dict[int, list[int]] = {}
        for found in words.finditer(
            "\n" + low
        ):  # the place of the sign before a word there is that of the word here
            for number in by_word[found.group(1)]:
                places.setdefault(number, []).append(found.start())
        for mark, some in by_mark.items():
            if mark in low:
                places.update({number: [] for number in some})
        if low[:1].isdigit():
            places.update({number: [0] for number in self.language.opening})
        return places

    def _anywhere(self, places: Mapping[int, Sequence[int]]) -> None:
        for number in sorted(number for number in places if number >= 0):
            rule = self.language.rules["any"][number]
            for match in rule.finds(self.low, places[number]):
                emoji = not match.group()[:1].isascii()
                if emoji or (not self._taken_back(match.start()) and self._mine(match)):
                    self._apply(rule, match)

    # What takes a find back

    def _taken_back(self, place: int) -> bool:
        before = self.low[max(0, place - 48) : place]
        cut = max(map(before.rfind, ".!?\n;:"))
        said = before[cut + 1 :].replace(",", " ").replace("  ", " ")
        return self.guards["before"].search(said) is not None

    def _asked(self, place: int) -> bool:
        """Say whether "I" comes after the verb of a question: "do I have ...?"."""
        return self.guards["asked"].search(self.low[max(0, place - 16) : place]) is not None

    def _about_me(self, found: re.Match[str]) -> bool:
        """Say whether "as a ..." is about the writer: it opens a clause, or the sentence speaks of "me"."""
        low, start, me = self.low, found.start(), self.language.grammar.first_person
        begin = max(map(low[:start].rfind, ".!?\n")) + 1
        stop = _SENTENCE_END.search(low, found.end())
        opening = low[begin:start].strip()
        about_me = me.search(low, begin, stop.start() if stop else len(low)) is not None
        if not opening:
            return True
        if opening[-1] in ",;:-(" or opening.split()[-1] in ("and", "but", "because", "me", "so"):
            return about_me
        return about_me and found.group().startswith("being")

    def _mine(self, match: re.Match[str]) -> bool:
        """Say whether a loose remark may be the writer's own: nobody else is the sentence's subject."""
        before = self.low[max(0, match.start() - 60) : match.start()]
        said = before[max(map(before.rfind, ".!?\n")) + 1 :]
        taken = said.rstrip().endswith((" if", "when", " not", "n't", "never"))
        return not taken and self.language.grammar.others.search(said) is None

    def _denied_after(self, end: int) -> bool:
        return self.low[end : end + 1] == "?" or self.guards["after"].match(self.low, end) is not None

    # From a match to finds

    def _apply(self, rule: Rule, match: re.Match[str], *, listed: bool = False) -> int:
        """Add what a match says and return where it ended; a match that says nothing ends where it began."""
        begin, end = match.span()
        if "person" in rule.slots:
            return self._person(rule, match, listed=listed)
        if self._denied_after(end) or self.guards["inside"].search(match.group()):
            return begin
        values = {name.rstrip("_"): text for name, text in match.groupdict().items() if text}
        for slot, read in (
            ("place", self._place),
            ("org", self._organisation),
            ("school", self._school),
            ("name", self._name),
            ("fullname", self._full_name),
        ):
            if slot in values:
                named = read(match.start(slot))
                if named is None:
                    return begin
                values[slot], end = named
        if rule.kind == "am in" and not self._clause_goes_on(end):
            return begin
        for number, (attribute, template) in enumerate(((rule.attribute, rule.value), *rule.also)):
            sign = rule.also_signs if number else rule.sign
            for name, value in self._values(attribute, template, values):
                self.finds.append(Find(name, value, rule.kind, sign, begin, end))
        return end

    def _clause_goes_on(self, end: int) -> bool:
        """Say whether a place ends there: "in Houston" and not "in Houston traffic"."""
        found = _NEXT.match(self.low, end)
        return found is None or found.group(1) in self.language.grammar.after_noun

    def _values(self, attribute: str, template: str, values: dict[str, str]) -> Iterator[Pair]:
        """Bring what a rule caught into its normal form."""
        grammar = self.language.grammar
        filled = _SLOT.sub(lambda found: values.get(found.group(1), ""), template)
        if attribute == "age":
            if 10 <= (age := self._number(values["age"])) <= 99:
                yield "age", str(age)
        elif attribute == "age band":
            yield "age band", self._age_band(values["tens"], values.get("part", ""))
        elif attribute in ("birth date", "birth year"):
            yield from self._born(values)
        elif "demonym" in values:
            yield attribute, self._from_demonym(values["demonym"])
        elif attribute == "gender" and filled not in ("male", "female"):
            if filled in grammar.genders:
                yield "gender", grammar.genders[filled]
        elif attribute == "education":
            yield from self._education(*filled.split("|"))
        elif attribute == "children" and "n" in values:
            number = 1 if values["n"] in ("a", "an") else self._number(values["n"])
            if number <= 12:
                yield "children", str(number)
        elif attribute == "health" and not filled:
            return
        elif attribute == "health":
            condition = self.language.health.get(filled) or self.language.medication[filled]
            yield "health", condition
            if condition == "pregnancy":
                yield "gender", "female"
        elif attribute == "trait":
            yield from self._trait(filled)
        elif attribute == "pet":
            if filled:
                yield "pet", grammar.pet(filled)
        elif "trade" in values:
            yield attribute, self.language.trades[filled]
        elif "workplace" in values:
            yield attribute, self.language.workplaces[filled]
        elif "rite" in values:
            yield attribute, grammar.rites[filled]
        else:
            slot = {"location": "place", "birthplace": "place", "employer": "org"}.get(attribute, attribute)
            value = (filled or values.get(slot, "")).strip()
            if value:
                yield attribute, value

    def _number(self, text: str) -> int:
        return int(text) if text.isdigit() else self.language.numbers.get(text, 0)

    def _age_band(self, tens: str, part: str) -> str:
        word = tens.removesuffix("s").replace("tie", "ty").rstrip("'")
        ten = int(word) if word.isdigit() else self.language.numbers[word]
        first, last = {"early": (0, 3), "mid": (4, 6), "late": (7, 9)}.get(part.strip(" -"), (0, 9))
        return f"{ten + first}-{ten + last}"

    def _born(self, values: dict[str, str]) -> Iterator[Pair]:
        months = [name[:3] for name in self.language.words["months"]["names"]]
        year = values.get("year", "")
        if year.startswith("'"):
            year = ("20" if int(year[1:]) < 20 else "19") + year[1:]
        if "month" in values and "day" in values and 1 <= int(values["day"]) <= 31:
            month = months.index(values["month"][:3]) + 1
            yield "birth date", f"{month:02}-{int(values['day']):02}"
        if year:
            yield "birth year", year

    def _from_demonym(self, said: str) -> str:
        gazetteer = self.language.gazetteer
        city = self.language.grammar.demonyms.get(said.rstrip("s"), said)
        place = gazetteer.read(city)
        return city if place is None else gazetteer.name(place)

    def _education(self, level: str, rest: str = "") -> Iterator[Pair]:
        grammar = self.language.grammar
        plain, rest = level.replace(".", "").replace("'s", "").replace("'", "").strip(), rest.strip()
        if plain == "done":
            yield "education", grammar.finished.get(rest, "degree")
            return
        if plain == "pursues":
            yield "education", "college student"
        elif plain == "studies":
            if rest:
                yield "education", "school" if rest == "high school" else "college student"
        else:
            yield "education", grammar.levels.get(plain, "degree")
        if rest and rest not in grammar.schools and rest != "high school":
            yield "field of study", rest

    def _trait(self, said: str) -> Iterator[Pair]:
        """Read what somebody identifies as, or was brought up as."""
        words = said.split()
        for size in range(min(4, len(words)), 0, -1):
            phrase = " ".join(words[:size])
            if phrase in self.language.traits:
                yield self.language.traits[phrase]
                return
            if phrase in self.language.nouns:
                yield from (pair for pair in self.language.nouns[phrase] if pair[0] != "occupation")
                return

    # What somebody calls themselves

    def _person(self, rule: Rule, match: re.Match[str], *, listed: bool = False) -> int:
        """Read a noun phrase for a person ("a divorced nurse from Duluth"), or a bare trait ("divorced").

        In a list of facts (`listed`) a noun needs no article: "electrician".
        """
        low, first = self.low, match.start("person")
        grammar, nothing = self.language.grammar, match.start()
        here = rule.kind == "here"
        if (here and grammar.subject.match(low, first)) or self.guards["inside"].search(low[nothing:first]):
            return nothing
        words = _Words.of(low, first, match.end("person"))
        bare = (
            rule.start == "am" and not listed and not grammar.article.search(low[max(0, first - 6) : first])
        )
        for begin in range(min(len(words), 6)):
            word = words.said[begin]
            if word in grammar.refused:
                return nothing
            if word in self.language.first_words:
                end = self._trait_at(rule, words, begin) if bare or here or listed else 0
                end = end or (0 if bare else self._noun_at(rule, words, begin))
                if end:
                    return end
            elif begin and not bare and word in grammar.after_noun:
                return nothing
        return nothing

    def _noun_at(self, rule: Rule, words: _Words, begin: int) -> int:
        """Add what a noun says and the words before it; return where it ends, 0 if there is none."""
        grammar = self.language.grammar
        allowed = {"work as": grammar.after_job, "as a": grammar.after_as}.get(rule.kind, grammar.after_noun)
        for phrase, after in words.phrases(begin):
            pairs = self.language.nouns.get(phrase)
            if pairs is None or not self._may_follow(rule, words, after, allowed):
                continue
            end = words.ends[after - 1]
            most = MOST_MODIFIERS + 2 if "old" in words.said[:begin] else MOST_MODIFIERS
            if begin > most or self._denied_after(end):
                return 0
            if rule.kind == "work as" and all(attribute == "gender" for attribute, _ in pairs):
                return 0  # "I've been a bad boy"
            self._add(rule, pairs, words.starts[begin], end)
            self._add_modifiers(rule, words, begin, phrase)
            return end
        return 0

    def _trait_at(self, rule: Rule, words: _Words, begin: int) -> int:
        """Add a trait that stands alone: "very gay", "divorced"; return where it ends, 0 if there is none."""
        grammar = self.language.grammar
        if not all(word in grammar.intensifiers for word in words.said[:begin]):
            return 0
        for phrase, after in words.phrases(begin):
            trait = self.language.traits.get(phrase)
            if trait is None:
                continue
            end, following = words.ends[after - 1], self._following(words, after)
            to = following == "to" and trait[1] in ("married", "engaged")
            if not to and not self._may_follow(rule, words, after, grammar.after_trait):
                continue
            if self._denied_after(end) or (following == "in" and phrase in ("engaged", "black")):
                return 0
            self._add(rule, (trait,), words.starts[begin], end)
            return end
        return 0

    def _may_follow(self, rule: Rule, words: _Words, after: int, allowed: frozenset[str]) -> bool:
        """Say whether a noun can end there: "a nurse from ..." and not "a nurse shark"."""
        if rule.kind == "here":
            following = self._following(words, after)
            return after == len(words) or following == "here"
        following = self._following(words, after)
        return following == "" or following in allowed

    def _following(self, words: _Words, after: int) -> str:
        """Return the word after some words; empty if the clause ends there."""
        found = _NEXT.match(self.low, words.ends[after - 1])
        return found.group(1) if found else ""

    def _add_modifiers(self, rule: Rule, words: _Words, noun: int, head: str) -> None:
        grammar = self.language.grammar
        for begin in range(noun):
            for size in (2, 1):
                trait = self.language.traits.get(" ".join(words.said[begin : min(begin + size, noun)]))
                if trait is not None and not (
                    trait[0] == "origin" and head.split()[-1] in grammar.origin_heads
                ):
                    self._add(rule, (trait,), words.starts[begin], words.ends[min(begin + size, noun) - 1])
                    break

    def _add(self, rule: Rule, pairs: Sequence[Pair], begin: int, end: int) -> None:
        for attribute, value in pairs:
            self.finds.append(Find(attribute, value, f"{rule.kind} {attribute}", rule.sign, begin, end))
            if value == "pregnancy":
                self.finds.append(Find("gender", "female", "female body", False, begin, end))

    # Names, as they are written

    def _place(self, start: int) -> tuple[str, int] | None:
        gazetteer = self.language.gazetteer
        found = gazetteer.find(self.text[start : start + 90])
        return None if found is None else (gazetteer.name(found[0]), start + found[1])

    def _organisation(self, start: int) -> tuple[str, int] | None:
        low = self.low
        known = [
            name
            for name in self.language.words["employers"]["names"]
            if low.startswith(name, start) and not low[start + len(name) : start + len(name) + 1].isalnum()
        ]
        if known:
            end = start + len(max(known, key=len))
            said = self.text[start:end]  # "IBM" stays as it is; "walmart" and "WALMART" are one
            initials = said.isupper() and len(said) <= MOST_INITIALS
            return said if initials else " ".join(map(str.capitalize, said.split())), end
        return self._capitals(start)

    def _school(self, start: int) -> tuple[str, int] | None:
        found = self._capitals(start)
        return found if found is not None and self.language.grammar.school.search(found[0]) else None

    def _name(self, start: int) -> tuple[str, int] | None:
        found = _PERSON_NAME.match(self.text, start)
        if found is None or found.group().split()[0].lower() in self.language.grammar.no_names:
            return None
        return found.group(), found.end()

    def _full_name(self, start: int) -> tuple[str, int] | None:
        """Read a first and a last name, neither a word for a person nor a place: "I am Alex Miller"."""
        found = _FULL_NAME.match(self.text, start)
        if found is None or self.language.gazetteer.find(found.group()) is not None:
            return None
        words, grammar = found.group().lower().split(), self.language.grammar
        if any(word in self.language.first_words or word in grammar.no_names for word in words):
            return None
        return found.group(), found.end()

    def _capitals(self, start: int) -> tuple[str, int] | None:
        found = _CAPITALS.match(self.text, start)
        if found is None or self.language.grammar.no_organisation.fullmatch(found.group()):
            return None
        return found.group().rstrip("."), found.end()


def _blank(found: re.Match[str]) -> str:
    return _NOT_LETTERS.sub(" ", found.group())


def _once(finds: list[Find]) -> Iterator[Find]:
    """Keep one find for each value; a statement wins over a sign."""
    best: dict[Pair, Find] = {}
    for find in finds:
        known = best.get((find.attribute, find.value))
        if known is None or (known.sign and not find.sign):
            best[find.attribute, find.value] = find
    yield from sorted(best.values(), key=lambda find: (find.start, find.end, find.attribute))
