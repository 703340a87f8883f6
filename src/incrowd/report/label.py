"""The privacy label: the picture of the European energy label, told in words (paper 002, section 5).

One bar per group, best on top; the worst is red and longest. The scale is closed: each bar is some people's.
Letters, words and lengths say the same as the colours, so that the label reads in black and white and aloud.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from incrowd.measures.microdata.client import MARGIN, WANTED_CROWD, bar_of, bar_words, shown_bar, split_upper

if TYPE_CHECKING:
    from rich.text import Text

    from incrowd.measures.microdata.client import Score

COLOURS = ("#00682f", "#3a9d23", "#a8c916", "#ffe000", "#f9a602", "#e85d0c", "#c1121f")
"""Dark green to red; picked evenly for fewer bars."""
MOST_BARS = 12
WIDTH, BAR, GAP, TOP = 460, 34, 8, 56
SHORTEST, LONGEST = 150, 320


@dataclass(frozen=True)
class Label:
    """A label: bars best first, and where you are."""

    title: str
    bars: tuple[str, ...]
    you: int | None
    """The number of your bar, 0 = best; None: cannot tell."""
    caption: str = ""
    by_paper: int | None = None
    """The bar of the paper's score, where it is another than yours."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.bars) <= MOST_BARS:
            raise ValueError(f"a label has 1 to {MOST_BARS} bars, got {len(self.bars)}")
        if self.you is not None and not 0 <= self.you < len(self.bars):
            raise ValueError(f"there is no bar number {self.you}")

    @property
    def verdict(self) -> str:
        """Your group in words."""
        return "cannot tell" if self.you is None else self.bars[self.you]

    def describe(self) -> str:
        """Say what the picture shows, for a screen reader."""
        scale = ", ".join(f"{_letter(k)} {words}" for k, words in enumerate(self.bars))
        if self.you is None:
            return f"It cannot be told where you are on the scale from best to worst: {scale}."
        place = f"{_letter(self.you)} {self.bars[self.you]}, {self.you + 1} of {len(self.bars)} from the best"
        return f"You are at {place}. The scale from best to worst: {scale}."

    def svg(self) -> str:
        """Draw the label as a stand-alone SVG picture."""
        count = len(self.bars)
        height = TOP + count * (BAR + GAP) + (30 if self.caption else 10)
        bars = "".join(_bar(k, words, count) for k, words in enumerate(self.bars))
        arrow = "" if self.you is None else _arrow(self.you)
        caption = _text(20, height - 14, self.caption, 13, "#333") if self.caption else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" font-family="system-ui, sans-serif">'
            f"<title>{escape(self.title)}: {escape(self.verdict)}</title>"
            f"<desc>{escape(self.describe())}</desc>"
            f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#fff" stroke="#bbb"/>'
            f"{_text(20, 34, self.title, 19, '#111', bold=True)}{bars}{arrow}{caption}</svg>\n"
        )

    def terminal(self) -> Text:
        """Draw the label for a terminal, with colour where there is any."""
        from rich.text import Text

        text = Text(f"{self.title}\n", style="bold")
        widest = max(len(words) for words in self.bars) + 4
        for k, words in enumerate(self.bars):
            length = widest + 2 * k
            fill = COLOURS[_colour(k, len(self.bars))]
            text.append(f" {_letter(k)} {words} ".ljust(length) + ">", style=f"{ink_on(fill)} on {fill}")
            text.append("  ◀ you\n" if k == self.you else "\n", style="bold")
        return text.append(self.caption)


def paper_label(score: Score, title: str = "Hiding in the crowd") -> Label:
    """Return the label of a client's score as in the paper: the upper groups halved as in figure 8.

    It says how somebody hides compared with others. An undefined score (NaN) cannot be told.
    """
    bars = split_upper([float(border) for border in score.statistics.borders])
    caption = f"by the statistics of {score.statistics.date}, {score.statistics.users:,} people"
    you = None if math.isnan(score.score) else bar_of(score.score, bars)
    return Label(title, bar_words(len(bars) + 1), you, caption)


def microdata_label(score: Score, title: str = "Hiding in the crowd") -> Label:
    """Return the label a person is shown: the paper's, which calls nobody safe whose crowd may be below the target."""
    label = paper_label(score, title)
    if label.you is None:
        return label
    you = shown_bar(label.you, label.bars, 1 + score.others)
    if you == label.you:
        return label
    expected = f"fewer than {MARGIN * WANTED_CROWD} people are expected to fit"
    caption = f"{expected}; the score alone says “{label.verdict}”"
    return replace(label, you=you, caption=caption, by_paper=label.you)


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _colour(number: int, count: int) -> int:
    return 3 if count == 1 else round(number * (len(COLOURS) - 1) / (count - 1))


def ink_on(fill: str) -> str:
    """White or black, whichever is easier to read on a colour."""
    red, green, blue = (int(fill[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (luminance + 0.05) >= (luminance + 0.05) / 0.05 else "#000000"


def _bar(number: int, words: str, count: int) -> str:
    fill = COLOURS[_colour(number, count)]
    length = LONGEST if count == 1 else SHORTEST + (LONGEST - SHORTEST) * number / (count - 1)
    y, point = TOP + number * (BAR + GAP), BAR / 2
    outline = f"M20 {y}h{length:.0f}l{point:.0f} {point:.0f}l{-point:.0f} {point:.0f}h{-length:.0f}z"
    ink = ink_on(fill)
    letter = _text(32, y + 24, _letter(number), 19, ink, bold=True)
    return f'<path d="{outline}" fill="{fill}" stroke="#111"/>{letter}{_text(60, y + 23, words, 16, ink)}'


def _arrow(number: int) -> str:
    y = TOP + number * (BAR + GAP)
    outline = f"M{WIDTH - 92} {y + BAR / 2:.0f}l18 {-BAR / 2:.0f}h60v{BAR}h-60z"
    return f'<path d="{outline}" fill="#111"/>{_text(WIDTH - 66, y + 23, "you", 17, "#fff", bold=True)}'


def _text(x: float, y: float, words: str, size: int, fill: str, *, bold: bool = False) -> str:
    weight = ' font-weight="700"' if bold else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{fill}"{weight}>{escape(words)}</text>'
