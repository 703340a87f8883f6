from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.crowd.making import new_crowd, post, write_jsonl

from incrowd.crowd import Crowd
from incrowd.crowd.schema import COLUMNS, KINDS
from incrowd.errors import CrowdDamaged, CrowdError, NotInCrowd

ROWS = [
    post("ann", "a", "books", 10),
    post("ann", "b", "films", 20),
    post("bob", "c", "books", 30),
    post("cy", "d", "books", None),
]


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    crowd = new_crowd(tmp_path / "crowd [x]*? 'y'")
    crowd.ingest(write_jsonl(tmp_path / "a.jsonl", ROWS))
    return crowd


def test_posts_of_a_community_or_a_user(crowd: Crowd) -> None:
    assert crowd.posts("books").collect()["text"].to_list() == ["a", "c", "d"]
    assert crowd.posts(user="ann").collect()["text"].to_list() == ["a", "b"]
    assert crowd.posts("films", "ann").collect()["text"].to_list() == ["b"]


def test_a_mistyped_community_is_told(crowd: Crowd) -> None:
    with pytest.raises(NotInCrowd, match="Did you mean books"):
        crowd.posts("Book")


def test_communities_come_largest_first(crowd: Crowd) -> None:
    assert crowd.communities().rows() == [("books", 3, 3), ("films", 1, 1)]


def test_the_numbers_of_a_crowd(crowd: Crowd) -> None:
    info = crowd.info()
    assert (info.posts, info.users, info.communities, info.identities, info.users_in_several) == (
        4,
        3,
        2,
        4,
        1,
    )
    assert (info.first_post, info.last_post, info.undated_posts) == (10, 30, 1)
    assert info.largest_communities == {"books": 3, "films": 1}
    assert info.bytes == sum(path.stat().st_size for path in (crowd.path / "parts").iterdir())


def test_sql_sees_the_same_tables(crowd: Crowd) -> None:
    with crowd.connect() as connection:
        assert connection.sql("SELECT count(*), count(DISTINCT community) FROM posts").fetchall() == [(4, 2)]
        for table in (*KINDS, "quarantine"):
            columns = connection.sql(f"SELECT * FROM {table}").columns
            assert columns == (list(COLUMNS[table]) if table in COLUMNS else ["file", "row", "reason"])


def test_an_empty_crowd_has_empty_tables(tmp_path: Path) -> None:
    crowd = new_crowd(tmp_path / "crowd")
    for frame, kind in (
        (crowd.posts(), "posts"),
        (crowd.items(), "items"),
        (crowd.attributes(), "attributes"),
    ):
        assert frame.collect().schema == COLUMNS[kind]
        assert frame.collect().is_empty()
    assert crowd.communities().is_empty()
    info = crowd.info()
    assert (info.posts, info.users, info.first_post, info.quarantined) == (0, 0, None, 0)
    with crowd.connect() as connection:
        assert connection.sql("SELECT * FROM posts").fetchall() == []


def test_a_crowd_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CrowdError, match="incrowd ingest"):
            Crowd(path)


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    with pytest.raises(CrowdError, match="other files"):
        Crowd.create(tmp_path)


def test_missing_cut_and_altered_parts_are_noticed(crowd: Crowd) -> None:
    (part,) = (crowd.path / "parts").iterdir()
    whole = part.read_bytes()
    part.write_bytes(whole[:-1] + b"x")
    with pytest.raises(CrowdDamaged, match="contents differ"):
        Crowd(crowd.path).verify()
    part.write_bytes(whole[:-1])
    with pytest.raises(CrowdDamaged, match=f"expected {len(whole):,} bytes"):
        Crowd(crowd.path)
    part.unlink()
    with pytest.raises(CrowdDamaged, match="missing"):
        Crowd(crowd.path)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("{", CrowdDamaged, "JSON"),
        ("[]", CrowdDamaged, "another JSON"),
        ('{"format": "incrowd crowd", "schema_version": 99}', CrowdError, "got 99"),
        ('{"format": "incrowd crowd", "schema_version": 1}', CrowdDamaged, "fields"),
    ],
)
def test_a_manifest_that_is_none(crowd: Crowd, text: str, error: type[Exception], message: str) -> None:
    (crowd.path / "manifest.json").write_text(text)
    with pytest.raises(error, match=message):
        Crowd(crowd.path)


def test_the_manifest_logs_what_came_from_where(crowd: Crowd) -> None:
    (entry,) = json.loads((crowd.path / "manifest.json").read_text())["imports"]
    assert (entry["name"], entry["reader"], entry["rows"], entry["added"]) == ("a.jsonl", "jsonl", 4, 4)


def test_the_cache_may_be_deleted(crowd: Crowd) -> None:
    (crowd.cache / "x").write_text("y")
    (crowd.cache / "x").unlink()
    crowd.cache.rmdir()
    assert crowd.cache.is_dir()


def test_an_open_crowd_keeps_its_state_while_others_import(crowd: Crowd, tmp_path: Path) -> None:
    reader = Crowd(crowd.path)
    crowd.ingest(write_jsonl(tmp_path / "b.jsonl", [post("dee", "later")]))
    assert reader.posts().collect().height == 4
    assert Crowd(crowd.path).posts().collect().height == 5


def test_a_repr_holds_no_person(crowd: Crowd) -> None:
    assert repr(crowd).endswith("4 posts, 0 items, 0 attributes)")
