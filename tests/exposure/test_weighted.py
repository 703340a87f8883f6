"""Weighted topics: words and pairs with weights, in every space; learnt ones are calibrated, explained and clean."""

from __future__ import annotations

import json
import math
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.cli import main
from incrowd.crowd import Crowd
from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.exposure import learning
from incrowd.measures.exposure.assess import assess_person
from incrowd.measures.exposure.definition import person_risk
from incrowd.measures.exposure.learnt_spaces import WordVectors
from incrowd.measures.exposure.scoring import post_periods, score
from incrowd.measures.exposure.space import (
    BagOfWords,
    Encoder,
    WeightedWords,
    default_space,
    learnt_figures,
    load_weighted,
    silence,
    write_weighted,
)
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import Topic, TopicSet, load_topics, starter_topics
from incrowd.measures.exposure.training import known_words
from incrowd.text.options import TextOptions

FEARED = (
    "stress loneliness grief addiction self-harm eating-disorders pregnancy infertility cancer hiv "
    "chronic-illness disability neurodiversity debts unemployment homelessness gambling sexuality gender-identity "
    "relationship-trouble abuse divorce religion leaving-religion politics immigration-status legal-trouble "
    "veterans depression anxiety "
)
NAMES = (
    "james john robert michael david richard joseph thomas charles daniel matthew anthony steven paul andrew "
    "joshua kevin brian george timothy jason jeffrey ryan jacob gary eric stephen justin scott brandon "
    "benjamin samuel gregory alexander patrick dennis jerry tyler aaron jose nathan peter kyle jeremy sean "
    "jesse jordan obama romney jennifer linda elizabeth barbara susan jessica sarah karen nancy lisa betty "
    "sandra ashley emily donna michelle amanda melissa stephanie rebecca sharon laura amy angela anna nicole "
    "samantha rachel heather maria "
)
WEEK = 7 * 86_400
FILLER = "we went to the shop in the morning and then we all had a cup of tea at home with them"


def weighted(**topics: dict[str, float]) -> TopicSet:
    return TopicSet(
        tuple(
            Topic(name, "d", tuple(words), weights=tuple(words.values()), level=-3.0)
            for name, words in topics.items()
        )
    )


# The file format, and pairs in the spaces


def test_a_topic_file_holds_weights_and_pairs(tmp_path: Path) -> None:
    path = tmp_path / "topics.toml"
    path.write_text(
        '[fear]\ndomain = "d"\nwords = ["dread"]\nweights = { "panic attack" = 2.5, "kill myself" = 3, calm = -1.0 }\n',
        encoding="utf-8",
    )
    (topic,) = load_topics(path).topics
    assert topic.weighted_words == (
        ("dread", 1.0),
        ("panic attack", 2.5),
        ("kill myself", 3.0),
        ("calm", -1.0),
    )
    plain = TopicSet((Topic("fear", "d", topic.words),))
    assert plain.hash != load_topics(path).hash


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[a]\ndomain = "d"\nweights = { dread = "much" }', "table of numbers"),
        ('[a]\ndomain = "d"\nweights = { dread = true }', "table of numbers"),
        ('[a]\ndomain = "d"\nweights = { "one two three" = 1 }', "never occurs as one word"),
        ('[a]\ndomain = "d"\nwords = ["dread"]\nweights = { dread = 2 }', "occurs twice"),
        ('[a]\ndomain = "d"\nwords = ["dread"]\ncommunities = "x"', "list of names"),
    ],
)
def test_a_mistake_in_weights_is_explained(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "topics.toml").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        load_topics(tmp_path / "topics.toml")


def test_a_bag_of_weighted_words_and_pairs_by_hand() -> None:
    space = BagOfWords(weighted(fear={"dread": 3.0, "kill myself": 4.0}, calm={"tea": 1.0, "dread": -1.0}))
    posts = Encoder(space, TextOptions()).encode(
        pl.Series(["I dread it. I will kill myself", "kill them, myself", "tea tea dread", "dread"])
    )
    found = space.similarities(posts)
    assert found[0] == pytest.approx(
        [(3 + 4) / (5 * math.sqrt(2)), 0]
    )  # calm is -1/√2 away: no similarity below 0
    assert found[1] == pytest.approx([0, 0])  # the two words are not neighbours
    assert found[2] == pytest.approx([3 / 5 / math.sqrt(5), (2 - 1) / math.sqrt(2) / math.sqrt(5)])
    assert found[3] == pytest.approx([3 / 5, 0])
    for at in range(4):
        words = posts.part(at, at + 1)
        assert space.similarities(words)[0] == pytest.approx(found[at])
        for topic in range(2):
            assert space.shares(words.words, topic).sum() == pytest.approx(found[at, topic])


