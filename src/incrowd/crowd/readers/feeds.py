"""Blogs: RSS and Atom feeds, and WordPress exports (WXR). Comments in a WordPress export are not read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.parsers import expat

from incrowd.crowd.readers.base import About, html_text
from incrowd.crowd.readers.export import CUT, SKIP, Export, ExportPart, File, Row, pick
from incrowd.errors import UnreadableSource

_COLUMNS = {"user": "author", "time": "published", "text": "title and content"}
_START = re.compile(rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*<(?:rss|feed|rdf:RDF)\b", re.DOTALL)
_AUTHOR = ("creator", "name", "author")
_TEXT = ("encoded", "content", "description", "summary")
_TIME = ("post_date_gmt", "pubDate", "published", "date", "updated")
MOST_TEXT = 2**22


class _Items:
    """Gathers what lies in an item or entry; nothing else of the document is held."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._data
        self.parser.EntityDeclHandler = self._refuse
        self.found: list[dict[str, str]] = []
        self._item: dict[str, str] | None = None
        self._path: list[str] = []

    def _refuse(self, *_: object) -> None:
        raise ValueError("declares entities")

    def _start(self, name: str, attributes: object) -> None:
        short = name.rpartition(":")[2]
        self._path.append("excerpt" if name.startswith("excerpt:") else short)
        if short in ("item", "entry"):
            self._item = {}
        if len(self._path) > 200:
            raise ValueError("nested too deeply")

    def _data(self, text: str) -> None:
        # A WordPress item holds comments with authors and contents of their own.
        if self._item is not None and "comment" not in self._path:
            key = self._path[-1]
            if len(self._item.get(key, "")) < MOST_TEXT:
                self._item[key] = self._item.get(key, "") + text

    def _end(self, name: str) -> None:
        self._path.pop()
        if name.rpartition(":")[2] in ("item", "entry") and self._item is not None:
            self.found.append(self._item)
            self._item = None


def _entries(file: File) -> Iterator[object]:
    items = _Items()
    try:
        while piece := file.bytes.read(2**16):
            items.parser.Parse(piece, False)
            yield from items.found
            items.found.clear()
        items.parser.Parse(b"", True)
    except (expat.ExpatError, ValueError) as error:
        if not file.options.keep_complete:
            raise UnreadableSource(
                f"{file.place}: the XML is damaged, cut off or unsafe. Fetch it again."
            ) from error
        yield CUT
    yield from items.found


def _post(record: dict[str, str], owner: str) -> Row | object:
    if (
        record.get("post_type", "post").strip() not in ("post", "page")
        or record.get("status", "publish").strip() != "publish"
    ):
        return SKIP  # a draft, a picture, a menu
    body = pick(record, *_TEXT)
    texts = (record.get("title", "").strip(), html_text(body) if body else "")
    return Row(
        text="\n\n".join(part for part in texts if part),
        time=(pick(record, *_TIME) or "").strip() or None,
        id=(pick(record, "guid", "id", "link") or "").strip() or None,
        link=(record.get("link") or "").strip() or None,
        user=(pick(record, *_AUTHOR) or "").strip() or "the blog's author",
    )


FEEDS = Export(
    name="feed",
    about=About("blog feed or WordPress export", columns=_COLUMNS, left="drafts, pages' comments, pictures"),
    parts=(
        ExportPart(
            knows=lambda head: _START.match(head) is not None,
            records=_entries,
            row=_post,
            files=r"\.(xml|rss|atom)$",
        ),
    ),
    community="blog",
)
