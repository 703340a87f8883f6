"""How often each identity used each token: the sparse matrix that profiles are made of, counted in bounded memory.

Tokens wait as plain numbers, post by post, in memory or on disk. At the end they are laid out row by row, each
row is sorted, and equal neighbours are counted: some rows at a time where not all fit.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from incrowd.crowd import Crowd
from incrowd.crowd.array_cache import DiskArray
from incrowd.crowd.schema import COLUMNS
from incrowd.crowd.tables import Longs, Shown, fetched
from incrowd.errors import BudgetExceeded, InputError, SchemaError
from incrowd.text.options import TextOptions
from incrowd.text.tokeniser import Ints, RowTable, Tokeniser

BYTES_PER_TOKEN = 4


@dataclass
class _Batch:
    """Some posts: the row each belongs to, how many tokens it has, and all tokens end to end."""

    rows: Ints
    lengths: Ints
    tokens: Ints | slice
    """A slice says where on disk."""


class TokenTally:
    """Counts how often each row uses each token, within about `memory` bytes.

    >>> tally = TokenTally(memory=10**6)
    >>> tally.add(np.array([1, 0, 1]), np.array([3, 3, 2, 3]), np.array([2, 1, 1]))
    >>> tally.matrix(row_places=np.array([0, 1]), token_places=np.array([-1, -1, 0, 1])).toarray().tolist()
    [[1, 0], [0, 3]]
    """

    def __init__(self, memory: int, folder: Path | None = None) -> None:
        self._share = memory // 3  # one for tokens that wait, one for a block of rows, one for the result
        self._folder = folder
        self._batches: list[_Batch] = []
        self._disk = DiskArray(np.int32, folder)
        self._held = 0

    def add(self, rows: npt.NDArray[np.integer], tokens: Ints, lengths: npt.NDArray[np.integer]) -> None:
        """Add posts: the row each belongs to, their tokens end to end, and how many each has."""
        batch = _Batch(rows.astype(np.int32), lengths.astype(np.int32), tokens.astype(np.int32))
        self._batches.append(batch)
        self._held += len(tokens)
        if self._held * BYTES_PER_TOKEN > self._share:
            self._spill()

    def _spill(self) -> None:
        for batch in self._batches:
            if not isinstance(batch.tokens, slice):
                batch.tokens = self._disk.append(batch.tokens)
        self._held = 0

    def _read(self, row_places: Longs, first: int, last: int) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield the batches that hold posts of the rows from place `first` up to `last`."""
        for batch in self._batches:
            places = row_places[batch.rows]
            if not ((places >= first) & (places < last)).any():
                continue
            tokens = self._disk[batch.tokens] if isinstance(batch.tokens, slice) else batch.tokens
            yield batch.rows, batch.lengths, tokens

    def tokens_seen(self, row_places: Longs, size: int) -> npt.NDArray[np.bool_]:
        """Say which of `size` tokens occur in a row that has a place."""
        from incrowd.text.kernels import mark_seen  # Numba takes a third of a second to load

        seen = np.zeros(size, np.bool_)
        for batch in self._read(row_places, 0, len(row_places)):
            mark_seen(*batch, row_places, seen)
        return seen

    def matrix(self, row_places: Longs, token_places: Longs) -> sp.csr_matrix:
        """Return the counts with every row and token at its place; a row's place of -1 leaves it out."""
        starts = np.append(0, np.cumsum(self._row_sizes(row_places)))
        if starts[-1] <= self._most:
            block = self._count_rows(row_places, token_places, starts, 0)
        else:
            block = self._count_on_disk(row_places, token_places)
        indptr = np.append(0, np.cumsum(block.lengths))
        index_type = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64
        shape = len(starts) - 1, int(token_places.max(initial=-1)) + 1
        return sp.csr_matrix((block.counts, block.columns, indptr.astype(index_type)), shape=shape)

    def _row_sizes(self, row_places: Longs) -> Longs:
        sizes = np.zeros(int(row_places.max(initial=-1)) + 1, np.int64)
        for batch in self._batches:
            places = row_places[batch.rows]
            kept = places >= 0
            sizes += np.bincount(places[kept], batch.lengths[kept], minlength=len(sizes)).astype(np.int64)
        return sizes

    def _count_rows(self, row_places: Longs, token_places: Longs, starts: Longs, first: int) -> _RowBlock:
        """Count the rows from place `first` on whose tokens go between `starts`."""
        from incrowd.text.kernels import count_sorted, lay_out  # Numba takes a third of a second to load

        starts = starts - starts[0]
        columns, cursors = np.empty(starts[-1], np.int32), starts[:-1].copy()
        for batch in self._read(row_places, first, first + len(cursors)):
            lay_out(*batch, row_places, token_places, first, cursors, columns)
        counts, lengths = np.empty(starts[-1], np.int32), np.empty(len(cursors), np.int64)
        size = count_sorted(columns, starts, counts, lengths)
        return _RowBlock(columns[:size], counts[:size], lengths)

    def blocks(self, row_places: Longs, token_places: Longs) -> Iterator[_RowBlock]:
        """Yield the counts of all rows by place, as many rows at a time as fit."""
        starts = np.append(0, np.cumsum(self._row_sizes(row_places)))
        for first, last in _row_blocks(starts, self._most):
            yield self._count_rows(row_places, token_places, starts[first : last + 1], first)

    @property
    def _most(self) -> int:
        """So many tokens are counted at a time."""
        return self._share // (2 * BYTES_PER_TOKEN)

    def _count_on_disk(self, row_places: Longs, token_places: Longs) -> _RowBlock:
        """Count straight into files."""
        columns, counts = DiskArray(np.int32, self._folder), DiskArray(np.int32, self._folder)
        lengths = [np.zeros(0, np.int64)]
        for block in self.blocks(row_places, token_places):
            columns.append(block.columns)
            counts.append(block.counts)
            lengths.append(block.lengths)
        return _RowBlock(columns.mapped(), counts.mapped(), np.concatenate(lengths))


