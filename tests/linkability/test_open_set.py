"""Whether there is a match at all: margins drawn from the model itself, so that what it says can be counted."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.measures.linkability.determined import reliability
from incrowd.measures.linkability.open_set import (
    LOOKALIKES_DIFFER,
    MOST_MARGINS,
    SCALE_DOUBT,
    USUAL_WORDS,
    WIDTH_DOUBT,
    WORDS_POWER,
    OpenSet,
    fall_off,
    learn,
    margins,
)

SCALE, WIDTH, ALIKE = 1.1, 5.0, 0.008
MODEL = OpenSet(scale=SCALE, width=WIDTH, differs=0.0, lookalikes=ALIKE, lookalikes_doubt=0.5, one_sided=0.1)


def usual(margin: np.ndarray) -> np.ndarray:
    """Profiles of the length that WIDTH is about."""
    return np.full(len(margin), USUAL_WORDS)


def drawn(
    generator: np.random.Generator,
    mutual: int,
    share: float,
    *,
    beside: int = 0,
    scale: float = SCALE,
    width: float = WIDTH,
    alike: float = ALIKE,
) -> tuple[np.ndarray, np.ndarray]:
    """Margins of pairs that are each other's best, some matches, some look-alikes; `beside`: sources that are not."""
    right = generator.random(mutual) < share
    wide = right | (generator.random(mutual) < alike)
    margin = scale * generator.gamma(2, np.where(wide, width, 1.0))
    found_beside = generator.random(beside) < 0.1 * share * mutual / max(beside, 1)
    return np.append(margin, np.zeros(beside)), np.append(right, found_beside)


@pytest.mark.parametrize("share", [0.3, 0.05])
@pytest.mark.parametrize("scale", [SCALE, 0.8 * SCALE, 1.25 * SCALE])
def test_who_is_found_is_known_without_labels(share: float, scale: float) -> None:
    """Also where strangers stand further apart than those practised on."""
    margin, right = drawn(np.random.default_rng(5), 20_000, share, beside=20_000, scale=scale)
    probability, estimated = MODEL.found(margin, usual(margin))
    known = scale == SCALE  # as practised; else the scale is found from the margins alone
    assert estimated.mean == pytest.approx(right.mean(), rel=0.15 if known else 0.25)
    assert estimated.low < right.mean() < estimated.high
    assert reliability(probability, right, np.arange(len(right)))["error"] < (0.005 if known else 0.006)
    likely = probability > 0.3
    assert likely.sum() > 20
    assert probability[likely].mean() == pytest.approx(right[likely].mean(), abs=0.12)


@pytest.mark.parametrize("share", [0.02, 0.005, 0.001])
def test_matches_as_rare_as_look_alikes_are_not_taken_for_certain(share: float) -> None:
    """Nothing but practice tells the two apart: the range says so, and nobody is called surer than is right."""
    margin, right = drawn(np.random.default_rng(5), 20_000, share, beside=20_000)
    probability, estimated = MODEL.found(margin, usual(margin))
    assert estimated.low < right.mean() < estimated.high
    assert reliability(probability, right, np.arange(len(right)))["error"] < 0.01
    likely = probability >= 0.1
    assert probability[likely].sum() <= right[likely].sum() + 2 * np.sqrt(right[likely].sum())


def test_where_hardly_anybody_has_a_match_as_many_are_right_as_expected() -> None:
    """Worlds that differ as the model expects; half have no match at all, the others any order of magnitude of them."""
    generator = np.random.default_rng(6)
    expected = happened = cases = 0.0
    for world in range(120):
        share = 0.0 if world % 2 else 10 ** generator.uniform(-5, 0)
        scale, width, alike = (
            middle * np.exp(doubt * generator.normal())
            for middle, doubt in (
                (SCALE, SCALE_DOUBT),
                (WIDTH, WIDTH_DOUBT),
                (ALIKE, np.hypot(0.5, LOOKALIKES_DIFFER)),
            )
        )
        margin, right = drawn(generator, 100, share, scale=scale, width=width, alike=alike)
        probability = MODEL.found(margin, usual(margin))[0]
        likely = probability >= 0.1
        expected, happened = expected + probability[likely].sum(), happened + right[likely].sum()
        cases += likely.sum()
    assert cases > 100
    assert happened / cases == pytest.approx(expected / cases, abs=0.05)


def test_where_nobody_has_a_match_no_margin_makes_sure() -> None:
    margin, _ = drawn(np.random.default_rng(7), 5000, 0.0)
    assert margin.max() > 15 * SCALE
    probability, share = MODEL.found(margin, usual(margin))
    assert probability.max() < 0.25
    assert probability.sum() < 5
    assert share.low < 0.001


@pytest.mark.parametrize(("share", "mutual"), [(0.2, 100), (0.05, 1000), (0.3, 1000)])
def test_the_range_of_the_share_found_covers_what_it_says(share: float, mutual: int) -> None:
    generator = np.random.default_rng(8)
    covered = []
    for _ in range(25 if mutual > 500 else 80):
        found = MODEL.found(margin := drawn(generator, mutual, share)[0], usual(margin))[1]
        covered.append(found.low <= share * (1 + MODEL.one_sided) <= found.high)
    assert np.mean(covered) >= 0.9


