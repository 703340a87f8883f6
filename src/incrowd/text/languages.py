"""Whether texts are in a language that is known here: by its commonest words, and by those of other languages.

The words of topics are English, as those of facts; the posts that cannot be read are counted and said.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from incrowd.errors import InputError

ENGLISH_FROM = 0.12
"""In English texts every third word is one of the commonest twenty; below this share a text is in no known language."""
FEWEST_WORDS = 15
MOST_LOOKED_AT = 200
"""Texts, spread over all, by which the language is known."""
WORDS = Path(__file__).with_name("words") / "languages.toml"


def is_readable(texts: Sequence[str], language: str = "en") -> bool:
    """Say whether texts are in a language that is known here, by its commonest words and those of other languages.

    A few words are taken for readable unless they are another language's, or in another script.

    >>> is_readable(["Nice bike!"]), is_readable(["Ich bin 31 und komme aus Hamburg"]), is_readable(["Мне 31 год"])
    (True, False, False)
    """
    common, elsewhere = _words_of(language)
    some = texts[:: len(texts) // MOST_LOOKED_AT + 1]
    words = [word.strip(".,!?;:'\"()") for text in some for word in text.lower().split()[:200]]
    known, other = sum(word in common for word in words), sum(word in elsewhere for word in words)
    if len(words) < FEWEST_WORDS:
        letters = [letter for word in words for letter in word if letter.isalpha()]
        return known >= other and sum(map(str.isascii, letters)) >= len(letters) / 2
    return known >= max(ENGLISH_FROM * len(words), other)


@cache
def _words_of(language: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the commonest words of a language, and those of others."""
    lists = tomllib.loads(WORDS.read_text("utf-8"))
    if language not in lists:
        raise InputError(
            f"language: '{language}' cannot be read yet; there is: {', '.join(lists)}. "
            "How to add one: docs/how-to/disclosures-language.md"
        )
    return frozenset(lists[language]["common"]), frozenset(lists[language]["elsewhere"])


OTHER_LANGUAGE = "another_language"
"""Before a reason, for programs."""
UNREADABLE_DRAFT = "this text is in a language whose words are not here yet (only English is read)"
REMEDY = "nothing to do: only English is read so far"


def unread(texts: Sequence[str]) -> list[bool]:
    """Mark the texts that cannot be read: none if their writer's language is known, else all that are not in it.

    A few words may be in any language: beside others that cannot be read they are no sentence in a known one.

    >>> unread(["Nice bike!", "I am off to the shops"])
    [False, False]
    >>> unread(["Heute ist das Wetter gut und ich gehe", "Die Bremse ist nicht gut", "I am off to the shops"])
    [True, True, False]
    """
    if is_readable(texts):
        return [False] * len(texts)
    return [not is_readable([text] * max(1, -(-FEWEST_WORDS // max(len(text.split()), 1)))) for text in texts]


def say_unread(read: int, posts: int) -> str:
    """Say how many of somebody's posts could be read, where not all could."""
    if not read:
        return "your posts are in a language whose words are not here yet (only English is read)"
    are = "is" if read == 1 else "are"
    return f"only {read:,} of your {posts:,} posts {are} in a language that is read here (English)"
