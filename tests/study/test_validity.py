from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.cli.running import incrowd as run

from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.study.validity import ATTACKERS, ValidityOptions, Verdicts, validity_study

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
    one = Verdicts("hall", 3, np.array([0.1, 0.2, 0.3, 0.4, 0.9]), {"x": np.array([0, 0, 1, 0.25, 1.0])})
    # Found at least half of the time: 0.3 and 0.9; of the six pairs with the others five are in order.
    assert one.auc("x") == pytest.approx(5 / 6)
    predicted, found = one.curve("x")
    assert predicted.tolist() == [0.1, 0.2, 0.3, 0.4, 0.9]
    assert found.tolist() == [0, 0, 1, 0.25, 1.0]


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
    assert {row[4] for row in rows} == set(ATTACKERS)
    by_attacker = {row[4]: row[-1] for row in rows}
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
