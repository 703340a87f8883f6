"""What a character is to the text steps: part of a word, a symbol, a mark, white space, or waste.

One definition serves the readable reference and the tables of the fast twin. It follows the Unicode general
category, so that every script is treated alike.
"""

from __future__ import annotations

import unicodedata
from enum import IntEnum
from functools import cache


class Kind(IntEnum):
    """What the text steps do with a character."""

    SPACE = 0
    """Separates words (``str.isspace``)."""
    WORD = 1
    """A letter or a digit of any script: kept."""
    SYMBOL = 2
    """An emoji or another picture: kept, a token of its own."""
    MARK = 3
    """A combining mark that no letter took up under NFC: deleted."""
    OTHER = 4
    """Punctuation, currency and mathematical signs, controls, unassigned: deleted."""


APOSTROPHES = "'’‘"
_EMPTY_SYMBOLS = "\ufffc\ufffd\u2800"  # stand-ins for something lost, and a blank: no picture at all
_DIACRITICS = range(0x0300, 0x0370)


@cache
def kind(character: str) -> Kind:
    """Say what the text steps do with one character."""
    if character.isspace():
        return Kind.SPACE
    category = unicodedata.category(character)
    if category[0] in "LN":
        return Kind.WORD
    if category[0] == "M":
        return Kind.MARK
    if category == "So" and character not in _EMPTY_SYMBOLS:
        return Kind.SYMBOL
    return Kind.OTHER


@cache
def is_letter_mark(character: str) -> bool:
    """Say whether a combining mark is part of a script's spelling, such as a Hindi or Thai vowel sign.

    Marks that can be stacked on any letter have combining class 1 (overlays) or 200 and above; vowel signs,
    viramas, Hebrew and Arabic points lie between. Variation selectors have class 0 but spell nothing.
    """
    if kind(character) != Kind.MARK or unicodedata.category(character) == "Me":
        return False
    stackable = unicodedata.combining(character) == 1 or unicodedata.combining(character) >= 200
    named = unicodedata.name(character, "")
    return not (stackable or ord(character) in _DIACRITICS or "VARIATION SELECTOR" in named)
