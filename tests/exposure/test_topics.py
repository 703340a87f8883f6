"""Topics are a file people can read and edit; what cannot work is said before anything is scored."""

from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.errors import InputError, NotInCrowd, UnreadableSource
from incrowd.measures.exposure.topics import load_topics, starter_file, starter_topics
from incrowd.text import tokenise


def test_the_starter_set_has_the_papers_five_topics_and_those_people_would_name() -> None:
    names = set(starter_topics().sensitive)
    assert {"depression", "drugs", "pregnancy", "hiv", "debts"} <= names
    assert {"eating-disorders", "self-harm", "sexuality", "religion", "politics", "gambling"} <= names
    assert {"immigration-status", "unemployment", "legal-trouble", "chronic-illness"} <= names


def test_every_starter_topic_has_twenty_words_that_a_post_can_hold_and_four_siblings() -> None:
    topics = starter_topics()
    for place, topic in enumerate(topics.topics):
        assert len(topic.words) == 20
        assert all(tokenise(word) == [word] for word in topic.words)
        assert len(topics.siblings(place)) >= 4
        assert place not in topics.siblings(place)


def test_the_starter_set_written_to_a_file_reads_back_the_same(tmp_path: Path) -> None:
    path = tmp_path / "topics.toml"
    path.write_text(starter_file(), encoding="utf-8")
    assert load_topics(path) == starter_topics()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "at least one topic"),
        ("a = 1", "expected a table"),
        ('[a]\nwords = ["x"]', "expected 'domain'"),
        ('[a]\ndomain = "d"\nwords = []', "at least one word"),
        ('[a]\ndomain = "d"\nwords = ["debt", "debt"]', "occurs twice"),
        ('[a]\ndomain = "d"\nwords = ["the"]', "no stop word"),
        ('[a]\ndomain = "d"\nwords = ["Student Loan"]', "never occurs as one word"),
        ('[a]\ndomain = "d"\nwords = ["debt"]\nsensitve = true', "unknown key 'sensitve'"),
        ('[a]\ndomain = "d"\nwords = ["debt"]\nsensitive = 1', "true or false"),
    ],
)
def test_a_mistake_in_a_topic_file_is_explained(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "topics.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_topics(path)


def test_a_missing_or_broken_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="no such file"):
        load_topics(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[[[", encoding="utf-8")
    with pytest.raises(UnreadableSource, match="TOML"):
        load_topics(tmp_path / "bad.toml")


def test_an_unknown_topic_lists_those_that_exist() -> None:
    with pytest.raises(NotInCrowd, match="it has: depression"):
        starter_topics().place("happiness")
