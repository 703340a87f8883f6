"""Figures as numbers first, then drawn: charts as plain SVG, and a result as a small page for notebooks.

No script, no font, no request. Series differ by colour and by shape, so that a chart reads in black and white, too;
every chart carries its title and sentence for screen readers. In a page colours come from its style sheet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from incrowd.wording import say_number

Kind = Literal["lines", "scatter", "bars"]


@dataclass(frozen=True)
class Series:
    """One line, one cloud of points, or one set of bars."""

    name: str
    x: tuple[float, ...]
    """For bars: 0, 1, 2, ... as the chart's categories."""
    y: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"series '{self.name}': {len(self.x)} x values but {len(self.y)} y values")

    @classmethod
    def of(cls, name: str, x: Iterable[float], y: Iterable[float]) -> Series:
        """Make a series from any numbers (lists, arrays, columns)."""
        return cls(name, tuple(float(v) for v in x), tuple(float(v) for v in y))


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A figure as numbers."""

    kind: Kind
    title: str
    sentence: str
    """What a lay person should read off it."""
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_log: bool = False
    y_log: bool = False
    categories: tuple[str, ...] = ()
    """Names of the bars."""
    lines: tuple[float, ...] = ()
    """Dashed horizontal lines, e.g. borders between groups."""

    def __post_init__(self) -> None:
        if self.kind != "bars":
            return
        places = {float(k) for k in range(len(self.categories))}
        if any(not places.issuperset(one.x) for one in self.series):
            raise ValueError(
                f"chart '{self.title}': bars stand at 0 to {len(self.categories) - 1}, one a category"
            )


WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 78, 20, 18, 58
MOST_POINTS = 1500
"""Points drawn a cloud; more would only be ink. The numbers in the page are complete."""
DASHES = ("", "6 3", "2 3", "9 3 2 3", "1 4")
SHAPES = 5
COLOURS = 8
_PALETTE = ("#1d4ed8", "#b45309", "#047857", "#be185d", "#6d28d9", "#0e7490", "#a16207", "#4b5563")
_STYLE = " ".join(
    f".chart {rule}"
    for rule in (
        ".grid{stroke:#d7d7de}",
        ".axis{stroke:#55555e}",
        ".rule{stroke:#1b1b1f;stroke-dasharray:5 4}",
        ".tick{fill:#55555e}",
        *(f".s{k}{{fill:{colour};stroke:{colour}}}" for k, colour in enumerate(_PALETTE)),
        ".line{fill:none;stroke-width:2}",
        ".mark{fill-opacity:.75}",
        ".mark:not(.open){stroke:none}",
        ".open{fill:none;stroke-width:1.6}",
        ".bar{stroke:none}",
    )
)
"""The page's own style sheet (page.css) says the same, light and dark. Charts only: a notebook shares it."""


@dataclass(frozen=True)
class _Axis:
    """Turns values into places along one side of the chart."""

    low: float
    high: float
    start: float
    stop: float
    log: bool

    def place(self, value: float) -> float:
        low, high, at = (
            (math.log10(v) for v in (self.low, self.high, value))
            if self.log
            else (self.low, self.high, value)
        )
        return self.start + (at - low) / (high - low) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            wide = math.log10(self.high / self.low) > 2.5
            ticks = [m * 10.0**power for power in powers for m in ((1,) if wide else (1, 2, 5))]
            return [tick for tick in ticks if self.low * 0.999 <= tick <= self.high * 1.001]
        step = _nice_step(self.high - self.low)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def picture(chart: Chart) -> str:
    """Return the chart as a stand-alone SVG file, with its own (light) style."""
    return draw(chart).replace(
        "<title>",
        f"<style>svg.chart{{background:#fff;font:13px system-ui,sans-serif}} {_STYLE}</style><title>",
        1,
    )


def draw(chart: Chart) -> str:
    """Return the chart as an SVG element for a page that brings the style sheet; see :func:`picture`."""
    x, y = _axes(chart)
    painters: dict[str, Callable[[Chart, _Axis, _Axis], str]] = {
        "lines": _lines,
        "scatter": _scatter,
        "bars": _bars,
    }
    body = _grid(chart, x, y) + painters[chart.kind](chart, x, y) + _rules(chart, x, y)
    legend, extra = _legend(chart)
    return (
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT + extra}" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(chart.title)}</title><desc>{escape(chart.sentence)}</desc>{body}{legend}</svg>"
    )


