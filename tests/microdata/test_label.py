"""The label: words, lengths and letters say what the colours say."""

from __future__ import annotations

import datetime as dt
import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from incrowd.errors import InputError
from incrowd.measures.microdata.client import (
    MARGIN,
    WANTED_CROWD,
    WORDS,
    bar_of,
    bar_words,
    claims_safety,
    score,
    shown_bar,
    split_upper,
)
from incrowd.measures.microdata.provider import Tally, publish
from incrowd.report.label import COLOURS, Label, ink_on, microdata_label, paper_label

SVG = "{http://www.w3.org/2000/svg}"


def test_three_groups_become_five_bars_as_in_figure_8() -> None:
    borders = split_upper([0.5, 0.8])
    assert borders == pytest.approx([0.5, 0.65, 0.8, 0.9])
    assert bar_words(5) == ("very safe", "safe", "medium safe", "medium risk", "not safe")
    assert [bar_of(score, borders) for score in (0.95, 0.85, 0.7, 0.6, 0.1)] == [0, 1, 2, 3, 4]


def test_one_group_and_many_groups_are_not_split() -> None:
    assert split_upper([]) == []
    many = [k / 10 for k in range(1, 9)]
    assert split_upper(many) == many
    assert split_upper([0.5]) == [0.5, 0.75]


@pytest.mark.parametrize("count", range(1, 13))
def test_every_number_of_bars_has_words_from_safe_to_not_safe(count: int) -> None:
    words = bar_words(count)
    assert len(words) == count
    if count > 1:
        assert "safe" in words[0]
        assert words[-1] == "not safe"
    if count in WORDS:
        assert len(set(words)) == count


@pytest.mark.parametrize("you", [None, 0, 3])
def test_the_picture_is_well_formed_and_speaks(you: int | None) -> None:
    label = Label("A <title>", bar_words(5), you, "caption & all")
    root = ET.fromstring(label.svg())
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and description is not None  # noqa: PT018
    assert label.verdict in (title.text or "")
    assert "from best to worst: A very safe" in (description.text or "")
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert ("you" in texts) == (you is not None)
    assert all(word in texts for word in bar_words(5))


def test_the_red_bar_is_the_longest_and_the_scale_is_closed() -> None:
    root = ET.fromstring(Label("t", bar_words(5), 2).svg())
    bars = [path for path in root.iter(f"{SVG}path") if path.get("fill") != "#111"]
    lengths = [float(path.get("d", "").split("h")[1].split("l")[0]) for path in bars]
    assert lengths == sorted(lengths)
    assert len(bars) == 5
    assert bars[-1].get("fill") == COLOURS[-1]
    assert bars[0].get("fill") == COLOURS[0]


def test_words_are_readable_on_every_colour() -> None:
    for colour in COLOURS:
        channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
        ink = 1.0 if ink_on(colour) == "#ffffff" else 0.0
        contrast = (max(ink, luminance) + 0.05) / (min(ink, luminance) + 0.05)
        assert contrast >= 4.5


def test_the_terminal_shows_the_same_without_colour() -> None:
    console = Console(no_color=True, width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(Label("Hiding", bar_words(3), 1).terminal())
    lines = console.export_text().splitlines()
    assert [line.strip()[0] for line in lines[1:4]] == ["A", "B", "C"]
    assert "you" in lines[2]
    assert "you" not in lines[1] + lines[3]
    console.file.close()


def test_impossible_labels_are_refused() -> None:
    for bars, you in (((), None), (bar_words(3), 3), (("x",) * 13, 0)):
        with pytest.raises(ValueError, match="bar"):
            Label("t", bars, you)


def test_a_score_s_label_matches_its_group(frames: Callable[..., pl.DataFrame]) -> None:
    statistics, _ = publish(Tally.count(frames(300, 60)), date=dt.date(2026, 1, 1))
    result = score([f"item{k:04d}" for k in range(0, 60, 2)], statistics)
    label = paper_label(result)
    borders = split_upper([float(b) for b in statistics.borders])
    assert label.you == bar_of(result.score, borders)
    assert "300 people" in label.caption
    nowhere = microdata_label(replace(result, score=math.nan, group=None))
    assert nowhere.verdict == "cannot tell"


@pytest.mark.parametrize("count", range(2, 13))
@pytest.mark.parametrize("crowd", [1.0, 1.19, 9.99, 10.0, 19.99, 20.0, 500.0])
def test_nobody_who_may_be_below_the_target_is_called_safe(count: int, crowd: float) -> None:
    words = bar_words(count)
    for bar in range(count):
        shown = shown_bar(bar, words, crowd)
        assert shown >= bar
        if crowd < MARGIN * WANTED_CROWD:
            assert not claims_safety(words[shown])
        else:
            assert shown == bar


def test_the_best_of_a_crowd_without_hiding_places(frames: Callable[..., pl.DataFrame]) -> None:
    """Everybody is nearly alone: the paper's score calls the best of them safe, the label does not."""
    statistics, _ = publish(Tally.count(frames(300, 60)), date=dt.date(2026, 1, 1))
    result = replace(score([f"item{k:04d}" for k in range(0, 60, 2)], statistics), score=1.0, others=0.19)
    assert claims_safety(paper_label(result).verdict)
    label = microdata_label(result)
    assert not claims_safety(label.verdict)
    assert label.by_paper == 0
    assert paper_label(result).verdict in label.caption
    assert microdata_label(replace(result, others=50.0)) == paper_label(result)


def test_whoever_the_label_calls_safe_has_the_target_of_people() -> None:
    """Forty people have a thing of their own, and one that some twenty others have: the statistics overrate them."""
    rng = np.random.default_rng(0)
    profiles = [
        {*(f"common{k}" for k in rng.choice(60, rng.integers(8, 40), replace=False))}
        | {f"few{k}" for k in rng.choice(60, 2, replace=False)}
        for _ in range(450)
    ]
    profiles += [{f"own{k}", f"few{k}"} for k in range(40)]
    rows = [(str(user), item) for user, items in enumerate(profiles) for item in sorted(items)]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    statistics, _ = publish(Tally.count(frame), date=dt.date(2026, 1, 1))
    once_overrated = 0
    for items in profiles[-40:]:
        try:
            told = score(items, statistics, hurting=0)
        except InputError:  # neither of the two is listed
            continue
        # Whoever knows a twentieth to a fifth of two items knows one of them.
        fit = np.mean([sum(item in other for other in profiles) for item in items])
        assert claims_safety(paper_label(told).verdict)
        once_overrated += fit < WANTED_CROWD <= 1 + told.others
        assert fit >= WANTED_CROWD or not claims_safety(microdata_label(told).verdict)
    assert once_overrated
