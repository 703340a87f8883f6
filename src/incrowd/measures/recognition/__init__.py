"""How few of your posts, read elsewhere, does it take to recognise you in a community?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.recognition.assess import CommunityRecognition as CommunityRecognition
    from incrowd.measures.recognition.measure import assess as assess
    from incrowd.measures.recognition.measure import measure as measure
    from incrowd.measures.recognition.spec import ADVERSARIES as ADVERSARIES
    from incrowd.measures.recognition.spec import RecognitionOptions as Options

__all__ = ["ADVERSARIES", "CommunityRecognition", "Options", "assess", "measure"]

lazy_names(
    __name__,
    {
        "ADVERSARIES": "incrowd.measures.recognition.spec:ADVERSARIES",
        "CommunityRecognition": "incrowd.measures.recognition.assess:CommunityRecognition",
        "Options": "incrowd.measures.recognition.spec:RecognitionOptions",
        "assess": "incrowd.measures.recognition.measure:assess",
        "measure": "incrowd.measures.recognition.measure:measure",
    },
)
