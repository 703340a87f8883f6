"""The names of a crowd's tables, for those who need no more than the names."""

from __future__ import annotations

from typing import Literal

Kind = Literal["posts", "items", "attributes"]
KINDS: tuple[Kind, ...] = ("posts", "items", "attributes")
