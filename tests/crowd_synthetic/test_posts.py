from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import synthetic
from incrowd.crowd.schema import COLUMNS
from incrowd.errors import InputError

WEEK = 7 * 86_400
SMALL = synthetic.posts(users=60, communities=5, posts=6_000, warts=True, seed=3)
ROWS = SMALL.to_frame()


def topic_words(crowd: synthetic.SyntheticPosts, rows: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the number of words of each topic they hold: user, time, topic, words."""
    of_topic = [(word, name) for name, topic in crowd.topics.items() for word in topic.words]
    lists = rows.select(
        "user", "time", "text", word=pl.col("text").str.to_lowercase().str.extract_all(r"[a-z0-9]+")
    )
    words = lists.with_row_index("post").explode("word", empty_as_null=False)
    known = pl.DataFrame(of_topic, schema=["word", "topic"], orient="row")
    return words.join(known, on="word").group_by("post", "user", "time", "topic").agg(words=pl.len())


@settings(max_examples=8, deadline=None)
@given(chunk=st.integers(1, 7_000))
def test_rows_do_not_depend_on_the_chunk_size(chunk):
    chunk = max(chunk, 50)  # tiny chunks are tested on a tiny crowd
    assert pl.concat(SMALL.frames(chunk)).equals(ROWS)


def test_rows_do_not_depend_on_tiny_chunks():
    crowd = synthetic.posts(users=5, communities=2, posts=220)
    assert pl.concat(crowd.frames(1)).equals(crowd.to_frame())


def test_the_same_seed_gives_the_same_rows_and_another_seed_others():
    assert replace(SMALL).to_frame().equals(ROWS)
    other = replace(SMALL, seed=4).to_frame()
    assert (other["text"] == ROWS["text"]).mean() < 0.01


def test_rows_have_the_columns_of_the_table():
    assert dict(ROWS.schema) == COLUMNS["posts"]
    assert ROWS.null_count().sum_horizontal().item() == 0
    assert (ROWS["text"].str.strip_chars() == ROWS["text"]).all()


def test_counts_are_exactly_as_asked_and_agree_with_the_truth():
    counted = ROWS.group_by("user", "community").agg(posts=pl.len().cast(pl.Int64)).sort("user", "community")
    assert counted.equals(SMALL.truth.identities.sort("user", "community"))
    assert (ROWS.height, ROWS["user"].n_unique(), ROWS["community"].n_unique()) == (6_000, 60, 5)
    assert counted.height == 120
    assert counted["posts"].min() >= 20


@settings(max_examples=25, deadline=None)
@given(
    users=st.integers(1, 40), communities=st.integers(1, 12), fraction=st.floats(0, 1), seed=st.integers(0, 9)
)
def test_any_number_of_identities_can_be_placed(users, communities, fraction, seed):
    low, high = max(users, communities), users * communities
    identities = low + int(fraction * (high - low))
    crowd = synthetic.posts(users=users, communities=communities, identities=identities, seed=seed)
    members = crowd.members
    assert len(np.unique(members.user * communities + members.community)) == identities
    assert len(np.unique(members.user)) == users
    assert len(np.unique(members.community)) == communities


def test_pairs_are_the_same_user_in_two_communities():
    pairs, identities = SMALL.truth.pairs, SMALL.truth.identities
    per_user = identities.group_by("user").len()["len"]
    assert pairs.height == (per_user * (per_user - 1) // 2).sum()
    assert (pairs["source"] != pairs["target"]).all()
    assert (
        pairs.join(identities, left_on=["user", "source"], right_on=["user", "community"]).height
        == pairs.height
    )


def test_activity_communities_and_lengths_have_tails():
    crowd = synthetic.posts(users=2_000, communities=100, posts=200_000, fewest_posts=1)
    posts = np.sort(crowd.members.posts)[::-1]
    assert posts[: len(posts) // 10].sum() > 0.25 * posts.sum()
    sizes = np.sort(np.bincount(crowd.members.community))[::-1]
    assert sizes[0] > 8 * np.median(sizes)
    lengths = next(crowd.frames())["text"].str.split(" ").list.len().to_numpy()
    assert lengths.mean() == pytest.approx(crowd.words_per_post, rel=0.1)
    assert np.quantile(lengths, 0.99) > 4 * np.median(lengths)


def test_word_frequencies_fall_as_zipf_says():
    words = ROWS.select(pl.col("text").str.extract_all(r"[a-z]+").explode(empty_as_null=False).alias("word"))
    counts = words["word"].value_counts(sort=True)["count"].to_numpy()
    ranks = np.arange(1, 1001)
    slope = np.polyfit(np.log(ranks[20:]), np.log(counts[20:1000]), 1)[0]
    assert -1.6 < slope < -0.6


def test_posts_fall_into_the_period_and_people_keep_their_hours():
    time = ROWS["time"].to_numpy()
    assert time.min() >= SMALL.start
    assert time.max() < SMALL.start + SMALL.weeks * WEEK
    usual = ROWS.join(SMALL.truth.styles, on=["user", "community"], maintain_order="left")["hour"].to_numpy()
    away = np.abs((time % 86_400) / 3_600 - usual)
    assert np.minimum(away, 24 - away).mean() < 3


def test_identities_use_their_favourite_words_more_than_others_do():
    styles = SMALL.truth.styles
    words = ROWS.select(
        "user", "community", word=pl.col("text").str.to_lowercase().str.extract_all(r"[a-z]+")
    )
    words = words.explode("word", empty_as_null=False)
    owned = styles.select("user", "community", word="favourites").explode("word").with_columns(own=True)
    own = words.join(owned.unique(), on=["user", "community", "word"], how="left")["own"].is_not_null().mean()
    assert own == pytest.approx(0.18 * 0.58, abs=0.03)


def test_warts_appear_when_asked_for_and_only_then():
    plain = replace(SMALL, warts=False).to_frame()["text"]
    for wart in ("**", "](https://", "&amp;", "&gt; ", "\n\n", "\U0001f602", "`"):
        assert ROWS["text"].str.contains(wart, literal=True).any(), wart
        assert not plain.str.contains(wart, literal=True).any(), wart


def test_states_show_as_they_are():
    shares = {"lasting": 0.25, "passing": 0.25, "professional": 0.25}
    crowd = synthetic.posts(users=120, communities=1, posts=9_600, states=shares, occasional=0.0, seed=5)
    strong = topic_words(crowd, crowd.to_frame()).filter(pl.col("words") >= 3)
    shown = strong.group_by("user").agg(
        topics=pl.col("topic").n_unique(),
        topic=pl.col("topic").mode().first(),
        weeks=((pl.col("time") - crowd.start) // WEEK).n_unique(),
    )
    states = crowd.truth.states.join(shown, on="user", how="left", suffix="_shown")
    by_state = dict(states.partition_by("state", as_dict=True, include_key=False).items())
    lasting, passing = by_state["lasting",], by_state["passing",]
    professional, none = by_state["professional",], by_state["none",]
    assert (lasting["topic"] == lasting["topic_shown"]).all()
    assert (passing["topic"] == passing["topic_shown"]).all()
    assert lasting["weeks"].min() >= 3
    assert (passing["weeks"] == 1).all()
    assert (lasting["topics"] == 1).all()
    assert professional["topics"].median() == 4
    assert none["weeks"].null_count() > 0.8 * none.height


def test_topics_can_be_brought_along():
    topics = {"chess": synthetic.MadeUpTopic("games", ("gambit", "zugzwang", "castling"))}
    crowd = synthetic.posts(users=30, communities=1, topics=topics, states={"lasting": 1.0})
    assert set(crowd.truth.states["topic"]) == {"chess"}
    assert crowd.to_frame()["text"].str.to_lowercase().str.contains("zugzwang").mean() > 0.02


def test_topics_can_be_read_from_a_file(tmp_path):
    path = tmp_path / "topics.toml"
    path.write_text('[chess]\ndomain = "games"\nwords = ["gambit"]\n')
    assert synthetic.load_topics(path) == {"chess": synthetic.MadeUpTopic("games", ("gambit",))}
    path.write_text('[chess]\nwords = ["gambit"]\n')
    with pytest.raises(InputError, match=r"topic 'chess': expected 'domain'"):
        synthetic.load_topics(path)


@pytest.mark.parametrize(
    ("options", "place"),
    [
        ({"users": 0}, "users"),
        ({"communities": 0}, "communities"),
        ({"linkability": 1.5}, "linkability"),
        ({"users": 10, "communities": 2, "identities": 21}, "identities"),
        ({"users": 10, "communities": 2, "posts": 30}, "posts"),
        ({"states": {"lasting": 0.8, "passing": 0.4}}, "states"),
        ({"states": {"eternal": 0.1}}, "states"),
        ({"topics": {}}, "topics"),
        ({"vocabulary": 3}, "vocabulary"),
        ({"start": 1_000}, "start"),
    ],
)
def test_options_that_cannot_be_met_are_refused_with_the_place(options, place):
    with pytest.raises(InputError, match=f"synthetic {place}: expected"):
        synthetic.posts(**options)


def test_rows_are_distributions_over_the_stated_number_of_words():
    matrix = synthetic.profiles(200, vocabulary=8_000, distinct=300, seed=1)
    assert matrix.shape == (200, 8_000)
    assert np.allclose(matrix.sum(axis=1), 1)
    assert np.diff(matrix.indptr).mean() == pytest.approx(300, rel=0.1)
    assert matrix.has_canonical_format
    assert (matrix.data > 0).all()


def test_the_same_seed_gives_the_same_profiles_and_each_row_stands_alone():
    first = synthetic.profiles(30, vocabulary=1_000, distinct=50, communities=3)
    again = synthetic.profiles(60, vocabulary=1_000, distinct=50, communities=3)[:30]
    assert (first != again).nnz == 0
    assert (first != synthetic.profiles(30, vocabulary=1_000, distinct=50, communities=3, seed=1)).nnz > 0


def test_members_of_a_community_share_more_words():
    matrix = synthetic.profiles(60, vocabulary=5_000, distinct=200, communities=2)
    shared = ((matrix > 0).astype(np.int32) @ (matrix > 0).astype(np.int32).T).toarray()
    same = np.add.outer(np.arange(60), np.arange(60)) % 2 == 0
    np.fill_diagonal(shared, 0)
    assert shared[same].mean() > 1.2 * shared[~same].mean()


def test_more_distinct_words_than_the_vocabulary_bears_are_refused():
    with pytest.raises(InputError, match="synthetic distinct"):
        synthetic.profiles(10, vocabulary=100, distinct=80)