def _usable(chart: Chart, one: Series) -> list[tuple[float, float]]:
    """Points that can be drawn: finite, and positive on a logarithmic axis."""
    return [
        (a, b)
        for a, b in zip(one.x, one.y, strict=True)
        if math.isfinite(a) and math.isfinite(b) and (a > 0 or not chart.x_log) and (b > 0 or not chart.y_log)
    ]


def _axes(chart: Chart) -> tuple[_Axis, _Axis]:
    points = [point for one in chart.series for point in _usable(chart, one)]
    ys = [b for _, b in points] + [line for line in chart.lines if line > 0 or not chart.y_log]
    if chart.kind == "bars":
        x_low, x_high = -0.5, max(len(chart.categories), 1) - 0.5
        ys = [0.0, *ys] if not chart.y_log else ys
    else:
        x_low, x_high = _span([a for a, _ in points], chart.x_log)
    y_low, y_high = _span(ys, chart.y_log)
    x = _Axis(x_low, x_high, LEFT, WIDTH - RIGHT, chart.x_log and chart.kind != "bars")
    return x, _Axis(y_low, y_high, HEIGHT - BOTTOM, TOP, chart.y_log)


def _span(values: list[float], log: bool) -> tuple[float, float]:
    """Return a range with some air around the values."""
    if not values:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(values), max(values)
    if log:
        return low / 1.15, high * 1.15 if high > low else high * 10
    air = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
    return (0.0 if 0 <= low <= 3 * air else low - air), high + air


def _nice_step(span: float) -> float:
    rough = span / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return float(next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * 0.999))


