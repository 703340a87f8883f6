"""Whether there is a match at all: signs drawn from known laws, so that what the model says can be counted."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.measures.linkability.determined import reliability
from incrowd.measures.linkability.open_set import (
    CENTRE,
    SHARES,
    SHARES_BEFOREHAND,
    SPREAD,
    UNTAUGHT,
    Lesson,
    OpenSet,
    fall_off,
    learn,
    margins,
    relative_places,
)

Signs = tuple[np.ndarray, np.ndarray, np.ndarray]


def drawn(
    generator: np.random.Generator,
    mutual: int,
    share: float,
    *,
    beside: int = 0,
    unit: float = 30.0,
    width: float = 5.0,
) -> Signs:
    """Margin, places and truth of pairs that are each other's best; `beside`: sources that are not.

    Strangers lead by an exponential amount on either side, matches by `width` times as much, and by more of the views.
    """
    right = generator.random(mutual) < share
    leads = generator.exponential(np.where(right, width, 1.0)[:, None], (mutual, 2))
    places = unit * np.clip(generator.normal(np.where(right, 0.6, 1.0), 0.2), 0, None)
    found_beside = generator.random(beside) < 0.1 * share * mutual / max(beside, 1)
    margin = np.append(np.log1p(leads).sum(axis=1), np.zeros(beside))
    return margin, np.append(places, np.zeros(beside)), np.append(right, found_beside)


@pytest.fixture(scope="module")
def taught() -> OpenSet:
    """What practice on pairs of communities with other shares of matches and other units of places teaches."""
    generator = np.random.default_rng(1)
    shares = [(0.3, 30.0), (0.1, 20.0), (0.03, 40.0)]
    return learn([drawn(generator, 4_000, share, beside=8_000, unit=unit) for share, unit in shares])


@pytest.mark.parametrize("share", [0.3, 0.05])
@pytest.mark.parametrize("unit", [30.0, 3.0, 300.0])
def test_who_is_found_is_known_without_labels(taught: OpenSet, share: float, unit: float) -> None:
    """Also where there are more or fewer people to be nearer than in the communities practised on."""
    margin, places, right = drawn(np.random.default_rng(5), 20_000, share, beside=20_000, unit=unit)
    probability, estimated = taught.found(margin, places)
    assert estimated.mean == pytest.approx(right.mean(), rel=0.15)
    assert estimated.low < right.mean() < estimated.high
    assert reliability(probability, right, np.arange(len(right)))["error"] < 0.006
    likely = probability > 0.3
    assert likely.sum() > 20
    assert probability[likely].mean() == pytest.approx(right[likely].mean(), abs=0.07)


@pytest.mark.parametrize("share", [0.02, 0.005, 0.001])
def test_rare_matches_are_not_taken_for_certain(taught: OpenSet, share: float) -> None:
    margin, places, right = drawn(np.random.default_rng(5), 20_000, share, beside=20_000)
    probability, estimated = taught.found(margin, places)
    assert estimated.low <= share * 1.1 / 2 <= estimated.high
    assert reliability(probability, right, np.arange(len(right)))["error"] < 0.005
    likely = probability >= 0.1
    assert probability[likely].sum() <= right[likely].sum() + 2 * np.sqrt(right[likely].sum())


def test_where_hardly_anybody_has_a_match_as_many_are_right_as_expected(taught: OpenSet) -> None:
    """Half of the worlds have no match at all, the others any order of magnitude of them."""
    generator = np.random.default_rng(6)
    sure, right, world = [], [], []
    for one in range(300):
        share = 0.0 if one % 2 else 10 ** generator.uniform(-4, 0)
        margin, places, truth = drawn(generator, 100, share)
        sure.append(taught.found(margin, places)[0])
        right.append(truth)
        world.append(np.full(100, one))
    told = reliability(*map(np.concatenate, (sure, right, world)))
    assert told["error"] < 0.02
    assert told["beyond_chance"]["low"] <= 0.03
    likely = np.concatenate(sure) >= 0.1
    assert likely.sum() > 300
    assert np.concatenate(right)[likely].mean() == pytest.approx(
        np.concatenate(sure)[likely].mean(), abs=0.06
    )


def test_where_nobody_has_a_match_no_margin_makes_sure(taught: OpenSet) -> None:
    margin, places, _ = drawn(np.random.default_rng(7), 5000, 0.0)
    assert margin.max() > 3.5
    probability, share = taught.found(margin, places)
    assert probability.max() < 0.25
    assert probability.sum() < 5
    assert share.low < 0.001


@pytest.mark.parametrize(("share", "mutual"), [(0.2, 100), (0.05, 1000), (0.3, 1000)])
def test_the_range_of_the_share_found_covers_what_it_says(taught: OpenSet, share: float, mutual: int) -> None:
    generator = np.random.default_rng(8)
    covered = []
    for _ in range(100):
        margin, places, _ = drawn(generator, mutual, share)
        found = taught.found(margin, places)[1]
        covered.append(found.low <= share * (1 + taught.one_sided) <= found.high)
    assert np.mean(covered) >= 0.9


def test_what_is_found_is_what_the_definition_says() -> None:
    """Written out: the share's likelihood is the product over pairs, and what is left open is averaged over."""
    generator = np.random.default_rng(2)
    model = OpenSet(level=-0.5, margin=1.2, places=-0.8, one_sided=0.2)
    for mutual, share in ((1, 0.5), (7, 0.3), (60, 0.1)):
        margin, places, _ = drawn(generator, mutual, share, beside=5)
        pairs, unit = margin[:mutual], np.mean([p for p, m in zip(places, margin[:mutual], strict=False)
                                                if m <= np.median(margin[:mutual])])  # fmt: skip
        times = [
            np.exp(-0.5 + 1.2 * (m - CENTRE[0]) / SPREAD[0] - 0.8 * (p / unit - CENTRE[1]) / SPREAD[1])
            for m, p in zip(pairs, places, strict=False)
        ]
        belief = [
            before * np.prod([1 - share + share * t for t in times])
            for share, before in zip(SHARES, SHARES_BEFOREHAND, strict=True)
        ]
        wanted = [
            sum(b * s * t / (1 - s + s * t) for s, b in zip(SHARES, belief, strict=True)) / sum(belief)
            for t in times
        ]
        probability, found = model.found(margin, places)
        np.testing.assert_allclose(probability[:mutual], wanted, rtol=1e-6)
        np.testing.assert_allclose(probability[mutual:], min(0.2 * sum(wanted) / 5, 0.5), rtol=1e-6)
        mean = sum(s * b for s, b in zip(SHARES, belief, strict=True)) / sum(belief)
        assert found.mean == pytest.approx(min(1.0, mean * 1.2 * mutual / (mutual + 5)))


