"""Tables that teach the fast twin the reference's characters.

A character is settled in the kernel only if what the reference does with it cannot depend on its neighbours:
it has a one-character lower case, NFC leaves it alone, and it betrays no smiley and no URL. All others are
HARD: their chunk goes to the reference, once for each distinct chunk.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import cache
from html.entities import html5

import numpy as np
import numpy.typing as npt

from incrowd.text.options import TextOptions
from incrowd.text.reference import APOSTROPHES, CharacterKind, kind, smileys_in_force

SPACE, WORD, SYMBOL, DELETE, APOSTROPHE, HARD = range(6)

SIZE = 0x20000
_COVERED = [
    *range(0xD800),
    *range(0xE000, 0x10000),
    *range(0x1F000, SIZE),
]  # no surrogates; emoji, no rarities
_SETTLED = {
    CharacterKind.SPACE: SPACE,
    CharacterKind.WORD: WORD,
    CharacterKind.SYMBOL: SYMBOL,
    CharacterKind.OTHER: DELETE,
    CharacterKind.MARK: HARD,
}
_JAMO = range(0x1160, 0x1200)  # vowels and finals, which compose with what stands before them
_URL_SIGN = ":"
_PROSE = "\"'.,!?()-/*’“”…–—"  # too common to give a smiley away

Kinds = npt.NDArray[np.uint8]
Lower = npt.NDArray[np.uint32]


def tables(options: TextOptions) -> tuple[Kinds, Lower]:
    """Return, by code point, what each character is and which one it becomes (UTF-8, first byte lowest).

    The last entry, no character at all, stands for every code point beyond the tables.
    """
    if options.tokens == "simple":
        return _simple_tables()
    kinds, lower = _full_tables()
    kinds = kinds.copy()
    for sign in smiley_signs(smileys_in_force(options)):
        kinds[lower == _packed(sign)] = HARD
    apostrophes = [ord(apostrophe) for apostrophe in APOSTROPHES]
    if (kinds[apostrophes] == HARD).any():
        kinds[apostrophes] = HARD  # they are written alike, and now that would matter
    return kinds, lower


def smiley_signs(smileys: list[str]) -> set[str]:
    """Return characters of which every smiley holds at least one; few, and rare in prose, are best.

    They are characters that words do not hold, so that a chunk without them can hold no smiley.
    """
    signs = {_URL_SIGN}
    while left := [smiley for smiley in smileys if signs.isdisjoint(smiley)]:
        shared = Counter(
            c
            for smiley in left
            for c in set(smiley)
            if kind(c) in (CharacterKind.OTHER, CharacterKind.SYMBOL)
        )
        signs.add(min(shared, key=lambda c: (c in _PROSE, -shared[c], c)))
    return signs


@cache
def _full_tables() -> tuple[Kinds, Lower]:
    small = [chr(code).lower() for code in _COVERED]
    codes = np.array(_COVERED)
    kinds, lower = np.full(SIZE, HARD, np.uint8), np.zeros(SIZE, np.uint32)
    kinds[codes] = [_SETTLED[kind(c[0])] for c in small]
    lower[codes] = [_packed(c) for c in small]
    settled = [len(c) == 1 and unicodedata.is_normalized("NFC", c) for c in small]
    kinds[codes[np.logical_not(settled)]] = HARD
    kinds[[*_joins_the_one_before(), ord("Σ"), SIZE - 1]] = HARD  # Σ: its lower case depends on what follows
    kinds[[ord(apostrophe) for apostrophe in APOSTROPHES]] = APOSTROPHE
    return kinds, lower


def _joins_the_one_before() -> list[int]:
    """Return the characters that NFC may join with the one before them."""
    pairs = (unicodedata.decomposition(chr(code)).split() for code in _COVERED)
    return [int(pair[1], 16) for pair in pairs if len(pair) == 2 and pair[0][0] != "<"] + list(_JAMO)


@cache
def open_entities() -> npt.NDArray[np.uint8]:
    """Say by first and second byte (first * 256 + second) whether an entity without ";" begins so."""
    names = [name.encode() for name in html5 if not name.endswith(";")]
    begins = np.zeros(2**16, np.uint8)
    begins[[name[0] << 8 | name[1] for name in names]] = 1
    return begins


def _packed(character: str) -> int:
    """Return the UTF-8 bytes of a character as one number, the first byte lowest."""
    return int.from_bytes(character[0].encode(), "little")


@cache
def _simple_tables() -> tuple[Kinds, Lower]:
    kinds = np.full(SIZE, SPACE, np.uint8)
    lower = np.zeros(SIZE, np.uint32)
    for character in "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'\N{KELVIN SIGN}":
        kinds[ord(character)] = WORD
        lower[ord(character)] = _packed(character.lower())
    return kinds, lower
