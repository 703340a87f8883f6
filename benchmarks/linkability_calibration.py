"""How sure the determined adversary of linkability is, and how right, on pairs of communities it never saw.

    python -m benchmarks.linkability_calibration reddit_users                  by the weights shipped, of reddit_college
    python -m benchmarks.linkability_calibration reddit_college --weights-of reddit_users      the other way round
    python -m benchmarks.linkability_calibration blogs                         blogs, each cut in three by time
    python -m benchmarks.linkability_calibration reddit_college --learn        the weights of a crowd, to be shipped

Matches are taken away, too: who is in both communities is cut at random into groups, and each group in turn is left, so
that everybody is judged as one of all, of half, of a tenth, a twentieth and a hundredth, once each. Reads
../shared/data; prints rates only. Without it a synthetic crowd is measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.linkability import SHARED, crowd
from incrowd.crowd import Crowd
from incrowd.measures.linkability.determined import (
    BINS,
    DeterminedAttack,
    _highest,
    _identities,
    _margins,
    _practice_communities,
    _practise,
    _read,
    attack_on,
    sign_lesson,
)
from incrowd.measures.linkability.open_set import UNTAUGHT, OpenSet, fall_off, learn
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.statistics import auc, calibration_gap

GROUPS = (1, 2, 10, 20, 100)
"""Into how many groups the people in both are cut: none, 50, 90, 95 and 99 % are taken away."""
FEW_GROUPS = 10
"""With fewer, each judgement has enough matches to be looked at alone."""
MIN_POSTS = 10
LEAST_IN_BOTH = 10
CALLED = 0.1
"""Whoever is less sure than that calls nobody a match."""


def blogs(folder: Path) -> Crowd:
    """Cut each blog in three: the earliest posts are one community, the next ones and the latest two others."""
    posts = pl.read_ndjson(SHARED / "blog_authorship_sample" / "posts.jsonl.zst").sort("author", "date")
    part = 3 * pl.int_range(pl.len()).over("author") // pl.len().over("author")
    time = pl.col("date").str.to_datetime(strict=False).dt.epoch("s")
    cut = posts.select("text", user="author", community=pl.format("part {}", part + 1), time=time)
    return Crowd.from_frame(cut, path=folder, plain_names=True)


@dataclass(frozen=True)
class Pairs:
    """A crowd's pairs of communities with enough people in both, and everybody's habits."""

    crowd: Crowd
    identities: pl.DataFrame
    both: list[tuple[str, str]]
    habits: dict[str, Any]

    @classmethod
    def of(cls, crowd: Crowd) -> Pairs:
        identities = _identities(crowd, MIN_POSTS)
        met = identities.join(identities, on="user").filter(pl.col("community") < pl.col("community_right"))
        counted = met.group_by("community", "community_right").len().filter(pl.col("len") >= LEAST_IN_BOTH)
        both = sorted(counted.select("community", "community_right").iter_rows())
        names = sorted({name for pair in both for name in pair})
        return cls(crowd, identities, both, {name: _read(crowd, name, MIN_POSTS) for name in names})

    def learnt(self) -> OpenSet:
        """Return what signs weigh in this crowd, nothing expected beforehand; each pair by weights of others."""
        lessons = [sign_lesson(attack) for attack in list(self.attacks(UNTAUGHT))[::2]]
        return learn(lessons, sure=1e-3)

    def attacks(self, expected: OpenSet) -> Iterator[DeterminedAttack]:
        """Yield the attack on each pair, both ways, by a model that never saw it."""
        models: dict[Any, Any] = {}
        for pair in self.both:
            practice = tuple(_practice_communities(self.identities, set(pair)))
            if practice not in models:
                options = LinkabilityOptions(source=pair[0], target=pair[1])
                model, known = _practise(
                    self.crowd, options, self.identities, self.habits, open_set=True, expected=expected
                )
                models[practice] = (model if known else replace(model, open_set=expected)), known
            for way in (pair, pair[::-1]):
                yield self._attack(way, *models[practice])

    def _attack(self, pair: tuple[str, str], model: Any, known: int) -> DeterminedAttack:
        return attack_on(self.habits[pair[0]], self.habits[pair[1]], model, known)


class Judged:
    """Verdicts of one attack with some of the true targets taken away; who resembles everybody stays as among all.

    Only who has a match changes from one group to the next, so what strangers are like is found out once.
    """

    def __init__(self, attack: DeterminedAttack, users: Any) -> None:
        self.model, self.matches = attack.model, attack.pairs[:, 1]
        everybody = np.arange(len(attack.sources))
        self.views = [view.scores(everybody) for view in attack.resemblance.laid_out]
        self.utilities = attack.resemblance.utilities(everybody, self.model.weights)
        self.of_targets = _highest(self.utilities, axis=0)
        self.strangers = np.setdiff1d(np.arange(len(attack.targets)), self.matches)
        theirs, nobody = self.utilities[:, self.strangers], np.zeros(len(self.utilities))
        self.best, self.highest = nobody.astype(np.int64), theirs.astype(np.float64)
        if len(self.strangers):
            self.best, self.highest = self.strangers[theirs.argmax(axis=1)], _highest(theirs, axis=1)
        self.likely = np.exp(theirs - self.highest.max(axis=1, initial=-np.inf)[:, None]).sum(axis=1)
        self.names = [side.identities["user"].to_numpy() for side in (attack.sources, attack.targets)]
        self.who = np.searchsorted(users, self.names[0])  # numbers, which are faster to count than names
        self.seen = np.full(self.utilities.shape, -1, np.int32)
        self.nearer = np.empty((2, 0, len(self.views)), np.int64)

    def groups(self, count: int) -> Iterator[Any]:
        """Yield the matches that are left: each group in turn."""
        order = np.random.default_rng(0).permutation(len(self.matches))
        for group in range(count):
            yield self.matches[order[group::count]]

    def verdicts(self, left: Any) -> dict[str, Any]:
        """Return how sure the adversary is of each source, knowing of a match or not, and how right."""
        sources, targets = self.names
        own = self.utilities[:, left]
        highest = _highest(np.concatenate([self.highest, own], axis=1), axis=1)
        best = self.best
        if len(left):
            best = np.where(own.max(axis=1) >= highest[:, 0], left[own.argmax(axis=1)], best)
        found = {
            "best": best, "highest": highest[:, 0], "second": highest[:, 1], "behind": fall_off(highest)[0]
        }  # fmt: skip
        margin = _margins(found, self.of_targets)
        rest = self.likely * np.exp(self.highest.max(axis=1, initial=-np.inf) - highest[:, 0])
        chances = 1 / (rest + np.exp(own - highest[:, :1]).sum(axis=1))
        sure, share = self.model.open_set.found(margin, self._places(margin, best, left))
        return {
            "sure": np.minimum(sure, chances),
            "closed": chances,
            "right": targets[best] == sources,
            "has": np.isin(sources, targets[left]),
            "who": self.who,
            "share held": np.array([share.low <= (targets[best] == sources).mean() <= share.high]),
        }

    def _places(self, margin: Any, best: Any, left: Any) -> Any:
        """Return the places of the pairs with a margin."""
        mutual = np.flatnonzero(margin > 0)
        target = best[mutual]
        new = self.seen[mutual, target] < 0
        if new.any():
            self._look_at(mutual[new], target[new])
        strangers, of_target = self.nearer[:, self.seen[mutual, target]]
        places = np.zeros(len(margin))
        for place, scores in enumerate(self.views):
            own = scores[mutual, target]
            matches = (scores[np.ix_(mutual, left)] > own[:, None]).sum(axis=1)
            places[mutual] += np.log1p(strangers[:, place] + matches) + np.log1p(of_target[:, place])
        return places

    def _look_at(self, source: Any, target: Any) -> None:
        """Count who is nearer under each view: strangers to the source, anybody to the target."""
        self.seen[source, target] = self.nearer.shape[1] + np.arange(len(source))
        counts = []
        for scores in self.views:
            own = scores[source, target]
            of_source = (scores[np.ix_(source, self.strangers)] > own[:, None]).sum(axis=1)
            counts.append((of_source, (scores[:, target] > own).sum(axis=0)))
        self.nearer = np.concatenate([self.nearer, np.moveaxis(np.array(counts), 0, 2)], axis=1)


def calibration(pairs: Pairs, expected: OpenSet) -> dict[str, Any]:
    """Return, for each share of matches taken away, how sure and how right, over all pairs of communities."""
    verdicts: dict[int, list[dict[str, Any]]] = {count: [] for count in GROUPS}
    each: dict[int, list[bool]] = {count: [] for count in GROUPS}
    users = np.unique(pairs.identities["user"].to_numpy())
    for done, attack in enumerate(pairs.attacks(expected), start=1):
        judged = Judged(attack, users)
        for count, found in verdicts.items():
            nobody: dict[str, Any] = {}
            for left in judged.groups(count):
                found.append(judged.verdicts(left) if len(left) else nobody or judged.verdicts(left))
                if not len(left):
                    nobody = found[-1]  # the same each time
                sure, right = found[-1]["sure"], found[-1]["right"]
                if count < FEW_GROUPS:
                    each[count].append(_error(sure, right) > max(0.05, _perfect(sure, draws=60)[1]))
        print(f"{done} of {2 * len(pairs.both)}", file=sys.stderr, flush=True)
    told = {}
    for count, found in verdicts.items():
        all_of = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        told[f"{1 - 1 / count:.0%} taken away"] = _summed(all_of) | {
            "above .05 and beyond chance": sum(each[count]) if count < FEW_GROUPS else None,
            "judgements": len(found),
            "share found held": float(np.mean(all_of["share held"])),
        }
    return told


def _summed(found: dict[str, Any]) -> dict[str, Any]:
    """Return the gaps of all together, of those called a match, and of those who have one if the adversary knows."""
    sure, right, has, who = (found[name] for name in ("sure", "right", "has", "who"))
    called = sure >= CALLED
    return {
        "open": _judged(sure, right, who),
        "called 10 % or more": _judged(sure[called], right[called], who[called]),
        "closed": _judged(found["closed"][has], right[has], who[has]),
        "AUC": auc(right, sure),
        "log loss": float(
            -np.where(right, np.log(np.maximum(sure, 1e-6)), np.log1p(-np.minimum(sure, 1 - 1e-6))).sum()
        ),
        "curve": [
            [int(part.sum()), float(sure[part].mean()), float(right[part].mean())]
            for low, high in ((0.1, 0.15), (0.15, 0.35), (0.35, 0.65), (0.65, 0.9), (0.9, 1.01))
            if (part := (sure >= low) & (sure < high)).any()
        ],
    }


def _judged(sure: Any, right: Any, who: Any) -> dict[str, Any]:
    """Return how sure and how right, and the gap: as it looks, for somebody perfect, and beyond chance."""
    beyond = calibration_gap(sure, right, who)
    perfect, by_chance = _perfect(sure)
    return {
        "cases": len(sure),
        "right": int(right.sum()),
        "expected": float(sure.sum()),
        "error": _error(sure, right),
        "perfect": perfect,
        "by chance": by_chance,
        "beyond chance": beyond.gap,
        "low": beyond.interval[0],
        "high": beyond.interval[1],
    }


def _error(sure: Any, right: Any) -> float:
    """Return the mean gap between how sure and how right, in ten bins."""
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(place, sure - right)).sum() / max(len(sure), 1))


def _perfect(sure: Any, draws: int = 200) -> tuple[float, float]:
    """Return the error of somebody perfectly calibrated with as many cases: its mean, and what 19 of 20 stay below."""
    generator = np.random.default_rng(0)
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    off = np.zeros(draws)
    for within in np.unique(place):
        here = sure[place == within]
        # Of many unlikely cases how many are right is Poisson; of few each is drawn.
        happened = (
            generator.poisson(here.sum(), draws)
            if len(here) > 2_000 and here.max() < CALLED
            else (generator.random((draws, len(here))) < here).sum(axis=1)
        )
        off += np.abs(here.sum() - happened)
    errors = off / max(len(sure), 1)
    return float(errors.mean()), float(np.quantile(errors, 0.95))


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", nargs="?", default="reddit_users")
    parser.add_argument("--weights-of", metavar="DATA", help="Expect the weights of that crowd.")
    parser.add_argument("--learn", action="store_true", help="Only learn the weights.")
    parser.add_argument("--pairs", type=int, help="So many pairs of communities at most, drawn at random.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        expected = UNTAUGHT
        if asked.weights_of:
            expected = Pairs.of(crowd(Path(folder) / "other", asked.weights_of)[0]).learnt()
        here = Path(folder) / "crowd"
        made, name = (blogs(here), "blogs") if asked.data == "blogs" else crowd(here, asked.data)
        pairs = Pairs.of(made)
        if asked.learn:
            return {"data": name, "weights": vars(pairs.learnt())}
        if asked.pairs:
            chosen = np.random.default_rng(0).permutation(len(pairs.both))[: asked.pairs]
            pairs = replace(pairs, both=[pairs.both[place] for place in np.sort(chosen)])
        return {"data": name, "expected": vars(expected), **calibration(pairs, expected)}


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
