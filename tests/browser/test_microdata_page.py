"""The client page in a real browser: the same numbers as Python, and not one request."""

from __future__ import annotations

import datetime as dt
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from incrowd.measures.microdata.client import parse_items, score
from incrowd.measures.microdata.provider import Tally, publish, publish_taste
from incrowd.measures.microdata.spec import Knowledge, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.statistics import Statistics
from incrowd.measures.microdata.table import item_table
from incrowd.report.label import microdata_label
from incrowd.report.page import microdata_page

pytestmark = pytest.mark.browser


def entries() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    activity, popularity = rng.uniform(0.3, 1.3, 400), np.linspace(0.8, 0.02, 90)
    has = rng.random((400, 90)) < activity[:, None] * popularity
    rows, columns = np.nonzero(has)
    return pl.DataFrame({"user": [f"u{r}" for r in rows], "item": [f"film {c} <é>" for c in columns]})


@pytest.fixture(scope="module")
def statistics() -> Statistics:
    tally = Tally.count(entries(), ScoreSpec(rare_below=60))
    return publish(tally, date=dt.date(2026, 3, 4))[0]


@pytest.fixture(scope="module")
def with_taste(statistics: Statistics) -> Statistics:
    table = item_table(entries())
    taste = publish_taste(table, statistics.activity, ReleaseSpec(taste_groups=3), 60, b"secret")
    return replace(statistics, taste=taste, knowledge=Knowledge(percents=(10,), items=(2,), weights=(3, 1)))


class Opened:
    """A page from disk that notes every request and every complaint."""

    def __init__(self, browser: Any, path: Path, **options: Any) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page = browser.new_page(**options)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())


def written(statistics: Statistics, folder: Path) -> Path:
    path = folder / "client.html"
    path.write_text(microdata_page(statistics), encoding="utf-8")
    return path


def vectors() -> list[list[str]]:
    rng = np.random.default_rng(5)
    lists = [
        [f"film {c} <é>" for c in rng.choice(90, size=size, replace=False)] for size in (1, 2, 8, 30, 90)
    ]
    lists.append([*lists[2], "unheard of", "also unheard of", " ", lists[2][0]])
    lists.append([*lists[0], *(f"odd {k}" for k in range(3000))])
    return lists


@pytest.mark.parametrize("which", ["statistics", "with_taste"])
def test_the_browser_computes_what_python_computes(
    browser: Any, tmp_path: Path, which: str, request: pytest.FixtureRequest
) -> None:
    statistics = request.getfixturevalue(which)
    opened = Opened(browser, written(statistics, tmp_path))
    for items in vectors():
        theirs = opened.page.evaluate("items => window.incrowd.score(items)", items)
        label = opened.page.evaluate("items => window.incrowd.label(items)", items)
        ours = score(items, statistics)
        for name in ("items", "rare", "unknown", "clamped", "group"):
            assert theirs[name] == getattr(ours, name)
        for name in ("raw", "score", "others", "score_without_all", "others_without_all"):
            assert math.isclose(theirs[name], getattr(ours, name), rel_tol=1e-9, abs_tol=1e-12)
        assert [one["item"] for one in theirs["hurting"]] == [one.item for one in ours.hurting]
        for left, right in zip(theirs["hurting"], ours.hurting, strict=True):
            assert left["people"] == right.people
            assert math.isclose(left["others_without"], right.others_without, rel_tol=1e-9, abs_tol=1e-12)
        drawn = microdata_label(ours)
        assert (tuple(label["words"]), label["you"]) == (drawn.bars, drawn.you)
    assert opened.complaints == []


@pytest.mark.parametrize(
    "text",
    [
        "a\nb\n\n a ",
        '["a", 7, {"item": "c"}]',
        'user,item\nme,"b"\nme,c',
        "user:token\titem:token\n1\tx",
        "one, two\nthree",
    ],
)
def test_lists_are_read_alike(browser: Any, tmp_path: Path, statistics: Statistics, text: str) -> None:
    opened = Opened(browser, written(statistics, tmp_path))
    assert opened.page.evaluate("text => window.incrowd.parseItems(text)", text) == parse_items(text)


