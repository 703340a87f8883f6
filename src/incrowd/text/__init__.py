"""Posts become tokens, tokens become counts per identity.

:func:`tokenise` is the readable definition; :func:`counts` applies its fast twin to a whole crowd.
"""

from __future__ import annotations

from incrowd.text.counts import Counts, count_tokens, counts
from incrowd.text.options import TextOptions
from incrowd.text.reference import tokenise

__all__ = ["Counts", "TextOptions", "count_tokens", "counts", "tokenise"]
