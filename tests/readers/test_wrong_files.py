"""Forty wrong or mixed-up files: each gets a sentence that helps, and none goes in silently."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.crowd.making import new_crowd

from incrowd.crowd.ingest import stop_at_questions
from incrowd.crowd.own_export import read_export
from incrowd.errors import InputError, Undecided

from .files import zipped

BOOKS = "Title,Author,Pages\nTea,Lee Cup,100\nCake,Kim Pan,90\n"
PAGE = b"<!DOCTYPE html><html><body>x</body></html>"
WRONG: dict[str, tuple[bytes, str]] = {
    "empty.csv": (b"", "empty"),
    "blanks.txt": (b" \n\n ", "empty"),
    "photo.jpg": (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", "a picture"),
    "photo.png": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a picture"),
    "paper.pdf": (b"%PDF-1.7\n\x00\x01\x02 1 0 obj", "choose that"),
    "export.7z": (b"7z\xbc\xaf\x27\x1c\0\4", "pack it as a zip"),
    "program": (b"\x7fELF\2\1\1\0\0", "neither text nor"),
    "letter.docx": (zipped({"word/document.xml": b"<w:document/>"}), "a document of Word"),
    "facebook.zip": (zipped({"your_facebook_activity/posts/your_posts_1.html": PAGE}), "choose JSON"),
    "instagram.zip": (zipped({"instagram-ann/content/posts_1.html": PAGE, "start_here.html": PAGE}), "choose JSON"),
    "your_posts.html": (PAGE.replace(b"x", b'<div class="_3-95 _a6-g">x</div>'), "choose JSON"),
    "messages.html": (PAGE.replace(b"x", b'<div class="page_wrap">x</div>'), "choose machine-readable JSON"),
    "telegram.zip": (zipped({"ChatExport/messages2.html": PAGE}), "choose machine-readable JSON"),
    "takeout-002.zip": (zipped({"Takeout/Drive/a.txt": b"x"}), "come in several parts"),
    "instagram-2.zip": (zipped({"personal_information/a.jpg": b"x"}), "come in several parts"),
    "trakt.zip": (zipped({"ratings-movies.json": b"[]", "watched-history-1.json": b" [ ]"}),
                  "recognised as Trakt export, but nothing is in it"),
    "tiktok.json": (b'{"Activity": {}, "Comment": {"Comments": {"CommentsList": []}}}', "begins like JSON"),
    "photos.zip": (zipped({"a.jpg": b"x", "b.jpg": b"y"}), "zip archive without"),
    "nested.zip": (zipped({"posts/your_posts_1.json": zipped({"a": b"b"})}), "archive inside an archive"),
    "cut.zip": (zipped({"data/tweets.js": b"x" * 500})[:60], "damaged or cut off"),
    "diary.txt": (b"Dear diary,\ntoday it rained.\n", "names no column"),
    "page.html": (b"<html><body><p>Hello</p></body></html>", "XML or HTML"),
    "settings.json": (b'{"theme": "dark", "size": 3}', "JSON"),
    "numbers.json": (b"[1, 2, 3]", "begins like JSON"),
    "texts.json": (b'["a", "b"]', "begins like JSON"),
    "broken.json": (b'{"a": ', "begins like JSON"),
    "nulls.jsonl": (b"null\nnull\n", "names no column"),
    "books.csv": (BOOKS.encode(), "authors of what is listed"),
    "one_column.csv": (b"name\nann\nbob\n", "names no column"),
    "no_user.csv": (b"text,time\nhello,7\nbye,8\n", "no column for 'user'"),
    "no_item.csv": (b"user,rating\nann,4\n", ""),
    "twice.csv": (b"user,text,text\nann,a,b\n", "names a column twice"),
    "open_quote.csv": (b'user,text\nann,"hello\nbob,hi\n', "never closed"),
    "ragged.csv": (b"user,text\n" + b"a,b,c\n" * 30, "have not the 2 columns"),
    "headless.csv": (b"ann,hello there\nbob,good day\n", "if its first line is no header, add one"),
    "wrong_times.csv": (b"user,time,text\n" + b"ann,yesterday,hi\n" * 30, "bad_time"),
    "some_wrong_times.csv": (b"user,time,text\n" + b"ann,yesterday,hi\nann,7,ho\n" * 30, "would be set aside"),
    "both_dates.csv": (b"user,time,text\nann,3/4/2020,hi\n", "dates dmy or mdy"),
    "wrong_ratings.csv": (b"user,item,rating\n" + b"ann,x,good\n" * 30, "bad_value"),
    "deleted.jsonl": (b'{"author": "[deleted]", "text": "x"}\n' * 5, "the author deleted"),
    "only_header.csv": (b"user,community,time,text\n", "no rows at all"),
    "chat.txt": (b"[01.01.21, 12:00:00] Ann: hi\n[01.01.21, 12:01:00] Bob: ho\n", "Under which name"),
    "result.json": (
        json.dumps({"name": "tea", "type": "g", "id": 1, "messages": [{"id": 1, "type": "message", "from": "Ann",
                    "from_id": "user1", "date": "2021-01-01T12:00:00", "text": "hi"}]}).encode(),
        "Under which name",
    ),
    "slack.zip": (zipped({"tea/2021-01-01.json": b'[{"type": "message", "user": "U1", "text": "x", "ts": "7.1"}]'}),
                  "Under which name"),
    "netflix.csv": (b"Profile Name,Start Time,Title\nAnn,2021-01-01 12:00:00,Tea\nBob,2021-01-01 12:00:00,Cake\n",
                    "Which one is yours"),
    "tweets.js": (b'window.YTD.tweets.part0 = [{"tweet": {"id_str": "1", "full_text": "x"}}]', "Whose are they"),
    "reddit.zip": (zipped({"comments.csv": b"id,date,subreddit,body\nc,2021-01-01 12:00:00 UTC,tea,hi\n"}),
                   "does not say whose"),
    "workbook.xlsx": (zipped({"xl/workbook.xml": b"<w/>", "xl/worksheets/sheet1.xml": b"<x"}), "damaged|must name"),
    "database.db": (b"SQLite format 3\0" + b"\0" * 100, "damaged"),
    "table.parquet": (b"PAR1" + b"\0" * 50, "damaged"),
    "repo.car": (b"\x3a\xa2eroots\x81\xd8*", "damaged"),
    "blog.xml": (b'<?xml version="1.0"?><rss><channel><item><title>x</title>', "damaged, cut off or unsafe"),
    "laughs.xml": (b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "b">]><rss><channel/></rss>', "XML or HTML|unsafe"),
    "loop.zip": (zipped({"../data/tweets.js": b"x"}), "leads outside the archive"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_gets_a_sentence_that_helps(name: str, tmp_path: Path) -> None:
    data, expected = WRONG[name]
    source = tmp_path / name
    source.write_bytes(data)
    crowd = new_crowd(tmp_path / "crowd")
    if not expected:  # nothing is wrong with it, and it says how it was read
        assert crowd.ingest(source, confirm=stop_at_questions).understood[0].unsure
        return
    with pytest.raises(InputError, match=expected) as caught:
        crowd.ingest(source, confirm=stop_at_questions)
    assert name in str(caught.value) or "Netflix" in str(caught.value)
    checked = "Check kind" in str(caught.value).replace("--", "")
    assert checked == (
        name in ("wrong_times.csv", "wrong_ratings.csv")
    )  # nothing is wrong with the others' columns
    assert crowd.info().posts == crowd.info().item_rows == crowd.info().attributes == 0


def test_who_gave_no_name_is_asked_for_one(tmp_path: Path) -> None:
    source = tmp_path / "chat.txt"
    source.write_bytes(WRONG["chat.txt"][0])
    with pytest.raises(Undecided, match="Under which name do you appear") as caught:
        read_export([source])
    assert caught.value.option == "user"
    assert "name given" not in str(caught.value)


def test_a_name_that_is_not_in_a_chat_is_a_question(tmp_path: Path) -> None:
    source = tmp_path / "chat.txt"
    source.write_bytes(WRONG["chat.txt"][0])
    with pytest.raises(InputError, match="none of its 2 records is by the name given"):
        new_crowd(tmp_path / "crowd").ingest(source, user="Zoe", dates="dmy")


def test_there_are_forty_of_them() -> None:
    assert len(WRONG) >= 40
