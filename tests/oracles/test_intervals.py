"""Intervals hold: exact coverage by enumeration, clustered ones by simulation.

At the end: every module that has to do with an interval, and the tests of where it comes from.
"""

from __future__ import annotations

import ast
import itertools
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import beta, binom

import incrowd
from incrowd import CardOptions, Crowd, synthetic
from incrowd.cards.audit import advantage_of
from incrowd.cards.make import COMPARED_POSTS, ProfileDistances, describe, interval, made_up_near
from incrowd.cards.members import read_members, word_shares
from incrowd.distances import pairwise as distances
from incrowd.measures.disclosures.facts import Told
from incrowd.measures.disclosures.population import DEPENDENT, together
from incrowd.measures.exposure.evaluation import LeftOut, average_precision, leave_people_out
from incrowd.measures.exposure.prepared import EDGES, SURE, rank_between
from incrowd.measures.linkability.definition import clustered_mean
from incrowd.measures.linkability.determined import PRACTISED, DeterminedAttack
from incrowd.measures.microdata.anonymity_set import AttackRates, ScoringAttack, scoring_attack
from incrowd.measures.microdata.known_items import known_items
from incrowd.measures.microdata.set_sizes import Effort, estimate_of
from incrowd.measures.microdata.spec import Knowledge
from incrowd.measures.microdata.table import item_table
from incrowd.measures.recognition.assess import MemberRecognition, posts_it_takes
from incrowd.measures.recognition.spec import KNOWN
from incrowd.measures.release import measure_q
from incrowd.measures.release.solve import Budget
from incrowd.measures.sampling import share_interval
from incrowd.study.attacked import Verdicts


@pytest.mark.parametrize("n", [20, 33, 100, 242])
def test_precision_at_k_covers_every_rate(n: int) -> None:
    """All outcomes of n people, one pair each, at every rate and beside every end of an interval."""
    hits = np.arange(n + 1)
    found = [clustered_mean(np.arange(n) < x, np.arange(n)) for x in hits]
    low, high = np.array([i.low for i in found]), np.array([i.high for i in found])
    rates = np.concatenate([np.linspace(0.001, 0.999, 500), [0.03, 0.0125], low[1:] - 1e-9, high[:-1] + 1e-9])
    covered = [(binom.pmf(hits, n, p) * ((low <= p) & (p <= high))).sum() for p in rates]
    assert min(covered) >= 0.93


def test_one_pair_a_person_is_the_interval_of_clopper_and_pearson() -> None:
    found = clustered_mean([1.0] * 7 + [0.0] * 43, np.arange(50))
    assert (found.low, found.high) == pytest.approx((beta.ppf(0.025, 7, 44), beta.ppf(0.975, 8, 43)))


@pytest.mark.parametrize(("people", "most"), [(20, 6), (60, 2), (200, 6)])
@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.4])
def test_several_pairs_a_person(people: int, most: int, alike: float, rate: float) -> None:
    """`alike` 1: a person's pairs share one fate; 0: they have nothing to do with each other."""
    generator, runs, covered = np.random.default_rng(3), 300, 0
    for _ in range(runs):
        who = np.repeat(np.arange(people), generator.integers(1, most + 1, people))
        chance = np.full(people, rate)
        if alike == 1:
            chance = (generator.random(people) < rate).astype(float)
        elif alike:
            chance = generator.beta(rate * (1 - alike) / alike, (1 - rate) * (1 - alike) / alike, people)
        found = clustered_mean(generator.random(len(who)) < chance[who], who)
        covered += found.low <= rate <= found.high
    assert covered / runs >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / runs)  # the simulation's own error


@pytest.mark.parametrize("rounds", [2, 20, 200])
def test_a_share_of_rounds_covers_every_rate(rounds: int) -> None:
    """All outcomes of so many rounds, at every rate: how often found, alone, and by the scoring attack."""
    hits = np.arange(rounds + 1)
    found = [estimate_of((np.arange(rounds) < x).astype(float), exact=False) for x in hits]
    low, high = np.array([one.low for one in found]), np.array([one.high for one in found])
    rates = np.concatenate([np.linspace(0.001, 0.999, 300), low[low > 0] - 1e-9, high[high < 1] + 1e-9])
    assert min((binom.pmf(hits, rounds, p) * ((low <= p) & (p <= high))).sum() for p in rates) >= 0.95


