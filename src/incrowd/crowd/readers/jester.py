"""Jester's matrix: one line per person, how many jokes they rated, then one number per joke; 99 means not rated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incrowd.crowd.readers.base import About, Batch, Look, ReadOptions
from incrowd.crowd.readers.rows import ITEMS, RowBatch, batch_of
from incrowd.crowd.readers.source import decoded, read_lines
from incrowd.crowd.schema import Kind, Reason

UNRATED = "99"
FEWEST_COLUMNS = 11
SAMPLED_LINES = 20


class Jester:
    """Ratings from -10 to 10; people and jokes are numbered."""

    name = "jester"
    about = About(
        "Jester's matrix of ratings",
        columns={"user": "the line", "item": "the column", "value": "the number"},
    )
    kind: Kind = "items"

    def probe(self, look: Look) -> bool:
        """Say whether each first line begins with the number of its ratings that are none of them 99."""
        lines = look.head.split(b"\n")[: SAMPLED_LINES + 1]
        whole = [_ratings(line) for line in (lines[:-1] if len(lines) > 1 else lines) if line.strip()]
        return bool(whole) and None not in whole and len({len(line) for line in whole if line}) == 1

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield everybody's ratings; a row's number is the person's line."""
        rows = RowBatch(ITEMS, options.batch_bytes)
        for lines in read_lines(path, options):
            for number, line in enumerate(lines.data.split(b"\n")[:-1], lines.first_row):
                ratings = _ratings(line)
                if ratings is None:
                    if line.strip():
                        rows.reject(number, Reason.RAGGED_ROW)
                    continue
                for joke, value in enumerate(ratings, 1):
                    if value != UNRATED:
                        rows.add(number, (str(number), f"joke {joke}", value, None))
                if rows.full:
                    yield batch_of(rows.take(), ITEMS, options)
            yield batch_of(rows.take(), ITEMS, options, lines)


def _ratings(line: bytes) -> list[str] | None:
    """Return a line's numbers without the leading count; None if it is no such line."""
    text = decoded(line)[0].strip()
    count, *ratings = [
        part.strip() for part in text.split("\t" if "\t" in text else ";" if ";" in text else ",")
    ]
    ratings = [rating.removesuffix(".00") if rating == "99.00" else rating for rating in ratings]
    if len(ratings) + 1 < FEWEST_COLUMNS or not count.isdigit():
        return None
    try:
        sound = all(rating == UNRATED or -10 <= float(rating) <= 10 for rating in ratings)
    except ValueError:
        return None
    return ratings if sound and int(count) == sum(rating != UNRATED for rating in ratings) else None
