from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd import Crowd
from incrowd.errors import BudgetExceeded, InputError, SchemaError
from incrowd.text import Counts, TextOptions, count_tokens, counts, tokenise
from incrowd.text.counting import DiskArray, Filters, TokenTally, reasons

POSTS = pl.DataFrame(
    [
        ("ann", "pets", 0, "Cats, cats & DOGS"),
        ("ann", "pets", 86400 * 40, "dogs :)"),
        ("ann", "news", 1, "election"),
        ("bob", "pets", 2, "the and of"),
        ("bob", "news", 3, "cats"),
        ("eve", "news", 4, "an election!"),
        (None, "news", 5, "nobody wrote this"),
    ],
    schema={"user": pl.String, "community": pl.String, "time": pl.Int64, "text": pl.String},
    orient="row",
)


def as_dict(counted: Counts) -> dict[tuple[str, str, str], int]:
    matrix = counted.matrix.tocoo()
    who = counted.identities.select("user", "community").rows()
    return {
        (*who[r], counted.vocabulary[int(c)]): int(n)
        for r, c, n in zip(matrix.row, matrix.col, matrix.data, strict=True)
    }


def same(a: Counts, b: Counts) -> bool:
    return (
        a.matrix.shape == b.matrix.shape
        and (a.matrix != b.matrix).nnz == 0
        and a.identities.equals(b.identities)
        and a.vocabulary.equals(b.vocabulary)
        and a.dropped.equals(b.dropped)
        and a.options_hash == b.options_hash
    )


def test_counts_by_hand() -> None:
    counted = count_tokens(POSTS)
    assert as_dict(counted) == {
        ("ann", "pets", "cats"): 2,
        ("ann", "pets", "dogs"): 2,
        ("ann", "pets", ":)"): 1,
        ("ann", "news", "election"): 1,
        ("bob", "news", "cats"): 1,
        ("eve", "news", "election"): 1,
    }
    assert counted.identities.rows() == [
        ("ann", "news", 1),
        ("bob", "news", 1),
        ("eve", "news", 1),
        ("ann", "pets", 2),
    ]
    assert counted.vocabulary.to_list() == [":)", "cats", "dogs", "election"]
    assert counted.dropped.rows() == [("bob", "pets", "empty_profile")]
    assert counted.options_hash == TextOptions().hash
    assert repr(counted) == "Counts(4 identities, 4 tokens, 1 identities dropped)"


WORDS = st.sampled_from(["cat", "dog", "bird", "the", ":)", "http://a.example/x", "don't"])
ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "a:b", "1", "11"]),
        st.sampled_from(["x", "b:x", "1", "ü"]),
        st.lists(WORDS, max_size=5).map(" ".join),
    ),
    min_size=1,
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(rows=ROWS, seed=st.integers(0, 99), size=st.integers(1, 31))
def test_order_and_cutting_do_not_matter(rows: list[tuple[str, str, str]], seed: int, size: int) -> None:
    posts = pl.DataFrame(rows, schema=["user", "community", "text"], orient="row")
    whole = count_tokens(posts)
    shuffled = posts.sample(fraction=1.0, shuffle=True, seed=seed)
    assert same(whole, count_tokens(shuffled.iter_slices(size)))
    expected: dict[tuple[str, str, str], int] = {}
    for user, community, text in rows:
        for token in tokenise(text):
            expected[user, community, token] = expected.get((user, community, token), 0) + 1
    assert as_dict(whole) == expected


def test_profiles_of_a_community_are_counted_before_the_post_filter() -> None:
    # Three profiles, of which one has enough posts: the community stays, the profile too.
    table = pl.DataFrame({"user": ["a", "b", "c"], "community": "x", "posts": [100, 1, 1]})
    why = reasons(table, Filters(min_posts=100, min_profiles=3))
    assert why.to_list() == [None, "too_few_posts", "too_few_posts"]


