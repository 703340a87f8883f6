"""Posts become tokens, tokens become counts per identity.

:func:`tokenise` is the readable definition; :func:`counts` applies its fast twin to a whole crowd. The names
below load on first use: a single text is tokenised without waiting for data frames.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.text.counts import Counts, count_tokens, counts
    from incrowd.text.options import TextOptions
    from incrowd.text.reference import tokenise

__all__ = ["Counts", "TextOptions", "count_tokens", "counts", "tokenise"]

_WHERE = {
    "Counts": "counting",
    "TextOptions": "options",
    "count_tokens": "counts",
    "counts": "counts",
    "tokenise": "reference",
}


class _Package(ModuleType):
    """Keeps `counts` the function, although importing the module of that name would put it in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        is_module = name == "counts" and isinstance(value, ModuleType)
        super().__setattr__(name, value.counts if is_module else value)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'incrowd.text' has no attribute {name!r}")
    return getattr(import_module(f"incrowd.text.{_WHERE[name]}"), name)


sys.modules[__name__].__class__ = _Package