def test_a_person_pastes_a_list_and_sees_the_label(
    browser: Any, tmp_path: Path, statistics: Statistics
) -> None:
    opened = Opened(browser, written(statistics, tmp_path))
    items = vectors()[3]
    opened.page.get_by_label("Your items").fill("\n".join(items))
    label = microdata_label(score(items, statistics))
    opened.page.get_by_role("heading", name=f"You are: {label.verdict}").wait_for()
    picture = opened.page.locator("#result svg")
    assert label.verdict in picture.locator("title").text_content()
    assert opened.page.locator("#result tbody tr").count() == 11
    opened.page.get_by_label("Your items").fill("a song\nanother song")
    assert "of your 2 items none" in opened.page.locator("#problem").text_content()
    assert opened.page.locator("#result svg").count() == 0
    opened.page.get_by_label("Your items").fill('["broken')
    assert "not" in opened.page.locator("#problem").text_content()
    assert opened.page.locator("#result svg").count() == 0


def test_a_file_of_items_and_newer_statistics_can_be_opened(
    browser: Any, tmp_path: Path, statistics: Statistics, with_taste: Statistics
) -> None:
    opened = Opened(browser, written(statistics, tmp_path))
    mine, newer = tmp_path / "mine.txt", tmp_path / "newer.json"
    mine.write_text("\n".join(vectors()[2]), encoding="utf-8")
    newer.write_text(json.dumps(replace(with_taste, number=7).to_dict()), encoding="utf-8")
    opened.page.set_input_files("#file", str(mine))
    opened.page.locator("#result svg").wait_for()
    opened.page.set_input_files("#file", str(newer))
    opened.page.get_by_text("release 7 of 2026-03-04").wait_for()
    theirs = opened.page.evaluate("items => window.incrowd.score(items).others", vectors()[2])
    assert math.isclose(theirs, score(vectors()[2], with_taste).others, rel_tol=1e-9)
    assert opened.complaints == []


def test_not_one_request_leaves_the_page_even_if_it_tried(
    browser: Any, tmp_path: Path, statistics: Statistics
) -> None:
    path = written(statistics, tmp_path)
    opened = Opened(browser, path)
    opened.page.get_by_label("Your items").fill("\n".join(vectors()[3]))
    opened.page.locator("#result svg").wait_for()
    assert opened.requests == [path.as_uri()]
    assert opened.complaints == []
    tries = """async () => {
        const outcomes = [];
        try { await fetch('http://127.0.0.1:9/x'); outcomes.push('fetched'); } catch { outcomes.push('refused'); }
        const image = new Image();
        const loaded = new Promise(done => {
            image.onload = () => done('loaded');
            image.onerror = () => done('refused');
        });
        image.src = 'http://127.0.0.1:9/pixel.png';
        outcomes.push(await loaded);
        outcomes.push(navigator.sendBeacon === undefined ? 'refused' : String(navigator.sendBeacon('http://127.0.0.1:9/b')));
        return outcomes;
    }"""
    outcomes = opened.page.evaluate(tries)
    assert outcomes[:2] == ["refused", "refused"]
    # Each try was stopped by the page's own policy, not by the network.
    blocked = [text for text in opened.complaints if "Content Security Policy" in text]
    assert len(blocked) >= 2


def test_it_works_by_keyboard_on_a_narrow_dark_screen(
    browser: Any, tmp_path: Path, statistics: Statistics
) -> None:
    size = {"width": 360, "height": 640}
    opened = Opened(browser, written(statistics, tmp_path), viewport=size, color_scheme="dark")
    opened.page.keyboard.press("Tab")
    opened.page.keyboard.type("film 1 <é>")
    opened.page.locator("#result svg").wait_for()
    width = opened.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360
    dark = opened.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark == "rgb(22, 22, 26)"
    unnamed = opened.page.evaluate(
        "[...document.querySelectorAll('input, textarea')].filter(one => !one.labels.length).length"
    )
    assert unnamed == 0
