"""Spaces agree with their readable references; what they say adds up; unknown posts are like nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from incrowd.crowd.synthetic.words import made_up_words
from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.exposure.learnt_spaces import (
    Embeddings,
    LdaSpace,
    WordVectors,
    fold_in,
    load_space,
    post_vector,
    save_space,
)
from incrowd.measures.exposure.space import BagOfWords, Encoder, Space, WordLists
from incrowd.measures.exposure.topics import Topic, TopicSet
from incrowd.measures.exposure.training import (
    EVENING,
    TrainOptions,
    documents,
    evening,
    excess,
    learn_embeddings,
    name_dimension,
    posts_on_topics,
    train_lda,
    train_word2vec,
    unit,
    with_levels,
    word_lists,
)
from incrowd.text import TextOptions

TOPICS = TopicSet((
    Topic("debts", "finance", ("debt", "loan")),
    Topic("gambling", "finance", ("casino", "bets")),
    Topic("stars", "sky", ("comet", "moon")),
))  # fmt: skip
TEXTS = pl.Series([
    "debt debt loan pancakes",
    "my casino bets and my loan",
    "pancakes",
    "",
    "comet over the moon",
])  # fmt: skip
HAS_MODEL = find_spec("wordllama") is not None
EMB = pytest.param("EMB", marks=pytest.mark.skipif(not HAS_MODEL, reason="needs the extra embeddings"))


@pytest.fixture(scope="module")
def background() -> pl.Series:
    rng = np.random.default_rng(4)
    themes = ["debt loan bank creditor owe", "casino bets poker dice chips", "comet moon planet orbit sky"]
    return pl.Series([" ".join(rng.choice(themes[i % 3].split(), 6)) for i in range(240)])


@pytest.fixture(scope="module")
def spaces(background: pl.Series) -> dict[str, Space]:
    options = TrainOptions(dims=4, rounds=60, min_count=2)
    posts = documents([background[:100], background[100:]], options)
    known = {
        "BOW": BagOfWords(TOPICS),
        "LDA": train_lda(posts, TOPICS, options),
        "W2V": train_word2vec(posts, TOPICS, TrainOptions(dims=6, rounds=2_000, min_count=2)),
    }
    everyday = made_up_words(400).to_list()
    rng = np.random.default_rng(5)
    mixed = posts[::8] + [rng.choice(everyday, 6).tolist() for _ in range(600)]
    return known | ({"EMB": learn_embeddings(mixed, TOPICS, options)} if HAS_MODEL else {})


def encoded(space: Space, texts: pl.Series = TEXTS) -> WordLists:
    return Encoder(space, TextOptions()).encode(texts)


def test_bag_of_words_by_hand() -> None:
    space = BagOfWords(TOPICS)
    similar = space.similarities(encoded(space))
    assert similar[0, 0] == pytest.approx(3 / np.sqrt(5) / np.sqrt(2))
    assert similar[1] == pytest.approx([1 / np.sqrt(6), 2 / np.sqrt(6), 0])


@pytest.mark.parametrize("name", ["BOW", "LDA", "W2V", EMB])
def test_a_post_without_a_known_word_is_like_no_topic(spaces: dict[str, Space], name: str) -> None:
    assert (spaces[name].similarities(encoded(spaces[name]))[2:4] == 0).all()


@pytest.mark.parametrize("name", ["BOW", "LDA", "W2V", EMB])
def test_posts_are_closest_to_what_they_are_about(spaces: dict[str, Space], name: str) -> None:
    similar = spaces[name].similarities(encoded(spaces[name]))
    assert similar[[0, 1, 4]].argmax(axis=1).tolist() == [0, 1, 2]
    assert (similar <= 1 + 1e-6).all()


@pytest.mark.parametrize("name", ["BOW", "LDA", "W2V", EMB])
def test_what_the_words_add_is_the_similarity(spaces: dict[str, Space], name: str) -> None:
    space = spaces[name]
    lists = encoded(space)
    similar = space.similarities(lists)
    for post in range(len(TEXTS)):
        for topic in range(3):
            shares = space.shares(lists.part(post, post + 1).words, topic)
            assert shares.sum() == pytest.approx(similar[post, topic], abs=1e-5)


@pytest.mark.parametrize("name", ["LDA", "W2V", EMB])
def test_a_latent_space_knows_words_that_nobody_listed(spaces: dict[str, Space], name: str) -> None:
    similar = spaces[name].similarities(encoded(spaces[name], pl.Series(["creditor bank owe"])))[0]
    assert similar.argmax() == 0
    assert similar[0] > 2 * similar[1:].max()


def test_posts_are_scored_alike_one_by_one_and_all_together(spaces: dict[str, Space]) -> None:
    for space in spaces.values():
        together = space.similarities(encoded(space))
        single = [space.similarities(encoded(space, TEXTS[i : i + 1]))[0] for i in range(len(TEXTS))]
        assert together == pytest.approx(np.stack(single), abs=1e-6)
        encoder = Encoder(space, TextOptions())
        assert [encoder.encode_one(text).words.tolist() for text in TEXTS] == [
            encoder.encode(pl.Series([text])).words.tolist() for text in TEXTS
        ]


def test_many_posts_on_many_threads_come_back_in_order(spaces: dict[str, Space]) -> None:
    space = spaces["LDA"]
    many = space.similarities(encoded(space, pl.concat([TEXTS] * 4_000)))
    assert (many == np.tile(many[: len(TEXTS)], (4_000, 1))).all()


def random_lda(rng: np.random.Generator, words: int = 30, dims: int = 8) -> LdaSpace:
    table = rng.random((words, dims)) * (rng.random((words, dims)) < 0.4)
    place, dim = np.nonzero(table)
    starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=words))])
    vectors = np.eye(3, dims, dtype=np.float32)
    prior = np.full(dims, 0.1, np.float32)
    names = tuple(f"w{i}" for i in range(words))
    return LdaSpace(
        TOPICS, names, starts, dim.astype(np.int32), table[table > 0].astype(np.float32), prior, vectors
    )


def test_the_compiled_fold_in_equals_the_reference() -> None:
    rng = np.random.default_rng(1)
    space = random_lda(rng)
    lengths = rng.integers(0, 12, 20)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    lists = WordLists(rng.integers(0, 30, bounds[-1]).astype(np.int32), bounds)
    mixtures = space.mixtures(lists)
    for post in range(20):
        words = lists.part(post, post + 1).words
        expected = fold_in(space, words)[0] if len(words) else np.zeros(8)
        assert mixtures[post] == pytest.approx(expected, abs=1e-4)


def test_the_compiled_word2vec_cosine_equals_the_reference() -> None:
    rng = np.random.default_rng(2)
    names = ("debt", "loan", "casino", "bets", "comet", "moon", "x", "y")
    space = WordVectors(TOPICS, names, rng.normal(size=(8, 5)).astype(np.float32), np.zeros(3, np.float32))
    words = np.array([0, 6, 7, 7, 2], np.int32)
    similar = space.similarities(WordLists(words, np.array([0, 5])))[0]
    for topic in range(3):
        vector, aim = post_vector(space, words, topic), space.topic_vectors[topic]
        expected = vector @ aim / np.linalg.norm(vector) / np.linalg.norm(aim)
        assert similar[topic] == pytest.approx(expected, abs=1e-5)


def word2vec_noise(dims: int, literal: bool, opposite: bool = False) -> float:
    """The mean score of posts of 30 random words (or words that point away from the topic)."""
    rng = np.random.default_rng(7)
    scores = []
    for _ in range(20):
        vectors = rng.normal(size=(31, dims)).astype(np.float32)
        if opposite:
            vectors[1:] = -vectors[0] + 0.2 * rng.normal(size=(30, dims))
        names = ("salient", *(f"n{i}" for i in range(30)))
        space = WordVectors(
            TopicSet((Topic("t", "d", ("salient",)),)), names, vectors, np.zeros(1, np.float32), literal
        )
        scores.append(
            space.similarities(WordLists(np.arange(1, 31, dtype=np.int32), np.array([0, 30])))[0, 0]
        )
    return float(np.mean(scores))


def test_as_printed_random_words_look_like_the_topic_and_opposite_words_even_more() -> None:
    assert word2vec_noise(20, literal=True) == pytest.approx(0.79, abs=0.03)
    assert word2vec_noise(20, literal=False) == pytest.approx(0.67, abs=0.03)
    assert word2vec_noise(500, literal=True) == pytest.approx(0.23, abs=0.03)
    assert word2vec_noise(500, literal=False) == pytest.approx(0.17, abs=0.03)
    assert word2vec_noise(20, literal=True, opposite=True) > 0.99
    assert word2vec_noise(20, literal=False, opposite=True) == 0


def test_training_is_the_same_for_the_same_seed(spaces: dict[str, Space], background: pl.Series) -> None:
    options = TrainOptions(dims=4, rounds=60, min_count=2)
    again = train_lda(documents([background], options), TOPICS, options)
    assert again.hash == spaces["LDA"].hash
    vectors = TrainOptions(dims=6, rounds=2_000, min_count=2)
    assert train_word2vec(documents([background], vectors), TOPICS, vectors).hash == spaces["W2V"].hash


def test_free_dimensions_are_named_by_where_salient_words_come_from(background: pl.Series) -> None:
    shares = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.1, 0.4, 0.5]])
    assert name_dimension(shares, [0, 1]) == 0
    assert name_dimension(shares, [2, 3]) == 1
    options = TrainOptions(dims=3, rounds=100, min_count=2, placing="dimension")
    space = train_lda(documents([background], options), TOPICS, options)
    assert space.similarities(encoded(space))[[0, 4]].argmax(axis=1).tolist() == [0, 2]
    assert (np.sort(space.topic_vectors, axis=1) == [0, 0, 1]).all()


def test_a_topic_lies_where_posts_on_it_differ_from_posts_at_large() -> None:
    posts = word_lists([["a", "b"], ["a", "unknown", "c"], ["b", "a", "b"]], ["a", "b", "c", "d"])
    assert posts.words.tolist() == [0, 1, 0, 2, 1, 0, 1]
    assert posts.bounds.tolist() == [0, 2, 4, 7]
    on = posts_on_topics(posts, [[0, 1], [2], [2, 3], []], 4)
    assert on.tolist() == [
        [True, False, False, False],
        [False, True, False, False],
        [True, False, False, False],
    ]
    vectors = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]])
    whole, halves = excess([vectors], on), excess([vectors[:2], vectors[2:]], on)
    assert whole == pytest.approx(halves)
    assert whole == pytest.approx(np.array([[0, 1, -1], [0, -2, 2], [0, 0, 0], [0, 0, 0]]) / 6)
    assert unit(whole)[0] == pytest.approx([0, np.sqrt(0.5), -np.sqrt(0.5)])
    assert (unit(whole)[2] == 0).all()


def test_embeddings_by_hand() -> None:
    vectors = np.array([[3, 4], [0, -4], [-1, 0]], np.float32)
    topics, aim = TopicSet((Topic("t", "d", ("a",)),)), np.eye(1, 2, dtype=np.float32)
    space = Embeddings(topics, ("a", "b", "c"), vectors, aim, prior=0.0)
    posts = WordLists(np.array([0, 0, 1, 2], np.int32), np.array([0, 1, 3, 3, 4]))
    assert space.similarities(posts).ravel() == pytest.approx([0.6, 1.0, 0.0, 0.0])
    assert space.shares(np.array([0, 1, 2]), 0) == pytest.approx([1.5, 0.0, -0.5])
    assert space.shares(np.array([2]), 0).tolist() == [0]
    # A prior of 12 beside a post of length 5: 3 of 13 lie along the topic.
    assert replace(space, prior=12.0).similarities(posts)[0, 0] == pytest.approx(3 / 13)
    assert replace(space, prior=12.0).shares(np.array([0]), 0) == pytest.approx([3 / 13])


@pytest.mark.skipif(not HAS_MODEL, reason="needs the extra embeddings")
def test_a_sentence_is_the_sum_of_its_words_as_the_model_says() -> None:
    from wordllama.inference import WordLlamaInference

    from incrowd.measures.exposure.learnt_spaces import _sentence_model, word_vectors

    # A copy of its own: the peer changes the tokeniser it is given.
    pieces, table = _sentence_model.__wrapped__()
    words = ["sertraline", "made", "me", "numb"]
    theirs = WordLlamaInference(table, pieces).embed(" ".join(words))[0]
    ours = word_vectors(words).sum(axis=0)
    assert ours / np.linalg.norm(ours) == pytest.approx(theirs / np.linalg.norm(theirs), abs=1e-5)


@pytest.mark.skipif(not HAS_MODEL, reason="needs the extra embeddings")
def test_embeddings_know_words_the_background_never_put_together() -> None:
    posts = [["pancakes", "syrup"], ["bicycle", "tyre"]] * 5
    space = learn_embeddings(posts, TOPICS, TrainOptions())
    assert space.similarities(encoded(space, pl.Series(["loan debt", "moon"]))).argmax(axis=1).tolist() == [
        0,
        2,
    ]
    # No post is on any topic, so each lies where its words lie; the words of a topic are always known.
    assert set(TOPICS.vocabulary) <= set(space.words)


def test_posts_spread_alike_once_evened_out_and_a_direction_without_spread_stays_small() -> None:
    rng = np.random.default_rng(3)
    posts = rng.normal(size=(4_000, 3)) * [4.0, 1.0, 0.0] + [5.0, 0.0, 1.0]
    even = posts @ evening([posts[:1_000], posts[1_000:]])
    mean_spread = 17 / 3
    expected = [16 / (16 + EVENING * mean_spread), 1 / (1 + EVENING * mean_spread), 0.0]
    assert even.var(axis=0) == pytest.approx(expected, abs=0.03)
    assert evening([posts]) == pytest.approx(evening([posts[:7], posts[7:]]), abs=1e-5)


def test_only_what_lies_above_what_other_posts_reach_counts_in_word2vec() -> None:
    names = ("debt", "loan", "casino", "bets", "comet", "moon")
    vectors = np.eye(6, 4, dtype=np.float32)
    vectors[1] = vectors[0]
    plain = WordVectors(TOPICS, names, vectors, np.zeros(3, np.float32))
    posts = [["debt", "loan"], ["casino"], ["debt", "casino"], ["loan"], ["moon"]]
    raised = with_levels(plain, posts)
    others = np.array([0.0, 1.0, 1.0, 0.0])  # every post but the first, which is on debts
    assert raised.levels[0] == pytest.approx(min(others.mean() + others.std(), 0.99))
    half = replace(plain, levels=np.full(3, 0.5, np.float32))
    lists = word_lists([["debt", "casino"], ["casino"]], names)
    cosine = plain.similarities(lists)[:, 1]
    assert half.similarities(lists)[:, 1] == pytest.approx(np.maximum(cosine - 0.5, 0) / 0.5)
    everybody_on_it = with_levels(plain, [["debt", "loan"]] * 3)
    assert everybody_on_it.levels[0] == 0


def test_word_vectors_lose_what_all_words_share(spaces: dict[str, Space], background: pl.Series) -> None:
    options = TrainOptions(dims=6, rounds=100, min_count=2, literal=True)
    printed = train_word2vec(documents([background], options), TOPICS, options)
    centred = spaces["W2V"]
    assert isinstance(centred, WordVectors)
    used = np.bincount(encoded(centred, background).words)
    assert np.abs(used @ centred.vectors).max() < 1e-2
    assert np.linalg.norm(printed.vectors.mean(axis=0)) > np.linalg.norm(centred.vectors.mean(axis=0))


def test_word_vectors_as_printed_are_kept_as_printed(background: pl.Series, tmp_path: Path) -> None:
    options = TrainOptions(dims=6, rounds=100, min_count=2, literal=True)
    space = train_word2vec(documents([background], options), TOPICS, options)
    save_space(space, tmp_path / "model.npz", {})
    again = load_space(tmp_path / "model.npz")
    assert isinstance(again, WordVectors)
    assert again.literal is True
    assert not again.levels.any()


@pytest.mark.parametrize("name", ["LDA", "W2V", EMB])
def test_a_model_file_reads_back_the_same_and_notices_damage(
    spaces: dict[str, Space], name: str, tmp_path: Path
) -> None:
    path, space = tmp_path / "model.npz", spaces[name]
    save_space(space, path, {"seed": 3})  # type: ignore[arg-type]
    again = load_space(path)
    assert again.hash == space.hash
    assert (again.similarities(encoded(again)) == space.similarities(encoded(space))).all()
    with np.load(path, allow_pickle=False) as file:
        assert json.loads(file["about"].tobytes())["origin"] == {"seed": 3}
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(UnreadableSource, match="learn it again"):
        load_space(path)
    with pytest.raises(UnreadableSource, match="no such model"):
        load_space(tmp_path / "none.npz")


def test_a_small_model_that_unpacks_to_a_large_one_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, about=np.zeros(64 * 2**20, np.uint8))
    assert path.stat().st_size < 2**20
    with pytest.raises(UnreadableSource, match="at most 32 MiB"):
        load_space(path, most_bytes=32 * 2**20)


def test_too_little_to_learn_from_is_explained() -> None:
    with pytest.raises(InputError, match="two words used 5 times"):
        documents([pl.Series(["one post"])], TrainOptions())
    with pytest.raises(InputError, match="placing must be one of posts, dimension"):
        TrainOptions(placing="somewhere")  # type: ignore[arg-type]