def test_learnt_spaces_see_a_pair_as_its_words() -> None:
    topics = weighted(fear={"dread": 1.0, "panic attack": 4.0, "calm": -2.0})
    vectors = np.eye(3, dtype=np.float32)
    space = WordVectors(topics, ("dread", "panic", "calm"), vectors, np.zeros(1, np.float32))
    assert space.topic_vectors.tolist() == [[1.0, 2.0, 0.0]]
    assert known_words(topics, ("dread", "panic", "calm")) == [[1, 0]]


@given(
    st.lists(
        st.lists(
            st.sampled_from(["I", "kill", "myself", "dread", "tea", "the", "and", "panic", "attack"]),
            max_size=9,
        ),
        max_size=5,
    )
)
@settings(max_examples=40, deadline=None)
def test_one_post_is_read_as_many_are(posts: list[list[str]]) -> None:
    space = BagOfWords(
        weighted(a={"dread": 1.0, "kill myself": 1.0, "i kill": 1.0}, b={"panic attack": 1.0, "tea": 1.0})
    )
    encoder = Encoder(space, TextOptions())
    texts = [" ".join(words) for words in posts]
    together = encoder.encode(pl.Series(texts, dtype=pl.String))
    assert len(together) == len(texts)
    for at, text in enumerate(texts):
        alone = encoder.encode_one(text)
        assert together.part(at, at + 1).words.tolist() == alone.words.tolist()
        assert [space.words[word] for word in alone.words] == encoder.words(text)


# The default space


def small_space(enough: int = 0) -> WeightedWords:
    topics = weighted(fear={"dread": 6.0, "panic attack": 8.0, "tea": -2.0}, money={"debt": 9.0})
    return WeightedWords(topics, prior=2.0, enough=enough)


def test_a_strength_is_the_probability_of_the_log_odds() -> None:
    space = small_space()
    posts = Encoder(space, TextOptions()).encode(pl.Series(["dread dread, a panic attack", "tea", ""]))
    told = ((1 + math.log(2)) * 6 + 8) / math.sqrt(2 + 2)
    expected = [1 / (1 + math.exp(3 - told)), 1 / (1 + math.exp(3 + 2 / math.sqrt(3))), 1 / (1 + math.exp(3))]
    assert space.similarities(posts)[:, 0] == pytest.approx(expected, rel=1e-5)
    assert silence(space) == pytest.approx([expected[2]] * 2, rel=1e-5)
    for at in range(3):
        words = posts.part(at, at + 1)
        assert space.similarities(words)[0] == pytest.approx(space.similarities(posts)[at], rel=1e-6)
        shares = space.shares(words.words, 0)
        assert shares.sum() == pytest.approx(expected[at] - expected[2], abs=1e-6)


def crowd_of(posts: list[tuple[str, int | None, str]]) -> Crowd:
    frame = pl.DataFrame(posts, schema={"user": pl.String, "time": pl.Int64, "text": pl.String}, orient="row")
    return Crowd.from_frame(frame.with_columns(community=pl.lit("c")))


