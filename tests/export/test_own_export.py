"""An export is read as an import would read it, one account only, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import incrowd
from incrowd import Crowd
from incrowd.crowd.own_export import read_export
from incrowd.errors import InputError, NotInCrowd, UnreadableSource


def lines(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def post(author: str, text: str, time: int = 1_600_000_000, place: str = "tea") -> dict[str, object]:
    return {"author": author, "subreddit": place, "created_utc": time, "body": text}


def test_an_export_holds_what_an_import_would_keep(
    people: Crowd, export_of: Callable[..., Path], outsiders: list[str], tmp_path: Path
) -> None:
    file = export_of(outsiders[0])
    crowd = Crowd.open_or_create(tmp_path / "crowd", plain_names=True)
    crowd.ingest([file])
    kept = crowd.posts(user=outsiders[0]).select("community", "time", "text").collect()
    read = read_export([file])
    assert (
        read.posts.select("community", "time", "text").sort("time", "text").equals(kept.sort("time", "text"))
    )
    assert read.posts["number"].to_list() == list(range(read.posts.height))
    assert read.name == outsiders[0]


def test_posts_in_several_files_come_together_and_a_post_that_stands_twice_counts_once(
    tmp_path: Path,
) -> None:
    one = lines(tmp_path / "one.jsonl", post("ann", "Green tea."), post("ann", "Black tea.", 1_600_000_100))
    two = lines(tmp_path / "two.jsonl", post("ann", "Green tea."), post("ann", "No tea.", 1_600_000_200))
    read = read_export([one, two])
    assert sorted(read.posts["text"]) == ["Black tea.", "Green tea.", "No tea."]


def test_deleted_and_empty_posts_are_no_posts(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", post("ann", "[deleted]"), post("ann", "  "), post("ann", "Tea."))
    assert read_export(file).posts["text"].to_list() == ["Tea."]


def test_an_account_called_like_a_program_is_a_person_in_their_own_export(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", post("AutoModerator", "I am not."))
    assert read_export(file).posts.height == 1


def test_ratings_are_items(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("user,item,rating\nann,Alien,5\nann,Heat,4\n", encoding="utf-8")
    read = read_export([file])
    assert read.items == {"Alien", "Heat"}
    assert read.posts.is_empty()


def test_several_accounts_are_refused_until_one_is_named(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", post("ann", "Tea."), post("bob", "Coffee."))
    with pytest.raises(InputError, match=r"2 accounts.*Name yours"):
        read_export(file)
    assert read_export(file, "bob").posts["text"].to_list() == ["Coffee."]
    with pytest.raises(NotInCrowd, match="nobody of that name"):
        read_export(file, "carol")


def test_a_file_without_anything_of_a_person_says_so(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", post("ann", "[removed]"))
    with pytest.raises(InputError, match="no posts, items or attributes"):
        read_export(file)
    with pytest.raises(UnreadableSource):
        read_export(tmp_path / "missing.zip")


def test_the_hash_is_that_of_the_files(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", post("ann", "Tea."))
    before = read_export(file).data_hash
    assert read_export(file).data_hash == before
    lines(file, post("ann", "Tea!"))
    assert read_export(file).data_hash != before


def test_its_repr_shows_nothing_of_the_person(tmp_path: Path) -> None:
    shown = repr(read_export(lines(tmp_path / "a.jsonl", post("ann", "Secret tea."))))
    assert "ann" not in shown
    assert "tea" not in shown


def test_columns_are_those_of_own_posts(tmp_path: Path) -> None:
    schema = read_export(lines(tmp_path / "a.jsonl", post("ann", "Tea."))).posts.schema
    expected = {"number": pl.Int64, "community": pl.String, "time": pl.Int64, "text": pl.String}
    assert schema == {**expected, "link": pl.String}


def test_a_table_that_does_not_say_whose_it_is_is_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text("item,rating\nBlue,4\nRed,5\n", encoding="utf-8")
    assert read_export(file).items == frozenset({"Blue", "Red"})
    named = read_export(file, "ann")
    assert (named.name, named.items) == ("ann", frozenset({"Blue", "Red"}))


def test_what_one_file_holds_twice_was_said_twice_as_for_an_import(tmp_path: Path) -> None:
    said = [post("ann", "Thanks.")] * 3 + [{**post("ann", "Hello."), "id": "x1"}] * 2
    one, two = lines(tmp_path / "one.jsonl", *said), lines(tmp_path / "two.jsonl", post("ann", "Thanks."))
    crowd = Crowd.open_or_create(tmp_path / "crowd", plain_names=True)
    crowd.ingest([one, two])
    kept = sorted(crowd.posts(user="ann").collect()["text"])
    assert (
        sorted(read_export([one, two]).posts["text"]) == kept == ["Hello.", "Thanks.", "Thanks.", "Thanks."]
    )


def test_a_file_that_names_nobody_is_that_of_whoever_the_others_name(tmp_path: Path) -> None:
    watched = tmp_path / "NetflixViewingHistory.csv"
    watched.write_text('Title,Date\n"Roma","1/13/22"\n', encoding="utf-8")
    named = lines(tmp_path / "a.jsonl", post("ann", "Tea."))
    for read in (read_export([watched, named]), read_export([watched, named], "ann")):
        assert (read.name, read.items, read.posts["text"].to_list()) == ("ann", {"Roma"}, ["Tea."])
    assert read_export([watched], "kim").items == {"Roma"}
    nameless_row = lines(tmp_path / "b.jsonl", post("ann", "Tea."), {**post("", "Not mine."), "author": None})
    assert read_export([nameless_row], "ann").posts["text"].to_list() == ["Tea."]


def test_what_could_not_be_read_is_said_without_a_word_of_it(tmp_path: Path) -> None:
    table = "user,community,time,text\nann,tea,2021-02-31,Secret tea\nann,tea,2021-02-03,Green tea\nann,tea,2021\n"
    file = tmp_path / "posts.csv"
    file.write_bytes(table.encode() + b"ann,tea,2021-02-04,Odd \xff tea\n")
    said = read_export(file).unread
    assert said.startswith(
        "2 rows could not be read (1: the row has too many or too few columns, 1: the time is"
    )
    assert said.endswith("in 1 row some letters could not be read: the file is not in UTF-8")
    assert "tea" not in said.lower()
    told = [one for one in incrowd.assess([file]).not_assessed if one.why == said]
    assert [one.about for one in told] == ["rows of your files"]
    assert (
        read_export(lines(tmp_path / "a.jsonl", post("ann", "[deleted]"), post("ann", "Tea."))).unread == ""
    )