@dataclass(frozen=True)
class _RowBlock:
    """Some rows of the matrix: columns and counts end to end, and how many each row has."""

    columns: Ints
    counts: Ints
    lengths: Longs


def _row_blocks(starts: Longs, most: int) -> Iterator[tuple[int, int]]:
    """Cut the rows into blocks of at most `most` tokens, but at least one row."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
        yield first, last
        first = last


# Which identities are worth a profile, and why the others are not.


class Dropped(StrEnum):
    """Why an identity has no counts. The codes are stable: other programs count them."""

    EMPTY_PROFILE = "empty_profile"
    """Nothing was left of its posts but stop words."""
    TOO_FEW_POSTS = "too_few_posts"
    SMALL_COMMUNITY = "small_community"
    LARGE_COMMUNITY = "large_community"


@dataclass(frozen=True, kw_only=True)
class Filters:
    """How much an identity and its community must have to be kept."""

    min_posts: int = 1
    """Posts of an identity."""
    min_profiles: int = 1
    """Identities of a community, counted before `min_posts` is applied."""
    drop_largest: int = 0
    """How many of the communities with the most identities to leave out."""

    def __post_init__(self) -> None:
        for name, least in (("min_posts", 1), ("min_profiles", 1), ("drop_largest", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise InputError(f"counts: {name} must be a whole number of at least {least}, got {value!r}.")


def reasons(identities: pl.DataFrame, filters: Filters) -> pl.Series:
    """Return, for each row of `identities` (user, community, posts), why it is dropped; null: it is kept.

    >>> table = pl.DataFrame({"user": ["a", "b"], "community": ["x", "x"], "posts": [1, 9]})
    >>> reasons(table, Filters(min_posts=5)).to_list()
    ['too_few_posts', None]
    """
    profiles = identities.group_by("community").agg(profiles=pl.col("user").n_unique())
    # Ties in size are broken by name, so that the same data give the same answer.
    by_size = profiles.sort(["profiles", "community"], descending=[True, False])
    largest = by_size["community"].head(filters.drop_largest)
    small = profiles.filter(pl.col("profiles") < filters.min_profiles)["community"]
    community = pl.col("community")
    return identities.select(
        pl.when(community.is_in(largest.implode()))
        .then(pl.lit(Dropped.LARGE_COMMUNITY.value))
        .when(community.is_in(small.implode()))
        .then(pl.lit(Dropped.SMALL_COMMUNITY.value))
        .when(pl.col("posts") < filters.min_posts)
        .then(pl.lit(Dropped.TOO_FEW_POSTS.value))
        .alias("reason")
    )["reason"]


# The work behind :mod:`incrowd.text.counting`: posts in any order in, one sorted count matrix out.

MIB = 2**20
LIBRARIES = 448 * MIB
"""What Python, the libraries and the posts at hand take, whatever the crowd's size."""
LEAST_MEMORY = 512 * MIB
IDENTITY = ["user", "community"]
_NOBODY = dict.fromkeys([*IDENTITY, "period"], pl.String)


