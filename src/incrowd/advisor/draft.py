"""Before posting: what would this text in this community change, and what should be left out?"""

from __future__ import annotations

import re
import time as clock
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from incrowd.advisor.community_topics import PostScorer
from incrowd.advisor.community_words import Floats, Keys, shared_terms, word_key
from incrowd.advisor.draft_answer import DraftCheck, GivingWord, Suggestion
from incrowd.advisor.draft_measure import Bench, Finding, compare
from incrowd.advisor.prepare import Shelf, open_shelf, user_id
from incrowd.distances.profile_index import Profile
from incrowd.errors import InputError
from incrowd.measures.exposure.space import BagOfWords, Space
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import starter_topics
from incrowd.measures.person import without_words
from incrowd.measures.protocol import AdvisorOptions
from incrowd.text.reference import tokenise

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

LONGEST_TEXT = 128 * 2**10
"""Bytes; an import sets longer posts aside."""
SINGLE_WORDS = 3
"""Words tried out one by one; each trial is a comparison with the whole crowd."""
WORDS_TOGETHER = 8
MOST_SUGGESTIONS = 5
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]*\s*")


def draft(
    crowd: Crowd,
    user: str,
    community: str,
    text: str,
    *,
    options: AdvisorOptions | None = None,
    space: Space | None = None,
    time: int | None = None,
) -> DraftCheck:
    """Say what posting a text would change for a person (by name), in numbers that the measures would give.

    Parameters
    ----------
    crowd, user, community
        Who would post where; they need not have posted there before.
    text
        The draft. It is read and forgotten: nothing of it is stored.
    space
        How an adversary recognises topics; None: by the words that come with incrowd.
    time
        When it would be posted, in UTC seconds; None: now.
    """
    chosen = options or AdvisorOptions()
    shelf = Shelf(crowd.path, crowd.data_hash, chosen.text, chosen.memory, crowd)
    return check(shelf, user, community, text, options=chosen, space=space, time=time)


def draft_in(folder: Path, user: str, community: str, text: str, *, options: AdvisorOptions) -> DraftCheck:
    """Do the same for a crowd's folder, without opening the crowd if everything is prepared."""
    shelf = open_shelf(folder, options.text, options.memory)
    return check(shelf, user, community, text, options=options)


def check(
    shelf: Shelf,
    user: str,
    community: str,
    text: str,
    *,
    options: AdvisorOptions,
    space: Space | None = None,
    time: int | None = None,
) -> DraftCheck:
    """Measure now, after the post, and after each shorter version of it."""
    text = _usable(text)
    when = int(clock.time()) if time is None else time
    person = user_id(shelf, user)
    shelf.require(community)
    topics = ExposureOptions(community=community, text=options.text, memory=options.memory)
    scorer = PostScorer(space or BagOfWords(starter_topics()), topics)
    bench = Bench(shelf, person, community, text, scorer, options)
    before, after = bench.findings(bench.now), bench.findings(bench.after(text, when))
    words = giving_words(bench, text)
    return DraftCheck(
        community=community,
        changes=tuple(map(compare, before, after)),
        words=words,
        suggestions=_suggestions(bench, text, when, words, before, after),
        not_compared=tuple(bench.not_compared),
        assumptions=options.parameters()
        | {"time": when, "data_hash": shelf.data_hash, "space": scorer.space.hash},
    )


def _usable(text: str) -> str:
    """Return the text as an import would store it, or say why it would not."""
    text = (
        text.encode("utf-8", "surrogateescape")
        .decode("utf-8", "replace")
        .replace("\0", "\N{REPLACEMENT CHARACTER}")
    )
    if not text.strip():
        raise InputError(
            "the draft is empty; give the text as an argument, with --file, or on standard input"
        )
    if len(text.encode()) > LONGEST_TEXT:
        raise InputError(
            f"the draft has more than {LONGEST_TEXT:,} bytes, longer than any post; check a shorter one"
        )
    return text


