"""A client's own score as assessments: from the provider's statistics alone."""

from __future__ import annotations

from incrowd.measures.microdata import explain
from incrowd.measures.microdata.client import Score
from incrowd.result import Advice, Assessment, Assumptions, Direction, Standing, Threat

MEASURE = "microdata"


def score_assessments(score: Score) -> tuple[Assessment, Assessment]:
    """Return a client's two results: the paper's score and the expected crowd."""
    statistics = score.statistics
    parameters = {
        "release": statistics.number,
        "date": statistics.date,
        "rare_below": statistics.rare_below,
        "log_base": statistics.log_base,
        "knowledge": statistics.knowledge.to_dict(),
        "unknown_items": score.unknown,
        "clamped": score.clamped,
    }
    assumptions = Assumptions(adversary=statistics.knowledge.words, parameters=parameters)
    subject = f"your {score.items} items"
    undefined = "no_scale: everybody in the statistics has the same raw risk" if score.group is None else ""
    paper = Assessment(
        measure=MEASURE,
        subject=subject,
        value=score.score,
        unit=explain.SCORE_UNIT,
        direction=Direction.HIGHER_IS_SAFER,
        meaning=_group(score),
        standing=Standing.REPRODUCTION,
        assumptions=assumptions,
        crowd_size=statistics.users,
        threats=(Threat.SINGLING_OUT,),
        evidence=explain.of_raw_risk(score.items, score.rare, score.raw),
        explained=score.raw,
        advice=_client_advice(score, score.score, score.score_without_all, "score"),
        reason=undefined,
    )
    crowd = Assessment(
        measure=MEASURE,
        subject=subject,
        value=1 + score.others,
        unit="people",
        direction=Direction.HIGHER_IS_SAFER,
        meaning=explain.estimate_meaning(score.others, statistics.knowledge.words),
        standing=Standing.HEURISTIC,
        assumptions=assumptions,
        baseline=float(statistics.users),
        crowd_size=statistics.users,
        threats=(Threat.SINGLING_OUT,),
        advice=_client_advice(score, 1 + score.others, 1 + score.others_without_all, "crowd"),
    )
    return paper, crowd


def _group(score: Score) -> str:
    if score.group is None:
        return "The statistics have no scale to compare you on."
    groups = score.statistics.groups
    return explain.group_meaning(score.items, score.group, len(groups), groups[score.group].people)


def _client_advice(score: Score, before: float, after: float, kind: str) -> tuple[Advice, ...]:
    """Name what to leave out, where that helps."""
    advice = []
    for one in score.hurting[:3]:
        then = one.score_without if kind == "score" else 1 + one.others_without
        advice.append(Advice(action=f"Leave out '{one.item}'", before=before, after=then, loss="one item"))
    if len(score.hurting) > 1:
        count = len(score.hurting)
        action = f"Leave out your {count} least popular items"
        advice.append(
            Advice(action=action, before=before, after=after, loss=f"{count} of your {score.items} items")
        )
    return tuple(one for one in advice if one.after > one.before)
