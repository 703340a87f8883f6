"""WhatsApp's "export chat": lines of date, name and text, as phones of many countries write them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import LEFT, SKIP, Export, ExportPart, File, Row
from incrowd.crowd.readers.source import decoded

_COLUMNS = {
    "user": "the name before the colon",
    "time": "the date at the start of the line",
    "text": "the rest",
}
_PHONE = "\0"
"""Stands where the phone itself speaks ("image omitted", in any language): iPhones put a mark before that."""
_TIDY = {ord(mark): None for mark in "\u200e\u200f\u202a\u202c\u2068\u2069\ufeff"} | {0x202F: " ", 0xA0: " "}
_BEFORE_NOON = r"[aA]\.? ?[mM]\.?|上午|凌晨|早上|오전|午前|ص|π\.?μ\.?|ÖÖ"
_AFTER_NOON = r"[pP]\.? ?[mM]\.?|下午|中午|晚上|오후|午後|م|μ\.?μ\.?|ÖS"
_HALF = f"(?:{_BEFORE_NOON}|{_AFTER_NOON})"
_DAY = r"\d{1,4}(?:\. ?|[/-]|년 ?|年)\d{1,2}(?:\. ?|[/-]|월 ?|月)\d{1,4}(?:\.|일|日)?"
_CLOCK = rf"(?:{_HALF} ?)?\d{{1,2}}[:.]\d{{2}}(?:[:.]\d{{2}})?(?: ?{_HALF})?"
LINE = re.compile(rf"\[?({_DAY})[,،]? (?:(?:à|às|alle|klo|kl\.) )?({_CLOCK})(?:\] | - )(.*)", re.DOTALL)
_SAID = re.compile(r"([^:]{1,100}): (.*)", re.DOTALL)
_DELETED = (
    "this message was deleted|you deleted this message|diese nachricht wurde gelöscht|du hast diese nachricht gelöscht|"
    "se eliminó este mensaje|eliminaste este mensaje|ce message a été supprimé|vous avez supprimé ce message|"
    "questo messaggio è stato eliminato|hai eliminato questo messaggio|mensagem apagada|você apagou esta mensagem|"
    "dit bericht is verwijderd|(?:je|u) hebt dit bericht verwijderd"
)
_NOTHING = re.compile(rf"<[^<>]{{3,40}}>|(?:{_DELETED})\.?|null", re.IGNORECASE)
_ATTACHED = re.compile(r"[A-Z]{3}-\d{8}-WA\d+\.\w{2,4} \([^()\n]+\)\n?")
_EDITED = re.compile(
    r"\s*<[^<>]*\b(?:edited|bearbeitet|editó|editado|editada|modifié|modificato|bewerkt)\b[^<>]*>$"
)


def _tidied(line: str) -> str:
    return line.replace(": \u200e", f": {_PHONE}", 1).translate(_TIDY)


def _is_chat(head: bytes) -> bool:
    lines = [_tidied(line) for line in decoded(head)[0].splitlines()[:20] if line.strip()]
    return (
        bool(lines)
        and LINE.match(lines[0]) is not None
        and sum(LINE.match(line) is not None for line in lines) * 3 >= len(lines)
    )


def _messages(file: File) -> Iterator[object]:
    """Yield (date, rest) of each message; a line without a date goes on with the one before."""
    open_message: list[str] = []
    date = ""
    for raw in file.text():
        line = _tidied(raw)
        start = LINE.match(line)
        if start is None:
            if open_message and sum(map(len, open_message)) < file.options.max_line_bytes:
                open_message.append(line)
            continue
        if open_message:
            yield date, "\n".join(open_message)
        date, open_message = _spelt(start[1], start[2]), [start[3]]
    if open_message:
        yield date, "\n".join(open_message)


def _message(record: tuple[str, str], owner: str) -> Row | object:
    date, rest = record
    said = _SAID.fullmatch(rest)
    if said is None:
        return SKIP  # somebody joined, the code changed, ...
    if said[1].strip() != owner:
        return LEFT
    text = _ATTACHED.sub("", _EDITED.sub("", said[2].strip()), count=1).strip()
    return (
        SKIP if not text or text.startswith(_PHONE) or _NOTHING.fullmatch(text) else Row(text=text, time=date)
    )


def _spelt(day: str, clock: str) -> str:
    """Write a date with slashes (years that come first with hyphens) and a clock with colons, am and pm.

    >>> _spelt("2021. 1. 31.", "오후 1:05"), _spelt("31-01-21", "13.05")
    ('2021-01-31 01:05 pm', '31/01/21 13:05')
    """
    first, second, third = (f"{int(number):02}" for number in re.findall(r"\d+", day))
    date = f"{first}-{second}-{third}" if len(first) == 4 else f"{first}/{second}/{third}"
    time = ":".join(f"{int(number):02}" for number in re.findall(r"\d+", clock))
    half = "am" if re.search(_BEFORE_NOON, clock) else "pm" if re.search(_AFTER_NOON, clock) else ""
    return f"{date} {time} {half}".rstrip()


WHATSAPP = Export(
    name="whatsapp",
    about=About("WhatsApp chat", whose="chat", columns=_COLUMNS, left="other people's messages, pictures"),
    parts=(ExportPart(knows=_is_chat, records=_messages, row=_message, files=r"\.txt$"),),
    community="whatsapp",
)
