"""What have you told: one's own files in, an answer, nothing kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from incrowd.crowd import Crowd
from incrowd.web.serving import ServeOptions
from incrowd.web.uploads import FOLDER

from .visiting import form_key, options_for, visitor, wait_for

POSTS = (
    "I'm 31, divorced, and I live in Duluth.",
    "My brother MARKERBROTHER is 25.",
    "Mail me at markeraddress@example.org!",
    "<script>alert(1)</script> I work at Target.",
)
EXPORT = "".join(
    json.dumps({"user": "me", "text": text, "time": 1_500_000_000 + 40_000_000 * k}) + "\n"
    for k, text in enumerate(POSTS)
).encode()


@pytest.fixture
def options(tmp_path: Path) -> ServeOptions:
    return options_for(tmp_path / "crowd")


@pytest.fixture
def client(options: ServeOptions) -> Iterator[TestClient]:
    with visitor(options) as visiting:
        yield visiting


def ask(client: TestClient, content: bytes, **fields: str) -> dict[str, Any]:
    parts: list[Any] = [
        (name, (None, value)) for name, value in ({"form_key": form_key(client, "/told")} | fields).items()
    ]
    parts.append(("files", ("mine.jsonl", content, "application/octet-stream")))
    return wait_for(client, client.post("/uploads/told", files=parts))


def test_an_export_alone_is_answered_and_nothing_is_kept(client: TestClient, options: ServeOptions) -> None:
    assert "/told" in client.get("/").text
    shown = client.get(ask(client, EXPORT)["url"]).text
    for words in ("Duluth, Minnesota", "divorced", "e-mail address", "Edit this post", "Minnesota", "2017"):
        assert words in shown
    for hidden in ("MARKERBROTHER", "markeraddress", "<script>"):
        assert hidden not in shown
    assert Crowd(options.crowd).info().posts == 0
    assert [path for path in (options.crowd / FOLDER).rglob("*") if path.exists()] == []


def test_own_words_are_shown_where_they_were_asked_for(client: TestClient) -> None:
    ended = ask(client, EXPORT, quote="true")
    shown = client.get(ended["url"]).text
    assert "markeraddress@example.org" in shown
    assert "<script>" not in shown
    saved = client.get(f"{ended['url']}/told.json").json()
    assert saved["told"] >= 3


def test_several_accounts_are_asked_which_is_meant(client: TestClient) -> None:
    two = EXPORT + EXPORT.replace(b'"me"', b'"you"')
    refused = ask(client, two)
    assert refused["state"] == "failed"
    assert "2 accounts" in refused["problem"]
    assert ask(client, two, user="you")["state"] == "done"
    assert "no posts" in ask(client, b'{"user": "me", "item": "x", "value": 3}\n')["problem"]
