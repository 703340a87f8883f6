"""Where alerts go: once each, and never beyond this machine."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from incrowd.advisor.watch_alerts import Alert, DesktopFile, JsonLinesSink, Webhook
from incrowd.errors import InputError

NOW = 1_700_000_000


def alert(number: int = 1) -> Alert:
    return Alert(
        id=f"id{number}", line="a", crossing=number, crossed=True, value=2.0, of=9, position=number,
        sentence="In tea, 2 people.", time=NOW,
    )  # fmt: skip


def test_files_take_an_alert_once_and_mend_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    path.write_text(json.dumps(alert().to_dict()) + '\n{"id": "id')
    for _ in range(2):
        sink = JsonLinesSink(path)
        assert sink.deliver(alert())
        assert sink.deliver(alert(2))
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["id1", "id2"]
    desktop = DesktopFile(tmp_path / "desktop")
    assert desktop.deliver(alert())
    assert desktop.deliver(alert())
    (written,) = (tmp_path / "desktop").iterdir()
    assert written.read_text() == "In tea, 2 people.\n"


def test_a_program_on_this_machine_gets_alerts_with_their_id() -> None:
    got: list[tuple[str | None, dict[str, object]]] = []
    answers = [500, 204]

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((self.headers["Idempotency-Key"], body))
            self.send_response(answers.pop(0))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        sink = Webhook(f"http://localhost:{server.server_port}/hook")
        assert not sink.deliver(alert())
        assert sink.deliver(alert())
    finally:
        server.shutdown()
        server.server_close()
    assert [key for key, _ in got] == ["id1", "id1"]
    assert got[0][1]["sentence"] == "In tea, 2 people."
    assert not sink.deliver(alert())  # nobody listens any more: later


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1/x",
        "https://127.0.0.1/",
        "http://0.0.0.0/",
        "ftp://localhost/",
        "http://u:p@localhost/",
        "x",
    ],
)
def test_alerts_never_leave_this_machine(url: str) -> None:
    with pytest.raises(InputError, match="webhook"):
        Webhook(url)
