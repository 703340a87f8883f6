"""Tiny files of every format, sound and broken, made on the spot."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl
from backports import zstd

from incrowd.crowd.readers import ReadOptions
from incrowd.crowd.readers.source import codec_of

from .services import examples

PUBLIC = "https://www.w3.org/ns/activitystreams#Public"

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": lambda data: gzip.compress(data, mtime=0),
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1}),
}


def wide_window(data: bytes) -> bytes:
    """Compress as Reddit dumps are: with a 2 GiB window."""
    options = {
        zstd.CompressionParameter.window_log: 31,
        zstd.CompressionParameter.enable_long_distance_matching: 1,
        zstd.CompressionParameter.content_size_flag: 0,
    }
    compressor = zstd.ZstdCompressor(options=options)
    return compressor.compress(data) + compressor.flush()


def jsonl(*records: object) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def table(*records: tuple[str, ...], delimiter: str = ",") -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(records)
    return out.getvalue().encode()


def zipped(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def tarred(members: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def parquet(frame: pl.DataFrame) -> bytes:
    out = io.BytesIO()
    frame.write_parquet(out)
    return out.getvalue()


def reddit_dump() -> bytes:
    return jsonl(
        {
            "author": "ann",
            "subreddit": "tea",
            "created_utc": 1500000000,
            "id": "c1",
            "body": "Green, please.",
        },
        {
            "author": "bob",
            "subreddit": "tea",
            "created_utc": "1500000060",
            "id": "c1",
            "title": "A",
            "selftext": "B",
        },
        {
            "author": "bob",
            "subreddit": "tea",
            "created_utc": 1500000120.0,
            "id": "s2",
            "title": "Link",
            "selftext": "",
        },
        {
            "author": "cat",
            "subreddit": "tea",
            "created_utc": 1500000180,
            "id": "s3",
            "title": "T",
            "selftext": "[removed]",
        },
    )


def reddit_export(*, account: bool = True) -> bytes:
    members = {
        "comments.csv": table(
            ("id", "permalink", "date", "ip", "subreddit", "gildings", "link", "parent", "body", "media"),
            (
                "c1",
                "https://www.reddit.com/r/tea/comments/p0/_/c1/",
                "2021-05-04 12:00:00 UTC",
                "10.0.0.1",
                "tea",
                "0",
                "x",
                "",
                "Two\nlines, one comment",
                "",
            ),
        ),
        "posts.csv": table(
            ("id", "permalink", "date", "ip", "subreddit", "gildings", "title", "url", "body"),
            (
                "p1",
                "/r/tea/comments/p1/title/",
                "2021-05-05 12:00:00 UTC",
                "10.0.0.1",
                "tea",
                "0",
                "Title",
                "x",
                "Body",
            ),
        ),
    }
    if account:
        members["statistics.csv"] = table(
            ("statistic", "value"), ("account name", "ann"), ("email verified", "True")
        )
    return zipped(members)


def tweets(*records: object, part: int = 0) -> bytes:
    return f"window.YTD.tweets.part{part} = ".encode() + json.dumps(list(records), indent=1).encode()


def tweet(number: int, text: object, created: object = "Wed Nov 11 20:00:00 +0000 2020") -> dict[str, object]:
    return {
        "tweet": {"id_str": str(number), "full_text": text, "created_at": created, "entities": {"urls": []}}
    }


def twitter_archive() -> bytes:
    return zipped(
        {
            "data/account.js": b'window.YTD.account.part0 = [{"account": {"username": "ann"}}]',
            "data/tweets.js": tweets(tweet(1, "First"), tweet(2, "RT @bob: not mine")),
            "data/tweets-part1.js": tweets(tweet(3, "Third"), part=1),
        }
    )


def note(number: int, content: object, to: str = PUBLIC, kind: str = "Create") -> dict[str, object]:
    actor = "https://social.example/users/ann"
    return {
        "id": f"https://social.example/{number}/activity",
        "type": kind,
        "actor": actor,
        "object": {
            "id": f"https://social.example/{number}",
            "type": "Note",
            "attributedTo": actor,
            "published": "2022-11-11T20:00:00Z",
            "to": [to],
            "cc": [f"{actor}/followers"],
            "content": content,
            "summary": None,
        },
    }


def mastodon_outbox() -> bytes:
    boost = {
        "type": "Announce",
        "actor": "https://social.example/users/ann",
        "object": "https://elsewhere.example/9",
    }
    outbox = {
        "@context": "https://www.w3.org/ns/activitystreams",
        "id": "outbox.json",
        "type": "OrderedCollection",
        "totalItems": 3,
        "orderedItems": [
            note(1, "<p>Tea &amp; cake<br>now</p>"),
            boost,
            note(3, "<p>secret</p>", to="https://social.example/users/bob"),
        ],
    }
    return json.dumps(outbox).encode()


MAIL = b"""\
From jo at example.org  Tue Jan  1 12:00:00 2002
From: jo at example.org (Jo Doe)
Date: Tue, 01 Jan 2002 12:00:00 +0100
Subject: [tea] A new kettle
Message-ID: <1@example.org>
List-Id: Tea lovers <tea.example.org>

