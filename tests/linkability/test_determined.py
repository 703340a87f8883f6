"""The determined adversary: standard scores, learned weights, calibrated certainty."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from incrowd.measures.linkability import link_model
from incrowd.measures.linkability.determined import (
    PRACTISED,
    DeterminedAttack,
    attack_on,
    reliability,
)
from incrowd.measures.linkability.link_model import LinkModel, Resemblance, TrainingPair, ViewHubs, fit
from incrowd.measures.linkability.open_set import learn, margins
from incrowd.profiles.habits import TEXT_FAMILIES, Habits, habits

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


def _every_other(row: sp.csr_matrix) -> sp.csr_matrix:
    """Return a row without every other habit: what somebody keeps who deletes half of their posts."""
    kept = row.copy()
    kept.data[::2] = 0
    kept.eliminate_zeros()
    return kept


def test_one_person_alone_scores_as_among_all_and_after_a_change_as_from_scratch(
    sides: tuple[Habits, Habits],
) -> None:
    sources, targets = sides
    people, of_source, of_target = np.intersect1d(
        sources.identities["user"].to_numpy(), targets.identities["user"].to_numpy(), return_indices=True
    )
    pairs = np.column_stack([of_source, of_target]).astype(np.int64)
    attack = DeterminedAttack(sources, targets, PRACTISED, 0, pairs, people, len(targets), len(people))
    hubs: dict[str, ViewHubs] = {}
    everybody = attack.certainty(hubs)
    for place in (0, len(people) // 2):
        user, (source, target) = str(people[place]), pairs[place]
        as_is = sources.only([source]), targets.only([target])
        mine = as_is[0]
        written = {name: _every_other(mine.rows[name]) for name in TEXT_FAMILIES}
        fewer = Habits(mine.identities, {**mine.rows, **written})
        alone = attack.certainty_of(user, [as_is, (fewer, as_is[1])], hubs)
        np.testing.assert_allclose(alone.scores[0], everybody.scores[place], rtol=1e-4, atol=1e-4)
        rows = {
            name: sp.vstack([part[:source], fewer.rows[name], part[source + 1 :]], format="csr")
            for name, part in sources.rows.items()
        }
        again = DeterminedAttack(
            Habits(sources.identities, rows), targets, PRACTISED, 0, pairs, people, len(targets), len(people)
        )
        scores = again.certainty().scores[place]
        np.testing.assert_allclose(alone.scores[1], scores, atol=0.1 * np.abs(scores).max())


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


@pytest.mark.parametrize(("targets", "matched"), [(40, 300), (1200, 300), (1200, 12)])
def test_given_a_match_the_adversary_is_as_sure_as_right_in_larger_communities(
    targets: int, matched: int
) -> None:
    """Learned among 40 targets, judged among 1,200."""
    model = fit([community_of(seed, 40, 250, 250) for seed in (1, 2)], views=("one", "two"))
    judged = community_of(7, targets, matched, 600)
    chances = model.given_match(model.utilities(judged.scores))
    right, closed = chances.argmax(axis=1) == judged.truth, judged.truth >= 0
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


@pytest.mark.parametrize(("targets", "matched"), [(40, 30), (1200, 300), (1200, 12), (1200, 2)])
def test_the_adversary_is_not_too_sure_in_larger_communities_or_where_few_have_a_match(
    targets: int, matched: int
) -> None:
    """Learned among 40 targets, judged among 1,200: whoever is called likely to be found is found as often."""
    lessons = [members_of(seed, 40, 30, 270) for seed in range(1, 7)]
    model = fit(lessons, views=("one", "two"))
    open_set = learn([lesson_of(model, one) for one in lessons])
    all_sure, all_right = [], []
    for seed in (7, 8, 9):
        judged = members_of(seed, targets, matched, 600)
        utilities = model.utilities(judged.scores)
        margin, places, right = lesson_of(model, judged)
        found, share = open_set.found(margin, places)
        assert share.low <= right.mean() + 0.05
        all_sure.append(np.minimum(found, model.given_match(utilities).max(axis=1)))
        all_right.append(right)
    sure, right = np.concatenate(all_sure), np.concatenate(all_right)
    assert reliability(sure, right, np.arange(len(sure)))["error"] <= 0.05
    assert sure.mean() <= right.mean() + 0.02
    likely = sure > 0.15
    assert right[likely].sum() >= 0.9 * sure[likely].sum()


def members_of(seed: int, targets: int, matched: int, unmatched: int) -> TrainingPair:
    """Strangers' scores are normal with deviation 1; a true target stands out under both views, by more or less."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(matched + unmatched, targets, 2)).astype(np.float32)
    truth = np.full(matched + unmatched, -1)
    truth[:matched] = generator.permutation(targets)[:matched]
    scores[np.arange(matched), truth[:matched]] += generator.exponential(4.0, (matched, 1)).astype(np.float32)
    return TrainingPair(scores, truth)


