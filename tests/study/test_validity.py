from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.running import incrowd as run

from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.measures.attackers import ATTACKERS
from incrowd.statistics import auc, auc_of_rates
from incrowd.study.attacked import ITEM_ATTACKERS, ValidityOptions, Verdicts, items, links, pooled
from incrowd.study.validity import validity_study

TEXTS = pl.Series(
    [
        "the red apples and the red pears",
        "of a blue boat, of a blue sea",
        "the red apples again and the pears",
        "of a boat",
    ]
)


@pytest.mark.parametrize("name", ATTACKERS)
def test_every_attacker_finds_who_wrote_alike(name: str) -> None:
    attacker = ATTACKERS[name](TEXTS, [np.array([0]), np.array([1])])
    alike = attacker.resemblance([np.array([2]), np.array([3])])
    assert alike.shape == (2, 2)
    assert alike.argmax(axis=1).tolist() == [0, 1]


def test_the_numbers_of_a_community_by_hand() -> None:
    one = Verdicts(
        "hall", "3 posts", np.array([0.1, 0.2, 0.3, 0.4, 0.9]), {"x": np.array([0, 0, 1, 0.25, 1.0])}
    )
    # Found at least half of the time: 0.3 and 0.9; of the six pairs with the others five are in order.
    value, low, high = one.auc("x")
    assert value == pytest.approx(5 / 6)
    assert low < value < high
    # Attempts: of 2.25 successes and 2.75 failures, weighed pair by pair.
    rates, told = one.found["x"], one.predicted
    pairs = [(a, b, rates[a] * (1 - rates[b])) for a in range(5) for b in range(5)]
    right = sum(weight * ((told[a] > told[b]) + (told[a] == told[b]) / 2) for a, b, weight in pairs)
    assert one.auc_of_attempts("x")[0] == pytest.approx(right / sum(weight for _, _, weight in pairs))
    assert np.isnan(one.auc_of_itself("x")).all()
    tried = replace(one, found_before={"x": np.array([0.0, 0.0, 0.5, 0.5, 1.0])})
    assert tried.auc_of_itself("x")[0] == pytest.approx(auc_of_rates(rates, [0, 0, 1, 1, 2]))
    predicted, found = one.curve("x")
    assert predicted.tolist() == [0.1, 0.2, 0.3, 0.4, 0.9]
    assert found.tolist() == [0, 0, 1, 0.25, 1.0]


def test_too_few_found_are_no_number() -> None:
    rare, usual = np.zeros(40), np.arange(40) % 2
    one = Verdicts("hall", "3 posts", np.arange(40.0), {"rare": rare, "usual": usual, "always": 1 - rare})
    assert one.too_few("rare") == "too few found to tell: 0 of 40"
    assert one.too_few("always") == "too few not found to tell: 0 of 40"
    assert one.too_few("usual") == ""
    assert np.isnan(one.auc("rare")).all()


def test_people_of_several_pairs_are_compared_within_their_pair() -> None:
    """All of the second pair were told more than all of the first, and nobody there is found: no matter."""
    first = Verdicts("a", "both", np.array([0.1, 0.2, 0.3]), {"x": np.array([0.0, 1.0, 1.0])})
    second = Verdicts("b", "both", np.array([0.7, 0.8, 0.9, 1.0]), {"x": np.array([1.0, 0.0, 1.0, 0.0])})
    nobody = Verdicts("c", "both", np.array([2.0, 3.0]), {"x": np.zeros(2)})
    together = pooled([first, second, nobody], "all")
    # Within the first 2 of 2 comparisons are in order, within the second 1 of 4.
    assert together.auc("x")[0] == pytest.approx(3 / 6)
    assert together.auc_of_attempts("x")[0] == pytest.approx(3 / 6)
    alone = pooled([first], "all")
    assert alone.auc("x") == pytest.approx(first.auc("x"))


def _drawn(rng: np.random.Generator, people: int, share: float, pull: float) -> tuple[np.ndarray, np.ndarray]:
    """Draw what people were told, and how often they were found in four attempts that share the person's luck."""
    told, luck = rng.normal(size=people), rng.normal(size=people)
    chance = 1 / (1 + np.exp(-(np.log(share / (1 - share)) + pull * told + luck)))
    return told, rng.binomial(4, chance) / 4


@pytest.mark.parametrize(("people", "share", "pull"), [(400, 0.03, 0.8), (400, 0.3, 0.8), (60, 0.2, 1.5)])
def test_the_intervals_of_both_aucs_cover_them(people: int, share: float, pull: float) -> None:
    rng = np.random.default_rng(people)
    told, found = _drawn(rng, 200_000, share, pull)
    often, attempts = auc(found >= 0.5, told), auc_of_rates(found, told)
    held = np.zeros(2)
    for _ in range(200):
        told, found = _drawn(rng, people, share, pull)
        one = Verdicts("hall", "3 posts", told, {"x": found})
        for place, (truth, (_, low, high)) in enumerate(
            ((often, one.auc("x")), (attempts, one.auc_of_attempts("x")))
        ):
            held[place] += low <= truth <= high
    # 95 % are meant; 200 draws give or take 1.5 %.
    assert (held / 200 >= 0.91).all()