def test_the_scoring_attacks_interval_covers_what_many_more_rounds_find() -> None:
    rng = np.random.default_rng(4)
    rows = [(f"p{p:02}", f"i{i}") for p in range(20) for i in rng.choice(40, 7, replace=False)]
    table = item_table(pl.DataFrame(rows, schema=["user", "item"], orient="row"))

    def attacked(rounds: int, seed: int) -> AttackRates:
        attack = ScoringAttack(
            knowledge=Knowledge(items=(3,)), wrong_items=1, clear=0.5, rounds=rounds, seed=seed
        )
        return scoring_attack(table, attack)

    truth = attacked(20_000, 99).found
    assert truth.std() > 0.02
    few = [attacked(50, seed) for seed in range(30)]
    assert np.mean([np.abs(one.found - truth) <= one.reach for one in few]) >= 0.95


@pytest.mark.parametrize("looked_at", [60, 300, 1500])
@pytest.mark.parametrize("tail", ["exponential", "normal"])
def test_certainty_from_a_sample_of_targets_covers_that_from_all(tail: str, looked_at: int) -> None:
    """exp(utility) has a heavy tail: an interval by mean and deviation of the sample covers 56 to 85 %."""
    rng = np.random.default_rng(5)
    covered = []
    for _ in range(300):
        drawn = rng.exponential(0.8, 2000) if tail == "exponential" else rng.normal(0, 1.5, 2000)
        utilities = np.append(rng.normal(6, 2), drawn).astype(np.float32)[None, :]
        everybody = DeterminedAttack(None, range(2001), PRACTISED, 0, None, None, 2001, 0)  # type: ignore[arg-type]
        some = DeterminedAttack(None, range(looked_at), PRACTISED, 0, None, None, 2001, 0)  # type: ignore[arg-type]
        truth = everybody._certain(utilities, np.zeros(1, int), None)
        assert truth.ends[0] == pytest.approx((truth.sure[0], truth.sure[0]))
        found = some._certain(utilities[:, :looked_at], np.zeros(1, int), None)
        low, high = found.ends[0]
        assert low <= found.sure[0] <= high
        covered.append(low <= truth.sure[0] <= high)
    assert np.mean(covered) >= 0.93


def test_the_advantage_of_an_audit_is_covered() -> None:
    """Forty cards with twenty people, half of them inside, whose scores are somewhat higher."""
    rng = np.random.default_rng(6)

    def trials(cards: int) -> list[tuple[np.ndarray, np.ndarray]]:
        inside = [rng.permutation(20) < 10 for _ in range(cards)]
        return [(rng.normal(0.4 * one + rng.normal(0, 0.2)), one) for one in inside]

    truth = np.mean([advantage_of(trials(40)).advantage for _ in range(300)])
    found = [advantage_of(trials(40)).interval for _ in range(300)]
    assert np.mean([low <= truth <= high for low, high in found]) >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 300)


def test_where_every_interval_covers_so_does_how_many_posts_it_takes() -> None:
    rng = np.random.default_rng(7)
    for _ in range(300):
        truth = dict(zip(KNOWN, np.sort(rng.random(len(KNOWN))), strict=True))
        off = {n: rng.random(2) * 0.4 for n in KNOWN}
        told = {n: float(np.clip(p + rng.uniform(-1, 1) * off[n].min(), 0, 1)) for n, p in truth.items()}
        ends = {n: (max(0.0, p - off[n][0]), min(1.0, p + off[n][1])) for n, p in truth.items()}
        low, high = MemberRecognition("a", 100, 100, told, ends).takes_interval
        assert low <= posts_it_takes(truth) <= high


def test_how_many_people_fit_is_covered_if_each_share_is_off_as_told() -> None:
    """Each share off by its factor one time in twenty, independently, and so for the doubt that facts go together."""
    facts = [
        Told(attribute=name, value=value, certainty=0.9, said=True, posts=(0,))
        for name, value in (("location", "Duluth, Minnesota"), ("occupation", "nurse"), ("pet", "dog"))
    ]
    found = together(facts)
    rng = np.random.default_rng(8)
    factors = [part.off for part in found.parts] + [DEPENDENT] * (len(found.parts) - 1)
    errors = sum(np.log(off) / 1.96 * rng.normal(size=4000) for off in factors)
    truth = found.product * np.exp(errors)
    assert np.mean((found.low <= truth) & (truth <= found.high)) == pytest.approx(0.95, abs=0.012)


