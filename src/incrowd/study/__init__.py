"""The papers' experiments on any crowd: rows first, figures after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.study.anonymity import anonymity_study as anonymity_study
    from incrowd.study.belief import belief_study as belief_study
    from incrowd.study.belief_experiments import BeliefStudyOptions as BeliefStudyOptions
    from incrowd.study.exposure import exposure_study as exposure_study
    from incrowd.study.linkability import linkability_study as linkability_study
    from incrowd.study.matched import PairStudyOptions as PairStudyOptions
    from incrowd.study.microdata import microdata_study as microdata_study
    from incrowd.study.microdata_questions import StudyOptions as StudyOptions
    from incrowd.study.release import release_study as release_study
    from incrowd.study.release_data import ReleaseStudyOptions as ReleaseStudyOptions

__all__ = [
    "BeliefStudyOptions",
    "PairStudyOptions",
    "ReleaseStudyOptions",
    "StudyOptions",
    "anonymity_study",
    "belief_study",
    "exposure_study",
    "linkability_study",
    "microdata_study",
    "release_study",
]

lazy_names(
    __name__,
    {
        "BeliefStudyOptions": "incrowd.study.belief_experiments:BeliefStudyOptions",
        "PairStudyOptions": "incrowd.study.matched:PairStudyOptions",
        "ReleaseStudyOptions": "incrowd.study.release_data:ReleaseStudyOptions",
        "StudyOptions": "incrowd.study.microdata_questions:StudyOptions",
        "anonymity_study": "incrowd.study.anonymity:anonymity_study",
        "belief_study": "incrowd.study.belief:belief_study",
        "exposure_study": "incrowd.study.exposure:exposure_study",
        "linkability_study": "incrowd.study.linkability:linkability_study",
        "microdata_study": "incrowd.study.microdata:microdata_study",
        "release_study": "incrowd.study.release:release_study",
    },
)
