"""How few of your posts, read elsewhere, does it take to recognise you in a community?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.measures.recognition.assess import CommunityRecognition
    from incrowd.measures.recognition.measure import assess, measure
    from incrowd.measures.recognition.spec import ADVERSARIES
    from incrowd.measures.recognition.spec import RecognitionOptions as Options

__all__ = ["ADVERSARIES", "CommunityRecognition", "Options", "assess", "measure"]

lazy_names(
    __name__,
    {
        ".assess": "CommunityRecognition",
        ".measure": "assess measure",
        ".spec": "ADVERSARIES RecognitionOptions:Options",
    },
)
