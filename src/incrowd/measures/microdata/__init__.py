"""How many others would fit what somebody knows of your likes, ratings or purchases (paper 002)?

A provider :func:`publish`-es statistics; a person :func:`score`-s their own items with them, on their own
machine; :func:`assess_person` and :func:`evaluate` use the whole crowd and are exact. The graphics-card twin runs
where neither Polars nor Numba is installed, so nothing is imported before use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.microdata.anonymity_set import (
        AttackRates,
        ScoringAttack,
        expected_others,
        others_against,
        scoring_attack,
    )
    from incrowd.measures.microdata.assess import assess_person
    from incrowd.measures.microdata.client import Score, score, score_assessments
    from incrowd.measures.microdata.evaluation import Evaluation, evaluate
    from incrowd.measures.microdata.measure import MicrodataOptions as Options
    from incrowd.measures.microdata.measure import assess, measure
    from incrowd.measures.microdata.provider import Tally, publish
    from incrowd.measures.microdata.set_sizes import Effort, SetSizeFinder, SetSizes, risks
    from incrowd.measures.microdata.spec import (
        ADVERSARIES,
        Adversary,
        GroupSpec,
        Knowledge,
        ProfileFilter,
        ReleaseSpec,
        ScoreSpec,
    )
    from incrowd.measures.microdata.statistics import ReleaseState, Statistics, load_statistics
    from incrowd.measures.microdata.table import ItemTable, item_table

__all__ = [
    "ADVERSARIES",
    "Adversary",
    "AttackRates",
    "Effort",
    "Evaluation",
    "GroupSpec",
    "ItemTable",
    "Knowledge",
    "Options",
    "ProfileFilter",
    "ReleaseSpec",
    "ReleaseState",
    "Score",
    "ScoreSpec",
    "ScoringAttack",
    "SetSizeFinder",
    "SetSizes",
    "Statistics",
    "Tally",
    "assess",
    "assess_person",
    "evaluate",
    "expected_others",
    "item_table",
    "load_statistics",
    "measure",
    "others_against",
    "publish",
    "risks",
    "score",
    "score_assessments",
    "scoring_attack",
]

lazy_names(
    __name__,
    {
        ".anonymity_set": "AttackRates ScoringAttack expected_others others_against scoring_attack",
        ".assess": "assess_person",
        ".client": "Score score score_assessments",
        ".evaluation": "Evaluation evaluate",
        ".measure": "MicrodataOptions:Options assess measure",
        ".provider": "Tally publish",
        ".set_sizes": "Effort SetSizeFinder SetSizes risks",
        ".spec": "ADVERSARIES Adversary GroupSpec Knowledge ProfileFilter ReleaseSpec ScoreSpec",
        ".statistics": "ReleaseState Statistics load_statistics",
        ".table": "ItemTable item_table",
    },
)
