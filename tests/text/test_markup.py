"""What Markdown leaves behind: the author's own words and nothing else."""

from __future__ import annotations

import pytest

from incrowd.text import TextOptions, tokenise

KEEP = TextOptions(keep_stopwords=True)


@pytest.mark.parametrize(
    ("post", "words"),
    [
        # code goes
        ("run `rm -rf` now", "run now"),
        ("``a ` b`` c", "c"),
        ("one ` tick and done", "one tick and done"),
        ("don\\`t \\`x\\`", "dont x"),
        ("before\n```python\nx = 1\n```\nafter", "before after"),
        ("before\n~~~\nx\n~~~\nafter", "before after"),
        ("```\nnever closed", ""),
        ("````\n```\nstill code\n````\nafter", "after"),
        ("text\n\n    indented code\n\tmore\n\nafter", "text after"),
        ("paragraph\n    goes on", "paragraph goes on"),
        ("list\n\n    - item\n    1. item", "list item item"),
        # quotes go
        ("> quoted\n>> twice\n   > thrice\nanswer", "answer"),
        (">!spoiler!< remains", "spoiler remains"),
        ("a > b", "a b"),
        # layout goes, its text stays
        (
            "# Heading\n\n**bold** *it* __b__ ~~gone~~ x^2 ^(small words)",
            "heading bold it b gone x2 small words",
        ),
        ("* one\n- two\n+ three\n1. four\n12) five", "one two three four five"),
        ("3.5 million", "35 million"),
        ("a|b\n:-|-:\nc|d", "a b c d"),
        ("|x|\n|---|\n|y|", "x y"),
        ("either|or :|", "eitheror :|"),
        ("-----\ntext\n***", "text"),
        # links leave their text and their host
        ("[my page](https://www.example.org/a?b=c)!", "my page www.example.org"),
        ('[text](http://a.example/x_(y) "a title")', "text a.example a title"),
        ('[text](</r/sub>) [hid](/s "he dies") [](#icon)', "text hid he dies"),
        (
            "![alt](http://i.example/x.png) [![in](http://i.example)](http://o.example)",
            "alt i.example in i.example o.example",
        ),
        ("[1](see below)", "1see below"),
        ("<http://auto.example/x>", "auto.example"),
        # an escaped sign is no markup
        ("\\> no quote \\*star\\* 1\\. no list", "no quote star 1 no list"),
        ("¯\\\\\\_(ツ)_/¯ ¯\\_(ツ)_/¯", "¯\\_(ツ)_/¯ ¯_(ツ)_/¯"),
    ],
)
def test_the_authors_own_words_remain(post: str, words: str) -> None:
    assert tokenise(post, KEEP) == words.split()