@dataclass(frozen=True)
class Counts:
    """How often each identity used each token.

    Identities are sorted by community and user, tokens by code point, so that the same posts give the same
    matrix however they arrive.
    """

    matrix: sp.csr_matrix
    """Rows: identities; columns: tokens; no row and no column is empty."""
    identities: pl.DataFrame
    """user, community (and period, if asked for), and how many posts they wrote."""
    vocabulary: pl.Series
    dropped: pl.DataFrame
    """user, community, reason (:class:`~incrowd.text.counting.Dropped`)."""
    options_hash: str

    def __repr__(self) -> str:
        rows, columns = self.matrix.shape
        return f"Counts({rows:,} identities, {columns:,} tokens, {len(self.dropped):,} identities dropped)"


class Counting:
    """Counts tokens of identities, table by table, within a memory budget."""

    def __init__(
        self, options: TextOptions, period: pl.Expr | None, memory: int, folder: Path | None = None
    ) -> None:
        if memory < LEAST_MEMORY:
            least, got = LEAST_MEMORY // MIB, memory / MIB
            raise BudgetExceeded(f"memory: counting words needs at least {least} MiB, got {got:,.0f} MiB.")
        self._options = options
        self._period = period
        self._memory = memory
        self._tokeniser = Tokeniser(options)
        self._tally = TokenTally(memory - LIBRARIES, folder)
        self._identities = RowTable()
        self._posts: Longs = np.zeros(0, np.int64)
        self._tokens: Longs = np.zeros(0, np.int64)

    def add(self, posts: pl.DataFrame) -> None:
        """Count the posts of one table; rows without a user or a community are left out."""
        missing = [name for name in (*IDENTITY, "text") if name not in posts.columns]
        if missing:
            raise SchemaError(
                f"posts: expected the columns user, community and text, got {', '.join(posts.columns)}. "
                f"Rename what stands for: {', '.join(missing)}."
            )
        posts = posts.filter(pl.col("user").is_not_null() & pl.col("community").is_not_null())
        keys = (
            posts.select(IDENTITY) if self._period is None else posts.select(*IDENTITY, period=self._period)
        )
        rows = self._identities.numbers_of(keys)
        found = self._tokeniser.numbers(posts["text"])
        self._tally.add(rows, found.numbers, found.lengths)
        self._posts = _added(self._posts, rows, np.ones(len(rows), np.int64), len(self._identities))
        self._tokens = _added(self._tokens, rows, found.lengths, len(self._identities))
        self._check_vocabulary()

    def _check_vocabulary(self) -> None:
        if self._tokeniser.bytes_used > self._memory // 2:
            raise BudgetExceeded(
                f"memory: the distinct words alone take more than half of {self._memory / MIB:,.0f} MiB. "
                "Give more memory, or count fewer communities at a time."
            )

    def rows(self) -> CountedRows:
        """Return everybody who used a word, with counts that are not laid out yet; call it once, last."""
        everyone = self._everyone()
        kept = everyone.filter(pl.col("tokens") > 0).sort("community", "user")
        row_places = _places(kept["number"].to_numpy(), len(everyone))
        tokens = self._tokeniser.vocabulary()
        seen = np.flatnonzero(self._tally.tokens_seen(row_places, len(tokens)))
        identities = kept.select(*IDENTITY, "posts")
        return CountedRows(identities, tokens.gather(seen), self._tally, row_places, seen, len(tokens))

    def _everyone(self) -> pl.DataFrame:
        """Return all identities by number, with their posts and tokens."""
        everyone = self._identities.rows() if len(self._identities) else pl.DataFrame(schema=_NOBODY)
        return everyone.with_columns(
            posts=pl.Series(self._posts), tokens=pl.Series(self._tokens), number=pl.int_range(pl.len())
        )

    def result(self, filters: Filters) -> Counts:
        """Return the counts of those who pass the filters; call it once, last."""
        everyone = owners = self._everyone()
        if self._period is not None:
            owners = everyone.group_by(IDENTITY).agg(pl.col("posts", "tokens").sum())
        empty = pl.when(owners["tokens"] == 0).then(pl.lit(Dropped.EMPTY_PROFILE.value))
        why = reasons(owners, filters).fill_null(pl.select(empty).to_series())
        kept = everyone.filter(pl.col("tokens") > 0)
        if why.count():
            kept = kept.join(owners.filter(why.is_null()), on=IDENTITY, how="semi")
        kept = kept.sort("community", "user", *(["period"] if self._period is not None else []))
        row_places = _places(kept["number"].to_numpy(), len(everyone))
        tokens = self._tokeniser.vocabulary()
        seen = np.flatnonzero(self._tally.tokens_seen(row_places, len(tokens)))
        order = tokens.gather(seen).arg_sort().to_numpy()
        return Counts(
            matrix=self._tally.matrix(row_places, _places(seen[order], len(tokens))),
            identities=kept.drop("tokens", "number"),
            vocabulary=tokens.gather(seen[order]).rename("token"),
            dropped=dropped_table(owners, why),
            options_hash=self._options.hash,
        )


