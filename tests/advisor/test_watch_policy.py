"""What to watch: read from a file, or chosen for somebody who has none."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from incrowd.advisor.watch import Watch
from incrowd.advisor.watch_policy import default_policy, is_crossed, load_policy
from incrowd.crowd import Crowd
from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.following import Line, LineReading
from incrowd.measures.protocol import ThemeName


def test_a_policy_comes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "watch.toml").write_text(
        """
        [[line]]
        measure = "anonymity"
        community = "tea"
        below = 10
        [[line]]
        measure = "linkability"
        source = "tea"
        target = "money"
        below = 5
        [[line]]
        measure = "exposure"
        topic = "debts"
        rank = 20
        [alerts]
        jsonl = "alerts.jsonl"
        terminal = false
        """
    )
    policy = load_policy(tmp_path / "watch.toml")
    assert [line.key for line in policy.lines] == [
        "anonymity|tea|10",
        "linkability|tea|money|5",
        "exposure|debts|20",
    ]
    assert policy.jsonl == tmp_path / "alerts.jsonl"
    assert not policy.terminal


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "at least one"),
        ("[[line]]\nmeasure = 'guess'", "measure"),
        ("[[line]]\nmeasure = 'anonymity'\nbelow = 3", "'community' is missing"),
        ("[[line]]\nmeasure = 'anonymity'\ncommunity = 'a'\nbelow = '3'", "whole number"),
        ("[[line]]\nmeasure = 'anonymity'\ncommunity = 'a'\nbelow = 3\ntopic = 'x'", "unknown key 'topic'"),
        ("[[line]]\nmeasure = 'anonymity'\ncommunity = 'a'\nbelow = 0", "at least 1"),
        ("[line]\nmeasure = 'anonymity'", "double brackets"),
        ("[[line]]\nmeasure='anonymity'\ncommunity='a'\nbelow=3\n[alerts]\nmail='x'", "unknown key 'mail'"),
        ("[[line]]\nquestion = 'inferable'", "'question' must be one of"),
        ("[[line]]\nquestion = 'told'\nbelow = 3", "unknown key 'below'"),
        ("[[line]]\nquestion = 'told'\n[[line]]\nquestion = 'told'", "twice"),
        ("lines = 3", "unknown table"),
        ("[[line]", "TOML"),
    ],
)
def test_a_policy_that_cannot_be_read_says_why(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "watch.toml").write_text(text)
    with pytest.raises(InputError, match=said):
        load_policy(tmp_path / "watch.toml")
    with pytest.raises(UnreadableSource, match="no such"):
        load_policy(tmp_path / "none.toml")


def test_without_a_policy_every_question_is_watched_that_a_post_can_move(tmp_path: Path) -> None:
    policy = default_policy()
    assert policy.lines == ()
    assert {str(name) for name in policy.questions} == {"linkable", "singled out", "exposed", "told"}
    crowd = Crowd.from_frame(pl.DataFrame({"user": ["a"], "community": ["tea"], "text": ["kettle"]}))
    with pytest.raises(InputError, match="nothing to watch"):
        Watch(crowd, "somebody new", None, tmp_path / "state", sinks=[], follow=tmp_path / "new.jsonl")


def test_a_policy_may_name_questions_beside_lines(tmp_path: Path) -> None:
    (tmp_path / "watch.toml").write_text(
        "[[line]]\nquestion = 'singled out'\n[[line]]\nmeasure='anonymity'\ncommunity='a'\nbelow=3\n"
    )
    policy = load_policy(tmp_path / "watch.toml")
    assert policy.questions == (ThemeName.SINGLED_OUT,)
    assert [line.key for line in policy.lines] == ["anonymity|a|3"]


def test_a_rank_that_everybody_shares_without_a_score_crosses_nothing() -> None:
    line = Line(measure="exposure", community="tea", topic="debts", at=5)
    assert not is_crossed(line, LineReading(value=1, of=9, score=0.0))
    assert is_crossed(line, LineReading(value=5, of=9, score=0.1))
    assert not is_crossed(line, LineReading(value=float("nan"), of=9))
