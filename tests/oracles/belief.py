"""Definitions 12 to 16 of paper 000 by brute force, written from the definitions alone.

People are plain mappings attribute -> value (None: not given). Nothing here imports the product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product

Person = Mapping[str, str | None]
Asked = Mapping[str, str]
"""The values one requirement names."""


def posterior(
    crowd: Sequence[Person],
    domain: Mapping[str, Sequence[str]],
    seen: Asked,
    wanted: tuple[str, str],
    s: float,
) -> float:
    """Return Pr[wanted | seen] where everybody stands for the people like them, give or take s."""
    share = {
        name: {
            value: sum(one[name] == value for one in crowd) / sum(one[name] is not None for one in crowd)
            for value in values
        }
        for name, values in domain.items()
    }
    total = hit = 0.0
    for model in product(*domain.values()):
        theta = dict(zip(domain, model, strict=True))
        if any(theta[name] != value for name, value in seen.items()):
            continue
        weight = 0.0
        for one in crowd:
            each = 1.0
            for name, value in theta.items():
                common = share[name][value]
                each *= common if one[name] is None else (1 - s) * (one[name] == value) + s * common
            weight += each
        total += weight
        hit += weight * (theta[wanted[0]] == wanted[1])
    return hit / total


def satisfied(
    crowd: Sequence[Person],
    domain: Mapping[str, Sequence[str]],
    seen: Asked,
    asked: Asked,
    sigma: float,
    s: float,
) -> bool:
    """Definition 13: for each attribute the belief in the named value is at most sigma."""
    return all(posterior(crowd, domain, seen, pair, s) <= sigma for pair in asked.items())


def critical(
    crowd: Sequence[Person],
    domain: Mapping[str, Sequence[str]],
    seen: Asked,
    policy: Sequence[tuple[Asked, float]],
    s: float,
) -> set[frozenset[str]]:
    """Definition 15, minimal for some requirement: it is violated, and without the set it is not."""
    found: set[frozenset[str]] = set()
    for asked, sigma in policy:
        if satisfied(crowd, domain, seen, asked, sigma, s):
            continue
        found |= _minimal(
            chosen
            for chosen in _subsets(seen)
            if satisfied(crowd, domain, _left(seen, chosen), asked, sigma, s)
        )
    return found


def repairing(
    crowd: Sequence[Person],
    domain: Mapping[str, Sequence[str]],
    seen: Asked,
    policy: Sequence[tuple[Asked, float]],
    s: float,
) -> set[frozenset[str]]:
    """Minimal sets without which every requirement holds; none if the policy holds anyway."""

    def holds(left: Asked) -> bool:
        return all(satisfied(crowd, domain, left, asked, sigma, s) for asked, sigma in policy)

    return (
        set() if holds(seen) else _minimal(chosen for chosen in _subsets(seen) if holds(_left(seen, chosen)))
    )


def _left(seen: Asked, gone: Iterable[str]) -> dict[str, str]:
    return {name: value for name, value in seen.items() if name not in set(gone)}


def _subsets(seen: Asked) -> Iterable[frozenset[str]]:
    """Every set that leaves at least one attribute published."""
    return (frozenset(some) for size in range(1, len(seen)) for some in combinations(seen, size))


def _minimal(sets: Iterable[frozenset[str]]) -> set[frozenset[str]]:
    some = list(sets)
    return {one for one in some if not any(other < one for other in some)}
