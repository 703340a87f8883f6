"""The page of a card in a real browser: the same tokens and numbers as Python, every export read, not one request."""

from __future__ import annotations

import io
import json
import math
import random
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from incrowd.advisor import assess
from incrowd.cards.card import Card
from incrowd.cards.default import default_card
from incrowd.crowd.own_export import read_export
from incrowd.errors import InputError
from incrowd.measures.card_crowd import crowd_of_export
from incrowd.measures.protocol import AdvisorOptions
from incrowd.report.card_page import card_page
from incrowd.text.options import TextOptions
from incrowd.text.reference import tokenise

pytestmark = pytest.mark.browser

PIECES = """
the time people work going home school really don't won't he'll it’s Straße ΟΔΟΣ İstanbul naïve e\u0301cole
a\u0323\u0307b
:) :-) :))) :D :ddd xD <3 ;) :( ¯\\_(ツ)_/¯ 12:30 3:d :)a https://www.example.org/a?b=c) www.example.com. www.
http://user:pw@host.example:8080/x(y)z ftp://files.example/%7Ea www.é.example/ü coooooool !!!!!! ....... ______ a_b_c
&amp; &amp;gt; &lt;3 &#39; &#x2014; &notit; &copy &nbsp; &#128; &#0; &unknown; AT&T R&amp;amp;D **bold** *it* _em_
~~gone~~
[link](/r/books) [site](https://example.org/a_(b)) [x]( <y> ) `code` ``a`b`` \\*not\\* \\`tick C++ C# e-mail@x.example
🎉🎉🎉🎉🎉 🙂 👨‍👩‍👧 ✈️ ☕ ™ © ½ ² Ⅳ ١٢٣ 日本語 한국어 हिन्दी ภาษา עִבְרִית a\u200bb soft\u00adhyphen \ufeffbom \ufffd 100%
$5 #tag @name ^up^ |cell| 'quoted' ''double'' 'tis rock'n'roll o'clock “smart” ‘single’ – — … \u2028 \u00a0 \x1c
""".replace("\n", " ").split(" ")
STARTS = [
    "",
    "",
    "",
    "> ",
    "    ",
    "\t",
    "```\n",
    "~~~\n",
    "1. ",
    "- ",
    "* ",
    "|a|b|\n|-|:-:|\n",
    "# ",
    ">!",
    "   > ",
    "10) ",
]


def texts(count: int, seed: int = 0, longest: int = 40) -> list[str]:
    """Make up posts full of what tokenising has to get right."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        lines = [
            rng.choice(STARTS) + " ".join(rng.choice(PIECES) for _ in range(rng.randrange(longest)))
            for _ in range(rng.randrange(1, 5))
        ]
        made.append(rng.choice(["\n", "\n\n", "\r\n"]).join(lines))
    return made


def posts(count: int, seed: int) -> list[str]:
    """Make up a person's posts: the card's words by rank, and a few of their own."""
    rng = random.Random(seed)
    words = default_card().tables(default_card().communities[0])["words"]["word"].to_list()
    own = [f"own{seed}word{k}" for k in range(30)] + rng.sample(words, 60)
    return [
        " ".join(
            rng.choice(own) if rng.random() < 0.2 else words[int(len(words) * rng.random() ** 3)]
            for _ in range(rng.randrange(3, 60))
        )
        for _ in range(count)
    ]


class Opened:
    """A page from disk that notes every request and every complaint."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page = browser.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(path.as_uri())

    def drop(self, name: str, content: bytes) -> str:
        """Open a file and return what the page says about it."""
        self.page.evaluate(
            "() => document.querySelectorAll('#result, #problem').forEach((one) => one.replaceChildren())"
        )
        self.page.set_input_files("#file", {"name": name, "mimeType": "", "buffer": content})
        # A selector, because the page's policy lets nobody evaluate a string in it.
        self.page.wait_for_selector("#result:not(:empty), #problem:not(:empty)", state="attached")
        return str(self.page.inner_text("#result") or self.page.inner_text("#problem"))


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(card_page(default_card()), encoding="utf-8")
    return Opened(browser, path)


def test_a_thousand_texts_have_the_same_tokens(opened: Opened) -> None:
    made = texts(1000)
    there = opened.page.evaluate("texts => texts.map(window.incrowd.tokens)", made)
    different = [
        (text, here, got) for text, got in zip(made, there, strict=True) if (here := tokenise(text)) != got
    ]
    assert not different[:3]


