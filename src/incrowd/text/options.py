"""How text becomes tokens, as one value that can be compared, printed and hashed."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

from incrowd.errors import InputError

Tokens = Literal["full", "simple"]
STEPS_VERSION = 1
"""Raised whenever the same text would yield other tokens, so that stored counts are recognised as old."""


@dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How text becomes tokens. Two equal values give the same tokens; `hash` says so in results."""

    tokens: Tokens = "full"
    """"full": the six cleaning steps. "simple": lower-case, then runs of ``a-z``, ``0-9`` and ``'``."""
    keep_stopwords: bool = False
    """Keep words such as "the" and "don't"."""
    compat_gt: bool = False
    """Leave HTML entities as they are, as the original study did: quote marks turn into the word "gt"."""
    letter_marks: bool = False
    """Keep combining marks that belong to a script's spelling (Hindi, Thai, Hebrew, ...)."""
    stop_words: tuple[str, ...] | Path | str | None = None
    """Words to drop: a tuple, or a file with one a line. None: our own English list."""
    smileys: tuple[str, ...] | Path | str | None = None
    """Smileys to keep: a tuple, or a file with one a line. None: our own list."""

    def __post_init__(self) -> None:
        if self.tokens not in get_args(Tokens):
            allowed = ", ".join(map(repr, get_args(Tokens)))
            raise InputError(f"TextOptions: tokens must be one of {allowed}, not {self.tokens!r}.")
        object.__setattr__(self, "stop_words", _given_words(self.stop_words, "stop_words"))
        object.__setattr__(self, "smileys", _given_words(self.smileys, "smileys"))

    @property
    def stop_word_list(self) -> tuple[str, ...]:
        """Return the stop words in force, in lower case and sorted; none if they are kept."""
        return () if self.keep_stopwords else _list_in_force(self.stop_words, "stop_words.txt")

    @property
    def smiley_list(self) -> tuple[str, ...]:
        """Return the smileys in force, in lower case and sorted."""
        return _list_in_force(self.smileys, "smileys.txt")

    @cached_property
    def hash(self) -> str:
        """Return a digest of all that decides the tokens, word lists and Unicode version included."""
        decisive: dict[str, object] = {
            "version": STEPS_VERSION,
            "tokens": self.tokens,
            "stop_words": self.stop_word_list,
        }
        if self.tokens == "full":
            decisive |= {
                "compat_gt": self.compat_gt,
                "letter_marks": self.letter_marks,
                "smileys": self.smiley_list,
                "unicode": unicodedata.unidata_version,
            }
        canonical = json.dumps(decisive, sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(canonical.encode(), digest_size=8).hexdigest()


def _given_words(given: tuple[str, ...] | Path | str | None, field: str) -> tuple[str, ...] | None:
    """Return the caller's own list as a tuple. A file is read here, once: options stay a value."""
    if given is None or isinstance(given, tuple):
        return given
    if not isinstance(given, (str, Path)):
        got = type(given).__name__
        raise InputError(f"TextOptions: {field} must be a tuple of words or a file, not {got}.")
    try:
        return _lines(Path(given).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else "it is not UTF-8 text"
        raise InputError(
            f"TextOptions: {field} names a file that cannot be read ({given}: {reason}). "
            "Give a UTF-8 text file with one entry per line."
        ) from None


@cache
def _list_in_force(given: tuple[str, ...] | None, ours: str) -> tuple[str, ...]:
    entries = _lines(_own_list(ours)) if given is None else given
    return tuple(sorted({unicodedata.normalize("NFC", entry.strip().lower()) for entry in entries} - {""}))


def _own_list(name: str) -> str:
    return (files("incrowd.text") / "words" / name).read_text(encoding="utf-8")


def _lines(text: str) -> tuple[str, ...]:
    """Return the entries of a list: one a line, without empty lines and those that start with ``# ``."""
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("# "))
