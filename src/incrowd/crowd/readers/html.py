"""The words of an HTML text, without its tags, and without what its author only quoted."""

from __future__ import annotations

import html
import re

# Bounded by the next angle bracket, so that no input makes it look far ahead again and again.
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>|<![^<>]*>")
_BLOCKS = "p br div li ul ol tr table h1 h2 h3 h4 h5 h6 hr pre blockquote"
LINE_BREAKING = frozenset(_BLOCKS.split())
LEFT_OUT = frozenset({"blockquote", "pre", "script", "style", "head"})
"""With all they hold: quotations are someone else's words, code is nobody's."""


def html_text(markup: str) -> str:
    """Return the text a reader of the page sees, one line per paragraph.

    >>> html_text("<p>Hello <b>there</b> &amp; all</p><blockquote>quoted</blockquote>")
    'Hello there & all'
    """
    if "<" not in markup:
        return html.unescape(markup).strip()
    parts: list[str] = []
    inside: str | None = None
    depth = 0
    end = 0
    for tag in _TAG.finditer(markup):
        name = (tag[2] or "").lower()
        if inside is None:
            parts.append(markup[end : tag.start()])
            parts.append("\n" if name in LINE_BREAKING else "")
            if name in LEFT_OUT and not tag[1]:
                inside, depth = name, 1
        elif name == inside:
            depth += -1 if tag[1] else 1
            inside = inside if depth else None
        end = tag.end()
    if inside is None:
        parts.append(markup[end:])
    lines = (line.strip() for line in html.unescape("".join(parts)).split("\n"))
    return "\n".join(line for line in lines if line)
