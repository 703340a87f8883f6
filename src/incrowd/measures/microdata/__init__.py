"""How many others would fit what somebody knows of your likes, ratings or purchases (paper 002)?

A provider :func:`publish`-es statistics; a person :func:`score`-s their own items with them, on their own
machine; :func:`assess_person` and :func:`evaluate` use the whole crowd and are exact.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.measures.microdata.adversaries import (
        AttackRates,
        ScoringAttack,
        others_against,
        scoring_attack,
    )
    from incrowd.measures.microdata.anonymity_set import expected_others
    from incrowd.measures.microdata.assess import assess_person
    from incrowd.measures.microdata.client import Score, score, score_assessments
    from incrowd.measures.microdata.evaluation import Evaluation, evaluate
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

# The graphics-card twin runs where neither Polars nor Numba is installed, so nothing is imported before use.
_HOME = {
    "adversaries": ("AttackRates", "ScoringAttack", "others_against", "scoring_attack"),
    "anonymity_set": ("expected_others",),
    "assess": ("assess_person",),
    "client": ("Score", "score", "score_assessments"),
    "evaluation": ("Evaluation", "evaluate"),
    "provider": ("Tally", "publish"),
    "set_sizes": ("Effort", "SetSizeFinder", "SetSizes", "risks"),
    "spec": (
        "ADVERSARIES",
        "Adversary",
        "GroupSpec",
        "Knowledge",
        "ProfileFilter",
        "ReleaseSpec",
        "ScoreSpec",
    ),
    "statistics": ("ReleaseState", "Statistics", "load_statistics"),
    "table": ("ItemTable", "item_table"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "ADVERSARIES",
    "Adversary",
    "AttackRates",
    "Effort",
    "Evaluation",
    "GroupSpec",
    "ItemTable",
    "Knowledge",
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
    "assess_person",
    "evaluate",
    "expected_others",
    "item_table",
    "load_statistics",
    "others_against",
    "publish",
    "risks",
    "score",
    "score_assessments",
    "scoring_attack",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'incrowd.measures.microdata' has no attribute {name!r}")
    return getattr(import_module(f"incrowd.measures.microdata.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
