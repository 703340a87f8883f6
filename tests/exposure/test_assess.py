"""From a crowd to one person's place, with reasons that add up, advice that is measured, and nobody else in sight."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd import Crowd
from incrowd.errors import BudgetExceeded, InputError, NotInCrowd, UnreadableSource
from incrowd.measures.exposure.assess import (
    CARE,
    MOST_WORDS,
    PASSING,
    OwnPosts,
    Quantiles,
    _told_by_words,
    assess_alone,
    assess_person,
    load_quantiles,
    own_posts,
    points_nowhere,
    quantiles,
    rest_together,
)
from incrowd.measures.exposure.comparison import compare
from incrowd.measures.exposure.scoring import LiveExposure, Scored, score, summary
from incrowd.measures.exposure.space import BagOfWords, Encoder, default_space
from incrowd.measures.exposure.spec import BY_ONE_WORD, CALIBRATED, DIMENSIONS, LINES, ExposureOptions
from incrowd.measures.exposure.topics import topic_set
from incrowd.result import Assessment
from incrowd.synthetic import SyntheticPosts
from incrowd.text import TextOptions

WEEK = 7 * 86_400


@pytest.fixture(scope="module")
def made() -> SyntheticPosts:
    shares = {"lasting": 0.2, "passing": 0.2, "professional": 0.2}
    return SyntheticPosts(users=120, communities=2, posts=7_200, states=shares, seed=3)


@pytest.fixture(scope="module")
def crowd(made: SyntheticPosts) -> Crowd:
    return Crowd.from_frame(made.to_frame())


@pytest.fixture(scope="module")
def space(made: SyntheticPosts) -> BagOfWords:
    return BagOfWords(topic_set(made.topics))


@pytest.fixture(scope="module")
def scored(crowd: Crowd, space: BagOfWords) -> Scored:
    return score(crowd, space)


def labels_of(made: SyntheticPosts, against: str) -> pl.DataFrame:
    """Lasting interest is sensitive; people with another kind of interest in the same topic are not."""
    truth = made.truth.states.filter(pl.col("state").is_in(["lasting", against]))
    votes = [
        truth.select(
            "user",
            topic=pl.lit(topic),
            vote=((pl.col("topic") == topic) & (pl.col("state") == "lasting")).cast(pl.Float64),
        )
        for topic in made.topics
    ]
    return pl.concat(votes)


@pytest.fixture(scope="module")
def merits(made: SyntheticPosts, crowd: Crowd, space: BagOfWords) -> dict[str, dict[str, float]]:
    found = {}
    for against in ("passing", "professional", "none"):
        result = compare(crowd, [space], labels_of(made, against))
        found[against] = {name: one.map for name, one in result.methods.items()}
    return found


def test_time_tells_a_passing_interest_and_breadth_a_professional_one(
    merits: dict[str, dict[str, float]],
) -> None:
    assert merits["passing"]["BOW-T"] > merits["passing"]["BOW"] + 0.1
    assert merits["professional"]["BOW-D"] > merits["professional"]["BOW"] + 0.1
    for kind in ("passing", "professional"):
        assert merits[kind]["BOW-DT"] >= max(merits[kind].values()) - 0.02


def test_a_person_is_told_their_place_the_reasons_and_what_would_help(
    made: SyntheticPosts, crowd: Crowd, scored: Scored
) -> None:
    who = made.truth.states.filter(pl.col("state") == "lasting").row(0, named=True)
    found = assess_person(crowd, scored, who["user"], who["topic"])
    topic = scored.space.topics.place(who["topic"])
    risk = scored.risks()[scored.place(who["user"]), topic]
    assert found.value == found.crowd_rank == 1 + (scored.risks()[:, topic] > risk).sum()
    assert found.explained == pytest.approx(risk)
    assert sum(part.contribution for part in found.evidence) == pytest.approx(risk)
    assert "a lasting personal interest" in found.meaning
    assert CARE in found.meaning
    apart = found.advice[-1]
    assert "another identity" in apart.what
    assert apart.before == found.value
    assert apart.after > apart.before
    json.dumps(found.to_dict())


def test_what_it_looks_like_follows_the_kind_of_interest(
    made: SyntheticPosts, crowd: Crowd, space: BagOfWords
) -> None:
    strongest = score(crowd, space, ExposureOptions(dimension=""))
    words = {
        "lasting": "lasting personal",
        "passing": "passing",
        "professional": "professional",
        "none": "little",
    }
    right = 0
    people = made.truth.states.group_by("state", maintain_order=True).head(6)
    for who in people.iter_rows(named=True):
        right += words[who["state"]] in assess_person(crowd, strongest, who["user"], who["topic"]).meaning
    assert right >= 0.75 * people.height


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_evidence_adds_up_for_every_dimension(crowd: Crowd, space: BagOfWords, dimension: str) -> None:
    chosen = score(crowd, space, ExposureOptions(dimension=dimension))  # type: ignore[arg-type]
    for row in (0, 17, 63):
        user = chosen.users[row]
        found = assess_person(crowd, chosen, user, "debts")
        risk = chosen.risks()[row, space.topics.place("debts")]
        assert sum(part.contribution for part in found.evidence) == pytest.approx(risk, abs=1e-9)
        assert own_posts(crowd, chosen, user).risk(chosen, space.topics.place("debts")) == pytest.approx(risk)


def test_other_people_never_show(made: SyntheticPosts, crowd: Crowd, scored: Scored) -> None:
    user = scored.users[0]
    said = json.dumps(assess_person(crowd, scored, user, "hiv").to_dict(), ensure_ascii=False)
    assert not [name for name in scored.users if f'"{name}"' in said]
    assert set(summary(scored, "hiv")) == {
        "topic", "people", "undefined", "median", "highest_tenth_from", "highest_hundredth_from"
    }  # fmt: skip


def test_without_times_only_strength_and_breadth_are_told(crowd: Crowd, space: BagOfWords) -> None:
    frame = pl.DataFrame(
        {"user": ["a", "b"], "community": ["c", "c"], "text": ["so much debt", "hello there"]}
    )
    undated = Crowd.from_frame(frame.with_columns(time=pl.lit(None, pl.Int64)))
    timed = assess_person(undated, score(undated, space), "a", "debts")
    assert not timed.defined
    assert "undated_posts" in timed.reason
    plain = assess_person(undated, score(undated, space, ExposureOptions(dimension="D")), "a", "debts")
    assert plain.value == 1


def test_mistakes_are_explained(crowd: Crowd, space: BagOfWords, scored: Scored) -> None:
    with pytest.raises(NotInCrowd, match="no community 'nowhere'"):
        score(crowd, space, ExposureOptions(community="nowhere"))
    with pytest.raises(InputError, match="no posts among those"):
        assess_person(crowd, scored, "nobody", "hiv")
    with pytest.raises(BudgetExceeded, match="literal definitions need"):
        score(crowd, space, ExposureOptions(literal=True, memory=1_000))
    with pytest.raises(InputError, match="breadth must be above 0"):
        ExposureOptions(breadth=0)
    nobody = pl.DataFrame({"user": ["stranger"], "topic": ["hiv"], "vote": [1.0]})
    with pytest.raises(NotInCrowd, match="none of the labelled people"):
        compare(crowd, [space], nobody)


def test_scoring_does_not_depend_on_how_posts_are_stored(
    made: SyntheticPosts, space: BagOfWords, scored: Scored
) -> None:
    shuffled = Crowd.from_frame(made.to_frame().sample(fraction=1, shuffle=True, seed=1))
    again = score(shuffled, space)
    assert again.users.to_list() == scored.users.to_list()
    assert (again.risks() == scored.risks()).all()


# Published quantiles


@given(st.integers(20, 60), st.integers(2, 10), st.integers(0, 10_000))
@settings(max_examples=50)
def test_published_quantiles_enclose_everybodys_true_rank(people: int, smallest: int, seed: int) -> None:
    risks = np.random.default_rng(seed).integers(0, 8, people) / 8
    made = quantiles(_scored_with(risks), smallest)
    assert all(b - a >= smallest for a, b in zip(made.edges[:-1], made.edges[1:], strict=True))
    for risk in risks:
        best, worst = made.rank("only", float(risk))
        assert best <= 1 + (risks > risk).sum() <= worst


def _scored_with(risks: np.ndarray) -> Scored:
    from incrowd.measures.exposure.scoring import Peaks
    from incrowd.measures.exposure.topics import Topic, TopicSet

    people = len(risks)
    peaks = Peaks(np.arange(people), np.zeros(people, np.int64), risks[:, None], people)
    words = BagOfWords(TopicSet((Topic("only", "d", ("word",)),)))
    users = pl.Series([f"u{i:03}" for i in range(people)])
    return Scored(users, peaks, words, ExposureOptions(dimension=""), people, "hash")


def test_quantiles_read_back_the_same_and_small_crowds_stay_hidden(scored: Scored, tmp_path: Path) -> None:
    made = quantiles(scored)
    path = tmp_path / "quantiles.json"
    path.write_text(json.dumps(made.to_dict()), encoding="utf-8")
    assert load_quantiles(path) == made
    assert isinstance(made, Quantiles)
    with pytest.raises(InputError, match="too few to publish"):
        quantiles(scored, smallest=80)
    with pytest.raises(InputError, match="was not published"):
        made.rank("happiness", 0.1)
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(UnreadableSource, match="expected quantiles"):
        load_quantiles(path)


def test_a_person_finds_their_rank_with_nobody_elses_posts(
    made: SyntheticPosts, space: BagOfWords, scored: Scored
) -> None:
    published = quantiles(scored)
    for row in (0, 40, 80):
        user = scored.users[row]
        mine = score(Crowd.from_frame(made.to_frame().filter(pl.col("user") == user)), space)
        found = assess_alone(mine, user, "debts", published)
        assert found.interval is not None
        assert found.interval[0] <= scored.ranks("debts")[row] <= found.interval[1]
        assert found.crowd_size == 120
        assert found.crowd_rank is None  # nobody published it that exactly


def test_silence_has_no_place_with_published_quantiles_either(
    made: SyntheticPosts, space: BagOfWords, scored: Scored
) -> None:
    quiet = Crowd.from_frame(
        pl.DataFrame({"user": "me", "community": "c", "time": [0], "text": "hello there"})
    )
    found = assess_alone(score(quiet, space), "me", "debts", quantiles(scored))
    assert points_nowhere(found)
    assert "Nothing you wrote points to debts" in found.sentence()


def test_advice_that_would_change_nothing_is_not_given(space: BagOfWords) -> None:
    topic = space.topics.topics[space.topics.place("debts")]
    posts = [("me", week * 604_800, " ".join(topic.words[:6])) for week in range(9)]
    posts += [(f"other{k}", 0, "hello there") for k in range(9)]
    crowd = Crowd.from_frame(pl.DataFrame(posts, schema=["user", "time", "text"], orient="row"))
    found = assess_person(crowd, score(crowd, space), "me", "debts")
    assert found.value == 1
    (apart,) = found.advice  # to delete the three that count most would leave six such posts
    assert "another identity (9 posts so far); nothing would point to the topic any more" in apart.what


# Streams


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_after_every_post_a_stream_equals_a_computation_from_scratch(
    made: SyntheticPosts, space: BagOfWords, dimension: str
) -> None:
    posts = made.to_frame().filter(pl.col("user").is_in(made.user_names[:4].implode())).sort("time").head(60)
    options = ExposureOptions(dimension=dimension)  # type: ignore[arg-type]
    live = LiveExposure(space, options)
    for number, post in enumerate(posts.iter_rows(named=True), 1):
        live.add_post(post["user"], post["time"], post["text"])
        if number % 20 == 0:
            scratch = score(Crowd.from_frame(posts.head(number)), space, options)
            rows = [live.people[user] for user in scratch.users]
            assert live.risks[rows] == pytest.approx(scratch.risks(), nan_ok=True)


def test_a_stream_goes_on_from_a_scored_crowd_and_alerts_when_a_line_is_crossed(
    made: SyntheticPosts, space: BagOfWords, scored: Scored
) -> None:
    quiet = made.truth.states.filter(pl.col("state") == "none")["user"][0]
    live = LiveExposure.of(scored)
    live.watch(quiet, "debts", line=1)
    before = live.rank(quiet, "debts")
    assert before > 1
    text = " ".join(made.topics["debts"].words)
    alerts = [live.add_post(quiet, made.start + week * WEEK, text) for week in range(3)]
    assert [len(one) for one in alerts[:-1]].count(0) >= 1
    (alert,) = [one for some in alerts for one in some]
    assert (alert.before, alert.after, alert.line) == (alert.before, 1, 1)
    assert "of 120" in alert.sentence()
    assert quiet not in repr(alert)


def test_watched_ranks_stay_right_whoever_writes(made: SyntheticPosts, space: BagOfWords) -> None:
    posts = made.to_frame().sort("time").head(150)
    live = LiveExposure(space, ExposureOptions(dimension="D"))
    for number, post in enumerate(posts.iter_rows(named=True)):
        when = None if number % 5 == 0 else post["time"]
        live.add_post(post["user"], when, post["text"])
        if number in (20, 40):
            live.watch(post["user"], "debts", line=3)
        watches = live._watches
        for row, topic, rank in zip(watches.row, watches.topic, watches.rank, strict=True):
            assert rank == live._rank(row, topic)
    with pytest.raises(InputError, match="after their first post"):
        live.watch("nobody", "debts", line=3)


def test_a_stream_does_not_follow_the_printed_definitions(space: BagOfWords) -> None:
    with pytest.raises(InputError, match="corrected definitions"):
        LiveExposure(space, ExposureOptions(literal=True))


def test_how_likely_somebody_is_concerned_is_what_was_calibrated() -> None:
    """By hand: log odds = -1.128 + 0.5 times the score's log odds; half of the people with a score of .90 are."""
    how = CALIBRATED["WORDS", "T"]
    told = how.probability(np.array([0.1, 0.5, 0.9, np.nan]))
    by_hand = [1 / (1 + np.exp(1.128 - 0.5 * np.log(s / (1 - s)))) for s in (0.1, 0.5, 0.9)]
    assert told[:3] == pytest.approx(by_hand)
    assert np.isnan(told[3])
    assert (np.diff(told[:3]) > 0).all()


