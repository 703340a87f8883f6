"""The six cleaning steps as one would write them with `re`, comment by comment: the peer of benchmarks/ingest.py.

Written for speed within plain Python: patterns are compiled once, steps are skipped where a cheap test says
that they have nothing to do, and words of nothing but letters and digits take a short cut.
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
EMOJI = "\u2600-\u27bf\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
WHOLE = re.compile(
    URL + "|(" + "|".join(map(re.escape, SMILEYS)) + rf")(?![^\W_])|([{EMOJI}])|((?:[^\W_]|['’‘])+)"
)
RUN = re.compile(r"(.)\1{3,}")


def tokens(text: str) -> list[str]:
    """Return the tokens of a comment."""
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
    found = []
    for word in text.split():
        stripped = word.strip('.,!?"')
        if stripped.isalnum():
            found.append(stripped)
        else:
            found += careful(word)
    return [word for word in found if word not in STOP_WORDS]


def careful(word: str) -> list[str]:
    """Return what a word with signs in it holds."""
    parts: list[str] = []
    glued = ""
    for host, www, smiley, emoji, letters in WHOLE.findall(word):
        if letters:
            glued += letters
            continue
        if glued:
            parts += bare(glued)
            glued = ""
        parts.append((host or www).rpartition("@")[2].partition(":")[0].strip(".-") or smiley or emoji)
    return parts + bare(glued)


def bare(word: str) -> list[str]:
    """Return a word without apostrophes, unless it is a stop word as written."""
    written = word.replace("’", "'").replace("‘", "'").strip("'")
    if written in STOP_WORDS:
        return []
    word = written.replace("'", "")
    return [RUN.sub(r"\1\1\1", word)] if word else []
