"""Can two pseudonyms be linked, and how many others would the adversary have to consider?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.linkability.measure import assess as assess
    from incrowd.measures.linkability.measure import measure as measure
    from incrowd.measures.linkability.rates import LinkRates as LinkRates
    from incrowd.measures.linkability.spec import ADVERSARIES as ADVERSARIES
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
        "ADVERSARIES": "incrowd.measures.linkability.spec:ADVERSARIES",
        "LinkRates": "incrowd.measures.linkability.rates:LinkRates",
        "Options": "incrowd.measures.linkability.spec:LinkabilityOptions",
        "assess": "incrowd.measures.linkability.measure:assess",
        "measure": "incrowd.measures.linkability.measure:measure",
    },
)
