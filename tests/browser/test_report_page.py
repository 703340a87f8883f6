"""A person's report in a real browser: offline, accessible, printable, light and dark, wide and narrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from incrowd.report.person import person_report_page

from ..report.people import alex
from .browsing import Tab

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(person_report_page(alex()), encoding="utf-8")
    return path


def opened(browser: Any, path: Path, **options: Any) -> Tab:
    tab = Tab(browser.new_context(**options))
    tab.page.goto(path.as_uri())
    return tab


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_no_request_leaves(browser: Any, written: Path, scheme: str) -> None:
    tab = opened(browser, written, color_scheme=scheme)
    tab.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert tab.serious() == []
    assert tab.requests == [written.as_uri()]
    assert tab.complaints == []
    tab.picture(f"report-{scheme}")


def test_axe_would_notice(browser: Any) -> None:
    tab = Tab(browser.new_context())
    tab.page.set_content("<main><input><img src='data:,'></main>")
    assert len(tab.serious()) >= 2


def test_the_verdict_is_the_first_thing_read(browser: Any, written: Path) -> None:
    page = opened(browser, written).page
    assert page.get_by_role("heading", level=1).text_content() == alex().verdict.sentence
    headings = page.get_by_role("heading", level=2).all_text_contents()
    assert headings == [
        "Your label",
        "Why",
        "What to do",
        "What was not assessed",
        "Every number",
        "Fine print",
    ]


def test_the_numbers_can_be_saved_as_json(browser: Any, written: Path) -> None:
    page = opened(browser, written, accept_downloads=True).page
    with page.expect_download() as saving:
        page.get_by_role("link", name="The same numbers as JSON").click()
    assert json.loads(Path(saving.value.path()).read_text("utf-8")) == alex().to_dict()


@pytest.mark.parametrize("width", [320, 390, 768])
def test_nothing_is_wider_than_the_screen(browser: Any, written: Path, width: int) -> None:
    tab = opened(browser, written, viewport={"width": width, "height": 700}, color_scheme="dark")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.picture(f"report-{width}")


def test_it_reads_without_javascript(browser: Any, written: Path) -> None:
    page = opened(browser, written, java_script_enabled=False).page
    page.get_by_text("Can your profiles be linked?").last.click()
    assert page.get_by_text("higher is safer").or_(page.get_by_text("lower is safer")).first.is_visible()


def test_what_a_reader_needs_is_on_paper_even_what_is_folded(
    browser: Any, written: Path, tmp_path: Path
) -> None:
    page = opened(browser, written, color_scheme="dark").page
    page.emulate_media(media="print", color_scheme=None)
    assert page.get_by_text("by guessing").first.is_visible()
    assert page.get_by_text("What it does not reach").first.is_visible()
    assert not page.get_by_text("What else it changes").first.is_visible(), "tables of what stays as it is"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == "rgb(255, 255, 255)"
    page.pdf(path=tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 10_000


def test_the_keyboard_reaches_and_opens_everything(browser: Any, written: Path) -> None:
    page = opened(browser, written).page
    reached = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.tagName + ' ' + document.activeElement.textContent.trim().slice(0, 20)"
            )
        )
    assert any(name.startswith("SUMMARY Can your profiles") for name in reached)
    assert any(name.startswith("A The same numbers") for name in reached)
