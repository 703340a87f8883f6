"""mbox files and Mailman's monthly archives: mails of a list, and in each what its author typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import mktime_tz, parseaddr, parsedate_tz
from pathlib import Path

from incrowd.crowd.readers.base import About, Batch, Look, ReadOptions, html_text
from incrowd.crowd.readers.rows import POSTS, RowBatch, Whole, batch_of
from incrowd.crowd.readers.source import Lines, read_lines
from incrowd.crowd.schema import Kind, Reason

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


LONGEST_SEPARATOR = 1024
_CANDIDATE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From ([^\n]{5,800})\n(?=[!-9;-~]{1,100}:)")
_CLOCK = re.compile(rb"\d:\d\d")
_YEAR = re.compile(rb"\b\d{4}\b")
_OBSCURED = re.compile(r"(\S+) at (\S+\.\S+)")
_MONTHLY = re.compile(r"\d{4}")


class Mbox:
    """Mails: a person is an address, a list is a community."""

    name = "mbox"
    about = About("mails of a list (mbox)", whose="many")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether the file begins with a separator and a header."""
        return any(match.start() == 0 for match in _separators(look.head.lstrip(), 0))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the mails in order; a row's number is the mail's place."""
        splitter = _Splitter(options.max_line_bytes)
        rows = RowBatch(POSTS, options.batch_bytes)
        folder = _folder_community(path)
        number = 0
        incomplete = False
        for lines in read_lines(path, options):
            incomplete = lines.incomplete
            for mail in splitter.split(lines):
                number += 1
                _add(rows, number, mail, folder, options)
            yield batch_of(rows.take(), POSTS, options)
        if splitter.is_open and not incomplete:
            _add(rows, number + 1, splitter.rest(), folder, options)
        yield batch_of(rows.take(), POSTS, options, Whole(incomplete=incomplete))


def _separators(data: bytes, start: int) -> Iterator[re.Match[bytes]]:
    """Find "From " lines with a time and a year that a header follows; bodies hold "From " lines, too."""
    for match in _CANDIDATE.finditer(data, start):
        if _CLOCK.search(match[1]) and _YEAR.search(match[1]):
            yield match


class _Splitter:
    """Cuts lines into mails. An overlong mail is None, and is not held in memory."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._open = b""
        self._overlong = False

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def split(self, lines: Lines) -> Iterator[bytes | None]:
        searched = max(0, len(self._open) - LONGEST_SEPARATOR)
        before = len(self._open)
        buffer = (self._open + lines.data) if before else lines.data.lstrip()
        lost = [at + before for at in _places(lines)]
        start = 0
        for match in _separators(buffer, searched):
            if match.start() > start:
                self._overlong |= any(start <= at < match.start() for at in lost)
                yield self._closed(buffer[start : match.start()])
                start = match.start()
        self._overlong |= any(start <= at for at in lost)
        self._keep(buffer[start:])

    def rest(self) -> bytes | None:
        return self._closed(self._open)

    def _closed(self, mail: bytes) -> bytes | None:
        overlong, self._overlong = self._overlong or len(mail) > self._cap, False
        return None if overlong else mail

    def _keep(self, rest: bytes) -> None:
        if len(rest) > self._cap:
            # Only its end matters now: the next separator may begin there, but not at its first byte.
            self._overlong = True
            rest = b"\0" + rest[-LONGEST_SEPARATOR:]
        self._open = rest


def _places(lines: Lines) -> list[int]:
    """Return where in the data a line was left empty because it was too long."""
    if not lines.too_long:
        return []
    ends = [match.start() for match in re.finditer(rb"\n", lines.data)]
    return [ends[row - lines.first_row] for row in lines.too_long]


def _add(rows: RowBatch, number: int, mail: bytes | None, folder: str, options: ReadOptions) -> None:
    if mail is None:
        return rows.reject(number, Reason.TEXT_TOO_LONG)
    try:
        message = message_from_bytes(mail.partition(b"\n")[2])
        values, replaced = _values(message, folder, options)
    except (ValueError, TypeError, LookupError, IndexError, AttributeError, RecursionError):
        # The email package has no list of what it raises for mail that breaks the rules.
        return rows.reject(number, Reason.WRONG_TYPE)
    return rows.add(number, values, replaced=replaced)


def _values(message: Message, folder: str, options: ReadOptions) -> tuple[tuple[str | None, ...], bool]:
    body, replaced = body_of(message)
    text = "\n\n".join(part for part in (own_subject(header(message, "Subject")), own_words(body)) if part)
    community = options.community or _list_name(header(message, "List-Id")) or folder
    identity = header(message, "Message-ID") or None
    return (
        identity,
        options.user or _sender(message),
        community,
        _time(header(message, "Date")),
        text,
    ), replaced


def _sender(message: Message) -> str | None:
    """Return the address a mail is from, or the name if it has none. Mailman writes ``jo at example.org``."""
    name, address = parseaddr(_OBSCURED.sub(r"\1@\2", header(message, "From"), count=1))
    return address.lower() if "@" in address else name or address or None


def _time(date: str) -> str | None:
    parsed = parsedate_tz(date) if date else None
    if parsed is None:
        return "?" if date else None
    try:
        return str(mktime_tz(parsed))
    except (ValueError, OverflowError):
        return "?"


def _list_name(list_id: str) -> str | None:
    """Return ``list.example.org`` of ``A list <list.example.org>``."""
    match = re.search(r"<([^<>\s]+)>", list_id)
    return match[1] if match else None


def _folder_community(path: Path) -> str:
    """Return the file's name, or its folder's if the file is named after a month."""
    stem = path.name.split(".")[0]
    return path.resolve().parent.name if _MONTHLY.search(stem) else stem