def test_each_dropped_identity_has_its_reason() -> None:
    table = pl.DataFrame(
        {"user": list("abcabxa"), "community": list("LLLMMMs"), "posts": [9, 9, 1, 9, 1, 9, 9]}
    )
    why = reasons(table, Filters(min_posts=5, min_profiles=2, drop_largest=1))
    assert why.to_list() == ["large_community"] * 3 + [None, "too_few_posts", None, "small_community"]


def test_communities_of_the_same_size_are_dropped_by_name() -> None:
    table = pl.DataFrame({"user": ["a", "a"], "community": ["y", "x"], "posts": [1, 1]})
    assert reasons(table, Filters(drop_largest=1)).to_list() == [None, "large_community"]


def test_filters_take_rows_and_columns_out() -> None:
    counted = count_tokens(POSTS, drop_largest=1)
    assert counted.vocabulary.to_list() == [":)", "cats", "dogs"]
    assert counted.matrix.toarray().tolist() == [[1, 2, 2]]
    assert set(counted.dropped["reason"]) == {"large_community", "empty_profile"}


def test_periods_split_an_identity() -> None:
    counted = count_tokens(POSTS, period=pl.from_epoch("time").dt.truncate("1mo"))
    ann = counted.identities.filter(user="ann", community="pets")
    assert ann["period"].dt.month().to_list() == [1, 2]
    assert ann["posts"].to_list() == [1, 1]
    assert counted.dropped.rows() == [("bob", "pets", "empty_profile")]
    assert counted.matrix.sum() == count_tokens(POSTS).matrix.sum()


def test_nobody_gives_an_empty_matrix() -> None:
    for posts in (POSTS.clear(), [], POSTS.filter(user="bob", community="pets")):
        assert count_tokens(posts).matrix.shape == (0, 0)


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    return Crowd.from_frame(POSTS.drop_nulls("user"), path=tmp_path / "crowd")


def test_a_crowd_counts_like_its_posts(crowd: Crowd) -> None:
    assert same(counts(crowd), count_tokens(POSTS))
    assert same(counts(crowd, min_posts=2), count_tokens(POSTS, min_posts=2))
    news = count_tokens(POSTS.filter(community="news"))
    assert same(counts(crowd, communities=["news"]), news)
    assert same(counts(crowd, communities=["news"], min_profiles=3), news)
    assert counts(crowd, communities=["nowhere"]).matrix.shape == (0, 0)


def test_the_second_time_comes_from_the_cache(crowd: Crowd) -> None:
    calls: list[tuple[float, float | None, str]] = []

    def progress(done: float, total: float | None, what: str) -> None:
        calls.append((done, total, what))

    first = counts(crowd, progress=progress)
    assert calls[-1] == (6, 6, "counting words")
    calls.clear()
    assert same(first, counts(crowd, progress=progress))
    assert same(first, counts(crowd, progress=progress, options=TextOptions()))
    assert calls == []
    assert not same(first, counts(crowd, options=TextOptions(keep_stopwords=True), progress=progress))
    assert calls


def test_a_large_matrix_is_paged_in(crowd: Crowd) -> None:
    from incrowd.text.counting import load

    first = counts(crowd)
    (place,) = (crowd.cache / "counts").iterdir()
    again = load(place, memory=4)
    assert again is not None
    assert not again.matrix.data.flags.owndata
    assert not again.matrix.data.flags.writeable
    assert same(first, again)


@pytest.mark.parametrize("damaged", ["data.npy", "vocabulary.parquet", "summary.json"])
@pytest.mark.parametrize("remains", [None, b"", b"nonsense"])
def test_a_damaged_cache_is_computed_again(crowd: Crowd, damaged: str, remains: bytes | None) -> None:
    first = counts(crowd)
    (place,) = (crowd.cache / "counts").iterdir()
    (place / damaged).unlink()
    if remains is not None:
        (place / damaged).write_bytes(remains)
    assert same(first, counts(crowd))
    assert same(first, counts(crowd))


