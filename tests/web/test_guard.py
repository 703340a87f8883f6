"""Who may talk to the server: one browser on this machine, through our own pages, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from incrowd.web.app import Guard
from incrowd.web.serving import ServeOptions

from .visiting import ADDRESS, PORT, form_key, options_for, stranger, visitor


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> ServeOptions:
    return options_for(tmp_path_factory.mktemp("guard") / "crowd", form_bytes=4096, upload_bytes=100_000)


@pytest.fixture(scope="module")
def client(options: ServeOptions) -> Iterator[TestClient]:
    with visitor(options) as visiting:
        yield visiting


@pytest.fixture(scope="module")
def unknown(options: ServeOptions) -> TestClient:
    return stranger(options)


@pytest.fixture
def newcomer(unknown: TestClient) -> TestClient:
    unknown.cookies.clear()
    return unknown


PAGES = [
    "/",
    "/crowd",
    "/studies",
    "/judges",
    "/providers",
    "/jobs/x",
    "/reports/x",
    "/reports/x/report.json",
]


@pytest.mark.parametrize("page", PAGES)
def test_without_the_token_no_page_says_anything(
    newcomer: TestClient, options: ServeOptions, page: str
) -> None:
    answer = newcomer.get(page)
    assert answer.status_code == 403
    assert "Which browser may see this crowd?" in answer.text
    assert "incrowd-" not in str(answer.headers.get("set-cookie"))


def test_the_token_becomes_a_strict_cookie_and_leaves_the_address(
    newcomer: TestClient, options: ServeOptions
) -> None:
    answer = newcomer.get("/crowd", params={"token": options.token}, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/crowd")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert options.token.lower() not in cookie


def test_the_token_cannot_lead_to_another_host(newcomer: TestClient, options: ServeOptions) -> None:
    address = f"{ADDRESS}//evil.example/?token={options.token}"
    answer = newcomer.get(address, follow_redirects=False)
    assert answer.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize("token", ["", "x", "é", "a" * 3000])
def test_a_wrong_token_is_no_token(newcomer: TestClient, options: ServeOptions, token: str) -> None:
    assert newcomer.get("/", params={"token": token}).status_code == 403
    assert newcomer.post("/enter", data={"token": token}).status_code == 403


def test_the_whole_address_may_be_pasted(newcomer: TestClient, options: ServeOptions) -> None:
    assert newcomer.post("/enter", data={"token": f" {options.address} "}).status_code == 200
    assert newcomer.get("/crowd").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1:1", "", f"127.0.0.1.evil:{PORT}"]
)
def test_another_name_for_this_machine_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 421


def test_localhost_is_this_machine(client: TestClient) -> None:
    assert client.get("/", headers={"host": f"localhost:{PORT}"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_another_page_cannot_send_a_form_even_with_the_key(
    client: TestClient, headers: dict[str, str]
) -> None:
    answer = client.post("/assess", data={"name": "a", "form_key": form_key(client)}, headers=headers)
    assert answer.status_code == 403


@pytest.mark.parametrize(
    "page",
    [
        "/assess",
        "/made-up",
        "/jobs/x/stop",
        "/crowd/report",
        "/studies/run/anonymity",
        "/judges/learn",
        "/providers/publish",
        "/reports/x/what-if",
        "/reports/x/draft",
    ],
)
@pytest.mark.parametrize("key", [None, "", "0" * 64])
def test_a_form_without_our_key_does_nothing(client: TestClient, page: str, key: str | None) -> None:
    answer = client.post(page, data={} if key is None else {"form_key": key})
    assert answer.status_code == 403
    assert client.get("/").text.count("/jobs/") == 0


def test_a_key_of_another_server_does_not_fit(client: TestClient, tmp_path: Path) -> None:
    other = visitor(options_for(tmp_path / "other"))
    assert client.post("/made-up", data={"form_key": form_key(other)}).status_code == 403


@pytest.mark.parametrize("page", ["/", "/nowhere", "/static/style.css", "/jobs/x"])
def test_every_answer_forbids_scripts_of_others_frames_and_keeping(client: TestClient, page: str) -> None:
    headers = client.get(page).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert page.startswith("/static/") or headers["cache-control"] == "no-store"


def test_no_other_page_is_told_that_it_may_read(client: TestClient) -> None:
    answer = client.options(
        "/", headers={"origin": "http://evil.example", "access-control-request-method": "POST"}
    )
    assert answer.status_code in (403, 405)
    assert "access-control-allow-origin" not in answer.headers


def test_large_forms_are_refused_announced_or_not(client: TestClient) -> None:
    key = form_key(client)
    assert client.post("/assess", data={"form_key": key, "name": "a" * 5000}).status_code == 413

    def stream() -> Iterator[bytes]:
        yield f"form_key={key}&name=".encode()
        for _ in range(100):
            yield b"a" * 1000

    kind = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/assess", content=stream(), headers=kind).status_code == 413


def test_pages_hold_no_inline_script_or_style(client: TestClient) -> None:
    for page in ("/", "/crowd", "/studies", "/judges", "/providers", "/nowhere"):
        text = client.get(page).text
        assert "<script>" not in text
        assert "<style" not in text
        assert ' style="' not in text
        assert " on" + "click=" not in text


def test_secrets_are_not_in_the_options_as_printed(options: ServeOptions) -> None:
    assert options.token not in repr(options)
    assert options.session not in repr(options)


def test_there_is_no_machine_readable_catalogue(client: TestClient) -> None:
    for page in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(page).status_code == 404


def test_a_failure_nobody_foresaw_is_not_logged(options: ServeOptions) -> None:
    """Its message may quote a person's post; the page has said that something went wrong."""

    async def broken(scope: object, receive: object, send: object) -> None:
        raise ValueError("what somebody wrote")

    guard = Guard(broken, options, lambda: PlainTextResponse("", 403))
    seen = TestClient(guard, base_url=ADDRESS, raise_server_exceptions=True)
    seen.cookies.set(options.cookie, options.session)
    with pytest.raises(
        AssertionError
    ):  # the test client complains that there was no answer, and of nothing else
        seen.get("/")
