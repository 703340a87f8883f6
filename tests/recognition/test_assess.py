from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.recognition_learnt import taught_by
from tests.cli.running import incrowd as run

from incrowd.crowd import Crowd
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.protocol import AdvisorOptions, Changes, Person, PreparedCrowd
from incrowd.measures.recognition.assess import (
    CommunityRecognition,
    community_recognition,
    member_recognition,
    recognition_assessment,
)
from incrowd.measures.recognition.attack import Attack
from incrowd.measures.recognition.history import EXPECTED
from incrowd.measures.recognition.measure import Recognition
from incrowd.measures.recognition.spec import FEATURES, KNOWN, RecognitionOptions
from incrowd.profiles.habits import post_habits

SHY, LOUD = 60, 60


def _posts(seed: int = 0, posts: int = 16) -> pl.DataFrame:
    """Half of the people write with words of their own, half as everybody does; times ascend."""
    rng = np.random.default_rng(seed)
    common = [f"word{k}" for k in range(300)]
    rows = []
    for person in range(SHY + LOUD):
        own = [f"own{person}x{k}" for k in range(12)]
        for post in range(posts):
            words = list(rng.choice(common, 25))
            if person >= SHY:
                words[:4] = rng.choice(own, 4)
            rows.append((f"p{person:03}", "hall", 1_600_000_000 + 90_000 * post, " ".join(words)))
    rows += [("newcomer", "hall", 1_600_000_000, "word1 word2 word3")]
    rows += [("p000", "attic", 1_600_000_000, "word1 word2 word3")]
    return pl.DataFrame(rows, schema=["user", "community", "time", "text"], orient="row")


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    folder = tmp_path_factory.mktemp("recognition")
    _posts().write_csv(folder / "posts.csv")
    made = Crowd.open_or_create(folder / "crowd", plain_names=True)
    made.ingest([folder / "posts.csv"], kind="posts")
    return made


@pytest.fixture(scope="module")
def measured(crowd: Crowd) -> CommunityRecognition:
    return community_recognition(crowd, RecognitionOptions(community="hall", judged=200))


def test_the_attack_finds_whoever_wrote_it_and_gives_clones_an_even_chance() -> None:
    texts = pl.Series(["red apples grow", "blue boats sail", "green trees stand"] * 2)
    posts = post_habits(texts)
    attack = Attack(posts, [np.array([0]), np.array([1]), np.array([2])])
    asked = [np.array([3]), np.array([4]), np.array([5])]
    found = attack.outcomes(posts, asked, np.arange(3), attack.hubs(posts, asked))
    assert found.first.tolist() == [1.0, 1.0, 1.0]
    clones = Attack(posts, [np.array([0]), np.array([3]), np.array([1])])
    tied = clones.outcomes(
        posts, [np.array([0])], np.array([0]), clones.hubs(posts, [np.array([0]), np.array([1])])
    )
    assert tied.first[0] == 0.5


def test_words_of_ones_own_are_recognised_and_the_others_are_not(measured: CommunityRecognition) -> None:
    loud, shy = member_recognition(measured, "p100"), member_recognition(measured, "p010")
    assert loud.probability[3] > 0.8
    assert shy.probability[3] < 0.3
    assert loud.takes <= 3
    assert shy.takes > 3
    low, high = loud.interval[3]
    assert 0 <= low <= loud.probability[3] <= high <= 1


def test_the_backtest_is_calibrated_and_tells_people_apart(measured: CommunityRecognition) -> None:
    told = measured.to_dict()
    assert told["people"] == SHY + LOUD + 1
    assert told["backtest"]["auc"]["3"] > 0.95
    assert told["backtest"]["calibration_error"]["3"] < 0.07
    assert told["backtest"]["auc_of_many_posts"]["3"] is None  # earlier halves hold eight posts
    found = told["posts_known"]["3"]
    assert found["people"] == SHY + LOUD
    assert found["found"] == pytest.approx(found["predicted"], abs=0.03)
    assert told["posts_known"]["10"]["found"] is None  # halves hold eight posts
    assert "10" in told["not_told"]


def test_too_little_text_cannot_be_told(measured: CommunityRecognition) -> None:
    found = member_recognition(measured, "newcomer")
    assert math.isnan(found.takes)
    assert found.reason.startswith("too_little_text")
    only = recognition_assessment(found, measured.options, "hash")
    assert not only.defined
    assert only.sentence().startswith("Cannot tell")


def test_a_larger_community_is_sampled_and_extrapolated(crowd: Crowd, measured: CommunityRecognition) -> None:
    some = community_recognition(
        crowd, RecognitionOptions(community="hall", candidates=100, judged=200), keep="p100"
    )
    assert some.histories.outside == SHY + LOUD + 1 - len(some.users)
    assert member_recognition(some, "p100").probability[3] > 0.7
    exact = measured.to_dict()["posts_known"]["3"]["found"]
    assert some.to_dict()["posts_known"]["3"]["found"] == pytest.approx(exact, abs=0.12)


