"""What one text says about its writer: statements found by a small grammar, with where they stand.

The grammar starts at words in which people speak of themselves ("I'm", "my", "as a"), reads what follows by the rules
of a language, and takes a find back where the words around it do: a wish, a condition, a negation, a question, another
person's words. Quotations are blanked out first. Whose text it is does not matter here, and nothing is kept of it but
places in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from incrowd.measures.disclosures.identifiers import Identifier
from incrowd.measures.disclosures.language import (
    ACCOUNTS,
    STARTS,
    TYPOS,
    Language,
    Pair,
    Rule,
    load_language,
)
from incrowd.measures.disclosures.proper_names import READERS
from incrowd.measures.disclosures.values import values_of

LONGEST = 100_000
"""Characters of a post that are read; nobody says who they are after a hundred pages."""
MOST_MODIFIERS = 3
"""Words between the article and the noun: "a tired old divorced nurse"."""
MOST_ITEMS, MOST_WORDS = 14, 7
"""Of a profile ("29, she/her, Leeds, dog mum"), and of one item in it; what is longer is a sentence."""
AS_IF = "I'm a "
"""What a sentence that begins with what somebody is leaves out."""
LONGEST_FRAGMENT = 80
"""Letters in which its noun must come."""
_ONES_OWN = ("age", "age band", "gender")
"""What "we are" does not tell of the writer."""
_OURS = ("children", "income", "pet", "car", "location", "relationship", "absence", "religion")
"""What "our ..." tells of the writer."""
_NAMES = frozenset(("name", "firstname", "fullname"))
"""Slots that are not read in a profile: "Austin" is a place there."""
_STRAIGHT = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00b4": "'", "\u00a0": " "}
_QUOTED = re.compile(
    r'"[^"\n]{2,600}?"|\u00ab[^\u00bb\n]{2,600}\u00bb|^[ \t]*(?:>|&gt;)[^\n]*|```.*?```'
    r"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){3,300}'(?!\w)",
    re.M | re.S,
)
_SENTENCE_END = re.compile(r"[.!?\n](?=\s|$)|\n|$")
_APART = str.maketrans(dict.fromkeys('.,!?;:()"\n\t', " "))
_SPEAKER = re.compile(r"\b([a-z]\w*):(?= )")
_SENTENCE_START = re.compile(r"[.!?\n](?:(?<=\n)|\s)\s*([a-z0-9][\w'-]*)(?: ([\w'-]+))?")
"""Where a sentence of a text with a line before it begins, with its first words."""
_WORD = re.compile(r"[\w'/&+-]+")
_NEXT = re.compile(r" ([\w'-]+)")
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
    language, text = language or load_language(), clean(text[:LONGEST])
    reader = _Text(text, language)
    places = reader.places()
    return _read_mended(text, language) if TYPOS in places else reader.read(places)


def _read_mended(text: str, language: Language) -> Reading:
    """Return what a text says when its mistyped words are mended; finds point into the text as it is."""
    typos = list(_typos(text, language))
    mended, places, last = [], [], 0
    for found, word in typos:
        mended += [text[last : found.start()], word]
        last = found.end()
        places.append((sum(map(len, mended)), last))
    reader = _Text("".join((*mended, text[last:])), language)
    reading = reader.read(reader.places())

    def place(at: int) -> int:
        """Where something in the mended text stands in the text."""
        shift = next((old - new for new, old in reversed(places) if new <= at), 0)
        return min(max(at + shift, 0), len(text))

    return Reading(
        tuple(replace(find, start=place(find.start), end=place(find.end)) for find in reading.finds),
        tuple(replace(one, start=place(one.start), end=place(one.end)) for one in reading.identifiers),
        reading.others,
    )


def _typos(text: str, language: Language) -> Iterator[tuple[re.Match[str], str]]:
    for found in _WORD.finditer(text):
        word = language.typos.get(found.group().lower())
        if word is not None:
            yield found, word


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

    __slots__ = ("finds", "guards", "language", "low", "others", "text", "whole")

    def __init__(self, text: str, language: Language, *, whole: bool = True) -> None:
        """`whole`: it is a text of its own, no part that is read in another way."""
        self.text = text
        low = self.text.lower()
        if len(low) != len(self.text):  # a few letters grow when they are made small
            low = "".join(small if len(small := letter.lower()) == 1 else letter for letter in self.text)
        self.low, self.language, self.guards = low, language, language.guards
        self.finds: list[Find] = []
        self.others, self.whole = 0, whole

    def read(self, places: Mapping[int, Sequence[int]]) -> Reading:
        low = self.low
        named = self.language.identifiers.find(self.text, low, accounts=ACCOUNTS in places)
        if '"' in low or ">" in low or "\u00ab" in low or " '" in low or "`" in low or low.startswith("'"):
            low = self.low = _QUOTED.sub(_blank, low)
        for place in places[STARTS]:
            found = self.language.trigger.match(low, place)
            if found is not None:
                self._at(found)
        if self.whole:
            self._opening_list()
            self._fragments()
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
            before, low_after = len(self.finds), self.low[end : end + 8]
            self._am(found)
            ours = not found.group().startswith("i") and not low_after.startswith(self.language.grammar.both)
            if ours:  # "we are 18 in class", "we're girls who ..."
                self.finds[before:] = [one for one in self.finds[before:] if one.attribute not in _ONES_OWN]
            return
        if start == "list":
            self._profile(end)
            return
        if start == "dropped":
            self._left_out(found)
            return
        if start == "someone":
            self._someone_who(found)
            return
        if start == "my" and self.guards["other"].match(self.low, found.start()):
            self.others += 1
        matches = self.language.rules_from(start, self.low, end)
        if not matches or (start == "i" and self._asked(found.start())):
            return
        if start in ("i", "we") and self.low.startswith(self.language.grammar.undone, end):
            return  # "I almost moved to Canada"
        before = len(self.finds)
        for rule, match in matches:
            self._apply(rule, match)
        if len(self.finds) == before:
            return
        taken_back = self._taken_back(found.start(), "before_my" if start == "my" else "before")
        if taken_back or (start == "as" and not self._about_me(found)):
            del self.finds[before:]
            return
        if found.group().startswith("being"):  # "Being a skinny 12-year-old boy", long ago
            self.finds[before:] = [one for one in self.finds[before:] if one.attribute != "age"]
            if not self._first_person_near(found.start()):  # "Being a mother is a humble calling"
                general = ("gender", "children")
                self.finds[before:] = [one for one in self.finds[before:] if one.attribute not in general]
        if start == "my" and found.group() == "our":
            self.finds[before:] = [one for one in self.finds[before:] if one.attribute in _OURS]

    def _left_out(self, found: re.Match[str]) -> None:
        """Read a clause whose "I" is left out: "Just moved to Leeds", "I'm 30 and live in Leeds"."""
        place = found.start()
        matches = self.language.rules_from("dropped", self.low, place)
        before = len(self.finds)
        for rule, match in matches:
            self._apply(rule, match)
        if len(self.finds) > before and not self._speaks_of_me(place):
            del self.finds[before:]

    def _someone_who(self, found: re.Match[str]) -> None:
        """Read "as someone who lives in Leeds" as "I live in Leeds"."""
        verb = _WORD.match(self.low, found.end() + 1)
        if verb is None or self._taken_back(found.start()):
            return
        stop = _SENTENCE_END.search(self.low, verb.end())
        said = f"I {self.language.grammar.first_person_of(verb.group())}"
        rest = self.text[verb.end() : stop.start() if stop else len(self.text)]
        self._read_as_if(said, rest, verb.end(), found.start())

    def _read_as_if(self, said: str, rest: str, place: int, first: int, kind: str = "") -> None:
        """Add what `rest`, which stands at `place`, tells after other words; with a `kind`, as signs of that kind."""
        shift = place - len(said)
        reader = _Text(said + rest, self.language, whole=False)
        for find in reader.read(reader.places()).finds:
            if find.attribute != "name":
                begin, end = max(first, find.start + shift), max(first, find.end + shift)
                sign = find.sign or bool(kind)
                self.finds.append(Find(find.attribute, find.value, kind or find.kind, sign, begin, end))

    def _speaks_of_me(self, place: int) -> bool:
        """Say whether a verb without a subject is the writer's: it opens a sentence, or "I" came before it."""
        before = self.low[max(0, place - 200) : place]
        said = before[max(map(before.rfind, ".!?\n")) + 1 :].strip()
        stop = _SENTENCE_END.search(self.low, place)
        if stop is not None and stop.group() == "?" and "," not in self.low[place : stop.start()]:
            return False
        grammar = self.language.grammar
        if not said:
            return True
        opening = place - len(before) + before.rfind(said)
        mine = grammar.my_clause.search(said) is not None or self._opens_without_a_subject(opening)
        return mine and grammar.not_my_clause.search(said) is None

    def _opens_without_a_subject(self, place: int) -> bool:
        """Say whether a sentence opens with a verb that people say of themselves: "Grew up poor, got my GED"."""
        found = self.language.trigger.match(self.low, place)
        return found is not None and found.lastgroup == "dropped"

    def _am(self, found: re.Match[str]) -> None:
        """Read a list of what somebody is: "I'm 31, divorced and from Duluth"."""
        low, end, more = self.low, found.end(), self.language.grammar.more
        stop = _SENTENCE_END.search(low, end)
        last = min(stop.start() if stop else len(low), end + 200)
        place, guarded, before = end, False, len(self.finds)
        for _ in range(8):
            while place < last and low[place] in " \t,":
                place += 1
            first = place <= end + 1
            if place >= last or not (first or self.language.grammar.subject.match(low, place) is None):
                return
            reached = place
            for rule, match in self.language.rules_from("am", low, place):
                if first or rule.attribute != "age" or low[place].isdigit():
                    reached = max(reached, self._apply(rule, match, since=place))
            if (
                len(self.finds) > before and not guarded
            ):  # most of what is said tells nothing, and needs no guard
                guarded = True
                if self._taken_back(found.start()):
                    del self.finds[before:]
                    return
            reached = reached if reached > place else self._over_some_words(place)
            further = more.match(low, reached) if reached > place else None
            if further is None and low[reached : reached + 1] == " ":  # "a mother first and a lawyer second"
                further = more.match(low, self._over_some_words(reached + 1))
            if further is None or further.end() <= place:
                return
            place = further.end()

    def _opening_list(self) -> None:
        """Read a text that opens with a list of facts ("40s, single dad, Glasgow")."""
        grammar = self.language.grammar
        found = grammar.profile.match(self.low)
        if found is not None:
            self._profile(found.end())
        elif grammar.short_item.match(self.low) and self._opens_with_a_person():
            self._profile(0, mostly=True)

    def _opens_with_a_person(self) -> bool:
        """Say whether one of the first two words can begin a word for a person ("divorced dad"), or is a number."""
        words = self.low[:40].replace(",", " ").replace(".", " ").split()[:2]
        known, demonyms = self.language.first_words, self.language.grammar.demonyms
        kids = words[:2] in (["no", "kids"], ["no", "children"])
        return kids or any(word in known or word in demonyms or word.isdigit() for word in words)

    def _fragments(self) -> None:
        """Read sentences that begin with what somebody is as if "I'm a" stood before: "Proud dad of twins here.".

        They suggest, and do not state: headlines begin so, too.
        """
        openers, traits, grammar = self.language.openers, self.language.trait_openers, self.language.grammar
        for found in _SENTENCE_START.finditer("\n" + self.low):
            word, second = found.groups()
            noun = word in openers and (second in self.language.noun_words or second in grammar.after_opener)
            if not noun and word not in traits:
                continue
            first = found.start(1) - 1
            stop = _SENTENCE_END.search(self.low, first)
            last = stop.start() if stop else len(self.low)
            end = self._fragment_head(first, min(last, first + LONGEST_FRAGMENT)) if noun else 0
            if grammar.not_fragment.search(self.low, end or first, last):
                continue
            if not end:
                if word in traits and self._fragment_trait(first, last):
                    self._read_as_if("I'm ", self.text[first:last], first, first, "fragment")
                continue
            after = grammar.after_fragment.match(self.low, end)
            if after is None or (after.group().endswith(" ") and not self._names_something(after.end())):
                continue
            self._read_as_if(AS_IF, self.text[first:last], first, first, "fragment")

    def _names_something(self, place: int) -> bool:
        """Say whether a name or a field of study begins here: "in Ohio", "in chemistry"."""
        word = _WORD.match(self.low, place)
        return word is not None and (self.text[place].isupper() or word.group() in self.language.modifiers)

    def _fragment_trait(self, first: int, last: int) -> bool:
        """Say whether a sentence begins with a trait that stands for itself: "HIV positive since 2003"."""
        words = _Words.of(self.low, first, min(last, first + LONGEST_FRAGMENT))
        for begin in range(min(len(words), 2)):
            for phrase, after in words.phrases(begin):
                if phrase in self.language.traits:
                    end = words.ends[after - 1]
                    return self.language.grammar.after_trait_fragment.match(self.low, end) is not None
            if words.said[begin] not in self.language.grammar.intensifiers:
                return False
        return False

    def _fragment_head(self, first: int, last: int) -> int:
        """Return where a sentence's first words end if they name a person ("first year nursing student"), else 0."""
        words = _Words.of(self.low, first, last)
        for begin in range(min(len(words), MOST_MODIFIERS + 1)):
            for phrase, after in words.phrases(begin):
                if self.language.nouns.get(phrase):
                    end = words.ends[after - 1]
                    alone = after == 1 and _NEXT.match(self.low, end) is None
                    return 0 if alone else end  # "Man, ..." is said to somebody
            word = words.said[begin]
            if word not in self.language.modifiers and not word[0].isdigit():
                return 0
        return 0

    def _profile(self, start: int, *, mostly: bool = False) -> None:
        """Read a list of facts, item by item; one that tells a single fact is none ("me: 30 of them!").

        `mostly`: nothing announces a list, so half of its items must tell something.
        """
        low, before, reached, items, telling = self.low, len(self.finds), start, 0, 0
        for begin, end in self._items(start):
            if begin < reached:
                continue
            if mostly and self.language.grammar.first_or_third.search(low, begin, end):
                break
            items, made = items + 1, len(self.finds)
            if mostly and low[begin:end] in self.language.grammar.vocatives:  # "Man, ..." is said to somebody
                continue
            ways = (self.language.rules_from(name, low, begin) for name in ("list", "am"))
            for rule, match in chain.from_iterable(ways):
                if self._apply(rule, match, listed=True, since=begin) > begin:
                    reached = max(reached, self.finds[-1].end if len(self.finds) > before else begin)
            telling += len(self.finds) > made
            if len(low[begin:end].split()) > MOST_WORDS and reached <= begin:
                break
        few = mostly and 2 * telling < items
        if few or len({find.attribute for find in self.finds[before:]}) < 2:
            del self.finds[before:]

    def _items(self, start: int) -> Iterator[tuple[int, int]]:
        """Return where the items of a list begin and end."""
        for _ in range(MOST_ITEMS):
            found = self.language.grammar.separator.search(self.low, start)
            end = found.start() if found else len(self.low)
            first = next((at for at in range(start, end) if self.low[at] != " "), end)
            if first < end:
                yield first, end
            if found is None:
                return
            start = found.end()

    def _over_some_words(self, place: int) -> int:
        """Pass over up to three words that say nothing, if the list goes on after them."""
        word = _WORD.match(self.low, place)
        for _ in range(3):
            if word is None or word.group() in self.language.grammar.refused:  # "I'm not from Texas"
                return place
            if self.language.grammar.more.match(self.low, word.end()):
                return word.end()
            if word.group().endswith("ing"):  # what follows may be about others: "dating a doctor from Spain"
                return place
            word = _WORD.match(self.low, word.end() + 1)
        return place

    def places(self) -> dict[int, list[int]]:
        """Return which rules may match anywhere in the text, by number, and where they may begin."""
        words, by_word, by_mark = self.language.anywhere
        low = self.low
        places: dict[int, list[int]] = {STARTS: []}
        # The place of the sign before a word there is that of the word here.
        for found in words.finditer("\n" + low):
            for number in by_word[found[1]]:
                if number in places:
                    places[number].append(found.start())
                else:
                    places[number] = [found.start()]
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
                before = len(self.finds)
                self._apply(rule, match)
                emoji = not match.group()[:1].isascii()
                if len(self.finds) == before or emoji:
                    continue
                if self._taken_back(match.start()) or not self._mine(match):
                    del self.finds[before:]

    # What takes a find back

    def _taken_back(self, place: int, guard: str = "before") -> bool:
        before = self.low[max(0, place - 48) : place]
        if self.guards["speaker"].search(before) or self._in_title(place) or self._in_dialogue(place):
            return True
        cut = max(map(before.rfind, ".!?\n;:"))
        said = before[cut + 1 :].replace(",", " ").replace("  ", " ")
        return self.guards[guard].search(said) is not None

    def _in_title(self, place: int) -> bool:
        """Say whether a title begins here: "Things My Girlfriend and I Have Argued About"."""
        text = self.text
        if text[place : place + 3] != "My " or not text[place + 3 : place + 4].isupper():
            return False
        before = text[max(0, place - 3) : place].rstrip(" \"'*(")
        return before[-1:].isalpha()

    def _in_dialogue(self, place: int) -> bool:
        """Say whether somebody is named as the speaker here and again: "JOE: my girlfriend ... JOE: ..."."""
        speakers = list(_SPEAKER.finditer(self.low, max(0, place - 200), place))
        speaker = speakers[-1] if speakers else None
        if speaker is None or "\n" in self.low[speaker.end() : place] or speaker.group(1) in ("me", "i"):
            return False
        return len(re.findall(rf"\b{re.escape(speaker.group(1))}:", self.low)) > 1

    def _asked(self, place: int) -> bool:
        """Say whether "I" comes after the verb of a question: "do I have ...?"."""
        return self.guards["asked"].search(self.low[max(0, place - 16) : place]) is not None

    def _about_me(self, found: re.Match[str]) -> bool:
        """Say whether "as a ..." is about the writer: it opens a clause, or the sentence speaks of "me"."""
        low, start = self.low, found.start()
        opening = low[max(map(low[:start].rfind, ".!?\n")) + 1 : start].strip()
        about_me = self._first_person_near(start)
        being = found.group().startswith("being")
        if not opening:
            return True
        if opening[-1] in ",;:-(k0123456789" or opening.split()[-1] in self.language.grammar.before_as:
            return about_me
        return about_me and being and opening.split()[-1] in self.language.grammar.before_being

    def _first_person_near(self, place: int) -> bool:
        """Say whether the sentence speaks of "me"."""
        begin = max(map(self.low[:place].rfind, ".!?\n")) + 1
        stop = _SENTENCE_END.search(self.low, place)
        last = stop.start() if stop else len(self.low)
        return self.language.grammar.first_person.search(self.low, begin, last) is not None

    def _mine(self, match: re.Match[str]) -> bool:
        """Say whether a loose remark may be the writer's own: nobody else is the sentence's subject."""
        before = self.low[max(0, match.start() - 60) : match.start()]
        said = before[max(map(before.rfind, ".!?\n")) + 1 :]
        taken = said.rstrip().endswith((" if", "when", " not", "n't", "never"))
        return not taken and self.language.grammar.others.search(said) is None

    def _denied_after(self, end: int) -> bool:
        return self.low[end : end + 1] == "?" or self.guards["after"].match(self.low, end) is not None

    # From a match to finds

    def _apply(
        self, rule: Rule, match: re.Match[str], *, listed: bool = False, since: int | None = None
    ) -> int:
        """Add what a match says and return where it ended; a match that says nothing ends where it began.

        `since`: where its adverbs begin, which may take it back.
        """
        begin, end = match.start() if since is None else since, match.end()
        if "person" in rule.slots:
            return self._person(rule, match, begin, listed=listed)
        # A slot for a name holds more than the name: what takes a find back stands before the slot or after the name.
        named_at = min((match.start(slot) for slot in rule.slots & READERS.keys()), default=end)
        if (named_at == end and self._denied_after(end)) or (listed and rule.slots & _NAMES):
            return begin
        if self.guards["inside"].search(match.string, begin, named_at):
            return begin
        values = {name.rstrip("_"): text for name, text in match.groupdict().items() if text}
        for slot, read in READERS.items():
            if slot in values:
                named = read(self.text, self.low, match.start(slot), self.language)
                if named is None:
                    return begin
                values[slot], end = named
                if not rule.asks and self._denied_after(end):
                    return begin
        if not self._ends_well(rule, end, listed=listed) or self._lasts(rule, match):
            return begin
        if rule.kind in ("does", "work at"):
            self._place_after(rule, end)
        for number, (attribute, template) in enumerate(((rule.attribute, rule.value), *rule.also)):
            sign = rule.also_signs if number else rule.sign
            for name, value in values_of(self.language, attribute, template, values):
                self.finds.append(Find(name, value, rule.kind, sign, begin, end))
        return end

    def _ends_well(self, rule: Rule, end: int, *, listed: bool) -> bool:
        """Say whether what follows a name fits the rule: "a Detroit native"; "in Houston", not "in Houston traffic"."""
        if rule.then is not None:
            return rule.then.match(self.low, end) is not None
        if listed and rule.attribute == "location":
            full_stop = self.low[end - 1] == "."  # read as a part of the name
            return full_stop or self.language.grammar.item_end.match(self.low, end) is not None
        return rule.kind != "am in" or self._clause_goes_on(end)

    def _lasts(self, rule: Rule, match: re.Match[str]) -> bool:
        """Say whether a number of years in the middle of a list is no age: "Toronto resident, 10 years"."""
        inside = self.low[max(0, match.start() - 2) : match.start()] == ", "
        lasting = self.language.grammar.lasting
        return (
            inside
            and rule.attribute == "age"
            and lasting.search(self.low, match.start(), match.end() + 14) is not None
        )

    def _clause_goes_on(self, end: int) -> bool:
        """Say whether a place ends there: "in Houston" and not "in Houston traffic"."""
        found = _NEXT.match(self.low, end)
        return found is None or found.group(1) in self.language.grammar.after_noun

    # What somebody calls themselves

    def _person(self, rule: Rule, match: re.Match[str], nothing: int, *, listed: bool = False) -> int:
        """Read a noun phrase for a person ("a divorced nurse from Duluth"), or a bare trait ("divorced").

        In a list of facts (`listed`) a noun needs no article: "electrician".
        """
        low, first = self.low, match.start("person")
        grammar = self.language.grammar
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
                plural = word.endswith("s") and self.language.modifiers.issuperset(
                    words.said[:begin]
                )  # "gay dads"
                end = end or (0 if bare and not plural else self._noun_at(rule, words, begin))
                if end:
                    return end
            if begin and not bare and word in grammar.after_noun and word not in self.language.modifiers:
                break
        return self._unknown_job(rule, match, nothing)

    def _unknown_job(self, rule: Rule, match: re.Match[str], nothing: int) -> int:
        """Add a job that no table has, where a job is named and it sounds like one: "I work as a cooper"."""
        job = (
            self.language.grammar.job.match(self.low, match.start("person"))
            if rule.kind == "work as"
            else None
        )
        if job is None or self._denied_after(job.end()):
            return nothing
        self._add(rule, (("occupation", job.group()),), job.start(), job.end())
        return job.end()

    def _noun_at(self, rule: Rule, words: _Words, begin: int) -> int:
        """Add what a noun says and the words before it; return where it ends, 0 if there is none."""
        grammar = self.language.grammar
        allowed = {"work as": grammar.after_job, "as a": grammar.after_as}.get(rule.kind, grammar.after_noun)
        for phrase, after in words.phrases(begin):
            pairs = self.language.nouns.get(phrase)
            if pairs is None or not self._may_follow(rule, words, after, allowed):
                continue
            end = words.ends[after - 1]
            aged = not {"old", "yo", "y/o"}.isdisjoint(words.said[:begin])
            most = MOST_MODIFIERS + 2 if aged else MOST_MODIFIERS
            if begin > most or self._denied_after(end) or self._following(words, after) in grammar.no_longer:
                return 0  # "a software engineer turned baker"
            if self._is_hobby(words.said[:begin], pairs):
                return 0
            only_gender = all(attribute == "gender" for attribute, _ in pairs)
            figure = (
                rule.kind == "work as"
                or (self._following(words, after) == "of" and grammar.of_age.match(self.low, end) is None)
                or "little" in words.said[:begin]
            )
            if only_gender and figure:
                return 0  # "I've been a bad boy", "I'm a man of many wishes", "I'm a sad little man"
            self._add(rule, pairs, words.starts[begin], end)
            self._add_modifiers(rule, words, begin, phrase)
            if pairs and pairs[0][0] == "occupation" and pairs[0][1] != "student":
                self._employer_after(end)
            if rule.start != "am":  # the list that "am" begins goes on by itself
                self._place_after(rule, end)
            return end
        return 0

    def _employer_after(self, end: int) -> None:
        """Add for whom somebody works: "a cashier at Lidl"."""
        found = self.language.grammar.works_at.match(self.low, end)
        named = READERS["org"](self.text, self.low, found.end(), self.language) if found else None
        if named is not None and self.language.grammar.school.search(named[0]) is None:
            self.finds.append(Find("employer", named[0], "job at", True, end, named[1]))

    def _place_after(self, rule: Rule, end: int) -> None:
        """Add where somebody is: "as a nurse in Cleveland", "a girl from Nebraska"."""
        where = self.language.grammar.where.match(self.low, end)
        named = READERS["place"](self.text, self.low, where.end(), self.language) if where else None
        if where is None or named is None or not self._clause_goes_on(named[1]):
            return
        self.finds.append(Find("location", named[0], f"{rule.kind} place", True, where.end(), named[1]))
        if where.group().strip() == "from":
            self.finds.append(Find("birthplace", named[0], f"{rule.kind} place", True, where.end(), named[1]))

    def _is_hobby(self, before: Sequence[str], pairs: Sequence[Pair]) -> bool:
        """Say whether a noun is no job because of the words before it: "a terrible cook"."""
        grammar = self.language.grammar
        unpaid = any(word in grammar.not_paid for word in before)
        return unpaid and any(
            attribute == "occupation" and self.language.counted_with.get(job, job) in grammar.hobbies
            for attribute, job in pairs
        )

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
            aside = grammar.on_a_side.match(self.low, end) is not None
            if not (to or aside or self._may_follow(rule, words, after, grammar.after_trait)):
                continue
            if self._denied_after(end) or (following == "in" and phrase in ("engaged", "black")):
                return 0
            if trait[0] == "health" and self.low.endswith(grammar.exaggerates, 0, words.starts[begin]):
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
                subject = trait is not None and trait[0] == "origin" and trait[1] in self.language.languages
                if trait is not None and not (subject and head.split()[-1] in grammar.origin_heads):
                    self._add(rule, (trait,), words.starts[begin], words.ends[min(begin + size, noun) - 1])
                    break

    def _add(self, rule: Rule, pairs: Sequence[Pair], begin: int, end: int) -> None:
        for attribute, value in pairs:
            self.finds.append(Find(attribute, value, f"{rule.kind} {attribute}", rule.sign, begin, end))
            if value in ("pregnancy", "lesbian"):
                self.finds.append(Find("gender", "female", "female body", False, begin, end))


