"""The six cleaning steps with `re`, comment by comment: the peers of benchmarks/ingest.py.

`plain` is what one writes first: each step one compiled pattern over the whole comment. `tuned` skips steps that
a cheap test says have nothing to do, and lets words of nothing but letters and digits take a short cut.
"""

from __future__ import annotations

import html
import re
import unicodedata

from incrowd.text import TextOptions
from incrowd.text.reference import smileys_in_force

STOP_WORDS = frozenset(TextOptions().stop_word_list)
SMILEYS = sorted(smileys_in_force(TextOptions()), key=len, reverse=True)

CODE_BLOCK = re.compile(r"^```.*?^```[^\n]*$|(?:\A|(?<=\n\n))(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+", re.M | re.S)
INLINE_CODE = re.compile(r"(`+)[^`\n]+\1")
QUOTE = re.compile(r"^ {0,3}>(?!!)[^\n]*", re.M)
LIST_NUMBER = re.compile(r"^[ \t]*\d+[.)](?=[ \t])", re.M)
LINK = re.compile(r"\[([^\]\n]*)\]\(([^\s()]*(?:\([^\s()]*\)[^\s()]*)*)\)")
ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
MARKS = re.compile("[\u0300-\u036f\u20d0-\u20ff\ufe00-\ufe0f]")
URL = r"(?:https?|ftp)://([\w.~%:@+-]+)\S*|(?<![^\W_])(www\.[\w.~%:@+-]+)\S*"
SMILEY = "(" + "|".join(map(re.escape, SMILEYS)) + r")(?![^\W_])"
EMOJI = "([\u2600-\u27bf\U0001f000-\U0001f3fa\U0001f400-\U0001faff])"
WHOLE = re.compile(rf"{URL}|{SMILEY}|{EMOJI}|((?:[^\W_]|['’‘])+)")
PUNCTUATION = re.compile(rf"{URL}|{SMILEY}|{EMOJI}|[^\w\s'’‘]|_")
RUN = re.compile(r"(.)\1{3,}")


def plain(text: str) -> list[str]:
    """Return the tokens of a comment."""
    text = html.unescape(html.unescape(text)).lower()
    text = INLINE_CODE.sub(" ", CODE_BLOCK.sub("", text))
    text = LIST_NUMBER.sub("", QUOTE.sub("", text))
    text = ESCAPED.sub(r"\1", LINK.sub(r"\1 \2 ", text))
    text = MARKS.sub("", unicodedata.normalize("NFC", text))
    text = RUN.sub(r"\1\1\1", text)
    text = PUNCTUATION.sub(kept, text)
    words = [word for chunk in text.split() for word in (bare(chunk) if has_apostrophe(chunk) else [chunk])]
    return [word for word in words if word not in STOP_WORDS]


def kept(found: re.Match[str]) -> str:
    """Return what stays of a URL, smiley, emoji or punctuation mark."""
    host, www, smiley, emoji = found.groups()
    if host or www:
        return f" {host_of(host or www)} "
    return f" {smiley or emoji} " if smiley or emoji else ""


def tuned(text: str) -> list[str]:
    """Return the same, sooner."""
    if "&" in text:
        text = html.unescape(html.unescape(text))
    text = text.lower()
    if "`" in text or "    " in text or "\t" in text:
        text = INLINE_CODE.sub(" ", CODE_BLOCK.sub("", text))
    if ">" in text:
        text = QUOTE.sub("", text)
    text = LIST_NUMBER.sub("", text)
    if "](" in text:
        text = LINK.sub(r"\1 \2 ", text)
    if "\\" in text:
        text = ESCAPED.sub(r"\1", text)
    if not text.isascii():
        text = MARKS.sub("", unicodedata.normalize("NFC", text))
    text = RUN.sub(r"\1\1\1", text)
    words = []
    for chunk in text.split():
        stripped = chunk.strip('.,!?"')
        if stripped.isalnum():
            words.append(stripped)
        else:
            words += careful(chunk)
    return [word for word in words if word not in STOP_WORDS]


def careful(chunk: str) -> list[str]:
    """Return what a chunk with signs in it holds."""
    parts: list[str] = []
    glued = ""
    for host, www, smiley, emoji, letters in WHOLE.findall(chunk):
        if letters:
            glued += letters
            continue
        if glued:
            parts += bare(glued)
            glued = ""
        parts.append(host_of(host or www) if host or www else smiley or emoji)
    return parts + bare(glued)


def host_of(authority: str) -> str:
    return authority.rpartition("@")[2].partition(":")[0].strip(".-")


def has_apostrophe(chunk: str) -> bool:
    return ("'" in chunk or "’" in chunk or "‘" in chunk) and any(map(str.isalnum, chunk))


def bare(word: str) -> list[str]:
    """Return a word without apostrophes, unless it is a stop word as written."""
    written = word.replace("’", "'").replace("‘", "'").strip("'")
    if written in STOP_WORDS:
        return []
    word = written.replace("'", "")
    return [RUN.sub(r"\1\1\1", word)] if word else []