def test_the_same_seed_gives_the_same_numbers(crowd: Crowd) -> None:
    options = RecognitionOptions(community="hall", judged=40, draws=2)
    assert community_recognition(crowd, options).to_dict() == community_recognition(crowd, options).to_dict()


def test_the_same_people_are_tried_after_another_import(tmp_path: Path) -> None:
    """Names are hashed with a new key at each import; who is tried must not depend on it."""
    people = _posts(posts=6).filter(pl.col("user").is_between(pl.lit("p000"), pl.lit("p070")))
    people.with_columns(time=pl.col("time") + 7 * pl.col("user").str.slice(1).cast(pl.Int64)).write_csv(
        tmp_path / "posts.csv"
    )
    options, told = RecognitionOptions(community="hall", judged=40, draws=2), []
    for name in ("once", "again"):
        made = Crowd.open_or_create(tmp_path / name)
        made.ingest([tmp_path / "posts.csv"], kind="posts")
        told.append(community_recognition(made, options).to_dict()["posts_known"])
    assert told[0] == told[1]


def test_what_a_community_teaches_has_a_weight_for_every_feature(crowd: Crowd) -> None:
    found = taught_by(crowd, "hall")
    assert found is not None
    assert len(EXPECTED.weights) == len(EXPECTED.moves) == len(FEATURES) == len(found.weights)
    # Whoever comes further up, or is more like their other half, is recognised more often; here and elsewhere.
    for one in (found, EXPECTED):
        ranks, likeness = one.weights[: len(KNOWN)], one.weights[len(KNOWN) : 2 * len(KNOWN)]
        assert ranks.sum() < 0 < likeness.sum()


def test_what_is_wrong_is_said(crowd: Crowd, measured: CommunityRecognition) -> None:
    with pytest.raises(NotInCrowd, match="it has: hall"):
        community_recognition(crowd, RecognitionOptions(community="cellar"))
    with pytest.raises(InputError, match="at least two"):
        community_recognition(crowd, RecognitionOptions(community="attic"))
    with pytest.raises(NotInCrowd, match="no posts in 'hall'"):
        member_recognition(measured, "nobody")
    with pytest.raises(InputError, match="draws must be at least 1"):
        RecognitionOptions(community="hall", draws=0)


def test_the_command_says_the_same_in_text_and_json(
    crowd: Crowd, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    told = run(
        capsys,
        "recognition",
        str(crowd.path),
        "--community",
        "hall",
        "--user",
        "p100",
        "--judged",
        "60",
        "--json",
    )
    data = json.loads(told.out)
    assert told.code == 0
    assert set(data["probability"]) == {"1", "3", "10", "30"}
    assert data["takes"] is not None
    assert data["probability"]["10"] is None
    risky = run(
        capsys,
        *("recognition", str(crowd.path), "--community", "hall", "--user", "p100", "--judged", "60"),
        *("--fail-above", "0.5"),
    )
    assert risky.code == 1
    assert "to recognise you half of the time" in risky.out
    assert "p1" not in risky.out


def test_the_advisor_s_way_agrees_with_the_command_s_and_follows_changes(
    crowd: Crowd, measured: CommunityRecognition
) -> None:
    ready = Recognition().prepare(PreparedCrowd.of(crowd), AdvisorOptions())
    loud = Person("p100", PreparedCrowd.of(crowd))
    (found,) = ready.assess_thorough(loud).assessments
    assert found.value == pytest.approx(member_recognition(measured, "p100").probability[3], abs=0.15)
    assert found.assumptions.parameters["takes"] <= 3
    again = Recognition().prepare(PreparedCrowd.of(crowd), AdvisorOptions()).assess_thorough(loud)
    assert again.assessments[0].to_dict() == found.to_dict()
    own = frozenset(f"own100x{k}" for k in range(12))
    (quiet,) = ready.assess_thorough(loud.after(Changes(edit_words=own))).assessments
    assert quiet.value < found.value - 0.2
    told = ready.assess_thorough(Person("newcomer", PreparedCrowd.of(crowd)))
    assert not told.assessments
    assert "1 post of yours" in told.not_assessed[0].why


def test_people_asked_one_after_the_other_get_the_answer_that_each_gets_alone(crowd: Crowd) -> None:
    """A community is read once for all of them; everybody else is not the same for two of them."""
    prepared = PreparedCrowd.of(crowd)
    together = Recognition().prepare(prepared, AdvisorOptions())
    for name in ("p100", "p007", "p101", "p100"):
        person = Person(name, prepared)
        alone = Recognition().prepare(prepared, AdvisorOptions())
        # Not through the answers that are kept on disk.
        assert together._tried(person, "hall") == alone._tried(person, "hall")  # type: ignore[attr-defined]
