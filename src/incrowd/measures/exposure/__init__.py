"""Where do I rank in my community for a sensitive topic, as an adversary would see it (paper 004)?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.exposure.measure import assess as assess
    from incrowd.measures.exposure.measure import measure as measure
    from incrowd.measures.exposure.publish import load_quantiles as load_quantiles
    from incrowd.measures.exposure.publish import quantiles as quantiles
    from incrowd.measures.exposure.scoring import LiveExposure as LiveExposure
    from incrowd.measures.exposure.scoring import Scored as Scored
    from incrowd.measures.exposure.space import BagOfWords as BagOfWords
    from incrowd.measures.exposure.space import default_space as default_space
    from incrowd.measures.exposure.spec import ADVERSARIES as ADVERSARIES
    from incrowd.measures.exposure.spec import ExposureOptions as Options
    from incrowd.measures.exposure.topics import starter_topics as starter_topics

__all__ = [
    "ADVERSARIES",
    "BagOfWords",
    "LiveExposure",
    "Options",
    "Scored",
    "assess",
    "default_space",
    "load_quantiles",
    "measure",
    "quantiles",
    "starter_topics",
]

lazy_names(
    __name__,
    {
        "ADVERSARIES": "incrowd.measures.exposure.spec:ADVERSARIES",
        "BagOfWords": "incrowd.measures.exposure.space:BagOfWords",
        "LiveExposure": "incrowd.measures.exposure.scoring:LiveExposure",
        "Options": "incrowd.measures.exposure.spec:ExposureOptions",
        "Scored": "incrowd.measures.exposure.scoring:Scored",
        "assess": "incrowd.measures.exposure.measure:assess",
        "default_space": "incrowd.measures.exposure.space:default_space",
        "load_quantiles": "incrowd.measures.exposure.publish:load_quantiles",
        "measure": "incrowd.measures.exposure.measure:measure",
        "quantiles": "incrowd.measures.exposure.publish:quantiles",
        "starter_topics": "incrowd.measures.exposure.topics:starter_topics",
    },
)
