"""Takes words out of a text and leaves the rest as it is."""

from __future__ import annotations

from incrowd.text.options import TextOptions
from incrowd.text.reference import tokenise


def without_words(text: str, words: frozenset[str], options: TextOptions) -> str:
    """Return a text without the chunks (as white space cuts it) that hold one of the words.

    >>> without_words("My cat is great", frozenset({"cat"}), TextOptions())
    'My is great'
    """
    if not words.intersection(tokenise(text, options)):
        return text
    lines = (line.split(" ") for line in text.split("\n"))
    return "\n".join(
        " ".join(chunk for chunk in line if not words.intersection(tokenise(chunk, options)))
        for line in lines
    )
