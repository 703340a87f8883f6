"""The papers' experiments on any crowd: rows first, figures after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.study.anonymity import anonymity_study
    from incrowd.study.belief import belief_study
    from incrowd.study.belief_experiments import BeliefStudyOptions
    from incrowd.study.exposure import exposure_study
    from incrowd.study.linkability import linkability_study
    from incrowd.study.matched import PairStudyOptions
    from incrowd.study.microdata import microdata_study
    from incrowd.study.microdata_questions import StudyOptions
    from incrowd.study.release import release_study
    from incrowd.study.release_data import ReleaseStudyOptions

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
        ".anonymity": "anonymity_study",
        ".belief": "belief_study",
        ".belief_experiments": "BeliefStudyOptions",
        ".exposure": "exposure_study",
        ".linkability": "linkability_study",
        ".matched": "PairStudyOptions",
        ".microdata": "microdata_study",
        ".microdata_questions": "StudyOptions",
        ".release": "release_study",
        ".release_data": "ReleaseStudyOptions",
    },
)