I bought a kettle.

From experience I can say it boils.
--\x20
Jo, somewhere
_______________________________________________
Tea mailing list

From sam@example.org Tue Jan  1 13:00:00 2002
From: =?utf-8?q?S=C3=A1m?= <Sam@Example.org>
Date: Tue, 01 Jan 2002 13:00:00 +0000
Subject: Re: [tea] A new kettle
MIME-Version: 1.0
Content-Type: multipart/alternative; boundary="b"
List-Id: <tea.example.org>

--b
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Tr=E8s bien!

On Tue, 1 Jan 2002, Jo Doe
<jo@example.org> wrote:
> I bought a kettle.

--b
Content-Type: text/html

<p>ignored</p>
--b--
"""

STACK_EXCHANGE = b"""<?xml version="1.0" encoding="utf-8"?>
<posts>
  <row Id="1" PostTypeId="1" CreationDate="2010-01-01T00:00:00.500" OwnerUserId="7" Title="Why?" \
Body="&lt;p&gt;Because &amp;amp; so&lt;/p&gt;&lt;pre&gt;code&lt;/pre&gt;" />
  <row Id="2" PostTypeId="2" CreationDate="2010-01-02T00:00:00" OwnerDisplayName="guest" \
Body="&lt;p&gt;No&lt;/p&gt;" />
</posts>
"""

MSWEB = b"""\
I,4,"www.example.com","made up"
T,1,"VRoot",0,0,"VRoot"
A,1000,1,"Start","/start"
A,1001,1,"Help","/help"
C,"10001",10001
V,1000,1
V,1001,1
C,"10002",10002
V,1001,1
"""

EGO_NETWORK = {
    "ego/7.edges": b"8 9\n",
    "ego/7.feat": b"8 1 0 0 1\n9 0 1 1 0\n",
    "ego/7.featnames": b"0 school;id;anonymized feature 5\n1 school;id;anonymized feature 6\n2 gender:2\n3 #tea\n",
    "ego/7.egofeat": b"0 0 1 1\n",
    "ego/README": b"made up",
}
"""Two friends of person 7, and person 7; their features are named after they are used."""

Row = dict[str, object]


def posts(*rows: tuple[object, ...]) -> list[Row]:
    return [dict(zip(("row", "id", "user", "community", "time", "text"), row, strict=True)) for row in rows]


def items(*rows: tuple[object, ...]) -> list[Row]:
    return [dict(zip(("row", "id", "user", "item", "value", "time"), row, strict=True)) for row in rows]


def attributes(*rows: tuple[object, ...]) -> list[Row]:
    return [dict(zip(("row", "id", "user", "attribute", "value"), row, strict=True)) for row in rows]


class Example:
    """One sound file: its format, name, bytes and the rows it stands for."""

    def __init__(
        self, format: str, name: str, data: bytes, rows: list[Row], options: ReadOptions | None = None
    ) -> None:
        self.options = options or ReadOptions()
        self.format = format
        self.name = name
        self.data = data
        self.rows = rows

    def write(self, folder: Path) -> Path:
        path = folder / self.name
        path.write_bytes(self.data)
        return path

    @property
    def is_packed(self) -> bool:
        return self.data[:4] in (b"PK\x03\x04", b"PAR1", b"SQLi") or codec_of(self.data) is not None

    def __repr__(self) -> str:
        return f"{self.format}-{self.name}"


LINES = jsonl(
    {"author": "ann", "community": "tea", "t": 1500000000, "text": "Hello"},
    {"author": "bob", "community": None, "t": "2020-01-01T00:00:00Z", "text": "Hi\u2028there"},
)
LINES_ROWS = posts(
    (1, None, "ann", "tea", 1500000000, "Hello"), (2, None, "bob", None, 1577836800, "Hi\u2028there")
)
RATED = items((1, None, "196", "242", 3.0, 881250949), (2, None, "186", "302", 3.5, 891717742))

EXAMPLES = [
    Example("jsonl", "posts.jsonl", LINES, LINES_ROWS),
    *(Example("jsonl", f"posts.{name}", pack(LINES), LINES_ROWS) for name, pack in COMPRESS.items()),
    Example(
        "reddit",
        "RC_2017-07.zst",
        wide_window(reddit_dump()),
        posts(
            (1, "t1_c1", "ann", "tea", 1500000000, "Green, please."),
            (2, "t3_c1", "bob", "tea", 1500000060, "A\n\nB"),
            (3, "t3_s2", "bob", "tea", 1500000120, "Link"),
            (4, "t3_s3", "cat", "tea", 1500000180, "T"),
        ),
    ),
    Example(
        "reddit-export",
        "export.zip",
        reddit_export(),
        posts(
            (2, "t1_c1", "ann", "tea", 1620129600, "Two\nlines, one comment"),
            (4, "t3_p1", "ann", "tea", 1620216000, "Title\n\nBody"),
        ),
    ),
    Example(
        "twitter",
        "twitter.zip",
        twitter_archive(),
        posts((1, "1", "ann", "x.com", 1605124800, "First"), (3, "3", "ann", "x.com", 1605124800, "Third")),
    ),
    *(
        Example(
            "mastodon",
            name,
            data,
            posts(
                (
                    1,
                    "https://social.example/1",
                    "ann@social.example",
                    "social.example",
                    1668196800,
                    "Tea & cake\nnow",
                )
            ),
        )
        for name, data in {
            "outbox.json": mastodon_outbox(),
            "archive.zip": zipped({"actor.json": b"{}", "outbox.json": mastodon_outbox()}),
            "archive.tar.gz": gzip.compress(
                tarred({"media_attachments/1.png": b"\x89PNG", "outbox.json": mastodon_outbox()}), mtime=0
            ),
        }.items()
    ),
    *(
        Example(
            "ego-network",
            name,
            pack(tarred(EGO_NETWORK)),
            attributes(
                (1, None, "8", "school", "5"),
                (1, None, "8", "#tea", "yes"),
                (2, None, "9", "school", "6"),
                (2, None, "9", "gender", "2"),
                (3, None, "7", "gender", "2"),
                (3, None, "7", "#tea", "yes"),
            ),
        )
        for name, pack in {"ego.tar": bytes, "ego.tar.xz": lzma.compress}.items()
    ),
    Example(
        "stackexchange",
        "Posts.xml",
        STACK_EXCHANGE,
        posts(
            (3, "p1", "7", "FOLDER", 1262304000, "Why?\n\nBecause & so"),
            (4, "p2", "guest", "FOLDER", 1262390400, "No"),
        ),
    ),
    Example(
        "mbox",
        "tea.mbox",
        MAIL,
        posts(
            (
                1,
                "<1@example.org>",
                "jo@example.org",
                "tea.example.org",
                1009882800,
                "A new kettle\n\nI bought a kettle.\n\nFrom experience I can say it boils.",
            ),
            (2, None, "sam@example.org", "tea.example.org", 1009890000, "Très bien!"),
        ),
    ),
    Example(
        "parquet",
        "posts.parquet",
        parquet(
            pl.DataFrame(
                {
                    "user_id": [1, 2],
                    "forum": ["tea", None],
                    "created_at": pl.Series([1500000000000, None]).cast(pl.Datetime("ms")),
                    "content": ["Hello", "Hi"],
                }
            )
        ),
        posts((1, None, "1", "tea", 1500000000, "Hello"), (2, None, "2", None, None, "Hi")),
    ),
    Example(
        "json-map",
        "genres.json",
        b'{"0": ["Rap", "Rock"], "1": [], "2": ["Pop", "Pop", 7]}',
        items(
            (1, None, "0", "Rap", None, None),
            (1, None, "0", "Rock", None, None),
            (3, None, "2", "Pop", None, None),
            (3, None, "2", "7", None, None),
        ),
    ),
    Example(
        "msweb",
        "msweb.data",
        MSWEB,
        items(
            (6, None, "10001", "1000", None, None),
            (7, None, "10001", "1001", None, None),
            (9, None, "10002", "1001", None, None),
        ),
    ),
    Example(
        "netflix",
        "combined_data_1.txt",
        b"1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n2:\n885013,4,2005-10-19\n",
        items(
            (2, None, "1488844", "1", 3.0, 1125964800),
            (3, None, "822109", "1", 5.0, 1115942400),
            (5, None, "885013", "2", 4.0, 1129680000),
        ),
    ),
    *(
        Example("ratings", name, f"196{d}242{d}3{d}881250949\n186{d}302{d}3.5{d}891717742\n".encode(), RATED)
        for name, d in {"ratings.dat": "::", "u.data": "\t", "ratings.txt": ","}.items()
    ),
    Example(
        "ratings",
        "user_artists.dat",
        b"2\t51\t13883\n2\t52\t11690",
        items((1, None, "2", "51", 13883.0, None), (2, None, "2", "52", 11690.0, None)),
    ),
    Example(
        "fimi",
        "retail.dat",
        b"0 1 2 \n\n30 31\n1 1\n",
        items(
            (1, None, "1", "0", None, None),
            (1, None, "1", "1", None, None),
            (1, None, "1", "2", None, None),
            (3, None, "3", "30", None, None),
            (3, None, "3", "31", None, None),
            (4, None, "4", "1", None, None),
        ),
    ),
    Example(
        "tsv",
        "ml.inter",
        b"user_id:token\titem_id:token\trating:float\ttimestamp:float\n196\t242\t3\t881250949\n186\t302\t3.5\t891717742\n",
        [{**row, "row": int(str(row["row"])) + 1} for row in RATED],
    ),
    Example(
        "csv",
        "ratings.csv",
        b"userId,movieId,rating,timestamp\r\n196,242,3,881250949\r\n186,302,3.5,891717742\r\n",
        [{**row, "row": int(str(row["row"])) + 1} for row in RATED],
    ),
    Example(
        "csv",
        "posts.csv",
        table(
            ("id", "author", "group", "date", "message"),
            ("1", "ann", "tea", "2020-01-01", 'say "hi",\nthen go'),
            ("2", "bob", "", "", "=1+1"),
            ("3", "cat", "tea", "1500000000", ""),
        ),
        posts(
            (2, "1", "ann", "tea", 1577836800, 'say "hi",\nthen go'),
            (3, "2", "bob", None, None, "=1+1"),
            (4, "3", "cat", "tea", 1500000000, ""),
        ),
    ),
    Example(
        "csv",
        "people.csv",
        b"author;age;job\nann;31;baker\nbob;;clerk\n",
        attributes(
            (2, None, "ann", "age", "31"),
            (2, None, "ann", "job", "baker"),
            (3, None, "bob", "job", "clerk"),
        ),
    ),
    Example(
        "csv",
        "facts.csv",
        b"user,attribute,value\nann,age,31\nann,lang,de\n",
        attributes((2, None, "ann", "age", "31"), (3, None, "ann", "lang", "de")),
    ),
]
EXAMPLES += examples(posts, items, attributes, zipped, Example)
