"""The shell of every offline page (one file, light and dark, printable, unable to send anything), and pages in it.

The page's security policy forbids every request; scripts and styles run only if it names their hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Template

from incrowd.crowd.disk import PRIVATE, hand_over
from incrowd.drawing import Chart, draw, tick_text
from incrowd.measures.microdata.client import MARGIN, MOST_SPLIT, WANTED_CROWD, WORDS
from incrowd.report.label import COLOURS, ink_on
from incrowd.study.figures import Cell, Section, Study, Table

if TYPE_CHECKING:
    from incrowd.measures.microdata.statistics import Statistics


def page(
    title: str, body: str, *, data: Mapping[str, Any] | None = None, script: str = "", style: str = ""
) -> str:
    """Return a whole HTML document. `data` is embedded as JSON under the id ``data``."""
    css = asset("page.css") + style
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src '{_hash(css)}'",
            f"script-src '{_hash(script)}'" if script else "script-src 'none'",
            "img-src data:",
            "form-action 'none'",
            "base-uri 'none'",
        ]
    )
    embedded = f'<script type="application/json" id="data">{embed(data)}</script>' if data is not None else ""
    code = f"<script>{script}</script>" if script else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escape(title)}</title>\n<style>{css}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n{embedded}\n{code}\n</body>\n</html>\n"
    )


def policy_of(document: str) -> str:
    """Return the security policy a page of ours carries, for a server to repeat in its header."""
    return document.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]


def asset(name: str) -> str:
    """Return the text of a file that lies beside this one."""
    return resources.files("incrowd.report").joinpath(name).read_text(encoding="utf-8")


def embed(data: Any) -> str:
    """Return JSON that can stand inside a script element: it can neither end it nor start markup."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character, written in (
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u2028", "\\u2028"),
        ("\u2029", "\\u2029"),
    ):
        text = text.replace(character, written)
    return text


def write(path: str | Path, document: str, mode: int = PRIVATE) -> None:
    """Write a page, for nobody else to read unless it is to be published; whole or not at all."""
    hand_over(path, document, mode)


def study_page(study: Study) -> str:
    """Return a study as a page: the sentences, the figures, the numbers behind them."""
    parts = [f"<h1>{escape(study.title)}</h1>", f'<p class="lead">{escape(study.summary)}</p>']
    first = (study.beside_the_paper,) if study.headlines else ()
    parts += [_section(section) for section in (*first, *study.sections)]
    rows = tuple((str(name), _fact(value)) for name, value in study.facts.items())
    fine_print = Table(title="What it takes to run this again", columns=("fact", "value"), rows=rows)
    parts.append(f"<section><h2>Fine print</h2>{table_html(fine_print)}</section>")
    return page(study.title, "\n".join(parts), data=study.to_dict())


def _section(section: Section) -> str:
    parts = [chart_html(part) if isinstance(part, Chart) else table_html(part) for part in section.parts]
    text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in section.text.split("\n\n") if paragraph)
    return f"<section><h2>{escape(section.heading)}</h2>{text}{''.join(parts)}</section>"


def chart_html(chart: Chart) -> str:
    """Return a chart with its title and its sentence."""
    return (
        f"<figure><figcaption><strong>{escape(chart.title)}</strong><br>{escape(chart.sentence)}</figcaption>"
        f"{draw(chart)}</figure>"
    )


def table_html(table: Table) -> str:
    """Return a table with its title; numbers are right-aligned."""
    numeric = [any(isinstance(row[k], int | float) for row in table.rows) for k in range(len(table.columns))]
    head = "".join(
        f'<th scope="col"{" class=number" if right else ""}>{escape(name)}</th>'
        for name, right in zip(table.columns, numeric, strict=True)
    )
    rows = "".join("<tr>" + "".join(_cell(cell) for cell in row) + "</tr>" for row in table.rows)
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}"><table>'
        f"<caption>{escape(table.title)}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{note}"
    )


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return f"<td>{escape(cell)}</td>"
    if cell is None or cell != cell:
        return '<td class="number">–</td>'
    text = f"{cell:,}" if isinstance(cell, int) else _float(cell)
    return f'<td class="number">{text}</td>'


def _float(value: float) -> str:
    if abs(value) >= 1000 or value == 0 or abs(value) < 0.001:
        return tick_text(value)
    return f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"


def _fact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, Mapping | list | tuple) else str(value)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


JUDGES_TITLE = "Which topics are sensitive?"
JUDGES_BODY = f"""<h1>{JUDGES_TITLE}</h1>
<p class="lead">Each topic is a list of words that often occur together. Would somebody mind if others learnt
that they are concerned with it? Say so, choose the domain it belongs to, and save. Nothing is sent anywhere.</p>
<p><label>Your name or number <input id="judge" autocomplete="off"></label></p>
<div id="questions"></div>
<p><button id="save" type="button">Save answers</button> <output id="done" aria-live="polite"></output></p>"""


def judges_page(topics: Sequence[Sequence[str]], domains: Sequence[str]) -> str:
    """Return the page; `topics` holds the salient words of every topic, in order."""
    data = {"topics": [list(words) for words in topics], "domains": list(domains)}
    return page(JUDGES_TITLE, JUDGES_BODY, data=data, script=asset("judges_page.js"))


def microdata_page(statistics: Statistics, title: str = "How well would you hide in this crowd?") -> str:
    """Return the page with the statistics inside. Its policy lets it send nothing anywhere."""
    data = {
        "statistics": statistics.to_dict(),
        "adversary": statistics.knowledge.words,
        "label": {
            "words": {str(count): list(words) for count, words in WORDS.items()},
            "colours": [{"fill": colour, "ink": ink_on(colour)} for colour in COLOURS],
            "most_split": MOST_SPLIT,
            "wanted": WANTED_CROWD,
            "enough": MARGIN * WANTED_CROWD,
        },
    }
    body = Template(asset("microdata_page.html"), autoescape=True).render(statistics=statistics, title=title)
    return page(title, body, data=data, script=asset("microdata_page.js"), style=asset("microdata_page.css"))
