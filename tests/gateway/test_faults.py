"""The running service under kill -9, SIGTERM, a lost solver and a second starter: it forgets nothing it told."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from time import monotonic

import pytest
from tests.gateway.serving import VICTIM, Got, Running, make_world, question, running

from incrowd.gateway.audit import check_audit, read_audit
from incrowd.gateway.ledger import Ledger
from incrowd.gateway.state import KeyStore, open_secret


@pytest.fixture
def world(tmp_path: Path) -> tuple[str, Path, str]:
    url = make_world(tmp_path, reply=0.05, queries=1000)
    return url, tmp_path, KeyStore(tmp_path / "state").add("client", "lab")


def load(
    service: Running, key: str, bodies: list[bytes], told: dict[bytes, Got], threads: int = 8
) -> list[threading.Thread]:
    """Ask from several threads until done or the service is gone; keep what was told."""
    waiting = list(reversed(bodies))

    def asking() -> None:
        while waiting:
            body = waiting.pop()
            try:
                got = service.post(body, key)
            except OSError:
                return
            except Exception:  # a reply cut off in the middle was not told
                return
            told[body] = got

    started = [threading.Thread(target=asking) for _ in range(threads)]
    for thread in started:
        thread.start()
    return started


def test_kill_9_in_the_middle_of_a_load_loses_nothing_that_was_told(world: tuple[str, Path, str]) -> None:
    url, folder, key = world
    told: dict[bytes, Got] = {}
    bodies = [
        question(city, low, 60 + low % 7) for low in range(18, 58) for city in ("Denver", "Boulder", "Aspen")
    ]
    with running(url, folder) as service:
        threads = load(service, key, bodies, told)
        while len(told) < 20:
            assert any(thread.is_alive() for thread in threads)
            threading.Event().wait(0.01)
        os.kill(service.process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join()
    assert 20 <= len(told) < len(bodies)
    assert {got.status for got in told.values()} == {200}
    state = folder / "state"
    ledger = Ledger(state)
    entries = list(ledger.replay())
    ledger.close()
    assert len(entries) >= len(told)
    assert len(list(read_audit(state))) >= len(told)
    with running(url, folder) as service:
        for body, got in told.items():
            assert service.post(body, key) == got
        (ended,) = [service.request("GET", "/ready").status]
    assert ended == 200
    assert check_audit(state, open_secret(state).key("audit")).intact


def test_sigterm_finishes_what_was_begun_and_ends_well(world: tuple[str, Path, str]) -> None:
    url, folder, key = world
    told: dict[bytes, Got] = {}
    with running(url, folder) as service:
        assert VICTIM not in service.post(question(), key).body.decode()
        solver_lost(service)
        threads = load(service, key, [question(high=high) for high in range(40, 48)], told)
        threading.Event().wait(0.02)
        service.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert service.process.wait(60) == 0
    assert {got.status for got in told.values()} <= {200}
    assert not (folder / "state" / "running.json").exists()
    assert len(list(read_audit(folder / "state"))) == 1 + len(told)


def children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def solver_lost(service: Running) -> None:
    """The children that search are killed: the service goes on."""
    (worker,) = children(service.process.pid)
    (fork_server,) = children(worker)
    for child in children(fork_server):
        os.kill(child, signal.SIGKILL)
    assert service.request("GET", "/health", admin=True).status == 200


def test_the_process_that_decides_is_replaced_and_nothing_it_told_is_forgotten(
    world: tuple[str, Path, str],
) -> None:
    url, folder, key = world
    with running(url, folder) as service:
        told = service.post(question(), key)
        assert told.json["values"]
        os.kill(children(service.process.pid)[0], signal.SIGKILL)
        assert service.post(question(), key) == told  # remembered on this side
        meanwhile = service.post(question("Boulder"), key)
        assert (meanwhile.status, len(meanwhile.body)) == (told.status, len(told.body))
        until = monotonic() + 60
        while service.request("GET", "/ready").status != 200 and monotonic() < until:
            threading.Event().wait(0.1)
        assert service.post(question(), key) == told
        assert service.post(question("Boulder"), key).json["values"]


def run(folder: Path, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("incrowd")), "gateway", *options]
    environment = {**os.environ, "INCROWD_DATABASE": url}
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=120)


def test_the_operator_asks_the_running_gateway_why_and_a_second_one_is_refused(
    world: tuple[str, Path, str],
) -> None:
    url, folder, key = world
    options = ("--policy", "policy.toml", "--state", "state")
    with running(url, folder) as service:
        service.post(question(), key)
        tried = run(
            folder,
            url,
            "try",
            question("Aspen", 30, 31).decode(),
            "--json",
            "--organisation",
            "lab",
            *options,
        )
        report = run(folder, url, "report", "--json", "--html", "report.html", *options)
        second = run(folder, url, *options, "--port", "0", "--admin-port", "0")
        taken = run(folder, url, "try", "SELECT movies FROM nowhere", *options)
    assert tried.returncode == 0, tried.stderr
    assert json.loads(tried.stdout)["rule"]
    assert report.returncode == 0, report.stderr
    found = json.loads(report.stdout)
    assert found["clients"][0]["answered"] == 1
    assert found["decisions"][0]["withheld"] >= 1
    assert found["support"]["attributes"][0]["attribute"] == "movies"
    assert "<h1>" in (folder / "report.html").read_text()
    assert second.returncode == 2
    assert "Traceback" not in second.stderr + taken.stderr
    assert taken.returncode == 2
