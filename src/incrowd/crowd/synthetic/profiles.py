"""Word profiles without any text: what a distance benchmark needs of 58,091 identities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from incrowd.crowd.synthetic.chance import lookup_table, normal, stream, zipf
from incrowd.crowd.synthetic.table import require

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PROFILES_PER_COMMUNITY = 30
WORD_TAIL, SIZE_SPREAD = 1.05, 0.5


def profiles(
    identities: int,
    *,
    vocabulary: int = 50_000,
    distinct: int = 1_800,
    communities: int | None = None,
    seed: int = 0,
) -> csr_array:
    """Return word distributions of identities as sparse rows that add up to 1.

    Every identity draws words until it has its number of distinct ones, a lognormal number about `distinct`
    on average. Half of the words come from everybody's Zipf distribution, half from its community's, so
    overlaps are as uneven as in real text.

    Examples
    --------
    >>> profiles(10, vocabulary=500, distinct=40).shape
    (10, 500)
    """
    from scipy.sparse import csr_array

    from incrowd.crowd.synthetic.kernels import fill_profiles

    require(identities >= 1, "identities", "at least 1", identities)
    require(1 <= distinct <= vocabulary // 2, "distinct", f"1 to {vocabulary // 2}", distinct)
    groups = communities or max(1, identities // PROFILES_PER_COMMUNITY)
    spread = np.exp(
        SIZE_SPREAD * normal(stream(seed, "distinct"), np.arange(identities)) - SIZE_SPREAD**2 / 2
    )
    sizes = np.clip(np.rint(distinct * spread), 1, vocabulary // 2).astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    words = np.empty(bounds[-1], dtype=np.int32)
    shares = np.empty(bounds[-1], dtype=np.float64)
    table = lookup_table(zipf(vocabulary, WORD_TAIL, shift=2.0))
    keys = stream(seed, "profile"), stream(seed, "community words")
    fill_profiles(*keys, bounds, groups, table, vocabulary, words, shares)
    index_type = np.int64 if bounds[-1] > np.iinfo(np.int32).max else np.int32
    return csr_array((shares, words, bounds.astype(index_type)), shape=(identities, vocabulary))
