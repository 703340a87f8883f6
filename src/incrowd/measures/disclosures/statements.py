"""What a text states where a rule matches: read as a name, a number or a noun phrase, or taken back by words around it.

A wish, a condition, a negation, a question, another person's words take a find back. Whose text it is does not matter
here, and nothing is kept of it but places in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from incrowd.measures.disclosures.language import Language, Pair
from incrowd.measures.disclosures.rules import Rule, rules_of
from incrowd.measures.disclosures.values import READERS, values_of

MOST_MODIFIERS = 3
"""Words between the article and the noun: "a tired old divorced nurse"."""
_NAMES = frozenset(("name", "firstname", "fullname"))
"""Slots that are not read in a profile: "Austin" is a place there."""
_HERE = ("am in", "here in", "mentions place", "living in")
"""Where somebody is, which while they are away is not where they live."""
_WITHOUT_ARTICLE = ("occupation", "children")
"""What some leave the article out before: "I am teacher"."""
_SPEAKER = re.compile(r"\b([a-z]\w*):(?= )")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n")
WORD = re.compile(r"[\w'/&+-]+")
NEXT_WORD = re.compile(r" ([\w'-]+)")


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

    def overlaps(self, other: Find) -> bool:
        """Say whether two finds were read in the same words."""
        return self.start < other.end and other.start < self.end


def sentence_end(low: str, place: int) -> int:
    """Return where the sentence that goes on at a place ends: at a mark, a new line, or with the text."""
    found = _SENTENCE_END.search(low, place)
    return len(low) if found is None else found.start()


class Words:
    """The words of a text between two places, and where each stands."""

    __slots__ = ("ends", "said", "starts")

    def __init__(self, low: str, start: int, end: int) -> None:
        found = list(WORD.finditer(low, start, end))
        self.said = [one.group() for one in found]
        self.starts = [one.start() for one in found]
        self.ends = [one.end() for one in found]

    def __len__(self) -> int:
        return len(self.said)

    def phrases(self, first: int) -> Iterator[tuple[str, int]]:
        """Return the phrases that begin at a word, the longest first, with the word after the phrase."""
        for last in range(min(first + 4, len(self)), first, -1):
            yield " ".join(self.said[first:last]), last


class Statements:
    """One text, what it states, and whether the words around a statement leave it standing."""

    __slots__ = ("finds", "guards", "language", "low", "others", "rules", "text", "whole")

    def __init__(self, text: str, language: Language, *, whole: bool = True) -> None:
        """`whole`: it is a text of its own, no part that is read in another way."""
        self.text = text
        low = self.text.lower()
        if len(low) != len(self.text):  # a few letters grow when they are made small
            low = "".join(small if len(small := letter.lower()) == 1 else letter for letter in self.text)
        self.low, self.language, self.guards = low, language, language.guards
        self.rules = rules_of(language)
        self.finds: list[Find] = []
        self.others, self.whole = 0, whole

    # What takes a find back

    def _taken_back(self, place: int, guard: str = "before") -> bool:
        before = self.low[max(0, place - 48) : place]
        if self.guards["speaker"].search(before) or self._in_title(place) or self._in_dialogue(place):
            return True
        cut = max(map(before.rfind, ".!?\n;:"))
        said = before[cut + 1 :]
        if said.endswith(", ") and self.guards["over_comma"].search(said) is None:
            return False  # "of course not, I'm 44": another clause begins
        said = said.replace(",", " ").replace("  ", " ")
        if self.guards[guard].search(said) is None:
            return False
        # "When I was diagnosed" supposes that it happened.
        return (
            self.guards["factive"].search(said) is None or self.guards["event"].match(self.low, place) is None
        )

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
        last = sentence_end(self.low, place)
        return self.language.grammar.first_person.search(self.low, begin, last) is not None

    def _mentioned(self, rule: Rule, place: int) -> bool:
        """Say whether a sentence mentions something as the writer's, after the cue that the rule asks for."""
        begin = max(map(self.low[:place].rfind, ".!?\n")) + 1
        return rule.cue.search(self.low, begin, place) is not None and self._speaks_of_writer(
            place, loose=rule.loose
        )

    def _speaks_of_writer(self, place: int, *, loose: bool = False) -> bool:
        """Say whether the last subject before a place is "I" or "my", and no wish, plan or denial comes before it.

        `loose`: a sentence without any subject will do.
        """
        low, grammar = self.low, self.language.grammar
        begin = max(map(low[:place].rfind, ".!?\n")) + 1
        if grammar.unreal.search(low, max(begin, place - 60), place) is not None:
            return False
        opening = len(low[begin:place]) - len(low[begin:place].lstrip()) + begin
        mine = opening if grammar.implied.match(low, opening, place) else -1
        other = -1
        for found in grammar.subjects.finditer(low, begin, place):
            if found.lastgroup == "mine":
                mine = found.start()
            else:
                other = found.start()
        if mine > other:
            return True
        if other >= 0:
            return False
        end = sentence_end(low, place)
        after = grammar.subjects.search(low, place, end)
        told = loose if after is None else after.lastgroup == "mine"
        return told and grammar.unreal.search(low, place, end) is None

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
                loose = listed or rule.then is not None or rule.kind == "demonym"
                if (
                    slot == "place"
                    and loose
                    and self.low[match.start(slot) : end].rstrip(".") in self.language.not_alone
                ):
                    return begin  # "gay", "Union", "Cat mom"
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

    def _is_a_word(self, begin: int, end: int) -> bool:
        """Say whether the name of a town is another word where it stands alone: "gay", "union", "cat mom"."""
        return self.low[begin:end].rstrip(".") in self.language.not_alone

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
        found = NEXT_WORD.match(self.low, end)
        return found is None or self._goes_on(found.group(1), self.language.grammar.after_noun)

    def _goes_on(self, word: str, allowed: frozenset[str]) -> bool:
        """Say whether a clause can go on with a word after a name or a noun: a small word, a verb, an adverb."""
        named = word in self.language.first_names  # "I'm gay Karen"
        return word in allowed or named or self.language.grammar.verb_form.match(word) is not None

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
        words = Words(low, first, match.end("person"))
        bare = (
            rule.start == "am" and not listed and not grammar.article.search(low[max(0, first - 6) : first])
        )
        for begin in range(min(len(words), 6)):
            word = words.said[begin]
            if word in grammar.refused:  # "not a nurse"; but "never married" is a way to be single
                return (self._trait_at(rule, words, begin) if bare or here or listed else 0) or nothing
            if word in self.language.first_words:
                end = self._trait_at(rule, words, begin) if bare or here or listed else 0
                plural = word.endswith("s") and self.language.modifiers.issuperset(
                    words.said[:begin]
                )  # "gay dads"
                if not end and not (bare and not plural and begin > 1):
                    end = self._noun_at(rule, words, begin, bare=bare and not plural)
                if end:
                    return end
            if begin and not bare and word in grammar.after_noun and word not in self.language.modifiers:
                break
        return self._unknown_job(rule, match, nothing)

    def _unknown_job(self, rule: Rule, match: re.Match[str], nothing: int) -> int:
        """Add a job that no table has if it sounds like one: "I work as a cooper", "I'm a turbine technician"."""
        grammar, first = self.language.grammar, match.start("person")
        if rule.kind == "work as":
            job = grammar.job.match(self.low, first) or grammar.job_title.match(self.low, first)
        else:
            has_article = rule.start != "am" or grammar.article.search(self.low[max(0, first - 6) : first])
            job = grammar.job_title.match(self.low, first) if has_article else None
        if job is None or self._denied_after(job.end()):
            return nothing
        words = Words(self.low, job.start(), job.end())
        if not (grammar.not_before_role | grammar.no_job_before).isdisjoint(words.said):
            return nothing
        passed = self.language.before_title
        begin = next(n for n, word in enumerate(words.said) if word not in passed or n == len(words) - 1)
        self._add(rule, (("occupation", " ".join(words.said[begin:])),), words.starts[begin], job.end())
        return job.end()

    def _noun_at(self, rule: Rule, words: Words, begin: int, *, bare: bool = False) -> int:
        """Add what a noun says and the words before it; return where it ends, 0 if there is none.

        `bare`: no article stands before it; then it must be a job or a parent ("I am teacher").
        """
        grammar = self.language.grammar
        allowed = {"work as": grammar.after_job, "as a": grammar.after_as}.get(rule.kind, grammar.after_noun)
        for phrase, after in words.phrases(begin):
            pairs = self.language.nouns.get(phrase)
            if pairs is None:
                continue
            if bare and (not pairs or pairs[0][0] not in _WITHOUT_ARTICLE or phrase in grammar.needs_article):
                continue
            following = self._following(words, after)
            goes_on = rule.kind != "here" and following and self._goes_on(following, allowed)
            if not goes_on and not self._may_follow(rule, words, after, allowed):
                continue
            end = words.ends[after - 1]
            aged = not {"old", "yo", "y/o"}.isdisjoint(words.said[:begin])
            most = MOST_MODIFIERS + 2 if aged else MOST_MODIFIERS
            if begin > most or self._denied_after(end) or self._following(words, after) in grammar.no_longer:
                return 0  # "a software engineer turned baker"
            if self._is_hobby(words.said[:begin], pairs) or self._is_figure(words, begin, end, pairs):
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
        """Add where somebody is: "as a nurse in Cleveland", "a girl from Nebraska", "a guard at a jail near Lviv"."""
        grammar = self.language.grammar
        where = grammar.where.match(self.low, end)
        named = READERS["place"](self.text, self.low, where.end(), self.language) if where else None
        if where is None or named is None or not self._clause_goes_on(named[1]):
            return
        kind = f"{rule.kind} place"
        self.finds.append(Find("location", named[0], kind, True, where.end(), named[1]))
        if where.group().strip() == "from":
            self.finds.append(Find("birthplace", named[0], kind, True, where.end(), named[1]))

    def _is_hobby(self, before: Sequence[str], pairs: Sequence[Pair]) -> bool:
        """Say whether a noun is no job because of the words before it: "a terrible cook"."""
        grammar = self.language.grammar
        unpaid = any(word in grammar.not_paid for word in before)
        return unpaid and any(
            attribute == "occupation" and self.language.counted_with.get(job, job) in grammar.hobbies
            for attribute, job in pairs
        )

    def _is_figure(self, words: Words, begin: int, end: int, pairs: Sequence[Pair]) -> bool:
        """Say whether a job is a role at home, a costume or a figure of speech: "the family accountant"."""
        if not any(attribute == "occupation" for attribute, _ in pairs):
            return False
        before = self.low[max(0, words.starts[0] - 60) : words.starts[begin]]
        return (
            not self.language.grammar.no_job_before.isdisjoint(words.said[:begin])
            or self.guards["no_job"].search(before[max(map(before.rfind, ".!?\n")) + 1 :]) is not None
            or self.guards["no_job_after"].match(self.low, end) is not None
        )

    def _trait_at(self, rule: Rule, words: Words, begin: int) -> int:
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

    def _may_follow(self, rule: Rule, words: Words, after: int, allowed: frozenset[str]) -> bool:
        """Say whether a noun can end there: "a nurse from ..." and not "a nurse shark"."""
        if rule.kind == "here":
            following = self._following(words, after)
            return after == len(words) or following == "here"
        following = self._following(words, after)
        return following == "" or following in allowed or following in self.language.first_names

    def _following(self, words: Words, after: int) -> str:
        """Return the word after some words; empty if the clause ends there."""
        found = NEXT_WORD.match(self.low, words.ends[after - 1])
        return found.group(1) if found else ""

    def _add_modifiers(self, rule: Rule, words: Words, noun: int, head: str) -> None:
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