def test_a_rank_read_off_a_cards_steps_is_covered() -> None:
    """Counts of people above each strength, with noise: nine of ten true ranks lie between the ends."""
    rng, covered = np.random.default_rng(9), []
    spread = 4 * np.sqrt(np.arange(len(EDGES), 0, -1))
    for _ in range(150):
        risks = rng.beta(0.4, 4, 600)
        steps = np.array([((risks > low) & (risks <= high)).sum() for low, high in pairwise([*EDGES, 1.0])])
        noisy = np.cumsum((steps + rng.normal(0, 4, len(EDGES)))[::-1])[::-1]
        table = pl.DataFrame(
            {
                "topic": ["debts"] * len(EDGES),
                "above": np.array(EDGES, np.float32),
                "people": np.round(np.maximum(noisy, 0)).astype(np.int32),
                "give_or_take": np.ceil(SURE * spread).astype(np.int32),
            }
        )
        for risk in rng.choice(risks, 5):
            low, high = rank_between(table, "debts", float(risk))
            covered.append(low <= (risks > risk).sum() + 1 <= high)
    assert np.mean(covered) >= 0.9


def test_a_share_of_a_sample_covers_every_rate() -> None:
    """How many of a crowd are at risk, by some of its people; every outcome at every rate."""
    hits = np.arange(61)
    low, high = np.array([share_interval(int(x), 60) for x in hits]).T
    for rate in np.linspace(0.001, 0.999, 400):
        assert (binom.pmf(hits, 60, rate) * ((low <= rate) & (rate <= high))).sum() >= 0.95


@pytest.mark.parametrize("apart", [(1.0, 1.4), (1.5, 1.5)])
def test_how_much_better_one_method_is_than_another_is_covered(apart: tuple[float, float]) -> None:
    """Two methods score the same people, and err alike: the interval of the difference, and of the share."""
    rng = np.random.default_rng(10)

    def drawn(people: int) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, np.ndarray]]:
        votes = {topic: (rng.random(people) < 0.25) * 1.0 for topic in "ab"}
        noise = {topic: rng.normal(size=(2, people)) for topic in "ab"}
        return {
            method: {
                topic: apart[at] * votes[topic] + 0.8 * noise[topic][0] + 0.6 * (noise[topic][1] if at else 0)
                for topic in "ab"
            }
            for at, method in enumerate(("one", "two"))
        }, votes

    def left_out(people: int) -> tuple[LeftOut, LeftOut]:
        risks, votes = drawn(people)
        found = leave_people_out(risks, votes, {topic: np.arange(people) for topic in "ab"})
        return found["one"], found["two"]

    risks, votes = drawn(50_000)
    one, two = (np.mean([average_precision(each[t], votes[t]) for t in votes]) for each in risks.values())
    less, share = two - one, two / one
    covered = []
    for _ in range(120):
        first, second = left_out(80)
        (a, b), (c, d) = second.difference(first), second.ratio(first)
        covered.append((a <= less <= b, c <= share <= d))
    assert np.mean(covered, axis=0).min() >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 120)


def test_how_few_items_it_takes_is_covered_where_choices_are_sampled() -> None:
    rng = np.random.default_rng(11)
    rows = [
        (f"p{p:02}", f"i{i}") for p in range(30) for i in rng.choice(18, rng.integers(9, 14), replace=False)
    ]
    table = item_table(pl.DataFrame(rows, schema=["user", "item"], orient="row"))
    covered = []
    for row in range(30):
        exact = known_items(table, row, Effort(rounds=4000)).takes["random"]
        for seed in range(5):
            value, low, high = known_items(table, row, Effort(rounds=60, seed=seed)).takes["random"]
            assert low <= value <= high
            covered.append(low <= exact[0] <= high)
        assert exact[1] == exact[0] == exact[2]
    assert np.mean(covered) >= 0.95


def test_q_lies_in_its_interval_where_there_was_no_time_to_count() -> None:
    rng = np.random.default_rng(12)
    for _ in range(60):
        holders = {
            f"v{v}": rng.choice(12, rng.integers(1, 7), replace=False).tolist()
            for v in range(rng.integers(2, 8))
        }
        exact, hurried = measure_q(holders), measure_q(holders, budget=Budget(seconds=0.0))
        assert exact.q is not None
        low, high = hurried.interval or (hurried.q, hurried.q)
        assert low is not None
        assert high is not None
        assert low <= exact.q <= high


@pytest.mark.parametrize("groups", [1, 5])
def test_the_auc_of_a_prediction_within_groups_is_covered(groups: int) -> None:
    """Found or not, and predictions that differ from group to group: only people of one group are compared."""
    rng = np.random.default_rng(13)

    def told(people: int) -> Verdicts:
        group = np.arange(people) % groups
        found = rng.random(people) < 0.2 + 0.1 * group / groups
        return Verdicts(
            "all", "3 posts", rng.normal(0.9 * found + 3.0 * group), {"a": found * 1.0}, within=group
        )

    truth = told(100_000).auc("a")[0]
    ends = [told(150).auc("a")[1:] for _ in range(300)]
    assert np.mean([low <= truth <= high for low, high in ends]) >= 0.93 - 2 * np.sqrt(0.93 * 0.07 / 300)