@pytest.mark.parametrize("options", [{"keep_stopwords": True}, {"tokens": "simple"}, {"compat_gt": True}])
def test_a_card_says_how_text_becomes_tokens(options: dict[str, Any], browser: Any, tmp_path: Path) -> None:
    card = default_card()
    text = TextOptions(**options)
    small = [{**card.head["communities"][0], "people": 20}]
    head = {**card.head, "communities": small, "text": {**card.head["text"], **options, "hash": text.hash}}
    path = tmp_path / "page.html"
    path.write_text(card_page(Card.made(head, list(card.parts), card.crowd)), encoding="utf-8")
    made = texts(200, seed=1)
    there = Opened(browser, path).page.evaluate("texts => texts.map(window.incrowd.tokens)", made)
    assert there == [tokenise(one, text) for one in made]


def export(made: list[str]) -> bytes:
    return "\n".join(
        json.dumps({"author": "me", "text": text, "time": 1_600_000_000 + 3600 * k})
        for k, text in enumerate(made)
    ).encode()


@pytest.mark.parametrize(("count", "seed"), [(4, 1), (25, 3), (31, 3), (90, 4)])
def test_the_numbers_are_those_of_assess(opened: Opened, tmp_path: Path, count: int, seed: int) -> None:
    made = posts(count, seed)
    path = tmp_path / "me.jsonl"
    path.write_bytes(export(made))
    report = assess([path], options=AdvisorOptions(advice=False))
    told = {
        one.assumptions.parameters["posts_known"]: one
        for one in report.assessments
        if one.measure == "recognition"
    }
    found = next(iter(told.values())).assumptions.parameters
    alike = next(one for one in report.assessments if one.measure == "anonymity")
    there = opened.page.evaluate("texts => window.incrowd.measure(texts)", made)
    assert there["posts"] == count
    for one in there["told"]:
        assert math.isclose(one["probability"], found["probability"][str(one["n"])], rel_tol=0.01)
        if one["n"] in told:
            assert [one["low"], one["high"]] == pytest.approx(told[one["n"]].interval, rel=0.01)
    assert told
    takes = there["takes"] if isinstance(there["takes"], int) else None
    assert takes == found["takes"]
    assert there["alike"] == alike.value


def zipped(**files: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name.replace("__", "/").replace("_csv", ".csv"), content)
    return buffer.getvalue()


def overwritten(whole: bytes, at: int) -> bytes:
    """Return an archive whose first packed bytes are none."""
    return whole[:at] + b"\xff" * 6 + whole[at + 6 :]


def csv_of(columns: str, rows: list[tuple[str, ...]]) -> str:
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
    return "\r\n".join([columns, *quoted]) + "\r\n"


