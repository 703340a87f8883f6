"""Groups on a line: exact k-means, splits where the data want them, trimmed centres."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InputError
from incrowd.measures.microdata.provider import find_groups, k_means, score_everybody
from incrowd.measures.microdata.spec import GroupSpec, ScoreSpec


def squares(values: np.ndarray, cuts: tuple[int, ...]) -> float:
    runs = np.split(values, cuts)
    return float(sum(((run - run.mean()) ** 2).sum() for run in runs))


@given(st.lists(st.floats(0, 1), min_size=4, max_size=12, unique=True), st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_k_means_is_the_best_of_all_cuts(numbers: list[float], k: int) -> None:
    values = np.sort(np.array(numbers))
    best = min(squares(values, cuts) for cuts in itertools.combinations(range(1, len(values)), k - 1))
    centres = k_means(values, k)
    reached = np.min((values[:, None] - centres) ** 2, axis=1).sum()
    assert reached <= best + 1e-9


def test_well_separated_heaps_are_found_again() -> None:
    rng = np.random.default_rng(0)
    heaps = (0.1, 0.4, 0.65, 0.95)
    scores = np.concatenate([rng.normal(centre, 0.01, 300) for centre in heaps])
    groups = find_groups(scores)
    assert groups.centres == pytest.approx(heaps, abs=0.01)
    assert groups.members.tolist() == [300] * 4


def test_an_even_spread_is_not_split_beyond_the_fewest_asked_for() -> None:
    scores = np.linspace(0, 1, 5000)
    assert len(find_groups(scores, GroupSpec(fewest=1)).centres) == 1
    assert len(find_groups(scores).centres) == 2


def test_the_number_of_groups_can_be_fixed_and_is_bounded() -> None:
    scores = np.random.default_rng(1).beta(5, 2, 2000)
    assert len(find_groups(scores, GroupSpec(exactly=3)).centres) == 3
    atoms = np.repeat(np.linspace(0, 1, 30), 50)
    assert len(find_groups(atoms, GroupSpec(most=6)).centres) <= 6


def test_five_percent_are_trimmed_at_either_end_but_not_of_small_groups() -> None:
    scores = np.arange(100) / 100
    with_outlier = np.where(scores == 0.99, 50.0, scores)
    one = find_groups(with_outlier, GroupSpec(exactly=1))
    assert one.centres[0] == pytest.approx(np.sort(with_outlier)[5:95].mean())
    assert one.members.tolist() == [100]
    small = find_groups(with_outlier[:19], GroupSpec(exactly=1))
    assert small.centres[0] == pytest.approx(with_outlier[:19].mean())


def test_people_belong_to_the_nearest_centre_and_to_the_riskier_on_a_tie() -> None:
    groups = find_groups(np.array([0.0] * 30 + [1.0] * 30))
    assert groups.of(np.array([0.0, 0.49, 0.5, 0.51, 1.0])).tolist() == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("seed", range(8))
def test_groups_count_the_people_who_are_told_that_they_belong_to_them(seed: int) -> None:
    """Trimming moves a centre, and with it the border to the next group: whoever lies there is counted beyond it."""
    rng = np.random.default_rng(seed)
    items = rng.integers(2, 400, 500)
    rare = (items * rng.random(500) ** 3).astype(int)
    everybody = score_everybody(items, rare, ScoreSpec(), outliers=int(rng.integers(0, 40)))
    centres = everybody.groups.centres
    nearest = [int(np.argmin(np.abs(centres - score))) for score in everybody.scores.tolist()]
    assert everybody.groups.members.tolist() == [nearest.count(group) for group in range(len(centres))]


def test_the_order_of_people_does_not_matter() -> None:
    scores = np.random.default_rng(3).random(500)
    shuffled = np.random.default_rng(4).permutation(scores)
    assert find_groups(scores).centres.tolist() == find_groups(shuffled).centres.tolist()


def test_no_scores_and_undefined_scores_are_refused() -> None:
    for bad in (np.array([]), np.array([0.1, np.nan])):
        with pytest.raises(InputError, match="check the profiles"):
            find_groups(bad)


def test_everybody_alike_is_one_group() -> None:
    groups = find_groups(np.full(50, 0.3))
    assert (groups.centres.tolist(), groups.members.tolist()) == ([pytest.approx(0.3)], [50])
