"""What the dial `linkability` of synthetic crowds does to an adversary who compares word frequencies.

    python -m benchmarks.synthetic

300 people in two communities, about 100 posts each in both; the share of people whose second profile comes first, and
among the first ten, by the unigram adversary. Also mean distances, with 100 and with 250 posts a profile.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from incrowd import synthetic
from incrowd.crowd import Crowd
from incrowd.measures.linkability.assess import link_rates
from incrowd.measures.linkability.spec import LinkabilityOptions

PEOPLE = 300
DIAL = (0.0, 0.25, 0.5, 0.75, 1.0)


def crowd_of(folder: Path, linkability: float, posts: int) -> Crowd:
    made = synthetic.posts(
        users=PEOPLE,
        communities=2,
        posts=2 * PEOPLE * posts,
        fewest_posts=posts // 2,
        most_posts=2 * posts,
        linkability=linkability,
        seed=0,
    )
    return made.crowd(folder)


def rates(crowd: Crowd) -> dict[str, Any]:
    source, target = crowd.communities()["community"].sort().to_list()
    return link_rates(crowd, LinkabilityOptions(source=source, target=target, min_posts=1)).to_dict()


def main() -> dict[str, Any]:
    report: dict[str, Any] = {"dial": {}, "mean_distance": {}}
    with tempfile.TemporaryDirectory() as folder:
        for place, dial in enumerate(DIAL):
            found = rates(crowd_of(Path(folder) / str(place), dial, 100))
            report["dial"][f"{dial:g}"] = {
                "first": found["precision_at"]["1"],
                "ten": found["precision_at"]["10"],
            }
            if dial == 0.5:
                report["mean_distance"]["100"] = found["mean_distance"]
        report["mean_distance"]["250"] = rates(crowd_of(Path(folder) / "longer", 0.5, 250))["mean_distance"]
    return report


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
