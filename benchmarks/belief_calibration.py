"""Are beliefs honest about real people? Reliability on held-out members of the ego-Facebook profiles.

    python benchmarks/belief_calibration.py FACEBOOK_EGO.tar.xz

The archive is McAuley and Leskovec's (2012) as SNAP publishes it: <ego>.feat, <ego>.featnames. A fifth of the people
are held out; each of their attributes is hidden in turn and guessed from the rest. Prints rates only, as JSON.
"""

from __future__ import annotations

import json
import sys
import tarfile
import time

import numpy as np
import polars as pl

from incrowd.measures.belief.calibration import hide_and_guess
from incrowd.measures.belief.crowd_belief import CrowdBelief
from incrowd.measures.belief.fit import fitted_belief
from incrowd.measures.belief.network import NetworkBelief
from incrowd.measures.belief.table import from_long

NAMES = ("first_name", "last_name", "middle_name", "name")


def profiles(archive: str) -> pl.DataFrame:
    """Return user, attribute, value; the attribute is the feature's family without its number."""
    rows = []
    with tarfile.open(archive) as tar:
        files = {m.name.split("/")[-1]: tar.extractfile(m).read().decode() for m in tar if m.isfile()}
    for file in sorted(name for name in files if name.endswith(".feat")):
        names = [line.split(" ", 1)[1] for line in files[file + "names"].splitlines()]
        family = [name.rsplit(";anonymized feature", 1)[0].removesuffix(";id") for name in names]
        value = [name.rsplit(" ", 1)[1] for name in names]
        people = [(line.split()[0], line.split()[1:]) for line in files[file].splitlines()]
        ego = file.split(".")[0]
        people.append((ego, files[ego + ".egofeat"].split()))
        for user, bits in people:
            rows += [(user, family[k], value[k]) for k, bit in enumerate(bits) if bit == "1"]
    frame = pl.DataFrame(rows, schema=["user", "attribute", "value"], orient="row").unique()
    return frame.filter(~pl.col("attribute").is_in(NAMES))


def main() -> dict:
    table = from_long(profiles(sys.argv[1]).sort("user", "attribute", "value"))
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