def _blank(found: re.Match[str]) -> str:
    return _NOT_LETTERS.sub(" ", found.group())


def _once(finds: list[Find]) -> Iterator[Find]:
    """Keep one find for each value; a statement wins over a sign."""
    best: dict[Pair, Find] = {}
    for find in finds:
        known = best.get((find.attribute, find.value))
        if known is None or (known.sign and not find.sign):
            best[find.attribute, find.value] = find
    counted = any(name == "children" and value.isdigit() for name, value in best)
    if counted:  # "two boys" says that there are some
        best.pop(("children", "yes"), None)
    if ("absence", "away") in best:  # "we're in Hawaii until Sunday"
        best = {pair: find for pair, find in best.items() if find.kind not in ("am in", "here in")}
    married = best.get(("relationship", "married"))
    if ("relationship", "divorced") in best and married is not None and married.sign:
        del best["relationship", "married"]  # "we separated after 15 years of marriage"
    if ("relationship", "widowed") in best:  # "I lost my husband"
        best.pop(("relationship", "married"), None)
    if getattr(best.get(("relationship", "single")), "kind", "") == "broke up":  # "my girlfriend left me"
        best.pop(("relationship", "in a relationship"), None)
    stated = {value for (name, value), find in best.items() if name == "gender" and not find.sign}
    for gender in [value for name, value in best if name == "gender"]:
        if stated and gender not in stated:  # "my girlfriend and I are both women"
            del best["gender", gender]
    for sexuality, other in (("lesbian", "male"), ("gay", "female")):  # "my wife and I are lesbians"
        suggested = best.get(("gender", other))
        if ("sexuality", sexuality) in best and suggested is not None and suggested.sign:
            del best["gender", other]
    yield from sorted(best.values(), key=lambda find: (find.start, find.end, find.attribute))
