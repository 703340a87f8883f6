"""`incrowd study NAME --paper`: the paper's number, ours and why, on the page and in the JSON, for every paper."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.running import incrowd

from incrowd.crowd import Crowd


def attributes(folder: Path) -> Crowd:
    rng = np.random.default_rng(4)
    rows = []
    for person in range(24):
        town = int(rng.integers(4))
        rows += [(f"p{person:02}", "film", f"Film {k}") for k in rng.choice(6, 2, replace=False)]
        rows += [(f"p{person:02}", "town", f"town {town}"), (f"p{person:02}", "club", f"club {town // 2}")]
    frame = pl.DataFrame(rows, schema=["user", "attribute", "value"], orient="row")
    return Crowd.from_frame(frame, kind="attributes", path=folder / "crowd", plain_names=True)


def items(folder: Path) -> Crowd:
    rng = np.random.default_rng(5)
    rows = [
        (f"p{k:02}", f"i{i}") for k in range(20) for i in rng.choice(40, rng.integers(9, 14), replace=False)
    ]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    return Crowd.from_frame(frame, kind="items", path=folder / "crowd")


@pytest.mark.parametrize(
    ("name", "made"), [("release", attributes), ("belief", attributes), ("microdata", items)]
)
def test_the_page_shows_the_papers_number_ours_and_why(
    name: str, made: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd: Crowd = made(tmp_path)  # type: ignore[operator]
    page = tmp_path / "report.html"
    told = incrowd(capsys, "study", name, str(crowd.path), "--paper", "--out", str(page), "--json")
    assert told.code == 0, told.err
    found = json.loads(told.out)["headlines"]
    assert found
    assert all(one["result"] and one["paper"] and one["why"] and one["here"] != "" for one in found)
    text = page.read_text("utf-8")
    assert "Beside the paper" in text
    assert "why they differ" in text


@pytest.mark.parametrize("name", ["anonymity", "linkability"])
def test_a_crowd_too_small_for_the_papers_settings_is_told_so(
    name: str, tiny_crowd: Crowd, capsys: pytest.CaptureFixture[str]
) -> None:
    told = incrowd(capsys, "study", name, str(tiny_crowd.path), "--paper")
    assert told.code == 2
    assert "100 posts in a community of 100 profiles" in told.err
    assert "Traceback" not in told.err


@pytest.fixture(scope="module")
def hundred_of_hundreds(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    """Five communities of a hundred people with a hundred short posts each; the smaller two share people."""
    rng = np.random.default_rng(6)
    words = np.array([f"word{k}" for k in range(300)])
    parts = []
    for community, people in {"a": 103, "b": 102, "c": 102, "d": 101, "e": 100}.items():
        own = rng.dirichlet(np.full(300, 0.3), people)
        for person, shares in enumerate(own):
            spoken = rng.choice(words, (100, 3), p=shares)
            name = f"p{person:03}" if community in "de" else f"{community}{person:03}"
            parts += [(name, community, 10**9 + k, " ".join(post)) for k, post in enumerate(spoken)]
    frame = pl.DataFrame(parts, schema=["user", "community", "time", "text"], orient="row")
    return Crowd.from_frame(frame, path=tmp_path_factory.mktemp("many") / "crowd", plain_names=True)


@pytest.mark.parametrize("name", ["anonymity", "linkability"])
def test_the_papers_settings_run_on_a_crowd_that_is_large_enough(
    name: str, hundred_of_hundreds: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    told = incrowd(
        capsys, "study", name, str(hundred_of_hundreds.path), "--paper", "--out", str(page), "--json"
    )
    assert told.code == 0, told.err
    found = json.loads(told.out)["headlines"]
    assert len(found) >= 3
    assert all(one["result"] and one["paper"] and one["why"] and one["here"] != "" for one in found)
    assert "Beside the paper" in page.read_text("utf-8")