def once(finds: list[Find]) -> Iterator[Find]:
    """Keep one find for each value; a statement wins over a sign."""
    best: dict[Pair, Find] = {}
    for find in finds:
        known = best.get((find.attribute, find.value))
        if known is None or (known.sign and not find.sign):
            best[find.attribute, find.value] = find
    counted = any(name == "children" and value.isdigit() for name, value in best)
    if counted:  # "two boys" says that there are some
        best.pop(("children", "yes"), None)
    if any(name == "children" and value.isdigit() and not find.sign for (name, value), find in best.items()):
        guessed = [pair for pair, find in best.items() if pair[0] == "children" and find.sign]
        best = {
            pair: find for pair, find in best.items() if pair not in guessed
        }  # "two boys and a girl": not 2
    if ("absence", "away") in best:  # "we're in Hawaii until Sunday"
        away = best["absence", "away"]
        best = {pair: one for pair, one in best.items() if one.kind not in _HERE or not away.overlaps(one)}
    married = best.get(("relationship", "married"))
    divorced = best.get(("relationship", "divorced"))
    if divorced is not None and married is not None and (married.sign or married.overlaps(divorced)):
        del best["relationship", "married"]  # "we separated after 15 years of marriage"
    elif ("relationship", "engaged") in best and married is not None and married.sign:
        del best["relationship", "married"]  # "planning our wedding"
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
