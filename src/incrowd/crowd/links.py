"""Where a person's own posts can be found: the addresses in their own export, kept beside the crowd.

Only those of people's own exports are kept. The addresses of everybody's posts would give back the names that
pseudonyms take away. A row is told by its person, community, time and a digest of its text, so that an address is found
also where the same post came from a dump before.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import polars as pl

from incrowd.crowd.disk import PRIVATE, Disk

LINKS_NAME = "links.parquet"
LINK = "link"
IS_ADDRESS = pl.col(LINK).str.contains(r"^https?://[^\s/]+/\S{1,2000}$")
_ROW = ("user", "community", "time", "digest")
_SCHEMA = {"user": pl.String, "community": pl.String, "time": pl.Int64, "digest": pl.Binary, LINK: pl.String}


def links_in(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the addresses among checked rows of posts whose users have their ids; what is no address is left out."""
    found = rows.filter(IS_ADDRESS)
    return found.select("user", "community", "time", _digests(found), LINK)


def _digests(posts: pl.DataFrame) -> pl.Series:
    texts = (blake2b(text.encode(), digest_size=16).digest() for text in posts["text"])
    return pl.Series("digest", texts, dtype=pl.Binary)


def read_links(folder: Path) -> pl.DataFrame:
    """Return the addresses kept in a folder; none if it has none."""
    path = folder / LINKS_NAME
    return pl.read_parquet(path, glob=False) if path.exists() else pl.DataFrame(schema=_SCHEMA)


def write_links(folder: Path, disk: Disk, links: pl.DataFrame) -> None:
    """Keep these addresses, for nobody but the crowd's owner to read."""
    if links.is_empty():
        disk.remove(folder / LINKS_NAME)
        return
    data = io.BytesIO()
    links.write_parquet(data)
    disk.write_whole(folder / LINKS_NAME, data.getvalue(), PRIVATE)


def add_links(folder: Path, disk: Disk, staged: Iterable[Path]) -> None:
    """Add the addresses of staged sources to a crowd's; a later one takes the place of an earlier one."""
    new = [links for links in map(read_links, staged) if links.height]
    if new:
        both = pl.concat([read_links(folder), *new])
        write_links(folder, disk, both.unique(_ROW, keep="last", maintain_order=True))


def links_of(folder: Path, user: str, posts: pl.DataFrame) -> dict[int, str]:
    """Return the addresses of a person's numbered posts, as far as they are known."""
    kept = read_links(folder).filter(pl.col("user") == user)
    if kept.is_empty():
        return {}
    asked = posts.with_columns(_digests(posts), user=pl.lit(user))
    found = asked.join(kept, on=list(_ROW), nulls_equal=True)
    return dict(found.select("number", LINK).iter_rows())
