"""The data: people's posts, items and attributes in a folder, imported atomically, under pseudonyms.

The names below load on first use: whoever only looks at a manifest need not wait for a database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.crowd.ingest import ImportReport
    from incrowd.crowd.store import Crowd, CrowdInfo

__all__ = ["Crowd", "CrowdInfo", "ImportReport"]

lazy_names(
    __name__,
    {
        ".ingest": "ImportReport",
        ".store": "Crowd CrowdInfo",
    },
)
