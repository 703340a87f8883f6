"""One JSON object ``{user: [values]}``: each person's likes; or ``{user: {attribute: value}}``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions
from incrowd.crowd.readers.jsonstream import JsonStream
from incrowd.crowd.readers.rows import ATTRIBUTES, RowBatch, Whole, batch_of
from incrowd.crowd.readers.source import DecompressedFile
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError

LISTS = Layout(kind="items", columns={"user": ("user",), "item": ("item",)})
_NAME = rb'"(?:[^"\\]|\\.)*"\s*:\s*'
_START = re.compile(
    rb"\s*\{\s*(?:"
    + _NAME
    + rb"(?:\[\s*\]|\{\s*\})\s*,\s*)*"
    + _NAME
    + rb"(?:\[\s*[^\s\[{]|\{\s*"
    + _NAME
    + rb"[^\s\[{])"
)


class JsonMap:
    """A person's name leads to a list (items) or to an object (attributes)."""

    name = "json-map"
    about = About("a JSON map of people to lists", whose="many")
    kind: Kind = "items"

    def probe(self, look: Look) -> bool:
        """Say whether the file is one object whose first value that is not empty is a flat list or object."""
        return _START.match(look.head) is not None

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield each person's values; a row's number is the person's place."""
        with DecompressedFile(path, options) as source:
            stream = JsonStream(source, str(path), options)
            attributes = options.kind == "attributes"
            if options.kind == "posts":
                raise SchemaError(
                    f"{path}: a JSON map holds items or attributes, not posts. Use another --kind."
                )
            layout: Layout | None = None
            rows = RowBatch(LISTS, options.batch_bytes)
            for number, user in enumerate(stream.members(), 1):
                value = stream.value()
                if stream.incomplete:
                    break
                if layout is None:
                    layout = ATTRIBUTES if attributes or isinstance(value, dict) else LISTS
                    rows = RowBatch(layout, options.batch_bytes)
                _add(rows, number, user, value, layout, path)
                if rows.full:
                    yield batch_of(rows.take(), layout, options)
            yield batch_of(rows.take(), layout or LISTS, options, Whole(incomplete=stream.incomplete))


def _add(rows: RowBatch, number: int, user: str, value: object, layout: Layout, path: Path) -> None:
    if isinstance(value, dict) and layout is ATTRIBUTES:
        pairs: list[tuple[object, ...]] = [(user, name, item) for name, item in value.items()]
    elif isinstance(value, list) and layout is ATTRIBUTES:
        pairs = [(user, path.name.split(".")[0], item) for item in value]
    elif isinstance(value, list):
        pairs = [(user, item) for item in value]
    else:
        return rows.reject(number, Reason.WRONG_TYPE)
    texts = [tuple(part for part in pair if isinstance(part, str)) for pair in pairs]
    if any(len(text) < len(pair) for text, pair in zip(texts, pairs, strict=True)):
        return rows.reject(number, Reason.WRONG_TYPE)
    for text in dict.fromkeys(texts):
        rows.add(number, text)
    return None
