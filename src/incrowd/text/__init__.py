"""Posts become tokens, tokens become counts per identity.

:func:`tokenise` is the readable definition; :func:`counts` applies its fast twin to a whole crowd. The names
below load on first use: a single text is tokenised without waiting for data frames.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.text.counting import Counts, count_tokens, counts
    from incrowd.text.options import TextOptions
    from incrowd.text.reference import tokenise

__all__ = ["Counts", "TextOptions", "count_tokens", "counts", "tokenise"]

_WHERE = {
    "Counts": "counting",
    "TextOptions": "options",
    "count_tokens": "counting",
    "counts": "counting",
    "tokenise": "reference",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'incrowd.text' has no attribute {name!r}")
    return getattr(import_module(f"incrowd.text.{_WHERE[name]}"), name)
