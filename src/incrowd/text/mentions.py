"""Other people in somebody's own text: which of its words only name somebody whom it mentions, and how words are shown.

A report may quote a person's own words, but shows nobody else. A mention is a handle (@name, @name@host, u/name,
/u/name), an e-mail address, or a link to somebody's page (/user/name, /@name). The text steps take the signs away
("@some_body" becomes "somebody"), so that a word alone no longer tells what it was.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from functools import cache, partial

from incrowd.result import Evidence
from incrowd.text.options import TextOptions
from incrowd.text.reference import chunk_tokens, lexicon_of, plain_text

SOMEBODY = "somebody you mention"
"""What is shown in place of such a word: all of them together."""

_MENTION = re.compile(r"[@＠]\w|(?:^|[^\w])u\\?/\w|/user/\w", re.IGNORECASE)
_CHUNK = re.compile(r"\S+")


def is_mention(chunk: str) -> bool:
    """Say whether a piece of text without white space mentions somebody.

    >>> [is_mention(one) for one in ("@some_body!", "(/u/somebody)", "u/somebody", "you/me", "@")]
    [True, True, True, False, False]
    """
    return _MENTION.search(chunk) is not None


def without_mentions(text: str, instead: str = "") -> str:
    """Return a text with something else in place of what mentions somebody; white space stays as it is.

    >>> without_mentions("Thanks @some_body, it works", "[somebody]")
    'Thanks [somebody] it works'
    """
    return _CHUNK.sub(lambda chunk: instead if is_mention(chunk[0]) else chunk[0], text)


def mentioned_words(texts: Iterable[str], options: TextOptions) -> frozenset[str]:
    """Return the words that the texts use to mention somebody, and in no other way.

    >>> sorted(mentioned_words(["@some_body @chess hi", "I play chess"], TextOptions()))
    ['somebody']
    """
    tokens_of = cache(partial(chunk_tokens, lexicon=lexicon_of(options)))
    chunks = {chunk for text in texts for chunk in plain_text(text, options).split()}
    mentions = {chunk for chunk in chunks if is_mention(chunk)}
    if not mentions:
        return frozenset()
    own = {word for chunk in chunks - mentions for word in tokens_of(chunk)}
    return frozenset(word for chunk in mentions for word in tokens_of(chunk)) - own


def shown_words(words: Iterable[str], mentioned: Collection[str]) -> list[str]:
    """Return words as they may be shown, in order: whoever is mentioned comes once, and without a name.

    >>> shown_words(["chess", "somename", "other", "bread"], {"somename", "other"})
    ['chess', 'somebody you mention', 'bread']
    """
    return list(dict.fromkeys(SOMEBODY if word in mentioned else word for word in words))


def word_evidence(parts: Iterable[tuple[str, float]], mentioned: Collection[str]) -> tuple[Evidence, ...]:
    """Return words and what each contributes, the strongest first; whoever is mentioned is one part together."""
    words: list[tuple[str, float]] = []
    somebody: list[float] = []
    for word, share in parts:
        if word in mentioned:
            somebody.append(share)
        else:
            words.append((f"the word “{word}”", share))
    if somebody:
        words.append((SOMEBODY, math.fsum(somebody)))
    ordered = sorted(words, key=lambda part: -part[1])
    return tuple(Evidence(what=what, contribution=share) for what, share in ordered)