def lesson_of(model: LinkModel, pair: TrainingPair) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Margins and places, and whether each source's best target is right."""
    utilities = model.utilities(pair.scores)
    return margins_of(utilities), places_of(utilities, pair.scores), utilities.argmax(axis=1) == pair.truth


def places_of(utilities: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Places as they are defined, one source and one view at a time."""
    found = np.zeros(len(utilities))
    for source, target in enumerate(utilities.argmax(axis=1)):
        for view in range(scores.shape[2]):
            own = scores[source, target, view]
            nearer = [(side > own).sum() for side in (scores[source, :, view], scores[:, target, view])]
            found[source] += np.log(1 + nearer[0]) + np.log(1 + nearer[1])
    return found


def margins_of(utilities: np.ndarray) -> np.ndarray:
    """Margins as they are defined, one source at a time."""
    u, leads, gaps = np.asarray(utilities, np.float64), {}, {}
    for source, row in enumerate(u):
        target = int(row.argmax())
        here, there = -np.sort(-row), -np.sort(-u[:, target])
        if here[0] == there[0] and min(len(here), len(there)) > 1 and here[0] > max(here[1], there[1]):
            leads[source] = here[0] - here[1], here[0] - there[1]
            gaps[source] = [
                place * (side[place - 1] - side[place])
                for side in (here, there)
                for place in range(2, min(len(side), 10))
            ]
    found = np.zeros(len(u))
    if not leads or not min(map(len, gaps.values())):
        return found
    everybody = np.mean([np.mean(one) for one in gaps.values()])
    for source, both in leads.items():
        unit = (50 * everybody + sum(gaps[source])) / (50 + len(gaps[source]))
        found[source] = np.log((1 + both[0] / unit) * (1 + both[1] / unit))
    return found


def test_margins_and_places_are_the_definitions_however_sources_are_cut(
    sides: tuple[Habits, Habits], monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = attack_on(*sides, PRACTISED, 0)
    utilities = attack.resemblance.utilities(slice(None), PRACTISED.weights)
    truth = np.full(len(sides[0]), -1)
    truth[attack.pairs[:, 0]] = attack.pairs[:, 1]
    wanted, right = margins_of(utilities), utilities.argmax(axis=1) == truth
    places = places_of(utilities, attack.resemblance.scores(slice(None))) * (wanted > 0)
    assert (wanted > 0).sum() > 10
    assert places.max() > 5
    for block in (link_model.BLOCK_BYTES, 1):
        monkeypatch.setattr(link_model, "BLOCK_BYTES", block)
        judged = attack.judged()
        np.testing.assert_allclose(judged["margin"], wanted, rtol=1e-3, atol=1e-5)
        assert (judged["right"] == right).all()
        np.testing.assert_allclose(judged["places"], places, rtol=1e-6)
    tied = margins([2.0, 2.0], [1.0, 1.0], [2.0, 1.5], np.array([1.0, 0.0]), 8)
    assert (tied == 0).all()  # another source is as good; what does not fall off behind is no unit


def test_one_target_and_a_view_without_information(sides: tuple[Habits, Habits]) -> None:
    lonely = Resemblance(sides[0], sides[1].only([0]), ("words",)).scores(slice(None))
    assert np.isfinite(lonely).all()
    model = LinkModel(views=("words",), weights=(1.0,))
    utilities = model.utilities(lonely)
    assert (model.given_match(utilities) == 1.0).all()
    signs = lesson_of(model, TrainingPair(lonely, np.zeros(len(utilities), int)))
    found, share = model.open_set.found(*signs[:2])
    assert np.isfinite(found).all()
    assert 0 <= share.low <= share.mean <= share.high <= 1
