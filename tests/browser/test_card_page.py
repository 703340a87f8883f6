"""The page of a card in a real browser: the same tokens and numbers as Python, every export read, not one request."""

from __future__ import annotations

import io
import json
import math
import random
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incrowd.advisor import assess
from incrowd.cards.card import Card
from incrowd.cards.default import default_card
from incrowd.measures.protocol import AdvisorOptions
from incrowd.report.card_page import card_page
from incrowd.text.options import TextOptions
from incrowd.text.reference import tokenise

pytestmark = pytest.mark.browser
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None:
    pytest.skip("no chromium on this machine", allow_module_level=True)

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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


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


@pytest.mark.parametrize(("count", "seed"), [(4, 1), (25, 3), (90, 4)])
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
    assert len(said) == 1
    assert "Read: 12 posts" in said.pop()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.zip", b"PK\x03\x04damaged", "damaged"),
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
    assert says in opened.drop(name, content)


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
