"""What takes long and is the same for everybody, kept in the crowd's cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from incrowd.advisor.arrays import kept

if TYPE_CHECKING:
    import numpy as np

    from incrowd.crowd import Crowd

Arrays = Mapping[str, "np.ndarray[Any, Any]"]


def remembered(crowd: Crowd, question: Mapping[str, Any], answer: Callable[[], Arrays]) -> Arrays:
    """Return named arrays for a question about this data; computed at most once until the data changes.

    The question must hold every option that decides the answer. A damaged file is computed again.
    """
    return kept(crowd.cache, "answer", question, crowd.data_hash, lambda: (dict(answer()), {}))[0]
