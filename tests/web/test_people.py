"""A person's pages without a browser: what the forms mean, and nobody else on any page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from starlette.datastructures import FormData
from starlette.testclient import TestClient

from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.measures.prepared import PreparedCrowd
from incrowd.measures.protocol import Changes
from incrowd.synthetic import demo_person
from incrowd.web.people import MOST_POSTS, Wish, holdings
from incrowd.web.serving import ServeOptions

from ..report.people import alex
from .visiting import form_key, options_for, visitor, wait_for

PERSON = "alex"
MARK = "zqmarker"


def form(*fields: tuple[str, str]) -> FormData:
    return FormData(list(fields))


def test_ticks_and_words_become_changes() -> None:
    wish = Wish.from_form(
        form(
            ("delete", "3"),
            ("delete_more", " 4, 5 ,"),
            ("move", "5"),
            ("move", "6"),
            ("item", "A"),
            ("attribute", "city"),
            ("words", "One, two"),
        )
    )
    assert wish.changes(alex()) == Changes(
        delete_posts=frozenset({3, 4, 5}),
        move_posts=frozenset({6}),
        drop_items=frozenset({"A"}),
        withhold_attributes=frozenset({"city"}),
        edit_words=frozenset({"one", "two"}),
    )


def test_suggestions_and_the_plan_are_joined() -> None:
    report = alex()
    assert report.plan is not None
    assert Wish.from_form(form(("advice", "1"))).changes(report) == report.actions[1].changes
    assert Wish.from_form(form(("plan", "1"))).changes(report) == report.plan.changes
    both = Wish.from_form(form(("advice", "0"), ("advice", "1"))).changes(report)
    assert both == report.actions[0].changes | report.actions[1].changes
    assert not Wish.from_form(form(("advice", "99"))).changes(report)


def test_a_post_that_is_no_number_is_refused() -> None:
    with pytest.raises(InputError, match="posts go by their numbers"):
        Wish.from_form(form(("delete_more", "twelve")))


def test_holdings_are_the_persons_own_and_texts_only_where_asked(tiny_crowd: Crowd) -> None:
    quiet, loud = (holdings(PreparedCrowd.of(tiny_crowd), PERSON, texts) for texts in (False, True))
    assert all(post.text is None for posts in quiet.posts.values() for post in posts)
    assert all(post.text for posts in loud.posts.values() for post in posts)
    assert all(len(posts) == min(MOST_POSTS, quiet.counts[name]) for name, posts in quiet.posts.items())
    mine = tiny_crowd.items().filter(pl.col("user") == PERSON).collect()["item"]
    assert set(quiet.items) == set(mine)


@pytest.fixture(scope="module")
def marked(tmp_path_factory: pytest.TempPathFactory) -> ServeOptions:
    """Sixty people; everybody but alex has marks in their names, posts, items and values."""
    made = demo_person(users=60, seed=5).crowd(tmp_path_factory.mktemp("plain") / "crowd")
    crowd = Crowd.create(tmp_path_factory.mktemp("marked") / "crowd", plain_names=True)
    other = pl.col("user") != PERSON
    renamed = pl.when(other).then(MARK + pl.col("user")).otherwise(pl.col("user"))
    own = pl.format("{} {}{}", pl.col("text"), pl.lit(MARK), pl.col("user"))
    posts = made.posts().with_columns(text=pl.when(other).then(own).otherwise(pl.col("text")), user=renamed)
    crowd.add_frame(posts.collect(), "posts")
    extra = made.items().filter(other).with_columns(item=pl.format("{}{}", pl.lit(MARK), pl.col("user")))
    crowd.add_frame(pl.concat([made.items(), extra]).with_columns(user=renamed).collect(), "items")
    hobby = extra.select("user", attribute=pl.lit("hobby"), value=pl.col("item")).unique("user")
    attributes = pl.concat([made.attributes(), hobby.select("user", "attribute", "value")])
    crowd.add_frame(attributes.with_columns(user=renamed).collect(), "attributes")
    return options_for(crowd.path)


@pytest.fixture(scope="module")
def client(marked: ServeOptions) -> Iterator[TestClient]:
    with visitor(marked) as visiting:
        yield visiting


@pytest.fixture(scope="module")
def report(client: TestClient) -> str:
    data = {"form_key": form_key(client), "name": PERSON, "quote": "true"}
    ended = wait_for(client, client.post("/assess", data=data))
    assert ended["state"] == "done", ended
    return str(ended["url"])


def test_nobody_else_is_on_any_page(client: TestClient, report: str) -> None:
    key = form_key(client)
    pages = ["/", "/crowd", "/studies", "/judges", "/providers"]
    tabs = ["", "/linkable", "/singled-out", "/inferable", "/exposed", "/what-if?texts=true", "/draft"]
    pages += [report + tab for tab in (*tabs, "/fine-print", "/report.html", "/report.json")]
    texts = {page: client.get(page).text for page in pages}
    tried = client.post(f"{report}/what-if", data={"form_key": key, "advice": "0"})
    drafted = client.post(
        f"{report}/draft", data={"form_key": key, "community": "cycling", "text": "My debts and my bicycle."}
    )
    texts |= {"tried": tried.text, "drafted": drafted.text}
    everybody = wait_for(client, client.post("/crowd/report", data={"form_key": key, "people": 6}))
    texts["everybody"] = client.get(everybody["url"]).text
    assert [page for page, text in texts.items() if MARK in text.lower()] == []
    assert PERSON in texts[report]
    assert "What changes" in texts["tried"] or "more number" in texts["tried"]
    assert "Posting this in cycling" in texts["drafted"]


def test_a_draft_is_advised_on_by_what_it_tells_first(client: TestClient, report: str) -> None:
    data = {"form_key": form_key(client), "community": "cycling"}
    text = "I am 31, divorced, from Duluth and I work at the Walmart bakery, saving for tuition"
    shown = client.post(f"{report}/draft", data=data | {"text": text}).text
    advice = shown[shown.index("What to change") : shown.index("What each word tells")]
    # This person has told so much that no work singles them out further; other drafts: tests/disclosures.
    assert advice.index("<strong>") == advice.index("<strong>say “single” in place of “divorced”")
    assert "tuition”" not in advice
    german = client.post(f"{report}/draft", data=data | {"text": "Ich bin 31 und komme aus Hamburg."}).text
    assert "only English is read" in german


def test_a_script_gets_the_answer_alone(client: TestClient, report: str) -> None:
    data = {"form_key": form_key(client), "words": "bicycle"}
    part = client.post(f"{report}/what-if", data=data, headers={"x-part": "1"})
    assert part.headers["x-part"] == "1"
    assert "<html" not in part.text


def test_an_exposure_study_takes_what_judges_said(client: TestClient, report: str) -> None:
    labels = f"user,topic,vote\n{PERSON},depression,1\n{PERSON},debts,0\n".encode()
    parts = [("form_key", (None, form_key(client))), ("labels", ("labels.csv", labels))]
    ended = wait_for(client, client.post("/uploads/studies/exposure", files=parts))
    assert ended["state"] == "done", ended
    assert "<!doctype html>" in client.get(ended["url"]).text
    assert client.get(f"{ended['url']}/study.json").json()["name"] == "exposure"
    bad = [parts[0], ("labels", ("labels.csv", b"a,b\n1,2\n"))]
    failed = wait_for(client, client.post("/uploads/studies/exposure", files=bad))
    assert failed["problem"].startswith("labels.csv")


@pytest.mark.parametrize(
    "page", ["/reports/none", "/imports/none", "/jobs/none", "/studies/none", "/judges/none"]
)
def test_a_result_that_is_gone_says_so(client: TestClient, page: str) -> None:
    answer = client.get(page)
    assert answer.status_code == 404
    assert "no longer here" in answer.text


def test_a_result_of_one_kind_is_not_shown_as_another(client: TestClient, report: str) -> None:
    job = report.rpartition("/")[2]
    assert client.get(f"/studies/{job}").status_code == 404
    assert client.get(f"/reports/{job}/nothing").status_code == 404


def test_no_page_needs_the_name_in_its_address(client: TestClient, report: str) -> None:
    links = re.findall(r'(?:href|action)="([^"]+)"', client.get(report).text)
    assert not [link for link in links if PERSON in link]


def test_the_gateways_report_needs_its_folder(client: TestClient) -> None:
    answer = client.get("/providers/gateway")
    assert answer.status_code == 400
    assert "--gateway" in answer.text


def test_uploads_never_lie_in_the_open(marked: ServeOptions) -> None:
    folder = Path(marked.crowd) / "uploads"
    assert not folder.exists() or not list(folder.iterdir())
