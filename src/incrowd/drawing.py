"""A result as a small picture or a small page, for notebooks: plain SVG and HTML, no script, no request."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, ROW, LEFT, RIGHT = 640, 24, 250, 70
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
        length = abs(value) / largest * (WIDTH - LEFT - RIGHT) if math.isfinite(value) else 0.0
        parts.append(f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(_short(name))}</text>')
        fill = COLOUR if value >= 0 else WEAK
        parts.append(f'<rect x="{LEFT}" y="{y + 3}" width="{length:.1f}" height="{ROW - 8}" fill="{fill}"/>')
        parts.append(f'<text x="{LEFT + length + 6:.1f}" y="{y + 15}">{_number(value)}</text>')
    told = "; ".join(f"{name}: {_number(value)}" for name, value in shown) or "nothing to draw"
    return _picture(height, title, told, parts)


def line_chart(title: str, x: Sequence[float], y: Sequence[float], x_name: str, y_name: str) -> str:
    """Draw one quantity over another as a line."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if math.isfinite(a) and math.isfinite(b)]
    low, high = (min((a for a, _ in points), default=0.0), max((a for a, _ in points), default=1.0))
    top = max((b for _, b in points), default=1.0) or 1.0
    height, left, floor = 320, 70, 270
    places = " ".join(
        f"{left + (a - low) / ((high - low) or 1.0) * (WIDTH - left - 20):.1f},{floor - b / top * (floor - 40):.1f}"
        for a, b in points
    )
    parts = [
        f'<text x="8" y="20" font-weight="700">{escape(title)}</text>',
        f'<path d="M{left} 40V{floor}H{WIDTH - 20}" fill="none" stroke="#55555e"/>',
        f'<polyline points="{places}" fill="none" stroke="{COLOUR}" stroke-width="2"/>',
        f'<text x="{left - 6}" y="46" text-anchor="end">{_number(top)}</text>',
        f'<text x="{left - 6}" y="{floor}" text-anchor="end">0</text>',
        f'<text x="{left}" y="{floor + 18}">{_number(low)}</text>',
        f'<text x="{WIDTH - 20}" y="{floor + 18}" text-anchor="end">{_number(high)}</text>',
        f'<text x="{WIDTH / 2}" y="{height - 10}" text-anchor="middle">{escape(x_name)}</text>',
        f'<text transform="translate(16 {floor / 2}) rotate(-90)" text-anchor="middle">{escape(y_name)}</text>',
    ]
    return _picture(height, title, f"{y_name} over {x_name}, {len(points)} points", parts)


def _picture(height: float, title: str, told: str, parts: Sequence[str]) -> str:
    return (
        f'<svg {_SVG} viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}" height="{height:g}">'
        f"<title>{escape(title)}</title><desc>{escape(told)}</desc>"
        f'<rect width="{WIDTH}" height="{height:g}" fill="#fff"/>{"".join(parts)}</svg>'
    )


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
