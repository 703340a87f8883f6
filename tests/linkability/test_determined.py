"""The determined adversary: standard scores, learned weights, calibrated certainty."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from incrowd.measures.linkability.determined import reliability
from incrowd.measures.linkability.link_model import LinkModel, Resemblance, TrainingPair, fit
from incrowd.profiles.habits import Habits, habits

WORDS = np.array([f"w{i}" for i in range(400)])


def community(name: str, people: int, seed: int) -> pl.DataFrame:
    """People whose favourite words are the same in every community."""
    rows = []
    for person in range(people):
        favourites = np.random.default_rng(person).choice(WORDS, 25, replace=False)
        generator = np.random.default_rng([seed, person])
        for _ in range(4):
            words = np.where(
                generator.random(20) < 0.4, generator.choice(favourites, 20), generator.choice(WORDS, 20)
            )
            rows.append((f"p{person}", name, int(generator.integers(10**6)), " ".join(words)))
    return pl.DataFrame(rows, schema=["user", "community", "time", "text"], orient="row")


@pytest.fixture(scope="module")
def sides() -> tuple[Habits, Habits]:
    everybody = habits(pl.concat([community("a", 40, 1), community("b", 30, 2)]))
    where = everybody.identities["community"].to_numpy()
    return everybody.only(where == "a"), everybody.only(where == "b")


def all_scores(resemblance: Resemblance) -> np.ndarray:
    return np.concatenate([resemblance.scores(part) for part in resemblance.slices()])


def test_every_view_has_mean_zero_and_deviation_one(sides: tuple[Habits, Habits]) -> None:
    views = ("words", "style", "hours")
    scores = all_scores(Resemblance(*sides, views))
    assert scores.shape == (40, 30, 3)
    assert np.allclose(scores.mean(axis=(0, 1)), 0, atol=1e-4)
    assert np.allclose(scores.std(axis=(0, 1)), 1, atol=1e-3)


def test_scores_equal_the_formula_written_out(sides: tuple[Habits, Habits]) -> None:
    source, target = (side.rows["words"] for side in sides)
    both = np.vstack([source.toarray(), target.toarray()])
    both = both[:, (both > 0).sum(axis=0) > 1]
    rarity = np.log((1 + len(both)) / (1 + (both > 0).sum(axis=0))) + 1
    weighed = np.where(both > 0, 1 + np.log(np.maximum(both, 1)), 0) * rarity
    weighed /= np.linalg.norm(weighed, axis=1, keepdims=True)
    cosines = weighed[:40] @ weighed[40:].T
    hub_s = np.sort(cosines, axis=1)[:, -10:].mean(axis=1, keepdims=True)
    hub_t = np.sort(cosines, axis=0)[-10:].mean(axis=0, keepdims=True)
    corrected = 2 * cosines - hub_s - hub_t
    wanted = (corrected - corrected.mean()) / corrected.std()
    got = all_scores(Resemblance(*sides, ("words",)))[:, :, 0]
    assert np.allclose(got, wanted, atol=2e-3)


def test_block_size_never_matters(sides: tuple[Habits, Habits], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Resemblance(*sides, ("words", "weeks")).scores(slice(None))
    monkeypatch.setattr("incrowd.measures.linkability.link_model.BLOCK_BYTES", 4 * 30 * 2 * 7)
    cut = Resemblance(*sides, ("words", "weeks"))
    assert len(list(cut.slices())) == 6
    assert np.allclose(all_scores(cut), whole, atol=1e-4)


def test_the_same_people_stand_out(sides: tuple[Habits, Habits]) -> None:
    scores = Resemblance(*sides, ("words",)).scores(slice(0, 30))[:, :, 0]
    users_a = sides[0].identities["user"].to_list()
    users_b = sides[1].identities["user"].to_list()
    right = [
        users_b[best] == users_a[i] for i, best in enumerate(scores.argmax(axis=1)) if users_a[i] in users_b
    ]
    assert np.mean(right) > 0.8


def simulated(seed: int, matched: int, unmatched: int, targets: int = 40) -> TrainingPair:
    """Scores drawn from the model itself, with weights 2 and 0.5, so that fitting must find them again."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(matched + unmatched, targets, 2))
    utilities = scores @ np.array([2.0, 0.5])
    chances = np.exp(utilities - utilities.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    truth = np.array([generator.choice(targets, p=row) for row in chances])
    truth[matched:] = -1
    return TrainingPair(scores, truth)


def test_fitting_recovers_the_weights_and_is_calibrated() -> None:
    model = fit([simulated(1, 1500, 100), simulated(2, 1500, 100)], views=("one", "two"))
    assert model.weights == pytest.approx((2.0, 0.5), abs=0.12)
    held_out = simulated(3, 2000, 0)
    chances = model.given_match(model.utilities(held_out.scores))
    assert np.allclose(chances.sum(axis=1), 1)
    curve = reliability(chances.max(axis=1), chances.argmax(axis=1) == held_out.truth, np.arange(2000))
    assert curve["error"] < 0.05


def test_the_share_with_a_match_is_found_without_labels() -> None:
    generator = np.random.default_rng(5)
    model = LinkModel(views=("one",), weights=(1.0,), presence=(0.0, 2.0), prior=0.5)
    has = generator.random(4000) < 0.2
    # Log odds under the training prior: two normals one apart from the other by their variance.
    odds = generator.normal(np.where(has, 2.0, -2.0), 2.0)
    probability, share = model.presence_given(odds)
    assert share == pytest.approx(0.2, abs=0.03)
    assert probability.mean() == pytest.approx(share, abs=1e-6)


@pytest.mark.parametrize(
    ("targets", "matched", "open_error"), [(40, 300, 0.05), (1200, 300, 0.15), (1200, 12, 0.05)]
)
def test_the_adversary_is_not_too_sure_in_larger_communities_or_where_few_have_a_match(
    targets: int, matched: int, open_error: float
) -> None:
    """Learned among 40 targets, judged among 1,200: whoever is called likely to be found is found as often.

    Among so many more than practised on, where many do have a match, they are less sure than they could be.
    """
    model = fit([community_of(seed, 40, 250, 250) for seed in (1, 2)], views=("one", "two"))
    judged = community_of(7, targets, matched, 600)
    utilities = model.utilities(judged.scores)
    presence, share = model.presence_given(model.presence_odds(utilities))
    chances = model.given_match(utilities)
    sure, right = chances.max(axis=1) * presence, chances.argmax(axis=1) == judged.truth
    assert reliability(sure, right, np.arange(len(sure)))["error"] <= open_error
    assert sure.mean() <= right.mean() + 0.02
    likely = sure > 0.15
    assert right[likely].sum() >= 0.9 * sure[likely].sum()
    assert share <= matched / (matched + 600) + 0.05
    closed = judged.truth >= 0
    error = reliability(chances.max(axis=1)[closed], right[closed], np.arange(closed.sum()))["error"]
    assert error <= 0.05


def community_of(seed: int, targets: int, matched: int, unmatched: int) -> TrainingPair:
    """Strangers' scores are normal with deviation 1; a true target stands out by four under both views."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(matched + unmatched, targets, 2)).astype(np.float32)
    truth = generator.integers(0, targets, matched + unmatched)
    scores[np.arange(matched), truth[:matched]] += np.float32(4)
    truth[matched:] = -1
    return TrainingPair(scores, truth)


def test_one_target_and_a_view_without_information(sides: tuple[Habits, Habits]) -> None:
    lonely = Resemblance(sides[0], sides[1].only([0]), ("words",)).scores(slice(None))
    assert np.isfinite(lonely).all()
    model = LinkModel(views=("words",), weights=(1.0,), presence=(0.0, 1.0), prior=0.5)
    utilities = model.utilities(lonely)
    assert (model.given_match(utilities) == 1.0).all()
    assert np.isfinite(model.presence_odds(utilities)).all()
