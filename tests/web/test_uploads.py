"""Files a person drops in: harmless names, private places, limits, and nothing left behind."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from incrowd.crowd import Crowd
from incrowd.web.serving import ServeOptions
from incrowd.web.uploads import FOLDER, discard_leftovers, harmless_name, private_folder

from .visiting import form_key, options_for, send_files, visitor, wait_for

POSTS = b"user,community,text\n" + b"".join(b"u%d,chess,a game number %d\n" % (k, k) for k in range(20))


@pytest.fixture
def options(tmp_path: Path) -> ServeOptions:
    return options_for(tmp_path / "crowd", upload_bytes=20_000, upload_files=2)


@pytest.fixture
def client(options: ServeOptions) -> Iterator[TestClient]:
    with visitor(options) as visiting:
        yield visiting


def left_behind(options: ServeOptions) -> list[Path]:
    return [path for path in (options.crowd / FOLDER).rglob("*") if path.exists()]


def test_a_table_ends_up_in_the_crowd_and_the_file_is_gone(client: TestClient, options: ServeOptions) -> None:
    ended = wait_for(client, send_files(client, {"posts.csv": POSTS}))
    assert ended["state"] == "done"
    shown = client.get(ended["url"])
    assert "20 rows are new in the crowd" in shown.text
    assert Crowd(options.crowd).info().posts == 20
    assert left_behind(options) == []


def test_two_files_of_one_name_are_both_read(client: TestClient, options: ServeOptions) -> None:
    folder = private_folder(options.crowd)
    more = POSTS.replace(b"chess", b"books")
    key = client.get("/").text.partition('name="form_key" value="')[2].partition('"')[0]
    parts = [("form_key", (None, key)), ("files", ("a.csv", POSTS)), ("files", ("a.csv", more))]
    assert wait_for(client, client.post("/uploads/import", files=parts))["state"] == "done"
    assert Crowd(options.crowd).info().posts == 40
    folder.rmdir()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("posts.zip", b"PK\x03\x04 not a zip"),
        ("noise.bin", os.urandom(500)),
        ("empty.csv", b""),
        ("x", b"\x00" * 99),
        ("header.csv", b"user,community,text\n"),
    ],
)
def test_a_bad_file_is_explained_without_the_place_it_lay_in(
    client: TestClient, options: ServeOptions, name: str, content: bytes
) -> None:
    ended = wait_for(client, send_files(client, {name: content}))
    assert ended["state"] == "failed"
    assert name in ended["problem"]
    assert str(options.crowd) not in ended["problem"]
    assert " --" not in ended["problem"]
    assert left_behind(options) == []
    assert Crowd(options.crowd).info().posts == 0


def test_more_files_than_allowed_are_refused(client: TestClient, options: ServeOptions) -> None:
    answer = send_files(client, dict.fromkeys(["a.csv", "b.csv", "c.csv"], POSTS))
    assert answer.status_code == 400
    assert "at most 2 files" in answer.text
    assert left_behind(options) == []


def test_more_bytes_than_allowed_are_refused(client: TestClient, options: ServeOptions) -> None:
    assert send_files(client, {"a.csv": b"a" * 30_000}).status_code == 413
    assert left_behind(options) == []


def test_a_file_name_that_does_not_end_is_refused(client: TestClient, options: ServeOptions) -> None:
    assert send_files(client, {"a" * 12_000 + ".csv": POSTS}).status_code == 400
    assert left_behind(options) == []


def test_a_file_name_of_two_megabytes_is_refused(tmp_path: Path) -> None:
    options = options_for(tmp_path / "crowd")
    with visitor(options) as client:
        assert send_files(client, {"a" * 2_000_000 + ".csv": POSTS}).status_code == 400
    assert left_behind(options) == []


def test_a_long_name_of_many_bytes_is_cut(client: TestClient, options: ServeOptions) -> None:
    assert (
        wait_for(client, send_files(client, {"\N{GRINNING FACE}漢" * 300 + ".csv": POSTS}))["state"] == "done"
    )
    assert len(harmless_name("漢" * 300 + ".csv", 0).encode()) <= 120
    assert harmless_name("漢" * 300 + ".csv", 0).endswith("漢.csv")


def test_without_the_form_key_nothing_is_written(client: TestClient, options: ServeOptions) -> None:
    answer = client.post("/uploads/import", files=[("files", ("a.csv", POSTS))])
    assert answer.status_code == 400
    assert left_behind(options) == []


def test_no_file_at_all_is_explained(client: TestClient) -> None:
    answer = send_files(client, {})
    assert "Choose at least one file" in answer.text


def test_a_form_cut_short_is_refused(client: TestClient, options: ServeOptions) -> None:
    key = client.get("/").text.partition('name="form_key" value="')[2].partition('"')[0]
    body = (
        '--B\r\nContent-Disposition: form-data; name="form_key"\r\n\r\n' + key + "\r\n"
        '--B\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\nuser,comm'
    )
    kind = {"content-type": "multipart/form-data; boundary=B"}
    answer = client.post("/uploads/import", content=body.encode(), headers=kind)
    assert answer.status_code == 400
    assert "ended early" in answer.text
    assert left_behind(options) == []


def test_uploads_lie_in_a_folder_for_the_owner_alone(tmp_path: Path) -> None:
    folder = private_folder(tmp_path)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_what_a_killed_server_left_is_removed_and_a_running_ones_is_kept(tmp_path: Path) -> None:
    mine = private_folder(tmp_path)
    theirs = tmp_path / FOLDER / "4194304-x"  # above the largest process number
    theirs.mkdir()
    discard_leftovers(tmp_path)
    assert mine.exists()
    assert not theirs.exists()


@given(st.text(max_size=300))
def test_any_name_stays_in_its_folder(name: str) -> None:
    kept = harmless_name(name, 7)
    assert kept
    assert "/" not in kept
    assert "\\" not in kept
    assert "\0" not in kept
    assert not kept.startswith(".")
    assert len(kept) <= 120


@pytest.mark.parametrize("name", ["export.zip", "RC_2024-01.zst", "my posts (2).csv.gz"])
def test_endings_survive(name: str) -> None:
    assert harmless_name(name, 0) == name


def test_columns_can_be_named_in_the_form(client: TestClient, options: ServeOptions) -> None:
    table = b"nick,article\nann,hello\nbob,hi\n"
    job = wait_for(
        client, send_files(client, {"a.csv": table}, columns="user=nick, text=article", kind="posts")
    )
    assert job["state"] == "done", job
    assert Crowd(options.crowd).info().posts == 2


def test_a_question_is_asked_and_the_answer_goes_on_with_the_files(
    client: TestClient, options: ServeOptions
) -> None:
    table = b"user,community,time,text\nann,tea,3/4/2020,hello\n"
    shown = send_files(client, {"a.csv": table})
    assert wait_for(client, shown)["state"] == "done"
    page = client.get(str(shown.url))
    assert "every one fits both readings" in page.text
    assert "<option>community</option>" in page.text
    assert not Crowd(options.crowd).info().posts
    job_id = str(page.url).rsplit("/", 1)[1]
    key = form_key(client, f"/imports/{job_id}")
    again = client.post(f"/imports/{job_id}/answer", data={"form_key": key, "dates": "mdy"})
    assert wait_for(client, again)["state"] == "done"
    assert Crowd(options.crowd).posts().collect()["time"].to_list() == [1583280000]
    assert not list((options.crowd / "uploads").glob("*/*"))


def test_one_can_look_at_what_was_understood_first_and_choose_other_columns(
    client: TestClient, options: ServeOptions
) -> None:
    table = b"user,community,time,text,article\nann,tea,1609502400,short,The whole UTF-8 story\n"
    shown = send_files(client, {"a.csv": table}, look="true")
    assert wait_for(client, shown)["state"] == "done"
    page = client.get(str(shown.url))
    for said in (
        "What is in your files",
        "2021-01-01 to 2021-01-01",
        "<option>article</option>",
        "by 1 person",
        "… | tea | 2021-01-01 | short",
        "find out (text)",
    ):
        assert said in page.text
    assert " --" not in page.text
    assert not Crowd(options.crowd).info().posts
    job_id = str(page.url).rsplit("/", 1)[1]
    key = form_key(client, f"/imports/{job_id}")
    again = client.post(f"/imports/{job_id}/answer", data={"form_key": key, "column_text": "article"})
    assert wait_for(client, again)["state"] == "done"
    assert Crowd(options.crowd).posts().collect()["text"].to_list() == ["The whole UTF-8 story"]
    assert not list((options.crowd / "uploads").glob("*/*"))


def test_what_was_unsure_is_said_without_options_of_the_command_line(client: TestClient) -> None:
    viewed = b"Title,Date\nTea,2021-01-01\n"
    shown = send_files(client, {"NetflixViewingHistory.csv": viewed})
    assert wait_for(client, shown)["state"] == "done"
    page = client.get(str(shown.url)).text
    assert "kept under the name &#39;me&#39;." in page
    assert " --" not in page


def test_columns_that_are_not_known_are_a_question_without_the_place_the_file_lay_in(
    client: TestClient, options: ServeOptions
) -> None:
    shown = send_files(client, {"columns.csv": b"who,where,what\na,b,c\n"})
    assert wait_for(client, shown)["state"] == "done"
    page = client.get(str(shown.url)).text
    assert "columns.csv: no column for" in page
    assert str(options.crowd) not in page
    assert " --" not in page
    assert "<option>who</option>" in page
    assert Crowd(options.crowd).info().posts == 0
