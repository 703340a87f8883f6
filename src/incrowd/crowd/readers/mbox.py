"""mbox files and Mailman's monthly archives: mails of a list, one after the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from email.utils import mktime_tz, parseaddr, parsedate_tz
from pathlib import Path

from incrowd.crowd.readers.base import Batch, ReadOptions
from incrowd.crowd.readers.collect import POSTS, Collector
from incrowd.crowd.readers.lines import Lines, read_lines
from incrowd.crowd.readers.mail import body_of, header, own_subject, own_words
from incrowd.crowd.readers.shape import Whole, batch_of
from incrowd.crowd.schema import Kind, Reason

LONGEST_SEPARATOR = 1024
_CANDIDATE = re.compile(rb"(?:\A|(?<=\n\n)|(?<=\n\r\n))From ([^\n]{5,800})\n(?=[!-9;-~]{1,100}:)")
_CLOCK = re.compile(rb"\d:\d\d")
_YEAR = re.compile(rb"\b\d{4}\b")
_OBSCURED = re.compile(r"(\S+) at (\S+\.\S+)")
_MONTHLY = re.compile(r"\d{4}")


class Mbox:
    """Mails: a person is an address, a list is a community."""

    name = "mbox"
    kind: Kind = "posts"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Say whether the file begins with a separator and a header."""
        return any(match.start() == 0 for match in _separators(head.lstrip(), 0))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the mails in order; a row's number is the mail's place."""
        splitter = _Splitter(options.max_line_bytes)
        rows = Collector(POSTS, options.batch_bytes)
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


def _add(rows: Collector, number: int, mail: bytes | None, folder: str, options: ReadOptions) -> None:
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
