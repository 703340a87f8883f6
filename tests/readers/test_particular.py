"""What is particular to one format."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from incrowd.crowd.readers import ReadOptions, detect
from incrowd.errors import SchemaError, UnreadableSource

from .files import (
    MAIL,
    STACK_EXCHANGE,
    jsonl,
    mastodon_outbox,
    parquet,
    reddit_export,
    twitter_archive,
    zipped,
)
from .reading import links, outcome, read, rejects, rows
from .services import car


def write(folder: Path, data: bytes, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


class TestReddit:
    COMMENT = {"author": "ann", "subreddit": "tea", "created_utc": 1, "id": "a", "body": "x"}  # noqa: RUF012

    def test_a_broken_comment_is_set_aside(self, tmp_path: Path) -> None:
        comment = self.COMMENT
        path = write(
            tmp_path,
            jsonl(
                comment,
                {**comment, "body": None},
                {**comment, "body": ["x"]},
                {**comment, "created_utc": "soon"},
            )
            + b"{broken\n"
            + jsonl({**comment, "author": None}),
        )
        assert rejects(path) == {2: "missing_field", 3: "wrong_type", 4: "bad_time", 5: "bad_json"}
        assert [(row["row"], row["user"]) for row in rows(path)] == [(1, "ann"), (6, None)]

    def test_ids_keep_comments_and_submissions_apart(self, tmp_path: Path) -> None:
        post = {
            "author": "ann",
            "subreddit": "tea",
            "created_utc": 1,
            "id": "a",
            "title": "t",
            "selftext": "s",
        }
        path = write(
            tmp_path, jsonl(self.COMMENT, post, {**self.COMMENT, "id": "t1_b"}, {**post, "id": None})
        )
        assert [row["id"] for row in rows(path)] == ["t1_a", "t3_a", "t1_b", None]

    def test_a_deleted_text_is_left_to_the_store(self, tmp_path: Path) -> None:
        path = write(
            tmp_path, jsonl({**self.COMMENT, "body": "[deleted]"}, {**self.COMMENT, "author": "[deleted]"})
        )
        assert [(row["user"], row["text"]) for row in rows(path)] == [
            ("ann", "[deleted]"),
            ("[deleted]", "x"),
        ]

    def test_lines_with_many_other_keys_are_read(self, tmp_path: Path) -> None:
        busy = {**self.COMMENT, "all_awardings": [{"id": "x", "author": "y"}], "media": {"body": {"id": 1}}}
        path = write(tmp_path, jsonl(*([busy] * 3)))
        assert [row["text"] for row in rows(path)] == ["x"] * 3

    def test_a_cut_dump_keeps_whole_lines_only(self, tmp_path: Path) -> None:
        from backports import zstd

        packed = zstd.compress(
            jsonl(*({**self.COMMENT, "id": f"{n:x}", "body": f"{n**7}"} for n in range(3000)))
        )
        path = write(tmp_path, packed[: len(packed) // 2])
        with pytest.raises(UnreadableSource, match="ends early"):
            read(path)
        batches = read(path, ReadOptions(keep_complete=True))
        assert batches[-1].incomplete
        found = pl.concat([batch.rows for batch in batches])
        assert 0 < found.height < 3000
        assert found["text"].to_list() == [str(n**7) for n in range(found.height)]
        assert not any(batch.rejects.height for batch in batches)


class TestJsonLines:
    def test_keys_that_appear_later_are_found(self, tmp_path: Path) -> None:
        path = write(tmp_path, jsonl({"text": "a"}, {"text": "b", "user": "ann"}))
        assert [row["user"] for row in rows(path)] == [None, "ann"]

    def test_a_missing_column_lists_the_keys(self, tmp_path: Path) -> None:
        path = write(tmp_path, jsonl({"text": "a", "sensitive": True}))
        with pytest.raises(SchemaError, match=r"no column for 'user'.*user NAME.*: text, sensitive"):
            read(path)

    def test_no_object_at_all_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SchemaError, match="none of the first lines is a JSON object"):
            read(write(tmp_path, b"1\n2\n"), format="jsonl")

    def test_numbers_as_names_and_items(self, tmp_path: Path) -> None:
        path = write(
            tmp_path, jsonl({"user_id": 7, "item": 12345678901234567890, "rating": "4.5", "t": None})
        )
        assert rows(path)[0] | {} == {"row": 1, "id": None, "user": "7", "item": "12345678901234567890",
                                      "value": 4.5, "time": None}  # fmt: skip

    def test_attributes_long_and_wide(self, tmp_path: Path) -> None:
        long = write(tmp_path, jsonl({"user": "ann", "attribute": "age", "value": 31}), "long")
        wide = write(tmp_path, jsonl({"user": "ann", "age": 31, "job": None}), "wide")
        assert rows(long) == rows(wide)

    def test_a_hundred_megabyte_line_is_set_aside(self, tmp_path: Path) -> None:
        path = tmp_path / "long.jsonl"
        with path.open("wb") as file:
            file.write(jsonl({"user": "ann", "text": "before"}) + b'{"user": "bob", "text": "')
            for _ in range(100):
                file.write(b"x" * 10**6)
            file.write(b'"}\n' + jsonl({"user": "cat", "text": "after"}))
        batches = read(path, ReadOptions(batch_bytes=2**20))
        assert [text for batch in batches for text in batch.rows["text"]] == ["before", "after"]
        assert [row for batch in batches for row in batch.rejects.rows()] == [(2, "text_too_long")]


class TestStackExchange:
    def test_an_entity_bomb_is_refused(self, tmp_path: Path) -> None:
        bomb = b'<!DOCTYPE posts [<!ENTITY a "aaaaaaaa">]>\n<posts><row Body="&a;"/></posts>'
        with pytest.raises(UnreadableSource, match="declares a document type"):
            read(write(tmp_path, bomb), format="stackexchange")

    def test_comments_are_read_too(self, tmp_path: Path) -> None:
        data = b'<comments>\n<row Id="5" UserId="3" Text="1 &lt; 2" CreationDate="2010-01-01"/>\n</comments>'
        (comment,) = rows(write(tmp_path, data), ReadOptions(community="tea"))
        assert tuple(comment.values()) == (2, "c5", "3", "tea", 1262304000, "1 < 2")

    @pytest.mark.parametrize(
        "data", [STACK_EXCHANGE[:-20], STACK_EXCHANGE.replace(b'Id="2"', b"Id=2"), b"<posts>"]
    )
    def test_broken_xml_is_refused(self, data: bytes, tmp_path: Path) -> None:
        with pytest.raises(UnreadableSource, match=r"not well-formed XML at line \d"):
            read(write(tmp_path, data))

    def test_what_xml_cannot_hold_is_replaced_and_counted(self, tmp_path: Path) -> None:
        body = (
            b'<posts>\n<row OwnerUserId="1" Body="a&#x1F;b"/>\n<row OwnerUserId="1" Body="a\xffb"/>\n</posts>'
        )
        path = write(tmp_path, body)
        assert [row["text"] for row in rows(path)] == ["a\ufffdb", "a\ufffdb"]
        assert sum(batch.replaced for batch in read(path)) == 2
        assert outcome(path, ReadOptions(batch_bytes=1)) == outcome(path)

    def test_a_row_over_the_cap_is_set_aside(self, tmp_path: Path) -> None:
        data = STACK_EXCHANGE.replace(b"Because", b"x" * 5000)
        path = write(tmp_path, data)
        options = ReadOptions(max_line_bytes=1000)
        assert rejects(path, options) == {3: "text_too_long"}
        assert [row["id"] for row in rows(path, options)] == ["p2"]

    def test_a_post_without_body_or_owner(self, tmp_path: Path) -> None:
        path = write(tmp_path, b'<posts>\n<row Id="1"/>\n<row Id="2" Body="x"/>\n</posts>')
        assert rejects(path) == {2: "missing_field"}
        assert rows(path)[0]["user"] is None


class TestMbox:
    def mail(self, **headers: str) -> bytes:
        lines = {"From": "Jo <jo@example.org>", **headers}
        head = "".join(f"{name}: {value}\n" for name, value in lines.items())
        return f"From jo@example.org Tue Jan  1 12:00:00 2002\n{head}\nWords.\n\n".encode()

    def test_a_line_that_begins_with_from_ends_no_mail(self, tmp_path: Path) -> None:
        body = MAIL.replace(
            b"I bought a kettle.\n\n", b"I bought a kettle.\n\nFrom 12:00 in 2002 on\nno header\n\n", 1
        )
        assert len(rows(write(tmp_path, body))) == 2

    def test_a_mail_over_the_cap_is_set_aside(self, tmp_path: Path) -> None:
        for filler in (b"long line " * 500, b"short\n" * 900):
            data = MAIL.replace(b"I bought a kettle.\n\n", b"I bought a kettle.\n" + filler + b"\n\n", 1)
            path = write(tmp_path, data)
            options = ReadOptions(max_line_bytes=2000)
            assert rejects(path, options) == {1: "text_too_long"}
            assert [row["row"] for row in rows(path, options)] == [2]
            small = ReadOptions(max_line_bytes=2000, batch_bytes=100)
            assert outcome(path, small) == outcome(path, options)

    def test_dates_and_senders(self, tmp_path: Path) -> None:
        path = write(
            tmp_path,
            self.mail(Date="Tue, 01 Jan 2002 12:00:00 +0000")
            + self.mail(Date="whenever", From="x@example.org")
            + self.mail(From="=?utf-8?q?J=C3=B6?= <J@Example.org>"),
        )
        assert rejects(path) == {2: "bad_time"}
        assert [(row["user"], row["time"]) for row in rows(path)] == [
            ("jo@example.org", 1009886400),
            ("j@example.org", None),
        ]

    def test_the_list_is_the_community(self, tmp_path: Path) -> None:
        folder = tmp_path / "tea-list"
        folder.mkdir()
        assert rows(write(folder, self.mail(), "2002-January.txt"))[0]["community"] == "tea-list"
        assert rows(write(folder, self.mail(), "kettles.mbox"))[0]["community"] == "kettles"
        assert rows(folder / "kettles.mbox", ReadOptions(community="c"))[0]["community"] == "c"

    def test_html_alone_and_attachments(self, tmp_path: Path) -> None:
        message = EmailMessage()
        message["From"] = "jo@example.org"
        message.set_content("<p>Hello <i>there</i></p><blockquote>old</blockquote>", subtype="html")
        message.add_attachment("secret file", filename="a.txt")
        data = b"From jo Tue Jan  1 12:00:00 2002\n" + bytes(message)
        assert rows(write(tmp_path, data))[0]["text"] == "Hello there"

    @pytest.mark.parametrize(
        ("charset", "body", "text", "replaced"),
        [
            (b"utf-8", "Grüße".encode(), "Grüße", 0),
            (b"iso-8859-1", b"Gr\xfc\xdfe", "Grüße", 0),
            (b"no-such-charset", "Grüße".encode(), "Grüße", 0),
            (b"us-ascii", "Grüße".encode(), "Grüße", 0),
            (b"utf-8", b"Gr\xfc", "Gr\ufffd", 1),
        ],
    )
    def test_charsets(self, charset: bytes, body: bytes, text: str, replaced: int, tmp_path: Path) -> None:
        head = b"From jo Tue Jan  1 12:00:00 2002\nFrom: jo@example.org\nContent-Type: text/plain; charset="
        path = write(tmp_path, head + charset + b"\nContent-Transfer-Encoding: 8bit\n\n" + body + b"\n")
        assert rows(path)[0]["text"] == text
        assert sum(batch.replaced for batch in read(path)) == replaced

    def test_mail_that_breaks_every_rule_is_survived(self, tmp_path: Path) -> None:
        nested = b"".join(
            b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(2000)
        )
        path = write(tmp_path, b"From jo Tue Jan  1 12:00:00 2002\nFrom: =?x?q?=00=FF?= <\n" + nested + b"\n")
        batches = read(path)
        assert sum(batch.rows.height + batch.rejects.height for batch in batches) == 1


class TestItems:
    def test_netflix_lines_that_fit_nothing_are_set_aside(self, tmp_path: Path) -> None:
        path = write(
            tmp_path, b"1:\n5,3,2005-09-06\n5,3\n5,3,2005-09-06,x\n5,x,2005-09-06\n5,3,soon\n2:\n\n6,1,\n"
        )
        assert rejects(path) == {3: "ragged_row", 4: "ragged_row", 5: "bad_value", 6: "bad_time"}
        assert [(row["row"], row["item"]) for row in rows(path)] == [(2, "1"), (9, "2")]
        assert outcome(path, ReadOptions(batch_bytes=3)) == outcome(path)

    def test_baskets_with_other_things_than_integers_are_set_aside(self, tmp_path: Path) -> None:
        path = write(tmp_path, b"1 2\nx 3\n4 -1\n5\xff\n6\n")
        assert rejects(path, format="fimi") == {2: "wrong_type", 3: "wrong_type", 4: "wrong_type"}
        assert [row["item"] for row in rows(path, format="fimi")] == ["1", "2", "6"]

    def test_broken_msweb_lines_are_set_aside(self, tmp_path: Path) -> None:
        path = write(tmp_path, b'C,"1",1\nV,5,1\nnonsense\nC\nV,6\n')
        assert rejects(path, format="msweb") == {3: "ragged_row", 4: "ragged_row"}
        assert [row["item"] for row in rows(path, format="msweb")] == ["5", "6"]

    def test_ratings_that_are_ragged_or_no_numbers_are_set_aside(self, tmp_path: Path) -> None:
        good = b"".join(b"%d::7::3::881250949\n" % n for n in range(60))
        path = write(tmp_path, good + b"1::2\n1::2::x::5\n1::2::3::soon\n")
        assert rejects(path) == {61: "ragged_row", 62: "bad_value", 63: "bad_time"}
        assert len(rows(path)) == 60

    def test_a_header_is_not_taken_for_ratings(self, tmp_path: Path) -> None:
        path = write(tmp_path, b"userId,movieId,rating\n1,2,3\n")
        assert detect(path).name == "csv"
        with pytest.raises(SchemaError, match="no ratings"):
            read(path, format="ratings")

    def test_a_map_of_objects_holds_attributes(self, tmp_path: Path) -> None:
        path = write(tmp_path, b'{"ann": {"age": 31, "job": "baker"}, "bob": ["x"], "cat": {"age": null}}')
        assert [(row["attribute"], row["value"]) for row in rows(path)] == [
            ("age", "31"),
            ("job", "baker"),
            ("file", "x"),
        ]
        assert rejects(path) == {3: "wrong_type"}

    def test_a_map_of_lists_can_hold_attributes(self, tmp_path: Path) -> None:
        path = write(tmp_path, b'{"ann": ["Rap"]}', "genres.json")
        assert rows(path, ReadOptions(kind="attributes"))[0]["attribute"] == "genres"
        with pytest.raises(SchemaError, match="not posts"):
            read(path, ReadOptions(kind="posts"))

    def test_a_person_whose_values_are_no_texts_is_set_aside(self, tmp_path: Path) -> None:
        path = write(tmp_path, b'{"a": ["x"], "b": [true], "c": "x", "d": [["x"]]}')
        assert rejects(path) == {2: "wrong_type", 3: "wrong_type", 4: "wrong_type"}

    def test_a_map_that_breaks_off_is_refused_or_kept(self, tmp_path: Path) -> None:
        path = write(tmp_path, b'{"a": ["x"], "b": ["y", ')
        with pytest.raises(UnreadableSource, match="keep_complete"):
            read(path)
        kept = read(path, ReadOptions(keep_complete=True))
        assert kept[-1].incomplete
        assert kept[-1].rows["user"].to_list() == ["a"]


class TestParquet:
    def test_a_damaged_file_is_refused(self, tmp_path: Path) -> None:
        whole = parquet(pl.DataFrame({"user": ["a"] * 1000, "text": [str(n) for n in range(1000)]}))
        for data in (whole[:-10], whole[: len(whole) // 2], b"PAR1" + whole[40:]):
            with pytest.raises(UnreadableSource, match="Parquet file is damaged"):
                read(write(tmp_path, data))

    def test_a_large_file_is_not_fetched_whole(self, tmp_path: Path) -> None:
        texts = [random.Random(n).randbytes(2000).hex() for n in range(4000)]
        frame = pl.DataFrame({"user": ["ann"] * len(texts), "text": texts})
        out = io.BytesIO()
        frame.write_parquet(out, row_group_size=100, compression="uncompressed")
        path = write(tmp_path, out.getvalue())
        reader = detect(path)
        next(reader.read(path, ReadOptions()))  # loads the libraries
        tracemalloc.start()  # what Arrow fetches from a file that Python opened is Python's
        try:
            for _ in reader.read(path, ReadOptions(batch_bytes=2**18)):
                pass
            assert tracemalloc.get_traced_memory()[1] < 4 * 2**20 < path.stat().st_size
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize("column", [[["x"]], [{"a": 1}], [b"x"]])
    def test_a_column_of_lists_is_refused(self, column: list[object], tmp_path: Path) -> None:
        path = write(tmp_path, parquet(pl.DataFrame({"user": ["a"], "text": column})))
        with pytest.raises(SchemaError, match="column 'text' holds"):
            read(path)

    def test_typed_columns_become_text(self, tmp_path: Path) -> None:
        frame = pl.DataFrame(
            {
                "user": pl.Series(["ann", "bob"], dtype=pl.Categorical),
                "item": [10**18, 5],
                "rating": [4.5, None],
                "date": pl.Series(["2020-01-01", None]).str.to_date(),
            }
        )
        found = rows(write(tmp_path, parquet(frame)))
        assert [(r["user"], r["item"], r["value"], r["time"]) for r in found] == [
            ("ann", "1000000000000000000", 4.5, 1577836800),
            ("bob", "5", None, None),
        ]

    def test_a_table_without_rows_has_a_kind(self, tmp_path: Path) -> None:
        schema = {"user": pl.String, "item": pl.String}
        (batch,) = read(write(tmp_path, parquet(pl.DataFrame(schema=schema))))
        assert batch.kind == "items"

    def test_two_columns_of_one_name_are_refused(self, tmp_path: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet as pq

        out = io.BytesIO()
        pq.write_table(pa.table([pa.array(["a"])] * 2, names=["user", "user"]), out)
        with pytest.raises(SchemaError, match="same name"):
            read(write(tmp_path, out.getvalue()))

    def test_rows_are_numbered_on_over_row_groups(self, tmp_path: Path) -> None:
        out = io.BytesIO()
        pl.DataFrame({"user": ["a"] * 10, "text": [str(n) for n in range(10)]}).write_parquet(
            out, row_group_size=3
        )
        path = write(tmp_path, out.getvalue())
        assert [row["row"] for row in rows(path)] == list(range(1, 11))
        assert outcome(path, ReadOptions(batch_bytes=1)) == outcome(path)


def test_a_parquet_text_that_is_no_text_is_set_aside(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    raw = pa.array([b"ok", b"\xff\xfe", b"fine", None], pa.binary())
    text = pa.StringArray.from_buffers(4, raw.buffers()[1], raw.buffers()[2], raw.buffers()[0])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"author": ["a", "b", "c", "d"], "text": text}), path)
    assert [row["text"] for row in rows(path)] == ["ok", "fine"]
    assert rejects(path) == {2: "invalid_utf8", 4: "missing_field"}


def test_a_tweet_from_an_impossible_year_is_set_aside(tmp_path: Path) -> None:
    tweet = {"id_str": "1", "full_text": "x", "created_at": "Wed Nov 11 20:00:00 +0000 300000"}
    path = tmp_path / "tweets.js"
    path.write_text("window.YTD.tweets.part0 = " + json.dumps([{"tweet": tweet}]), encoding="utf-8")
    assert rejects(path, ReadOptions(user="me")) == {1: "bad_time"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (reddit_export(), "https://www.reddit.com/"),
        (twitter_archive(), "https://x.com/"),
        (mastodon_outbox(), "https://"),
        (car(), "https://bsky.app/profile/did:plc:abcdefghijklmnopqrstuvwx/post/3kbbb"),
        (car(node_first=True), "https://bsky.app/profile/did:plc:abcdefghijklmnopqrstuvwx/post/3kbbb"),
    ],
)
def test_an_export_says_where_its_posts_are(data: bytes, expected: str, tmp_path: Path) -> None:
    found = links(write(tmp_path, data))
    assert found
    assert all(link is not None and link.startswith(expected) for link in found)


def test_the_example_in_the_documentation_is_a_reader(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "formats.md").read_text("utf-8")
    code = page.split("```py\n")[1].split("```")[0].replace("from .", "from incrowd.crowd.readers.")
    made: dict[str, Any] = {}
    exec(code, made)
    path = tmp_path / "messages.json"
    path.write_text('[{"said": "Green, please.", "at": "2021-01-01 12:00", "room": "tea"}]', encoding="utf-8")
    (batch,) = made["TEAROOM"].read(path, ReadOptions(user="ann"))
    assert batch.rows.drop("link").to_dicts()[0] | {"row": 1} == {
        "row": 1, "id": None, "user": "ann", "community": "tea", "time": 1609502400, "text": "Green, please."
    }  # fmt: skip


class TestWhatsApp:
    @pytest.mark.parametrize(
        ("line", "order"),
        [
            ("[01.02.21, 13:05:09] Ann: {}", "dmy"),  # iPhone, German
            ("\u200e[2/1/21, 1:05:09\u202fPM] Ann: {}", "mdy"),  # iPhone, American
            ("2/1/21, 13:05 - Ann: {}", "mdy"),
            ("01/02/2021, 1:05 pm - Ann: {}", "dmy"),  # Indian
            ("1/2/21 1:05 p.\u00a0m. - Ann: {}", "dmy"),  # Spanish
            ("01/02/2021 à 13:05 - Ann: {}", "dmy"),  # French
            ("01-02-21 13:05 - Ann: {}", "dmy"),  # Dutch
            ("1.2.2021 klo 13.05 - Ann: {}", "dmy"),  # Finnish
            ("1. 2. 2021 13:05 - Ann: {}", "dmy"),  # Czech
            ("2021. 02. 01. 13:05 - Ann: {}", None),  # Hungarian
            ("2021-02-01 13:05 - Ann: {}", None),  # Swedish
            ("2021/2/1 下午1:05 - Ann: {}", None),  # Chinese
            ("[2021/02/01 13:05:09] Ann: {}", None),  # Japanese
            ("2021. 2. 1. 오후 1:05 - Ann: {}", None),  # Korean
            ("\u200f1\u200f/2\u200f/2021، 1:05 م - Ann: {}", "dmy"),  # Arabic
            ("١‏/٢‏/٢٠٢١، ١:٠٥ م - Ann: {}", "dmy"),  # Arabic, with its own digits
        ],
    )
    def test_dates_of_many_countries(self, line: str, order: str | None, tmp_path: Path) -> None:
        said = [
            "Green, please.",
            "\u200eBild weggelassen" if line.lstrip("\u200e")[0] == "[" else "<Medien ausgeschlossen>",
        ]
        chat = "\n".join(line.format(text) for text in said).encode()
        path = write(tmp_path, zipped({"Conversa do WhatsApp com Bob.txt": chat}))
        assert detect(path).name == "whatsapp"
        (row,) = rows(path, ReadOptions(user="Ann", dates=order))
        assert row["text"] == "Green, please."
        assert int(str(row["time"])) // 60 == 1612184700 // 60  # 2021-02-01 13:05

    def test_what_the_phone_adds_is_no_text(self, tmp_path: Path) -> None:
        texts = [
            "Du hast diese Nachricht gelöscht.",
            "IMG-20210101-WA0001.jpg (Datei angehängt)",
            "IMG-20210101-WA0001.jpg (Datei angehängt)\nGreen.",
            "Never. <Diese Nachricht wurde bearbeitet.>",
        ]
        chat = "\n".join(f"31.01.21, 13:05 - Ann: {text}" for text in texts).encode()
        found = rows(write(tmp_path, chat), ReadOptions(user="Ann", dates="dmy"))
        assert [row["text"] for row in found] == ["Green.", "Never."]


def test_a_repository_is_named_by_its_commit_not_by_who_is_mentioned(tmp_path: Path) -> None:
    other = {
        "$type": "app.bsky.feed.post",
        "text": "x",
        "facets": [{"did": f"did:plc:{'b' * 24}", "$type": "mention"}],
    }
    path = write(tmp_path, car(first=other))
    assert {row["user"] for row in rows(path)} == {"did:plc:abcdefghijklmnopqrstuvwx"}


def test_reviews_that_were_deleted_are_left(tmp_path: Path) -> None:
    review = (
        b"Date,Name,Year,Letterboxd URI,Rating,Rewatch,Review\n2021-01-01,Tea,2020,https://boxd.it/1,4,,{}\n"
    )
    files = {
        "reviews.csv": review.replace(b"{}", b"Green."),
        "deleted/reviews.csv": review.replace(b"{}", b"Never."),
    }
    found = rows(write(tmp_path, zipped(files)), ReadOptions(kind="posts"))
    assert [row["text"] for row in found] == ["Green."]


def test_what_was_searched_on_instagram_is_no_comment(tmp_path: Path) -> None:
    searched = [{"string_map_data": {"Search": {"value": "tea"}, "Time": {"timestamp": 1}}}]
    with pytest.raises(UnreadableSource, match="begins like JSON"):
        detect(write(tmp_path, json.dumps(searched).encode()))


@pytest.mark.parametrize("unit", ["000", "000000", "000000000"])
def test_epochs_in_finer_units_are_read(unit: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"user,time,text\nann,1609502400{unit},x\nann,1609502400,y\n".encode())
    assert [row["time"] for row in rows(path)] == [1609502400] * 2
