"""The web interface in a real browser: from the first visit to the finished report, and everything around it."""

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
PERSON = "alex"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return demo_person(users=60, seed=5).write(tmp_path_factory.mktemp("exports"))


@pytest.fixture(scope="module")
def address(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the command as a person would, on an empty folder."""
    crowd = tmp_path_factory.mktemp("served") / "crowd"
    command = [
        sys.executable,
        "-c",
        "from incrowd.cli import main; main()",
        "serve",
        str(crowd),
        "--port",
        "0",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        printed = [server.stdout.readline() for _ in range(5)]
        try:
            yield json.loads("".join(printed))["address"]
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
        assert server.stderr is not None
        assert server.stderr.read() == "", "nothing of what people do is logged"


class Visit(Tab):
    """A tab of a browser that has opened the printed address."""

    def __init__(self, context: Any, address: str) -> None:
        super().__init__(context)
        self.address = address
        self.root = address.partition("/?")[0]
        self.page.goto(address)

    def go(self, path: str) -> Any:
        return self.page.goto(path if path.startswith("http") else self.root + path)

    def check(self, name: str, axe: bool = True) -> None:
        """Every page: nothing from elsewhere, no complaint, nothing serious for axe; a picture."""
        assert not axe or self.serious() == []
        self.picture(name)
        strangers = [url for url in self.requests if not url.startswith((self.root, "data:"))]
        assert strangers == []
        assert self.complaints == []


def visit(browser: Any, address: str, **options: Any) -> Visit:
    return Visit(browser.new_context(**options), address)


@pytest.fixture(scope="module")
def report(browser: Any, address: str, files: list[Path]) -> str:
    """The first visit: drop in the files, say who you are, wait for the report."""
    here = visit(browser, address)
    page = here.page
    assert page.url == here.root + "/", "the token has left the address"
    here.check("web-first-visit")
    for kind, file in zip(("posts", "items", "attributes"), files, strict=True):
        here.go("/")
        page.get_by_label("Files", exact=True).set_input_files(str(file))
        page.get_by_text("If it cannot be told from the files").click()
        page.get_by_label("What they hold").select_option(kind)
        page.get_by_role("button", name="Read the files").click()
        page.get_by_role("heading", name="rows are new in the crowd").wait_for()
    here.check("web-imported")
    page.get_by_label("Your name in this crowd").fill(PERSON)
    page.get_by_role("button", name="Assess me").click()
    page.wait_for_url(re.compile(r"/reports/[^/]+$"))
    here.check("web-report")
    assert PERSON not in page.url
    return str(page.url)


def test_the_report_has_a_tab_for_every_question(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address)
    here.go(report)
    assert PERSON in here.page.locator(".eyebrow").text_content()
    for tab in ("Linkable", "Singled out", "Inferable", "Exposed", "Fine print"):
        here.page.get_by_role("navigation", name="About").get_by_role("link", name=tab).click()
        current = here.page.locator(".tabs a[aria-current=page]")
        assert current.text_content() == tab
        # The four questions share one template, so axe looks at the longest alone.
        here.check(f"web-{tab.lower().replace(' ', '-')}", axe=tab in ("Exposed", "Fine print"))


def test_what_if_answers_while_one_ticks(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address)
    here.go(f"{report}/what-if")
    answer = here.page.locator("#what-if-answer")
    assert "Tick something" in answer.text_content()
    here.page.locator("input[name=advice]").first.check()
    answer.get_by_text("What changes").or_(answer.get_by_text("more number")).first.wait_for()
    here.check("web-what-if")
    here.page.get_by_role("button", name="Untick everything").click()
    answer.get_by_text("Tick something").wait_for()


def test_what_if_works_without_javascript_and_says_the_same(browser: Any, address: str, report: str) -> None:
    texts = []
    for scripts in (True, False):
        here = visit(browser, address, java_script_enabled=scripts)
        here.go(f"{report}/what-if")
        here.page.locator("input[name=advice]").first.check()
        here.page.get_by_role("button", name="Measure again").click()
        here.page.locator("#what-if-answer table").first.wait_for()
        texts.append(" ".join(here.page.locator("#what-if-answer").inner_text().split()))
    assert texts[0] == texts[1]


def test_a_post_number_nobody_has_is_explained_on_the_page(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address)
    here.go(f"{report}/what-if")
    here.page.get_by_label("More posts to delete").fill("999999")
    here.page.get_by_role("alert").wait_for()
    assert "no post number 999999" in here.page.get_by_role("alert").text_content()


def test_own_texts_are_shown_only_when_asked_for(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address)
    here.go(f"{report}/what-if")
    assert here.page.locator(".quote").count() == 0
    here.page.get_by_role("link", name="Show what they say").click()
    assert here.page.locator(".quote").count() > 0


def test_a_draft_is_checked_while_one_types(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address)
    here.go(f"{report}/draft")
    here.page.get_by_label("Your draft").fill("My depression keeps me from riding. The doctor said to rest.")
    here.page.locator("#draft-answer h2").wait_for()
    assert "Posting this in" in here.page.locator("#draft-answer h2").text_content()
    here.check("web-draft")


def test_a_draft_works_without_javascript(browser: Any, address: str, report: str) -> None:
    page = visit(browser, address, java_script_enabled=False)
    page.go(f"{report}/draft")
    page.page.get_by_label("Your draft").fill("Good tyres.")
    page.page.get_by_role("button", name="Check").click()
    assert "Good tyres." in page.page.get_by_label("Your draft").input_value()
    assert "Posting this in" in page.page.locator("#draft-answer h2").text_content()


def test_the_report_can_be_saved_as_one_file(browser: Any, address: str, report: str) -> None:
    page = visit(browser, address, accept_downloads=True)
    page.go(report)
    with page.page.expect_download() as saving:
        page.page.get_by_role("link", name="Save as one offline page").click()
    text = Path(saving.value.path()).read_text("utf-8")
    assert "default-src 'none'" in text
    assert PERSON in text


def test_a_bad_upload_is_explained(browser: Any, address: str, report: str, tmp_path: Path) -> None:
    bad = tmp_path / "holiday.zip"
    bad.write_bytes(b"PK\x03\x04 this is no archive")
    here = visit(browser, address)
    here.page.get_by_label("Files", exact=True).set_input_files(str(bad))
    here.page.get_by_role("button", name="Read the files").click()
    here.page.get_by_role("heading", name="That did not work").wait_for()
    assert "holiday.zip" in here.page.get_by_role("alert").text_content()
    here.check("web-bad-upload")


def test_a_name_nobody_has_is_explained(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address)
    here.page.get_by_label("Your name in this crowd").fill("nobody of that name")
    here.page.get_by_role("button", name="Assess me").click()
    here.page.get_by_role("alert").wait_for()
    assert "Nobody of that name is in this crowd" in here.page.get_by_role("alert").text_content()


def test_progress_is_shown_and_a_job_can_be_stopped(
    browser: Any, address: str, report: str, tmp_path: Path
) -> None:
    """An import that takes some seconds, so that nothing is over before it is seen."""
    rows = (f"u{k % 5000},tea,{1_600_000_000 + k},a cup of word{k % 9000} with sugar" for k in range(400_000))
    (tmp_path / "large.csv").write_text("user,community,time,text\n" + "\n".join(rows), "utf-8")
    here = visit(browser, address)
    here.page.get_by_label("Files", exact=True).set_input_files(str(tmp_path / "large.csv"))
    here.page.get_by_role("button", name="Read the files").click()
    here.page.get_by_role("progressbar").wait_for()
    here.check("web-progress", axe=False)
    here.page.get_by_role("button", name="Stop").click()
    here.page.get_by_text("Stopped. Nothing half-done was kept.").wait_for()


def test_two_tabs_work_at_once(browser: Any, address: str, report: str) -> None:
    context = browser.new_context()
    first, second = Visit(context, address), Visit(context, address)
    first.go("/studies")
    first.page.get_by_role("button", name="Run the study: Microdata").click()
    second.go(report)
    assert second.page.get_by_role("heading", level=1).is_visible()
    second.go("/")
    second.page.get_by_role("link", name="Study: Microdata").wait_for()
    first.page.get_by_role("heading", name="Fine print").wait_for()


def test_a_study_is_shown_as_its_own_page(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address)
    here.go("/studies")
    here.check("web-studies")
    here.page.get_by_role("button", name="Run the study: Anonymity").click()
    here.page.get_by_role("heading", name="Fine print").wait_for()
    here.check("web-study")


def test_the_crowd_report_tells_totals(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address)
    here.go("/crowd")
    here.check("web-crowd")
    here.page.get_by_label("How many people").fill("6")
    here.page.get_by_role("button", name="Assess them").click()
    here.page.wait_for_url(re.compile(r"/crowd/report/"))
    here.check("web-crowd-report")
    assert PERSON not in here.page.content()


def test_a_provider_makes_a_release(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address, accept_downloads=True)
    here.go("/providers")
    here.check("web-providers")
    here.page.get_by_label("An item is rare").fill("20")
    here.page.get_by_role("button", name="Make a release").click()
    here.page.get_by_role("heading", name="Release 1 is ready").wait_for()
    here.check("web-release")
    with here.page.expect_download() as saving:
        here.page.get_by_role("link", name="Save the statistics").click()
    assert "popularity" in json.loads(Path(saving.value.path()).read_text("utf-8"))


def test_judges_find_their_form(browser: Any, address: str, report: str) -> None:
    pytest.importorskip("tomotopy")
    here = visit(browser, address)
    here.go("/judges")
    here.check("web-judges")
    here.page.get_by_label("Topics", exact=True).fill("5")
    here.page.get_by_label("Passes over the posts").fill("10")
    here.page.get_by_role("button", name="Learn").click()
    here.page.get_by_role("heading", name="5 topics to judge").wait_for()
    here.check("web-topics")
    here.page.get_by_role("link", name="Open the form").click()
    here.page.get_by_role("button", name="Save answers").wait_for()
    assert here.page.locator("fieldset").count() == 5
    assert here.complaints == []


def test_it_works_by_keyboard_alone(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address)
    here.go(report)
    page = here.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Answer"
    for _ in range(12):  # past a tab for every question
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href')").endswith("/draft"):
            break
    page.keyboard.press("Enter")
    page.get_by_label("Your draft").wait_for()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "text":
            break
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the place of the keyboard is seen"
    page.keyboard.type("A quiet ride.")
    page.locator("#draft-answer h2").wait_for()


@pytest.mark.parametrize("place", ["", "/linkable", "/what-if", "/draft"])
def test_a_narrow_dark_screen_shows_everything(browser: Any, address: str, report: str, place: str) -> None:
    here = visit(browser, address, viewport={"width": 360, "height": 700}, color_scheme="dark")
    here.go(report + place)
    assert here.page.evaluate("document.documentElement.scrollWidth") <= 360
    here.check(f"web-narrow{place.replace('/', '-')}", axe=place in ("/what-if", "/draft"))


def test_every_section_is_accessible_in_the_dark(browser: Any, address: str, report: str) -> None:
    here = visit(browser, address, color_scheme="dark")
    for place in ("/", "/crowd", "/studies", "/judges", "/providers", report):
        here.go(place)
        here.check(f"web-dark-{place.strip('/').rpartition('/')[2] if place != report else 'report'}")


def test_another_browser_does_not_get_in(browser: Any, address: str) -> None:
    tab = Tab(browser.new_context())
    answer = tab.page.goto(address.partition("/?")[0] + "/crowd")
    assert answer.status == 403
    assert tab.serious() == []
    tab.page.get_by_label("Address or token").fill(address)
    tab.page.get_by_role("button", name="Enter").click()
    tab.page.get_by_role("heading", name="How well do you hide in the crowd?").first.wait_for()


def test_another_page_on_this_machine_can_neither_read_nor_send(
    browser: Any, address: str, report: str, tmp_path: Path
) -> None:
    """A page of another origin in the same browser, where the cookie lies, tries."""
    context = browser.new_context()
    Visit(context, address)
    root = address.partition("/?")[0]
    other = context.new_page()
    (tmp_path / "evil.html").write_text("<!doctype html><title>elsewhere</title>")
    other.goto((tmp_path / "evil.html").as_uri())
    outcome = other.evaluate(
        """async (root) => {
            const tried = [];
            for (const options of [{}, {credentials: 'include'}]) {
                try { tried.push(await (await fetch(root + '/crowd', options)).text()); }
                catch { tried.push('refused'); }
            }
            return tried;
        }""",
        root,
    )
    assert outcome == ["refused", "refused"]
