"""The crowd report in a real browser: offline, accessible, light and dark, wide and narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.advisor.crowd_report import crowd_report
from incrowd.crowd import Crowd
from incrowd.measures.crowd_rates import CrowdOptions
from incrowd.report.crowd import crowd_report_page

from .browsing import Tab

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def written(tiny_crowd: Crowd, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "crowd.html"
    path.write_text(
        crowd_report_page(crowd_report(tiny_crowd, options=CrowdOptions(smallest=4, sampled=8))),
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(("scheme", "width"), [("light", 1000), ("dark", 360)])
def test_axe_finds_nothing_serious_and_no_request_leaves(
    browser: Any, written: Path, scheme: str, width: int
) -> None:
    tab = Tab(browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}))
    tab.page.goto(written.as_uri())
    assert tab.serious() == []
    assert tab.requests == [written.as_uri()]
    assert tab.complaints == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    tab.picture(f"crowd-report-{scheme}")
