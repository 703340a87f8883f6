"""The tutorial's commands are run as a reader would, one after the other, with the gateway in a second terminal."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "gateway-postgresql.md"


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not pytest's folder: the server runs as a user of its own, and every other run of pytest locks that one out.
    with tempfile.TemporaryDirectory(prefix="incrowd-tutorial-") as name:
        yield Path(name)


def test_the_postgresql_tutorial_works(folder: Path) -> None:
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    assert blocks[0].startswith("pip install")
    *steps, tidy = blocks[1:]
    port = free_port()
    said: dict[int, str] = {}
    serving: subprocess.Popen[str] | None = None
    try:
        for number, step in enumerate(steps):
            commands = step.replace("8400", str(port))
            if commands.rstrip().endswith("incrowd gateway --policy policy.toml"):
                serving = second_terminal(folder, f"{commands.rstrip()} --port {port} --admin-port 0")
                continue
            said[number] = shell(folder, commands)
    finally:
        if serving is not None:
            serving.send_signal(signal.SIGTERM)
            assert serving.wait(60) == 0
        shell(folder, tidy)
    denver, aspen = next(text for text in said.values() if text.startswith("[")).splitlines()
    assert "Film" in denver
    assert aspen == "[]"
    assert any("too-small" in text for text in said.values())
    assert (folder / "report.html").exists()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port: int = door.getsockname()[1]
        return port


def environment(folder: Path) -> dict[str, str]:
    beside = str(Path(sys.executable).parent)
    url = folder / "database.url"
    known = {"INCROWD_DATABASE": url.read_text()} if url.exists() else {}
    return {**os.environ, "PATH": f"{beside}:{os.environ['PATH']}", **known}


def shell(folder: Path, commands: str) -> str:
    done = subprocess.run(
        ["bash", "-e"],
        input=commands,
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def second_terminal(folder: Path, commands: str) -> subprocess.Popen[str]:
    *before, last = commands.splitlines()
    script = "\n".join([*before, f"exec {last} 2> gateway.log"])
    process = subprocess.Popen(["bash", "-ec", script], cwd=folder, env=environment(folder), text=True)
    log = folder / "gateway.log"
    for _ in range(1200):
        if log.exists() and "listening" in log.read_text():
            return process
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError("the gateway did not start in two minutes")