def test_everything_in_order_is_not_certain() -> None:
    """Leaving people out changes nothing here: the interval must not shrink to a point."""
    one = Verdicts("hall", "3 posts", np.arange(20.0), {"x": (np.arange(20) >= 10).astype(float)})
    value, low, high = one.auc_of_attempts("x")
    assert (value, high) == (1, 1)
    assert 0.7 < low < 0.95


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    """Half of the people write with words and habits of their own."""
    rng = np.random.default_rng(0)
    common = ["the", "of", "and", "to", *(f"word{k}" for k in range(80))]
    rows = []
    for person in range(80):
        for post in range(12):
            words = list(rng.choice(common, 20))
            if person % 2:
                words[:6] = [f"own{person}x{k}" for k in rng.integers(0, 3, 6)]
            rows.append((f"p{person:02}", "hall", 1_600_000_000 + 90_000 * post, " ".join(words)))
    folder = tmp_path_factory.mktemp("validity")
    pl.DataFrame(rows, schema=["user", "community", "time", "text"], orient="row").write_csv(folder / "p.csv")
    made = Crowd.open_or_create(folder / "crowd", plain_names=True)
    made.ingest([folder / "p.csv"], kind="posts")
    return made


def test_predictions_rank_people_as_unseen_attackers_do(crowd: Crowd) -> None:
    study = validity_study(crowd, ValidityOptions(known=(3,), people=80, rivals=80, draws=2))
    rows = study.to_dict()["sections"][0]["parts"][0]["rows"]
    assert {row[5] for row in rows} == set(ATTACKERS)
    by_attacker = {row[5]: row[7] for row in rows}
    assert by_attacker["plain TF-IDF"] > 0.9
    assert by_attacker["character runs"] > 0.9


def test_the_command(crowd: Crowd, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "v.html"
    command = ("study", "validity", str(crowd.path), "--people", "40", "--rivals", "40")
    told = run(capsys, *command, "--out", str(page), "--json")
    assert told.code == 0
    assert json.loads(told.out)["name"] == "validity"
    assert "p01" not in page.read_text("utf-8")


def test_too_few_people_are_no_study(crowd: Crowd) -> None:
    with pytest.raises(InputError, match="at least 40"):
        ValidityOptions(people=10)
    with pytest.raises(InputError, match="known must be some of"):
        ValidityOptions(known=(2,))


def test_links_are_predicted_and_attacked(tmp_path: Path) -> None:
    """Half of the people take words of their own into both communities; the others write like everybody."""
    rng = np.random.default_rng(0)
    common = ["the", "of", "and", "to", *(f"word{k}" for k in range(60))]
    rows = []
    for person in range(60):
        for place in ("hall", "yard"):
            for post in range(24):
                words = list(rng.choice(common, 12))
                if person % 2:
                    words[:4] = [f"own{person}x{k}" for k in rng.integers(0, 3, 4)]
                rows.append((f"p{person:02}", place, 1_600_000_000 + 90_000 * post, " ".join(words)))
    frame = pl.DataFrame(rows, schema=["user", "community", "time", "text"], orient="row")
    crowd = Crowd.from_frame(frame, path=tmp_path / "crowd")
    (one,) = links(crowd, ValidityOptions(people=60, rivals=60, pairs=1))
    assert (one.question, one.about, len(one.predicted)) == ("links", "hall to yard", 60)
    assert set(one.found) == set(ATTACKERS)
    assert one.auc("plain TF-IDF")[0] > 0.9
    assert one.found["plain TF-IDF"].mean() > 0.45


def test_items_are_predicted_and_attacked(tmp_path: Path) -> None:
    """People with rare items early have rare items late; their three items pick them out."""
    rng = np.random.default_rng(1)
    rows = []
    for person in range(80):
        often = rng.choice(12, 12, replace=False) if person % 2 else 100 + rng.choice(400, 12, replace=False)
        rows += [
            (f"p{person:02}", f"i{item}", float(rng.integers(1, 6)), 1_000 * k)
            for k, item in enumerate(often)
        ]
    frame = pl.DataFrame(rows, schema=["user", "item", "value", "time"], orient="row")
    crowd = Crowd.from_frame(frame, kind="items", path=tmp_path / "crowd")
    (one,) = items(crowd, ValidityOptions(people=80, rivals=80, items_known=(3,)))
    assert (one.question, one.known, len(one.predicted)) == ("items", "3 items", 80)
    assert set(one.found) == set(ITEM_ATTACKERS)
    assert set(one.found_before) == set(ITEM_ATTACKERS)
    for name in ITEM_ATTACKERS:
        assert one.auc_of_attempts(name)[0] > 0.8
    assert one.auc_of_itself("cosine of lists")[0] > 0.8
    # The prediction's own attacker is the one that the study tries as predicted.
    assert one.found_before["as predicted"].mean() == pytest.approx(one.predicted.mean(), abs=0.03)
    assert not items(Crowd.from_frame(frame.drop("time"), kind="items"), ValidityOptions())


def test_an_unknown_question_is_refused() -> None:
    with pytest.raises(InputError, match="posts, links, items"):
        ValidityOptions(questions=("weather",))