def test_practice_teaches_what_signs_weigh_whatever_the_share_of_matches() -> None:
    """Signs that are the model's own: its weights are found again, and the shares do not get into them."""
    true = np.array([-0.4, 1.1, -0.9])
    generator = np.random.default_rng(9)
    margin = np.abs(generator.normal(CENTRE[0], SPREAD[0], 400_000)) + 1e-9
    places = np.clip(generator.normal(1.0, 0.2, len(margin)), 0, None)
    x = np.column_stack([np.ones(len(margin)), (margin - CENTRE[0]) / SPREAD[0],
                         (relative_places(margin, places) - CENTRE[1]) / SPREAD[1]])  # fmt: skip
    times = np.exp(x @ true)
    lessons: list[Lesson] = []
    for share, part in ((0.3, slice(0, 200_000)), (0.02, slice(200_000, None))):
        right = generator.random(200_000) < share * times[part] / (1 - share + share * times[part])
        # What is known in practice is how many are right; the model's share is of a crowd where signs are usual.
        lessons.append((margin[part], places[part], right))
    together, *alone = (learn(some, sure=1e-3) for some in (lessons, lessons[:1], lessons[1:]))
    for one in (together, *alone):
        assert one.weights[1:] == pytest.approx(true[1:], abs=0.06)
    assert alone[0].weights[1:] == pytest.approx(alone[1].weights[1:], abs=0.06)


