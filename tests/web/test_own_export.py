"""One's own export at a form: whatever is wrong with it is said in words that help at that form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from incrowd import errors
from incrowd.errors import IncrowdError, MissingExtra, Undecided
from incrowd.web.uploads import IMPORT_FORM, OWN_FORM, Upload

from .visiting import form_key, options_for, visitor, wait_for

CHAT = "1/1/24, 09:00 - Messages and calls are end-to-end encrypted.\n" + "".join(
    f"{1 + k % 12}/{13 + k % 15}/24, 10:{k % 60:02d} - {('Ann Teak', 'Zed Moss')[k % 2]}: a game of chess, number {k}\n"
    for k in range(40)
)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    with visitor(options_for(tmp_path / "crowd")) as visiting:
        yield visiting


def problem(client: TestClient, address: str, name: str, content: bytes, **fields: str) -> str:
    given = {"form_key": form_key(client), "user": ""} | fields
    parts: list[Any] = [(field, (None, value)) for field, value in given.items()]
    parts.append(("files", (name, content, "application/octet-stream")))
    ended = wait_for(client, client.post(address, files=parts))
    assert ended["state"] == "failed"
    return str(ended["problem"])


@pytest.mark.parametrize("address", ["/uploads/assess", "/uploads/told"])
def test_a_chat_without_a_name_asks_for_it(client: TestClient, address: str) -> None:
    said = problem(client, address, "WhatsApp Chat with Zed.txt", CHAT.encode())
    assert "Under which name do you appear in it?" in said
    assert said.endswith("Write it into the field for your account.")
    assert "name given" not in said
    assert "by the name given" in problem(client, address, "chat.txt", CHAT.encode(), user="Nobody")


def test_a_chat_is_read_for_what_its_owner_has_told(client: TestClient) -> None:
    parts: list[Any] = [("form_key", (None, form_key(client))), ("user", (None, "Ann Teak"))]
    parts.append(("files", ("WhatsApp Chat with Zed.txt", CHAT.encode(), "application/octet-stream")))
    assert wait_for(client, client.post("/uploads/told", files=parts))["state"] == "done"


def test_only_exports_of_the_same_account_are_compared(client: TestClient) -> None:
    def report(name: str, count: int) -> str:
        posts = f"user,community,time,text\n{name},tea,2021-01-0{count},Tea again for the morning\n"
        parts: list[Any] = [("form_key", (None, form_key(client))), ("user", (None, ""))]
        parts.append(("files", (f"{name}.csv", posts.encode(), "text/csv")))
        started = client.post("/uploads/assess", files=parts)
        assert wait_for(client, started)["state"] == "done"
        return client.get(f"/reports/{str(started.url).rsplit('/', 1)[-1]}").text

    assert "Since last time" not in report("ann", 1)
    assert "Since last time" not in report("bob", 2)
    assert "Since last time" in report("ann", 3)


@pytest.mark.parametrize("address", ["/uploads/assess", "/uploads/told"])
@pytest.mark.parametrize(
    ("name", "content", "helps"),
    [
        ("odd.bin", bytes(range(256)) * 9, "Make a table (CSV)"),
        (
            "cut.json",
            b'[{"author": "me", "text": "one post", "created": 1700000000}, {"aut',
            "Fetch it again.",
        ),
    ],
)
def test_no_field_is_named_that_the_form_does_not_have(
    client: TestClient, address: str, name: str, content: bytes, helps: str
) -> None:
    said = problem(client, address, name, content)
    assert helps in said
    for option in ("--", "with format", "keep_complete"):
        assert option not in said


def every_error() -> list[IncrowdError]:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, IncrowdError)
    ]
    made: list[IncrowdError] = [Undecided("Whose is it?", "user"), MissingExtra("Reading it", "excel")]
    return [*made, *(kind("It is wrong.") for kind in kinds if kind not in (Undecided, MissingExtra))]


@pytest.mark.parametrize("error", every_error(), ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("form", [IMPORT_FORM, OWN_FORM])
def test_every_error_can_be_said_at_a_form(error: IncrowdError, form: dict[str, str], tmp_path: Path) -> None:
    said = Upload(tmp_path).at_the_form(error, form)
    assert str(said).startswith(str(error)[:10])
    assert "--" not in str(said)
    if isinstance(error, Undecided):
        assert str(said) == f"Whose is it? {form['user']}"
