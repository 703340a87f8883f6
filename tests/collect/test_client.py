"""The client is polite, and survives whatever a server sends."""

from __future__ import annotations

import gzip
import shutil
import socket
import ssl
import subprocess
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.collect.gathering import CONTACT, patient
from tests.collect.sites import Asked, Reply, Site

from incrowd.collect import client as clients
from incrowd.collect.client import AnswerTooLarge, Forbidden, NotThere, PoliteClient
from incrowd.errors import InputError, ServerError

JSON = {"content-type": "application/json"}


@pytest.fixture
def site() -> Site:
    site = Site()
    site.routes["/"] = lambda asked: {"fine": True}
    return site


def failing_first(times: int, *reply: Any) -> Any:
    """Return a fault that a server recovers from."""
    left = [times]

    def fault(asked: Asked) -> Reply | None:
        left[0] -= 1
        return reply if left[0] >= 0 else None  # type: ignore[return-value]

    return fault


class TestManners:
    def test_says_who_asks_and_how_to_reach_them(self, site: Site) -> None:
        client, _ = patient()
        with site.open() as server:
            assert client.json(f"{server}/x", "a page") == {"fine": True}
        (asked,) = site.asked
        assert asked.headers["user-agent"].startswith("incrowd/")
        assert CONTACT in asked.headers["user-agent"]

    @pytest.mark.parametrize("contact", ["", "  ", "a\nb@example.org", "josé"])
    def test_wants_a_contact_that_fits_a_header(self, contact: str) -> None:
        with pytest.raises(InputError, match="contact:"):
            PoliteClient(contact=contact)

    def test_pauses_between_requests_to_one_host(self, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clients, "is_loopback", lambda host: False)
        monkeypatch.setattr(clients, "check_address", lambda url: None)
        monkeypatch.setenv("NO_PROXY", "*")
        now = [100.0]
        client, waits = patient(pause=2.0, clock=lambda: now[0])
        with site.open() as server:
            for _ in range(3):
                client.json(f"{server}/x", "a page")
        assert waits == [2.0, 2.0]

    def test_keeps_to_retry_after_in_seconds_and_as_a_date_by_the_servers_clock(self, site: Site) -> None:
        client, waits = patient()
        with site.open() as server:
            site.fault = failing_first(1, 429, {"retry-after": "17"}, b"")
            client.json(f"{server}/x", "a page")
            # Our own clock may be years off: the server's Date header is what counts.
            dates = {"date": "Sun, 06 Nov 1994 08:49:37 GMT", "retry-after": "Sun, 06 Nov 1994 08:50:07 GMT"}
            site.fault = failing_first(1, 503, dates, b"")
            client.json(f"{server}/x", "a page")
        assert waits == [17.0, 30.0]

    @pytest.mark.parametrize(
        "reset",
        ["30", "784111807", "1994-11-06T08:50:07.000Z"],
        ids=["seconds, as Reddit", "Unix time, as Bluesky", "a date, as Mastodon"],
    )
    def test_waits_when_a_limit_is_used_up_before_it_is_told_to(self, site: Site, reset: str) -> None:
        now = [0.0]
        client, waits = patient(clock=lambda: now[0])
        name = "x-ratelimit" if "T" in reset else "ratelimit"
        headers = {f"{name}-remaining": "0", f"{name}-reset": reset, "date": "Sun, 06 Nov 1994 08:49:37 GMT"}
        site.routes["/"] = lambda asked: (200, {**JSON, **headers}, b"{}")
        with site.open() as server:
            client.json(f"{server}/x", "a page")
            assert waits == []
            client.json(f"{server}/x", "a page")
        assert waits == [30.0]

    def test_a_long_pause_ends_the_run_with_a_sentence(self, site: Site) -> None:
        client, waits = patient()
        site.fault = failing_first(1, 429, {"retry-after": "7200"}, b"")
        with site.open() as server, pytest.raises(ServerError, match=r"come back in 2 hours.*goes on where"):
            client.json(f"{server}/x", "a page")
        assert waits == []

    def test_robots_txt_is_kept_to_where_it_applies(self, site: Site) -> None:
        rules = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 9\n"
        site.routes["/robots.txt"] = lambda asked: (200, {"content-type": "text/plain"}, rules)
        with site.open() as server:
            careful, _ = patient(robots=True)
            careful.json(f"{server}/open", "a page")
            assert careful.pause == 9.0
            with pytest.raises(Forbidden, match=r"robots\.txt"):
                careful.json(f"{server}/private/x", "a page")
            free, _ = patient()
            free.json(f"{server}/private/x", "a page")
        assert [asked.path for asked in site.asked] == ["/robots.txt", "/open", "/private/x"]

    def test_no_robots_txt_is_a_yes_and_a_broken_server_a_no(self, site: Site) -> None:
        with site.open() as server:
            site.routes["/robots.txt"] = lambda asked: (404, {}, b"")
            client, _ = patient(robots=True)
            client.json(f"{server}/open", "a page")
            site.routes["/robots.txt"] = lambda asked: (500, {}, b"")
            client, _ = patient(robots=True)
            with pytest.raises(ServerError, match=r"robots\.txt"):
                client.json(f"{server}/open", "a page")


