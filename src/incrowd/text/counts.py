"""How often each identity used each token: the sparse matrix that profiles are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from incrowd.text.counting import IDENTITY, Counting, Counts, dropped_table
from incrowd.text.filters import Filters, reasons
from incrowd.text.options import TextOptions
from incrowd.text.stored import load, name_of, save

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

__all__ = ["Counts", "count_tokens", "counts"]

Progress = Callable[[float, float | None, str], None]
DEFAULT_MEMORY = 2**30
FETCH_ROWS = 50_000


def count_tokens(
    posts: pl.DataFrame | Iterable[pl.DataFrame],
    options: TextOptions | None = None,
    *,
    min_posts: int = 1,
    min_profiles: int = 1,
    drop_largest: int = 0,
    period: pl.Expr | None = None,
    memory: int = DEFAULT_MEMORY,
    folder: Path | None = None,
) -> Counts:
    """Count the tokens of each identity in a table of posts, or in tables that follow each other.

    Parameters
    ----------
    posts
        Columns user, community, text; rows without a user or a community are left out.
    options
        How text becomes tokens.
    min_posts, min_profiles, drop_largest
        See :class:`~incrowd.text.filters.Filters`.
    period
        Splits each identity further, e.g. ``pl.from_epoch("time").dt.truncate("1mo")``.
    memory
        About how many bytes to use; what does not fit waits on disk.
    folder
        Where it waits; None: the system's folder for temporary files.

    Examples
    --------
    >>> posts = pl.DataFrame({"user": ["ann", "bob"], "community": "pets", "text": ["Cats!", "cats, dogs"]})
    >>> count_tokens(posts).matrix.toarray().tolist()
    [[1, 0], [1, 1]]
    """
    filters = Filters(min_posts=min_posts, min_profiles=min_profiles, drop_largest=drop_largest)
    counting = Counting(options or TextOptions(), period, memory, folder)
    for table in [posts] if isinstance(posts, pl.DataFrame) else posts:
        counting.add(table)
    return counting.result(filters)


def counts(
    crowd: Crowd,
    *,
    communities: Iterable[str] | None = None,
    options: TextOptions | None = None,
    min_posts: int = 1,
    min_profiles: int = 1,
    drop_largest: int = 0,
    period: pl.Expr | None = None,
    memory: int = DEFAULT_MEMORY,
    progress: Progress | None = None,
) -> Counts:
    """Count the tokens of each identity of a crowd, or of some of its communities.

    The result is kept in the crowd's cache: asking again costs little until posts are added. Parameters are
    those of :func:`count_tokens`; `drop_largest` and `min_profiles` look at the communities asked for.
    """
    options = options or TextOptions()
    wanted = None if communities is None else sorted(set(communities))
    filters = Filters(min_posts=min_posts, min_profiles=min_profiles, drop_largest=drop_largest)
    place = crowd.cache / "counts" / name_of(crowd.data_hash, options, wanted, filters, period)
    known = load(place, memory)
    if known is None:
        counting = Counting(options, period, memory, crowd.cache)
        known = _count_crowd(crowd, counting, wanted, filters, memory, progress)
        save(known, place)
    return known


def _count_crowd(
    crowd: Crowd,
    counting: Counting,
    wanted: list[str] | None,
    filters: Filters,
    memory: int,
    progress: Progress | None,
) -> Counts:
    """Decide who is kept from the posts' owners alone, then read only the posts of those."""
    with crowd.connect(memory // 8) as database:
        database.register(
            "wanted", pl.DataFrame({"community": wanted or []}, {"community": pl.String}).to_arrow()
        )
        some = "" if wanted is None else "WHERE community IN (SELECT community FROM wanted)"
        owners = database.sql(
            f'SELECT "user", community, count(*) AS posts FROM posts {some} GROUP BY ALL'
        ).pl()
        why = reasons(owners, filters)
        kept = owners.filter(why.is_null())
        total, done = int(kept["posts"].sum()), 0
        for rows in database.sql(f"SELECT * FROM posts {some}").to_arrow_reader(FETCH_ROWS):
            table = pl.DataFrame(rows)
            own = table if len(kept) == len(owners) else table.join(kept, on=IDENTITY, how="semi")
            counting.add(own)
            done += len(own)
            if progress:
                progress(done, total, "counting words")
    counted = counting.result(Filters())
    dropped = pl.concat([counted.dropped, dropped_table(owners, why)]).sort("community", "user")
    return replace(counted, dropped=dropped)
