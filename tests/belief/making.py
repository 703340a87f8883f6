"""Small spaces and tables that tests share."""

from __future__ import annotations

import numpy as np

from incrowd.measures.belief.crowd_belief import CrowdBelief
from incrowd.measures.belief.engine import ExplicitBelief
from incrowd.measures.belief.network import NetworkBelief
from incrowd.profiles.attributes import HIDDEN, AttributeSpace, AttributeTable, SeenAttributes


def table_of(space: AttributeSpace, codes: np.ndarray) -> AttributeTable:
    users = np.array([f"u{number:06}" for number in range(len(codes))], dtype=object)
    return AttributeTable(space, np.asarray(codes, np.int32), users, "made up")


def random_table(
    seed: int, people: int = 40, sizes: tuple[int, ...] = (3, 2, 4), missing: float = 0.2
) -> AttributeTable:
    rng = np.random.default_rng(seed)
    space = AttributeSpace.of(
        {f"a{place}": [f"v{code}" for code in range(size)] for place, size in enumerate(sizes)}
    )
    codes = np.stack([rng.integers(size, size=people) for size in sizes], axis=1)
    codes[rng.random(codes.shape) < missing] = HIDDEN
    codes[: max(sizes)] = np.stack(
        [np.arange(max(sizes)) % size for size in sizes], axis=1
    )  # every value occurs
    return table_of(space, codes)


def spelled_out(belief: CrowdBelief, table: AttributeTable, without: int | None = None) -> ExplicitBelief:
    """Write the smoothed crowd down model by model, straight from its definition."""
    space = belief.space
    found = ExplicitBelief.over(dict(zip(space.attributes, space.values, strict=True)))
    weight = np.zeros(len(found.models))
    for row, codes in enumerate(table.codes):
        if row == without:
            continue
        each = np.ones(len(found.models))
        for place, code in enumerate(codes):
            share, s = belief.shares[place][found.models[:, place]], belief.smoothing[place]
            same = found.models[:, place] == code
            each *= share if code == HIDDEN else (1 - s) * same + s * share
        weight += each
    return ExplicitBelief(space, found.models, weight / weight.sum())


def written_out(network: NetworkBelief) -> ExplicitBelief:
    """Multiply a network's tables out, model by model."""
    space = network.space
    found = ExplicitBelief.over(dict(zip(space.attributes, space.values, strict=True)))
    weight = np.ones(len(found.models))
    for place, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        weight *= table[tuple(found.models[:, [*parents, place]].T)]
    return ExplicitBelief(space, found.models, weight)


def random_evidence(space: AttributeSpace, seed: int, people: int = 5, soft: bool = True) -> SeenAttributes:
    rng = np.random.default_rng(seed)
    seen = np.stack([rng.integers(-1, size, size=people) for size in space.sizes], axis=1)
    evidence = SeenAttributes(space, seen.astype(np.int64))
    return evidence.hinting(0, rng.random((people, space.sizes[0])) + 0.1) if soft else evidence
