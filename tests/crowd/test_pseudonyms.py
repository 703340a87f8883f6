from __future__ import annotations

import stat
from hashlib import blake2b
from pathlib import Path

import polars as pl
import pytest
from tests.crowd.making import post, write_jsonl

from incrowd.crowd import Crowd
from incrowd.crowd.pseudonyms import Pseudonyms
from incrowd.errors import CrowdDamaged, CrowdError, NotInCrowd

NAME = "Rumpelstilzchen"


@pytest.fixture
def keyed(tmp_path: Path) -> Crowd:
    crowd = Crowd.create(tmp_path / "crowd")
    crowd.ingest(
        write_jsonl(tmp_path / "a.jsonl", [post(NAME, "hello"), post("ann", "hi"), post(f"{NAME}_bot", "x")])
    )
    return crowd


def test_an_id_is_blake2b_under_the_key() -> None:
    key = bytes(range(32))
    expected = blake2b(NAME.encode(), key=key, digest_size=16).hexdigest()
    names = Pseudonyms(key).replace(pl.Series([NAME, "ann", NAME]))
    assert names.to_list() == [expected, Pseudonyms(key).of("ann"), expected]


def test_no_file_of_the_crowd_holds_a_name(keyed: Crowd) -> None:
    files = [path for path in keyed.path.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert not any(NAME.encode() in path.read_bytes() for path in files)
    assert NAME not in repr(keyed) + str(keyed.info())


def test_a_name_given_for_every_row_is_not_written_down(tmp_path: Path) -> None:
    crowd = Crowd.create(tmp_path / "crowd")
    crowd.ingest(write_jsonl(tmp_path / "a.jsonl", [{"text": "hello"}]), user=NAME, kind="posts")
    assert crowd.user(NAME) == crowd.posts().collect()["user"].item()
    assert NAME.encode() not in (crowd.path / "manifest.json").read_bytes()


def test_the_key_is_for_its_owner_alone(keyed: Crowd) -> None:
    assert stat.S_IMODE((keyed.path / "key").stat().st_mode) == 0o600
    assert stat.S_IMODE(keyed.path.stat().st_mode) == 0o700


def test_the_owner_finds_people_by_name_or_id(keyed: Crowd) -> None:
    mine = keyed.user(NAME)
    assert mine != NAME
    assert keyed.posts(user=mine).collect()["text"].to_list() == ["hello"]
    assert keyed.user(mine) == mine
    assert keyed.user(f" {NAME} ") == mine


def test_a_stranger_is_not_found_and_not_named(keyed: Crowd) -> None:
    with pytest.raises(NotInCrowd) as caught:
        keyed.user("somebody else")
    assert "somebody else" not in str(caught.value)


def test_two_crowds_give_the_same_person_different_ids(keyed: Crowd, tmp_path: Path) -> None:
    other = Crowd.create(tmp_path / "other")
    other.ingest(tmp_path / "a.jsonl")
    assert other.user(NAME) != keyed.user(NAME)


def test_a_forgotten_key_ends_names_and_imports(keyed: Crowd, tmp_path: Path) -> None:
    mine = keyed.user(NAME)
    keyed.forget_key()
    reopened = Crowd(keyed.path)
    assert reopened.names == reopened.info().names == "forgotten"
    with pytest.raises(NotInCrowd, match="thrown away"):
        reopened.user(NAME)
    assert reopened.user(mine) == mine
    with pytest.raises(CrowdError, match="second id"):
        reopened.ingest(write_jsonl(tmp_path / "b.jsonl", [post("ann", "more")]))


@pytest.mark.parametrize("contents", ["00" * 32, "not a key", ""])
def test_a_swapped_key_is_noticed(keyed: Crowd, contents: str) -> None:
    (keyed.path / "key").write_text(contents)
    with pytest.raises(CrowdDamaged, match="not the key"):
        Crowd(keyed.path).user(NAME)


def test_plain_names_stay_readable_and_are_never_mixed_in(keyed: Crowd, tmp_path: Path) -> None:
    plain = Crowd.create(tmp_path / "plain", plain_names=True)
    plain.ingest(tmp_path / "a.jsonl")
    assert plain.user(NAME) == NAME
    assert not (plain.path / "key").exists()
    with pytest.raises(CrowdError, match="pseudonyms"):
        Crowd.open_or_create(keyed.path, plain_names=True)


def test_the_same_key_and_rows_give_the_same_data_hash(keyed: Crowd, tmp_path: Path) -> None:
    import shutil

    twin = Path(shutil.copytree(keyed.path, tmp_path / "twin"))
    assert Crowd(twin).data_hash == keyed.data_hash
