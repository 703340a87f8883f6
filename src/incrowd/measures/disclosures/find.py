"""What one text says about its writer: statements found by a small grammar, with where they stand.

The grammar starts at words in which people speak of themselves ("I'm", "my", "as a"), reads what follows by the rules
of a language, and takes a find back where the words around it do: a wish, a condition, a negation, a question, another
person's words. Quotations are blanked out first. Whose text it is does not matter here, and nothing is kept of it but
places in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from incrowd.measures.disclosures.identifiers import Identifier, identifiers
from incrowd.measures.disclosures.language import Language, Rule, load_language

LONGEST = 100_000
"""Characters of a post that are read; nobody says who they are after a hundred pages."""
_STRAIGHT = {ord("\u2019"): "'", ord("\u2018"): "'", ord("\u201c"): '"', ord("\u201d"): '"', ord("\u00b4"): "'", ord("\u00a0"): " "}
_QUOTED = re.compile(
    r'"[^"\n]{2,600}?"|\u00ab[^\u00bb\n]{2,600}\u00bb|^[ \t]*(?:>|&gt;)[^\n]*|```.*?```'
    r"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){3,300}'(?!\w)",
    re.M | re.S,
)
_SENTENCE_END = re.compile(r"[.!?\n](?=\s|$)|\n|$")
_MORE = re.compile(r"\s*(?:,|;|&|\+|/|\band\b|\bbut\b|\bwho(?:'s| is)\b|(?=\bfrom\b)|(?=\bin\b)|(?=\bworking\b)|(?=\bliving\b)|(?=\bstudying\b))+\s*(?:i'm |i am |im |am )?")
_SUBJECT = re.compile(r"(?:he|she|they|it|you|we|his|her|their|your|this|that|there|my|our|the|i)\b")
_WORD = re.compile(r"[\w'’/&+-]+")
_AFTER_NOUN = frozenset(
    "who whose from at in with and but of that working living by for on here now so studying to myself which because then or as "
    "when where too lol haha this since these right currently anyway though tho also trying looking who's i we by turned "
    "just still than while if btw after before about between over till until under near based outside again today".split()
)
_AFTER_TRAIT = _AFTER_NOUN - {"of", "to", "for", "about", "over", "on", "under", "than"} | {"again"}
_INTENSIFIERS = frozenset(
    "very pretty half part quite openly totally a an bit little so really completely fully mostly partly proudly still now "
    "just newly recently currently also technically happily".split()
)
_FIRST_PERSON = re.compile(r"\b(?:i|i'm|im|i've|my|me|mine|myself|we|our|us)\b")
_ORIGIN_HEADS = frozenset("teacher student professor major tutor".split())
_GENDERS = {
    "m": "male", "male": "male", "guy": "male", "man": "male", "dude": "male", "boy": "male", "he": "male",
    "f": "female", "female": "female", "girl": "female", "woman": "female", "lady": "female", "she": "female",
    "they": "non-binary",
}  # fmt: skip
_LEVELS = {
    "phd": "doctorate", "doctorate": "doctorate", "dissertation": "doctorate", "master": "master", "masters": "master",
    "mba": "master", "ma": "master", "msc": "master", "ms": "master", "bachelor": "bachelor", "bachelors": "bachelor",
    "bsc": "bachelor", "ba": "bachelor", "bs": "bachelor", "undergrad": "bachelor", "law degree": "professional degree",
    "jd": "professional degree", "md": "professional degree", "associate": "degree", "associates": "degree",
    "ged": "school", "high school diploma": "school", "college degree": "degree", "university degree": "degree",
    "degree": "degree", "thesis": "degree", "grad": "degree", "major": "college student", "studies": "college student",
}  # fmt: skip
_DEMONYMS = {
    "berliner": "Berlin", "londoner": "London", "new yorker": "New York City", "parisian": "Paris", "roman": "Rome",
    "chicagoan": "Chicago", "bostonian": "Boston", "angeleno": "Los Angeles", "torontonian": "Toronto",
    "sydneysider": "Sydney", "melburnian": "Melbourne", "viennese": "Vienna", "madrileño": "Madrid",
    "madrileno": "Madrid", "dubliner": "Dublin", "glaswegian": "Glasgow",
}  # fmt: skip
_STOP_CAPITALS = re.compile(r"(?:the|a|an|my|it|this|that|all|i|home|night|least|most|work|first|last|times|people)\b", re.I)


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
    """Return a text with straight quotation marks, apostrophes that were broken on the way mended; finds point into it."""
    if "\u00e2\x80" in text:
        text = text.replace("\u00e2\x80\x99", "'").replace("\u00e2\x80\x9c", '"').replace("\u00e2\x80\x9d", '"')
    return text if text.isascii() else text.translate(_STRAIGHT)


class _Text:
    """One text while it is read."""

    __slots__ = ("finds", "language", "low", "others", "text")

    def __init__(self, text: str, language: Language) -> None:
        self.text = clean(text)
        low = self.text.lower()
        if len(low) != len(self.text):  # a few letters grow when they are made small
            low = "".join(small if len(small := letter.lower()) == 1 else letter for letter in self.text)
        self.low, self.language = low, language
        self.finds: list[Find] = []
        self.others = 0

    def read(self) -> Reading:
        named = identifiers(self.text)
        low = self.low
        if '"' in low or ">" in low or "\u00ab" in low or " '" in low or "`" in low or low.startswith("'"):
            self.low = _QUOTED.sub(_blank, self.low)
        for found in self.language.trigger.finditer(self.low):
            self._at(found)
        self._anywhere()
        if not (self.finds or named or self.others):
            return NOTHING
        if self.finds and self.language.guards["joke"].search(self.low):
            self.finds = []
        return Reading(tuple(_once(self.finds)), named, self.others)

    # Where somebody begins to speak of themselves

    def _at(self, found: re.Match[str]) -> None:
        start, end = found.lastgroup or "", found.end()
        if start == "my":
            if self.language.guards["other"].match(self.low, found.start()):
                self.others += 1
        tests = self.language.any_of.get(start)
        if tests is None:
            return
        if start == "am":
            self._am(found)
            return
        if not tests.match(self.low, end):
            return
        if start == "as" and not self._about_me(found):
            return
        if self._taken_back(found.start()):
            return
        for rule in self.language.rules[start]:
            match = rule.match.match(self.low, end)
            if match is not None:
                self._apply(rule, match)

    def _am(self, found: re.Match[str]) -> None:
        """Read a list of what somebody is: "I'm 31, divorced and from Duluth"."""
        low, end = self.low, found.end()
        stop = _SENTENCE_END.search(low, end)
        last = min(stop.start() if stop else len(low), end + 200)
        place, guarded = end, False
        first = end + 1
        for _ in range(8):
            while place < last and low[place] in " \t,":
                place += 1
            if place >= last or (place > end + 1 and _SUBJECT.match(low, place)):
                return
            reached = place
            for rule in self.language.rules["am"]:
                match = rule.match.match(low, place)
                if match is None or (place > first and rule.attribute == "age" and not low[place].isdigit()):
                    continue
                if not guarded:
                    if self._taken_back(found.start()):
                        return
                    guarded = True
                reached = max(reached, self._apply(rule, match))
            if reached == place:
                words = _WORD.match(low, place)
                skip = 0
                while words is not None and skip < 3 and not _MORE.match(low, words.end()):
                    words, skip = _WORD.match(low, words.end() + 1), skip + 1
                if words is None or not _MORE.match(low, words.end()):
                    return
                reached = words.end()
            more = _MORE.match(low, reached)
            if more is None or more.end() == place or (more.end() == reached and more.group() == ""):
                if more is None:
                    return
            place = more.end() if more.end() > place else place + 1

    def _anywhere(self) -> None:
        low = self.low
        words, by_word, by_mark = self.language.needed
        numbers = {number for word in set(words.findall(low)) for number in by_word[word]}
        for mark, some in by_mark.items():
            if mark in low:
                numbers.update(some)
        for number in sorted(numbers):
            rule = self.language.rules["any"][number]
            for match in rule.match.finditer(low):
                if not match.group()[:1].isascii() or (not self._taken_back(match.start()) and self._mine(match)):
                    self._apply(rule, match)

    # What takes a find back

    def _taken_back(self, place: int) -> bool:
        before = self.low[max(0, place - 48) : place]
        cut = max(before.rfind(mark) for mark in ".!?\n;:")
        return self.language.guards["before"].search(before[cut + 1 :].replace(",", " ").replace("  ", " ")) is not None

    def _about_me(self, found: re.Match[str]) -> bool:
        """Say whether "as a ..." is about the writer: it opens a clause, and the sentence speaks of "me"."""
        low, start = self.low, found.start()
        before = low[max(0, start - 30) : start].rstrip()
        first = max((before.rfind(mark) for mark in ".!?\n"), default=-1)
        opening = before[first + 1 :].strip()
        begin = start - (len(before) - first)
        stop = _SENTENCE_END.search(low, found.end())
        sentence = low[max(0, begin) : stop.start() if stop else len(low)]
        if opening and opening[-1:] not in ",;:-(" and not opening.endswith((" and", "but", "because", "me", "so", "and")):
            if found.group().startswith("as") or not _FIRST_PERSON.search(opening):
                return found.group().startswith("being") and _FIRST_PERSON.search(sentence) is not None
        return _FIRST_PERSON.search(sentence) is not None or not opening

    def _mine(self, match: re.Match[str]) -> bool:
        """Say whether a loose remark may be the writer's own: nobody else is the sentence's subject."""
        low = self.low
        before = low[max(0, match.start() - 60) : match.start()]
        cut = max(before.rfind(mark) for mark in ".!?\n")
        said = before[cut + 1 :]
        return _OTHERS.search(said) is None and not said.rstrip().endswith((" if", "when", " not", "n't", "never"))

    # From a match to finds

    def _apply(self, rule: Rule, match: re.Match[str]) -> int:
        """Add what a match says and return where it ended; a match that says nothing ends where it began."""
        low, begin = self.low, match.start()
        if self.language.guards["inside"].search(match.group()) and "person" not in rule.slots:
            return begin
        stop = low[match.end() : match.end() + 1]
        if stop == "?" or self.language.guards["after"].match(low, match.end()):
            return begin
        if "person" in rule.slots:
            return self._person(rule, match)
        values = {name.rstrip("_"): text for name, text in match.groupdict().items() if text}
        end = match.end()
        for slot in ("place", "org", "school", "name"):
            if slot in values:
                named = getattr(self, f"_{slot}")(match.start(slot))
                if named is None:
                    return begin
                values[slot], end = named
        for place, (attribute, template) in enumerate(((rule.attribute, rule.value), *rule.also)):
            sign = rule.also_signs if place else rule.sign
            for name, value in self._values(attribute, template, values):
                self.finds.append(Find(name, value, rule.kind, sign, begin, end))
        return end

    def _values(self, attribute: str, template: str, values: dict[str, str]) -> Iterator[tuple[str, str]]:
        """Bring what a rule caught into its normal form."""
        if attribute == "age":
            age = self._number(values["age"])
            if 10 <= age <= 99:
                yield "age", str(age)
        elif attribute in ("birth date", "birth year"):
            yield from self._born(values)
        elif attribute in ("location", "birthplace") and "demonym" in values:
            yield attribute, _DEMONYMS.get(values["demonym"].rstrip("s"), values["demonym"].title())
        elif attribute in ("location", "birthplace"):
            yield attribute, values["place"]
        elif attribute == "gender" and "{" in template:
            said = next((values[name] for name in ("mf", "fm") if name in values), "")
            if said in _GENDERS:
                yield "gender", _GENDERS[said]
        elif attribute == "education":
            yield from _education(*(re.sub(r"\{(\w+)\}", lambda f: values.get(f.group(1), ""), template).split("|")))
        elif attribute == "children" and "{" in template:
            number = 1 if values["n"] in ("a", "an") else self._number(values["n"])
            if number <= 12:
                yield "children", str(number)
        elif attribute == "health" and "{" in template:
            value = self.language.health[values["health"]]
            yield "health", value
            if value == "pregnancy":
                yield "gender", "female"
        elif attribute == "trait":
            yield from self._trait(values["trait"])
        else:
            value = re.sub(r"\{(\w+)\}", lambda found: values.get(found.group(1), ""), template) or values.get(attribute) or values.get({"employer": "org"}.get(attribute, attribute), "")
            if value.strip():
                yield attribute, _singular(value.strip()) if attribute == "pet" else value.strip()

    def _number(self, text: str) -> int:
        return int(text) if text.isdigit() else self.language.numbers.get(text, 0)

    def _born(self, values: dict[str, str]) -> Iterator[tuple[str, str]]:
        months = [name[:3] for name in self.language.words["months"]["names"]]
        year = values.get("year", "")
        if year.startswith("'"):
            year = ("20" if int(year[1:]) < 20 else "19") + year[1:]
        if "month" in values and "day" in values and 1 <= int(values["day"]) <= 31:
            month = months.index(values["month"][:3]) + 1
            yield "birth date", f"{month:02}-{int(values['day']):02}"
        if year:
            yield "birth year", year

    def _trait(self, said: str) -> Iterator[tuple[str, str]]:
        words = said.split()
        for size in range(min(4, len(words)), 0, -1):
            phrase = " ".join(words[:size])
            if phrase in self.language.traits:
                yield self.language.traits[phrase]
                return
            if phrase in self.language.nouns:
                yield from (pair for pair in self.language.nouns[phrase] if pair[0] != "occupation")
                return

    def _person(self, rule: Rule, match: re.Match[str]) -> int:
        """Read a noun phrase for a person: "a divorced nurse from Duluth", or a bare trait: "divorced"."""
        low, first = self.low, match.start("person")
        words = [(found.group(), found.start(), found.end()) for found in _WORD.finditer(low, first, match.end("person"))]
        limit = rule.kind == "here"
        if rule.kind == "here":
            if _SUBJECT.match(low, first):
                return match.start()
            words = words[: next((n for n, word in enumerate(words) if word[0] == "here"), len(words))]
        bare = rule.start == "am" and not _ARTICLE.search(low[max(0, first - 6) : first])
        if self.language.guards["inside"].search(low[match.start() : first]):
            return match.start()
        for begin in range(min(len(words), 6)):
            if words[begin][0] in ("not", "never", "no", "than", "nor", "wannabe", "fake", "former", "ex", "aspiring", "future", "bad", "big" if bare else "-"):
                if words[begin][0] not in ("big", "bad"):
                    return match.start()
            if words[begin][0] not in self.language.first_words:
                if not bare and begin and words[begin][0] in _AFTER_NOUN:
                    return match.start()
                continue
            for size in range(min(4, len(words) - begin), 0, -1):
                phrase = " ".join(word for word, _, _ in words[begin : begin + size])
                after = words[begin + size][0] if begin + size < len(words) else self._next(words[-1][2])
                end = words[begin + size - 1][2]
                pairs = self.language.nouns.get(phrase)
                if rule.kind == "here" and begin + size != len(words):
                    continue
                if pairs is not None and not bare and (after == "" or after in _AFTER_NOUN or limit):
                    if begin > (5 if "old" in [word for word, _, _ in words[:begin]] else 3) or self.language.guards["after"].match(low, end) or low[end : end + 1] == "?":
                        return match.start()
                    self._add(rule, pairs, words[begin][1], end)
                    self._modifiers(rule, words[:begin], phrase)
                    return end
                trait = self.language.traits.get(phrase)
                if (
                    trait is not None
                    and (bare or rule.start != "am")
                    and all(word in _INTENSIFIERS for word, _, _ in words[:begin])
                    and (after == "" or after in _AFTER_TRAIT or (after == "to" and trait[1] in ("married", "engaged")))
                    and not (after == "in" and trait[1] in ("engaged", "black"))
                    and not self.language.guards["after"].match(low, end)
                    and low[end : end + 1] != "?"
                ):
                    if rule.start == "am" or rule.kind == "here":
                        self._add(rule, (trait,), words[begin][1], end)
                        return end
                    return match.start()
            if not bare and words[begin][0] in _AFTER_NOUN and begin:
                return match.start()
        return match.start()

    def _modifiers(self, rule: Rule, words: list[tuple[str, int, int]], head: str) -> None:
        said = [word for word, _, _ in words]
        for number, (word, begin, end) in enumerate(words):
            for phrase, stop in ((" ".join(said[number : number + 2]), min(number + 1, len(words) - 1)), (word, number)):
                trait = self.language.traits.get(phrase)
                if trait is not None and not (trait[0] == "origin" and head.split()[-1] in _ORIGIN_HEADS):
                    self._add(rule, (trait,), begin, words[stop][2])
                    break

    def _add(self, rule: Rule, pairs: tuple[tuple[str, str], ...], begin: int, end: int) -> None:
        for attribute, value in pairs:
            self.finds.append(Find(attribute, value, f"{rule.kind} {attribute}", rule.sign, begin, end))
            if value == "pregnancy":
                self.finds.append(Find("gender", "female", "female body", False, begin, end))

    def _next(self, place: int) -> str:
        found = _NEXT.match(self.low, place)
        return found.group(1) if found else ""

    # Names of places and organisations, as they are written

    def _place(self, start: int) -> tuple[str, int] | None:
        gazetteer = self.language.gazetteer
        found = gazetteer.find(self.text[start : start + 90])
        return None if found is None else (gazetteer.name(found[0]), start + found[1])

    def _org(self, start: int) -> tuple[str, int] | None:
        known = _longest(self.low, start, self.language.words["employers"]["names"])
        if known is not None:
            return known.title(), start + len(known)
        return self._capitals(start)

    def _school(self, start: int) -> tuple[str, int] | None:
        found = self._capitals(start)
        if found is None or not _SCHOOL.search(found[0]):
            return None
        return found

    def _name(self, start: int) -> tuple[str, int] | None:
        found = _PERSON_NAME.match(self.text, start)
        if found is None or found.group().lower() in _NO_NAMES or found.group().split()[0].lower() in _NO_NAMES:
            return None
        return found.group(), found.end()

    def _capitals(self, start: int) -> tuple[str, int] | None:
        found = _CAPITALS.match(self.text, start)
        if found is None or _STOP_CAPITALS.fullmatch(found.group()):
            return None
        return found.group().rstrip("."), found.end()


_NEXT = re.compile(r" ([\w'-]+)")
_PERSON_NAME = re.compile(r"[A-Z][a-z'-]+(?: (?:[A-Z]\.|[A-Z][a-zA-Z'-]+)){0,2}")
_ARTICLE = re.compile(r"\b(?:an?|the|one|your|only)\s$")
_OTHERS = re.compile(
    r"\b(?:he|she|they|his|her|their|him|them|someone|somebody|people|everyone|my (?:\w+ )?(?:brother|sister|friend|friends|mom|mum|mother|"
    r"dad|father|cousin|son|daughter|boss|uncle|aunt|parents|grandma|grandpa|roommate|neighbor|coworker|colleague|buddy))(?:'s|'re|'ll)?\b"
)
_CAPITALS = re.compile(r"[A-Z][\w&'.-]*(?: (?:(?:of|the|and|&|at|for|in) )?[A-Z][\w&'.-]*){0,4}")
_SCHOOL = re.compile(r"\b(?:University|College|School|Institute|Academy|Uni|Polytechnic|State|Tech|High|UC[A-Z]*|MIT|NYU|UCLA|USC|LSU|ASU|BYU|Harvard|Yale|Stanford|Princeton|Oxford|Cambridge|Berkeley|Columbia|Cornell)\b")
_NO_NAMES = frozenset("not the a an so just very really here new from in at on sure sorry back done tired happy going still trying looking also having getting being doing irrelevant unknown mud maybe later when if because what crazy old weird whatever hey legion taken god jesus lol no yes i it my is".split())


def _education(level: str, rest: str = "") -> Iterator[tuple[str, str]]:
    plain = level.replace(".", "").replace("'s", "").replace("'", "").strip()
    if plain in ("studies", "done"):
        rest = rest.strip()
        if rest in ("high school",):
            yield "education", "school"
        elif plain == "done" and rest:
            yield "education", {"law school": "professional degree", "med school": "professional degree", "medical school": "professional degree", "grad school": "higher degree"}.get(rest, "degree")
        elif rest:
            yield "education", "college student"
            if rest not in ("college", "university", "uni", "grad school", "law school", "med school", "medical school"):
                yield "field of study", rest
        return
    yield "education", _LEVELS.get(plain, "degree")
    if rest:
        yield "field of study", rest


def _singular(word: str) -> str:
    special = {"puppy": "dog", "puppies": "dog", "kitten": "cat", "kittens": "cat", "bunny": "rabbit"}
    breeds = ("german shepherd", "golden retriever", "labrador", "lab", "pug", "poodle", "husky", "chihuahua", "beagle", "corgi", "dachshund", "pitbull", "pit bull", "terrier", "border collie")
    if word in special:
        return special[word]
    return "dog" if word in breeds else word.removesuffix("s")


def _blank(found: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", found.group())


def _longest(low: str, start: int, names: list[str]) -> str | None:
    fitting = [name for name in names if low.startswith(name, start) and not low[start + len(name) : start + len(name) + 1].isalnum()]
    return max(fitting, key=len, default=None)


def _once(finds: list[Find]) -> Iterator[Find]:
    """Keep one find for each value; a statement wins over a sign."""
    best: dict[tuple[str, str], Find] = {}
    for find in finds:
        known = best.get((find.attribute, find.value))
        if known is None or (known.sign and not find.sign):
            best[find.attribute, find.value] = find
    yield from sorted(best.values(), key=lambda find: (find.start, find.end, find.attribute))
