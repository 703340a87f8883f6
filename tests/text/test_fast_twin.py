from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incrowd.text import TextOptions, tokenise
from incrowd.text import tokeniser as tokeniser_module
from incrowd.text.reference import cut_runs
from incrowd.text.tokeniser import Tokeniser

OPTIONS = {
    "default": TextOptions(),
    "keeping stop words": TextOptions(keep_stopwords=True),
    "entities left alone": TextOptions(compat_gt=True, keep_stopwords=True),
    "letter marks kept": TextOptions(letter_marks=True, keep_stopwords=True),
    "own lists": TextOptions(stop_words=("he'll", "ß", "😂", "cat"), smileys=("o.o", "(y)", "'", "Ⓐ!", "-")),
    "simple": TextOptions(tokens="simple"),
    "simple, keeping stop words": TextOptions(tokens="simple", keep_stopwords=True),
}

WORDS = [
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
    "\u212a",
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
    "Ⱥ",
    "𝒜",
    "𐐀",
    "x²",
    "½",
]  # fmt: skip)
SIGNS = [
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
    "😂",
    "😂😂😂😂😂",
    "❤\ufe0f",
    "👩\u200d👩\u200d👧",
    "👍🏽",
    "🇩🇪",
    "Ⓐ!",
    "ⓐ!",
    "!?",
    "...",
    "—",
    "°",
    "©",
    "∇",
    "•",
    "┻━┻",
]  # fmt: skip)
URLS = [
    "http://example.org",
    "HTTPS://User:pw@Example.ORG:80/a(b)c?d#e",
    "www.youtube.com/watch?v=1",
    "awww.so",
    "www.",
    "ftp://a.b/",
    "://",
    "http://",
    "http:///x",
    "http://[::1]/",
    "example.org/x",
    "me@example.org",
    "wWw.Ünï.de",
    "https://a-b.c/d?e=f&amp;g",
    "http://-x.y-",
    "http://x.y#z",
    "HtTps://x.Y/(z)",
    "http://x.y/z:)",
    "https://x.y,",
]  # fmt: skip)
MARKUP = [
    ">",
    ">!",
    "!<",
    "`",
    "``",
    "```",
    "~~~",
    "~~",
    "*",
    "**",
    "_",
    "#",
    "-",
    "1.",
    "12)",
    "|",
    "|:-|:-|",
    ":--|--:",
    "[",
    "](",
    ")",
    "](/r/x)",
    "](http://a.b)",
    "](/s",
    "^(",
    "\\",
    "\\`",
    "\\_",
    "&gt;",
    "&lt;",
    "&amp;",
    "&amp;gt;",
    "&#39;",
    "&#x200B;",
    "&nbsp;",
    "&copy",
    "&",
    "&#10;",
    "&#96;",
    "https://a-b.c/d?e=f&amp;g",
    "http://-x.y-",
    "http://x.y#z",
    "HtTps://x.y/(z)",
    "１. ",
]  # fmt: skip)
LAYOUT = ["> ", "    ", "\t", "\n```\n", "\n~~~\n", "1. ", "\n\n    ", "\n> ", "\n1) ", "\r\n"]
SPACES = [" ", " ", "\n", "\n\n", "\u00a0", "\u2003", "\u3000", "\x85", "\x1f", "\x00", ""]
POOLS = (WORDS, SIGNS, URLS, MARKUP, LAYOUT, SPACES)
LETTERS = st.characters(exclude_categories=("Cs",))
INGREDIENTS = st.one_of(*map(st.sampled_from, POOLS), st.text(LETTERS, max_size=3))
SOUP = st.lists(INGREDIENTS, max_size=25).map("".join)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@settings(max_examples=60, deadline=None)
@given(texts=st.lists(SOUP, max_size=8))
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


@given(texts=st.lists(SOUP, max_size=8), cut=st.integers(0, 8))
@settings(max_examples=30, deadline=None)
def test_what_came_before_does_not_matter(texts: list[str], cut: int) -> None:
    options = OPTIONS["default"]
    tokeniser = Tokeniser(options)
    parts = [tokeniser.numbers(pl.Series(part, dtype=pl.String)) for part in (texts[:cut], texts[cut:])]
    tokens = [tokeniser.vocabulary().gather(part.numbers).to_list() for part in parts]
    assert tokens[0] + tokens[1] == [token for text in texts for token in tokenise(text, options)]


def test_every_character_of_the_tables_is_treated_as_the_reference_does() -> None:
    characters = [chr(code) for code in range(0x3100) if not 0xD800 <= code < 0xE000] + list("😂𝒜𐐀")
    texts = [f"a{character}b {character}{character}" for character in characters]
    for options in (OPTIONS["keeping stop words"], OPTIONS["simple, keeping stop words"]):
        assert fast_tokens(texts, options) == [tokenise(text, options) for text in texts]


def test_tables_grow_and_chunks_are_forgotten_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokeniser_module, "SLICE_BYTES", 5_000)
    monkeypatch.setattr(tokeniser_module, "FORGET_CHUNKS_BYTES", 1)
    texts = [f"word{n:x} :) don't{n % 7} http://host{n % 50}.example/{n}" for n in range(40_000)]
    options = OPTIONS["default"]
    expected = [[f"word{n:x}", ":)", f"dont{n % 7}", f"host{n % 50}.example"] for n in range(40_000)]
    assert [[cut_runs(tokens[0]), *tokens[1:]] for tokens in expected] == fast_tokens(texts, options)


def test_only_posts_with_rare_markup_take_the_long_way() -> None:
    tokeniser = Tokeniser(OPTIONS["default"])
    common = [
        "this &amp; that",
        "> quote",
        "&gt; quote\n1. x",
        ">!spoiler!<",
        "**bold** _it_",
        "naïve’s “quote”…",
    ]
    tokeniser.numbers(pl.Series([*common, "[text](https://example.org/x)"]))
    assert (tokeniser.posts, tokeniser.routed_posts) == (7, 0)
    tokeniser.numbers(pl.Series(["a\n\n    code", "`x`", "&eacute;", "[a](/b)", "a|b", "\\*", "~~~\nx"]))
    assert (tokeniser.posts, tokeniser.routed_posts) == (14, 7)


def test_nothing_gives_nothing() -> None:
    assert fast_tokens([], OPTIONS["default"]) == []
    found = Tokeniser(OPTIONS["default"]).numbers(pl.Series([None, "", "the"], dtype=pl.String))
    assert found.lengths.tolist() == [0, 0, 0]