def test_new_posts_are_counted(crowd: Crowd) -> None:
    before = counts(crowd)
    crowd.add_frame(pl.DataFrame({"user": "eve", "community": "news", "time": 9, "text": "fish"}), "posts")
    assert counts(crowd).matrix.sum() == before.matrix.sum() + 1


def test_mistakes_are_named() -> None:
    with pytest.raises(SchemaError, match=r"got author, text\. Rename what stands for: user, community"):
        count_tokens(pl.DataFrame({"author": ["a"], "text": ["b"]}))
    with pytest.raises(BudgetExceeded, match="at least 512 MiB, got 1 MiB"):
        count_tokens(POSTS, memory=2**20)
    with pytest.raises(InputError, match="min_posts must be a whole number of at least 1, got 0"):
        count_tokens(POSTS, min_posts=0)


POST = st.tuples(st.integers(0, 5), st.lists(st.integers(0, 7), max_size=6))


@settings(max_examples=60, deadline=None)
@given(
    batches=st.lists(st.lists(POST, max_size=8), max_size=6),
    memory=st.sampled_from([0, 30, 200, 10**6]),
    rows=st.permutations([0, 1, 2, 3, -1, -1]),
    tokens=st.permutations(range(8)),
)
def test_counts_are_those_of_a_counter(
    batches: list[list[tuple[int, list[int]]]], memory: int, rows: list[int], tokens: list[int]
) -> None:
    tally = TokenTally(memory)
    for batch in batches:
        words = np.array([token for _, post in batch for token in post], np.int32)
        owners, lengths = [row for row, _ in batch], [len(post) for _, post in batch]
        tally.add(np.array(owners, np.int64), words, np.array(lengths, np.int64))
    seen = tally.tokens_seen(np.array(rows), 8)
    matrix = tally.matrix(np.array(rows), np.array(tokens))
    posts = [post for batch in batches for post in batch if rows[post[0]] >= 0]
    kept = Counter((rows[row], tokens[token]) for row, post in posts for token in post)
    assert matrix.shape == (4, 8)
    assert matrix.has_canonical_format
    assert {(r, c): matrix[r, c] for r, c in zip(*matrix.nonzero(), strict=True)} == kept
    assert {tokens[token] for token in np.flatnonzero(seen)} == {token for _, token in kept}


def test_what_does_not_fit_waits_on_disk_and_leaves_nothing_behind(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    rows, lengths = rng.integers(0, 300, 4_000), rng.integers(0, 10, 4_000)
    tokens = (rng.zipf(1.3, lengths.sum()) % 1000).astype(np.int32)
    tally = TokenTally(6_000, tmp_path)
    ends = np.cumsum(lengths)
    for part in np.array_split(np.arange(4_000), 37):
        tally.add(rows[part], tokens[ends[part[0]] - lengths[part[0]] : ends[part[-1]]], lengths[part])
    matrix = tally.matrix(np.arange(300), np.arange(1000)[::-1].copy())
    expected = np.zeros((300, 1000), np.int64)
    np.add.at(expected, (np.repeat(rows, lengths), 999 - tokens), 1)
    assert (matrix.toarray() == expected).all()
    assert not matrix.data.flags.owndata  # a view of a file
    assert list(tmp_path.iterdir()) == []  # which has no name


def test_an_array_on_disk_is_an_array(tmp_path: Path) -> None:
    array = DiskArray(np.int32, tmp_path)
    assert len(array.mapped()) == 0
    assert array.append(np.arange(5)) == slice(0, 5)
    assert array.append(np.arange(5, 10)) == slice(5, 10)
    assert array[3:7].tolist() == [3, 4, 5, 6]
    assert array[8:3].tolist() == []
    mapped = array.mapped()
    del array
    assert mapped.tolist() == list(range(10))