def test_exports_are_read_as_people_get_them(opened: Opened) -> None:
    made = posts(12, 5)
    reddit = csv_of(
        "id,permalink,date,ip,subreddit,gildings,link,parent,body,media",
        [
            (f"c{k}", "", f"2020-01-{k + 1:02} 10:00:00 UTC", "", "books", "", "", "", text, "")
            for k, text in enumerate(made)
        ],
    )
    tweets = "window.YTD.tweets.part0 = " + json.dumps(
        [
            {
                "tweet": {
                    "id_str": str(k),
                    "full_text": text,
                    "created_at": f"Wed Jan {k + 1:02} 10:00:00 +0000 2020",
                }
            }
            for k, text in enumerate(made)
        ]
        + [
            {
                "tweet": {
                    "id_str": "99",
                    "full_text": "RT @a: not mine",
                    "created_at": "Wed Jan 01 10:00:00 +0000 2020",
                }
            }
        ]
    )
    public = "https://www.w3.org/ns/activitystreams#Public"
    outbox = json.dumps(
        {
            "type": "OrderedCollection",
            "orderedItems": [
                {
                    "type": "Create",
                    "object": {
                        "content": f"<p>{text}</p>",
                        "published": f"2020-01-{k + 1:02}T10:00:00Z",
                        "to": [public],
                    },
                }
                for k, text in enumerate(made)
            ]
            + [{"type": "Announce", "object": "https://a.example/1"}],
        }
    )
    said = {
        opened.drop("reddit.zip", zipped(comments_csv=reddit)),
        opened.drop("x.zip", zipped(**{"data__tweets.js": tweets})),
        opened.drop("tweets.js", tweets.encode()),
        opened.drop("outbox.json", outbox.encode()),
        opened.drop("mine.jsonl", export(made)),
        opened.drop(
            "mine.csv",
            b"\xef\xbb\xbf" + csv_of("time,text", [(str(10**9 + k), t) for k, t in enumerate(made)]).encode(),
        ),
    }
    # But for what is said of services: test_an_export_from_elsewhere_is_told_what_assess_tells
    assert len({re.sub(r"Your posts are from elsewhere.*", "", one).replace("\n", "") for one in said}) == 1
    assert "Read: 12 posts" in said.pop()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.zip", b"PK\x03\x04damaged", "damaged"),
        ("a.zip", overwritten(zipped(comments_csv="body\nx"), 42), "damaged"),
        ("photo.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF" + bytes(range(256)), "this is no text"),
        ("report.pdf", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n\0\x01", "this is no text"),
        ("page.html", b"<!doctype html><p>one</p>\n\n<p>two</p>", "no kind of file"),
        ("calendar.ics", b"BEGIN:VCALENDAR\n\nEND:VCALENDAR", "no kind of file"),
        (
            "NetflixViewingHistory.csv",
            b"Title,Date\nA: Season 1: Episode 2,1/2/20\n" * 9,
            "no column of texts",
        ),
        ("watched.json", b'[{"title": "Watched this", "time": "2020-01-01"}]', "No posts were found"),
        ("empty.csv", b"", "the file is empty"),
        ("blank.csv", b"\r\n\r\n", "the file is empty"),
        ("header.csv", b"time,text\n", "No posts were found"),
        ("open.csv", b'time,text\n1,"never closed\n2,b\n', "never closed"),
        ("short.csv", b"time,text\n1\n2\n", "No posts were found"),
        ("a.json", b"null", "No posts were found"),
        ("a.json", b'{"orderedItems": 7}', "No posts were found"),
        ("a.json", b'[1, null, "x", {"type": "Create", "object": {"content": 1}}]', "No posts were found"),
        ("one.txt", b"alone", "Here is 1 post; it takes 4"),
        ("a.zip", zipped(photos="x"), "no posts were found"),
        ("a.json", b"{not json", "no JSON"),
        ("a.csv", b"a,b\n1,2\n", "no column of texts"),
        ("a.txt", b"", "No posts were found"),
        ("a.txt", b"one\n\ntwo", "it takes 4"),
        ("<img src=x onerror=alert(1)>.csv", b"a,b\n1,2\n", "no column of texts"),
    ],
)
def test_what_cannot_be_read_is_told_in_a_sentence(
    opened: Opened, name: str, content: bytes, says: str
) -> None:
    said = opened.drop(name, content)
    assert says in said
    assert not re.search(r"undefined|TypeError|Cannot read|not a function|RangeError", said)


@pytest.mark.parametrize(
    "line", ["12/01/2020, 10:{k:02} - {name}: {text}", "[12.01.20, 10:{k:02}:00] {name}: {text}"]
)
def test_a_chat_is_not_taken_for_ones_own_posts(opened: Opened, line: str) -> None:
    names = ("Ann", "Ben", "Cem")
    said = "\n".join(line.format(k=k, name=names[k % 3], text=text) for k, text in enumerate(posts(20, 8)))
    assert "others write, too" in opened.drop("chat.txt", said.encode())


def test_every_refusal_says_what_else_could_read_the_file(opened: Opened) -> None:
    for name, content in (("photo.jpg", b"\xff\xd8\0"), ("a.csv", b"Title,Date\na,b\n"), ("a.xyz", b"text")):
        assert "`incrowd assess` reads many other kinds" in opened.drop(name, content)


def of_two() -> tuple[list[str], list[str], bytes]:
    """Return the posts of two people, and a table of both."""
    mine, theirs = posts(20, 11), posts(20, 12)
    rows = [
        (name, str(k), text) for name, own in (("ann", mine), ("ben", theirs)) for k, text in enumerate(own)
    ]
    return mine, theirs, csv_of("author,time,text", rows).encode()


def test_of_several_accounts_one_has_to_be_named(opened: Opened, tmp_path: Path) -> None:
    mine, _, both = of_two()
    path = tmp_path / "two.csv"
    path.write_bytes(both)
    with pytest.raises(InputError) as refused:
        read_export([path])
    sentence = str(refused.value).partition(" Name yours")[0]
    said = opened.drop("two.csv", both)
    assert sentence.lower() in said.lower()
    assert "ann" not in said.split()
    assert opened.page.is_visible("#account")

    def named(name: str) -> str:
        opened.page.fill("#account", name)
        opened.page.click("#whose button")
        opened.page.wait_for_selector("#result:not(:empty), #problem:not(:empty)", state="attached")
        return str(opened.page.inner_text("#result") or opened.page.inner_text("#problem"))

    assert "Nobody of that name" in named("Ann")
    about_me = named(" ann ")
    assert "Read: 20 posts" in about_me
    assert about_me == opened.drop("mine.jsonl", export(mine))
    assert not opened.page.is_visible("#account")


