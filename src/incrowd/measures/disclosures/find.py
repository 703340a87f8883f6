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
from itertools import chain, islice, takewhile

from incrowd.measures.disclosures.identifiers import Identifier
from incrowd.measures.disclosures.language import Language, load_language
from incrowd.measures.disclosures.rules import ACCOUNTS, STARTS, TYPOS
from incrowd.measures.disclosures.statements import (
    MOST_MODIFIERS,
    NEXT_WORD,
    WORD,
    Find,
    Statements,
    Words,
    once,
    sentence_end,
)

LONGEST = 100_000
"""Characters of a post that are read; nobody says who they are after a hundred pages."""
MOST_ITEMS, MOST_WORDS = 14, 7
"""Of a profile ("29, she/her, Leeds, dog mum"), and of one item in it; what is longer is a sentence."""
LEAST_TELLING = 2
"""Items that must tell something in a list that nothing announces."""
AS_IF = "I'm a "
"""What a sentence that begins with what somebody is leaves out."""
LONGEST_FRAGMENT = 80
"""Letters in which its noun must come."""
_I_AM = ("i am", "i'm", "im")
_ONES_OWN = ("age", "age band", "gender")
"""What "we are" does not tell of the writer."""
_OURS = ("children", "income", "pet", "car", "location", "relationship", "absence", "religion")
"""What "our ..." tells of the writer."""
_STRAIGHT = {"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u00b4": "'", "\u00a0": " "}
_QUOTED = re.compile(
    r'"[^"\n]{2,600}?"|\u00ab[^\u00bb\n]{2,600}\u00bb|^[ \t]*(?:>|&gt;)[^\n]*|```.*?```'
    r"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w)){3,300}'(?!\w)",
    re.M | re.S,
)
_MARKS = '.,!?;:()[]{}<>"*|@#~=^\n\t'
_APART = str.maketrans(dict.fromkeys(f"{_MARKS}\u2022\u00b7\u2013\u2014\u2026", " "))
_APART_ASCII = bytes.maketrans(_MARKS.encode(), b" " * len(_MARKS))
"""The same for plain text, which is ten times as fast."""
_SENTENCE_START = re.compile(r"[.!?\n](?:(?<=\n)|\s)\s*([a-z0-9][\w'-]*)(?: ([\w'-]+))?")
"""Where a sentence of a text with a line before it begins, with its first words."""
_ITEM = re.compile(r"[^\W_]|'\d")
"""With which an item of a list begins; marks and pictures may stand before it."""
_NOT_LETTERS = re.compile(r"[^\n]")


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
    for found in WORD.finditer(text):
        word = language.typos.get(found.group().lower())
        initial = len(found.group()) == 1 and (found.group().isupper() or text[found.end() :][:1] == ".")
        if word is not None and not initial:  # "Priya R. Nair"
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


