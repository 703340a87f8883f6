from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from incrowd.statistics import Expected, auc, calibration_error, calibration_gap, fit_along, fit_logistic

scores = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=30)


@given(scores)
def test_auc_is_the_share_of_pairs_in_the_right_order(cases: list[tuple[bool, int]]) -> None:
    yes = [s for positive, s in cases if positive]
    no = [s for positive, s in cases if not positive]
    found = auc([p for p, _ in cases], [s for _, s in cases])
    if not yes or not no:
        assert np.isnan(found)
        return
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in itertools.product(yes, no)]
    assert found == pytest.approx(np.mean(pairs))
    assert found == pytest.approx(roc_auc_score([p for p, _ in cases], [s for _, s in cases]))


def test_calibration_gap_by_hand() -> None:
    """Two bins of eight: the gap's square, less the variance of the mean gap, and both bins weigh the same."""
    predicted = np.repeat([0.2, 0.8], 8)
    happened = np.append(np.repeat([0.0, 1.0], [2, 6]), np.ones(8))
    found = calibration_gap(predicted, happened)
    gaps = np.array([-0.55, -0.2])  # 0.2 - 6 / 8 and 0.8 - 1
    off = np.array([12 / 8 / 7 / 8, 0.0])  # six of eight: 8 * 3/4 * 1/4 = 12 / 8 squared deviations
    assert found.squared == pytest.approx((gaps**2 - off).mean())
    assert found.deviation == pytest.approx(np.sqrt((4 * (gaps**2 - off) * off + 2 * off**2).sum()) / 2)
    assert found.gap == pytest.approx(np.sqrt(found.squared))
    # With two cases for each of eight people there is one bin, and a person's two count as one.
    people = np.repeat(np.arange(8), 2)
    sums = (predicted - happened).reshape(8, 2).mean(axis=1)
    assert calibration_gap(predicted, happened, people).squared == pytest.approx(
        sums.mean() ** 2 - sums.var(ddof=1) / 8
    )
    assert np.isnan(calibration_gap([0.2, 0.3], [0, 1], people=["a", "a"]).gap)
    assert np.isnan(calibration_gap([], []).squared)