def _grid(chart: Chart, x: _Axis, y: _Axis) -> str:
    """Draw the axes, their ticks and their names."""
    floor, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{floor}" y2="{floor}"/>']
    for tick in y.ticks():
        at = y.place(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(_text(LEFT - 8, at + 4, tick_text(tick), "tick", "end"))
    if chart.kind == "bars":
        names = [(float(place), name) for place, name in enumerate(chart.categories)]
    else:
        names = [(tick, tick_text(tick)) for tick in x.ticks()]
    for value, name in names:
        at = x.place(value)
        parts.append(f'<line class="axis" x1="{at:.1f}" x2="{at:.1f}" y1="{floor}" y2="{floor + 4}"/>')
        parts.append(_text(at, floor + 18, name, "tick", "middle"))
    parts.append(_text((LEFT + right) / 2, HEIGHT - 14, chart.x_label, "name", "middle"))
    turned = f"translate(18 {(TOP + floor) / 2}) rotate(-90)"
    parts.append(
        f'<text class="name" transform="{turned}" text-anchor="middle">{escape(chart.y_label)}</text>'
    )
    return "".join(parts)


def _text(x: float, y: float, words: str, kind: str, anchor: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _lines(chart: Chart, x: _Axis, y: _Axis) -> str:
    parts = []
    for number, one in enumerate(chart.series):
        points = _usable(chart, one)
        path = " ".join(f"{x.place(a):.1f},{y.place(b):.1f}" for a, b in points)
        dash = f' stroke-dasharray="{DASHES[number % len(DASHES)]}"' if DASHES[number % len(DASHES)] else ""
        parts.append(f'<polyline class="line s{number % COLOURS}"{dash} points="{path}"/>')
        if len(points) <= 40:
            parts += [_marker(number, x.place(a), y.place(b)) for a, b in points]
    return "".join(parts)


def _scatter(chart: Chart, x: _Axis, y: _Axis) -> str:
    parts = []
    for number, one in enumerate(chart.series):
        points = _usable(chart, one)
        every = max(1, math.ceil(len(points) / MOST_POINTS))
        parts += [_marker(number, x.place(a), y.place(b)) for a, b in points[::every]]
    return "".join(parts)


def _bars(chart: Chart, x: _Axis, y: _Axis) -> str:
    parts, count = [], max(len(chart.series), 1)
    slot = (x.place(1) - x.place(0)) * 0.8 / count
    floor = y.place(y.low if y.log else max(0.0, y.low))
    for number, one in enumerate(chart.series):
        for a, b in _usable(chart, one):
            left = x.place(a) + slot * (number - count / 2)
            top = y.place(b)
            height = max(abs(floor - top), 0.5)
            parts.append(
                f'<rect class="bar s{number % COLOURS}" x="{left:.1f}" y="{min(top, floor):.1f}" '
                f'width="{slot * 0.94:.1f}" height="{height:.1f}"><title>{tick_text(b)}</title></rect>'
            )
    return "".join(parts)


def _rules(chart: Chart, x: _Axis, y: _Axis) -> str:
    places = [y.place(line) for line in chart.lines if line > 0 or not y.log]
    return "".join(
        f'<line class="rule" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>' for at in places
    )


def _marker(number: int, x: float, y: float) -> str:
    """Draw a point; its shape tells the series apart without colour."""
    shape = ("circle", "square", "triangle", "diamond", "cross")[number % SHAPES]
    kind = f"mark s{number % COLOURS}" + (" open" if shape == "cross" else "")
    if shape == "circle":
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>'
    outlines = {
        "square": "m-3 -3h6v6h-6z",
        "triangle": "m0 -4l4 7h-8z",
        "diamond": "m0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z",
        "cross": "m-3 -3l6 6m0 -6l-6 6",
    }
    return f'<path class="{kind}" d="M{x:.1f} {y:.1f}{outlines[shape]}"/>'


def _legend(chart: Chart) -> tuple[str, int]:
    """Return the legend and the height it needs; one series needs none."""
    if len(chart.series) < 2:
        return "", 0
    parts, x, y = [], float(LEFT), HEIGHT + 14.0
    for number, one in enumerate(chart.series):
        width = 34 + 7.2 * len(one.name)
        if x + width > WIDTH - RIGHT and x > LEFT:
            x, y = float(LEFT), y + 20
        parts.append(_marker(number, x + 6, y - 4))
        parts.append(f'<text class="tick" x="{x + 16:.1f}" y="{y:.1f}">{escape(one.name)}</text>')
        x += width
    return "".join(parts), int(y - HEIGHT + 12)


def tick_text(value: float) -> str:
    """Write a number short: 12,000 or 0.25."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.0e}"


# A result at a glance: its amounts as bars, its rows as a table.

BARS_WIDTH, ROW, NAMES, AMOUNTS = 640, 24, 250, 70
MOST_BARS = 12
MOST_ROWS = 40
COLOUR, WEAK = "#1d4ed8", "#b45309"
_SVG = 'xmlns="http://www.w3.org/2000/svg" role="img" font-family="system-ui, sans-serif" font-size="13"'


def bar_chart(title: str, bars: Sequence[tuple[str, float]]) -> str:
    """Draw amounts as horizontal bars, the first on top; negative ones in another colour, undefined ones empty."""
    shown = bars[:MOST_BARS]
    largest = max((abs(value) for _, value in shown if math.isfinite(value)), default=0.0) or 1.0
    height = 34 + ROW * max(len(shown), 1)
    parts = [f'<text x="8" y="20" font-weight="700">{escape(title)}</text>']
    for number, (name, value) in enumerate(shown):
        y = 30 + ROW * number
        length = abs(value) / largest * (BARS_WIDTH - NAMES - AMOUNTS) if math.isfinite(value) else 0.0
        parts.append(f'<text x="{NAMES - 8}" y="{y + 15}" text-anchor="end">{escape(_short(name))}</text>')
        fill = COLOUR if value >= 0 else WEAK
        parts.append(f'<rect x="{NAMES}" y="{y + 3}" width="{length:.1f}" height="{ROW - 8}" fill="{fill}"/>')
        parts.append(f'<text x="{NAMES + length + 6:.1f}" y="{y + 15}">{_number(value)}</text>')
    told = "; ".join(f"{name}: {_number(value)}" for name, value in shown) or "nothing to draw"
    return _bars_picture(height, title, told, parts)


def _bars_picture(height: float, title: str, told: str, parts: Sequence[str]) -> str:
    return (
        f'<svg {_SVG} viewBox="0 0 {BARS_WIDTH} {height:g}" width="{BARS_WIDTH}" height="{height:g}">'
        f"<title>{escape(title)}</title><desc>{escape(told)}</desc>"
        f'<rect width="{BARS_WIDTH}" height="{height:g}" fill="#fff"/>{"".join(parts)}</svg>'
    )


# A crowd as dots: you, those who could be you, everybody else.

MOST_DOTS = 200
COLUMNS = 20
STEP, RADIUS = 14, 4.6
DOTS = {"you": WEAK, "fits": "#5b9bb0", "other": "#d3dbe2"}


@dataclass(frozen=True)
class Dot:
    """One of the dots of a crowd picture."""

    x: float
    y: float
    kind: str
    """you, fits (could be you) or other."""


@dataclass(frozen=True)
class CrowdPicture:
    """A crowd as dots: you, those who would still fit, everybody else."""

    dots: tuple[Dot, ...]
    sentence: str
    fits: float
    total: float

    radius = RADIUS

    @property
    def width(self) -> int:
        """Of the drawing."""
        return min(len(self.dots), COLUMNS) * STEP

    @property
    def height(self) -> int:
        """Of the drawing."""
        return math.ceil(len(self.dots) / COLUMNS) * STEP

    def svg(self, title: str) -> str:
        """Draw it as a picture of its own, with its title above; the sentence is read out, and shown beside it."""
        wide = f'viewBox="-8 -28 {self.width + 16} {self.height + 36}" width="{2 * self.width + 32}"'
        circles = "".join(_circle(dot) for dot in self.dots)
        return (
            f"<svg {_SVG} {wide}><title>{escape(title)}</title><desc>{escape(self.sentence)}</desc>"
            f'<text x="0" y="-10">{escape(title)}</text>{circles}</svg>'
        )


def _circle(dot: Dot) -> str:
    place = f'cx="{dot.x:g}" cy="{dot.y:g}"'
    ring = (
        f'<circle {place} r="6.6" fill="none" stroke="{WEAK}" stroke-width="1.4"/>'
        if dot.kind == "you"
        else ""
    )
    return f'{ring}<circle {place} r="{RADIUS}" fill="{DOTS[dot.kind]}"/>'


def crowd_picture(fits: float, total: float, adversary: str) -> CrowdPicture:
    """Return `fits` of `total` people as dots; large crowds are scaled, but for you, who are always one dot.

    Whoever else could be you has at least one dot: a picture without any would say that nobody could.
    """
    count = int(min(total, MOST_DOTS))
    each = total / count
    alone = round(fits, 1) <= 1
    others_shown = 0 if alone else max(1, round((fits - 1) / each))
    shown = min(count, 1 + others_shown)
    order = _scattered(count)
    kinds = {place: "you" if k == 0 else "fits" for k, place in enumerate(order[:shown])}
    dots = tuple(
        Dot(
            (place % COLUMNS) * STEP + STEP / 2,
            (place // COLUMNS) * STEP + STEP / 2,
            kinds.get(place, "other"),
        )
        for place in range(count)
    )
    few = "" if alone or fits - 1 >= each / 2 else ", the one that could be you for fewer"
    scale = "" if each == 1 else f" One dot stands for about {say_number(round(each))} people{few}."
    others = (
        "it is as if nobody else fitted what they see"
        if alone
        else f"it is as if {say_number(round(fits, 1))} of {say_number(round(total))} people, you included, fitted "
        "what they see"
    )
    return CrowdPicture(dots, f"For {adversary}, {others}.{scale}", fits, total)


def _scattered(count: int) -> list[int]:
    """Return the places of a picture in an even-looking, fixed order that starts near the middle."""
    step = next(s for s in range(max(1, int(count * 0.382)), 2 * count + 2) if math.gcd(s, count) == 1)
    rows = math.ceil(count / COLUMNS)
    middle = min(count - 1, rows // 2 * COLUMNS + min(count, COLUMNS) // 2)
    return [(middle + k * step) % count for k in range(count)]


# A result as a small page.


def small_page(title: str, sentence: str, rows: Sequence[Mapping[str, object]], picture: str = "") -> str:
    """Return a sentence, a picture and a table as a piece of HTML; long tables are cut, and say so."""
    columns = list(dict.fromkeys(name for row in rows[:MOST_ROWS] for name in row))
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_cell(row.get(name)))}</td>" for name in columns) + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    more = f"<p>… and {len(rows) - MOST_ROWS:,} more rows.</p>" if len(rows) > MOST_ROWS else ""
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}" if rows else ""
    return f'<section class="incrowd"><h3>{escape(title)}</h3><p>{escape(sentence)}</p>{picture}{table}</section>'


def _cell(value: object) -> str:
    if value is None:
        return ""
    return _number(value) if isinstance(value, float) else str(value)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return "undefined"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def _short(name: str) -> str:
    return name if len(name) <= 36 else name[:35] + "…"
