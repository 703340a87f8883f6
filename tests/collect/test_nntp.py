"""News servers that misbehave; a real one is in test_real_servers."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.collect.gathering import gather, plan, rows

from incrowd.collect.services import nntp

Answers = Callable[[str], bytes | None]


def article(number: int, body: str = "words") -> bytes:
    head = f"From: p{number} <p{number}@example.test>\r\nMessage-ID: <{number}@example.test>\r\nSubject: Re: x\r\n"
    return f"220 {number} <x> article\r\n{head}\r\n{body} {number}\r\n.\r\n".encode()


def sound(command: str) -> bytes | None:
    """Answer as a server with three articles does."""
    word, _, rest = command.partition(" ")
    return {
        "MODE": b"200 ready\r\n",
        "GROUP": b"211 3 1 3 test.tea\r\n",
        "ARTICLE": article(int(rest)) if rest.isdigit() else b"501 what?\r\n",
    }.get(word, b"500 what?\r\n")


@contextmanager
def server(answers: Answers, greeting: bytes = b"200 hello\r\n") -> Iterator[str]:
    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            try:
                self.wfile.write(greeting)
                for line in self.rfile:
                    answer = answers(line.decode().strip())
                    if answer is None:
                        return
                    self.wfile.write(answer)
            except OSError:
                return

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        yield f"nntp://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def collected(folder: Path, answers: Answers, greeting: bytes = b"200 hello\r\n") -> tuple[str | None, int]:
    with server(answers, greeting) as address:
        done = gather(folder / "crowd", plan("nntp", address, "test.tea"))
    return done.stopped, len(rows(folder / "crowd"))


def test_a_sound_server_is_read(tmp_path: Path) -> None:
    assert collected(tmp_path, sound) == (None, 3)


def test_a_connection_that_breaks_off_is_made_again(tmp_path: Path) -> None:
    left = [2]

    def breaking(command: str) -> bytes | None:
        if command == "ARTICLE 2" and left[0]:
            left[0] -= 1
            return None
        return sound(command)

    assert collected(tmp_path, breaking) == (None, 3)


def test_a_connection_that_always_breaks_ends_with_a_sentence(tmp_path: Path) -> None:
    stopped, count = collected(tmp_path, lambda command: None if "ARTICLE" in command else sound(command))
    assert stopped is not None
    assert "goes on where it stopped" in stopped
    assert count == 0


def test_a_cancelled_and_an_absurdly_large_article_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nntp, "LARGEST_ARTICLE", 5000)

    def odd(command: str) -> bytes | None:
        special = {"ARTICLE 2": b"423 no such article\r\n", "ARTICLE 3": article(3, "x" * 9000)}
        return special.get(command) or sound(command)

    assert collected(tmp_path, odd) == (None, 1)


def test_an_article_without_end_ends_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nntp, "LARGEST_ARTICLE", 5000)
    endless = b"220 3 <x> article\r\n" + b"more and more\r\n" * 50_000
    stopped, _ = collected(tmp_path, lambda command: endless if "ARTICLE" in command else sound(command))
    assert stopped is not None
    assert "does not end" in stopped


@pytest.mark.parametrize(
    ("greeting", "answers", "sentence"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n", sound, "Is this a news server"),
        (b"502 no permission\r\n", sound, "wants a login"),
        (b"x" * 5000 + b"\r\n", sound, "Is this a news server"),
        (b"200 hello\r\n", lambda command: b"211 garbage\r\n", "Is this a news server"),
        (b"200 hello\r\n", lambda command: b"480 log in first\r\n", "wants a login"),
        (b"200 hello\r\n", lambda command: b"411 no such group\r\n", "no such newsgroup"),
    ],
)
def test_strange_answers_end_with_a_sentence(
    tmp_path: Path, greeting: bytes, answers: Answers, sentence: str
) -> None:
    stopped, _ = collected(tmp_path, answers, greeting)
    assert stopped is not None
    assert sentence in stopped


def test_a_wrong_password_ends_with_a_sentence_that_does_not_hold_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCROWD_NNTP_USER", "somebody")
    monkeypatch.setenv("INCROWD_NNTP_PASSWORD", "hidden-word")
    answers = {"AUTHINFO USER somebody": b"381 go on\r\n", "AUTHINFO PASS hidden-word": b"481 no\r\n"}
    stopped, _ = collected(tmp_path, lambda command: answers.get(command) or sound(command))
    assert stopped is not None
    assert "does not take your name" in stopped
    assert "hidden-word" not in stopped
    answers["AUTHINFO PASS hidden-word"] = b"281 welcome\r\n"
    assert collected(tmp_path, lambda command: answers.get(command) or sound(command)) == (None, 3)