@pytest.mark.parametrize("dimension", ["", "D", "T", "DT"])
def test_risks_are_the_definitions_and_evidence_adds_up(dimension: str) -> None:
    """What somebody writes is the mean over posts; the best weeks are as everywhere."""
    texts = ["dread and a panic attack", "tea", "debt debt", "dread", "tea and debt"]
    crowd = crowd_of([(f"u{i % 3}", i * WEEK // 2, text) for i, text in enumerate(texts * 3)])
    space = small_space()
    scored = score(crowd, space, ExposureOptions(dimension=dimension))  # type: ignore[arg-type]
    for row, user in enumerate(scored.users):
        mine = crowd.posts(user=user).collect()
        similar = space.similarities(Encoder(space, TextOptions()).encode(mine["text"]))
        for topic in (0, 1):
            expected = person_risk(
                similar,
                post_periods(mine["time"], 7),
                topic,
                [1 - topic],
                dimension=dimension,
                pooling="mean",
            )
            assert scored.risks()[row, topic] == pytest.approx(expected, rel=1e-5)
        told = assess_person(crowd, scored, user, "fear")
        assert told.explained == pytest.approx(scored.risks()[row, 0], abs=1e-5)


def test_too_little_text_cannot_tell_and_says_so() -> None:
    crowd = crowd_of([("brief", 0, "dread"), ("long", 0, "dread tea debt dread tea")])
    scored = score(crowd, small_space(enough=3))
    assert np.isnan(scored.risks()[0]).all()
    assert not np.isnan(scored.risks()[1]).any()
    told = assess_person(crowd, scored, "brief", "fear")
    assert not told.defined
    assert "too_little_text" in (told.reason or "")


def test_explanations_name_words_and_pairs_with_their_weights() -> None:
    crowd = crowd_of([("me", 0, "dread and a panic attack"), ("you", 0, "tea")])
    told = assess_person(crowd, score(crowd, small_space()), "me", "fear")
    shown = {part.what: part.detail for part in told.evidence}
    assert shown["the word “dread”"] == "weight +6.00"
    assert shown["the words “panic attack”"] == "weight +8.00"
    assert "where any post starts, whatever it says" in shown


def test_ranks_mean_something_for_everybody_who_wrote_enough() -> None:
    """No pile-up at 0: nobody's strength is 0, and different texts have different strengths."""
    ends = ["", " I owe money", " my therapist", " I feel so alone", " the game was fun", " church on Sunday"]
    crowd = crowd_of([(f"u{i}", 0, FILLER + end) for i, end in enumerate(ends)])
    risks = score(crowd, default_space(), ExposureOptions(dimension="")).risks()
    assert (risks > 0).all()
    assert len(np.unique(risks[:, default_space().topics.place("depression")])) == len(ends)


# Learning


def made_up_corpus(posts: int = 240) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    common = [f"{a}{b}" for a in ("ba", "ko", "ru", "ti") for b in ("lo", "ma", "ne", "vi", "zu")]
    own = {
        "sad": ["gloom", "weep", "hollow"],
        "rich": ["coin", "ledger", "vault"],
        "games": ["dice", "board"],
    }
    rows = []
    for i in range(posts):
        community = list(own)[i % 3]
        words = [*rng.choice(common, 12), *rng.choice(own[community], 3), "Alice", "reddit", "w8"]
        rng.shuffle(words)
        rows.append({"community": community, "text": "so " + " ".join(words) + " I said"})
    return pl.DataFrame(rows)


TAUGHT = TopicSet(
    (
        Topic("sadness", "mind", ("gloom", "tearful"), communities=("sad",)),
        Topic("money", "things", ("coin", "broke"), communities=("rich",)),
        Topic("play", "things", ("dice", "board")),
        Topic("nothing", "things", ("absent",)),
    )
)


def test_learning_finds_the_words_of_a_topic_and_leaves_names_out(tmp_path: Path) -> None:
    options = learning.LearnOptions(weights=30, word_posts=3, pair_posts=3)
    posts = made_up_corpus()
    learnt = learning.learn(learning.read_corpus(posts, TAUGHT, options), TAUGHT, options)
    figures = learnt.about(posts, options)
    assert figures["held_out"]["topics"] == 2
    assert figures["held_out"]["lowest"] > 0.95
    assert figures["figures"]["play"]["from"] == "what goes with its words"
    assert figures["figures"]["nothing"]["from"] == "hand-made words alone"
    by_words = list(learnt.by_words.values())
    assert learnt.space.enough == len(by_words) < 15  # posts hold fifteen words that are known
    assert max([0.0, *by_words[:-1]]) < learning.TELLS <= by_words[-1]
    sad = dict(learnt.space.topics.topics[0].weighted_words)
    assert min(sad["gloom"], sad["weep"], sad["hollow"]) > max(
        sad.get(word, 0.0) for word in ("coin", "dice", "balo")
    )
    assert sad["tearful"] > 0  # hand-made and not in the corpus: taken to be strong
    assert dict(learnt.space.topics.topics[3].weighted_words) == {"absent": pytest.approx(sad["tearful"])}
    every = set(" ".join(learnt.space.words).split())
    assert every.isdisjoint({"alice", "alices", "reddit", "w8"})
    path = tmp_path / "learnt.json"
    path.write_text(write_weighted(learnt.space, figures), encoding="utf-8")
    again = load_weighted(path)
    assert again.hash == load_weighted(path).hash
    texts = Encoder(again, TextOptions()).encode(pl.Series(["gloom weep hollow", "coin vault ledger"]))
    on = again.similarities(texts)
    assert on[0, 0] > 0.5 > on[1, 0]
    assert on[1, 1] > 0.5 > on[0, 1]


def test_learning_needs_communities() -> None:
    options = learning.LearnOptions(word_posts=3, pair_posts=3)
    alone = TopicSet((Topic("nothing", "d", ("absent",)),))
    with pytest.raises(InputError, match="communities"):
        learning.learn(learning.read_corpus(made_up_corpus(), alone, options), alone, options)


def test_the_command_learns_and_rank_uses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str | Path) -> dict[str, object]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["incrowd", *map(str, arguments), "--json"])
            with pytest.MonkeyPatch.context():
                try:
                    main()
                except SystemExit as end:
                    if end.code:
                        raise
        return dict(json.loads(capsys.readouterr().out))

    topics, corpus, out = tmp_path / "topics.toml", tmp_path / "corpus.jsonl", tmp_path / "learnt.json"
    topics.write_text(
        '[sadness]\ndomain = "mind"\nwords = ["gloom"]\ncommunities = ["sad"]\n'
        '[money]\ndomain = "mind"\nwords = ["coin"]\ncommunities = ["rich"]\n',
        encoding="utf-8",
    )
    made_up_corpus().with_columns(title=pl.lit("a title")).write_ndjson(corpus)
    about = run("exposure", "learn", corpus, "--topics", topics, "--out", out, "--weights", "20")
    assert about["posts"] == 240
    crowd = crowd_of([("me", 0, "gloom weep hollow " * 5), ("you", 0, "coin vault dice " * 5)])
    crowd = Crowd.from_frame(crowd.posts().collect(), path=tmp_path / "crowd")
    told = run("exposure", "rank", crowd.path, "--model", out, "--topic", "sadness", "--user", "me")
    assert told["assessments"][0]["value"] == 1  # type: ignore[index]
    with pytest.raises(UnreadableSource):
        load_weighted(topics)
    with pytest.raises(UnreadableSource, match="no such file"):
        load_weighted(tmp_path / "none.json")


# What is shipped


def test_the_shipped_set_covers_what_people_fear_and_is_small() -> None:
    shipped = files("incrowd.measures.exposure") / "learnt_topics.json"
    assert len(shipped.read_bytes()) <= 1_000_000
    assert set(FEARED.split()) <= set(default_space().topics.sensitive)
    assert default_space().topics.names == starter_topics().names
    assert all(len(topic.words) >= 20 for topic in default_space().topics.topics)


def test_the_head_of_the_shipped_set_holds_its_held_out_figures() -> None:
    about = learnt_figures()
    held = [one["auc"] for one in about["figures"].values() if one["from"] == "communities"]
    assert len(held) == about["held_out"]["topics"] >= 20
    assert np.median(held) == pytest.approx(about["held_out"]["median"], abs=1e-4)
    assert about["held_out"]["median"] >= 0.96
    assert min(held) == about["held_out"]["lowest"] >= 0.85
    for words, value in about["enough"]["by_words"].items():
        assert (value < 0.75) == (int(words) < default_space().enough)


def test_shipped_words_are_of_topics_and_never_of_people() -> None:
    own = set(starter_topics().vocabulary)
    for word in set(" ".join(default_space().words).split()) - own:
        assert word not in NAMES.split()
        assert learning._may_be_shown(word, set(), set()), "a word of people, a slur, or no word at all"
    assert not learning._may_be_shown("reddit", set(), set())


def test_the_default_tells_topics_apart() -> None:
    texts = {
        "depression": "I feel worthless and want to kill myself, nothing helps, my depression is back",
        "debts": "I owe so much on my credit card and the student loan, how do I pay off this debt",
        "alcohol": "I have been sober for ten days, no drinking, went to an AA meeting",
        "religion": "we pray to God, read the Bible and go to church",
    }
    space = default_space()
    posts = Encoder(space, TextOptions()).encode(pl.Series([*texts.values(), FILLER]))
    found = space.similarities(posts)
    for row, topic in enumerate(texts):
        assert found[row, space.topics.place(topic)] > 0.3
        assert found[-1, space.topics.place(topic)] < 0.05
