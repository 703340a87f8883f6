"""WhatsApp's "export chat": lines of date, name and text, as phones of many countries write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import LEFT, SKIP, Export, File, Part, Row
from incrowd.crowd.readers.source import decoded

_COLUMNS = {
    "user": "the name before the colon",
    "time": "the date at the start of the line",
    "text": "the rest",
}
_MARKS = str.maketrans("", "", "\u200e\u200f\u202a\u202c\ufeff")
_DAY, _CLOCK = r"\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}\.?", r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?"
_LINE = re.compile(
    rf"\[?({_DAY},? +{_CLOCK}(?:[ \u202f\u00a0]?[apAP]\.? ?[mM]\.?)?)(?:\] | - )(.*)", re.DOTALL
)
_SAID = re.compile(r"([^:]{1,100}): (.*)", re.DOTALL)
_NOTHING = re.compile(
    r"<[^<>]{3,40}>|(?:image|video|audio|sticker|gif|document|bild) (?:omitted|weggelassen)"
    r"|(?:this message was|you) deleted(?: this message)?\.?|null",
    re.IGNORECASE,
)


def _is_chat(head: bytes) -> bool:
    lines = [line.translate(_MARKS) for line in decoded(head)[0].splitlines()[:20] if line.strip()]
    return (
        bool(lines)
        and _LINE.match(lines[0]) is not None
        and sum(_LINE.match(line) is not None for line in lines) * 3 >= len(lines)
    )


def _messages(file: File) -> Iterator[object]:
    """Yield (date, rest) of each message; a line without a date goes on with the one before."""
    open_message: list[str] = []
    date = ""
    for raw in file.text():
        line = raw.translate(_MARKS)
        start = _LINE.match(line)
        if start is None:
            if open_message and sum(map(len, open_message)) < file.options.max_line_bytes:
                open_message.append(line)
            continue
        if open_message:
            yield date, "\n".join(open_message)
        date, open_message = start[1], [start[2]]
    if open_message:
        yield date, "\n".join(open_message)


def _message(record: tuple[str, str], owner: str) -> Row | object:
    date, rest = record
    said = _SAID.fullmatch(rest)
    if said is None:
        return SKIP  # somebody joined, the code changed, ...
    if said[1].strip() != owner:
        return LEFT
    text = said[2].strip()
    return SKIP if not text or _NOTHING.fullmatch(text) else Row(text=text, time=_spelt(date))


def _spelt(date: str) -> str:
    """Write the time with colons; some phones write dots."""
    day, _, clock = date.replace(",", " ").partition(" ")
    return f"{day.rstrip('.')} {clock.strip().replace('.', ':', 2) if ':' not in clock else clock.strip()}"


WHATSAPP = Export(
    name="whatsapp",
    about=About("WhatsApp chat", whose="chat", columns=_COLUMNS, left="other people's messages, pictures"),
    parts=(Part(knows=_is_chat, records=_messages, row=_message, files=r"chat[^/]*\.txt$"),),
    community="whatsapp",
)