@dataclass(frozen=True, eq=False)
class CountedRows:
    """How often everybody used each word, waiting to be laid out: some rows at a time, in any order of the words."""

    identities: pl.DataFrame
    """user, community, posts; in the order of the rows."""
    vocabulary: pl.Series
    """The words that somebody used, in no order."""
    _tally: TokenTally
    _row_places: Longs
    _seen: Longs
    _tokens: int

    def blocks(self, order: Longs) -> Iterator[_RowBlock]:
        """Yield some rows after the other, all in the end; `order` lists the words as they shall be numbered."""
        yield from self._tally.blocks(self._row_places, _places(self._seen[order], self._tokens))


def dropped_table(owners: pl.DataFrame, why: pl.Series) -> pl.DataFrame:
    """Return those who have a reason to be dropped, in a fixed order."""
    table = owners.select(IDENTITY).with_columns(reason=why)
    return table.filter(pl.col("reason").is_not_null()).sort("community", "user")


def _added(totals: Longs, rows: Ints, amounts: Longs, size: int) -> Longs:
    """Return the totals by row, after adding amounts to some rows."""
    added = np.bincount(rows, weights=amounts, minlength=size).astype(np.int64)
    added[: len(totals)] += totals
    return added


def _places(members: npt.NDArray[np.int64], size: int) -> Longs:
    """Return, for each of `size` numbers, its place among the members; -1: it is none."""
    places = np.full(size, -1, np.int64)
    places[members] = np.arange(len(members))
    return places


# Counts on disk: computed once for the same posts and options, then read back.

LAYOUT = 1
"""Raised when the files below change, so that old ones are not read."""
SUMMARY = "summary.json"
_MATRIX = ("data", "indices", "indptr")


