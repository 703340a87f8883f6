"""Reports about made-up people, built by hand: every part of a page has something to show."""

from __future__ import annotations

import math

from incrowd.advisor.answer import Action, FinePrint, MainReason, OwnPost, PersonReport, Plan, Theme, Verdict
from incrowd.measures.protocol import Changes, Effect, Finding, Level, NotAssessed, ThemeName
from incrowd.result import Assessment, Assumptions, Direction, Evidence, Standing, Threat

READER = "someone who has read both communities and compares words"
FRIEND = "someone who knows 5–20% of your items"


def linked(value: float = 0.97) -> Assessment:
    return Assessment(
        measure="linkability",
        subject="you in cycling and gardening",
        value=value,
        unit="probability",
        direction=Direction.LOWER_IS_SAFER,
        meaning="Somebody determined would be 97% sure that your two profiles are one person.",
        standing=Standing.HEURISTIC,
        assumptions=Assumptions(adversary=READER, parameters={"model": "unigram"}, data_hash="0" * 16),
        baseline=1 / 147,
        crowd_rank=5,
        crowd_size=76,
        threats=(Threat.LINKABILITY,),
        evidence=tuple(
            Evidence(what=what, contribution=adds)
            for what, adds in (("the words you use", 13.1), ("capitals", -1.1), ("the hours you post", 0.6))
        ),
        explained=12.6,
    )


def counted(value: float = 3.0) -> Assessment:
    return Assessment(
        measure="microdata",
        subject="your items",
        value=value,
        unit="people",
        direction=Direction.HIGHER_IS_SAFER,
        meaning=f"For {FRIEND}, {value:g} of 400 people fit, you included.",
        standing=Standing.PROVED,
        assumptions=Assumptions(adversary=FRIEND),
        baseline=400,
        evidence=(
            Evidence(what="knowing 5 items", contribution=2.0),
            Evidence(what="10 items", contribution=1.0),
        ),
        explained=3.0,
    )


def effect(before: float, after: float, level: Level, one: Assessment) -> Effect:
    return Effect(
        theme=ThemeName.LINKABLE if one.measure == "linkability" else ThemeName.SINGLED_OUT,
        measure=one.measure,
        subject=one.subject,
        adversary=one.assumptions.adversary,
        unit=one.unit,
        direction=one.direction,
        before=before,
        after=after,
        level_before=Level.AT_RISK,
        level_after=level,
    )


def theme(name: ThemeName, level: Level, sentence: str, *found: Assessment, risk: float = 0.0) -> Theme:
    findings = tuple(Finding(assessment=one, theme=name, level=level, risk=risk) for one in found)
    return Theme(name=name, level=level, sentence=sentence, findings=findings)


def themes() -> tuple[Theme, ...]:
    return (
        theme(
            ThemeName.LINKABLE,
            Level.AT_RISK,
            "Your profiles in cycling and gardening can be linked.",
            linked(),
            risk=0.97,
        ),
        theme(
            ThemeName.SINGLED_OUT,
            Level.WATCH,
            "Three people fit what a friend knows of your items.",
            counted(),
            risk=0.33,
        ),
        theme(ThemeName.INFERABLE, Level.CANNOT_TELL, "There are no attributes to guess."),
        theme(ThemeName.EXPOSED, Level.WELL_HIDDEN, "You stand out for no sensitive topic."),
    )


def reason(theme: ThemeName, level: Level, one: Assessment) -> MainReason:
    return MainReason(
        theme=theme,
        level=level,
        measure=one.measure,
        subject=one.subject,
        sentence=one.meaning,
        evidence=one.evidence,
        explained=one.explained,
    )


def actions() -> tuple[Action, ...]:
    return (
        Action(
            what="Delete post 12 in gardening",
            loss="one post",
            changes=Changes(delete_posts=frozenset({12})),
            effect=effect(0.97, 0.31, Level.WATCH, linked()),
            also=(effect(3.0, 3.0, Level.AT_RISK, counted()),),
        ),
        Action(
            what="Drop the rating of 'The Quiet Valley'",
            loss="one of 31 items",
            changes=Changes(drop_items=frozenset({"The Quiet Valley"})),
            effect=effect(3.0, 11.0, Level.WELL_HIDDEN, counted()),
        ),
        Action(
            what="Write in gardening under another name",
            loss="the link to what you wrote before",
            changes=Changes(move_posts=frozenset({12, 13})),
            effect=effect(0.97, math.nan, Level.CANNOT_TELL, linked()),
        ),
    )


def alex(person: str = "alex") -> PersonReport:
    both = Changes(delete_posts=frozenset({12}), drop_items=frozenset({"The Quiet Valley"}))
    return PersonReport(
        person=person,
        people=400,
        verdict=Verdict(
            level=Level.AT_RISK, sentence="Somebody who reads both communities can link your profiles."
        ),
        themes=themes(),
        reasons=(
            reason(ThemeName.LINKABLE, Level.AT_RISK, linked()),
            reason(ThemeName.SINGLED_OUT, Level.WATCH, counted()),
        ),
        actions=actions(),
        plan=Plan(
            changes=both,
            steps=("Delete post 12 in gardening", "Drop the rating of 'The Quiet Valley'"),
            loss="one post and one of 31 items",
            effects=(
                effect(0.97, 0.31, Level.WATCH, linked()),
                effect(3.0, 11.0, Level.WELL_HIDDEN, counted()),
            ),
            reached=False,
            missed=("linkability, you in cycling and gardening: 31% where at most 10% is wanted",),
            verdict=Verdict(level=Level.WATCH, sentence="A determined reader may still link your profiles."),
        ),
        not_assessed=(
            NotAssessed(
                measure="belief",
                why="The crowd has no attributes of yours.",
                remedy="Import some with: incrowd ingest --kind attributes",
                theme=ThemeName.INFERABLE,
            ),
        ),
        fine_print=FinePrint(
            adversaries=(READER, FRIEND),
            standings={"linkability": "heuristic", "microdata": "proved"},
            rule="The worst level of any finding is the level of its question; the worst question decides.",
            levels=("At risk: below the target.", "Watch: near it.", "Well hidden: beyond it."),
            parameters={"radius": 0.8, "targets": {"people": 10}},
            seed=0,
            data_hash="0123456789abcdef",
            version="0.1.0",
        ),
        posts=(OwnPost(number=12, community="gardening", time=1_700_000_000),),
    )
