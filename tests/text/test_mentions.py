"""A word is somebody else's name if it is only ever used to mention them."""

from __future__ import annotations

import pytest

from incrowd.text import TextOptions, tokenise
from incrowd.text.mentions import SOMEBODY, mentioned_words, without_mentions, word_evidence

MENTIONS = [
    "@Zarq_Vex",
    "hi,@zarqvex!",
    "(u/zarq_vex)",
    "/u/Zarq-Vex's",
    "u/zarq\\_vex",
    "@zarq@vex.example",
    "zarq.vex@mail.example",
    "https://site.example/user/zarqvex",
    "[zarqvex](https://site.example/@zarqvex)",
]


@pytest.mark.parametrize("options", [TextOptions(), TextOptions(tokens="simple")])
@pytest.mark.parametrize("mention", MENTIONS)
def test_every_way_to_mention_somebody_is_known(mention: str, options: TextOptions) -> None:
    text = f"Green tea {mention} with lemon"
    named = mentioned_words([text], options)
    assert named >= {word for word in tokenise(text, options) if "zarq" in word or "vex" in word}
    assert not named & {"green", "tea", "lemon"}
    assert "zarq" not in without_mentions(text).lower()


def test_a_word_that_is_also_used_as_a_word_is_shown() -> None:
    assert mentioned_words(["@chess rocks", "I like chess"], TextOptions()) == frozenset()
    assert not mentioned_words(["you/me and 3/4 at u / s"], TextOptions())


def test_mentions_are_one_part_and_the_parts_still_add_up() -> None:
    parts = word_evidence([("tea", 0.3), ("zarq", 0.25), ("cup", 0.2), ("vex", 0.1)], {"zarq", "vex"})
    assert [part.what for part in parts] == [SOMEBODY, "the word “tea”", "the word “cup”"]
    assert sum(part.contribution for part in parts) == pytest.approx(0.85)
