"""A mail's own words: what its author typed, without quotes, attributions, signatures and list footers."""

from __future__ import annotations

import re
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message

from incrowd.crowd.readers.html import html_text

_QUOTED = re.compile(r"\s{0,3}(?:[A-Z]{1,3})?>")
_WROTE = re.compile(
    r".*\b(?:wrote|writes|said|schrieb|schreef|skrev|escribió|escreveu|scritto|écrit|napisał|kirjoitti|пишет|писал)"
    r"\b[^:]{0,80}:\s*$",
    re.IGNORECASE,
)
_WROTE_START = re.compile(r"\s*(?:On|At|Am|Le|El|Il|Em|Op|Den|W dniu|\d{4})\b")
_DATED = re.compile(r"\d|@")
_CUT = re.compile(
    r"\s*-{2,}\s*(?:original message|forwarded message|ursprüngliche nachricht|message d'origine)\b"
    r"|-----BEGIN PGP SIGNATURE-----|_{20,}\s*$|--\s?$|- --\s?$",
    re.IGNORECASE,
)
_ARMOUR = "-----BEGIN PGP SIGNED MESSAGE-----"
_REPLY = re.compile(r"\s*(?:\[[^\[\]]*\]\s*)*(?:re|aw|sv|antw|vs|fwd?|wg|tr)(?:\[\d+\])?\s*:", re.IGNORECASE)
_LIST_TAG = re.compile(r"^\s*(?:\[[^\[\]]*\]\s*)+")
MOST_PARTS = 200
ATTRIBUTION_LINES = 3
LONGEST_ATTRIBUTION = 400
LONGEST_HEADER = 2000


def own_words(body: str) -> str:
    """Return what the author of a mail typed.

    >>> own_words("Yes.\\n\\nOn Monday, Jo wrote:\\n> Is it?\\n\\nSee you\\n-- \\nA signature")
    'Yes.\\n\\nSee you'
    """
    lines = [line.rstrip("\r") for line in _without_armour(body).split("\n")]
    lines = _before_cut(lines)
    keep = [not _QUOTED.match(line) for line in lines]
    for at in range(len(lines)):
        if keep[at] and len(lines[at]) <= LONGEST_ATTRIBUTION and _WROTE.match(lines[at]):
            _drop_attribution(lines, keep, at)
    return _squeezed([line for line, kept in zip(lines, keep, strict=True) if kept])


def _without_armour(body: str) -> str:
    """Drop the header of a signed message; its signature is cut with the rest."""
    _, armour, rest = body.partition(_ARMOUR)
    return re.sub(r"^.*\n(?:\w+:.*\n)*", "", rest, count=1) if armour else body


def _before_cut(lines: list[str]) -> list[str]:
    """Return the lines before a signature, a list's footer or a forwarded mail."""
    return next((lines[:at] for at, line in enumerate(lines) if _CUT.match(line)), lines)


def _drop_attribution(lines: list[str], keep: list[bool], at: int) -> None:
    """Drop ``On ..., Jo wrote:``, which mail programs break into lines, if it introduces a quote."""
    following = next((n for n in range(at + 1, len(lines)) if lines[n].strip()), None)
    first = next(
        (n for n in range(at, max(-1, at - ATTRIBUTION_LINES), -1) if _WROTE_START.match(lines[n])), at
    )
    dated = first < at or _DATED.search(lines[at])
    if following is None or not keep[following] or (dated and _WROTE_START.match(lines[first])):
        keep[first : at + 1] = [False] * (at + 1 - first)


def _squeezed(lines: list[str]) -> str:
    """Join lines; of several blank ones keep one."""
    kept = [line for line, before in zip(lines, ["", *lines], strict=False) if line.strip() or before.strip()]
    return "\n".join(line if line.strip() else "" for line in kept).strip()


def own_subject(subject: str) -> str:
    """Return a subject its author chose: that of a reply is someone else's."""
    return "" if _REPLY.match(subject) else _LIST_TAG.sub("", subject).strip()


def header(message: Message, name: str) -> str:
    """Return a header as text, encoded words decoded, folds undone."""
    raw = message.get(name)
    if raw is None:
        return ""
    try:
        parts = decode_header(str(raw)[:LONGEST_HEADER])
    except (HeaderParseError, ValueError):
        return str(raw)[:LONGEST_HEADER]
    text = "".join(part if isinstance(part, str) else _decoded(part, charset)[0] for part, charset in parts)
    return " ".join(text.split())


def body_of(message: Message) -> tuple[str, bool]:
    """Return a mail's text and whether bytes were replaced: its plain parts, or its HTML if it has none."""
    parts = [part for part, _ in zip(message.walk(), range(MOST_PARTS), strict=False) if _is_inline(part)]
    plain = [part for part in parts if part.get_content_type() == "text/plain"]
    chosen = plain or [part for part in parts if part.get_content_type() == "text/html"]
    texts = [_payload(part) for part in chosen]
    words = (text if plain else html_text(text) for text, _ in texts)
    return "\n".join(words), any(touched for _, touched in texts)


def _is_inline(part: Message) -> bool:
    return part.get_content_maintype() == "text" and part.get_content_disposition() != "attachment"


def _payload(part: Message) -> tuple[str, bool]:
    payload = part.get_payload(decode=True)
    return _decoded(payload, part.get_content_charset()) if isinstance(payload, bytes) else ("", False)


def _decoded(data: bytes, charset: str | None) -> tuple[str, bool]:
    """Decode with the charset declared, else UTF-8; say whether bytes had to be replaced."""
    for name in (charset or "utf-8", "utf-8"):
        try:
            return data.decode(name), False
        except (LookupError, UnicodeDecodeError, ValueError):
            continue
    return data.decode("utf-8", "replace"), True
