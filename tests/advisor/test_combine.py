"""The worst finding that decides counts, and what could not be measured is named."""

from __future__ import annotations

import math
from dataclasses import replace

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
    Role,
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


def chance(value: float, **more: object) -> Assessment:
    """How likely somebody who has read both communities links two profiles: it decides."""
    return assessed("linkability", value, unit="probability", baseline=0.01, **more)


def recognised(value: float, known: int = 3) -> Assessment:
    """How likely somebody who has read so many posts finds the person."""
    return assessed("recognition", value, unit="probability", parameters={"posts_known": known})


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
        (1.9, Level.AT_RISK),
        (2, Level.WATCH),
        (9.9, Level.WATCH),
        (10, Level.WELL_HIDDEN),
        (math.nan, Level.CANNOT_TELL),
    ],
)
def test_one_of_two_people_is_a_risk_and_one_of_ten_worth_watching(people: float, level: Level) -> None:
    assert judge(assessed("anonymity", people)).level is level


@pytest.mark.parametrize(
    ("belief", "prior", "level"),
    [
        (0.89, 0.88, Level.WELL_HIDDEN),  # nearly everybody is like that
        (0.55, 0.5, Level.WELL_HIDDEN),
        (0.7, 0.5, Level.WATCH),
        (0.8, 0.5, Level.AT_RISK),
        (0.3, 0.4, Level.WELL_HIDDEN),  # what was shown misleads
        (1.0, 1.0, Level.WELL_HIDDEN),
    ],
)
def test_a_guess_counts_by_what_it_gained(belief: float, prior: float, level: Level) -> None:
    assert judge(assessed("belief", belief, baseline=prior)).level is level


def ranked(chance: float, looks: str, *, rank: int = 3, prior: float = 0.05) -> Assessment:
    """A rank for a topic, with how likely people with such a score are concerned."""
    return assessed("exposure", rank, parameters={"looks_like": looks, "probability": chance, "prior": prior})


@pytest.mark.parametrize(
    ("chance", "looks", "level"),
    [
        (0.60, LASTING, Level.AT_RISK),
        (0.60, PASSING, Level.WATCH),
        (0.60, LITTLE, Level.WELL_HIDDEN),
        (0.30, LASTING, Level.WATCH),
        (0.14, LASTING, Level.WELL_HIDDEN),  # anybody here: 5 %
        (math.nan, LASTING, Level.CANNOT_TELL),
    ],
)
def test_a_rank_counts_by_how_likely_it_is_right_if_it_looks_personal(
    chance: float, looks: str, level: Level
) -> None:
    for rank in (1, 50):
        judged = judge(ranked(chance, looks, rank=rank))
        assert judged.level is level
        assert judged.role is (Role.PAPER if math.isnan(chance) else Role.DECIDES)


@pytest.mark.parametrize(
    ("chance", "looks", "said"),
    [
        (
            0.14,
            LASTING,
            "It counts as “well hidden” because that takes away 9% of the doubt about anybody here.",
        ),
        (0.52, LASTING, "It counts as “watch” because that takes away 49% of the doubt about anybody here."),
        (0.60, PASSING, "Because the interest is a passing one, it counts as “watch” and no worse."),
        (0.60, LASTING, ""),
        (0.30, PASSING, ""),
        (0.08, LASTING, ""),
    ],
)
def test_a_level_that_is_not_that_of_the_chance_told_is_explained_by_its_risk(
    chance: float, looks: str, said: str
) -> None:
    judged = judge(ranked(chance, looks))
    told = theme(ThemeName.EXPOSED, [judged])
    assert told.sentence == f"{judged.assessment.sentence()} {said}".strip()
    assert told.risk == judged.risk


def test_a_handful_of_people_is_no_crowd() -> None:
    assert math.isnan(risk(assessed("anonymity", 3, crowd_size=4)))
    assert math.isnan(risk(assessed("linkability", 1, baseline=2.0)))
    assert math.isnan(risk(assessed("linkability", 0.9, baseline=0.5, unit="probability")))