def name_of(
    data_hash: str,
    options: TextOptions,
    communities: list[str] | None,
    filters: Filters,
    period: pl.Expr | None,
) -> str:
    """Return a name that only the same question about the same posts has."""
    question = [
        LAYOUT,
        data_hash,
        options.hash,
        communities,
        [filters.min_posts, filters.min_profiles, filters.drop_largest],
        None if period is None else period.meta.serialize().hex(),
    ]
    return blake2b(json.dumps(question).encode(), digest_size=16).hexdigest()


def save(counts: Counts, place: Path) -> None:
    """Write counts into a folder, whole or not at all; a cache may fail to, and nothing is lost."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=place.parent, prefix="draft-"))
    except OSError:
        return
    try:
        _write(counts, draft)
        draft.rename(place)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)


def load(place: Path, memory: int) -> Counts | None:
    """Read counts back, or None if they are not there or damaged. A large matrix is paged in on demand."""
    if not (place / SUMMARY).exists():
        return None
    try:
        return _read(place, memory)
    except (OSError, EOFError, ValueError, KeyError, pl.exceptions.PolarsError):
        shutil.rmtree(place, ignore_errors=True)
        return None


def _read(place: Path, memory: int) -> Counts:
    summary = json.loads((place / SUMMARY).read_text("utf-8"))
    files = [place / f"{part}.npy" for part in _MATRIX]
    is_large = sum(map(os.path.getsize, files)) > memory // 4
    data, indices, indptr = (np.load(file, mmap_mode="r" if is_large else None) for file in files)
    return Counts(
        matrix=sp.csr_matrix((data, indices, indptr), shape=summary["shape"]),
        identities=pl.read_parquet(place / "identities.parquet"),
        vocabulary=pl.read_parquet(place / "vocabulary.parquet")["token"],
        dropped=pl.read_parquet(place / "dropped.parquet"),
        options_hash=summary["options_hash"],
    )


def _write(counts: Counts, folder: Path) -> None:
    for part in _MATRIX:
        np.save(folder / f"{part}.npy", getattr(counts.matrix, part))
    counts.identities.write_parquet(folder / "identities.parquet")
    counts.vocabulary.to_frame().write_parquet(folder / "vocabulary.parquet")
    counts.dropped.write_parquet(folder / "dropped.parquet")
    summary = {"shape": counts.matrix.shape, "options_hash": counts.options_hash}
    (folder / SUMMARY).write_text(json.dumps(summary), encoding="utf-8")


Progress = Callable[[float, float | None, str], None]
DEFAULT_MEMORY = 2**30


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
        See :class:`~incrowd.text.counting.Filters`.
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


def count_rows(crowd: Crowd, community: str, options: TextOptions, memory: int) -> CountedRows:
    """Count the tokens of everybody in one community, however large, without holding all counts at once."""
    counting = Counting(options, None, memory, crowd.cache)
    for rows in crowd.pieces("posts", ["user", "community", "text"], pl.col("community") == community):
        counting.add(rows)
    return counting.rows()


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
            "wanted", Shown(pl.DataFrame({"community": wanted or []}, {"community": pl.String}))
        )
        some = "" if wanted is None else "WHERE community IN (SELECT community FROM wanted)"
        owners = fetched(
            database.sql(f'SELECT "user", community, count(*) AS posts FROM posts {some} GROUP BY ALL')
        )
    why = reasons(owners, filters)
    kept = owners.filter(why.is_null())
    total, done = int(kept["posts"].sum()), 0
    asked = (
        None if wanted is None else pl.col("community").is_in(pl.Series(wanted, dtype=pl.String).implode())
    )
    for table in crowd.pieces("posts", list(COLUMNS["posts"]), asked):
        own = table if len(kept) == len(owners) else table.join(kept, on=IDENTITY, how="semi")
        counting.add(own)
        done += len(own)
        if progress:
            progress(done, total, "counting words")
    counted = counting.result(Filters())
    dropped = pl.concat([counted.dropped, dropped_table(owners, why)]).sort("community", "user")
    return replace(counted, dropped=dropped)
