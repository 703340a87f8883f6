"""JSON lines with any keys: posts, items or attributes, by mapping or by common names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from incrowd.crowd.readers.base import Batch, ReadOptions
from incrowd.crowd.readers.fields import Layout, layout_of
from incrowd.crowd.readers.jsonparse import parse_json_lines
from incrowd.crowd.readers.lines import Lines, read_lines
from incrowd.crowd.readers.shape import make_batch
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError

SAMPLED_LINES = 200


class JsonLines:
    """One JSON object a line."""

    name = "jsonl"
    kind: Kind = "posts"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Say whether the first line is a JSON object of its own."""
        return bool(sample_keys(head))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        layout: Layout | None = None
        for lines in read_lines(path, options):
            layout = layout or self.layout(lines, options, path)
            yield batch_of(lines, layout, options)

    def layout(self, lines: Lines, options: ReadOptions, path: Path) -> Layout:
        """Decide the columns from the first lines."""
        keys = sample_keys(lines.data)
        if not keys and lines.data.strip():
            raise SchemaError(
                f"{path}: none of the first lines is a JSON object. Expected one object a line."
            )
        return layout_of(keys, options, str(path))


def batch_of(lines: Lines, layout: Layout, options: ReadOptions) -> Batch:
    """Turn lines into rows."""
    parsed = parse_json_lines(lines.data, lines.first_row, layout.sources, layout.numbers)
    too_long = [(row, Reason.TEXT_TOO_LONG) for row in lines.too_long]
    return make_batch(
        parsed.rows,
        layout,
        options,
        rejects=[*parsed.rejects, *too_long],
        replaced=parsed.replaced,
        incomplete=lines.incomplete,
    )


def sample_keys(data: bytes) -> list[str]:
    """Return the keys of the objects in the first lines, in order of appearance."""
    keys: dict[str, None] = {}
    for line in data.split(b"\n", SAMPLED_LINES)[:SAMPLED_LINES]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict):
            keys.update(dict.fromkeys(record))
    return list(keys)
