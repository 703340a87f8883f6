"""Runs commands as on a desktop without POSIX: what Windows or macOS lack is taken away first.

``python tests/desktop.py FOLDER``, with the locale's encoding set by the caller. Prints one line a command.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import signal
import socket
import sys
import threading
import time
import urllib.request
import warnings
from pathlib import Path
from typing import Any

for module in ("fcntl", "resource", "pwd", "grp"):
    sys.modules[module] = None  # type: ignore[assignment]
for name in ("fork", "forkpty", "sched_getaffinity", "getuid", "geteuid", "O_DIRECTORY", "mkfifo"):
    delattr(os, name)
del socket.AF_UNIX, signal.SIGKILL


def socketpair(*_: object) -> tuple[socket.socket, socket.socket]:
    """Two ends on the loopback address, as Python makes them on Windows; asyncio needs a pair."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        one = socket.create_connection(door.getsockname())
        return one, door.accept()[0]


socket.socketpair = socketpair
# Reading or writing text without saying the encoding would take the locale's: an error in our own modules.
warnings.filterwarnings("error", category=EncodingWarning, module=r"incrowd\.")
refused = set(':*?"<>|')
opened = builtins.open


def checked_open(file, *more, **named):  # type: ignore[no-untyped-def]
    if isinstance(file, str | os.PathLike) and refused & set(os.fspath(file)):
        raise OSError(22, "Windows has no such file name", file)
    mode = more[0] if more else named.get("mode", "r")
    if "b" not in mode and len(more) < 3 and not named.get("encoding"):
        caller = sys._getframe(1).f_globals["__name__"]
        assert not caller.startswith("incrowd"), f"{caller}: text is opened without an encoding"
        named["encoding"] = "cp1252"
    return opened(file, *more, **named)


builtins.open = io.open = checked_open


def command(*words: str | Path) -> str:
    from incrowd.cli import main

    sys.argv = ["incrowd", *map(str, words)]
    # A pipe with the locale's encoding, as Windows gives to programs whose output is not shown on a console.
    out = io.TextIOWrapper(io.BytesIO(), encoding=sys.__stdout__.encoding if sys.__stdout__ else "cp1252")
    with contextlib.redirect_stdout(out):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        sys.stdout.flush()
    text = out.buffer.getvalue().decode("utf-8")  # type: ignore[attr-defined]
    print(f"{words[0]}: exit {code}", flush=True)
    return text


def serve(crowd: Path) -> None:
    """Start the web interface, ask for the first page, and stop it."""
    from incrowd.cli import serve as serving

    real, answered = serving._run, []
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def ask(address: str) -> None:
        for _ in range(200):
            with contextlib.suppress(OSError):
                with browser.open(address, timeout=30) as page:
                    answered.append((page.status, "incrowd" in page.read().decode("utf-8")))
                break
            time.sleep(0.1)
        signal.raise_signal(signal.SIGINT)

    def run(listening: Any) -> None:
        threading.Thread(target=ask, args=(listening.options.address,), daemon=True).start()
        real(listening)

    serving._run = run
    command("serve", crowd, "--port", "0", "--no-open")
    print(f"page: {answered}", flush=True)


def main(folder: Path) -> None:
    crowd = folder / "demo" / "crowd"
    command("demo", "--users", "120", "--out", folder / "demo", "--no-open")
    (folder / "more.csv").write_text(
        "user,community,time,text\r\nzoë,cycling,2014-06-01,naïve “quotes” → 自転車\r\n", encoding="utf-8"
    )
    command("ingest", folder / "more.csv", "--crowd", crowd)
    command("info", crowd)
    report = command("assess", crowd, "--user", "alex", "--quick", "--html", folder / "alex.html")
    print(f"report: {'alex' in report or 'you' in report.lower()}")
    command("draft", crowd, "a quick ride, naïve “quotes”", "--user", "alex", "--community", "cycling")
    command("watch", crowd, "--user", "alex", "--once")
    card, export = folder / "everybody.card", folder / "demo" / "files" / "export.ndjson"
    command("card", "make", crowd, "--out", card)
    alone = command("assess", export, "--card", card, "--quick")
    print(f"alone: {'you' in alone.lower()}")
    posts = export.read_text("utf-8").splitlines(keepends=True)
    halves = [folder / "main.ndjson", folder / "other.ndjson"]
    for place, half in enumerate(halves):
        half.write_text("".join(posts[place::2]), encoding="utf-8")
    command("link", *halves, "--card", card)
    command("disclosures", export)
    serve(crowd)
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        command("gateway", "--database", "duckdb:///x.duckdb", "--state", folder / "state")
    print(f"gateway: {said.getvalue().strip()}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
