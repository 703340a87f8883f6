"""The collector: killed ten times on the way, against collected in peace; and posts a second, with how much memory.

*Killed*: Bluesky's own server with 200 accounts and 20,000 posts (`make servers` installs it). A door in front of it
counts what is asked; the collector is killed (kill -9) at ten moments spread over the run. The crowd must equal the one
collected in peace, and at most one page a kill may be asked for twice.

*Speed*: a server in another process that has its pages ready, so that what is measured is ours: asking, reading,
journal and import, on one core. Processor seconds are what a busy machine distorts least. Memory is looked at import by
import: the most the process had since the import before, libraries' files included. It is flat if the last imports take
what the first did.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from tests.collect.gathering import CONTACT, rows
from tests.collect.real_servers import NO_PDS, has_pds, pds
from tests.collect.sites import Asked, Reply, Site, cid

ROOT = Path(__file__).parent.parent
MAIN = [sys.executable, "-c", "from incrowd.cli import main; main()"]


def command(server: str, crowd: Path) -> list[str]:
    where = ["--server", server, "--community", "local", "--crowd", str(crowd)]
    return [
        *MAIN,
        "collect",
        "bluesky",
        *where,
        "--newest",
        "100000",
        "--people",
        "100000",
        "--contact",
        CONTACT,
        "--yes",
    ]


def killed(accounts: int, posts: int, kills: int) -> dict[str, Any]:
    """Collect from a real server in peace and with kills; compare."""
    if not has_pds():
        return {"skipped": NO_PDS}
    with tempfile.TemporaryDirectory() as name, pds(Path(name) / "pds") as server:
        folder = Path(name)
        started = time.perf_counter()
        for n in range(accounts):
            person = server.account(f"writer{n}")
            server.post(person, [f"post {i} of writer {n}" for i in range(posts // accounts)])
        made = time.perf_counter() - started
        door = _door(server.address)
        with door.open() as address:
            started = time.perf_counter()
            subprocess.run(command(address, folder / "peace"), check=True, capture_output=True)
            peace = time.perf_counter() - started
            needed = len(door.asked)
            door.asked.clear()
            for kill in range(1, kills + 1):
                _kill_at(door, needed * kill // (kills + 1), command(address, folder / "killed"))
            subprocess.run(command(address, folder / "killed"), check=True, capture_output=True)
        times = Counter((asked.path, *sorted(asked.query.items())) for asked in door.asked)
        return {
            "accounts": accounts,
            "posts": len(rows(folder / "peace")),
            "kills": kills,
            "equal": rows(folder / "peace") == rows(folder / "killed"),
            "requests_needed": needed,
            "asked_twice": sum(times.values()) - len(times),
            "seconds_to_make": made,
            "seconds_in_peace": peace,
        }


def _door(address: str) -> Site:
    """Return a server that passes everything on to another, and counts."""
    site, inner = Site(), httpx.Client(base_url=address, trust_env=False)

    def forward(asked: Asked) -> Reply:
        answer = inner.get(asked.path, params=asked.query)
        return answer.status_code, {"content-type": answer.headers.get("content-type", "")}, answer.content

    site.routes["/"] = forward
    return site


def _kill_at(door: Site, requests: int, command: list[str]) -> None:
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while len(door.asked) < requests and running.poll() is None:
        time.sleep(0.001)
    running.send_signal(signal.SIGKILL)
    running.wait()


PAGES = """
import sys
sys.path.insert(0, {root!r})
from benchmarks.collect import ready_server
ready_server({people})
"""


def ready_server(people: int) -> None:
    """Serve people with a thousand posts each, all pages made beforehand; until standard input ends."""
    chance = random.Random(0)
    words = [f"word{n}" for n in range(5000)]
    page = [" ".join(chance.choices(words, k=30)) for _ in range(100)]
    site = Site()
    site.compress = False

    def answer(asked: Asked) -> Any:
        method = asked.path.rsplit(".", 1)[1]
        if method == "listRepos":
            return {"repos": [{"did": f"did:plc:{n}"} for n in range(people)]}
        if method == "getRecord":
            return 400, {"content-type": "application/json"}, b"{}"
        start, did = int(asked.query.get("cursor", 0)), asked["repo"]
        uri = f"at://{did}/app.bsky.feed.post/"
        records = [
            {
                "uri": f"{uri}{start + n}",
                "cid": cid(f"{uri}{start + n}"),
                "value": {"text": f"{start + n} {text}", "createdAt": "2024-01-01T00:00:00Z"},
            }
            for n, text in enumerate(page)
        ]
        return {"records": records, **({"cursor": str(start + 100)} if start < 900 else {})}

    site.routes["/"] = answer
    with site.open() as address:
        print(address, flush=True)
        sys.stdin.read()


def speed(people: int) -> dict[str, Any]:
    """Collect a thousand posts of each on one core."""
    server = subprocess.Popen(
        [sys.executable, "-c", PAGES.format(root=str(ROOT), people=people)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    address = server.stdout.readline().strip()
    script = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); {MAIN[2]}"
    with tempfile.TemporaryDirectory() as name:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        running = subprocess.Popen(
            [MAIN[0], "-c", script, *command(address, Path(name) / "crowd")[3:], "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        peaks = _peaks(running, Path(name) / "crowd" / "manifest.json")
        wall = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert running.stdout is not None
        done = json.loads(running.stdout.read())
    server.stdin.close()
    server.wait()
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    posts = done["posts"]
    return {
        "posts": posts,
        "posts_a_second": posts / wall,
        "posts_a_processor_second": posts / seconds,
        "peak_mib": max(peaks),
        "peak_mib_by_import": peaks,
    }


def _peaks(running: subprocess.Popen[str], manifest: Path) -> list[int]:
    """Return the most memory a process had, in MiB, up to each import's end and up to its own."""
    peaks, done = [0], 0
    folder = Path(f"/proc/{running.pid}")
    while running.poll() is None:
        try:
            status = (folder / "status").read_text(encoding="ascii")
            (peak,) = (int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
            peaks[-1] = max(peaks[-1], peak // 1024)
            if manifest.exists() and done != (done := manifest.stat().st_mtime_ns):
                peaks.append(0)
                (folder / "clear_refs").write_text("5", encoding="ascii")  # the peak counts anew from here
        except (OSError, ValueError):  # it is just ending
            pass
        time.sleep(0.02)
    return peaks


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--accounts", type=int, default=200)
    parser.add_argument("--posts", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--people", type=int, nargs="*", default=[20, 100, 300])
    options = parser.parse_args()
    report: dict[str, Any] = {f"speed_{people}_people": speed(people) for people in options.people}
    report["killed"] = killed(options.accounts, options.posts, options.kills)
    return report


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