def lesson(margin: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return margin, usual(margin), right


def test_practice_teaches_how_far_strangers_and_matches_stand_out() -> None:
    generator = np.random.default_rng(9)
    lessons = [lesson(*drawn(generator, 5_000, 0.3, beside=10_000, scale=scale)) for scale in (0.95, 1.37)]
    taught = learn(lessons)
    assert taught.scale == pytest.approx(1.14, rel=0.1)  # look-alikes count as strangers
    assert taught.width == pytest.approx(WIDTH, rel=0.1)
    assert taught.lookalikes == pytest.approx(ALIKE, rel=0.35)
    assert taught.lookalikes_doubt < 0.3
    assert taught.one_sided == pytest.approx(0.1, rel=0.15)
    # A handful of cases cannot tell: what is expected beforehand stays, with its doubt.
    few = learn([tuple(values[:40] for values in one) for one in lessons])  # type: ignore[misc]
    assert few.lookalikes == pytest.approx(OpenSet().lookalikes, rel=0.6)
    assert few.lookalikes_doubt > 0.5
    assert learn([]) == OpenSet()


def test_practice_teaches_how_much_people_differ() -> None:
    """Of a sum of two exponentials the logarithm has a known mean and variance; what is more is people's."""
    generator = np.random.default_rng(12)
    strangers, matches = (
        SCALE * generator.gamma(2, 1.0, 4_000),
        SCALE * WIDTH * generator.gamma(2, 1.0, 4_000),
    )
    margin, right = np.append(strangers, matches), np.arange(8_000) >= 4_000
    alike = learn([lesson(margin, right)])
    assert alike.differs < 0.15
    differ = margin * np.where(right, np.exp(0.6 * generator.normal(size=8_000)), 1.0)
    assert learn([lesson(differ, right)]).differs == pytest.approx(0.6, abs=0.05)
    assert learn([lesson(differ, right)]).width == pytest.approx(alike.width, rel=0.05)


def test_who_writes_more_stands_out_more() -> None:
    """Practice with short profiles teaches about long ones: widths are of profiles of the usual length."""
    generator = np.random.default_rng(13)
    right = np.arange(8_000) >= 4_000
    for words in (150, 1_000, 9_000):
        wide = WIDTH * (words / USUAL_WORDS) ** WORDS_POWER
        margin = SCALE * np.where(right, wide, 1.0) * generator.gamma(2, 1.0, 8_000)
        assert learn([(margin, np.full(8_000, words), right)]).width == pytest.approx(WIDTH, rel=0.05)
    margin = drawn(generator, 500, 0.3)[0]
    short, long = (MODEL.found(margin, np.full(500, words))[0] for words in (100, 10_000))
    assert not np.allclose(short, long)


def test_the_unit_of_margins_is_how_fast_those_behind_fall_off() -> None:
    """Exponential resemblances of any scale: j times the gap behind the j-th is that scale, however many there are."""
    generator = np.random.default_rng(14)
    for scale, candidates in ((0.2, 50), (1.0, 50), (3.0, 2_000)):
        values = -np.sort(-scale * generator.exponential(size=(4_000, candidates)), axis=1)[:, :10]
        each, gaps = fall_off(values)
        assert gaps == 8
        assert each.mean() == pytest.approx(scale, rel=0.03)
        # The best of strangers leads by just that, so margins of strangers are about two units everywhere.
        margin = margins(values[:, 0], values[:, 1], values[:, 1], each, gaps)
        assert margin.mean() == pytest.approx(2.0, rel=0.06)
    by_hand, gaps = fall_off([[9.0, 5.0, 4.0, 2.0]])
    assert (by_hand[0], gaps) == ((2 * (5 - 4) + 3 * (4 - 2)) / 2, 2)
    for few in ([[3.0]], [[3.0, 1.0]]):
        assert fall_off(few)[1] == 0


def test_margins_by_hand() -> None:
    best, second, rival = [5.0, 5.0, 5.0, 5.0], [3.0, 5.0, 4.0, -np.inf], [4.0, 1.0, 6.0, 1.0]
    behind = np.array([0.5, 9.0, 9.0, 9.0])
    # Only the first leads on both sides: 2 + 1, in its own unit of 0.5. A tie, a nearer rival, nobody else: 0.
    assert margins(best, second, rival, behind, 4).tolist() == [6.0, 0.0, 0.0, 0.0]
    assert margins(best, second, rival, behind, 0).tolist() == [0.0] * 4
    two = margins([5.0, 5.0], [3.0, 3.0], [4.0, 4.0], np.array([0.5, 1.5]), 10)
    # All together fall off by 1, which counts like 50 gaps: (50 + 10 * 0.5) / 60 and (50 + 15) / 60.
    assert two == pytest.approx([3 / (55 / 60), 3 / (65 / 60)])


def test_many_margins_are_counted_in_steps() -> None:
    margin, _ = drawn(np.random.default_rng(10), MOST_MARGINS, 0.1)
    exact = MODEL.found(margin, usual(margin))[0]
    in_steps = MODEL.found(np.append(margin, margin), usual(np.append(margin, margin)))[0][: len(margin)]
    assert np.abs(exact - in_steps).max() < 0.03


def test_nobody_and_nobody_mutual() -> None:
    for none in (np.empty(0), np.zeros(3)):
        probability, share = MODEL.found(none, none)
        assert (probability == 0).all()
        assert (share.mean, share.low, share.high) == (0, 0, 0)
