"""The worst case counts, and what could not be measured is never called safe."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.advisor.advice import shortfall
from incrowd.advisor.combine import label, strongest, theme, verdict, worst
from incrowd.errors import InputError
from incrowd.measures.exposure.assess import LASTING, LITTLE, NOTHING, PASSING, PROFESSIONAL, SINGLE_WORDS
from incrowd.measures.protocol import (
    AdvisorOptions,
    Finding,
    Level,
    NotAssessed,
    Targets,
    ThemeName,
    level_of,
    measure_named,
    shortened,
)
from incrowd.result import Assessment, Assumptions, Direction, Evidence, Standing


def judge(assessment: Assessment) -> Finding:
    return measure_named(assessment.measure).finding(assessment)


def risk(assessment: Assessment) -> float:
    return judge(assessment).risk


UNITS = {"anonymity": "people", "linkability": "people", "microdata": "people", "belief": "probability"}


def assessed(measure: str, value: float, **more: object) -> Assessment:
    parameters = more.pop("parameters", {})
    chosen: dict[str, object] = {
        "unit": UNITS.get(measure, "rank"),
        "baseline": 100.0,
        "crowd_size": 100,
        "reason": "too little" if math.isnan(value) else "",
    }
    return Assessment(
        measure=measure,
        subject="you",
        value=value,
        direction=Direction.HIGHER_IS_SAFER,
        meaning=f"{measure} {value}",
        standing=Standing.HEURISTIC,
        assumptions=Assumptions(adversary="someone", parameters=parameters),  # type: ignore[arg-type]
        **(chosen | more),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("people", "level"),
    [
        (1, Level.AT_RISK),
        (4.9, Level.AT_RISK),
        (5, Level.WATCH),
        (9.9, Level.WATCH),
        (10, Level.WELL_HIDDEN),
        (math.nan, Level.CANNOT_TELL),
    ],
)
def test_fewer_than_five_people_are_a_risk_and_fewer_than_ten_worth_watching(
    people: float, level: Level
) -> None:
    assert judge(assessed("anonymity", people)).level is level


@pytest.mark.parametrize(
    ("belief", "prior", "level"),
    [
        (0.9, 0.88, Level.WELL_HIDDEN),  # nearly everybody is like that
        (0.6, 0.5, Level.WELL_HIDDEN),
        (0.7, 0.5, Level.WATCH),
        (0.8, 0.5, Level.AT_RISK),
        (0.3, 0.4, Level.WELL_HIDDEN),  # what was shown misleads
        (1.0, 1.0, Level.WELL_HIDDEN),
    ],
)
def test_a_guess_counts_by_what_it_gained(belief: float, prior: float, level: Level) -> None:
    assert judge(assessed("belief", belief, baseline=prior)).level is level


@pytest.mark.parametrize(
    ("rank", "looks", "level"),
    [
        (1, LASTING, Level.AT_RISK),
        (1, PASSING, Level.WATCH),
        (1, LITTLE, Level.WATCH),
        (2, LITTLE, Level.WELL_HIDDEN),
        (6, LASTING, Level.WATCH),
        (12, LASTING, Level.WELL_HIDDEN),
    ],
)
def test_a_rank_counts_if_it_looks_personal(rank: int, looks: str, level: Level) -> None:
    assert judge(assessed("exposure", rank, parameters={"looks_like": looks})).level is level


def test_a_handful_of_people_is_no_crowd() -> None:
    assert math.isnan(risk(assessed("anonymity", 3, crowd_size=4)))
    assert math.isnan(risk(assessed("linkability", 1, baseline=2.0)))
    assert math.isnan(risk(assessed("linkability", 0.9, baseline=0.5, unit="probability")))


values = st.one_of(st.floats(1, 100), st.just(math.nan))
findings = st.lists(
    st.builds(
        lambda measure, value: judge(assessed(measure, value)),
        st.sampled_from(["anonymity", "linkability", "microdata"]),
        values,
    ),
    max_size=8,
)


@given(findings)
def test_a_theme_is_as_bad_as_its_worst_finding(judged: list[Finding]) -> None:
    for line in label(judged, []):
        own = [one.level for one in judged if one.theme is line.name]
        assert line.level is (worst(own) if own else Level.CANNOT_TELL)


@given(findings, findings)
def test_knowing_more_never_makes_the_verdict_kinder_about_what_was_found(
    some: list[Finding], more: list[Finding]
) -> None:
    def found(judged: list[Finding]) -> int:
        level = verdict(label(judged, [])).level
        return level.severity if level in (Level.AT_RISK, Level.WATCH) else 0

    assert found([*some, *more]) >= found(some)


@given(findings)
def test_nobody_is_well_hidden_while_anything_is_missing(judged: list[Finding]) -> None:
    answer = verdict(label(judged, []))
    assert answer.level is not Level.WELL_HIDDEN  # belief and exposure were never measured
    assert "safe" not in answer.sentence


def test_all_well_hidden_is_the_only_way_to_be_well_hidden() -> None:
    all_of_them = [
        judge(assessed("linkability", 50)),
        judge(assessed("anonymity", 50)),
        judge(assessed("belief", 0.5, baseline=0.5)),
        judge(assessed("exposure", 50, parameters={"looks_like": LITTLE})),
        judge(assessed("disclosures", 50, unit="people")),
    ]
    assert verdict(label(all_of_them, [])).level is Level.WELL_HIDDEN
    silent = NotAssessed(measure="microdata", why="no items", remedy="import", theme=ThemeName.SINGLED_OUT)
    assert verdict(label(all_of_them, [silent])).level is Level.CANNOT_TELL


def test_a_missing_part_does_not_hide_a_risk() -> None:
    line = theme(ThemeName.SINGLED_OUT, [judge(assessed("anonymity", 1))], missing=["no items"])
    assert line.level is Level.AT_RISK


@pytest.mark.parametrize(
    ("looks", "rank", "told"),
    [(SINGLE_WORDS, 2, True), (PROFESSIONAL, 2, True), (LITTLE, 40, False), (LASTING, 1, False)],
)
def test_a_place_among_the_first_is_not_well_hidden_without_a_reason(
    looks: str, rank: int, told: bool
) -> None:
    judged = judge(assessed("exposure", rank, parameters={"looks_like": looks}))
    for missing in ((), ("no posts elsewhere",)):
        line = theme(ThemeName.EXPOSED, [judged], missing=missing)
        assert ("It does not count as exposed because" in line.sentence) == told


def test_a_question_without_a_finding_says_what_is_missing() -> None:
    silence = NotAssessed(measure="linkability", why="three posts", remedy="", theme=ThemeName.LINKABLE)
    linkable, singled_out, *_ = label([], [silence])
    assert linkable.sentence == "Cannot tell: three posts."
    assert "three posts" not in singled_out.sentence


def test_targets_are_met_exactly_at_their_line() -> None:
    targets = Targets(people=10)
    assert shortfall(assessed("anonymity", 10), targets) <= 0
    assert shortfall(assessed("anonymity", 9.99), targets) > 0
    assert shortfall(assessed("anonymity", math.nan), targets) == math.inf


def test_levels_and_default_targets_draw_the_same_line() -> None:
    for people in (9.0, 10.0, 11.0):
        hidden = level_of(1 / people) is Level.WELL_HIDDEN
        assert hidden == (shortfall(assessed("anonymity", people), Targets()) <= 0)


def test_three_reasons_at_most_and_their_evidence_adds_up() -> None:
    parts = tuple(Evidence(what=f"word {k}", contribution=1 / (k + 1)) for k in range(40))
    total = math.fsum(part.contribution for part in parts)
    judged = [judge(assessed("anonymity", k, evidence=parts, explained=total)) for k in range(1, 6)]
    reasons = strongest(judged)
    assert len(reasons) == 3
    for reason in reasons:
        assert math.isclose(math.fsum(part.contribution for part in reason.evidence), total)
        assert reason.explained is not None
        assert math.isclose(reason.explained, total)


@given(st.lists(st.floats(-5, 5), max_size=40), st.integers(1, 10))
def test_shortening_evidence_keeps_its_sum(contributions: list[float], most: int) -> None:
    parts = [Evidence(what="w", contribution=one) for one in contributions]
    short = shortened(parts, most)
    assert len(short) <= most + 1
    assert math.isclose(
        math.fsum(part.contribution for part in short), math.fsum(contributions), abs_tol=1e-9
    )


def test_an_unknown_adversary_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InputError, match="unigram"):
        AdvisorOptions(adversaries=("neighbour",))


@pytest.mark.parametrize("wrong", [{"people": 0}, {"gain": 0}, {"exposed": 2}, {"loss": 0}])
def test_impossible_targets_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match="targets"):
        Targets(**wrong)


def test_a_rank_shared_with_everybody_who_never_wrote_about_it_is_no_exposure() -> None:
    silent = Assessment(
        measure="exposure",
        subject="you in books, topic debts",
        value=1.0,
        unit="rank",
        direction=Direction.HIGHER_IS_SAFER,
        meaning="",
        standing=Standing.HEURISTIC,
        assumptions=Assumptions(adversary="someone", parameters={"looks_like": NOTHING, "score": 0.0}),
        crowd_size=100,
    )
    assert judge(silent).risk == 0


@pytest.mark.parametrize("looks", [SINGLE_WORDS, PROFESSIONAL, LITTLE, PASSING, LASTING])
def test_whoever_comes_first_is_never_well_hidden(looks: str) -> None:
    """The most exposed person of a community has no green badge, whatever the interest looks like."""
    judged = judge(assessed("exposure", 1, parameters={"looks_like": looks}))
    assert judged.level in (Level.WATCH, Level.AT_RISK)
    assert theme(ThemeName.EXPOSED, [judged], missing=()).level is judged.level
