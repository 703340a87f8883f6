"""Which of somebody's posts are in a language that is known here: the words of topics are English, as those of facts.

Whether texts are readable is decided in one place (:func:`incrowd.text.languages.is_readable`).
"""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.text.languages import FEWEST_WORDS, is_readable

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
