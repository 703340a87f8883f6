"""A Stack Exchange dump's Posts.xml or Comments.xml: one row element a post, read as it streams by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

from incrowd.crowd.readers.base import About, Batch, Look, ReadOptions, html_text
from incrowd.crowd.readers.rows import POSTS, RowBatch, batch_of
from incrowd.crowd.readers.source import Lines, decoded, read_lines
from incrowd.crowd.schema import Kind
from incrowd.errors import UnreadableSource

_START = re.compile(rb"\s*(?:<\?xml[^<>]*\?>\s*)?<(posts|comments)>")
# XML forbids these control characters even as references; the dumps hold some.
_FORBIDDEN = re.compile(
    rb"&#(?:x0*(?:[0-8bcef]|1[0-9a-f])|0*(?:[0-8]|1[1245-9]|2[0-9]|3[01]));", re.IGNORECASE
)
_CONTROL = bytes(c for c in range(32) if c not in b"\t\n\r")


class StackExchangeDump:
    """Questions, answers and comments of one site, which is the community."""

    name = "stackexchange"
    about = About("Stack Exchange dump", whose="many")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether the XML begins as the dumps do."""
        return _START.match(look.head) is not None

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order; a row's number is its line's."""
        parser = _RowParser(path, options)
        incomplete = False
        for lines in read_lines(path, options):
            incomplete = lines.incomplete
            parser.feed(lines)
            yield batch_of(parser.rows.take(), POSTS, options, lines)
        parser.finish(incomplete=incomplete)


class _RowParser:
    """Turns row elements into posts. Document types are refused: entities are how XML bombs are built."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.rows = RowBatch(POSTS, options.batch_bytes)
        self._path = path
        self._user = options.user
        self._community = options.community or path.resolve().parent.name
        self._replaced_lines: set[int] = set()
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._element
        self._expat.StartDoctypeDeclHandler = self._refuse
        self._expat.EntityDeclHandler = self._refuse

    def feed(self, lines: Lines) -> None:
        self._replaced_lines = set()
        self._parse(self._cleaned(lines), final=False)

    def finish(self, *, incomplete: bool) -> None:
        if not incomplete:
            self._parse(b"", final=True)

    def _parse(self, data: bytes, *, final: bool) -> None:
        try:
            self._expat.Parse(data, final)
        except expat.ExpatError as error:
            raise UnreadableSource(
                f"{self._path}: not well-formed XML at line {error.lineno}. Expected a whole dump. "
                "Fetch it again."
            ) from None

    def _cleaned(self, lines: Lines) -> bytes:
        """Replace what XML cannot hold, and remember the lines it was in."""
        data = lines.data
        try:
            data.decode()
        except UnicodeDecodeError:
            sound = False
        else:
            sound = not _FORBIDDEN.search(data) and data.translate(None, _CONTROL) == data
        if sound:
            return data
        cleaned = []
        for number, line in enumerate(data.split(b"\n"), lines.first_row):
            text = decoded(line)[0].encode().translate(bytes(63 if c in _CONTROL else c for c in range(256)))
            text = _FORBIDDEN.sub("\ufffd".encode(), text)
            if text != line:
                self._replaced_lines.add(number)
            cleaned.append(text)
        return b"\n".join(cleaned)

    def _refuse(self, *_: object) -> None:
        raise UnreadableSource(
            f"{self._path}: declares a document type, which a Stack Exchange dump never does. "
            "Do not trust this file."
        )

    def _element(self, name: str, values: dict[str, str]) -> None:
        if name != "row":
            return
        comment = "Text" in values
        body = values.get("Text") if comment else values.get("Body")
        text = None if body is None else body if comment else html_text(body)
        if text is not None and values.get("Title"):
            text = values["Title"] + "\n\n" + text
        user = values.get("UserId" if comment else "OwnerUserId")
        user = user or values.get("UserDisplayName" if comment else "OwnerDisplayName")
        identity = ("c" if comment else "p") + values["Id"] if "Id" in values else None
        line = self._expat.CurrentLineNumber
        row = (identity, user or self._user, self._community, values.get("CreationDate"), text)
        self.rows.add(line, row, replaced=line in self._replaced_lines)