def test_archives_of_two_accounts_are_told_apart(opened: Opened) -> None:
    def of(name: str, seed: int) -> dict[str, Any]:
        table = csv_of(
            "id,date,body", [(str(k), f"2020-01-{k + 1:02}", text) for k, text in enumerate(posts(9, seed))]
        )
        archive = zipped(comments_csv=table, statistics_csv=f"statistic,value\r\naccount name,{name}\r\n")
        return {"name": f"{name}.zip", "mimeType": "", "buffer": archive}

    for names, says in ((("ann", "ben"), "These files hold 2 accounts"), (("ann", "ann"), "Read: 18 posts")):
        opened.drop("a.csv", b"")
        opened.page.evaluate("() => document.querySelector('#problem').replaceChildren()")
        opened.page.set_input_files("#file", [of(name, seed) for seed, name in enumerate(names)])
        opened.page.wait_for_selector("#result:not(:empty), #problem:not(:empty)", state="attached")
        assert says in opened.page.inner_text("main")


def test_whoever_writes_in_another_language_is_told_what_assess_tells(opened: Opened, tmp_path: Path) -> None:
    rng = random.Random(1)
    clauses = [
        "今日は天気がいいですね",
        "友達と映画を見に行きました",
        "明日は早く起きないといけない",
        "お腹が空いた",
    ]
    made = [" ".join(rng.choices(clauses, k=4)) + f" {k}" for k in range(20)]
    path = tmp_path / "japanese.jsonl"
    path.write_bytes(export(made))
    crowd = crowd_of_export([path])
    doubt = crowd.doubt(default_card().communities[0])
    assert "in another language" in doubt
    said = opened.drop("japanese.jsonl", export(made))
    assert doubt.lower() in said.lower()
    assert opened.page.inner_text(".level") == "cannot tell"
    assert "hardly anybody uses it" not in said
    english = opened.page.evaluate("texts => window.incrowd.measure(texts)", posts(25, 3))
    assert english["doubt"] == ""


@pytest.mark.parametrize("mixed", range(0, 101, 10))
def test_the_line_between_languages_is_that_of_assess(opened: Opened, tmp_path: Path, mixed: int) -> None:
    """Of every hundred words, so many are of no language at all."""
    rng = random.Random(mixed)
    made = [
        " ".join(f"zzq{rng.randrange(9**9)}" if rng.randrange(100) < mixed else word for word in text.split())
        for text in posts(450, 13)
    ]
    path = tmp_path / "mixed.jsonl"
    path.write_bytes(export(made))
    there = opened.page.evaluate("texts => window.incrowd.measure(texts)", made)
    assert there["doubt"] == crowd_of_export([path]).doubt(default_card().communities[0])


def archives() -> dict[str, bytes]:
    made = posts(12, 5)
    rows = csv_of("id,subreddit,body", [(str(k), "books", text) for k, text in enumerate(made)])
    other = csv_of("id,date,body", [(str(k), f"2020-01-{k + 1:02}", text) for k, text in enumerate(made)])
    tweets = [
        {
            "tweet": {
                "id_str": str(k),
                "created_at": f"Wed Jan {k + 1:02} 20:00:00 +0000 2020",
                "full_text": text,
            }
        }
        for k, text in enumerate(made)
    ]
    to = ["https://www.w3.org/ns/activitystreams#Public"]
    toots = {
        "orderedItems": [
            {
                "type": "Create",
                "to": to,
                "object": {
                    "type": "Note",
                    "id": f"https://example.social/{k}",
                    "attributedTo": "https://example.social/users/ann",
                    "published": f"2020-01-{k + 1:02}T10:00:00Z",
                    "to": to,
                    "content": f"<p>{text}</p>",
                },
            }
            for k, text in enumerate(made)
        ]
    }
    account = 'window.YTD.account.part0 = [{"account": {"username": "ann"}}]'
    return {
        "reddit.zip": zipped(comments_csv=rows, statistics_csv="statistic,value\r\naccount name,ann\r\n"),
        "other.zip": zipped(comments_csv=other, statistics_csv="statistic,value\r\naccount name,ann\r\n"),
        "x.zip": zipped(
            **{
                "data__tweets.js": f"window.YTD.tweets.part0 = {json.dumps(tweets)}",
                "data__account.js": account,
            }
        ),
        "mastodon.zip": zipped(**{"outbox.json": json.dumps(toots)}),
        "outbox.json": json.dumps(toots).encode(),
        "me.jsonl": export(made),
    }


