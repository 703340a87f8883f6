"""Takes words out of a text and leaves the rest as it is."""

from __future__ import annotations

from functools import lru_cache

from incrowd.text.options import TextOptions
from incrowd.text.reference import tokenise


def without_words(text: str, words: frozenset[str], options: TextOptions) -> str:
    """Return a text without the chunks (as spaces cut it) that hold one of the words; the rest stays as it is.

    >>> without_words("My cat is great", frozenset({"cat"}), TextOptions())
    'My is great'
    """
    lines = (line.split(" ") for line in text.split("\n"))
    return "\n".join(
        " ".join(chunk for chunk in line if not words.intersection(_tokens(chunk, options))) for line in lines
    )


@lru_cache(maxsize=2**16)
def _tokens(chunk: str, options: TextOptions) -> tuple[str, ...]:
    """Return the words of a piece of the person's own text; the same pieces come again with every change tried."""
    return tuple(tokenise(chunk, options))
