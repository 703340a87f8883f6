"""Posts become tokens, tokens become counts per identity.

:func:`tokenise` is the readable definition; :func:`counts` applies its fast twin to a whole crowd. The names
below load on first use: a single text is tokenised without waiting for data frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.text.counting import Counts, count_tokens, counts
    from incrowd.text.options import TextOptions
    from incrowd.text.reference import tokenise

__all__ = ["Counts", "TextOptions", "count_tokens", "counts", "tokenise"]

lazy_names(
    __name__,
    {
        ".counting": "Counts count_tokens counts",
        ".options": "TextOptions",
        ".reference": "tokenise",
    },
)
