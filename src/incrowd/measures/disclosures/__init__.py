"""What has a person told about themselves in their own posts, and how many people does it fit together?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.disclosures.assess import Disclosed as Disclosed
    from incrowd.measures.disclosures.assess import disclosed as disclosed
    from incrowd.measures.disclosures.measure import assess as assess
    from incrowd.measures.disclosures.measure import measure as measure
    from incrowd.measures.disclosures.spec import ADVERSARIES as ADVERSARIES
    from incrowd.measures.disclosures.spec import DisclosureOptions as Options

__all__ = ["ADVERSARIES", "Disclosed", "Options", "assess", "disclosed", "measure"]

lazy_names(
    __name__,
    {
        "ADVERSARIES": "incrowd.measures.disclosures.spec:ADVERSARIES",
        "Disclosed": "incrowd.measures.disclosures.assess:Disclosed",
        "Options": "incrowd.measures.disclosures.spec:DisclosureOptions",
        "assess": "incrowd.measures.disclosures.measure:assess",
        "disclosed": "incrowd.measures.disclosures.assess:disclosed",
        "measure": "incrowd.measures.disclosures.measure:measure",
    },
)
