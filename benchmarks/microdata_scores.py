"""How well do the scores a client computes order people who are not in the table? Six public tables, rank correlations.

    python -m benchmarks microdata_scores [--data ../shared/data]

Three times, a fifth of the people is held out. The others' statistics are published, the held-out people score
themselves with them, and the truth is their exact average crowd among the others. Tables that are missing are left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.crowd import Crowd
from incrowd.measures.microdata.anonymity_set import expected_others
from incrowd.measures.microdata.evaluation import agreement, estimate_from, published
from incrowd.measures.microdata.expected_crowd import expected_others_of_all, independent
from incrowd.measures.microdata.spec import Knowledge, ProfileFilter, ReleaseSpec, ScoreSpec
from incrowd.measures.microdata.table import ItemTable, item_table, restrict

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("INCROWD_DATA", ROOT.parent / "shared" / "data"))
CROWDS = ROOT / "build" / "bench" / "crowds"
TABLES = {
    "films": "movielens_100k/ml-100k.inter.xz",
    "music": "lastfm_hetrec2011/user_artists.dat.xz",
    "visited pages": "msweb/anonymous-msweb.data.gz",
    "liked genres": "deezer_genres/HU_genres.json.xz",
    "shopping baskets": "fimi_transactions/retail.dat.xz",
    "shop visits": "fimi_transactions/BMS-WebView-2.dat.xz",
}
SPLITS, HELD_OUT = 3, 0.2
WAYS = ("paper", "exact counts, no classes", "safe counts", "safe counts, 8 taste groups")


def crowd_of(data: Path, path: str) -> Crowd:
    folder = CROWDS / Path(path).name.split(".")[0]
    if folder.exists():
        return Crowd(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    packed = data / path
    opened = {".xz": lzma.open, ".gz": gzip.open}[packed.suffix]
    plain = folder.parent / packed.stem
    with opened(packed) as file:
        content = file.read()
    if plain.suffix == ".json":  # user -> what they like; our reader takes such a map for value -> users
        rows = [f"{user},{item}" for user, items in json.loads(content).items() for item in items]
        plain, content = plain.with_suffix(".csv"), "\n".join(["user,item", *rows]).encode()
    plain.write_bytes(content)
    made = Crowd.create(folder, plain_names=True)  # splits are drawn by the order of people
    made.ingest([plain], kind="items")
    return made


def split(table: ItemTable, seed: int) -> dict[str, float]:
    """Return how each score orders the held-out people, and by which factor it is typically off."""
    people = table.matrix.shape[0]
    order = np.random.default_rng(seed).permutation(people)
    held, rest = np.sort(order[: round(HELD_OUT * people)]), np.sort(order[round(HELD_OUT * people) :])
    knowledge, matrix = Knowledge(), table.matrix
    truth = expected_others(matrix[held], matrix[rest], knowledge, inside=False)
    popularity = np.bincount(matrix[rest].indices, minlength=matrix.shape[1])
    own = matrix[held]
    sizes = np.diff(own.indptr)
    rare = np.add.reduceat(popularity[own.indices] < ScoreSpec().rare_below, own.indptr[:-1])
    exact, one = independent(popularity / len(rest))
    stayed, left = restrict(table, rest), restrict(table, held)
    found = {
        WAYS[0]: -(rare / sizes + np.log(sizes)),
        WAYS[1]: expected_others_of_all(own, exact, one * len(rest), knowledge),
        WAYS[2]: estimate_from(left, published(stayed, ScoreSpec(), ReleaseSpec()), knowledge),
    }
    if len(rest) >= 320 and min(matrix.shape) > 16:
        found[WAYS[3]] = estimate_from(
            left, published(stayed, ScoreSpec(), ReleaseSpec(taste_groups=8)), knowledge
        )
    off = {way: np.abs(np.log1p(score) - np.log1p(truth)) for way, score in found.items() if way != WAYS[0]}
    orders = {way: agreement(score, truth).spearman for way, score in found.items()}
    return orders | {f"{way}: typical factor off": float(np.exp(np.median(one))) for way, one in off.items()}


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    data = parser.parse_args().data
    report: dict[str, Any] = {}
    for name, path in TABLES.items():
        if not (data / path).exists():
            print(f"   {name}: {data / path} is not there")
            continue
        table = item_table(crowd_of(data, path), ProfileFilter())
        drawn = [split(table, seed) for seed in range(SPLITS)]
        report[name] = {"people": table.matrix.shape[0]} | {
            way: float(np.mean([one[way] for one in drawn])) for way in drawn[0]
        }
    return report


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
