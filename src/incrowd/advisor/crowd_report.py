"""For data officers: how the risk is spread over a whole crowd. Nobody is named, quoted or pointed at."""

from __future__ import annotations

import os
import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.advisor.crowd_answer import CrowdReport
from incrowd.advisor.crowd_levels import crowd_levels
from incrowd.measures.crowd_rates import CrowdOptions, CrowdRates
from incrowd.measures.protocol import PreparedCrowd, Progress, given_or, registered

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

__all__ = ["CrowdOptions", "CrowdReport", "crowd_report"]


def crowd_report(
    crowd: Crowd,
    *,
    options: CrowdOptions | None = None,
    space: Any = None,
    progress: Progress | None = None,
) -> CrowdReport:
    """Assess everybody, or a random sample of a large crowd, and tell totals only.

    How many people stand at which level follows from the rule for one person; the papers' numbers of everybody stand
    beside that. `space`: how an adversary recognises topics; None: by words.
    """
    chosen = given_or(options, CrowdOptions)
    chosen = chosen if space is None else replace(chosen, space=space)
    prepared = PreparedCrowd.of(crowd, chosen.text, chosen.memory)
    told = _rates(prepared, chosen, progress)
    spreads = [one for rates in told for one in rates.spreads]
    few = [one for one in spreads if one.people < chosen.smallest]
    missing = [line for rates in told for line in rates.not_measured]
    missing += [f"{one.name}: fewer than {chosen.smallest} people, too few to tell anything" for one in few]
    return CrowdReport(
        people=crowd.info().users,
        levels=crowd_levels(prepared, chosen, progress),
        wanted=chosen.wanted,
        smallest=chosen.smallest,
        spreads=tuple(one for one in spreads if one not in few),
        communities=tuple(one for rates in told for one in rates.communities),
        unnamed_communities=sum(rates.unnamed_communities for rates in told),
        topics=tuple(one for rates in told for one in rates.topics),
        exposed=next((rates.exposed for rates in told if rates.exposed is not None), None),
        not_measured=tuple(missing),
        assumptions=chosen.parameters(),
        fingerprint=_fingerprint(crowd),
    )


def _rates(crowd: PreparedCrowd, options: CrowdOptions, progress: Progress | None) -> list[CrowdRates]:
    """Ask every measure about everybody."""
    crowd.count_together(crowd.population.communities)
    measures = list(registered().values())
    found: list[CrowdRates | None] = []
    if not crowd.population.communities:
        silent = [one.name for one in measures if one.reads == "posts"]
        measures = [one for one in measures if one.reads != "posts"]
        found.append(CrowdRates(not_measured=(f"{', '.join(silent)}: this crowd has no posts",)))
    for done, one in enumerate(measures):
        if progress is not None:
            progress(done, len(measures), f"looking at {one.about}")
        found.append(one.everybody(crowd, options))
    return [rates for rates in found if rates is not None]


def _fingerprint(crowd: Crowd) -> dict[str, Any]:
    """Return what the report was made from and on: no host name, nobody's name."""
    from incrowd import __version__

    info = crowd.info().to_dict()
    wanted = (
        "users",
        "posts",
        "communities",
        "identities",
        "items",
        "item_rows",
        "attribute_rows",
        "imports",
    )
    return {
        "data_hash": crowd.data_hash,
        "data": {name: info[name] for name in wanted if name in info},
        "names": crowd.names,
        "incrowd": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }
