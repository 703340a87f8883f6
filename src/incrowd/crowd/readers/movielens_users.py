"""MovieLens' own people: users.dat (``1::F::1::10::48067``) and u.user (``1|24|M|technician|85711``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from incrowd.crowd.readers.base import About, Batch, Look, ReadOptions
from incrowd.crowd.readers.rows import ATTRIBUTES, RowBatch, batch_of
from incrowd.crowd.readers.source import decoded, read_lines
from incrowd.crowd.schema import Kind, Reason

_DAT = re.compile(r"(\d+)::(?P<gender>[MF])::(?P<age>\d+)::(?P<occupation>\d+)::(?P<zip>[\w-]+)")
_USER = re.compile(r"(\d+)\|(?P<age>\d+)\|(?P<gender>[MF])\|(?P<occupation>[\w ]+)\|(?P<zip>[\w-]+)")


class MovieLensUsers:
    """Who the raters are: gender, age, occupation, zip code."""

    name = "movielens-users"
    about = About("MovieLens users", columns={"attribute": "gender, age, occupation, zip"})
    kind: Kind = "attributes"

    def probe(self, look: Look) -> bool:
        """Say whether all first lines are people in one of the two layouts."""
        lines = [decoded(line)[0].rstrip("\r") for line in look.head.split(b"\n")[:50]]
        whole = [line for line in (lines[:-1] if len(lines) > 1 else lines) if line]
        return bool(whole) and any(all(map(one.fullmatch, whole)) for one in (_DAT, _USER))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield everybody's attributes; a row's number is the person's line."""
        rows = RowBatch(ATTRIBUTES, options.batch_bytes)
        for lines in read_lines(path, options):
            for number, raw in enumerate(lines.data.split(b"\n")[:-1], lines.first_row):
                line, replaced = decoded(raw.removesuffix(b"\r"))
                person = _DAT.fullmatch(line) or _USER.fullmatch(line)
                if person is None:
                    if line.strip():
                        rows.reject(number, Reason.RAGGED_ROW)
                    continue
                for attribute, value in person.groupdict().items():
                    rows.add(number, (person[1], attribute, value), replaced=replaced)
            yield batch_of(rows.take(), ATTRIBUTES, options, lines)
