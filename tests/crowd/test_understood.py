"""An import says what it understood, and asks what only a person can decide."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.crowd.making import new_crowd, post, write_jsonl
from tests.readers.files import EXAMPLES, Example

from incrowd.crowd import Crowd
from incrowd.crowd.ingest import stop_at_questions
from incrowd.crowd.staging import Understood
from incrowd.errors import Undecided


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    return new_crowd(tmp_path / "crowd")


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_dry_run_says_what_was_understood_and_changes_nothing(crowd: Crowd, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [post("ann", "hi @bob, ask bob@x.example"), post("bob", "ho")])
    report = crowd.ingest(source, dry_run=True)
    (one,) = report.understood
    assert (one.format, one.kind, one.rows, one.people, one.whose) == ("jsonl", "posts", 2, 2, "many")
    assert one.columns["user"] == "author"
    assert (one.first, one.last) == (1_500_000_000, 1_500_000_000)
    assert crowd.info().posts == Crowd(crowd.path).info().posts == 0
    assert [example["user"] for example in one.examples] == ["…", "…"]
    assert "bob" not in str(one.examples)
    assert crowd.ingest(source).added == 2


def test_the_report_has_the_keys_that_programs_rely_on(crowd: Crowd, tmp_path: Path) -> None:
    plain = crowd.ingest(
        write_jsonl(tmp_path / "a.jsonl", [post("ann", "hi"), post("[deleted]", "x")])
    ).to_dict()
    assert (plain["format"], plain["kind"], plain["people"], plain["rows"], plain["set_aside"]) == (
        "jsonl", "posts", 1, 2, 1
    )  # fmt: skip
    assert plain["columns"]["text"] == "text"
    json.dumps(plain)


def test_many_misread_rows_are_a_question_and_deleted_ones_are_not(crowd: Crowd, tmp_path: Path) -> None:
    lines = [
        "user,community,time,text",
        *(f"u{n},tea,{'?' if n % 10 == 0 else n},hello {n}" for n in range(40)),
    ]
    misread = write(tmp_path / "a.csv", *lines)
    with pytest.raises(Undecided, match="4 of 40 rows would be set aside") as caught:
        crowd.ingest(misread, confirm=stop_at_questions)
    assert caught.value.option == "yes"
    assert crowd.info().posts == 0
    assert crowd.ingest(misread).added == 36
    deleted = write_jsonl(
        tmp_path / "b.jsonl", [post("[deleted]" if n % 2 else "ann", f"x{n}") for n in range(40)]
    )
    assert crowd.ingest(deleted, confirm=stop_at_questions).added == 20


def test_authors_of_books_are_not_taken_for_people(crowd: Crowd, tmp_path: Path) -> None:
    books = write(tmp_path / "b.csv", "Title,Author,Rating", "Tea,Lee Cup,4", "Cake,Kim Pan,5")
    with pytest.raises(Undecided, match="names the authors of what is listed") as caught:
        crowd.ingest(books, user="me")
    assert caught.value.choices == ("user=Author", "user=-")
    crowd.ingest(books, kind="items", columns={"user": "-", "item": "Title"}, user="me")
    assert set(crowd.items().collect()["user"]) == {"me"}


def test_one_persons_file_with_many_people_in_it_is_a_question(crowd: Crowd, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [post("ann", "hi"), post("bob", "ho")])
    with pytest.raises(Undecided, match="names 2 people") as caught:
        crowd.ingest(source, user="me", confirm=stop_at_questions)
    assert caught.value.choices == ("user=author", "user=-")
    crowd.ingest(source, user="me", columns={"user": "-"}, confirm=stop_at_questions)
    assert set(crowd.posts().collect()["user"]) == {"me"}


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        (["3/4/20", "13/4/20"], [1585872000, 1586736000]),
        (["3/4/20", "3/14/20"], [1583280000, 1584144000]),
        (["3.4.2020 18:30", "31.12.2020, 9:05"], [1585938600, 1609405500]),
        (["03 Apr 2020", "April 13, 2020"], [1585872000, 1586736000]),
    ],
)
def test_a_day_above_twelve_anywhere_decides(
    crowd: Crowd, tmp_path: Path, dates: list[str], expected: list[int]
) -> None:
    source = write(
        tmp_path / "a.csv",
        "user;community;time;text",
        *(f"ann;tea;{date};t{n}" for n, date in enumerate(dates)),
    )
    crowd.ingest(source)
    assert crowd.posts().collect().sort("text")["time"].to_list() == expected


def test_dates_that_fit_both_readings_are_a_question(crowd: Crowd, tmp_path: Path) -> None:
    source = write(tmp_path / "a.csv", "user,community,time,text", "ann,tea,3/4/2020,hello")
    with pytest.raises(Undecided, match="day") as caught:
        crowd.ingest(source)
    assert (caught.value.option, caught.value.choices) == ("dates", ("dmy", "mdy"))
    assert crowd.ingest(source, dates="mdy").added == 1
    assert crowd.posts().collect()["time"].to_list() == [1583280000]


def test_negative_ratings_are_ratings(crowd: Crowd, tmp_path: Path) -> None:
    crowd.ingest(
        write(tmp_path / "a.csv", "user,item,rating", "ann,joke 1,-7.5", "ann,joke 2,3"), kind="items"
    )
    assert sorted(crowd.items().collect()["value"]) == [-7.5, 3.0]


@pytest.mark.parametrize("named_first", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_a_post_with_and_without_an_id_is_one_post(
    crowd: Crowd, tmp_path: Path, named_first: bool, together: bool
) -> None:
    texts = ["one", "two", "two", "three"]
    named = write_jsonl(tmp_path / "a.jsonl", [post("ann", text, id=f"c{n}") for n, text in enumerate(texts)])
    plain = write_jsonl(tmp_path / "b.jsonl", [post("ann", text) for text in [*texts, "four"]])
    sources = [named, plain] if named_first else [plain, named]
    for group in [sources] if together else [[one] for one in sources]:
        crowd.ingest(group)
    assert sorted(crowd.posts().collect()["text"]) == ["four", "one", "three", "two", "two"]
    crowd.ingest(
        write_jsonl(tmp_path / "c.jsonl", [post("ann", text, id=f"d{n}") for n, text in enumerate(texts)])
    )
    crowd.verify()


def test_whoever_confirms_sees_everything_before_anything_changes(crowd: Crowd, tmp_path: Path) -> None:
    seen: list[Understood] = []

    def look(understood: Sequence[Understood]) -> None:
        seen.extend(understood)
        assert Crowd(crowd.path).info().posts == 0

    crowd.ingest(write_jsonl(tmp_path / "a.jsonl", [post("ann", "hi")]), confirm=look)
    assert [one.file for one in seen] == ["a.jsonl"]


@pytest.mark.parametrize("example", EXAMPLES, ids=repr)
def test_every_format_goes_in_with_no_option_or_one_clear_question(
    example: Example, crowd: Crowd, tmp_path: Path
) -> None:
    source = example.write(tmp_path)
    told = {"user": example.options.user, "dates": example.options.dates}
    asked: Undecided | None = None
    try:
        report = crowd.ingest(source, confirm=stop_at_questions)
    except Undecided as question:
        asked = question
        # Where the question is whether to go on without a row, that row is faulty on purpose.
        answers = told if question.option in told else {}
        report = crowd.ingest(source, confirm=stop_at_questions if answers else None, **answers)
    if asked is not None:
        assert asked.question.endswith("?")
        assert told.get(asked.option) or "1 of " in asked.question
    (one,) = report.understood
    kind = "posts" if "text" in example.rows[0] else "items" if "item" in example.rows[0] else "attributes"
    assert (one.format, one.kind) == (example.format, kind)
    usable = [row for row in example.rows if row.get("text") != ""]
    assert report.added == len(usable)
    assert one.people == len({row["user"] for row in usable})
