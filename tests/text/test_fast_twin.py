from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incrowd.text import TextOptions, alphabet, fast, tokenise
from incrowd.text.fast import Tokeniser

OPTIONS = {
    "default": TextOptions(),
    "keeping stop words": TextOptions(keep_stopwords=True),
    "entities left alone": TextOptions(compat_gt=True, keep_stopwords=True),
    "letter marks kept": TextOptions(letter_marks=True, keep_stopwords=True),
    "own lists": TextOptions(stop_words=("he'll", "ß", "😂", "cat"), smileys=("o.o", "(y)", "'", "Ⓐ!", "-")),
    "simple": TextOptions(tokens="simple"),
    "simple, keeping stop words": TextOptions(tokens="simple", keep_stopwords=True),
}

WORDS = st.sampled_from(
    [
        "the",
        "Don't",
        "he’ll",
        "e-mail",
        "coooool",
        "10000000",
        "naïve",
        "İSTANBUL",
        "ΟΔΟΣ",
        "ΟΔΟΣ.",
        "Straße",
        "K",
    ]
    + [
        "हिन्दी",
        "ภาษาไทย",
        "Москва",
        "日本語",
        "한국어",
        "ᄒ",
        "ᅡ",
        "ᆫ",
        "e\u0301",
        "z\u0335\u0321a\u0300\u0301",
        "ﬁ",
        "ǆ",
    ]
    + [
        "\u212b",
        "\u037e",
        "\u1fef",
        "\ufffd",
        "\u200b",
        "\u00ad",
        "'quoted'",
        "rock'n'roll",
        "a'b'c'",
        "aa'aa'aa",
    ]
)
SIGNS = st.sampled_from(
    [
        ":)",
        ":DDD",
        "xD",
        "<3",
        "^_^",
        "-_-",
        "T_T",
        "¯\\_(ツ)_/¯",
        "¯\\\\\\_(ツ)_/¯",
        "ಠ_ಠ",
        ">:(",
        "o.o",
        "(y)",
        "d:",
    ]
    + ["😂", "😂😂😂😂😂", "❤️", "👩‍👩‍👧", "👍🏽", "🇩🇪", "Ⓐ!", "ⓐ!", "!?", "...", "—", "°", "©"]
)
URLS = st.sampled_from(
    [
        "http://example.org",
        "HTTPS://User:pw@Example.ORG:80/a(b)c?d#e",
        "www.youtube.com/watch?v=1",
        "awww.so",
        "www.",
    ]
    + [
        "ftp://a.b/",
        "://",
        "http://",
        "http:///x",
        "http://[::1]/",
        "example.org/x",
        "me@example.org",
        "wWw.Ünï.de",
    ]
)
MARKUP = st.sampled_from(
    [
        "> ",
        ">",
        ">!",
        "!<",
        "    ",
        "\t",
        "`",
        "``",
        "```",
        "\n```\n",
        "~~~\n",
        "~~",
        "*",
        "**",
        "_",
        "#",
        "- ",
        "1. ",
    ]
    + [
        "12) ",
        "|",
        "|:-|:-|",
        ":--|--:",
        "[",
        "](",
        ")",
        "](/r/x)",
        "](http://a.b)",
        '](/s "hidden")',
        "^(",
        "\\",
    ]
    + ["\\`", "\\_", "&gt;", "&lt;", "&amp;", "&amp;gt;", "&#39;", "&#x200B;", "&nbsp;", "&copy", "&", "\r\n"]
)
SPACES = st.sampled_from([" ", " ", "\n", "\n\n", "\u00a0", "\u2003", "\u3000", "\x85", "\x1f", "\x00", ""])
SOUP = st.lists(st.one_of(WORDS, SIGNS, URLS, MARKUP, SPACES, st.text(max_size=3)), max_size=25).map("".join)
VALID = SOUP.map(lambda text: text.encode("utf-8", "ignore").decode())


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(VALID, max_size=8))
@example(texts=["", "a", "\u0130\u0130", "ab'", "'", "😂a😂😂😂😂😂a", "www.", "aaaa😂aaaa"])
@example(texts=["1. one\n10) two\n> three\n    four\n\n    five"])
def test_the_fast_twin_finds_the_reference_tokens_in_order(options: TextOptions, texts: list[str]) -> None:
    assert fast_tokens(texts, options) == [tokenise(text, options) for text in texts]


def fast_tokens(texts: list[str], options: TextOptions) -> list[list[str]]:
    tokeniser = Tokeniser(options)
    found = tokeniser.numbers(pl.Series(texts, dtype=pl.String))
    tokens = tokeniser.vocabulary().gather(found.numbers).to_list()
    starts = found.ends - found.lengths
    return [tokens[start:end] for start, end in zip(starts, found.ends, strict=True)]