PLAIN = "We met at noon, talked about the weather and the train home, and later made soup for everybody"
ONE_WORD = "My neighbour said hiv on the news about the weather in our town yesterday"
SEVERAL = "They tested positive for hiv and started antiretroviral treatment at the clinic"


def told_of_hiv(*mine: str) -> Assessment:
    """Return where somebody with these posts stands for the topic among fifty people who write about soup."""
    others = [(f"p{who}", f"{PLAIN} {k}", 1000 + k * WEEK) for who in range(50) for k in range(3)]
    own = [("me", text, 1000 + k * WEEK) for k, text in enumerate([*mine, PLAIN, PLAIN])]
    rows = pl.DataFrame([*others, *own], schema=["user", "text", "time"], orient="row")
    crowd = Crowd.from_frame(rows.with_columns(community=pl.lit("town")))
    scored = score(crowd, default_space(), ExposureOptions(community="town"))
    return assess_person(crowd, scored, crowd.user("me"), "hiv")


def test_what_rests_on_one_word_is_believed_less() -> None:
    one, several = told_of_hiv(ONE_WORD), told_of_hiv(SEVERAL)
    about, more = one.assumptions.parameters, several.assumptions.parameters
    assert about["looks_like"] == more["looks_like"] == PASSING
    assert about["one_word"]
    assert not more["one_word"]
    assert about["probability"] == pytest.approx(float(BY_ONE_WORD["WORDS", "T"].probability(about["score"])))
    assert more["probability"] == pytest.approx(float(CALIBRATED["WORDS", "T"].probability(more["score"])))
    assert about["probability"] < float(CALIBRATED["WORDS", "T"].probability(about["score"]))
    assert "it looks like a passing interest, by the word “hiv” alone." in one.meaning
    assert "alone" not in several.meaning