@pytest.mark.parametrize(("cases", "planted"), [(60, 0.0), (400, 0.0), (60, 0.1), (400, 0.1), (2_000, 0.05)])
@pytest.mark.parametrize("fates", [1, 3])
def test_the_gap_of_a_simulated_forecaster_is_what_was_planted(
    cases: int, planted: float, fates: int
) -> None:
    """Each person is `fates` cases with one fate: 0 on average for the perfect, the bias of the biased."""
    generator = np.random.default_rng([cases, fates, int(100 * planted)])
    squared, covered, plain = [], [], []
    for _ in range(600):
        sure = np.repeat(generator.beta(0.7, 0.7, cases // fates) * (1 - planted), fates)
        right = np.repeat(generator.random(cases // fates), fates) < sure + planted
        found = calibration_gap(sure, right, np.repeat(np.arange(cases // fates), fates))
        squared.append(found.squared)
        low, high = found.interval
        covered.append(low <= planted <= high)
        plain.append(calibration_error(sure, right, bins=10))
    off = np.std(squared) / np.sqrt(len(squared))
    assert np.mean(squared) == pytest.approx(planted**2, abs=4 * off)
    assert np.mean(covered) >= 0.93
    if not planted:
        assert np.mean(plain) > 0.04  # what a mean gap shows of that forecaster, who is perfect


def test_calibration_error_by_hand() -> None:
    assert calibration_error([0.1, 0.1, 0.9, 0.9], [0, 0, 1, 0.5], bins=2) == pytest.approx((0.1 + 0.15) / 2)
    assert np.isnan(calibration_error([0.5], [1.0], bins=2))


def test_the_regression_is_scikit_learns() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3)) * [1, 5, 0.1] + [0, 3, -2]
    y = rng.random(400) < expit(x @ [1.0, -0.3, 4.0] + 9)
    ours = fit_logistic(x, y, ridge=2.0)
    standard = (x - x.mean(0)) / x.std(0)
    theirs = LogisticRegression(C=1 / 2.0, tol=1e-10, max_iter=10_000).fit(standard, y)
    assert ours.weights[1:] == pytest.approx(theirs.coef_[0], abs=1e-3)
    assert ours.predict(x) == pytest.approx(theirs.predict_proba(standard)[:, 1], abs=1e-4)


def test_a_missing_value_counts_as_average() -> None:
    x = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = fit_logistic(x, [0, 0, 1, 1])
    assert model.predict([[np.nan]])[0] == pytest.approx(model.predict([[1.5]])[0])


def test_the_interval_covers_what_it_says() -> None:
    """Rates of six correlated draws: people differ beyond what the columns show."""
    rng = np.random.default_rng(2)
    held, tried = 0, 0
    for _ in range(150):
        x = rng.normal(size=(300, 2))
        mean = expit(x @ [1.0, -0.5] - 0.5)
        own = rng.beta(mean * 2, (1 - mean) * 2)
        model = fit_logistic(x, rng.binomial(6, own) / 6, ridge=0.1)
        low, high = model.interval(x[:20], coverage=0.9)
        # The rate of people like these is `mean`, up to the averaging over what the columns do not show.
        held += int(((low <= mean[:20]) & (mean[:20] <= high)).sum())
        tried += 20
    assert held / tried == pytest.approx(0.9, abs=0.04)


def test_several_amounts_are_fitted_together_and_their_weights_move_with_the_amount() -> None:
    rng = np.random.default_rng(3)
    amount = np.repeat([1, 3, 10], 4_000)
    x = rng.normal(size=(len(amount), 1))
    intercept, slope = np.log(amount) - 2, 0.5 + 0.4 * np.log(amount)
    y = rng.random(len(amount)) < expit(intercept + slope * x[:, 0])
    models = fit_along(x, y, amount, np.arange(len(amount)), ridge=0.01)
    for n in (1, 3, 10):
        asked = np.array([[-1.0], [0.0], [1.0]])
        truth = expit(np.log(n) - 2 + (0.5 + 0.4 * np.log(n)) * asked[:, 0])
        assert models[n].predict(asked) == pytest.approx(truth, abs=0.03)


def test_rows_of_one_group_count_as_one() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(200, 2))
    y = rng.random(200) < expit(x[:, 0])
    person = np.arange(200)
    once = fit_along(x, y, np.ones(200), person, ridge=1e-6)[1]
    twice = fit_along(np.tile(x, (2, 1)), np.tile(y, 2), np.ones(400), np.tile(person, 2), ridge=1e-6)[1]
    widths = [np.subtract(*one.interval(x[:5])) for one in (once, twice)]
    assert widths[1] == pytest.approx(widths[0], rel=0.02)


def test_what_is_expected_decides_where_data_do_not_and_yields_where_they_do() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3_000, 2))
    y = rng.random(3_000) < expit(x[:, 0])
    wrong = Expected(np.array([-1.0, 1.0]), np.zeros(2))
    few, many = (fit_along(x[:n], y[:n], np.ones(n), np.arange(n), 30.0, wrong)[1] for n in (20, 3_000))
    assert few.weights[1:] == pytest.approx(wrong.weights, abs=0.35)
    assert many.weights[1:] == pytest.approx([1.0, 0.0], abs=0.15)


def test_expected_weights_move_with_the_amount() -> None:
    rng = np.random.default_rng(6)
    amount = np.repeat([1, 3, 10], 10)
    x, y = rng.normal(size=(30, 1)), rng.random(30)
    expected = Expected(np.array([0.5]), np.array([0.4]), amount=3.0)
    models = fit_along(x, y, amount, np.arange(30), 1e9, expected)
    alone = fit_along(x[20:], y[20:], amount[20:], np.arange(10), 1e9, expected)
    for n in (1, 3, 10):
        assert models[n].weights[1] == pytest.approx(0.5 + 0.4 * np.log(n / 3), abs=1e-6)
    assert alone[10].weights[1] == pytest.approx(models[10].weights[1], abs=1e-6)


def test_an_expectation_about_what_nobody_has_is_no_weight() -> None:
    x = np.column_stack([np.linspace(-1, 1, 40), np.full(40, np.nan)])
    expected = Expected(np.array([1.0, 5.0]), np.zeros(2))
    model = fit_along(x, np.arange(40) % 2, np.ones(40), np.arange(40), 30.0, expected)[1]
    assert model.weights[2] == pytest.approx(0.0)
    assert model.predict([[0.0, 7.0]]) == pytest.approx(model.predict([[0.0, np.nan]]))


def test_the_interval_holds_where_weights_lie_about_what_is_expected() -> None:
    rng = np.random.default_rng(7)
    held, ridge, centre = [], 10.0, np.array([0.8, -0.4])
    for _ in range(150):
        true = centre + rng.normal(size=2) / np.sqrt(ridge)
        x = rng.normal(size=(120, 2))
        y = rng.random(120) < expit(x @ true)
        model = fit_along(x, y, np.ones(120), np.arange(120), ridge, Expected(centre, np.zeros(2)))[1]
        low, high = model.interval(x[:20], coverage=0.9)
        rate = expit(x[:20] @ true)
        held.append(((low <= rate) & (rate <= high)).mean())
    assert np.mean(held) == pytest.approx(0.9, abs=0.04)
