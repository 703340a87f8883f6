"""No other person's name or text in any output: markers are planted in every other profile and searched for."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import incrowd

from incrowd.advisor.assess import assess, what_if
from incrowd.crowd import Crowd
from incrowd.errors import IncrowdError
from incrowd.measures.protocol import AdvisorOptions, Changes
from incrowd.synthetic import demo_person

MARK = "mrkqz"


def letters(number: int) -> str:
    return "".join(chr(97 + int(digit)) for digit in f"{number:03}")


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    """Forty made-up people; everybody but alex bears a mark in name, every post, an item and an attribute.

    Alex mentions two of them by name.
    """
    made = demo_person(users=40, seed=2)
    frames = {"posts": made.posts.to_frame(), "items": made.items.to_frame()}
    frames["attributes"] = made.attributes.to_frame()
    names = sorted({name for frame in frames.values() for name in frame["user"]} - {"alex"})
    marks = {name: f"{MARK}{letters(number)}" for number, name in enumerate(names)}
    crowd = Crowd.create(tmp_path_factory.mktemp("marked") / "crowd", plain_names=True)
    for kind, frame in frames.items():
        crowd.add_frame(_with_marks(frame, kind, marks), kind)  # type: ignore[arg-type]
    return crowd


def _with_marks(frame: pl.DataFrame, kind: str, marks: dict[str, str]) -> pl.DataFrame:
    mark = pl.col("user").replace_strict(marks, default=None)
    other = pl.col("user") != "alex"
    named = frame.with_columns(mark=mark)
    if kind == "posts":
        said = pl.concat_str([pl.col("text"), pl.lit(" "), pl.col("mark")])
        mentions = pl.concat_str([pl.col("text"), pl.lit(f" @{MARK}_aab, u/{MARK}-aac")])
        named = named.with_columns(text=pl.when(other).then(said).otherwise(mentions))
    elif kind == "items":
        extra = named.filter(other).group_by("user").first().with_columns(item=pl.col("mark"))
        named = pl.concat([named, extra.select(named.columns)])
    else:
        extra = named.filter(other).group_by("user").first()
        extra = extra.with_columns(attribute=pl.lit("shelf mark"), value=pl.col("mark"))
        named = pl.concat([named, extra.select(named.columns)])
    return named.with_columns(user=pl.when(other).then(pl.col("mark")).otherwise(pl.col("user"))).drop("mark")


def test_the_marks_are_really_there(marked: Crowd) -> None:
    texts = marked.posts().filter(pl.col("user") != "alex").collect()
    assert texts["text"].str.contains(MARK).all()
    assert texts["user"].str.contains(MARK).all()
    assert marked.items().filter(pl.col("item").str.contains(MARK)).collect().height > 20
    assert marked.attributes().filter(pl.col("value").str.contains(MARK)).collect().height > 20


def test_no_mark_in_any_output_of_assess(
    marked: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, label = tmp_path / "report.html", tmp_path / "label.svg"
    arguments = ("assess", marked.path, "--user", "alex", "--quote", "--html", page, "--label", label)
    shown = incrowd(capsys, *arguments)
    as_json = incrowd(capsys, *arguments, "--json")
    assert shown.code == as_json.code == 0
    outputs = [shown.out, shown.err, as_json.out, as_json.err, page.read_text(), label.read_text()]
    assert all(len(output) > 200 for output in (shown.out, as_json.out, outputs[4], outputs[5]))
    assert not [output for output in outputs if MARK in output.lower()]


def test_no_mark_in_a_what_if(marked: Crowd) -> None:
    options = AdvisorOptions(thorough=False, quote_posts=True)
    changed = what_if(
        marked,
        "alex",
        Changes(delete_posts=frozenset(range(30)), move_posts=frozenset({40})),
        options=options,
    )
    assert MARK not in json.dumps(changed.to_dict()).lower()
    assert MARK not in repr(changed).lower()


@pytest.mark.parametrize("asked", ["nobody", "alexx", MARK, f"{MARK}aa"])
def test_no_mark_in_an_error_about_somebody_who_is_not_there(
    marked: Crowd, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcome = incrowd(capsys, "assess", marked.path, "--user", asked)
    assert outcome.code == 2
    said = (outcome.out + outcome.err).lower().replace(f"'{asked}'", "")
    assert MARK not in said


def test_no_mark_in_an_error_about_changes(marked: Crowd) -> None:
    options = AdvisorOptions(thorough=False, advice=False)
    for wrong in (
        Changes(delete_posts=frozenset({99_999})),
        Changes(drop_items=frozenset({"no such item"})),
        Changes(withhold_attributes=frozenset({"shelf mark"})),
    ):
        with pytest.raises(IncrowdError) as refused:
            what_if(marked, "alex", wrong, options=options)
        assert MARK not in str(refused.value).lower()


def test_no_mark_in_what_python_prints(marked: Crowd) -> None:
    report = assess(marked, "alex", options=AdvisorOptions(thorough=False, advice=False))
    for value in (report, *report.themes, *report.reasons, *report.assessments, *report.not_assessed):
        assert MARK not in repr(value).lower()


def test_somebody_mentioned_is_evidence_without_a_name(marked: Crowd) -> None:
    report = assess(marked, "alex", options=AdvisorOptions(thorough=False, advice=False))
    parts = [part.what for one in report.assessments for part in one.evidence]
    assert "somebody you mention" in parts
    assert not [part for part in parts if MARK in part.lower()]


def test_no_mention_in_an_export_is_shown_with_a_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "me.jsonl", tmp_path / "me.html"
    said = ["sourdough starter smells", "squeaking bicycle brake", "imaginary islands on maps"]
    rows = [
        {
            "author": "me",
            "text": f"{said[k % 3]} {k} @{MARK}_aa hi /u/{MARK}",
            "time": 1_600_000_000 + 3600 * k,
        }
        for k in range(24)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = incrowd(capsys, "assess", file, "--html", page, "--json")
    assert "somebody you mention" in told.out
    assert "somebody you mention" in page.read_text()
    assert MARK not in (told.out + told.err + page.read_text()).lower()
