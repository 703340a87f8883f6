"""Crowd in, assessments out: how well one person hides in a table of items."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from incrowd.arrays import Floats
from incrowd.crowd import Crowd
from incrowd.measures.microdata import explain
from incrowd.measures.microdata.anonymity_set import Marks, few_others, few_rarest_first, others_against
from incrowd.measures.microdata.definition import known_sizes
from incrowd.measures.microdata.evaluation import score_table
from incrowd.measures.microdata.known_items import KnownItems, known_items
from incrowd.measures.microdata.overlaps import Progress, work
from incrowd.measures.microdata.set_sizes import Effort, Estimate, SetSizeFinder, SetSizes
from incrowd.measures.microdata.spec import (
    ADVERSARIES,
    FEW_ITEMS,
    Adversary,
    FewItems,
    Knowledge,
    ProfileFilter,
    ScoreSpec,
    adversary,
)
from incrowd.measures.microdata.table import ItemTable, item_table, require_people
from incrowd.result import Advice, Assessment, Assumptions, Direction, Evidence, Standing, Threat

MEASURE = "microdata"
RANK_WORK = 2e10
"""Largest all-pairs job (comparisons) that is worth a rank; about half a minute on two cores."""
DROP = (1, 3, 5, 10)
"""Advice tries leaving out so many of the rarest items."""


def assess_person(
    crowd: Crowd,
    user: str,
    *,
    adversaries: Iterable[str] | None = None,
    profiles: ProfileFilter | None = None,
    effort: Effort | None = None,
    memory: int = 2**30,
    progress: Progress | None = None,
) -> tuple[Assessment, ...]:
    """Assess one person by name: their crowd under each adversary, their score, how often they would be found.

    Adversaries who need ratings or dates the crowd does not hold are left out unless asked for by name.
    """
    table = item_table(crowd, profiles)
    row = table.row_of(crowd.user(user))
    names = [*FEW_ITEMS, *ADVERSARIES] if adversaries is None else list(adversaries)
    few = [FEW_ITEMS[name] for name in names if name in FEW_ITEMS]
    others = [adversary(name) for name in names if name not in FEW_ITEMS]
    if adversaries is None:
        others = [one for one in others if table.has(one.matching)]
    everybody = crowd_of_everybody(table, cache=crowd.cache, memory=memory, progress=progress)
    return assess_row(table, row, others, few=few, everybody=everybody, effort=effort)


def assess_row(
    table: ItemTable,
    row: int,
    adversaries: Sequence[Adversary],
    *,
    few: Sequence[FewItems] = (),
    everybody: Floats | None = None,
    effort: Effort | None = None,
) -> tuple[Assessment, ...]:
    """Assess one row: those who know a few items first, then the sizes of sets, the paper's score, how often found.

    `everybody`: all people's others under the paper's adversary, for the rank.
    """
    require_people(table)
    expected = [expected_assessment(table, row, one, everybody) for one in adversaries]
    who, effort = ADVERSARIES["paper"], effort or Effort()
    sizes = SetSizeFinder(table.matrix, who.knowledge, effort).find(
        table.profile(row), member=row, number=row
    )
    return (
        *assess_few_items(table, row, few, effort),
        *expected,
        _scored(table, row),
        found_assessment(table, who, sizes, effort),
    )


def expected_assessment(
    table: ItemTable, row: int, who: Adversary, everybody: Floats | None = None
) -> Assessment:
    """Return how many people fit on average what somebody knows of one row's items.

    `everybody`: all people's others under the paper's adversary, for the rank.
    """
    everybody = everybody if who == ADVERSARIES["paper"] else None
    items, people = table.profile(row), table.matrix.shape[0]
    rarest = items[np.argsort(table.popularity[items], kind="stable")]
    drops = [count for count in DROP if count <= len(items) // 2]
    sizes, weights = known_sizes(len(items), who.knowledge)
    asked = [who.knowledge, *(_knowing(int(size), who.knowledge.wrong) for size in sizes)]
    # One pass over the crowd answers for the profile, for every amount known, and for every what-if.
    others = others_of(table, row, [items, *(rarest[count:] for count in drops)], who, asked)
    value = 1 + float(others[0, 0])
    return Assessment(
        measure=MEASURE,
        subject=f"you among {people:,} people's items",
        value=value,
        unit="people",
        direction=Direction.HIGHER_IS_SAFER,
        meaning=explain.crowd_meaning(value, people, who.words),
        standing=Standing.PROVED,
        assumptions=_assumptions(table, who),
        baseline=float(people),
        crowd_rank=None if everybody is None else explain.rank_of(value - 1, everybody),
        crowd_size=people,
        threats=(Threat.SINGLING_OUT,),
        evidence=explain.by_knowledge(len(items), sizes, weights, 1 + others[1:, 0]),
        explained=value,
        advice=_advice(table, rarest, drops, value, 1 + others[0, 1:]),
    )


def _advice(
    table: ItemTable, rarest: NDArray[np.int32], drops: list[int], value: float, after: Floats
) -> tuple[Advice, ...]:
    """Say what leaving out the rarest items would do, where it helps."""
    advice = []
    for count, then in zip(drops, after.tolist(), strict=True):
        names = ", ".join(f"“{name}”" for name in table.items.gather(rarest[:count].tolist()))
        action = f"Leave out {names}" if count == 1 else f"Leave out your {count} rarest items: {names}"
        advice.append(
            Advice(what=action, before=value, after=then, loss=f"{count} of your {len(rarest)} items")
        )
    return tuple(one for one in advice if one.after > one.before)


def others_of(
    table: ItemTable,
    row: int,
    variants: Sequence[NDArray[np.int32]],
    who: Adversary,
    knowledge: Sequence[Knowledge] | None = None,
) -> Floats:
    """Return the exact number of others who would fit if the person had these items only.

    One column per variant, one row per amount of knowledge (the adversary's own if not given). The items must be
    the person's: the person's row is then among those that fit, and is not counted.
    """
    asked = [who.knowledge] if knowledge is None else list(knowledge)
    columns = np.concatenate([np.sort(items) for items in variants])
    starts = np.concatenate([[0], np.cumsum([len(items) for items in variants])])
    ones = np.ones(len(columns), dtype=np.int8)
    profiles = sparse.csr_matrix((ones, columns, starts), shape=(len(variants), table.matrix.shape[1]))
    if who.rarest_first:
        return few_rarest_first(profiles, table.matrix, asked)
    marks, within = table.marks(who.matching)
    if marks is None:
        return few_others(profiles, table.matrix, asked)
    own = table.matrix.indptr[row] + np.searchsorted(table.profile(row), columns)
    return few_others(profiles, table.matrix, asked, Marks(marks[:, own], marks, within))


def _scored(table: ItemTable, row: int) -> Assessment:
    """The paper's score of a member, with exact counts: the group, its size, the rank."""
    spec, people = ScoreSpec(), table.matrix.shape[0]
    scored = score_table(table, spec)
    value, groups = float(scored.scores[row]), scored.groups
    items = len(table.profile(row))
    rare = round((scored.raw[row] - math.log(items)) * items)
    undefined = math.isnan(value)
    place = 0 if undefined else int(groups.of(scored.scores[[row]])[0])
    return Assessment(
        measure=MEASURE,
        subject=f"you among {people:,} people's items",
        value=value,
        unit=explain.SCORE_UNIT,
        direction=Direction.HIGHER_IS_SAFER,
        meaning=explain.group_meaning(items, place, len(groups.centres), int(groups.members[place])),
        standing=Standing.REPRODUCTION,
        assumptions=Assumptions(
            adversary=ADVERSARIES["paper"].words,
            parameters={"rare_below": spec.rare_below, "group": place, "borders": groups.borders.tolist()},
            data_hash=table.data_hash,
        ),
        crowd_rank=None if undefined else explain.rank_of(value, scored.scores),
        crowd_size=people,
        threats=(Threat.SINGLING_OUT,),
        evidence=explain.of_raw_risk(items, rare, float(scored.raw[row])),
        explained=float(scored.raw[row]),
        reason="no_scale: everybody has the same raw risk" if undefined else "",
    )


def found_assessment(table: ItemTable, who: Adversary, sizes: SetSizes, effort: Effort) -> Assessment:
    """Return how often one guess among those who fit would be right."""
    people = table.matrix.shape[0]
    found, alone = sizes.found, sizes.alone
    assumptions = _assumptions(table, who, seed=None if sizes.exact else effort.seed, rounds=sizes.rounds)
    return Assessment(
        measure=MEASURE,
        subject=f"you among {people:,} people's items",
        value=found.value,
        unit="probability of being picked out with one guess",
        direction=Direction.LOWER_IS_SAFER,
        meaning=explain.found_meaning(found.value, alone.value, who.words),
        standing=Standing.PROVED if sizes.exact else Standing.HEURISTIC,
        assumptions=assumptions,
        interval=None if sizes.exact else _interval(found),
        baseline=1.0 / people,
        crowd_size=people,
        threats=(Threat.SINGLING_OUT,),
        evidence=(),
    )


def assess_few_items(table: ItemTable, row: int, few: Sequence[FewItems], effort: Effort) -> list[Assessment]:
    """Return what each of those who know a few items makes of them; dates have to be there for those who know when."""
    if not few:
        return []
    known = known_items(table, row, effort)
    names = table.items.gather(table.profile(row).tolist())
    return [
        few_items_assessment(table, row, known, one, names, effort) for one in few if known.tells(one.way)
    ]


def few_items_assessment(
    table: ItemTable, row: int, known: KnownItems, who: FewItems, names: pl.Series, effort: Effort
) -> Assessment:
    """Return how often somebody who knows a handful of items picks the person out, and how few items it takes.

    `names` are those of the items that may become known.
    """
    people = table.matrix.shape[0]
    still = int(names.is_in(table.items.gather(table.profile(row).tolist()).to_list()).sum())
    found = known.probability[who.way][who.count]
    parts = known.parts[who.way][who.count]
    adds = np.argsort(-parts, kind="stable")[: int((parts > 0).sum())]
    exact = found.low == found.high
    return Assessment(
        measure=MEASURE,
        subject=f"you among {people:,} people's items",
        value=found.value,
        unit="probability",
        direction=Direction.LOWER_IS_SAFER,
        meaning=explain.few_items_meaning(found.value, people, who, known, still),
        standing=Standing.PROVED if exact else Standing.HEURISTIC,
        assumptions=Assumptions(
            adversary=who.words,
            parameters={"name": who.name, "way": who.way, "items_known": who.count} | known.to_dict(),
            seed=None if exact else effort.seed,
            data_hash=table.data_hash,
        ),
        interval=None if exact else _interval(found),
        baseline=1.0 / people,
        crowd_size=people,
        threats=(Threat.SINGLING_OUT,),
        evidence=tuple(
            Evidence(what=f"the item “{name}”", contribution=part)
            for name, part in zip(names.gather(adds.tolist()), parts[adds].tolist(), strict=True)
        ),
        explained=found.value if len(adds) else None,
    )


def _interval(estimate: Estimate) -> tuple[float, float]:
    return estimate.low, estimate.high


def _knowing(size: int, wrong: int) -> Knowledge:
    """Somebody who knows exactly so many items."""
    if size == 0:
        return Knowledge(percents=(1e-9,), rounding="floor", minimum=0, wrong=wrong)
    return Knowledge(percents=(), items=(size,), wrong=wrong)


def _assumptions(table: ItemTable, who: Adversary, seed: int | None = None, **more: Any) -> Assumptions:
    parameters = {"knowledge": who.knowledge.to_dict(), "matching": asdict(who.matching), "name": who.name}
    extra = {key: value for key, value in more.items() if value is not None}
    return Assumptions(
        adversary=who.words, parameters=parameters | extra, seed=seed, data_hash=table.data_hash
    )


def crowd_of_everybody(
    table: ItemTable, *, cache: Path | None = None, memory: int = 2**30, progress: Progress | None = None
) -> Floats | None:
    """Return everybody's exact number of others (paper's adversary); None if that would take too long.

    Kept in the crowd's cache, so that the second question is quick.
    """
    who = ADVERSARIES["paper"]
    job = work(table.matrix, table.matrix)
    if job["entries"] + job["words"] > RANK_WORK:
        return None
    sizes = (table.matrix.shape, table.matrix.nnz)
    key = hashlib.blake2b(
        json.dumps([table.data_hash, sizes, who.knowledge.to_dict()]).encode(), digest_size=12
    )
    file = None if cache is None or table.data_hash is None else cache / f"microdata-{key.hexdigest()}.npy"
    if file is not None and file.exists():
        return np.asarray(np.load(file, allow_pickle=False))
    others = others_against(table, who, memory=memory, progress=progress)
    if file is not None:
        unfinished = file.with_suffix(".tmp.npy")
        np.save(unfinished, others)
        unfinished.replace(file)
    return others
