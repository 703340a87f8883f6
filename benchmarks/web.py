"""How long a page takes until one can use it: real Chromium, `incrowd serve` as a person starts it.

``python -m benchmarks.web [--crowd DIR]``: on a given crowd, or on a made-up one of 10,000 identities and 1M posts.
*Interactive* is the browser's own word: the time from the click to the end of ``domInteractive`` plus our script, as
the page's navigation timing tells it (``domContentLoadedEventEnd``). The report itself is a background job; its time
is that of ``incrowd assess``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.advisor_draft import DRAFT, busiest, make

RUNS = 5
INTERACTIVE = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1000"


def main() -> dict[str, Any]:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--crowd", type=Path)
    chosen = arguments.parse_args()
    if chosen.crowd is not None:
        return measure(chosen.crowd)
    with tempfile.TemporaryDirectory() as scratch:
        return measure(make(Path(scratch) / "crowd"))


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, float]]:
    """Start the server; yield its address and how long it took to answer."""
    command = [
        sys.executable,
        "-c",
        "from incrowd.cli import main; main()",
        "serve",
        str(folder),
        "--port",
        "0",
        "--json",
    ]
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            told = json.loads("".join(server.stdout.readline() for _ in range(5)))
            yield told["address"], time.perf_counter() - start
        finally:
            server.send_signal(signal.SIGINT)


def measure(folder: Path) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    user, community, facts = busiest(folder)
    with served(folder) as (address, started), sync_playwright() as playing:
        browser = playing.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_default_timeout(600_000)
        begun = time.perf_counter()
        page.goto(address)
        first = time.perf_counter() - begun
        page.get_by_label("Your name in this crowd").fill(user)
        begun = time.perf_counter()
        page.get_by_role("button", name="Assess me").click()
        page.locator("header.verdict, [role=alert]").wait_for()
        if problem := page.locator("[role=alert]").all_text_contents():
            raise SystemExit(f"the assessment failed: {problem[0].strip()}")
        report, assessed = page.url, time.perf_counter() - begun
        root = address.partition("/?")[0]
        pages = {"home": root + "/", "crowd": f"{root}/crowd", "report": report}
        pages |= {tab: f"{report}/{tab}" for tab in ("linkable", "exposed", "what-if", "draft", "fine-print")}
        interactive = {name: best(page, url) for name, url in pages.items()}
        draft = answered(page, f"{report}/draft", community)
        browser.close()
    return {
        **facts,
        "serve_started_s": started,
        "first_page_s": first,
        "assess_job_s": assessed,
        "interactive_s": interactive,
        "slowest_page_s": max(interactive.values()),
        "draft_answer_best_s": draft,
    }


def best(page: Any, url: str) -> float:
    """The best of a few visits: others use this machine, too."""
    times = []
    for _ in range(RUNS):
        page.goto(url)
        times.append(float(page.evaluate(INTERACTIVE)))
    return min(times)


def answered(page: Any, url: str, community: str) -> float:
    """From the press of the button to the answer on the page."""
    times = []
    for run in range(RUNS):
        page.goto(url)
        page.get_by_label("Where").select_option(community)
        page.get_by_label("Your draft").fill(f"{DRAFT} {run}")
        begun = time.perf_counter()
        page.get_by_role("button", name="Check").click()
        page.locator("#draft-answer h2").wait_for()
        times.append(time.perf_counter() - begun)
    return min(times)


if __name__ == "__main__":
    for name, value in main().items():
        print(f"{name:20} {value}")
