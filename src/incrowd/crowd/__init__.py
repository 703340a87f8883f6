"""The data: people's posts, items and attributes in a folder, imported atomically, under pseudonyms."""

from __future__ import annotations

from incrowd.crowd.info import CrowdInfo
from incrowd.crowd.ingest import ImportReport
from incrowd.crowd.store import Crowd

__all__ = ["Crowd", "CrowdInfo", "ImportReport"]