def test_members_left_out_of_a_card_are_covered_as_those_it_was_tried_on(tmp_path: Path) -> None:
    """How many are as near to one half of somebody's posts as the other half is: in the crowd, and by its card."""
    files, *_ = synthetic.demo_person(users=400, seed=4).write(tmp_path / "files")
    crowd = Crowd.open_or_create(tmp_path / "crowd", plain_names=True)
    crowd.ingest([files], kind="posts")
    options = CardOptions(communities=("cycling",))
    members = read_members(crowd, ["cycling"], options.text)
    one, other = (word_shares(half) for half in members.halves())
    compared = np.flatnonzero(members.posts >= COMPARED_POSTS)
    rng, covered = np.random.default_rng(14), []
    for _ in range(4):
        out = np.sort(rng.choice(compared, 40, replace=False))
        others = members.only(np.setdiff1d(np.arange(len(members)), out))
        community, accuracy, _ = describe(others, options, "cycling")
        assert accuracy is not None
        own = np.asarray(distances(one[out], other[out])).diagonal()
        there = word_shares(members.counts[np.setdiff1d(compared, out)])
        exact = (np.asarray(distances(one[out], there)) <= own[:, None]).sum(axis=1)
        asked = ProfileDistances.of(one[out], members.keys, community, 1)
        low, high = interval(made_up_near(community, asked, own, COMPARED_POSTS), accuracy.reach)
        covered.append((low <= exact) & (exact <= high))
    assert np.mean(covered) >= 0.8  # about nine in ten; the noise of a card has no seed


# Every interval there is