def test_the_same_word_in_several_posts_is_still_one_word() -> None:
    assert told_of_hiv(ONE_WORD, ONE_WORD).assumptions.parameters["one_word"]
    assert not told_of_hiv(ONE_WORD, SEVERAL).assumptions.parameters["one_word"]


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from([PLAIN, ONE_WORD, SEVERAL, "stressed again, stressful deadlines"]),
        min_size=1,
        max_size=4,
    )
)
def test_without_the_one_word_no_post_points_to_the_topic(texts: list[str]) -> None:
    """By brute force: the word is written as one that nobody knows, so that no new pair comes about."""
    space, encoder = default_space(), Encoder(default_space(), TextOptions())
    line = LINES["WORDS"].nothing_up_to
    crowd = Crowd.from_frame(pl.DataFrame({"user": "a", "community": "c", "time": 0, "text": texts}))
    scored = score(crowd, space)
    posts = own_posts(crowd, scored, crowd.user("a"))
    for topic in ("hiv", "stress"):
        place = space.topics.place(topic)

        def pointing(word: str, place: int = place) -> bool:
            said = pl.Series([re.sub(rf"(?i)\b{word}\b", "qqqzzz", text) for text in texts])
            return bool((space.similarities(encoder.encode(said))[:, place] > line).any())

        if word := posts.rests_on(space, place):
            assert pointing("soup that nobody wrote")
            assert not pointing(word)
        elif pointing("soup that nobody wrote"):
            assert all(pointing(one) for one in ("hiv", "stressed"))


@settings(deadline=None)
@given(
    *[st.lists(st.sampled_from([PLAIN, ONE_WORD, SEVERAL, "stressed again"]), max_size=3) for _ in range(2)]
)
def test_old_and_new_posts_rest_together_on_what_all_of_them_rest_on(old: list[str], new: list[str]) -> None:
    """A draft is judged without reading old posts again: what they rest on is kept."""
    space, encoder = default_space(), Encoder(default_space(), TextOptions())

    def rests_on(texts: list[str], topic: int) -> str | None:
        words = encoder.encode(pl.Series(texts, dtype=pl.String))
        return OwnPosts(np.zeros(len(texts), np.int64), words, space.similarities(words)).rests_on(
            space, topic
        )

    for topic in map(space.topics.place, ("hiv", "stress")):
        assert rest_together(rests_on(old, topic), rests_on(new, topic)) == rests_on([*old, *new], topic)


def test_what_very_many_words_say_together_is_a_rest() -> None:
    many = {f"word{n}": 1.0 + n for n in range(500)}
    last = _told_by_words(many, {})[-1]
    assert last.is_rest
    assert last.parts_in_rest + MOST_WORDS == 500
