"""A JSON list of objects with any keys: posts, items or attributes, by mapping or by common names."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from incrowd.crowd.readers.base import About, Batch, Layout, Look, ReadOptions, guess, layout_of
from incrowd.crowd.readers.export import first_object
from incrowd.crowd.readers.jsonstream import JsonStream
from incrowd.crowd.readers.rows import RowBatch, Whole, batch_of
from incrowd.crowd.readers.source import DecompressedFile
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError

SAMPLED = 200


class JsonArray:
    """One object per row."""

    name = "json"
    about = About("JSON list of objects")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether a list begins with an object of which a known key holds a plain value."""
        if not look.head.lstrip().startswith(b"["):
            return False
        return bool(
            guess(
                [key for key, value in first_object(look.head).items() if not isinstance(value, (list, dict))]
            )
        )

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the objects in order; a row's number is the object's place."""
        with DecompressedFile(path, options) as source:
            stream = JsonStream(source, str(path), options)
            records = stream.items()
            first = list(islice(records, SAMPLED))
            keys = list(dict.fromkeys(key for record in first if isinstance(record, dict) for key in record))
            if not keys:
                raise SchemaError(f"{path}: expected a list of JSON objects, got a list without any.")
            layout = layout_of(keys, options, str(path))
            rows = RowBatch(
                Layout(kind=layout.kind, columns={name: (name,) for name in layout.sources}),
                options.batch_bytes,
            )
            for number, record in enumerate(chain(first, records), 1):
                _add(rows, number, record, layout.sources)
                if rows.full:
                    yield batch_of(rows.take(), layout, options)
            yield batch_of(rows.take(), layout, options, Whole(incomplete=stream.incomplete))


def _add(rows: RowBatch, number: int, record: object, names: list[str]) -> None:
    if not isinstance(record, dict):
        return rows.reject(number, Reason.NOT_AN_OBJECT)
    values = [record.get(name) for name in names]
    if not all(value is None or isinstance(value, str) for value in values):
        return rows.reject(number, Reason.WRONG_TYPE)
    return rows.add(number, values)
