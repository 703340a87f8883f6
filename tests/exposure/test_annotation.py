"""Judges' votes: counted by hand, written and read back; the page saves what was ticked."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from incrowd.errors import InputError, SchemaError, UnreadableSource
from incrowd.measures.exposure.learnt_spaces import LdaSpace
from incrowd.measures.exposure.topics import Topic, TopicSet, load_topics
from incrowd.measures.exposure.training import (
    DOMAINS,
    decide,
    fleiss_kappa,
    read_votes,
    salient_words,
    sheet,
    topics_toml,
)

CHROMIUM = shutil.which("chromium")
SPACE = LdaSpace(
    TopicSet((Topic("debts", "finance", ("debt",)),)),
    ("debt", "loan", "moon"),
    np.array([0, 2, 3, 4]),
    np.array([0, 1, 0, 1], np.int32),
    np.array([0.4, 0.1, 0.6, 0.9], np.float32),
    np.full(2, 0.1, np.float32),
    np.eye(1, 2, dtype=np.float32),
)


def votes(*rows: tuple[str, int, int, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["judge", "topic", "sensitive", "domain"], orient="row")


def test_fleiss_kappa_of_the_textbook() -> None:
    """Fleiss' example: fourteen judges, ten subjects, five categories: 0.210."""
    counts = [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]  # fmt: skip
    assert round(fleiss_kappa(counts), 3) == 0.210
    assert fleiss_kappa([[3, 0], [0, 3]]) == 1.0
    assert math.isnan(fleiss_kappa([[3, 0], [3, 0]]))
    with pytest.raises(InputError, match="same number of judges"):
        fleiss_kappa([[3, 0], [2, 0]])


def test_topics_show_their_likeliest_words_first() -> None:
    assert salient_words(SPACE) == [("loan", "debt"), ("moon", "debt")]
    assert sheet(SPACE)["words"].to_list() == ["loan debt", "moon debt"]


def test_the_majority_decides_and_half_is_no_majority() -> None:
    verdict = decide(
        votes(
            ("a", 0, 1, "finance"), ("b", 0, 1, "law"), ("c", 0, 0, "finance"), ("d", 0, 1, "finance"),
            ("a", 1, 1, "other"), ("b", 1, 0, "law"), ("c", 1, 0, "other"), ("d", 1, 1, "law"),
        )
    )  # fmt: skip
    assert verdict.topics["sensitive"].to_list() == [True, False]
    assert verdict.topics["domain"].to_list() == ["finance", "law"]
    assert verdict.kappa == pytest.approx(fleiss_kappa([[3, 1], [2, 2]]))
    assert verdict.table_1()["topics"].sum() == 2
    assert math.isnan(decide(votes(("a", 0, 1, "law"), ("a", 1, 1, "law"), ("b", 1, 1, "law"))).kappa)


def test_judged_topics_become_a_topic_file(tmp_path: Path) -> None:
    verdict = decide(votes(("a", 0, 1, "finance"), ("a", 1, 0, "other")))
    path = tmp_path / "topics.toml"
    path.write_text(topics_toml(SPACE, verdict), encoding="utf-8")
    topics = load_topics(path)
    assert topics.names == ("loan-debt-0", "moon-debt-1")
    assert topics.sensitive == ("loan-debt-0",)


def test_answers_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("judge,topic,sensitive,domain\na,0,1,law\na,5,1,law\n", encoding="utf-8")
    with pytest.raises(SchemaError, match=r"row 3: sensitive must be yes or no .* from 0 to 1"):
        read_votes([path], 2)
    path.write_text("judge,topic,domain\na,0,law\n", encoding="utf-8")
    with pytest.raises(SchemaError, match="add 'sensitive'"):
        read_votes([path], 2)
    with pytest.raises(UnreadableSource, match="no such file"):
        read_votes([tmp_path / "none.csv"], 2)
    path.write_text("judge,topic,sensitive,domain\na,0,1,law\na,0,0,law\n", encoding="utf-8")
    assert read_votes([path], 2)["sensitive"].to_list() == [0]  # a judge's last word counts


def test_a_sheet_filled_in_by_hand_is_read(tmp_path: Path) -> None:
    """Words instead of digits, and no name: every file is then a judge of its own."""
    for judge, answers in (("ann", ("Yes", "no")), ("bob", (" no", "NO"))):
        rows = [f",{topic},some words,{answer},law" for topic, answer in enumerate(answers)]
        (tmp_path / f"{judge}.csv").write_text("\n".join(["judge,topic,words,sensitive,domain", *rows]))
    read = read_votes([tmp_path / "ann.csv", tmp_path / "bob.csv"], 2)
    assert read.select("judge", "sensitive").rows() == [("ann", 1), ("ann", 0), ("bob", 0), ("bob", 0)]


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_a_judge_fills_in_the_page_and_saves_a_file(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    from incrowd.report.page import judges_page

    path = tmp_path / "judges.html"
    path.write_text(judges_page(salient_words(SPACE), DOMAINS), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(accept_downloads=True)
        page.goto(path.as_uri())
        page.fill("#judge", 'Ann "A"')
        page.check('input[name="sensitive-0"][value="1"]')
        page.select_option("#domain-0", "finance")
        assert page.inner_text("#done") == "1 of 2 answered"
        with page.expect_download() as saved:
            page.click("#save")
        saved.value.save_as(tmp_path / "votes.csv")
        browser.close()
    assert read_votes([tmp_path / "votes.csv"], 2).rows() == [('Ann "A"', 0, 1, "finance")]
