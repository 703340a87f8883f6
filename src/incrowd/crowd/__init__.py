"""The data: people's posts, items and attributes in a folder, imported atomically, under pseudonyms.

The names below load on first use: whoever only looks at a manifest need not wait for a database.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.crowd.info import CrowdInfo
    from incrowd.crowd.ingest import ImportReport
    from incrowd.crowd.store import Crowd

__all__ = ["Crowd", "CrowdInfo", "ImportReport"]

_WHERE = {"Crowd": "store", "CrowdInfo": "info", "ImportReport": "ingest"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'incrowd.crowd' has no attribute {name!r}")
    return getattr(import_module(f"incrowd.crowd.{_WHERE[name]}"), name)
