"""How many people each adversary links, on real communities beside the project if they are there.

Reads ../shared/data/reddit_college; prints rates only. Without that folder a synthetic crowd takes its place.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from incrowd.crowd import Crowd
from incrowd.measures.linkability.assess import link_rates
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.synthetic import posts

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "reddit_college" / "posts.jsonl.zst"
LEAST_PAIRS = 50


def crowd(folder: Path) -> tuple[Crowd, str]:
    if DATA.exists():
        made = Crowd.create(folder)
        made.ingest([DATA], kind="posts", columns={"user": "author", "time": "t"})
        return made, "reddit_college"
    print("reddit_college is not there: measuring a synthetic crowd instead")
    return posts(users=300, communities=4, identities=900, linkability=0.4, seed=1).crowd(folder), "synthetic"


def shared_pairs(crowd: Crowd, min_posts: int) -> list[tuple[str, str]]:
    import polars as pl

    ids = crowd.posts().group_by("user", "community").len().filter(pl.col("len") >= min_posts).collect()
    both = ids.join(ids, on="user").filter(pl.col("community") != pl.col("community_right"))
    counted = both.group_by("community", "community_right").len().filter(pl.col("len") >= LEAST_PAIRS)
    return [(a, b) for a, b, _ in counted.sort("len", "community", descending=True).iter_rows()]


def attack(crowd: Crowd, source: str, target: str, **changes: Any) -> dict[str, Any]:
    start = time.perf_counter()
    rates = link_rates(crowd, LinkabilityOptions(source=source, target=target, **changes)).to_dict()
    found = {
        "first": rates["precision_at"]["1"],
        "ten": rates["precision_at"]["10"],
        "seconds": time.perf_counter() - start,
    }
    if "calibration" in rates:
        found |= {
            "calibration_error": rates["calibration"]["error"],
            "calibration_error_open": rates["calibration_open"]["error"],
        }
    return found


def main() -> dict[str, Any]:
    ways: dict[str, dict[str, Any]] = {
        "unigram JS": {},
        "indicator JS": {"model": "indicator"},
        "TF-IDF cosine": {"model": "tfidf", "distance": "angular-cosine"},
        "determined": {"adversary": "determined"},
    }
    results: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        made, name = crowd(Path(folder) / "crowd")
        for source, target in shared_pairs(made, 10):
            row = {way: attack(made, source, target, **changes) for way, changes in ways.items()}
            results[f"{source} -> {target}"] = row
            shown = "  ".join(f"{way} {found['first']:.3f}/{found['ten']:.3f}" for way, found in row.items())
            print(f"{source} -> {target}: {shown}", flush=True)
    return {"data": name, "pairs": results}


if __name__ == "__main__":
    print(main())