class _Text(Statements):
    """One text while it is read."""

    __slots__ = ()

    def read(self, places: Mapping[int, Sequence[int]]) -> Reading:
        low = self.low
        named = self.language.identifiers.find(self.text, low, accounts=ACCOUNTS in places)
        if '"' in low or ">" in low or "\u00ab" in low or " '" in low or "`" in low or low.startswith("'"):
            low = self.low = _QUOTED.sub(_blank, low)
        for place in places[STARTS]:
            found = self.rules.trigger.match(low, place)
            if found is not None:
                self._at(found)
        if self.whole:
            self._opening_list()
            self._fragments()
            self._roles()
        self._anywhere(places)
        if not (self.finds or named or self.others):
            return NOTHING
        if self.finds and self.guards["joke"].search(low):
            self.finds = []
        return Reading(tuple(once(self.finds)), named, self.others)

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
        if start == "participle":
            self._participle(found)
            return
        if start == "my" and self.guards["other"].match(self.low, found.start()):
            self.others += 1
        matches = self.rules.matching(start, self.low, end)
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
        matches = self.rules.matching("dropped", self.low, place)
        before = len(self.finds)
        for rule, match in matches:
            self._apply(rule, match)
        if len(self.finds) > before and not self._speaks_of_me(place):
            del self.finds[before:]

    def _someone_who(self, found: re.Match[str]) -> None:
        """Read "as someone who lives in Leeds" as "I live in Leeds"."""
        verb = WORD.match(self.low, found.end() + 1)
        if verb is None or self._taken_back(found.start()):
            return
        stop = sentence_end(self.low, verb.end())
        said = f"I {self.language.grammar.first_person_of(verb.group())}"
        rest = self.text[verb.end() : stop]
        self._read_as_if(said, rest, verb.end(), found.start())

    def _participle(self, found: re.Match[str]) -> None:
        """Read "after working as a nurse, I ..." as "I work as a nurse", "having taught" as "I've taught"."""
        verb = WORD.match(self.low, found.end() + 1)
        stop = sentence_end(self.low, found.end())
        if verb is None or not self._speaks_of_writer(found.start()):
            return
        base = self.language.grammar.progressive.get(verb.group())
        if found.group() == "having":
            self._read_as_if("I've", self.text[found.end() : stop], found.end(), found.start())
        elif base is not None:
            self._read_as_if(f"I {base}", self.text[verb.end() : stop], verb.end(), found.start())

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
        stop = sentence_end(self.low, place)
        if self.low[stop : stop + 1] == "?" and "," not in self.low[place:stop]:
            return False
        grammar = self.language.grammar
        if not said:
            return True
        opening = place - len(before) + before.rfind(said)
        mine = grammar.my_clause.search(said) is not None or self._opens_without_a_subject(opening)
        return mine and grammar.not_my_clause.search(said) is None

    def _opens_without_a_subject(self, place: int) -> bool:
        """Say whether a sentence opens with a verb that people say of themselves: "Grew up poor, got my GED"."""
        found = self.rules.trigger.match(self.low, place)
        return found is not None and found.lastgroup == "dropped"

    def _am(self, found: re.Match[str]) -> None:
        """Read a list of what somebody is: "I'm 31, divorced and from Duluth"."""
        low, end, more = self.low, found.end(), self.language.grammar.more
        last = min(sentence_end(low, end), end + 200)
        place, guarded, before = end, False, len(self.finds)
        for _ in range(8):
            while place < last and low[place] in " \t,":
                place += 1
            first = place <= end + 1
            if place >= last or not (first or self.language.grammar.subject.match(low, place) is None):
                return
            reached = place
            ways = self.rules.matching("am", low, place)
            if first and found.group() in _I_AM:  # "I am having two sons", "I am live in Hue"
                ways += self.rules.matching("i", low, place)
            for rule, match in ways:
                own = rule.attribute not in ("age", "name") or (
                    rule.attribute == "age" and low[place].isdigit()
                )
                if first or own:  # "I'm a woman, Steve"
                    reached = max(reached, self._apply(rule, match, since=place))
            if first and reached == place:
                self._progressive(place, last)
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

    def _progressive(self, place: int, last: int) -> None:
        """Read "I'm driving a Corolla" as "I drive a Corolla"."""
        verb = WORD.match(self.low, place)
        base = self.language.grammar.progressive.get(verb.group()) if verb else None
        if verb is not None and base is not None:
            self._read_as_if(f"I {base}", self.text[verb.end() : last], verb.end(), place)

    def _opening_list(self) -> None:
        """Read a text that opens with a list of facts ("40s, single dad, Glasgow"), and lists that sentences open."""
        grammar = self.language.grammar
        found = grammar.profile.match(self.low)
        if found is not None:
            self._profile(found.end())
        elif grammar.short_item.match(self.low) and self._opens_with_a_fact():
            self._profile(0, mostly=True)
        else:
            for begun in _SENTENCE_START.finditer(self.low):
                if grammar.tag.match(self.low, begun.start(1)):
                    self._profile(begun.start(1))

    def _opens_with_a_fact(self) -> bool:
        """Say whether one of the first items begins with a word for a person ("divorced dad") or a number."""
        known, grammar = self.language.first_words, self.language.grammar
        for begin, end in islice(self._items(0), 3):
            words = self.low[begin:end].split(maxsplit=2)[:2]
            if words == ["no", "kids"] or words == ["no", "children"]:
                return True
            words += [word.split("-", 1)[0] for word in words]
            if any(word in known or word in grammar.opens_list or word[:1].isdigit() for word in words):
                return True
        return False

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
            last = sentence_end(self.low, first)
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

    def _roles(self) -> None:
        """Read phrases that name a job where nobody else is spoken of: "Reluctant dentist", "carpenter / climber"."""
        low, grammar, begin, jobs = self.low, self.language.grammar, 0, self.language.job_words
        plain = low.encode().translate(_APART_ASCII).decode() if low.isascii() else low.translate(_APART)
        if jobs.isdisjoint(plain.split()):
            return
        while begin < len(low):
            end = sentence_end(low, begin)
            if not jobs.isdisjoint(WORD.findall(low, begin, end)):
                somebody = grammar.first_or_third.search(low, begin, end)
                self._roles_in(begin, end, somebody.start() if somebody else end)
            begin = end + 1

    def _roles_in(self, sentence: int, end: int, last: int) -> None:
        """Read the phrases of a sentence that begin before a place."""
        low, grammar, begin = self.low, self.language.grammar, sentence
        while begin < last or begin == sentence:
            mark = grammar.phrase_end.search(low, begin, end)
            stop = mark.start() if mark else end
            head = self._role(begin, stop) if stop - begin <= LONGEST_FRAGMENT else 0
            if head and self._is_own_role(sentence, begin, head, stop, end):
                before = len(self.finds)
                self._read_as_if(AS_IF, self.text[begin:stop], begin, begin, "fragment")
                if (
                    len(self.finds) == before
                ):  # what follows would end no sentence: "English teacher lost in Osaka"
                    self._read_as_if(AS_IF, self.text[begin:head], begin, begin, "fragment")
            if mark is None or mark.end() <= begin:
                return
            begin = mark.end()

    def _is_own_role(self, sentence: int, begin: int, head: int, stop: int, end: int) -> bool:
        """Say whether a phrase that names a job may be about its writer: no question, no advertisement, no call.

        In a list a job may stand alone.
        """
        low, grammar, guards = self.low, self.language.grammar, self.guards
        labelled = grammar.label.search(low, sentence, begin) is not None
        said_more = head < stop or " " in low[begin:head].strip()
        if not (said_more or labelled or grammar.item_mark.search(low) is not None):
            return False
        if low[end : end + 1] == "?" and not labelled:
            return False
        if guards["no_job"].search(low[sentence:begin]) or guards["no_job_after"].match(low, head):
            return False
        return grammar.not_fragment.search(low, head, end) is None

    def _role(self, begin: int, end: int) -> int:
        """Return where a phrase's first words end if they name a job and what follows fits, else 0."""
        grammar, opener = self.language.grammar, WORD.search(self.low, begin, end)
        if opener is None or opener.group() in grammar.not_before_role:
            return 0
        words = Words(self.low, begin, end)
        if self.language.job_words.isdisjoint(words.said[: MOST_MODIFIERS + 4]):
            return 0
        for first in range(min(len(words), MOST_MODIFIERS + 1)):
            for phrase, after in words.phrases(first):
                pairs = self.language.nouns.get(phrase)
                if pairs and pairs[0][0] == "occupation" and phrase not in grammar.no_roles:
                    fits = grammar.after_role.match(self.low, words.ends[after - 1], end) is not None
                    return words.ends[after - 1] if fits else 0
            if words.said[first] in grammar.not_before_role:
                return 0
        return 0

    def _names_something(self, place: int) -> bool:
        """Say whether a name or a field of study begins here: "in Ohio", "in chemistry"."""
        word = WORD.match(self.low, place)
        return word is not None and (self.text[place].isupper() or word.group() in self.language.modifiers)

    def _fragment_trait(self, first: int, last: int) -> bool:
        """Say whether a sentence begins with a trait that stands for itself: "HIV positive since 2003"."""
        words = Words(self.low, first, min(last, first + LONGEST_FRAGMENT))
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
        words = Words(self.low, first, last)
        for begin in range(min(len(words), MOST_MODIFIERS + 1)):
            word = words.said[begin]
            goes_on = begin + 1 < len(words) and words.said[begin + 1] in self.language.noun_words
            for phrase, after in words.phrases(begin):
                if self.language.nouns.get(phrase):
                    if after == begin + 1 and goes_on and word in self.language.modifiers:  # "Polish girl"
                        break
                    end = words.ends[after - 1]
                    alone = after == 1 and NEXT_WORD.match(self.low, end) is None
                    return 0 if alone else end  # "Man, ..." is said to somebody
            if word not in self.language.modifiers and not word[0].isdigit():
                return 0
        return 0

    def _profile(self, start: int, *, mostly: bool = False) -> None:
        """Read a list of facts, item by item; one that tells a single fact is none ("me: 30 of them!").

        `mostly`: nothing announces a list, so half of its items must tell something.
        """
        low, grammar, before = self.low, self.language.grammar, len(self.finds)
        reached, items, telling = start, 0, 0
        listed: Sequence[tuple[int, int]] = list(self._own_items(start) if mostly else self._items(start))
        for left, (begin, end) in enumerate(listed, 1 - len(listed)):
            if mostly and (len(listed) < LEAST_TELLING or items - 2 * telling > 1 - left):
                break  # it cannot become a list any more
            if begin < reached:
                continue
            items, made = items + 1, len(self.finds)
            if mostly and items == 1 and low[begin:end] in grammar.vocatives and low[end : end + 1] == ",":
                continue  # "Man, ..." is said to somebody
            reached = self._item(begin, end)
            telling += len(self.finds) > made
            if len(low[begin:end].split()) > MOST_WORDS and reached <= begin:
                break
        few = mostly and (2 * telling < items or telling < LEAST_TELLING)
        if few or len({find.attribute for find in self.finds[before:]}) < 2:
            del self.finds[before:]

    def _item(self, begin: int, end: int) -> int:
        """Read an item of a list as "I'm ..." or, if it is a verb, as "I ..."; return how far it was read."""
        low, reached, before = self.low, begin, len(self.finds)
        ways = (self.rules.matching(name, low, begin) for name in ("list", "am", "dropped"))
        for rule, match in chain.from_iterable(ways):
            if self._apply(rule, match, listed=True, since=begin) > begin:
                reached = max(reached, self.finds[-1].end if len(self.finds) > before else begin)
        if len(self.finds) == before:
            verb = WORD.match(low, begin)
            if verb is not None and verb.end() < end and verb.group().endswith("s"):  # "Speaks German"
                said = f"I {self.language.grammar.first_person_of(verb.group())}"
                self._read_as_if(said, self.text[verb.end() : end], verb.end(), begin)
        return reached

    def _items(self, start: int) -> Iterator[tuple[int, int]]:
        """Return where the items of a list begin and end."""
        for _ in range(MOST_ITEMS):
            found = self.language.grammar.separator.search(self.low, start)
            end = found.start() if found else len(self.low)
            first = _ITEM.search(self.low, start, end)
            if first is not None:
                yield first.start(), end
            if found is None:
                return
            start = found.end()

    def _own_items(self, start: int) -> Iterator[tuple[int, int]]:
        """Return where the items of a list begin and end before one that speaks of somebody in a sentence."""
        person = self.language.grammar.first_or_third
        return takewhile(lambda item: person.search(self.low, *item) is None, self._items(start))

    def _over_some_words(self, place: int) -> int:
        """Pass over up to three words that say nothing, if the list goes on after them."""
        word = WORD.match(self.low, place)
        for _ in range(3):
            if word is None or word.group() in self.language.grammar.refused:  # "I'm not from Texas"
                return place
            if self.language.grammar.more.match(self.low, word.end()):
                return word.end()
            if word.group().endswith("ing"):  # what follows may be about others: "dating a doctor from Spain"
                return place
            word = WORD.match(self.low, word.end() + 1)
        return place

    def places(self) -> dict[int, list[int]]:
        """Return which rules may match anywhere in the text, by number, and where they may begin."""
        return self.rules.places(self.low)

    def _anywhere(self, places: Mapping[int, Sequence[int]]) -> None:
        for number in sorted(number for number in places if number >= 0):
            rule = self.rules.by_start["any"][number]
            for match in rule.finds(self.low, places[number]):
                before = len(self.finds)
                if rule.cue_pattern is not None and not self._mentioned(rule, match.start()):
                    continue
                end = self._apply(rule, match)
                if rule.kind == "mentions place" and not self._clause_goes_on(end):  # "in Houston traffic"
                    del self.finds[before:]
                emoji = not match.group()[:1].isascii()
                if len(self.finds) == before or emoji:
                    continue
                if rule.cue_pattern is None and (self._taken_back(match.start()) or not self._mine(match)):
                    del self.finds[before:]


def _blank(found: re.Match[str]) -> str:
    return _NOT_LETTERS.sub(" ", found.group())