def test_few_cases_leave_what_is_expected() -> None:
    generator = np.random.default_rng(10)
    few = learn([drawn(generator, 40, 0.2, beside=80)])
    assert few.weights == pytest.approx(UNTAUGHT.weights, abs=0.35)
    many = learn([drawn(generator, 40_000, 0.2, beside=80)])
    assert np.abs(many.weights - UNTAUGHT.weights).max() > np.abs(few.weights - UNTAUGHT.weights).max()
    for none in ([], [(np.zeros(3), np.zeros(3), np.zeros(3, bool))]):
        assert learn(none).weights == pytest.approx(UNTAUGHT.weights)
        assert learn(none).one_sided == pytest.approx(UNTAUGHT.one_sided)
    other = OpenSet(level=1.0, margin=2.0, places=-3.0, one_sided=0.3)
    assert learn([], other).weights == pytest.approx(other.weights)


def test_practice_teaches_who_is_found_beside() -> None:
    signs = drawn(np.random.default_rng(11), 10_000, 0.3, beside=20_000)
    assert learn([signs]).one_sided == pytest.approx(0.1, rel=0.15)


def test_the_unit_of_margins_is_how_fast_those_behind_fall_off() -> None:
    """Exponential resemblances of any scale: j times the gap behind the j-th is that scale, however many there are."""
    generator = np.random.default_rng(14)
    for scale, candidates in ((0.2, 50), (1.0, 50), (3.0, 2_000)):
        values = -np.sort(-scale * generator.exponential(size=(4_000, candidates)), axis=1)[:, :10]
        each, gaps = fall_off(values)
        assert gaps == 8
        assert each.mean() == pytest.approx(scale, rel=0.03)
        # The best of strangers leads by just that, on either side, so margins of strangers are alike everywhere.
        margin = margins(values[:, 0], values[:, 1], values[:, 1], each, gaps)
        assert np.expm1(margin / 2).mean() == pytest.approx(1.0, rel=0.06)
    by_hand, gaps = fall_off([[9.0, 5.0, 4.0, 2.0]])
    assert (by_hand[0], gaps) == ((2 * (5 - 4) + 3 * (4 - 2)) / 2, 2)
    for few in ([[3.0]], [[3.0, 1.0]]):
        assert fall_off(few)[1] == 0


def test_margins_by_hand() -> None:
    best, second, rival = [5.0, 5.0, 5.0, 5.0], [3.0, 5.0, 4.0, -np.inf], [4.0, 1.0, 6.0, 1.0]
    behind = np.array([0.5, 9.0, 9.0, 9.0])
    # Only the first leads on both sides: by 2 and 1, in its own unit of 0.5. A tie, a nearer rival, nobody else: 0.
    assert margins(best, second, rival, behind, 4) == pytest.approx([np.log(5 * 3), 0.0, 0.0, 0.0])
    assert margins(best, second, rival, behind, 0).tolist() == [0.0] * 4
    two = margins([5.0, 5.0], [3.0, 3.0], [4.0, 4.0], np.array([0.5, 1.5]), 10)
    # All together fall off by 1, which counts like 50 gaps: (50 + 10 * 0.5) / 60 and (50 + 15) / 60.
    for found, unit in zip(two, (55 / 60, 65 / 60), strict=True):
        assert found == pytest.approx(np.log((1 + 2 / unit) * (1 + 1 / unit)))


def test_places_are_in_units_of_those_who_lead_least() -> None:
    margin, places = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 6.0, 4.0, 0.0])
    assert relative_places(margin, places) == pytest.approx([10 / 8, 6 / 8, 4 / 8, 0.0])
    assert relative_places(margin, 7 * places) == pytest.approx(relative_places(margin, places))
    # Where even they are first everywhere, places tell nothing.
    assert relative_places(margin, np.zeros(4)).tolist() == [1.0] * 4
    assert len(relative_places(np.empty(0), np.empty(0))) == 0


def test_nobody_and_nobody_mutual() -> None:
    for none in (np.empty(0), np.zeros(3)):
        probability, share = UNTAUGHT.found(none, none)
        assert (probability == 0).all()
        assert (share.mean, share.low, share.high) == (0, 0, 0)
    # The surest of signs are no overflow.
    assert np.isfinite(UNTAUGHT.found(np.array([1e6, 1.0]), np.array([0.0, 1.0]))[0]).all()
