"""Each step of the text pipeline by hand, with the errata taken."""

from __future__ import annotations

import pytest

from incrowd.text import TextOptions, tokenise
from incrowd.text.reference import chunk_tokens, composed, cut_runs, lexicon_of

KEEP = TextOptions(keep_stopwords=True)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # step 0: entities come first, or quote marks turn into the word "gt"
        ("R&amp;D &lt;3", ["rd", "<3"]),
        ("&amp;#x200B; zero &nbsp; width", ["zero", "width"]),
        # step 1
        ("LoWeR ÄÖÜ ΟΔΟΣ Straße", ["lower", "äöü", "οδος", "straße"]),
        # step 3: a letter takes up its marks, stacked ones go
        ("e\u0301te\u0301", ["été"]),
        ("z\u0335\u0321\u0300\u0301a\u0300\u0301\u0302l", ["zàl"]),
        # step 4: the host remains, www. too, nothing is made canonical
        ("https://www.youtube.com/watch?v=1 http://youtu.be/1", ["www.youtube.com", "youtu.be"]),
        ("(see HTTP://En.Wikipedia.org/wiki/Foo_(bar)_baz).", ["see", "en.wikipedia.org"]),
        ("ftp://me:secret@files.example.org:21/x www.example.org.", ["files.example.org", "www.example.org"]),
        ("<https://a.example>,http://b.example;", ["a.example", "b.example"]),
        ("http:// www. awww.sweet http://...", ["www", "awwwsweet"]),
        # step 5: punctuation goes, inside words too; smileys stay, whatever their case
        ("don't e-mail (and/or) *this*, ok?!", ["dont", "email", "andor", "this", "ok"]),
        ("Great :D great :d", ["great", ":d", "great", ":d"]),
        ("thanks:) ok:-( <3 ^_^ \\o/", ["thanks", ":)", "ok", ":-(", "<3", "^_^", "\\o/"]),
        ("at 12:30 or 3:3, ratio=3", ["at", "1230", "or", "33", "ratio3"]),
        (":)))))) :DDDD", [":)", ":d"]),
        ("5€ 50% a_b #tag @name", ["5", "50", "ab", "tag", "name"]),
        # emoji are kept like smileys, one token each
        ("lol😂😂 ❤️ 👍🏽", ["lol", "😂", "😂", "❤", "👍"]),
        # step 6: any character, but not in hosts and smileys
        ("coooooool heyyyy 1000000 ааааа 😂😂😂😂😂", ["coool", "heyyy", "1000", "ааа", "😂", "😂", "😂"]),
        ("a-a-a-a http://wwwwwwow.example", ["aaa", "wwwwwwow.example"]),
        # digits remain
        ("2 and 42", ["2", "and", "42"]),
    ],
)
def test_tokens_by_hand(text: str, tokens: list[str]) -> None:
    assert tokenise(text, KEEP) == tokens


def test_stop_words_go_last() -> None:
    assert tokenise("The island and its people: we'll find them!") == ["island", "people", "find"]


def test_a_stop_word_is_looked_up_as_written() -> None:
    assert tokenise("he'll he’ll hell 'he'll' heeeee'll") == ["hell", "heeell"]


def test_entities_left_alone_give_back_the_word_gt() -> None:
    options = TextOptions(compat_gt=True)
    assert tokenise("&gt; quoted line\n\nanswer", options) == ["gt", "quoted", "line", "answer"]
    assert tokenise("&gt; quoted line\n\nanswer") == ["answer"]


def test_vowel_signs_are_marks_unless_asked_for() -> None:
    assert tokenise("हिन्दी ภาษาไทย") == ["हनद", "ภาษาไทย"]
    assert tokenise("हिन्दी กี่", TextOptions(letter_marks=True)) == ["हिन्दी", "กี่"]
    assert tokenise("z\u0301\u0336 ❤\ufe0f", TextOptions(letter_marks=True)) == ["ź", "❤"]


def test_simple_tokens_are_runs_of_ascii_letters_digits_and_apostrophes() -> None:
    simple = TextOptions(tokens="simple", keep_stopwords=True)
    assert tokenise("Don't go, naïve http://x.org :D", simple) == [
        "don't",
        "go",
        "na",
        "ve",
        "http",
        "x",
        "org",
        "d",
    ]
    assert tokenise("Don't go home", TextOptions(tokens="simple")) == ["home"]


def test_own_lists_replace_ours() -> None:
    options = TextOptions(stop_words=("Cats",), smileys=("(Y)",))
    assert tokenise("the cats (y) :)", options) == ["the", "(y)"]


def test_a_smiley_that_punctuation_does_not_break_is_a_word() -> None:
    assert tokenise("xdddd", TextOptions(smileys=("xd",))) == ["xddd"]


@pytest.mark.parametrize(
    "hostile",
    [
        "[](",
        "[" * 3 + "](",
        "](" + " " * 50,
        "`" * 7 + " ",
        "a`",
        "http://",
        ":-" * 4,
        "(" * 9,
        "> ",
        "&amp;",
        "\\",
        "|:-",
        "^",
    ],
)
def test_hostile_text_takes_linear_time(hostile: str) -> None:
    # A quadratic pattern would not come back within the life of this test run.
    tokenise(hostile * (300_000 // len(hostile)))
    tokenise("".join("`" * n + "a" for n in range(700)))
    chunk_tokens(hostile.replace(" ", "") * 20_000, lexicon_of(TextOptions()))


def test_helpers_do_what_their_names_say() -> None:
    assert cut_runs("aaaabbbcccccd") == "aaabbbcccd"
    assert composed("o\u0308\u0323") == "ọ"  # NFC takes up one mark; the other is left over and goes
