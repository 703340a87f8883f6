"""A person's report as one offline page: the verdict, the label, why, what to do, what nobody could tell."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from incrowd.measures.protocol import Level
from incrowd.report.label import Label
from incrowd.report.page import asset, page
from incrowd.report.templating import report_templates

if TYPE_CHECKING:
    from incrowd.advisor.answer import PersonReport
    from incrowd.measures.protocol import ThemeName

BARS = (Level.WELL_HIDDEN, Level.WATCH, Level.AT_RISK)
"""The label's scale, best first. There is no bar for "cannot tell": nobody knows where it would stand."""


def person_report_page(report: PersonReport) -> str:
    """Return the report as one HTML file that prints, reads aloud, and can send nothing anywhere."""
    data = report.to_dict()
    body = report_templates().get_template("person.html").render(report=report, json_link=json_link(data))
    return page(f"{report.person} in the crowd", body, data=data, style=asset("advice.css"))


def json_link(data: Mapping[str, Any]) -> str:
    """Return a link that holds the data itself, to be saved without a script or a request."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return "data:application/json;base64," + base64.b64encode(text.encode()).decode()


def person_label(report: PersonReport) -> Label:
    """Return the label of the whole report as a picture for the terminal or a file."""
    return _label(
        "In the crowd", report.verdict.level, f"among {report.people:,} people; the worst case counts"
    )


def theme_label(report: PersonReport, name: ThemeName) -> Label:
    """Return the label of one of the four questions."""
    theme = next(theme for theme in report.themes if theme.name == name)
    return _label(theme.name.question, theme.level)


def _label(title: str, level: Level, caption: str = "") -> Label:
    you = BARS.index(level) if level in BARS else None
    return Label(title, tuple(str(bar) for bar in BARS), you, caption)
