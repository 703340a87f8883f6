"""Where do I rank in my community for a sensitive topic, as an adversary would see it (paper 004)?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.exposure.assess import load_quantiles, quantiles
    from incrowd.measures.exposure.measure import assess, measure
    from incrowd.measures.exposure.scoring import LiveExposure, Scored
    from incrowd.measures.exposure.space import BagOfWords, default_space
    from incrowd.measures.exposure.spec import ADVERSARIES
    from incrowd.measures.exposure.spec import ExposureOptions as Options
    from incrowd.measures.exposure.topics import starter_topics

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
        ".measure": "assess measure",
        ".assess": "load_quantiles quantiles",
        ".scoring": "LiveExposure Scored",
        ".space": "BagOfWords default_space",
        ".spec": "ADVERSARIES ExposureOptions:Options",
        ".topics": "starter_topics",
    },
)
