"""What is watched: lines from a file, or the questions of the label, each with the post that moved it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import incrowd

from incrowd.advisor.assess import assess
from incrowd.advisor.watch import Watch
from incrowd.advisor.watch_alerts import Alert, Terminal
from incrowd.advisor.watch_policy import (
    NOT_BY_YOU,
    WatchPolicy,
    default_policy,
    is_crossed,
    load_policy,
    say_level,
    watchable_questions,
)
from incrowd.crowd import Crowd
from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.following import Line, LineReading
from incrowd.measures.protocol import AdvisorOptions, Level, ThemeName
from incrowd.synthetic import demo_person


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
        (
            "[[line]]\nmeasure='anonymity'\ncommunity='a'\nbelow=3\n[alerts]\nmail='x'",
            r"\[alerts\]: unknown setting 'mail'",
        ),
        (
            "[[line]]\nquestion = 'told'\n[alerts]\nterminal = 'no'",
            r"\[alerts\]: terminal: expected true or false",
        ),
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


NOW = 1_400_000_000
DAY = 86_400
HARMLESS = "the kettle is on and the ribbons are blue"
TELLING = (
    "I am a 31 year old female dentist and I live in Duluth, Minnesota. My daughter goes to school here."
)
TOLD = WatchPolicy(questions=(ThemeName.TOLD,))
WHO = "biso_55"


def posts(*texts: str, user: str = WHO) -> pl.DataFrame:
    rows = [(user, "cooking", NOW + place * DAY, text) for place, text in enumerate(texts)]
    return pl.DataFrame(rows, schema=["user", "community", "time", "text"], orient="row")


def as_lines(frame: pl.DataFrame) -> str:
    return "".join(json.dumps(row) + "\n" for row in frame.iter_rows(named=True))


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    """A crowd of one's own: imports come into it."""
    return demo_person(users=60, seed=5).crowd(tmp_path / "crowd")


def test_a_file_is_followed_and_the_alert_names_the_post_it_came_with(
    tiny_crowd: Crowd, tmp_path: Path
) -> None:
    file, seen = tmp_path / "new.jsonl", list[Alert]()
    file.write_text("")
    for more in (None, [HARMLESS], [HARMLESS + " again", TELLING, "and ribbons"], ["more of it"]):
        if more:
            with file.open("a") as grown:
                grown.write(as_lines(posts("others say hello", user="somebody")))
                grown.write(as_lines(posts(*more)))
        with Watch(
            tiny_crowd, WHO, TOLD, tmp_path / "state", sinks=[Terminal(seen.append)], follow=file
        ) as watch:
            watch.step()
            watch.step()
            standing = watch.standings()[ThemeName.TOLD]
    (alert,) = seen
    assert (alert.crossed, alert.crossing, alert.level) == (True, 1, str(standing.level))
    assert alert.value == standing.risk > 0.1
    assert alert.sentence.startswith("What have you told about yourself? ")
    assert standing.sentence in alert.sentence
    assert alert.sentence.endswith(
        " It came with your post of 2014-05-14 in cooking (number 3 of 4 new ones)."
    )


def test_the_level_is_that_of_an_assessment_after_the_import(crowd: Crowd, tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    news = posts(HARMLESS, TELLING)
    file.write_text(as_lines(news))
    with Watch(crowd, WHO, None, tmp_path / "state", sinks=[], follow=file) as watch:
        watch.step()
        followed = watch.standings()[ThemeName.TOLD]
    crowd.add_frame(news)
    report = assess(Crowd(crowd.path), WHO, options=AdvisorOptions(advice=False))
    imported = next(theme for theme in report.themes if theme.name is ThemeName.TOLD)
    assert (followed.level, followed.sentence) == (imported.level, imported.sentence)
    with Watch(Crowd(crowd.path), WHO, None, tmp_path / "again", sinks=[]) as watch:
        watch.step()
        standings = watch.standings()
    assert {name: one.level for name, one in standings.items()} == {
        theme.name: theme.level for theme in report.themes if theme.name in watchable_questions()
    }


def test_an_import_that_brings_somebody_to_another_level_says_with_which_post(
    crowd: Crowd, tmp_path: Path
) -> None:
    seen = list[Alert]()
    with Watch(crowd, WHO, TOLD, tmp_path / "state", sinks=[Terminal(seen.append)]) as watch:
        watch.step()
        assert watch.standings()[ThemeName.TOLD].level is Level.WELL_HIDDEN
        assert seen == []
        Crowd(crowd.path).add_frame(posts(HARMLESS, TELLING, "last one"))
        watch.step()
        Crowd(crowd.path).add_frame(posts("others", user="somebody"))
        watch.step()
    (alert,) = seen
    assert (alert.level, alert.crossed) == ("at risk", True)
    assert alert.sentence.startswith("What have you told about yourself? At risk. Together, ")
    assert alert.sentence.endswith(
        " It came with your post of 2014-05-14 in cooking (number 2 of 3 new ones)."
    )
    assert NOT_BY_YOU not in alert.sentence


def test_a_level_that_changed_says_what_it_was_before(tiny_crowd: Crowd) -> None:
    report = assess(tiny_crowd, WHO, options=AdvisorOptions(advice=False, thorough=False))
    told = next(theme for theme in report.themes if theme.name is ThemeName.TOLD)
    said = say_level(ThemeName.TOLD, told, Level.WATCH, NOT_BY_YOU)
    assert said == (
        f"What have you told about yourself? Well hidden, watch before. {told.sentence} "
        "No new post of yours did it: others write differently now."
    )


def test_the_command_watches_every_question_that_posts_can_move(
    tiny_crowd: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("watch", tiny_crowd.path, "--user", WHO, "--state", tmp_path / "state", "--once", "--json")
    said = incrowd(capsys, *arguments).out.splitlines()
    alerts, state = [json.loads(line) for line in said[:-1]], json.loads(said[-1])["state"]
    assert [one["line"] for one in state] == [f"level|{name}" for name in watchable_questions()]
    bad = {one["line"]: one["level"] for one in state if one["level"] in ("watch", "at risk")}
    assert {one["line"]: one["level"] for one in alerts} == bad != {}
    again = incrowd(capsys, *arguments[:-1]).out
    assert "ALERT" not in again
    assert ThemeName.SINGLED_OUT.question in again
