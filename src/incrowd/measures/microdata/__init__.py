"""How many others would fit what somebody knows of your likes, ratings or purchases (paper 002)?

A provider :func:`publish`-es statistics; a person :func:`score`-s their own items with them, on their own
machine; :func:`assess_person` and :func:`evaluate` use the whole crowd and are exact. The graphics-card twin runs
where neither Polars nor Numba is installed, so nothing is imported before use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.microdata.anonymity_set import AttackRates as AttackRates
    from incrowd.measures.microdata.anonymity_set import ScoringAttack as ScoringAttack
    from incrowd.measures.microdata.anonymity_set import expected_others as expected_others
    from incrowd.measures.microdata.anonymity_set import others_against as others_against
    from incrowd.measures.microdata.anonymity_set import scoring_attack as scoring_attack
    from incrowd.measures.microdata.assess import assess_person as assess_person
    from incrowd.measures.microdata.client import Score as Score
    from incrowd.measures.microdata.client import score as score
    from incrowd.measures.microdata.client import score_assessments as score_assessments
    from incrowd.measures.microdata.evaluation import Evaluation as Evaluation
    from incrowd.measures.microdata.evaluation import evaluate as evaluate
    from incrowd.measures.microdata.measure import MicrodataOptions as Options
    from incrowd.measures.microdata.measure import assess as assess
    from incrowd.measures.microdata.measure import measure as measure
    from incrowd.measures.microdata.provider import Tally as Tally
    from incrowd.measures.microdata.provider import publish as publish
    from incrowd.measures.microdata.set_sizes import Effort as Effort
    from incrowd.measures.microdata.set_sizes import SetSizeFinder as SetSizeFinder
    from incrowd.measures.microdata.set_sizes import SetSizes as SetSizes
    from incrowd.measures.microdata.set_sizes import risks as risks
    from incrowd.measures.microdata.spec import ADVERSARIES as ADVERSARIES
    from incrowd.measures.microdata.spec import Adversary as Adversary
    from incrowd.measures.microdata.spec import GroupSpec as GroupSpec
    from incrowd.measures.microdata.spec import Knowledge as Knowledge
    from incrowd.measures.microdata.spec import ProfileFilter as ProfileFilter
    from incrowd.measures.microdata.spec import ReleaseSpec as ReleaseSpec
    from incrowd.measures.microdata.spec import ScoreSpec as ScoreSpec
    from incrowd.measures.microdata.statistics import ReleaseState as ReleaseState
    from incrowd.measures.microdata.statistics import Statistics as Statistics
    from incrowd.measures.microdata.statistics import load_statistics as load_statistics
    from incrowd.measures.microdata.table import ItemTable as ItemTable
    from incrowd.measures.microdata.table import item_table as item_table

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
        "ADVERSARIES": "incrowd.measures.microdata.spec:ADVERSARIES",
        "Adversary": "incrowd.measures.microdata.spec:Adversary",
        "AttackRates": "incrowd.measures.microdata.anonymity_set:AttackRates",
        "Effort": "incrowd.measures.microdata.set_sizes:Effort",
        "Evaluation": "incrowd.measures.microdata.evaluation:Evaluation",
        "GroupSpec": "incrowd.measures.microdata.spec:GroupSpec",
        "ItemTable": "incrowd.measures.microdata.table:ItemTable",
        "Knowledge": "incrowd.measures.microdata.spec:Knowledge",
        "Options": "incrowd.measures.microdata.measure:MicrodataOptions",
        "ProfileFilter": "incrowd.measures.microdata.spec:ProfileFilter",
        "ReleaseSpec": "incrowd.measures.microdata.spec:ReleaseSpec",
        "ReleaseState": "incrowd.measures.microdata.statistics:ReleaseState",
        "Score": "incrowd.measures.microdata.client:Score",
        "ScoreSpec": "incrowd.measures.microdata.spec:ScoreSpec",
        "ScoringAttack": "incrowd.measures.microdata.anonymity_set:ScoringAttack",
        "SetSizeFinder": "incrowd.measures.microdata.set_sizes:SetSizeFinder",
        "SetSizes": "incrowd.measures.microdata.set_sizes:SetSizes",
        "Statistics": "incrowd.measures.microdata.statistics:Statistics",
        "Tally": "incrowd.measures.microdata.provider:Tally",
        "assess": "incrowd.measures.microdata.measure:assess",
        "assess_person": "incrowd.measures.microdata.assess:assess_person",
        "evaluate": "incrowd.measures.microdata.evaluation:evaluate",
        "expected_others": "incrowd.measures.microdata.anonymity_set:expected_others",
        "item_table": "incrowd.measures.microdata.table:item_table",
        "load_statistics": "incrowd.measures.microdata.statistics:load_statistics",
        "measure": "incrowd.measures.microdata.measure:measure",
        "others_against": "incrowd.measures.microdata.anonymity_set:others_against",
        "publish": "incrowd.measures.microdata.provider:publish",
        "risks": "incrowd.measures.microdata.set_sizes:risks",
        "score": "incrowd.measures.microdata.client:score",
        "score_assessments": "incrowd.measures.microdata.client:score_assessments",
        "scoring_attack": "incrowd.measures.microdata.anonymity_set:scoring_attack",
    },
)
