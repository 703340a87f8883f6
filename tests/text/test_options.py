from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.errors import InputError
from incrowd.text import TextOptions, tokenise
from incrowd.text.reference import composed


def test_the_hash_names_everything_that_decides_the_tokens(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("# a comment\nCats\n\ndogs\n", encoding="utf-8")
    different = [
        TextOptions(),
        TextOptions(tokens="simple"),
        TextOptions(keep_stopwords=True),
        TextOptions(compat_gt=True),
        TextOptions(letter_marks=True),
        TextOptions(stop_words=("cats",)),
        TextOptions(stop_words=words),
        TextOptions(smileys=(":)",)),
    ]
    assert len({options.hash for options in different}) == len(different)


def test_the_hash_ignores_what_does_not_decide() -> None:
    assert TextOptions(stop_words=("a", "B")).hash == TextOptions(stop_words=("b", "a", "A")).hash
    assert TextOptions(tokens="simple").hash == TextOptions(tokens="simple", compat_gt=True).hash
    kept = TextOptions(keep_stopwords=True)
    assert kept.hash == TextOptions(keep_stopwords=True, stop_words=("x",)).hash


def test_a_list_in_a_file_is_read_once_and_becomes_a_value(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("# a comment\nCats\n\ndogs\n", encoding="utf-8")
    options = TextOptions(stop_words=str(words))
    assert options == TextOptions(stop_words=("Cats", "dogs"))
    words.unlink()
    assert tokenise("cats and dogs", options) == ["and"]


def test_our_lists_are_clean() -> None:
    options = TextOptions()
    assert len(options.stop_word_list) > 500
    assert len(options.smiley_list) > 100
    assert all(len(entry.split()) == 1 for entry in options.stop_word_list + options.smiley_list)
    assert tokenise(" ".join(options.stop_word_list)) == []


def test_every_smiley_of_ours_survives() -> None:
    for smiley in TextOptions().smiley_list:
        word, found = tokenise("hm " + smiley.replace("\\", "\\\\"))
        assert word == "hm"
        assert found == composed(smiley)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tokens": "words"}, "tokens must be one of 'full', 'simple', not 'words'"),
        ({"stop_words": 3}, "stop_words must be a tuple of words or a file, not int"),
        ({"smileys": "/no/such/file"}, "cannot be read .*No such file.*one entry per line"),
    ],
)
def test_wrong_options_say_what_is_right(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TextOptions(**wrong)  # type: ignore[arg-type]


def test_a_list_that_is_no_text_is_refused(tmp_path: Path) -> None:
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        TextOptions(stop_words=binary)
