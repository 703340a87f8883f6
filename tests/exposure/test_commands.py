"""The commands, as a person runs them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest

from incrowd.cli import main
from incrowd.crowd import Crowd
from incrowd.measures.exposure.topics import starter_topics

STARTER = 47
SENSITIVE = len(starter_topics().sensitive)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def incrowd(capsys: pytest.CaptureFixture[str]):
    def run(*arguments: str | Path) -> Outcome:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["incrowd", *map(str, arguments)])
            try:
                main()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


def test_topics_are_listed_checked_and_written(incrowd, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    listed = incrowd("exposure", "topics", "--out", path, "--json")
    assert len(json.loads(listed.out)["topics"]) == STARTER
    assert json.loads(listed.out)["learnt"]["held_out"]["topics"] >= 20
    assert incrowd("exposure", "topics", "--topics", path).code == 0
    path.write_text("[x]\n", encoding="utf-8")
    wrong = incrowd("exposure", "topics", "--topics", path)
    assert wrong.code == 2
    assert "expected 'domain'" in wrong.err


def test_a_person_sees_their_own_place(incrowd, tiny_crowd: Crowd) -> None:
    own = incrowd("exposure", "rank", tiny_crowd.path, "--user", "alex", "--topic", "depression", "--json")
    assert own.code == 0
    (found,) = json.loads(own.out)["assessments"]
    assert found["crowd_size"] == 60
    assert 1 <= found["value"] <= 60
    strict = incrowd("exposure", "rank", tiny_crowd.path, "--user", "alex", "--fail-above", "0")
    assert strict.code == 1
    assert "This says how it looks, not how you are." in " ".join(strict.out.replace("│", " ").split())


def test_without_a_user_only_totals_are_shown(incrowd, tiny_crowd: Crowd) -> None:
    totals = incrowd("exposure", "rank", tiny_crowd.path, "--json")
    assert totals.code == 0
    assert {row["people"] for row in json.loads(totals.out)["topics"]} == {60}
    assert not [user for user in tiny_crowd.posts().collect()["user"].unique() if user in totals.out]


def test_methods_are_compared_on_labels(incrowd, tiny_crowd: Crowd, tmp_path: Path) -> None:
    users = sorted(tiny_crowd.posts().collect()["user"].unique())
    labels = tmp_path / "labels.csv"
    votes = {"user": ["alex", *users[:9]], "topic": "depression", "vote": [1.0, 1.0] + [0.0] * 8}
    pl.DataFrame(votes).write_csv(labels)
    result = incrowd("exposure", "evaluate", tiny_crowd.path, "--labels", labels, "--json")
    assert result.code == 0
    methods = json.loads(result.out)["methods"]
    spaces = {f"{space}{dimension}" for space in ("BOW", "WORDS") for dimension in ("", "-D", "-T", "-DT")}
    assert {"ENTROPY", "DIFF-PRIV"} | spaces == set(methods)
    auc = json.loads(result.out)["auc"]["depression"]
    assert auc["default"] == auc["WORDS"]
    keys = {"r_precision_micro", "r_precision_macro", "p_at_5", "map", "ndcg"}
    assert keys <= set(methods["BOW-DT"])
    assert "alex" not in result.out
    labels.write_text("user,topic\nalex,hiv\n", encoding="utf-8")
    wrong = incrowd("exposure", "evaluate", tiny_crowd.path, "--labels", labels)
    assert (wrong.code, "add 'vote'" in wrong.err) == (2, True)


def test_people_are_drawn_judged_and_compared(incrowd, tiny_crowd: Crowd, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    options = ("--topic", "depression", "--count", "20", "--out", sheet, "--json")
    drawn = incrowd("exposure", "sample", tiny_crowd.path, *options)
    assert json.loads(drawn.out)["rows"] == 20
    frame = pl.read_csv(sheet)
    assert frame["user"].n_unique() == 20
    assert set(frame["user"]) <= set(tiny_crowd.posts().collect()["user"])
    assert frame["vote"].null_count() == 20
    blank = incrowd("exposure", "evaluate", tiny_crowd.path, "--labels", sheet)
    assert (blank.code, "fill in the column vote" in blank.err) == (2, True)
    judged = frame.with_columns(vote=pl.Series([1.0, 0.0] * 5 + [None] * 10))
    judged.write_csv(sheet)
    result = incrowd("exposure", "evaluate", tiny_crowd.path, "--labels", sheet, "--json")
    assert json.loads(result.out)["topics"]["depression"] == {"people": 10, "sensitive": 5}
    wrong = incrowd("exposure", "sample", tiny_crowd.path, "--topic", "hiv", "--count", "0", "--out", sheet)
    assert (wrong.code, "at least one person" in wrong.err) == (2, True)


def test_a_space_is_learnt_and_used(incrowd, tiny_crowd: Crowd, tmp_path: Path) -> None:
    model = tmp_path / "lda.npz"
    options = ("--dims", "8", "--rounds", "5", "--out", model)
    learnt = incrowd("exposure", "train", tiny_crowd.path, *options, "--json")
    assert learnt.code == 0, learnt.err
    assert json.loads(learnt.out)["space"] == "LDA"
    used = incrowd(
        "exposure", "rank", tiny_crowd.path, "--model", model, "--user", "alex", "--topic", "debts", "--json"
    )
    assert json.loads(used.out)["assessments"][0]["assumptions"]["parameters"]["method"] == "LDA-T"
    lost = incrowd("exposure", "train", tiny_crowd.path, "--out", tmp_path / "none" / "lda.npz")
    assert (lost.code, "expected an existing folder" in lost.err) == (2, True)
    both = incrowd("exposure", "rank", tiny_crowd.path, "--model", model, "--topics", model)
    assert (both.code, "exclude each other" in both.err) == (2, True)
    page, sheet, votes, out = (tmp_path / name for name in ("j.html", "s.csv", "v.csv", "t.toml"))
    asked = incrowd("exposure", "annotate", model, "--page", page, "--sheet", sheet, "--json")
    assert json.loads(asked.out) == {"topics": 8}
    assert pl.read_csv(sheet).height == 8
    votes.write_text("judge,topic,sensitive,domain\na,0,1,law\nb,0,1,law\n", encoding="utf-8")
    counted = incrowd("exposure", "annotate", model, "--votes", votes, "--out", out, "--json")
    assert json.loads(counted.out)["sensitive"] == 1
    assert incrowd("exposure", "topics", "--topics", out).code == 0
    assert incrowd("exposure", "annotate", model).code == 2
    wrong = incrowd("exposure", "train", tiny_crowd.path, *options, "--space", "magic")
    assert (wrong.code, "lda, word2vec or embeddings" in wrong.err) == (2, True)


def test_topics_nobody_points_to_are_counted_apart(incrowd, tmp_path: Path) -> None:
    enough = "we went to the shop in the morning and then we all had a cup of tea at home with them " * 2
    posts = [("me", 0, enough + "debt loan creditor"), *((f"p{k}", 0, enough) for k in range(9))]
    frame = pl.DataFrame(posts, schema=["user", "time", "text"], orient="row")
    crowd = Crowd.from_frame(frame, path=tmp_path / "crowd")
    told = incrowd("exposure", "rank", crowd.path, "--user", "me").out
    panels = told.count("value ")
    assert panels >= 1
    assert f"Nothing you wrote points to the other {SENSITIVE - panels} topics." in told
    quiet = incrowd("exposure", "rank", crowd.path, "--user", "p1").out
    assert quiet.strip() == f"Nothing you wrote points to the {SENSITIVE} topics."
    one = incrowd("exposure", "rank", crowd.path, "--user", "p1", "--topic", "debts").out
    assert "Nothing you wrote points to debts" in one
    assert "1 of 10" not in one


def test_quantiles_are_published(incrowd, tiny_crowd: Crowd, tmp_path: Path) -> None:
    path = tmp_path / "quantiles.json"
    made = incrowd("exposure", "publish", tiny_crowd.path, "--out", path, "--json")
    assert json.loads(made.out) == {"out": str(path), "people": 60, "groups": 6, "topics": STARTER}
    assert json.loads(path.read_text())["edges"] == [0, 10, 20, 30, 40, 50, 60]

    alone = ("exposure", "rank", tiny_crowd.path, "--quantiles", path, "--topic", "debts", "--json")
    (found,) = json.loads(incrowd(*alone, "--user", "alex").out)["assessments"]
    whole = incrowd("exposure", "rank", tiny_crowd.path, "--topic", "debts", "--json", "--user", "alex")
    best, worst = found["interval"]
    assert best <= json.loads(whole.out)["assessments"][0]["value"] <= worst
    assert incrowd(*alone).code == 2
    other = incrowd(*alone, "--user", "alex", "--weeks", "2")
    assert (other.code, "published with weeks = 3" in other.err) == (2, True)


@pytest.mark.skipif(find_spec("wordllama") is None, reason="needs the extra embeddings")
def test_a_space_of_embeddings_is_made_and_used(incrowd, tiny_crowd: Crowd, tmp_path: Path) -> None:
    model = tmp_path / "emb.npz"
    learnt = incrowd("exposure", "train", tiny_crowd.path, "--space", "embeddings", "--out", model, "--json")
    assert (json.loads(learnt.out)["space"], json.loads(learnt.out)["dims"]) == ("EMB", 256)
    used = incrowd("exposure", "rank", tiny_crowd.path, "--model", model, "--user", "alex", "--json")
    found = json.loads(used.out)["assessments"]
    assert found[0]["assumptions"]["parameters"]["method"] == "EMB-T"
    assert all(
        sum(part["contribution"] for part in one["evidence"]) == pytest.approx(one["explained"])
        for one in found
    )
