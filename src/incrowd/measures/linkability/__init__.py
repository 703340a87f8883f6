"""Can two pseudonyms be linked, and how many others would the adversary have to consider?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.linkability.measure import assess, measure
    from incrowd.measures.linkability.rates import LinkRates
    from incrowd.measures.linkability.spec import ADVERSARIES
    from incrowd.measures.linkability.spec import LinkabilityOptions as Options

__all__ = [
    "ADVERSARIES",
    "LinkRates",
    "Options",
    "assess",
    "measure",
]

lazy_names(
    __name__,
    {
        ".measure": "assess measure",
        ".rates": "LinkRates",
        ".spec": "ADVERSARIES LinkabilityOptions:Options",
    },
)
