"""What surrounds a word: punctuation, smilies, and the warts of real text.

A mark is (before, after, gap): the bytes put before a word, after it, and between it and the next one. A
post is then its words, each with a mark; the last word's gap is left out.
"""

from __future__ import annotations

import polars as pl

PLAIN, COMMA, STOP, QUESTION, EXCLAMATION, ELLIPSIS = range(6)
PUNCTUATION = [
    ("", "", " "),
    ("", ",", " "),
    ("", ".", " "),
    ("", "?", " "),
    ("", "!", " "),
    ("", "...", " "),
]

FIRST_SMILEY = len(PUNCTUATION)
SMILIES = [("", f" {smiley}", " ") for smiley in (":)", ":D", ";)", ":(", "xD", "^^", ":P", "<3")]

QUOTE_OPENS = FIRST_SMILEY + len(SMILIES)
QUOTE_CLOSES = QUOTE_OPENS + 1
QUOTE = [("&gt; ", "", " "), ("", "", "\n\n")]

FIRST_WART = QUOTE_CLOSES + 1
WARTS = [
    ("*", "*", " "),
    ("**", "**", " "),
    ("~~", "~~", " "),
    ("`", "`", " "),
    ("^", "", " "),
    ("/u/", "", " "),
    ("", " &amp;", " "),
    ("&lt;", "&gt;", " "),
    ("", "&#39;s", " "),
    ("[", "](https://www.example.com/page?id=7&amp;ref=a)", " "),
    ("[", '](http://example.org/wiki/A_(b) "title")', " "),
    ("", " https://www.example.org/watch?v=x1Y", " "),
    ("", " http://sub.example.net", "\n\n"),
    ("", " \U0001f602", " "),
    ("", " \U0001f469\u200d\U0001f52c\u2764\ufe0f", " "),
    ("", "oooooo!!!!!!", " "),
    ("caf\u00e9-", "", " "),
    ("", "e\u0301", " "),
    ("# ", "", "\n\n"),
    ("* ", "", "\n"),
    ("", " 42", " "),
    ("\u201c", "\u201d", " "),
]

MARKS = PUNCTUATION + SMILIES + QUOTE + WARTS
CAPITAL = 128
"""Added to a mark: the word begins with a capital letter."""


def column(part: int) -> pl.Series:
    """Return one part of every mark: 0 before, 1 after, 2 gap."""
    return pl.Series([mark[part] for mark in MARKS], dtype=pl.String)
