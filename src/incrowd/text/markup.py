"""Step 2 of the text pipeline: take the Markdown out of a post, keep the words its author wrote.

Code and quotes are nobody's own words and go entirely. Most other markup (emphasis, headings, bullets,
superscript, spoilers, strike-through) consists of punctuation, which step 5 deletes; here goes only what
would leave a wrong word behind. Every pattern runs in linear time.
"""

from __future__ import annotations

import html
import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`~]*+$")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)\s*+\S")
_LIST_ITEM = re.compile(r"[ \t]*+(?:[*+-]|[0-9]{1,9}[.)])[ \t]")
_LIST_NUMBER = re.compile(r"[ \t]*+[0-9]{1,9}[.)](?=[ \t])")
_QUOTE = re.compile(r" {0,3}>(?!!)")  # ">!" opens a spoiler, which is the author's own text
_CELL_RULE = r"[ \t]*+:?-++:?[ \t]*+"
_TABLE_RULE = re.compile(rf"[ \t]*+(?:\|{_CELL_RULE}|{_CELL_RULE}\|{_CELL_RULE})(?:\|{_CELL_RULE})*+\|?\s*+$")
_BACKTICKS = re.compile(r"(?<!\\)`++")
_LINK_TARGET = re.compile(
    r"\]\([ ]*+<?([^\s()<>]*+(?:\([^\s()<>]*+\)[^\s()<>]*+)*+)>?(?=[ ]*+\)|[ ]++[\"'(])"
)
_ABSOLUTE = re.compile(r"(?:https?|ftp)://|www\.")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def without_entities(text: str) -> str:
    """Decode HTML entities, twice: once for the transport, once for those the author typed.

    >>> without_entities("&amp;gt; R&amp;amp;D")
    '> R&D'
    """
    return html.unescape(html.unescape(text)) if "&" in text else text


def without_markup(text: str) -> str:
    """Return the author's own words of a Markdown post.

    >>> without_markup("> you said\\nsee [my *page*](https://example.org/a) `x = 1`")
    '\\nsee [my *page*](https://example.org/a)  '
    """
    lines = _own_lines(text.split("\n"))
    if any(map(_TABLE_RULE.match, lines)):
        lines = ["" if _TABLE_RULE.match(line) else line.replace("|", " ") for line in lines]
    return _ESCAPED.sub(r"\1", "\n".join(map(_own_words, lines)))


def _own_lines(lines: list[str]) -> list[str]:
    """Blank out code blocks (fenced, or indented after a blank line) and quoted lines."""
    kept = []
    fence = ""
    after_blank = True
    for line in lines:
        opening = _FENCE.match(line)
        if fence:
            is_own = False
            if opening and opening[1].startswith(fence) and line.strip() == opening[1]:
                fence = ""
        elif opening:
            is_own, fence = False, opening[1]
        elif after_blank and _INDENTED.match(line) and not _LIST_ITEM.match(line):
            is_own = False
        else:
            is_own = not _QUOTE.match(line)
            after_blank = not line.strip()
        kept.append(line if is_own else "")
    return kept


def _own_words(line: str) -> str:
    """Take inline code, list numbers and the syntax of links out of one line."""
    line = _LIST_NUMBER.sub("", line, count=1) if _LIST_NUMBER.match(line) else line
    line = _without_inline_code(line) if "`" in line else line
    return _LINK_TARGET.sub(_target_words, line) if "](" in line else line


def _target_words(target: re.Match[str]) -> str:
    """Leave a link's address if it names a host (step 4 finds it); one within the site says nothing."""
    return target[0] if _ABSOLUTE.match(target[1]) else "] "


def _without_inline_code(line: str) -> str:
    """Delete what stands between a run of backticks and the next run of the same length."""
    runs = [run.span() for run in _BACKTICKS.finditer(line)]
    closing: list[int | None] = [None] * len(runs)
    next_of_length: dict[int, int] = {}
    for i in reversed(range(len(runs))):
        length = runs[i][1] - runs[i][0]
        closing[i] = next_of_length.get(length)
        next_of_length[length] = i
    kept, at, i = [], 0, 0
    while i < len(runs):
        end = closing[i]
        if end is not None:
            kept.append(line[at : runs[i][0]])
            at, i = runs[end][1], end
        i += 1
    return " ".join([*kept, line[at:]])
