"""Choosing items without repetition, compiled. Loaded on first use.

Each user has an own stream of draws, keyed by their number, so no user depends on another.
"""

from __future__ import annotations

import numpy as np

from incrowd.crowd.synthetic.chance import GOLDEN, Array
from incrowd.crowd.synthetic.text_kernel import TWO_24, U40, _among, _mix, compiled

PATIENCE = 6


@compiled
def choose_items(
    key: np.uint64,
    first_user: int,
    bounds: Array,
    clusters: Array,
    taste: float,
    popular: Array,
    of_cluster: Array,
    cluster_bounds: Array,
    item_count: int,
    chosen: Array,
) -> None:
    """Fill in the items of users `first_user`, `first_user` + 1, ..., each once, in rising order.

    With probability `taste` the next item comes from the user's cluster, otherwise from everything, both by
    popularity. Whoever has had PATIENCE draws an item still lacks some gets the most popular ones left:
    people with very long profiles have seen all there is to see.
    """
    taken_by = np.full(item_count, -1, dtype=np.int64)
    for i in range(len(bounds) - 1):
        user, low, high = first_user + i, bounds[i], bounds[i + 1]
        state = _mix(key + np.uint64(user) * GOLDEN)
        cluster_low, cluster_high = cluster_bounds[clusters[i]], cluster_bounds[clusters[i] + 1]
        at = low
        for _ in range(PATIENCE * (high - low)):
            state += GOLDEN
            draw = _mix(state)
            if (draw >> U40) / TWO_24 < taste:
                item = of_cluster[_among(draw, cluster_low, cluster_high)]
            else:
                item = popular[_among(draw, 0, popular.size)]
            if taken_by[item] != user:
                taken_by[item] = user
                chosen[at] = item
                at += 1
                if at == high:
                    break
        item = 0
        while at < high:
            if taken_by[item] != user:
                chosen[at] = item
                at += 1
            item += 1
        chosen[low:high].sort()
