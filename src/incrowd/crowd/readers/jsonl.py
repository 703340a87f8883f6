"""JSON lines with any keys: posts, items or attributes, by mapping or by common names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from incrowd.crowd.readers.base import Batch, ReadOptions
from incrowd.crowd.readers.fields import guess, layout_of
from incrowd.crowd.readers.jsonparse import parse_json_lines
from incrowd.crowd.readers.lines import first_lines, read_lines
from incrowd.crowd.readers.shape import batch_of
from incrowd.crowd.readers.unicode import storable
from incrowd.crowd.schema import Kind
from incrowd.errors import SchemaError

SAMPLED_LINES = 200


class JsonLines:
    """One JSON object a line."""

    name = "jsonl"
    kind: Kind = "posts"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Say whether lines are JSON objects of which a known key holds a plain value."""
        records = sample_records(head)
        plain = [
            key for record in records for key, value in record.items() if not isinstance(value, (list, dict))
        ]
        return bool(guess(plain)) or (len(records) > 1 and bool(plain))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        keys = sample_keys(first_lines(path))
        if not keys:
            raise SchemaError(
                f"{path}: none of the first lines is a JSON object. Expected one object a line."
            )
        layout = layout_of(keys, options, str(path))
        for lines in read_lines(path, options):
            parsed = parse_json_lines(lines, layout.sources, layout.numbers)
            yield batch_of(parsed, layout, options, lines)


def sample_keys(data: bytes) -> list[str]:
    """Return the keys of the objects in the first lines, in order of appearance, if a table can have them."""
    keys = dict.fromkeys(key for record in sample_records(data) for key in record)
    return [key for key in keys if storable(key) == key]


def sample_records(data: bytes) -> list[dict[str, object]]:
    """Return the objects in the first lines."""
    records = []
    for line in data.split(b"\n", SAMPLED_LINES)[:SAMPLED_LINES]:
        try:
            record = json.loads(line) if line.lstrip().startswith(b"{") else None
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            records.append(record)
    return records
