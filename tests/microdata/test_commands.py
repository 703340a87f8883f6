"""The commands, as a shell would run them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import incrowd
from typer.testing import CliRunner

from incrowd.cli import app
from incrowd.crowd import Crowd
from incrowd.errors import IncrowdError
from incrowd.measures.microdata.table import item_table
from incrowd.study.microdata import microdata_study
from incrowd.study.microdata_questions import StudyOptions

runner = CliRunner()


@pytest.fixture
def folder(frames: Callable[..., pl.DataFrame], tmp_path: Path) -> Path:
    Crowd.from_frame(frames(200, 50, seed=1), kind="items", path=tmp_path / "crowd", plain_names=False)
    return tmp_path / "crowd"


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def test_publishing_for_small_profiles_is_asked_for_by_an_option_that_exists(tmp_path: Path) -> None:
    rows = pl.DataFrame(
        {"user": [f"u{k % 40}" for k in range(120)], "item": [f"i{k % 7}" for k in range(120)]}
    )
    crowd = Crowd.from_frame(rows, kind="items", path=tmp_path / "small", plain_names=True)
    with pytest.raises(IncrowdError, match=r"8 to 5,000 items, got nobody; .*min_items 2"):
        run("microdata", "publish", crowd.path, "--out", tmp_path / "s.json")
    told = run("microdata", "publish", crowd.path, "--out", tmp_path / "s.json", "--min-items", 2)
    assert "40 people" in told
    told = run(
        "microdata", "publish", crowd.path, "--out", tmp_path / "l.json", "--min-items", 2, "--literal"
    )
    assert "40 people, all 7 items are listed." in " ".join(told.split())


def test_from_publishing_to_a_person_s_label(folder: Path, tmp_path: Path) -> None:
    out, client, label, mine = (
        tmp_path / name for name in ("s.json", "client.html", "label.svg", "mine.txt")
    )
    first = json.loads(run("microdata", "publish", folder, "--out", out, "--page", client, "--json"))
    assert (first["release"], first["users"], first["items_counted"]) == (1, 200, 50)
    assert "Content-Security-Policy" in client.read_text()
    again = json.loads(run("microdata", "publish", folder, "--out", tmp_path / "s2.json", "--json"))
    assert again["release"] == 2
    popularity = [json.loads((tmp_path / name).read_text())["popularity"] for name in ("s.json", "s2.json")]
    assert popularity[0] == popularity[1]
    mine.write_text("\n".join(f"item{k:04d}" for k in range(0, 50, 3)))
    plain = json.loads(run("microdata", "score", mine, "--statistics", out, "--label", label, "--json"))
    assert 0 <= plain["score"] <= 1
    assert len(plain["assessments"]) == 2
    assert "<svg" in label.read_text()
    assert "◀ you" in run("microdata", "score", mine, "--statistics", out)
    run("microdata", "score", mine, "--statistics", out, "--fail-above", 0, code=1)
    run("microdata", "score", mine, "--statistics", out, "--fail-above", -1, code=2)
    run("microdata", "score", mine, "--statistics", out, "--fail-above", 1)


def test_taste_groups_are_fitted_once_and_then_repeated(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "s.json"
    run("microdata", "publish", folder, "--out", out, "--taste", 2)
    first = json.loads(out.read_text())["taste"]
    run("microdata", "publish", folder, "--out", out, "--taste", 2)
    assert json.loads(out.read_text())["taste"] == first
    assert len(first) == 2


def test_the_secrets_lie_in_a_private_folder_of_the_crowd(folder: Path, tmp_path: Path) -> None:
    run("microdata", "publish", folder, "--out", tmp_path / "s.json")
    private = folder / "microdata-release"
    assert oct(private.stat().st_mode & 0o777) == "0o700"
    assert Crowd(folder).items().collect().height > 0


def test_an_evaluation_prints_the_promised_keys(folder: Path) -> None:
    plain = json.loads(run("microdata", "evaluate", folder, "--json"))
    for key in ("users", "items", "exact", "scores", "median_crowd"):
        assert key in plain
    assert plain["exact"] is True
    assert set(plain["scores"]["paper"]) == {"spearman", "kendall"}
    assert plain["profiles"] == {"fewest": 8, "most": 5000}
    words = run(
        "microdata", "evaluate", folder, "--percent", "10", "--rare-fraction", "0.05", "--rounding", "ceil"
    )
    assert "10 % of your items" in " ".join(words.split())
    fewer = json.loads(run("microdata", "evaluate", folder, "--known", 2, "--json"))
    assert fewer["knowledge"]["items"] == [2]


def test_one_person_is_assessed_by_name(folder: Path) -> None:
    arguments = ("microdata", "assess", folder, "--user", "user0003")
    plain = json.loads(run(*arguments, "--adversary", "paper", "--json"))
    assert [one["unit"] for one in plain["assessments"]] == [
        "people",
        "score from 0 (riskiest) to 1 (safest)",
        "probability of being picked out with one guess",
    ]
    assert "picked out" in run(*arguments) or "pick you out" in " ".join(run(*arguments).split())
    run(*arguments, "--adversary", "paper", "--fail-above", 0.0001, code=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "{folder}", "--percent", "lots"), "percent: expected"),
        (("evaluate", "{folder}", "--device", "abacus"), "device: expected"),
        (("evaluate", "{folder}", "--min-items", "500"), "at least 2 people"),
        (("assess", "{folder}", "--user", "nobody"), "nobody of that name"),
        (("assess", "{folder}", "--user", "user0003", "--adversary", "martian"), "expected one of"),
    ],
)
def test_mistakes_are_told_in_one_sentence(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    filled = [argument.format(folder=folder) for argument in arguments]
    with pytest.raises(IncrowdError, match=message):
        run("microdata", *filled)


def test_publishing_a_crowd_without_items_is_refused(tmp_path: Path) -> None:
    Crowd.create(tmp_path / "empty")
    with pytest.raises(IncrowdError, match="incrowd ingest --kind items"):
        run("microdata", "publish", tmp_path / "empty", "--out", tmp_path / "s.json")
    assert not (tmp_path / "s.json").exists()


def test_the_study_has_the_paper_s_tables_and_figures(frames: Callable[..., pl.DataFrame]) -> None:
    table = item_table(frames(150, 60, seed=2))
    plain = microdata_study(table, StudyOptions(sample=12)).to_dict()
    parts = {
        part.get("table") or part.get("chart"): part for one in plain["sections"] for part in one["parts"]
    }
    titles = " ".join(parts)
    for piece in ("Table 1", "Table 2", "Figure 2", "Figure 3", "Figures 4–6", "Figure 8"):
        assert piece in titles
    (first,) = parts["Table 1: the data"]["rows"]
    assert first[:3] == [150, int(table.matrix.nnz), 60]
    figure = parts["Figure 2: items in each profile"]["series"][0]
    assert figure["y"] == sorted(figure["y"], reverse=True)
    cloud = parts["Figures 4–6: score and exact crowd"]["series"]
    assert sum(len(one["x"]) for one in cloud if one["name"] != "centroids") == 150
    bars = parts["Figure 8: the bars of the label, best first"]["rows"]
    assert sum(row[3] for row in bars) == pytest.approx(1)
    crowd = parts["The crowd shrinks with what is known"]["series"][0]["y"]
    assert crowd == sorted(crowd, reverse=True)
    drift = parts["How far the first people's scores are from where they end"]["series"][0]["y"]
    assert drift[-1] == 0
    readings = [row[1] for row in parts["Three readings, for 12 people"]["rows"]]
    assert readings[0] <= readings[1]
    json.dumps(plain, allow_nan=False)


def test_the_study_command_writes_one_offline_file(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    words = run("study", "microdata", folder, "--out", out, "--sample", 5)
    assert "Report:" in words
    assert "default-src 'none'" in out.read_text()
    again = tmp_path / "again.html"
    run("study", "microdata", folder, "--out", again, "--sample", 5)
    assert out.read_bytes() == again.read_bytes()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--smallest", -1),
        ("--groups", -3),
        ("--rare-below", -1),
        ("--rare-fraction", 2),
        ("--min-items", -1),
        ("--max-items", 2),
        ("--taste", -1),
    ],
)
def test_a_number_that_cannot_be_is_refused_by_the_name_of_its_option(
    capsys: pytest.CaptureFixture[str], folder: Path, tmp_path: Path, option: str, value: int
) -> None:
    outcome = incrowd(
        capsys, "microdata", "publish", folder, "--out", tmp_path / "s.json", option, str(value)
    )
    assert outcome.code == 2
    assert option in outcome.err
    assert "Spec" not in outcome.err
    assert "Filter" not in outcome.err


@pytest.mark.parametrize("percent", ["0", "200", "20-5", "0-5", "some"])
def test_a_share_that_cannot_be_is_refused(
    capsys: pytest.CaptureFixture[str], folder: Path, percent: str
) -> None:
    outcome = incrowd(capsys, "microdata", "evaluate", folder, "--percent", percent)
    assert outcome.code == 2
    assert "--percent: expected a number above 0 and up to 100" in outcome.err


def test_group_sizes_are_said_to_be_rounded(folder: Path, tmp_path: Path) -> None:
    told = run("microdata", "publish", folder, "--out", tmp_path / "s.json")
    assert "riskiest first, rounded down to 10s: " in " ".join(told.split())
