"""The belief measure against definitions 12 to 16 by brute force, through the JSON of `incrowd belief check`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.running import incrowd
from tests.oracles import belief as oracle

from incrowd.crowd import Crowd
from incrowd.crowd.schema import Kind

DOMAIN = {"city": ("A", "B"), "faith": ("sun", "tree"), "party": ("blue", "red"), "school": ("X", "Y")}
SMOOTHING = 0.05


def crowd_of(folder: Path, people: list[dict[str, str]]) -> Crowd:
    rows = [f"p{n},{name},{value}" for n, one in enumerate(people) for name, value in one.items()]
    source = folder / "people.csv"
    source.write_text("\n".join(["user,attribute,value", *rows]) + "\n", encoding="utf-8")
    return stored(folder, source, "attributes")


def stored(folder: Path, source: Path, kind: Kind) -> Crowd:
    crowd = Crowd.create(folder / "crowd", plain_names=True)
    crowd.ingest([source], kind=kind)
    return crowd


def policy_of(folder: Path, text: str) -> Path:
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def checked(capsys: pytest.CaptureFixture[str], crowd: Crowd, policy: Path, *more: str) -> dict:
    said = incrowd(
        capsys, "belief", "check", crowd.path, "--profile", "p0", "--policy", policy,
        "--smoothing", SMOOTHING, "--adversary", "insider", "--json", *more,
    )  # fmt: skip
    return dict(json.loads(said.out))


def sets(found: list[dict]) -> set[frozenset[str]]:
    return {frozenset(one["attributes"]) for one in found}


@pytest.mark.parametrize("seed", range(6))
def test_critical_and_repairing_sets_are_those_of_the_definitions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    people = [{name: str(rng.choice(values)) for name, values in DOMAIN.items()} for _ in range(7)]
    sigmas = [float(rng.choice([0.5, 0.6, 0.7])) for _ in range(2)]
    truth = people[0]
    asked = [({"faith": truth["faith"]}, sigmas[0]), ({"party": truth["party"]}, sigmas[1])]
    text = '[publish]\nwithhold = ["faith", "party"]\n' + "".join(
        f'[[require]]\nattribute = "{name}"\nvalue = "{value}"\nsigma = {sigma}\n'
        for values, sigma in asked
        for name, value in values.items()
    )
    said = checked(capsys, crowd_of(tmp_path, people), policy_of(tmp_path, text))
    seen = {name: truth[name] for name in ("city", "school")}
    for (values, sigma), one in zip(asked, said["requirements"], strict=True):
        pair = next(iter(values.items()))
        assert one["posterior"] == pytest.approx(oracle.posterior(people, DOMAIN, seen, pair, SMOOTHING))
        assert one["satisfied"] == oracle.satisfied(people, DOMAIN, seen, values, sigma, SMOOTHING)
    assert sets(said["critical_sets"]) == oracle.critical(people, DOMAIN, seen, asked, SMOOTHING)
    assert sets(said["repairing_sets"]) == oracle.repairing(people, DOMAIN, seen, asked, SMOOTHING)


PAIR = [
    {"city": "A", "faith": "sun", "school": "X", "party": "red"},
    {"city": "A", "faith": "sun", "school": "Y", "party": "blue"},
    {"city": "A", "faith": "sun", "school": "X", "party": "red"},
    {"city": "B", "faith": "tree", "school": "X", "party": "red"},
    {"city": "B", "faith": "tree", "school": "Y", "party": "red"},
    {"city": "B", "faith": "tree", "school": "X", "party": "red"},
]
TWO = """
[publish]
withhold = ["faith", "party"]
[[require]]
attribute = "faith"
value = "sun"
sigma = 0.6
[[require]]
attribute = "party"
value = "red"
sigma = 0.6
"""


def test_a_set_that_satisfies_one_of_two_requirements_is_critical(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No set repairs both, yet without the city nobody is sure of the faith."""
    crowd = crowd_of(tmp_path, PAIR)
    said = checked(capsys, crowd, policy_of(tmp_path, TWO))
    assert {"attributes": ["city"], "satisfies": [0]}.items() <= said["critical_sets"][0].items()
    assert said["repairing_sets"] == []
    shown = incrowd(
        capsys, "belief", "check", crowd.path, "--profile", "p0", "--policy", tmp_path / "policy.toml",
        "--smoothing", SMOOTHING, "--adversary", "insider",
    ).out  # fmt: skip
    assert "does not repair the whole policy" in shown
    assert "Withholding your city satisfies what it asks about: faith" in " ".join(shown.split())


def test_advice_reports_the_belief_that_was_measured(tmp_path: Path) -> None:
    from incrowd.measures.belief.assess import check_policy
    from incrowd.measures.belief.policy import load_policy
    from incrowd.measures.belief.spec import BeliefOptions

    options = BeliefOptions(smoothing=SMOOTHING, adversary="insider")
    policy = load_policy(policy_of(tmp_path, TWO), PAIR[0])
    found = check_policy(crowd_of(tmp_path, PAIR), "p0", policy, (), options).assessments()[0]
    without_city = oracle.posterior(PAIR, DOMAIN, {"school": "X"}, ("faith", "sun"), SMOOTHING)
    assert found.advice[0].what == "withhold your city"
    assert found.advice[0].after == pytest.approx(without_city)
    assert found.advice[0].after < 0.6


def test_each_profile_has_its_own_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Definition 12: a profile that keeps the city to itself does not expose the faith; one that shows it does."""
    text = """
[publish]
withhold = ["faith"]
[profile.open]
[profile.shy]
withhold = ["city"]
[[require]]
profile = "open"
attribute = "faith"
value = "sun"
sigma = 0.6
[[require]]
profile = "shy"
attribute = "faith"
value = "sun"
sigma = 0.6
"""
    said = checked(capsys, crowd_of(tmp_path, PAIR), policy_of(tmp_path, text))
    assert not said["satisfied"]
    assert {one["profile"]: one["satisfied"] for one in said["requirements"]} == {"open": False, "shy": True}
    left = {name: value for name, value in PAIR[0].items() if name not in ("faith", "city")}
    by_name = {one["profile"]: one["posterior"] for one in said["requirements"]}
    assert by_name["shy"] == pytest.approx(oracle.posterior(PAIR, DOMAIN, left, ("faith", "sun"), SMOOTHING))
    assert sets(said["profiles"]["open"]["critical_sets"]) >= {frozenset({"city"})}


def test_two_profiles_can_be_held_apart_without_any_attribute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Definition 16 on a crowd of posts alone."""
    posts = tmp_path / "posts.jsonl"
    lines = [
        {
            "author": f"p{n}",
            "community": c,
            "text": f"word{n} word{n} and some other talk",
            "created_utc": n + 1,
        }
        for n in range(4)
        for c in ("left", "right")
    ]
    posts.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    crowd = stored(tmp_path, posts, "posts")
    policy = policy_of(tmp_path, '[[require]]\nsame_user = ["left", "right"]\nsigma = 0.3\n')
    said = checked(capsys, crowd, policy)
    (link,) = said["requirements"]
    assert link["attribute"] == "same user"
    assert not link["satisfied"]
    assert link["posterior"] > link["prior"] == pytest.approx(0.25)
    assert frozenset({"link between left and right"}) in sets(said["critical_sets"])
