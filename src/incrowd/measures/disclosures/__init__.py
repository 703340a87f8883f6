"""What has a person told about themselves in their own posts, and how many people does it fit together?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.disclosures.assess import Disclosed, disclosed
    from incrowd.measures.disclosures.measure import assess, measure
    from incrowd.measures.disclosures.spec import ADVERSARIES
    from incrowd.measures.disclosures.spec import DisclosureOptions as Options

__all__ = ["ADVERSARIES", "Disclosed", "Options", "assess", "disclosed", "measure"]

lazy_names(
    __name__,
    {
        ".assess": "Disclosed disclosed",
        ".measure": "assess measure",
        ".spec": "ADVERSARIES DisclosureOptions:Options",
    },
)