values = st.one_of(st.floats(0.02, 1), st.just(math.nan))
findings = st.lists(
    st.one_of(
        st.builds(lambda value: judge(chance(value)), values),
        st.builds(lambda value, known: judge(recognised(value, known)), values, st.sampled_from([3, 10, 30])),
        st.builds(
            lambda measure, value: judge(assessed(measure, 1 / value)),
            st.sampled_from(["anonymity", "linkability", "microdata"]),
            values,
        ),
    ),
    max_size=8,
)


@given(findings)
def test_a_theme_is_as_bad_as_its_worst_finding_that_decides(judged: list[Finding]) -> None:
    for line in label(judged, []):
        own = [one for one in judged if one.theme is line.name and one.role is Role.DECIDES]
        assert line.level is worst(one.level for one in own)
        risks = [one.risk for one in own if not math.isnan(one.risk)]
        assert (line.risk == max(risks)) if risks else math.isnan(line.risk)


def test_papers_and_stronger_adversaries_decide_nothing() -> None:
    roles = {
        Role.PAPER: [assessed("anonymity", 1), assessed("linkability", 1), assessed("microdata", 1)],
        Role.STRONGER: [recognised(0.99, 10), recognised(1.0, 30)],
        Role.DECIDES: [recognised(0.05), chance(0.02)],
    }
    judged = [judge(one) for some in roles.values() for one in some]
    assert [one.role for one in judged] == [role for role, some in roles.items() for _ in some]
    answer = label(judged, [])
    assert verdict(answer).level is Level.WELL_HIDDEN
    assert max(line.risk for line in answer[:2]) == 0.05
    assert not strongest(judged)


@given(findings, findings)
def test_knowing_more_never_makes_the_verdict_kinder_about_what_was_found(
    some: list[Finding], more: list[Finding]
) -> None:
    def found(judged: list[Finding]) -> int:
        level = verdict(label(judged, [])).level
        return level.severity if level in (Level.AT_RISK, Level.WATCH) else 0

    assert found([*some, *more]) >= found(some)


def well_hidden() -> list[Finding]:
    return [
        judge(chance(0.02)),
        judge(recognised(0.05)),
        judge(assessed("belief", 0.5, baseline=0.5)),
        judge(ranked(0.04, LITTLE, rank=50)),
        judge(assessed("disclosures", 50, unit="people", crowd_size=None)),
    ]


@given(st.sets(st.sampled_from(range(5))))
def test_the_verdict_says_what_it_is_about_and_what_not(asked: set[int]) -> None:
    themes = label([one for place, one in enumerate(well_hidden()) if place in asked], [])
    answer = verdict(themes)
    assert "safe" not in answer.sentence
    found = bool({0, 1} & asked)
    assert answer.level is (Level.WELL_HIDDEN if found else Level.CANNOT_TELL)
    about, _, not_about = answer.sentence.partition("Not measured: ")
    for place, one in enumerate(themes):
        if asked:
            assert one.name.matter in answer.sentence
        if found:
            assert one.name.matter in (about if place in asked else not_about)


def test_a_question_is_answered_by_what_there_is_something_to_say_of() -> None:
    """Ranks of topics that nothing points to are everybody's; one of them must not stand for all."""
    silent, said = judge(ranked(0.01, NOTHING, rank=3)), judge(ranked(0.04, LITTLE, rank=50))
    line = theme(ThemeName.EXPOSED, [silent, said])
    assert line.findings[0] is said
    assert line.sentence.startswith(said.assessment.sentence())


def test_a_missing_part_leaves_the_answer_to_what_was_measured() -> None:
    silent = NotAssessed(measure="microdata", why="no items", remedy="import", theme=ThemeName.SINGLED_OUT)
    assert verdict(label(well_hidden(), [silent])).level is Level.WELL_HIDDEN
    line = theme(ThemeName.SINGLED_OUT, [judge(recognised(0.9))], missing=["no items"])
    assert line.level is Level.AT_RISK
    papers = theme(ThemeName.SINGLED_OUT, [judge(assessed("anonymity", 1))], missing=["no items"])
    assert (papers.level, papers.sentence) == (Level.CANNOT_TELL, "Cannot tell: no items.")


