"""Whom the label calls safe, beside how many people their items really fit.

    python -m benchmarks.microdata_label CROWD      e.g. build/bench/crowds/user_artists

Counts, among everybody of a crowd of items, whom the paper's label and the label shown call safe although fewer people
than wanted fit, by the exact crowd. Counts only; no person and no item is shown.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.measures.microdata.client import WANTED_CROWD, claims_safety, score
from incrowd.measures.microdata.evaluation import evaluate, published
from incrowd.measures.microdata.spec import ProfileFilter, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.table import item_table
from incrowd.report.label import microdata_label, paper_label


def labels(crowd: Crowd) -> dict[str, Any]:
    """Label everybody by the statistics that would be published, as they would on their own machine."""
    table = item_table(crowd, ProfileFilter(fewest=1))
    exact = 1 + evaluate(table).others
    statistics, names = published(table, ScoreSpec(), ReleaseSpec()), table.items.to_list()
    said: dict[str, list[float]] = {"paper": [], "shown": []}
    untold = 0
    for row, fit in enumerate(exact.tolist()):
        mine = table.matrix.indices[table.matrix.indptr[row] : table.matrix.indptr[row + 1]]
        try:
            told = score([str(names[item]) for item in mine], statistics, hurting=0)
        except InputError:  # none of their items is listed: they are told that it gives them away
            untold += 1
            continue
        for kind, label in (("paper", paper_label(told)), ("shown", microdata_label(told))):
            if label.you is not None and claims_safety(label.verdict):
                said[kind].append(fit)
    return {
        "people": len(exact),
        "no_label": untold,
        "wanted": WANTED_CROWD,
        "called_safe": {kind: len(fits) for kind, fits in said.items()},
        "called_safe_but_below": {
            kind: int((np.array(fits) < WANTED_CROWD * (1 - 1e-9)).sum()) for kind, fits in said.items()
        },
        "smallest_crowd_called_safe": {kind: min(fits, default=None) for kind, fits in said.items()},
    }


def main() -> dict[str, Any] | None:
    """Run it on a crowd given by its folder."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("crowd", type=Path, nargs="?")
    given = parser.parse_args()
    if given.crowd is None:
        print("   skipped: give the folder of a crowd, python -m benchmarks.microdata_label CROWD")
        return None
    found = labels(Crowd(given.crowd))
    print(json.dumps(found, indent=1))
    return found


if __name__ == "__main__":
    main()
