"""What is in a crowd, in numbers; and tables as CSV for spreadsheets, in which no cell can act as a formula."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl

if TYPE_CHECKING:
    from incrowd.crowd.store import Crowd

FORMULA = r"^[=+\-@\t\r]"
"""What makes a spreadsheet compute a cell instead of showing it."""


def write_csv(frame: pl.LazyFrame | pl.DataFrame, path: Path) -> None:
    """Write a table as CSV; text that a spreadsheet would run gets a leading apostrophe."""
    harmless(frame.lazy()).sink_csv(path)


def harmless(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the table with an apostrophe before every text that starts like a formula."""
    text = pl.col(pl.String)
    return frame.with_columns(
        pl.when(text.str.contains(FORMULA)).then("'" + text).otherwise(text).name.keep()
    )


LARGEST = 10


@dataclass(frozen=True, kw_only=True)
class CrowdInfo:
    """A crowd at a glance; no field is about a single person."""

    posts: int
    users: int
    """Distinct people over all tables."""
    communities: int
    identities: int
    """(user, community) pairs."""
    users_in_several: int
    """People who post in more than one community."""
    largest_communities: Mapping[str, int]
    """The largest communities and their posts."""
    first_post: int | None
    """UTC seconds."""
    last_post: int | None
    undated_posts: int
    items: int
    """Distinct items."""
    item_rows: int
    attributes: int
    """Distinct attributes."""
    attribute_rows: int
    quarantined: int
    quarantine: Mapping[str, int]
    """Rows in quarantine, by reason."""
    set_aside: Mapping[str, int]
    """Rows every import so far left out, by reason, duplicates included."""
    imports: int
    """Sources imported."""
    incomplete: int
    """Sources of which only the complete records could be kept."""
    bytes: int
    names: str
    """`keyed`, `plain`, or `forgotten`: nobody can turn a name into an id any more."""
    data_hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return asdict(self)


def describe(crowd: Crowd) -> CrowdInfo:
    """Count what is in a crowd."""
    state = crowd.state
    connection = crowd.connect()
    try:
        posts = _row(
            connection,
            """SELECT count(DISTINCT community), min("time"), max("time"), count(*) - count("time")
               FROM posts""",
        )
        identities, several = _row(
            connection,
            """SELECT coalesce(sum(n), 0)::BIGINT, count(*) FILTER (n > 1)
               FROM (SELECT count(DISTINCT community) AS n FROM posts GROUP BY "user")""",
        )
        (items,) = _row(connection, "SELECT count(DISTINCT item) FROM items")
        (attributes,) = _row(connection, "SELECT count(DISTINCT attribute) FROM attributes")
        largest = connection.sql(
            f"SELECT community, count(*) AS n FROM posts GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {LARGEST}"
        ).fetchall()
        reasons = connection.sql("SELECT reason, count(*) FROM quarantine GROUP BY 1 ORDER BY 1").fetchall()
    finally:
        connection.close()
    return CrowdInfo(
        posts=state.tables["posts"].rows,
        users=crowd.people(),
        communities=posts[0],
        identities=identities,
        users_in_several=several,
        largest_communities=dict(largest),
        first_post=posts[1],
        last_post=posts[2],
        undated_posts=posts[3],
        items=items,
        item_rows=state.tables["items"].rows,
        attributes=attributes,
        attribute_rows=state.tables["attributes"].rows,
        quarantined=state.tables["quarantine"].rows,
        quarantine=dict(reasons),
        set_aside=dict(sorted(sum((Counter(s.reasons) for s in state.imports), Counter()).items())),
        imports=len(state.imports),
        incomplete=sum(source.incomplete for source in state.imports),
        bytes=sum(part.bytes for part in state.parts),
        names=crowd.names,
        data_hash=crowd.data_hash,
    )


def _row(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[Any, ...]:
    """Return the one row an aggregate has."""
    return tuple(connection.execute(sql).fetchall()[0])
