"""incrowd tells people how well they hide in the crowd.

The names below are the front door; everything else may move. Heavy parts load on first use, so that
``import incrowd`` stays quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from incrowd.errors import IncrowdError
from incrowd.result import Advice, Assessment, Assumptions, Direction, Evidence, Standing, Threat

if TYPE_CHECKING:
    import incrowd.synthetic as synthetic
    from incrowd.advisor.assess import assess
    from incrowd.crowd import Crowd
    from incrowd.measures import microdata

__version__ = "0.1.0"

_LAZY = {
    "Crowd": ("incrowd.crowd", "Crowd"),
    "assess": ("incrowd.advisor.assess", "assess"),
    "microdata": ("incrowd.measures.microdata", None),
    "synthetic": ("incrowd.synthetic", None),
}

__all__ = [
    "Advice",
    "Assessment",
    "Assumptions",
    "Crowd",
    "Direction",
    "Evidence",
    "IncrowdError",
    "Standing",
    "Threat",
    "assess",
    "microdata",
    "synthetic",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'incrowd' has no attribute {name!r}; it has: {', '.join(__all__)}")
    module, attribute = _LAZY[name]
    loaded = import_module(module)
    return loaded if attribute is None else getattr(loaded, attribute)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