def giving_words(bench: Bench, text: str) -> tuple[GivingWord, ...]:
    """Return the draft's words with what each gives away, the strongest first."""
    words = sorted(Counter(tokenise(text, bench.options.text)))
    if not words:
        return ()
    now, then = (
        bench.now.profile,
        bench.now.profile.plus(Profile.of_words(tokenise(text, bench.options.text))),
    )
    keys = np.array([word_key(word) for word in words], np.uint64)
    there = np.searchsorted(bench.here.keys, keys)
    average, users = bench.here.average(bench.row)[there], bench.here.users(bench.row)[there]
    stands_out = _divergence_terms(then.shares_at(keys), average) - _divergence_terms(
        now.shares_at(keys), average
    )
    links = _linking(bench, now, then, keys)
    topics = _topics_of(bench, text)
    found = [
        GivingWord(
            word=word,
            others=int(users[at]),
            stands_out=float(stands_out[at]),
            links=float(links[at]),
            topic=topics.get(word, ("", 0.0))[0],
            topic_share=topics.get(word, ("", 0.0))[1],
        )
        for at, word in enumerate(words)
    ]
    return tuple(sorted(found, key=lambda one: (-one.weight, one.word)))


def _divergence_terms(p: Floats, q: Floats) -> Floats:
    """Return each word's part of the divergence of p and q."""
    middle = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        left, right = p * np.log2(p / middle), q * np.log2(q / middle)
    return np.asarray((np.where(p > 0, left, 0.0) + np.where(q > 0, right, 0.0)) / 2)


def _linking(bench: Bench, now: Profile, then: Profile, keys: Keys) -> Floats:
    total = np.zeros(len(keys))
    for other in bench.elsewhere:
        q = other.profile.shares_at(keys)
        for profile, sign in ((then, 1), (now, -1)):
            p = profile.shares_at(keys)
            both = (p > 0) & (q > 0)
            total[both] += sign * shared_terms(p[both], q[both]) / 2
    return total


def _topics_of(bench: Bench, text: str) -> dict[str, tuple[str, float]]:
    """Return, for each word that points to a sensitive topic, the topic it points to most and by how much."""
    scorer = bench.scorer
    words, places = scorer.words(text), scorer.lists(text).words
    found: dict[str, tuple[str, float]] = {}
    for name in bench.options.topics or scorer.space.topics.sensitive:
        shares: Counter[str] = Counter()
        for word, share in zip(
            words, scorer.space.shares(places, scorer.space.topics.place(name)), strict=False
        ):
            shares[word] += float(share)  # type: ignore[assignment]  # a Counter adds floats as well
        for word, share in shares.items():
            if share > found.get(word, ("", 0.0))[1]:
                found[word] = (name, share)
    return found


def _suggestions(
    bench: Bench,
    text: str,
    when: int,
    words: tuple[GivingWord, ...],
    before: list[Finding],
    after: list[Finding],
) -> tuple[Suggestion, ...]:
    """Measure each shorter version; return those that help, the most helpful first."""
    shorter = {rest: what for what, rest in _shorter(bench, text, words) if rest != text and rest.strip()}
    # One after the other: each is done before a second thread would have got going.
    tried = [
        _suggestion(bench, text, what, rest, (before, after, bench.findings(bench.after(rest, when))))
        for rest, what in shorter.items()
    ]
    useful = [one for one in tried if one.gain > 0]
    return tuple(sorted(useful, key=lambda one: (-one.gain, len(one.left_out)))[:MOST_SUGGESTIONS])


def _suggestion(
    bench: Bench, text: str, what: str, rest: str, states: tuple[list[Finding], list[Finding], list[Finding]]
) -> Suggestion:
    before, after, measured = states
    whole = map(compare, measured, after)
    gone = set(tokenise(text, bench.options.text)) - set(tokenise(rest, bench.options.text))
    return Suggestion(
        what=what,
        left_out=tuple(sorted(gone)),
        text=rest,
        changes=tuple(map(compare, before, measured)),
        gain=sum(change.exposure[1] - change.exposure[0] for change in whole),
    )


def _shorter(bench: Bench, text: str, words: tuple[GivingWord, ...]) -> Iterator[tuple[str, str]]:
    """Yield shorter versions of the draft to try out."""
    telling = [one for one in words if one.weight > 0]
    groups = [[one.word] for one in telling[:SINGLE_WORDS]]
    groups.append([one.word for one in telling[:WORDS_TOGETHER]])
    groups.append([one.word for one in words if one.topic])
    for group in groups:
        if group:
            named = ", ".join(f"“{word}”" for word in group)
            yield f"leave out {named}", without_words(text, frozenset(group), bench.options.text)
    sentences = _SENTENCE.findall(text)
    if len(sentences) > 1:
        weight = {one.word: one.weight for one in words}
        told = [
            sum(weight.get(word, 0.0) for word in set(tokenise(one, bench.options.text))) for one in sentences
        ]
        worst = int(np.argmax(told))
        yield (
            f"leave out sentence {worst + 1}",
            "".join(one for at, one in enumerate(sentences) if at != worst),
        )