@pytest.mark.parametrize("name", list(archives()))
def test_an_export_from_elsewhere_is_told_what_assess_tells(
    opened: Opened, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_bytes(archives()[name])
    said = opened.drop(name, path.read_bytes())
    assert "Read: 12 posts" in said
    warning = "" if name == "other.zip" else crowd_of_export([path]).elsewhere("Reddit")
    assert bool(warning) == (name in {"x.zip", "mastodon.zip", "outbox.json"})
    assert ("people write differently there" in said) == bool(warning)
    assert warning[1:] in said


def test_a_card_of_other_people_says_nothing_of_reddit(browser: Any, tmp_path: Path) -> None:
    card = default_card()
    small = [{**card.head["communities"][0], "name": "elsewhere", "people": 20}]
    path = tmp_path / "page.html"
    head = {**card.head, "communities": small}
    path.write_text(card_page(Card.made(head, list(card.parts), card.crowd)), encoding="utf-8")
    assert "people write differently there" not in Opened(browser, path).drop("x.zip", archives()["x.zip"])


def test_numbers_that_could_not_be_tried_are_told_apart(opened: Opened, tmp_path: Path) -> None:
    made = posts(31, 3)
    path = tmp_path / "me.jsonl"
    path.write_bytes(export(made))
    report = assess([path], options=AdvisorOptions(advice=False))
    told = {
        one.assumptions.parameters["posts_known"]: one.meaning
        for one in report.assessments
        if one.measure == "recognition"
    }
    there = opened.page.evaluate("texts => window.incrowd.measure(texts)", made)
    untried = {one["n"] for one in there["told"] if one["n"] > there["cut"]}
    assert untried == {30}
    assert {n for n, meaning in told.items() if "could not be tried" in meaning} == untried
    rows = opened.drop("me.jsonl", export(made)).split("post read", 1)[1].split("What gives you away")[0]
    assert rows.count("not tried with so many") == 1
    assert "not tried" in rows.split("30 posts read")[1]


def test_ends_are_those_of_assess_also_where_nothing_higher_can_be_told(
    opened: Opened, tmp_path: Path
) -> None:
    made = posts(31, 3)
    path = tmp_path / "me.jsonl"
    path.write_bytes(export(made))
    report = assess([path], options=AdvisorOptions(advice=False))
    told = {
        one.assumptions.parameters["posts_known"]: (one.value, *(one.interval or ()))
        for one in report.assessments
        if one.measure == "recognition"
    }
    there = opened.page.evaluate("texts => window.incrowd.measure(texts)", made)
    on_page = {one["n"]: (one["probability"], one["low"], one["high"]) for one in there["told"]}
    assert {3, 10, 30} <= told.keys()
    for n, ends in told.items():
        assert on_page[n] == pytest.approx(ends, abs=1e-6)
    assert told[3][2] == 1.0  # before all made-up people
    assert "to over 99 %" in opened.drop("me.jsonl", export(made))


def test_without_scripts_the_page_says_what_it_needs(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(card_page(default_card()), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert "needs scripts" in page.inner_text("#working")
    context.close()
    assert Opened(browser, path).page.inner_text("#working") == ""


def test_nothing_is_sent_and_nothing_complains(opened: Opened) -> None:
    hostile = [
        f"<img src=https://a.example/{k}.png> <script>fetch('https://a.example')</script>" for k in range(8)
    ]
    opened.drop("mine.jsonl", export([*posts(5, 6), *hostile]))
    assert all(url.startswith("file:") for url in opened.requests)
    assert len(opened.requests) == 1
    assert not opened.complaints


def test_five_thousand_posts_take_no_file_beyond_the_page(opened: Opened) -> None:
    assert "Read: 5,000 posts" in opened.drop("mine.jsonl", export(posts(5000, 7)))


def test_nobody_who_is_mentioned_is_named(opened: Opened) -> None:
    made = [f"{text} @Zarq_Vex u/zarq-two" for text in posts(25, 3)]
    there = opened.page.evaluate("texts => window.incrowd.measure(texts)", made)
    words = [word for word, _ in there["away"]]
    assert "somebody you mention" in words
    assert not [word for word in words if "zarq" in word]
    shown = opened.drop("me.jsonl", export(made)).lower()
    assert "somebody you mention" in shown
    assert "zarq" not in shown
