"""Forgetting: rows leave every part and cache, the rest stays as if they had never been there."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.running import incrowd
from tests.crowd.making import new_crowd, post, texts, write_jsonl

from incrowd.crowd import Crowd
from incrowd.crowd import forget as forgetting
from incrowd.crowd.disk import import_lock
from incrowd.crowd.forget import forget, forget_everything, remove
from incrowd.errors import CrowdBusy

PEOPLE = ("ann", "bob", "cat", "dan")


def rows(people: tuple[str, ...] = PEOPLE, posts: int = 40) -> list[dict[str, object]]:
    return [
        post(name, f"{n} words of {name}", community=f"c{n % 3}", time=1_000_000 + n, id=f"{name}-{n}")
        for n in range(posts)
        for name in people
    ]


def filled(folder: Path, people: tuple[str, ...] = PEOPLE) -> Crowd:
    crowd = new_crowd(folder / "crowd")
    crowd.ingest(write_jsonl(folder / "posts.jsonl", rows(people)))
    items = [{"user": name, "item": f"i{n}", "value": n} for n in range(5) for name in people]
    crowd.ingest(write_jsonl(folder / "items.jsonl", items), kind="items")
    facts = [{"user": name, "attribute": "city", "value": f"city of {name}"} for name in people]
    crowd.ingest(write_jsonl(folder / "facts.jsonl", facts), kind="attributes")
    return crowd


def test_a_person_leaves_every_table_and_cache(
    tmp_path: Path,
) -> None:
    crowd = filled(tmp_path)
    (crowd.cache / "counts").mkdir()
    (crowd.cache / "counts" / "kept").write_bytes(b"computed from everybody")
    (crowd.path / "watch").mkdir()
    (crowd.path / "watch" / "received.jsonl").write_text('{"text": "words of bob"}', encoding="utf-8")
    gone = crowd.user("bob")
    done = forget(crowd, ids=[gone])
    assert dict(done.removed) == {"posts": 40, "items": 5, "attributes": 1}
    assert dict(done.left) == {"posts": 120, "items": 15, "attributes": 3}
    assert done.people_left == 3
    assert list(crowd.cache.iterdir()) == []
    crowd.verify()
    again = Crowd(crowd.path)
    assert again.data_hash == crowd.data_hash
    for path in crowd.path.rglob("*"):
        if path.is_file() and path.name != "manifest.json":
            assert gone.encode() not in path.read_bytes()
            assert b"words of bob" not in path.read_bytes()


def test_the_data_hash_is_that_of_a_crowd_without_them(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    hashes = []
    for name, people in (("a", PEOPLE), ("b", ("ann", "cat", "dan"))):
        crowd = Crowd.create(tmp_path / name / "crowd", plain_names=True)
        crowd.ingest(write_jsonl(tmp_path / name / "posts.jsonl", rows(people)))
        items = [{"user": person, "item": f"i{n}", "value": n} for n in range(5) for person in people]
        crowd.ingest(write_jsonl(tmp_path / name / "items.jsonl", items), kind="items")
        if name == "a":
            forget(crowd, ids=["bob"])
        hashes.append(crowd.data_hash)
    assert hashes[0] == hashes[1]


def test_what_is_old_goes_and_what_has_no_time_stays(tmp_path: Path) -> None:
    crowd = new_crowd(tmp_path / "crowd")
    dated = [post("ann", f"post {n}", time=1000 + n) for n in range(10)]
    crowd.ingest(write_jsonl(tmp_path / "posts.jsonl", [*dated, post("bob", "undated", time=None)]))
    done = forget(crowd, before=1005)
    assert done.removed["posts"] == 5
    assert texts(crowd) == [*(f"post {n}" for n in range(5, 10)), "undated"]


def test_posts_go_by_the_hash_of_their_id(tmp_path: Path) -> None:
    crowd = filled(tmp_path)
    parts = [crowd.path / "parts" / part.file for part in crowd.state.tables["posts"].parts]
    stored = pl.concat([pl.read_parquet(path) for path in parts])
    row = stored.filter(pl.col("text") == "7 words of cat").row(0, named=True)
    key = row["id_hi"].to_bytes(8, "big") + row["id_lo"].to_bytes(8, "big")
    assert remove(crowd, keys=[key]).rows == 1
    assert "7 words of cat" not in texts(crowd)
    assert len(texts(crowd)) == 159


def test_nothing_to_forget_changes_nothing(tmp_path: Path) -> None:
    crowd = filled(tmp_path)
    before = {path: path.read_bytes() for path in (crowd.path / "parts").iterdir()}
    assert forget(crowd, ids=["nobody"]).rows == 0
    assert {path: path.read_bytes() for path in (crowd.path / "parts").iterdir()} == before


def test_imports_go_on_afterwards_in_their_order(tmp_path: Path) -> None:
    crowd = filled(tmp_path)
    forget(crowd, ids=[crowd.user("bob")])
    crowd.ingest(write_jsonl(tmp_path / "more.jsonl", [post("eve", "new here", id="e-1"), *rows(("ann",))]))
    assert len(texts(crowd)) == 121
    crowd.verify()


@settings(max_examples=15, deadline=None)
@given(chosen=st.sets(st.sampled_from(PEOPLE)), line=st.none() | st.integers(1_000_000, 1_000_050))
def test_whatever_is_chosen_exactly_that_goes(
    tmp_path_factory: pytest.TempPathFactory, chosen: set[str], line: int | None
) -> None:
    folder = tmp_path_factory.mktemp("crowd")
    crowd = Crowd.create(folder / "crowd", plain_names=True)
    crowd.ingest(write_jsonl(folder / "posts.jsonl", rows()))
    forget(crowd, ids=chosen, before=line)
    kept = [r for r in rows() if r["author"] not in chosen and not (line is not None and r["time"] < line)]  # type: ignore[operator]
    assert texts(crowd) == sorted(str(r["text"]) for r in kept)


def test_a_crash_before_the_commit_leaves_the_old_crowd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = filled(tmp_path)
    before = crowd.data_hash

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(forgetting.manifests, "save", crash)
    with pytest.raises(KeyboardInterrupt):
        forget(crowd, ids=[crowd.user("bob")])
    monkeypatch.undo()
    again = Crowd(crowd.path)
    again.verify()
    assert again.data_hash == before
    forget(again, ids=[again.user("bob")])
    assert len(texts(again)) == 120


def test_it_waits_for_nobody_and_interrupts_nobody(tmp_path: Path) -> None:
    crowd = filled(tmp_path)
    with import_lock(crowd.path), pytest.raises(CrowdBusy):
        forget(crowd, ids=["x"])


def test_a_whole_crowd_is_deleted(tmp_path: Path) -> None:
    crowd = filled(tmp_path)
    forget_everything(crowd)
    assert not crowd.path.exists()


class TestCommand:
    def test_a_person_by_name(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        crowd = filled(tmp_path)
        done = incrowd(capsys, "forget", crowd.path, "--user", "bob")
        assert done.code == 0
        assert "120" in done.out
        assert "bob" not in done.out
        assert incrowd(capsys, "forget", crowd.path, "--user", "bob").code == 2

    @pytest.mark.parametrize("wrong", ["yesterday", "2024-13-01", ""])
    def test_a_date_must_be_one(self, tmp_path: Path, capsys: pytest.CaptureFixture[str], wrong: str) -> None:
        crowd = filled(tmp_path)
        done = incrowd(capsys, "forget", crowd.path, "--before", wrong)
        assert done.code == 2
        assert "--before: expected a date" in done.err

    def test_a_whole_crowd_only_after_a_yes(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        crowd = filled(tmp_path)
        assert incrowd(capsys, "forget", crowd.path).code != 0
        assert crowd.path.exists()
        assert incrowd(capsys, "forget", crowd.path, "--user", "bob", "--before", "2024-01-01").code == 2
        assert incrowd(capsys, "forget", crowd.path, "--yes", "--json").code == 0
        assert not crowd.path.exists()


@pytest.mark.parametrize("extra", [(), ("--json",)])
def test_a_whole_crowd_is_not_deleted_while_nobody_can_be_asked(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    extra: tuple[str, ...],
) -> None:
    new_crowd(tmp_path / "crowd")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    outcome = incrowd(capsys, "forget", tmp_path / "crowd", *extra)
    assert outcome.code == 2
    assert "Pass --yes" in outcome.err
    assert (tmp_path / "crowd" / "manifest.json").exists()