@pytest.mark.parametrize(
    ("looks", "rank", "told"),
    [(SINGLE_WORDS, 2, True), (PROFESSIONAL, 2, True), (LITTLE, 40, False), (LASTING, 1, False)],
)
def test_a_place_among_the_first_is_not_well_hidden_without_a_reason(
    looks: str, rank: int, told: bool
) -> None:
    judged = judge(ranked(0.3, looks, rank=rank))
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
    judged = [judge(chance(0.9 - k / 10, evidence=parts, explained=total)) for k in range(5)]
    reasons = strongest(judged)
    assert len(reasons) == 3
    for reason in reasons:
        assert math.isclose(math.fsum(part.contribution for part in reason.evidence), total)
        assert reason.explained is not None
        assert math.isclose(reason.explained, total)


def test_the_worst_reason_comes_first_whatever_else_its_question_has() -> None:
    judged = [judge(one) for one in (chance(0.9), recognised(0.4), chance(0.2))]
    assert [reason.sentence for reason in strongest(judged)] == [one.assessment.sentence() for one in judged]


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
        assumptions=Assumptions(
            adversary="someone",
            parameters={"looks_like": NOTHING, "score": 0.0, "probability": 0.03, "prior": 0.03},
        ),
        crowd_size=100,
    )
    assert judge(silent).risk == 0


def test_small_parts_of_a_reason_are_told_together() -> None:
    parts = [Evidence(what=f"w{k}", contribution=value) for k, value in enumerate((80, 19.5, -0.4, 0.3, 0.2))]
    short = shortened(parts, 8, 0.01)
    assert [part.what for part in short] == ["w0", "w1", "3 more"]
    assert math.isclose(sum(part.contribution for part in short), sum(part.contribution for part in parts))
    assert len(shortened(parts[:3], 8, 0.01)) == 3, "a rest of one says no less than the part"


def test_silence_on_every_topic_is_said_once() -> None:
    def silent_on(topic: str) -> Finding:
        one = ranked(0.05, NOTHING)
        about = replace(one.assumptions, parameters={**one.assumptions.parameters, "topic": topic})
        return judge(replace(one, assumptions=about))

    one = theme(ThemeName.EXPOSED, [silent_on("debts"), silent_on("gambling")])
    assert one.sentence == "Nothing you wrote points to any of the 2 sensitive topics that were looked for."


def test_a_likely_guess_that_is_well_hidden_says_what_it_would_be_for_anybody() -> None:
    measure = measure_named("belief")
    before, after = (
        judge(assessed("belief", value, baseline=0.6, unit="probability")) for value in (0.9, 0.61)
    )
    assert after.level is Level.WELL_HIDDEN
    assert measure.note(before, after) == "for anybody it would be 60%"
    assert measure.effect(before, after).sentence().endswith("well hidden (for anybody it would be 60%)")


@given(st.permutations(range(8)), st.lists(st.floats(-1e-7, 1e-7), min_size=8, max_size=8))
def test_the_same_parts_are_named_whatever_the_last_digits(order: list[int], noise: list[float]) -> None:
    """Sums differ in their last digits from process to process; which of several equals is shown must not."""
    parts = [Evidence(what=f"w{k}", contribution=0.1234 * (1 + noise[k])) for k in order]
    parts.append(Evidence(what="largest", contribution=0.5))
    assert [part.what for part in shortened(parts, 4)] == ["largest", "w0", "w1", "w2", "5 more"]


@pytest.mark.parametrize(("certainty", "said"), [(1.0, False), (0.6, True)])
def test_few_people_who_are_well_hidden_say_why(certainty: float, said: bool) -> None:
    told = assessed("disclosures", 8.0, unit="people", parameters={"certainty": certainty}, crowd_size=None)
    line = theme(ThemeName.TOLD, [judge(told)])
    assert line.level is (Level.WELL_HIDDEN if said else Level.WATCH)
    assert ("because all of it is right only 60% of the time" in line.sentence) == said