class TestFailures:
    @pytest.mark.parametrize("status", [429, 500, 502, 503])
    def test_trouble_that_passes_is_waited_for(self, site: Site, status: int) -> None:
        client, waits = patient()
        site.fault = failing_first(3, status, {}, b"")
        with site.open() as server:
            assert client.json(f"{server}/x", "a page") == {"fine": True}
        assert waits == [1.0, 2.0, 4.0]

    def test_trouble_that_stays_ends_with_a_sentence(self, site: Site) -> None:
        client, _ = patient()
        site.fault = failing_first(99, 500, {}, b"")
        with site.open() as server, pytest.raises(ServerError, match=r"6 times for a page.*status 500"):
            client.json(f"{server}/x", "a page")
        assert len(site.asked) == 6

    def test_a_body_that_breaks_off_is_asked_for_again(self, site: Site) -> None:
        client, _ = patient()
        whole = gzip.compress(b'{"fine": true}')
        cut = {**JSON, "content-encoding": "gzip"}
        site.fault = failing_first(2, 200, cut, whole[:-9])
        with site.open() as server:
            assert client.json(f"{server}/x", "a page") == {"fine": True}

    def test_a_connection_that_breaks_off_is_asked_for_again(self, site: Site) -> None:
        client, _ = patient()
        left = [2]

        def cut(asked: Asked, wire: Any) -> bool:
            left[0] -= 1
            if left[0] >= 0:
                wire.write(
                    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{"
                )
            return left[0] >= 0

        site.raw = cut
        with site.open() as server:
            assert client.json(f"{server}/x", "a page") == {"fine": True}
        assert len(site.asked) == 3

    def test_a_server_that_is_not_there_ends_with_a_sentence(self) -> None:
        client, waits = patient()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            with pytest.raises(ServerError, match="connection failed"):
                client.json(f"http://127.0.0.1:{taken.getsockname()[1]}/", "a page")
        assert len(waits) == 5

    @pytest.mark.parametrize(
        ("status", "error"), [(404, NotThere), (410, NotThere), (401, Forbidden), (403, Forbidden)]
    )
    def test_what_is_not_shown_is_not_asked_for_again(self, site: Site, status: int, error: type) -> None:
        client, _ = patient()
        site.fault = failing_first(9, status, {}, b"secret")
        with site.open() as server, pytest.raises(error, match="a page"):
            client.json(f"{server}/u/somebody-by-name?token=abc", "a page")
        assert len(site.asked) == 1

    def test_errors_name_the_server_and_never_a_person_or_a_credential(self, site: Site) -> None:
        client, _ = patient()
        for status in (400, 403, 404, 500):
            site.fault = failing_first(9, status, {}, b"somebody")
            with site.open() as server, pytest.raises(ServerError) as caught:
                client.json(
                    f"{server}/u/somebody", "a page", {"key": "hidden"}, {"authorization": "Bearer hidden"}
                )
            assert "somebody" not in str(caught.value)
            assert "hidden" not in str(caught.value)


class TestHostileAnswers:
    def test_ten_gigabytes_are_not_taken(self, site: Site) -> None:
        client, _ = patient()

        def endless(asked: Asked, wire: Any) -> bool:
            wire.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10000000000\r\n\r\n"
            )
            try:
                while True:
                    wire.write(b" " * 2**20)
            except OSError:
                return True

        site.raw = endless
        with site.open() as server, pytest.raises(AnswerTooLarge, match="32 MiB"):
            client.json(f"{server}/x", "a page")
        assert client.received < 40 * 2**20

    def test_a_gzip_bomb_does_not_unfold(self, site: Site) -> None:
        client, _ = patient()
        packer = zlib.compressobj(9, wbits=31)
        bomb = b"".join([*(packer.compress(bytes(2**20)) for _ in range(512)), packer.flush()])
        site.routes["/"] = lambda asked: (200, {**JSON, "content-encoding": "gzip"}, bomb)
        with site.open() as server:
            tracemalloc.start()
            with pytest.raises(AnswerTooLarge):
                client.json(f"{server}/x", "a page")
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 100 * 2**20

    @pytest.mark.parametrize(
        "body",
        [b"[" * 10**6, b'{"a":' * 10**5, b"", b"\xff\xfe", b"<html>", b"9" * 10**5, b"{} {}"],
        ids=["deep list", "deep object", "empty", "no text", "page", "huge number", "two"],
    )
    def test_what_is_no_json_is_refused(self, site: Site, body: bytes) -> None:
        client, _ = patient()
        site.routes["/"] = lambda asked: (200, JSON, body)
        with site.open() as server, pytest.raises(ServerError, match="expected JSON for a page"):
            client.json(f"{server}/x", "a page")

    @pytest.mark.parametrize("kind", ["text/html", "", "image/png", "application/x-tar"])
    def test_a_wrong_content_type_is_refused(self, site: Site, kind: str) -> None:
        client, _ = patient()
        site.routes["/"] = lambda asked: (200, {"content-type": kind}, b"{}")
        with site.open() as server, pytest.raises(ServerError, match="expected json for a page"):
            client.json(f"{server}/x", "a page")

    def test_a_compression_we_did_not_ask_for_is_refused(self, site: Site) -> None:
        client, _ = patient()
        site.routes["/"] = lambda asked: (200, {**JSON, "content-encoding": "br"}, b"{}")
        with site.open() as server, pytest.raises(ServerError, match="compressed"):
            client.json(f"{server}/x", "a page")

    @pytest.mark.parametrize(
        "target",
        ["http://127.0.0.2/x", "https://elsewhere.example/", "//other.example/", "file:///etc/passwd"],
    )
    def test_a_redirect_to_another_place_is_not_followed(self, site: Site, target: str) -> None:
        client, _ = patient()
        site.routes["/"] = lambda asked: (302, {"location": target}, b"")
        with site.open() as server, pytest.raises(ServerError, match="another server"):
            client.json(f"{server}/x", "a page", headers={"authorization": "Bearer hidden"})
        assert len(site.asked) == 1

    def test_a_redirect_on_the_same_server_is_followed_but_not_in_circles(self, site: Site) -> None:
        client, _ = patient()
        site.routes["/old"] = lambda asked: (301, {"location": "/new?x=1"}, b"")
        site.routes["/round"] = lambda asked: (302, {"location": "/round"}, b"")
        with site.open() as server:
            assert client.json(f"{server}/old", "a page") == {"fine": True}
            with pytest.raises(ServerError, match="circle"):
                client.json(f"{server}/round", "a page")

    def test_an_answer_that_drips_is_given_up(self, site: Site) -> None:
        now = iter(range(0, 10**6, 200))
        client, _ = patient(clock=lambda: float(next(now)))
        with site.open() as server, pytest.raises(ServerError, match="took too long"):
            client.json(f"{server}/x", "a page")

    def test_an_invalid_certificate_ends_it(self, tmp_path: Path) -> None:
        client, waits = patient()
        with tls_server(tmp_path) as port, pytest.raises(ServerError, match="valid certificate"):
            client.json(f"https://127.0.0.1:{port}/", "a page")
        assert waits == []

    def test_a_server_that_speaks_no_http_ends_with_a_sentence(self, site: Site) -> None:
        client, _ = patient()

        def garbage(asked: Asked, wire: Any) -> bool:
            wire.write(b"\x00\x01garbage\r\n\r\n" * 10)
            return True

        site.raw = garbage
        with site.open() as server, pytest.raises(ServerError, match="connection failed or broke off"):
            client.json(f"{server}/x", "a page")


@contextmanager
def tls_server(folder: Path) -> Iterator[int]:
    """Serve TLS with a certificate that nobody vouches for."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on this machine makes a certificate")
    pem = folder / "server.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    subprocess.run([*make, *name, "-keyout", str(pem), "-out", f"{pem}.crt"], check=True, capture_output=True)
    pem.write_bytes(pem.read_bytes() + Path(f"{pem}.crt").read_bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)

        def serve() -> None:
            try:
                connection, _ = listening.accept()
                context.wrap_socket(connection, server_side=True).close()
            except OSError:
                pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()
