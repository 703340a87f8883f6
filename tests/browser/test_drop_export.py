"""`incrowd serve` without a crowd, in a real browser: drop an export, read the report, try a change and a draft."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incrowd.synthetic import demo_person

from .browsing import Tab

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One made-up person's posts."""
    made = demo_person(users=60, seed=5)
    crowd = made.crowd(tmp_path_factory.mktemp("made") / "crowd")
    path = tmp_path_factory.mktemp("export") / "export.jsonl"
    crowd.posts(user=crowd.user(made.person)).collect().write_ndjson(path)
    return path


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Run the command as a person would, without a folder; the place for temporary files is ours to look into."""
    import os

    passing = tmp_path_factory.mktemp("passing")
    command = [sys.executable, "-c", "from incrowd.cli import main; main()", "serve", "--port", "0", "--json"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(passing)},
    ) as server:
        assert server.stdout is not None
        printed = [server.stdout.readline() for _ in range(5)]
        try:
            yield json.loads("".join(printed))["address"], passing
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
        assert server.stderr is not None
        assert server.stderr.read() == "", "nothing of what people do is logged"
    assert list(passing.glob("incrowd-*")) == [], "nothing is left behind"


def test_an_export_becomes_a_report(browser: Any, served: tuple[str, Path], export: Path) -> None:
    address, passing = served
    tab = Tab(browser.new_context())
    page = tab.page
    page.goto(address)
    page.get_by_role("heading", name="Drop your export").wait_for()
    assert tab.serious() == []
    tab.picture("web-drop-export")
    page.get_by_label("Files of your export").set_input_files(str(export))
    page.get_by_role("button", name="How well do I hide?").click()
    page.wait_for_url(re.compile(r"/reports/"))
    shown = page.locator("main").inner_text()
    assert "Reddit" in shown
    assert tab.serious() == []
    tab.picture("web-export-report")
    assert not list(passing.rglob("*.jsonl")), "the files are gone once they are read"
    report = page.url
    page.goto(f"{report}/draft")
    page.get_by_label("Your draft").fill("I live in Lyon and I am depressed.")
    page.locator("#draft-answer h2").wait_for()
    assert "Posting this in Reddit" in page.locator("#draft-answer h2").text_content()
    page.goto(f"{report}/what-if")
    assert "Reddit" in page.locator("main").inner_text()
    root = address.partition("/?")[0]
    assert [url for url in tab.requests if not url.startswith((root, "data:"))] == []


def test_a_wrong_file_is_explained(browser: Any, served: tuple[str, Path], tmp_path: Path) -> None:
    tab = Tab(browser.new_context())
    wrong = tmp_path / "wrong.zip"
    wrong.write_bytes(b"no archive at all")
    tab.page.goto(served[0])
    tab.page.get_by_label("Files of your export").set_input_files(str(wrong))
    tab.page.get_by_role("button", name="How well do I hide?").click()
    tab.page.get_by_text("wrong.zip").first.wait_for()
    assert "Traceback" not in tab.page.content()
