"""Charts and pages: numbers in, accessible and self-contained pictures out."""

from __future__ import annotations

import html.parser
import json
import math
import re
import stat
import xml.etree.ElementTree as ET

import pytest

from incrowd.drawing import MOST_POINTS, Chart, Series, draw, picture, tick_text
from incrowd.errors import InputError
from incrowd.report.page import embed, page, study_page, table_html, write
from incrowd.study.figures import Section, Study, Table

SVG = "{http://www.w3.org/2000/svg}"


def chart(kind: str = "lines", **more: object) -> Chart:
    basics = {
        "title": "A < B",
        "sentence": "It rises & falls.",
        "x_label": "x",
        "y_label": "y",
        "series": (Series.of("one", [1, 10, 100], [1.0, 0.5, 2.0]), Series.of("two", [1, 2], [3.0, 4.0])),
    }
    return Chart(kind=kind, **(basics | more))  # type: ignore[arg-type]


def study() -> Study:
    table = Table(
        title="T", columns=("name", "value"), rows=(("<b>", 1.5), ("none", math.nan), ("many", 12345))
    )
    parts = (
        table,
        chart(),
        chart("bars", categories=("a", "b", "c"), series=(Series.of("s", range(3), [1, 2, 3]),)),
    )
    section = Section(heading="H & more", text="First.\n\nSecond.", parts=parts)
    return Study(
        name="n", title="Title <x>", summary="Sum.", sections=(section,), facts={"seed": 1, "d": {"a": 1}}
    )


@pytest.mark.parametrize("kind", ["lines", "scatter", "bars"])
@pytest.mark.parametrize(("x_log", "y_log"), [(False, False), (True, True)])
def test_every_chart_is_well_formed_and_speaks(kind: str, x_log: bool, y_log: bool) -> None:
    series = tuple(Series.of(name, [0, 1], [2.0, 30.0]) for name in ("one", "two"))
    more = {"series": series, "categories": ("a", "b")} if kind == "bars" else {}
    root = ET.fromstring(draw(chart(kind, x_log=x_log, y_log=y_log, lines=(1.5,), **more)))
    assert root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == "A < B"
    assert root.findtext(f"{SVG}desc") == "It rises & falls."
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"x", "y", "one", "two"} <= set(texts)
    width, height = (float(v) for v in root.get("viewBox", "").split()[2:])
    for element in root.iter():
        for name in ("x", "cx", "x1", "x2"):
            assert 0 <= float(element.get(name, 0)) <= width
        for name in ("y", "cy", "y1", "y2"):
            assert 0 <= float(element.get(name, 0)) <= height


def test_points_lie_where_their_numbers_say() -> None:
    root = ET.fromstring(draw(chart("scatter", series=(Series.of("s", [0, 5, 10], [0, 5, 10]),))))
    circles = [(float(c.get("cx", 0)), float(c.get("cy", 0))) for c in root.iter(f"{SVG}circle")]
    (x0, y0), (x1, y1), (x2, y2) = circles
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.2)
    assert y0 > y2


def test_undefined_and_impossible_points_are_left_out() -> None:
    series = Series.of("s", [0, 1, 2, 3], [1, math.nan, math.inf, 4])
    root = ET.fromstring(draw(chart("scatter", series=(series,), x_log=True)))
    assert len(list(root.iter(f"{SVG}circle"))) == 1


def test_empty_and_flat_charts_can_be_drawn() -> None:
    for series in (
        (),
        (Series.of("s", [], []),),
        (Series.of("s", [3], [3]),),
        (Series.of("s", [1, 2], [5, 5]),),
    ):
        for log in (False, True):
            ET.fromstring(draw(chart(series=series, x_log=log, y_log=log)))


def test_a_cloud_is_thinned_for_the_eye_alone() -> None:
    cloud = chart("scatter", series=(Series.of("s", range(1, 9001), range(9000)),))
    assert len(list(ET.fromstring(draw(cloud)).iter(f"{SVG}circle"))) <= MOST_POINTS


def test_a_stand_alone_picture_brings_its_style() -> None:
    root = ET.fromstring(picture(chart()))
    assert "stroke" in (root.findtext(f"{SVG}style") or "")


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (12000, "12,000"), (0.25, "0.25"), (1e-5, "1e-05"), (-1234.5, "-1,234")]
)
def test_numbers_are_written_short(value: float, text: str) -> None:
    assert tick_text(value) == text


def test_series_and_tables_must_fit() -> None:
    with pytest.raises(ValueError, match="one a category"):
        chart("bars", categories=("a", "b"))
    with pytest.raises(ValueError, match="2 x values but 1"):
        Series("s", (1, 2), (1,))
    with pytest.raises(ValueError, match="a row of 1 cells under 2"):
        Table(title="t", columns=("a", "b"), rows=((1,),))


class _Links(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.outside += [
            v or "" for k, v in attributes if k in ("src", "href") and not (v or "").startswith("#")
        ]


def test_a_study_page_is_whole_escaped_and_asks_for_nothing() -> None:
    document = study_page(study())
    links = _Links()
    links.feed(document)
    assert links.outside == []
    assert "default-src 'none'" in document
    assert "script-src 'none'" in document
    assert "<b>" not in document
    assert "Title &lt;x&gt;" in document
    for piece in ("Second.", "12,345", "–", "Fine print", "color-scheme"):
        assert piece in document
    data = re.search(r'id="data">(.*?)</script>', document, re.S)
    assert data is not None
    assert json.loads(data.group(1)) == json.loads(json.dumps(study().to_dict()))


def test_embedded_data_cannot_break_out() -> None:
    hostile = {"a": "</script><script>alert(1)</script>", "b": "\u2028<!--"}
    text = embed(hostile)
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text) == hostile
    with pytest.raises(ValueError, match="JSON"):
        embed({"a": math.nan})


def test_a_script_runs_only_by_its_hash() -> None:
    document = page("t", "<p>b</p>", script="let a = 1;")
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/=]{44}'", document)


def test_numbers_stand_to_the_right() -> None:
    made = table_html(Table(title="t", columns=("a", "b"), rows=(("x", 1),)))
    assert '<td class="number">1</td>' in made
    assert '<th scope="col">a</th>' in made
    assert "class=number" in made.replace('"', "")


def test_a_page_appears_whole(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "p.html"
    write(path, "ä")
    assert path.read_bytes() == "ä".encode()
    assert [p.name for p in tmp_path.iterdir()] == ["p.html"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("name", "why"), [("", "a folder"), ("nodir/p.html", "no folder")])
def test_a_page_that_cannot_be_written_leaves_nothing_behind(tmp_path, name, why) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "reports"
    folder.mkdir()
    with pytest.raises(InputError, match=why) as failed:
        write(folder / name, "a report about somebody")
    assert str(failed.value).startswith(f"{folder / name}:")
    assert ".tmp" not in str(failed.value)
    assert [path.name for path in tmp_path.rglob("*")] == ["reports"]
