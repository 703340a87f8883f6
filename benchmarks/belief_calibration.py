"""Are beliefs honest about real people? Reliability on held-out members of the ego-Facebook profiles.

    python benchmarks/belief_calibration.py FACEBOOK_EGO.tar.xz

The archive is McAuley and Leskovec's (2012) as SNAP publishes it: <ego>.feat, <ego>.featnames. A fifth of the people
are held out; each of their attributes is hidden in turn and guessed from the rest. Prints rates only, as JSON.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from incrowd.crowd import Crowd
from incrowd.measures.belief.crowd_belief import CrowdBelief, fitted_belief
from incrowd.measures.belief.engine import hide_and_guess
from incrowd.measures.belief.network import NetworkBelief
from incrowd.profiles.attributes import AttributeTable, TableChoices, attribute_table

NAMES = ("first_name", "last_name", "middle_name", "name")


def profiles(archive: str) -> AttributeTable:
    """Import the archive and leave people's names out."""
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd.create(Path(folder) / "crowd")
        crowd.ingest([archive], kind="attributes")
        return TableChoices(ignore=NAMES).apply(attribute_table(crowd))


def main() -> dict:
    table = profiles(sys.argv[1])
    order = np.random.default_rng(0).permutation(len(table.codes))
    held, train = table.only(np.sort(order[: len(order) // 5])), table.only(np.sort(order[len(order) // 5 :]))
    report = {
        "people": len(table.codes),
        "attributes": len(table.space.attributes),
        "held_out": len(held.codes),
    }
    started = time.perf_counter()
    fitted = fitted_belief(train)
    report["fit_seconds"] = time.perf_counter() - started
    beliefs = {
        "crowd, fitted": fitted,
        "crowd, s = 0.1": CrowdBelief.learn(train, 0.1),
        "network": NetworkBelief.learn(train),
        "guessing": CrowdBelief.learn(train, 1.0),
    }
    for name, belief in beliefs.items():
        found = hide_and_guess(belief, held)
        curve = found.reliability()
        report[name] = {
            "calibration_error": curve.error,
            "right": float(found.right.mean()),
            "mean_log2_of_truth": float(np.log2(np.maximum(found.true, 1e-6)).mean()),
            "guesses": len(found.right),
            "sure": np.round(curve.sure, 3).tolist(),
            "was_right": np.round(curve.right, 3).tolist(),
            "count": curve.count.tolist(),
        }
    return report


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
