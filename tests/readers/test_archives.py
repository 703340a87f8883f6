"""Archives: what is refused, and what personal exports give."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from pathlib import Path

import pytest

from incrowd.crowd.readers import ReadOptions, detect
from incrowd.errors import InputError, SchemaError, UnreadableSource

from .files import (
    mastodon_outbox,
    note,
    reddit_export,
    table,
    tarred,
    tweet,
    tweets,
    twitter_archive,
    zipped,
)
from .reading import outcome, read, rejects, rows

ACCOUNT = b'window.YTD.account.part0 = [{"account": {"username": "ann"}}]'


def write(folder: Path, data: bytes, name: str = "export.zip") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "name", ["../comments.csv", "/comments.csv", "a/../../comments.csv", "C:\\comments.csv"]
)
def test_a_path_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="outside the archive"):
        detect(write(tmp_path, zipped({name: b"id,body\n"})))


def test_a_password_is_refused(tmp_path: Path) -> None:
    data = bytearray(reddit_export())
    at = data.rfind(b"PK\x01\x02")
    while at >= 0:
        data[at + 8] |= 1
        at = data.rfind(b"PK\x01\x02", 0, at)
    with pytest.raises(UnreadableSource, match="needs a password"):
        detect(write(tmp_path, bytes(data)))


@pytest.mark.parametrize(
    "inner",
    [zipped({"x": b"y"}), gzip.compress(b"id,body\n", mtime=0), tarred({"x": b"y"})],
    ids=["zip", "gz", "tar"],
)
def test_an_archive_in_an_archive_is_refused(inner: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, zipped({"comments.csv": inner}))
    with pytest.raises(UnreadableSource, match="inside an archive"):
        read(path, ReadOptions(user="ann"))


def test_zips_inside_a_zip_are_read_as_if_they_were_folders(tmp_path: Path) -> None:
    plain = outcome(write(tmp_path, reddit_export(), "plain.zip"))
    packed = zipped(
        {"notes.txt": b"hello", "part/export.zip": reddit_export(), "photos.ZIP": b"no zip at all"}
    )
    assert outcome(write(tmp_path, packed)) == plain


def test_deeper_than_one_level_is_refused(tmp_path: Path) -> None:
    inner = zipped({"comments.csv": zipped({"x": b"y"})})
    with pytest.raises(UnreadableSource, match="inside an archive"):
        read(write(tmp_path, zipped({"one.zip": inner})), ReadOptions(user="ann"))


@pytest.mark.parametrize("name", ["../comments.csv", "/comments.csv"])
def test_a_path_that_leads_out_of_an_inner_zip_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="outside the archive"):
        detect(write(tmp_path, zipped({"inner.zip": zipped({name: b"id,body\n"})})))


def test_a_bomb_in_an_inner_zip_stops_at_the_cap(tmp_path: Path) -> None:
    """A hundred megabytes of nothing, packed twice into a few hundred bytes."""
    inner = zipped({"comments.csv": b"id,date,subreddit,body\n" + b"\0" * 10**8})
    path = write(tmp_path, zipped({"inner.zip": inner}))
    assert path.stat().st_size < 10_000
    with pytest.raises(UnreadableSource, match="bomb"):
        read(path, ReadOptions(user="ann"))


def test_an_inner_zip_that_is_too_large_is_not_laid_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incrowd.crowd.readers.archive.NESTED_BYTES", 100)
    with pytest.raises(InputError, match=r"zip archive without|inside an archive"):
        read(write(tmp_path, zipped({"export.zip": reddit_export()})))


def test_a_bomb_in_a_zip_stops_at_the_cap(tmp_path: Path) -> None:
    head = b"id,date,subreddit,body\n"
    path = write(
        tmp_path, zipped({"comments.csv": head + (b"1,2020-01-01,tea," + b"x" * 10**5 + b"\n") * 700})
    )
    with pytest.raises(UnreadableSource, match="bomb"):
        read(path, ReadOptions(user="ann", max_ratio=20, batch_bytes=2**22))


def test_a_damaged_member_is_refused(tmp_path: Path) -> None:
    data = bytearray(
        zipped({"comments.csv": table(("id", "body"), *((str(n), "words") for n in range(500)))})
    )
    data[60] ^= 0xFF
    with pytest.raises(UnreadableSource, match="damaged"):
        read(write(tmp_path, bytes(data)), ReadOptions(user="ann"), "reddit-export")


@pytest.mark.parametrize("end", [10, 200, -1, -30])
def test_a_cut_zip_is_refused(end: int, tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="damaged or cut off"):
        detect(write(tmp_path, reddit_export()[:end]))


def test_a_checksum_that_does_not_match_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("comments.csv", b"id,body\n1,abc\n")
    data = out.getvalue().replace(b"1,abc", b"1,abd")
    with pytest.raises(UnreadableSource, match="damaged inside"):
        read(write(tmp_path, data), ReadOptions(user="ann"))


def test_an_unknown_zip_says_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(
        UnreadableSource, match=r"zip archive without .*comments\.csv, data/tweets\.js, outbox\.json"
    ):
        detect(write(tmp_path, zipped({"readme.txt": b"hello"})))


def test_an_export_that_does_not_say_whose_it_is_needs_a_name(tmp_path: Path) -> None:
    path = write(tmp_path, reddit_export(account=False))
    with pytest.raises(SchemaError, match="user NAME"):
        read(path)
    assert {row["user"] for row in rows(path, ReadOptions(user="me"))} == {"me"}


def test_an_export_in_a_folder_is_found(tmp_path: Path) -> None:
    members = {
        f"export_ann/{name}": data
        for name, data in {"comments.csv": b"id,date,subreddit,body\n1,,t,x\n"}.items()
    }
    assert rows(write(tmp_path, zipped(members)), ReadOptions(user="ann"))[0]["text"] == "x"


def test_retweets_are_skipped_and_counted(tmp_path: Path) -> None:
    batches = read(write(tmp_path, twitter_archive()))
    assert sum(batch.skipped for batch in batches) == 1


def test_the_oldest_layout_of_tweets_is_read(tmp_path: Path) -> None:
    bare = [{"id_str": "1", "text": "old", "created_at": "Wed Nov 11 20:00:00 +0000 2020"}]
    old = b"window.YTD.tweet.part0 = " + json.dumps(bare).encode()
    path = write(tmp_path, zipped({"data/account.js": ACCOUNT, "data/tweet.js": old}))
    assert [(row["id"], row["text"]) for row in rows(path)] == [("1", "old")]


def test_parts_of_tweets_are_read_in_their_order(tmp_path: Path) -> None:
    parts = {f"data/tweets-part{n}.js": tweets(tweet(n, f"t{n}"), part=n) for n in (10, 2, 1)}
    path = write(
        tmp_path, zipped({"data/account.js": ACCOUNT, "data/tweets.js": tweets(tweet(0, "t0")), **parts})
    )
    assert [row["text"] for row in rows(path)] == ["t0", "t1", "t2", "t10"]
    assert [row["row"] for row in rows(path)] == [1, 2, 3, 4]


def test_a_broken_tweet_is_set_aside(tmp_path: Path) -> None:
    records = [
        tweet(1, None),
        tweet(2, 7),
        tweet(3, ["x"]),
        "no object",
        tweet(5, "x", "soon"),
        tweet(6, "x", None),
    ]
    path = write(tmp_path, zipped({"data/account.js": ACCOUNT, "data/tweets.js": tweets(*records)}))
    assert rejects(path) == {1: "missing_field", 3: "wrong_type", 4: "not_an_object", 5: "bad_time"}
    assert [(row["text"], row["time"]) for row in rows(path)] == [("7", 1605124800), ("x", None)]


def test_tweets_that_break_off_are_refused_or_kept(tmp_path: Path) -> None:
    cut = tweets(tweet(1, "kept"), tweet(2, "lost"))[:-40]
    path = write(tmp_path, zipped({"data/account.js": ACCOUNT, "data/tweets.js": cut}))
    with pytest.raises(UnreadableSource, match=r"breaks off.*keep_complete"):
        read(path)
    batches = read(path, ReadOptions(keep_complete=True))
    assert [text for batch in batches for text in batch.rows["text"]] == ["kept"]
    assert batches[-1].incomplete


def test_tweets_without_an_account_need_a_name(tmp_path: Path) -> None:
    path = write(tmp_path, zipped({"data/tweets.js": tweets(tweet(1, "x"))}))
    with pytest.raises(SchemaError, match="user NAME"):
        read(path)
    assert rows(path, ReadOptions(user="me", community="birds"))[0]["community"] == "birds"


def test_boosts_and_private_notes_are_skipped_and_counted(tmp_path: Path) -> None:
    batches = read(write(tmp_path, mastodon_outbox(), "outbox.json"))
    assert sum(batch.skipped for batch in batches) == 2


def test_a_broken_note_is_set_aside(tmp_path: Path) -> None:
    outbox = {"orderedItems": [note(1, None), note(2, 5), "x", note(4, ["x"]), note(5, "<p>fine</p>")]}
    path = write(tmp_path, json.dumps(outbox).encode(), "outbox.json")
    assert rejects(path) == {1: "missing_field", 3: "not_an_object", 4: "wrong_type"}
    assert [row["text"] for row in rows(path)] == ["5", "fine"]


def test_a_warning_before_a_note_belongs_to_it(tmp_path: Path) -> None:
    careful = note(1, "<p>spoiler</p>")
    assert isinstance(careful["object"], dict)
    careful["object"]["summary"] = "about a film"
    path = write(tmp_path, json.dumps({"orderedItems": [careful]}).encode())
    assert rows(path)[0]["text"] == "about a film\n\nspoiler"


def test_a_document_without_posts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="no list of posts"):
        read(write(tmp_path, b'{"type": "OrderedCollection"}'), format="mastodon")


def test_a_tar_without_an_outbox_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, tarred({"actor.json": b"{}"}), "archive.tar")
    with pytest.raises(UnreadableSource, match=r"no outbox\.json"):
        read(path)
    with pytest.raises(UnreadableSource, match="tar archive without"):
        detect(write(tmp_path, tarred({"notes.txt": b"hi"}), "other.tar"))


def test_a_cut_tar_is_refused(tmp_path: Path) -> None:
    whole = tarred({"actor.json": b"{}", "outbox.json": mastodon_outbox()})
    with pytest.raises(InputError):
        read(write(tmp_path, whole[: 512 * 3 + 100], "archive.tar"), format="mastodon")


def test_a_tar_with_a_path_that_leads_out_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, tarred({"actor.json": b"{}", "../outbox.json": b"{}"}), "archive.tar")
    with pytest.raises(UnreadableSource, match="outside the archive"):
        read(path)


def test_half_pairs_in_an_export_are_replaced_and_counted(tmp_path: Path) -> None:
    raw = tweets(tweet(1, "X")).replace(b'"X"', b'"a\\ud800b"')
    path = write(tmp_path, zipped({"data/account.js": ACCOUNT, "data/tweets.js": raw}))
    assert rows(path)[0]["text"] == "a\ufffdb"
    assert sum(batch.replaced for batch in read(path)) == 1
    assert outcome(path, ReadOptions(batch_bytes=1)) == outcome(path)


def test_a_zip_that_lies_about_sizes_is_refused(tmp_path: Path) -> None:
    data = bytearray(zipped({"comments.csv": b"id,date,subreddit,body\n" + b"1,,t,x\n" * 1000}))
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 10)
    with pytest.raises(InputError):
        read(write(tmp_path, bytes(data)), ReadOptions(user="ann"))
