"""Files that the real readers take, and what comes back."""

from __future__ import annotations

import json

import polars as pl
import pytest

from incrowd import synthetic
from incrowd.crowd import readers
from incrowd.crowd.readers.base import ReadOptions
from incrowd.errors import InputError

POSTS = synthetic.posts(users=30, communities=3, posts=1_500, warts=True)
ITEMS = synthetic.items(users=50, items=40, entries=600)
ATTRIBUTES = synthetic.attributes(users=40)
HOLDERS = synthetic.holders(users=40, values=30, favourites=4.0, spellings=3)


def read_back(path, kind) -> tuple[str, pl.DataFrame]:
    reader = readers.detect(path)
    batches = list(reader.read(path, ReadOptions(kind=kind)))
    assert sum(batch.rejects.height for batch in batches) == 0
    return reader.name, pl.concat(batch.rows for batch in batches)


@pytest.mark.parametrize("ending", ["ndjson", "jsonl", "ndjson.zst", "jsonl.gz", "csv", "csv.gz", "parquet"])
def test_posts_come_back_from_every_format(tmp_path, ending):
    name, rows = read_back(POSTS.write(tmp_path / f"posts.{ending}"), "posts")
    expected = POSTS.to_frame()
    assert rows.select(expected.columns).equals(expected)
    if "json" in ending or "jsonl" in ending:
        assert name == "reddit"
        assert rows["id"].n_unique() == rows.height


@pytest.mark.parametrize("ending", ["csv", "dat", "parquet", "dat.zst"])
def test_ratings_come_back_from_every_format(tmp_path, ending):
    _, rows = read_back(ITEMS.write(tmp_path / f"ratings.{ending}"), "items")
    expected = ITEMS.to_frame()
    assert rows.select(expected.columns).equals(expected)


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_a_map_of_users_holds_their_items(tmp_path, ending):
    _, rows = read_back(ITEMS.write(tmp_path / f"items.{ending}"), "items")
    assert rows.select("user", "item").equals(ITEMS.to_frame().select("user", "item"))


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet"])
@pytest.mark.parametrize("table", [ATTRIBUTES, HOLDERS], ids=["attributes", "holders"])
def test_attributes_come_back_from_every_format(tmp_path, table, ending):
    _, rows = read_back(table.write(tmp_path / f"attributes.{ending}"), "attributes")
    expected = table.to_frame()
    assert rows.select(expected.columns).equals(expected)


def test_a_map_of_values_holds_their_holders(tmp_path):
    path = HOLDERS.write(tmp_path / "holders.json")
    assert json.loads(path.read_text()) == HOLDERS.holders()


def test_names_are_escaped_in_a_map(tmp_path):
    table = synthetic.items(users=3, items=9, entries=15, cast=(('say "hi" \\o/', 4),))
    assert len(json.loads(table.write(tmp_path / "map.json").read_text())['say "hi" \\o/']) == 4


@pytest.mark.parametrize("ending", ["ndjson.zst", "ndjson.gz", "csv", "parquet"])
def test_the_same_seed_gives_the_same_bytes(tmp_path, ending):
    first = POSTS.write(tmp_path / f"a.{ending}")
    second = POSTS.write(tmp_path / f"b.{ending}")
    assert first.read_bytes() == second.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a.{ending}", f"b.{ending}"]


@pytest.mark.parametrize("name", ["posts.xlsx", "posts", "posts.parquet.zst"])
def test_an_unknown_ending_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"expected a name that ends in \.ndjson"):
        POSTS.write(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_crowd_holds_every_row(tmp_path):
    crowd = POSTS.crowd(tmp_path / "crowd")
    columns = ["user", "community", "time", "text"]
    stored = crowd.posts().select(columns).collect().sort(columns)
    assert stored.equals(POSTS.to_frame().sort(columns))
    assert crowd.quarantine().collect().height == 0


def test_a_crowd_without_a_path_lives_as_long_as_its_object():
    crowd = ITEMS.crowd()
    folder = crowd.path
    assert crowd.info().to_dict()["item_rows"] == 600
    del crowd
    assert not folder.exists()