HERE = "oracles/test_intervals.py"
WHERE_FROM = {
    "cards/audit.py": (f"{HERE}::test_the_advantage_of_an_audit_is_covered",),
    "cards/make.py": (f"{HERE}::test_members_left_out_of_a_card_are_covered_as_those_it_was_tried_on",),
    "measures/card_crowd.py": (
        "export/test_card_crowd.py::test_people_who_are_not_in_the_card_have_about_as_many_alike",
    ),
    "measures/disclosures/population.py": (
        f"{HERE}::test_how_many_people_fit_is_covered_if_each_share_is_off_as_told",
    ),
    "measures/exposure/prepared.py": (f"{HERE}::test_a_rank_read_off_a_cards_steps_is_covered",),
    "measures/exposure/evaluation.py": (
        "oracles/test_exposure_figures.py::test_the_interval_of_an_auc_covers_it",
        "oracles/test_exposure_figures.py::test_the_interval_of_map_covers_it_where_topics_share_people",
        f"{HERE}::test_how_much_better_one_method_is_than_another_is_covered",
    ),
    "measures/exposure/assess.py": (
        "exposure/test_assess.py::test_published_quantiles_enclose_everybodys_true_rank",
    ),
    "measures/crowd_rates.py": (
        "advisor/test_crowd_report.py::test_the_interval_covers_the_share_of_everybody",
    ),
    "measures/linkability/definition.py": (
        f"{HERE}::test_precision_at_k_covers_every_rate",
        f"{HERE}::test_several_pairs_a_person",
    ),
    "measures/linkability/determined.py": (
        f"{HERE}::test_certainty_from_a_sample_of_targets_covers_that_from_all",
    ),
    "measures/linkability/open_set.py": (
        "linkability/test_open_set.py::test_the_range_of_the_share_found_covers_what_it_says",
    ),
    "measures/microdata/anonymity_set.py": (
        f"{HERE}::test_the_scoring_attacks_interval_covers_what_many_more_rounds_find",
    ),
    "measures/linkability/from_card.py": (
        "export/test_link_in_places.py::test_links_told_by_a_card_lie_between_their_ends_where_people_are_really_attacked",
    ),
    "measures/microdata/item_law.py": (
        "microdata/test_card.py::test_strangers_are_told_about_what_an_exact_count_says",
        "microdata/test_card.py::test_strangers_chances_of_being_found_are_covered",
    ),
    "measures/microdata/known_items.py": (
        f"{HERE}::test_how_few_items_it_takes_is_covered_where_choices_are_sampled",
    ),
    "measures/microdata/set_sizes.py": (f"{HERE}::test_a_share_of_rounds_covers_every_rate",),
    "measures/recognition/assess.py": (
        f"{HERE}::test_where_every_interval_covers_so_does_how_many_posts_it_takes",
    ),
    "measures/recognition/from_card.py": (
        "export/test_link.py::test_what_a_card_tells_lies_between_its_ends_where_people_are_really_attacked",
    ),
    "measures/release/solve.py": (f"{HERE}::test_q_lies_in_its_interval_where_there_was_no_time_to_count",),
    "measures/sampling.py": (
        f"{HERE}::test_a_share_of_a_sample_covers_every_rate",
        "advisor/test_linear.py::test_the_interval_of_a_sampled_rank_covers",
    ),
    "statistics.py": ("test_statistics.py::test_the_interval_covers_what_it_says",),
    "study/attacked.py": (f"{HERE}::test_the_auc_of_a_prediction_within_groups_is_covered",),
}
"""Where an interval is made -> the tests that it covers."""
PASSES_ON = {
    "report/card_info.py": "cards/make.py",
    "cli/card.py": "cards/audit.py",
    "cli/exposure.py": "measures/exposure/evaluation.py",
    "cli/writing.py": "statistics.py",
    "cli/release.py": "measures/release/solve.py",
    "measures/anonymity/explain.py": "measures/sampling.py",
    "measures/disclosures/assess.py": "measures/disclosures/population.py",
    "measures/disclosures/measure.py": "measures/disclosures/population.py",
    "measures/exposure/comparison.py": "measures/exposure/evaluation.py",
    "measures/exposure/measure.py": "measures/exposure/prepared.py",
    "measures/linkability/determined_person.py": "measures/linkability/determined.py",
    "measures/linkability/in_words.py": "measures/linkability/determined.py",
    "measures/linkability/rates.py": "measures/linkability/definition.py",
    "measures/microdata/assess.py": "measures/microdata/set_sizes.py",
    "measures/microdata/card_section.py": "measures/microdata/item_law.py",
    "measures/microdata/ready.py": "measures/microdata/item_law.py",
    "measures/recognition/link.py": "measures/recognition/from_card.py",
    "measures/release/assess.py": "measures/release/solve.py",
    "measures/release/spec.py": "measures/release/solve.py",
    "result.py": "measures/sampling.py",
    "result_terminal.py": "measures/sampling.py",
    "study/anonymity.py": "measures/linkability/definition.py",
    "study/card.py": "cards/make.py",
    "study/exposure.py": "measures/exposure/evaluation.py",
    "study/release_questions.py": "measures/release/solve.py",
    "study/validity.py": "study/attacked.py",
}
"""Shows or keeps an interval that is made elsewhere; of several places, one."""
OTHER_ENDS = {
    "cli/plan.py": "seconds a job may take, half to three times as many",
    "crowd/plan.py": "the same",
    "crowd/merge.py": "of ranges of rows",
    "crowd/synthetic/attributes.py": "values of made-up people",
    "distances/reductions.py": "the smallest and the largest distance there is",
    "drawing.py": "of an axis",
    "gateway/predicate.py": "of a question",
    "gateway/text_query.py": "of a question",
    "measures/disclosures/statements.py": "of a sentence",
    "text/tokeniser.py": "of a word",
}
"""Says low, high, ends or reach of something else."""


def speaks_of_an_interval(source: str) -> bool:
    """Whether code (not its docstrings) names an interval, or keeps or prints two ends."""
    tree = ast.parse(source)
    prose = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    fields = {
        one.target.id
        for one in ast.walk(tree)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    strings = {
        one.value
        for one in ast.walk(tree)
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and id(one) not in prose
    }
    names = {
        getattr(one, name)
        for one in ast.walk(tree)
        for name in ("id", "attr", "arg", "name")
        if isinstance(getattr(one, name, None), str)
    }
    word = re.compile("interval|give_or_take|standard_error")
    return bool((fields | strings) & {"low", "high", "ends", "reach"}) or any(
        map(word.search, names | strings)
    )


def test_every_interval_is_on_the_list_with_a_test_that_it_covers() -> None:
    root = Path(incrowd.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if speaks_of_an_interval(path.read_text(encoding="utf-8"))
    }
    listed = set(WHERE_FROM) | set(PASSES_ON) | set(OTHER_ENDS)
    assert found - listed == set(), "name where these intervals are made, and the test that they cover"
    assert listed - found <= {"measures/recognition/from_card.py"}
    assert set(PASSES_ON.values()) <= set(WHERE_FROM)
    tests = Path(__file__).parents[1]
    for test in itertools.chain.from_iterable(WHERE_FROM.values()):
        file, name = test.split("::")
        assert f"def {name}(" in (tests / file).read_text(encoding="utf-8"), test
