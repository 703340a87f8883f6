"""What incrowd uses of OpenDP, loaded where it is needed: noise on counts of people, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from incrowd.errors import MissingExtra


class OpenDP:
    """OpenDP's measurements; loading it takes seconds, so it is done once and where it is needed."""

    def __init__(self, needed_by: str) -> None:
        try:
            import opendp.prelude as opendp
        except ImportError:
            raise MissingExtra(needed_by, "gateway") from None
        opendp.enable_features("contrib")
        self._opendp: Any = opendp
        self._counts = opendp.vector_domain(opendp.atom_domain(T=int))

    def gaussian(self, scale: float) -> Any:
        """Add discrete Gaussian noise to a list of counts."""
        return self._opendp.m.make_gaussian(self._counts, self._opendp.l2_distance(T=float), scale)

    def laplace(self, scale: float) -> Any:
        """Add discrete Laplace noise to a list of counts."""
        return self._opendp.m.make_laplace(self._counts, self._opendp.l1_distance(T=int), scale)

    def most_rho(self, epsilon: float, delta: float) -> float:
        """Return how much zero-concentrated privacy loss (epsilon, delta) allows, by OpenDP's conversion."""
        low, high = 0.01, 1e6  # scales of Gaussian noise on one count that moves by one
        for _ in range(60):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.epsilon(middle, delta) <= epsilon else (middle, high)
        return 1 / (2 * high * high)

    def epsilon(self, scale: float, delta: float) -> float:
        """Return the epsilon of Gaussian noise on one count that moves by one."""
        converted = self._opendp.c.make_zCDP_to_approxDP(self.gaussian(scale))
        return float(converted.map(1.0).epsilon(delta=delta))


def least_threshold(lost: Callable[[int], float], delta: float, *, above: int = 1) -> int:
    """Return the smallest threshold that loses at most delta; it is larger than `above`.

    One more than OpenDP says: it lets counts at the threshold pass and does not count them in its delta
    (https://github.com/opendp/opendp/issues/2922; version 0.16 said 8.5e-9 where it is 1.0005e-8).
    """
    low, high = above, 2 * above
    while lost(high) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if lost(middle) <= delta else (middle, high)
    return high + 1
