"""A crowd, a person and a policy in; results, assessments, commands and the study out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.belief.making import table_of
from tests.cli.running import incrowd

from incrowd.crowd import Crowd
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.belief.assess import check_policy
from incrowd.measures.belief.crowd_belief import CrowdBelief, fitted_belief
from incrowd.measures.belief.engine import hide_and_guess, reliability
from incrowd.measures.belief.policy import (
    Generalise,
    Perturb,
    Policy,
    Publication,
    Requirement,
    Unlinkable,
    Withhold,
)
from incrowd.measures.belief.ready import check_everyone
from incrowd.measures.belief.spec import BeliefOptions
from incrowd.profiles.attributes import HIDDEN, AttributeSpace, SeenAttributes, attribute_table, from_long

POLICY = """
[publish]
withhold = ["region", "income"]

[[require]]
attribute = "region"
own = true
sigma = 0.3

[[require]]
attribute = "income"
sigma = 0.99

[[require]]
same_user = ["cycling", "gardening"]
sigma = 0.9
"""
HIDE_REGION = Publication(ways={"region": Withhold()})


def policy(sigma: float, value: str = "*") -> Policy:
    requirement = Requirement(values={"region": value}, sigma=sigma)
    return Policy(requirements=(requirement,), publication=HIDE_REGION)


def test_long_rows_become_one_row_a_person() -> None:
    rows = [
        ("b", "city", "Y"),
        ("a", "city", "X"),
        ("a", "job", "smith"),
        ("b", "city", "Z"),
        ("a", "city", "X"),
    ]
    table = from_long(pl.DataFrame(rows, schema=["user", "attribute", "value"], orient="row"))
    assert table.space.attributes == ("city", "job")
    assert table.codes.tolist() == [[0, 0], [1, HIDDEN]]
    assert table.several == 1
    assert table.of(table.row("a")) == {"city": "X", "job": "smith"}
    with pytest.raises(NotInCrowd):
        table.row("c")


def test_a_zip_code_gives_the_region_away(tiny_crowd: Crowd) -> None:
    options = BeliefOptions(smoothing=0.05)
    checked = check_policy(tiny_crowd, "alex", policy(0.3), options=options)
    (judged,) = checked.judged
    assert judged.posterior > judged.prior
    assert sum(part.contribution for part in judged.evidence) == pytest.approx(
        judged.posterior - judged.prior
    )
    said = checked.to_dict()
    assert said["assumptions"]["adversary"].startswith("someone who has read what you published")
    assert set(said["epsilon"]["by_attribute"]) == set(checked.published)
    assert said["epsilon"]["largest"] == max(said["epsilon"]["by_attribute"].values())
    assert said["sensitive"] == []
    (assessment,) = checked.assessments()
    assert assessment.value == judged.posterior
    assert assessment.explained == pytest.approx(judged.posterior - judged.prior)
    assert "region" not in checked.published


def test_withholding_a_critical_set_repairs_the_policy(tiny_crowd: Crowd) -> None:
    options = BeliefOptions(smoothing=0.3)
    checked = check_policy(tiny_crowd, "alex", policy(0.6), options=options)
    assert not checked.satisfied
    assert checked.critical.sets
    for found in checked.critical.sets[:3]:
        ways = {name: Withhold() for name in ("region", *found.attributes)}
        repaired = Policy(requirements=policy(0.6).requirements, publication=Publication(ways=ways))
        assert check_policy(tiny_crowd, "alex", repaired, options=options).satisfied


def test_a_published_secret_is_certain_and_critical(tiny_crowd: Crowd) -> None:
    table = attribute_table(tiny_crowd)
    own = table.of(table.row("alex"))["region"]
    shown = Policy(requirements=(Requirement(values={"region": own}, sigma=0.97),))
    checked = check_policy(tiny_crowd, "alex", shown, options=BeliefOptions(smoothing=0.9))
    assert checked.judged[0].posterior == 1
    assert checked.sensitive == ("region",)
    assert ("region",) in [found.attributes for found in checked.critical.sets]


def test_an_insider_is_surer_than_a_stranger(tiny_crowd: Crowd) -> None:
    table = attribute_table(tiny_crowd)
    own = table.of(table.row("alex"))["region"]
    sure = [
        check_policy(
            tiny_crowd, "alex", policy(0.3, own), options=BeliefOptions(smoothing=0.05, adversary=who)
        )
        for who in ("stranger", "insider")
    ]
    assert sure[1].judged[0].posterior > sure[0].judged[0].posterior
    assert sure[1].judged[0].posterior > 0.95


@pytest.mark.parametrize(
    "options", [BeliefOptions(engine="network"), BeliefOptions(), BeliefOptions(text=True)]
)
def test_every_engine_answers(tiny_crowd: Crowd, options: BeliefOptions) -> None:
    result = check_policy(tiny_crowd, "alex", policy(0.3), options=options).to_dict()
    assert set(result["requirements"][0]) >= {
        "attribute",
        "value",
        "sigma",
        "posterior",
        "prior",
        "satisfied",
    }
    assert 0 <= result["requirements"][0]["posterior"] <= 1
    json.dumps(result)


def test_what_cannot_be_is_said_to_be_undefined(tiny_crowd: Crowd) -> None:
    """Without smoothing a stranger knows nobody with all of these values at once."""
    checked = check_policy(tiny_crowd, "alex", policy(0.3), options=BeliefOptions(smoothing=0.0))
    said = checked.to_dict()
    assert said["requirements"][0]["posterior"] is None
    assert "contradiction" in said["requirements"][0]["reason"]
    assert not checked.satisfied
    json.dumps(said, allow_nan=False)
    assert checked.sentence().startswith("Cannot tell for your region")
    (assessment,) = checked.assessments()
    assert not assessment.defined


def test_linkability_is_an_attribute(tiny_crowd: Crowd) -> None:
    links = Policy(links=(Unlinkable(communities=("cycling", "gardening"), sigma=0.0),))
    checked = check_policy(tiny_crowd, "alex", links)
    assert not checked.satisfied
    assert checked.judged[0].attribute == "same user"
    assert checked.judged[0].posterior > checked.judged[0].prior
    with pytest.raises(NotInCrowd, match="no words in 'films'"):
        check_policy(
            tiny_crowd, "alex", Policy(links=(Unlinkable(communities=("cycling", "films"), sigma=0.1),))
        )


def test_everybody_is_checked_as_one_by_one(tiny_crowd: Crowd) -> None:
    table, options = attribute_table(tiny_crowd), BeliefOptions(smoothing=0.2)
    own = Requirement(values={"region": "*"}, sigma=0.5, own=True)
    everyone = check_everyone(table, Policy(requirements=(own,), publication=HIDE_REGION), options)
    for row in (0, 7, 30):
        truth = table.of(row)
        if "region" not in truth:
            assert np.isnan(everyone.posterior[row, 0])
            continue
        one = check_policy(tiny_crowd, table.users[row], policy(0.5, truth["region"]), options=options)
        assert everyone.posterior[row, 0] == pytest.approx(one.judged[0].posterior, rel=1e-12)
    rates = everyone.to_dict()
    assert rates["people"] == 60
    assert 0 <= rates["violated"] <= 1


def test_everybody_is_checked_with_changed_attributes_and_joint_requirements(tiny_crowd: Crowd) -> None:
    table, options = attribute_table(tiny_crowd), BeliefOptions(smoothing=0.2)
    cities = table.space.values[table.space.place("city")]
    halves = {"one": tuple(map(str, cities[::2])), "two": tuple(map(str, cities[1::2]))}
    ways = {"region": Withhold(), "city": Generalise(halves), "zip": Withhold(), "income": Withhold()}
    values = {name: str(table.space.values[table.space.place(name)][0]) for name in ("region", "income")}
    for joint in (False, True):
        wanted = Policy(
            requirements=(Requirement(values=values, sigma=0.5, joint=joint),),
            publication=Publication(ways=ways),
        )
        everyone = check_everyone(table, wanted, options)
        assert everyone.posterior.shape == (60, 1 if joint else 2)
        for row in (0, 7, 30):
            one = check_policy(tiny_crowd, table.users[row], wanted, options=options)
            np.testing.assert_allclose(
                everyone.posterior[row], [judged.posterior for judged in one.judged], rtol=1e-10
            )


def test_everybody_perturbed_is_less_known(tiny_crowd: Crowd) -> None:
    table = attribute_table(tiny_crowd)
    own = Requirement(values={"region": "*"}, sigma=0.5, own=True)
    means = []
    for keep in (1.0, 0.3):
        ways = {"region": Withhold(), "city": Perturb(keep), "zip": Withhold()}
        policy = Policy(requirements=(own,), publication=Publication(ways=ways))
        checked = check_everyone(table, policy, BeliefOptions(smoothing=0.1))
        means.append(checked.to_dict()["requirements"][0]["mean_posterior"])
    assert means[0] > means[1]


def test_a_crowd_is_not_checked_for_links(tiny_crowd: Crowd) -> None:
    with pytest.raises(InputError, match="not of linked profiles"):
        check_everyone(
            attribute_table(tiny_crowd), Policy(links=(Unlinkable(communities=("a", "b"), sigma=0.1),))
        )


def test_reliability_by_hand() -> None:
    curve = reliability([0.95, 0.95, 0.25, 0.25], [1, 0, 0, 1])
    assert curve.count.tolist() == [0, 0, 2, 0, 0, 0, 0, 0, 0, 2]
    assert curve.error == pytest.approx((0.45 * 2 + 0.25 * 2) / 4)
    assert np.isnan(reliability([], []).error)


def test_fitting_smooths_noise_away_and_keeps_what_tells() -> None:
    """b repeats a in nine of ten people; the other columns are noise with many values."""
    rng = np.random.default_rng(0)
    a = rng.integers(3, size=700)
    b = np.where(rng.random(700) < 0.9, a, rng.integers(3, size=700))
    noise = rng.integers(40, size=(700, 3))
    space = AttributeSpace.of(
        {"a": list("xyz"), "b": list("xyz")} | {f"n{k}": [str(v) for v in range(40)] for k in range(3)}
    )
    table = table_of(space, np.column_stack([a, b, noise]))
    train, held = table.only(np.arange(500)), table.only(np.arange(500, 700))
    fitted, fixed = fitted_belief(train, [1]), CrowdBelief.learn(train, 0.05)
    assert fitted.smoothing[0] < 0.5
    assert (fitted.smoothing[2:] >= 0.9).all()
    honest, rash = (hide_and_guess(belief, held, [1]) for belief in (fitted, fixed))
    assert honest.reliability().error < rash.reliability().error
    assert honest.true.mean() > rash.true.mean() - 0.05


def test_fitting_a_handful_of_people_is_no_error() -> None:
    table = table_of(AttributeSpace.of({"a": ["x", "y"]}), np.array([[0], [1]]))
    belief = fitted_belief(table)
    assert belief.posteriors([0], SeenAttributes.nothing(table.space))[0][0].tolist() == [0.5, 0.5]


def test_belief_check_prints_json(
    tiny_crowd: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY, "utf-8")
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nattribute = "zip"\ndecides = "city"\n', "utf-8")
    command = [
        "belief",
        "check",
        tiny_crowd.path,
        "--profile",
        "alex",
        "--policy",
        file,
        "--smoothing",
        "0.1",
    ]
    ran = incrowd(capsys, *command, "--rules", rules, "--json")
    assert ran.code == 0, ran.err
    said = json.loads(ran.out)
    assert {"satisfied", "requirements", "critical_sets"} <= set(said)
    assert [one["attribute"] for one in said["requirements"]] == ["region", "income", "same user"]
    read = incrowd(
        capsys, *command, "--topics", "starter", "--ignore", "birthday", "--largest", "2", "--json"
    )
    assert read.code == 0, read.err
    words = json.loads(read.out)
    assert {"posts in cycling", "posts in gardening"} <= set(words["posts"])
    assert "birthday" not in words["published"]
    assert "depression" in words["assumptions"]["topics"]
    plain = incrowd(capsys, *command, "--fail-above", "0.0")
    assert plain.code == 1
    assert "region" in plain.out


def test_belief_check_explains_a_mistake(
    tiny_crowd: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text('[[require]]\nattribute = "regoin"\nsigma = 0.3\n', "utf-8")
    ran = incrowd(capsys, "belief", "check", tiny_crowd.path, "--profile", "alex", "--policy", file)
    assert ran.code == 2
    assert "attribute 'regoin' is not in this crowd" in ran.err
    gone = incrowd(
        capsys, "belief", "check", tiny_crowd.path, "--profile", "alex", "--policy", tmp_path / "none.toml"
    )
    assert gone.code == 2


def test_belief_rules_are_written(
    tiny_crowd: Crowd, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rules.toml"
    ran = incrowd(capsys, "belief", "rules", tiny_crowd.path, "--out", out, "--min-support", "3")
    assert ran.code == 0, ran.err
    assert "[[rule]]" in out.read_text("utf-8")
