"""Does advice about links hold? Promises on a random sample, judged by attackers that incrowd never asks.

    python benchmarks/advice.py CROWD [--people 40] [--seed 0] [--out FILE]
    python benchmarks/advice.py CROWD --whole [--people 40] ...      # who is at risk and gets no advice at all

People are drawn at random from those with ten or more posts in each of two communities. Of those whose profiles the
determined adversary would link more often than not, advice is looked for as `incrowd assess` does. A promise is an
action after which the link should be *well hidden*: at most one chance in ten. Each is carried out on a copy, and
attackers whom neither the measure, nor the search, nor the re-check contains (compression, Burrows' delta; plain TF-IDF
beside them, without the corrections that the determined adversary makes) look for the second profile among everybody
with ten posts there: a promise is broken if one of them has it among its first four. Character runs are not among the
judges, because the advice asked them.

"Only more than half": what helps gives up more than half of somebody's posts in a community or of their items. The
advice says so, and no plan contains it.

"Without a tested action": nothing that was tried on what is there, or as a new name, holds. These people are told
which kinds of habits, with examples, to leave out of what they write next; "without advice" are those who are not even
told that.

With `--whole` random members are assessed as `incrowd assess` does it, by every measure: of those whose verdict is
"at risk", how many get no advice, only some for what they write next, and for how many the plan ends at a better level?
What is promised about items (nobody who knows three of them is right more than half of the time) is judged by attackers
of `incrowd study validity` that neither the measure nor the re-check contains: whose list shares the largest part with
what is known, and somebody who has one of the three wrong.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from incrowd.advisor.advice import look_for_advice, measure_advice, write_differently
from incrowd.advisor.answer import Action, PersonReport, WriteDifferently
from incrowd.advisor.assess import assess
from incrowd.advisor.assessor import Assessor
from incrowd.crowd import Crowd
from incrowd.measures.attackers import ATTACKERS, RECHECK
from incrowd.measures.protocol import (
    AT_RISK_ABOVE,
    AdvisorOptions,
    Changes,
    Level,
    Person,
    PreparedCrowd,
    Targets,
    measure_named,
)
from incrowd.study.attacked import ITEM_ATTACKERS, HalfOfItems

FIRST = 4
KNOWN_ITEMS, ITEM_TRIES = 3, 200
ITEM_JUDGES = "shared part", "one item wrong"
CHUNK = 200
"""Profiles that an attacker holds at a time: compression keeps a quarter of a megabyte for each."""
OPTIONS = AdvisorOptions(adversaries=("unigram", "determined"))


def sampled(crowd: Crowd, people: int, seed: int) -> list[str]:
    """Draw people with enough posts in two communities."""
    enough = crowd.posts().group_by("user", "community").len().filter(pl.col("len") >= OPTIONS.min_posts)
    several = enough.group_by("user").len().filter(pl.col("len") >= 2).sort("user").collect()["user"]
    drawn = np.random.default_rng(seed).permutation(len(several))[:people]
    return several.gather(drawn.tolist()).to_list()


class Judges:
    """Attackers on everybody in a community; the latest few communities are kept."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd

    def ranks(self, person: Person, source: str, target: str) -> dict[str, int]:
        """Return where each judge puts the person's profile in the target community."""
        there = self.crowd.posts(community=target).select("user", "text").collect()
        there = there.filter((pl.len().over("user") >= OPTIONS.min_posts) & (pl.col("user") != person.user))
        mine, asked = (person.posts.filter(person.rows_in(name))["text"] for name in (target, source))
        profiles = [mine, *there.sort("user").group_by("user", maintain_order=True).agg("text")["text"]]
        return {name: self._rank(name, profiles, asked) for name in ATTACKERS if name != RECHECK}

    @staticmethod
    def _rank(name: str, profiles: list[pl.Series], asked: pl.Series) -> int:
        # Those who learn from everybody need everybody at once; compression looks at one profile at a time.
        chunk = CHUNK if name == "compression" else len(profiles)
        scores = []
        for start in range(0, len(profiles), chunk):
            some = profiles[start : start + chunk]
            ends = np.cumsum([len(one) for one in some])
            groups = np.split(np.arange(ends[-1]), ends[:-1])
            texts = pl.concat([*some, asked])
            attacker = ATTACKERS[name](texts, groups)
            scores.append(attacker.resemblance([np.arange(ends[-1], ends[-1] + len(asked))])[0])
        alike = np.concatenate(scores)
        return 1 + int((alike[1:] >= alike[0]).sum())


def advised(crowd: PreparedCrowd, measure: Any, ready: Any, user: str) -> dict[str, Any] | None:
    """Look for advice about one person's riskiest link; None if it is not at risk."""
    assessor = Assessor(Person(user, crowd), ((measure, ready),), ())
    findings, _ = assessor.assess(assessor.person, explain=False)
    risky = [one for one in findings if one.decides and one.level is Level.AT_RISK]
    if not risky:
        return None
    actions = measure_advice(assessor, findings, look_for_advice(assessor, findings, Targets()))
    about = risky[0].assessment.assumptions.parameters
    told = write_differently(assessor, findings, actions, None, Targets())
    return {
        "actions": actions,
        "told": told,
        "pair": (about["source"], about["target"]),
        "person": assessor.person,
    }


def _only_beyond(report: PersonReport) -> bool:
    """Say whether all that helps against what is at risk takes more than half of what is there."""
    risky = {one.key for one in report.findings if one.decides and one.level is Level.AT_RISK}
    helpful = [one for one in report.actions if one.aim in risky]
    return bool(helpful) and all(one.beyond for one in helpful)


def is_concrete(told: Iterable[WriteDifferently]) -> bool:
    """Say whether somebody is told by examples what to leave out of what they write next."""
    return any(kind.examples for one in told for kind in one.kinds)


def promised(actions: tuple[Action, ...]) -> list[Changes]:
    """Return the changes that should hide a link well."""
    return [one.changes for one in actions if one.promised is Level.WELL_HIDDEN]


class ItemJudges:
    """Attackers who know three items of a person as they are now, and look through everybody's lists after a change."""

    def __init__(self, crowd: Crowd) -> None:
        self.rows = crowd.items().collect()

    def found(self, user: str, changes: Changes) -> dict[str, float]:
        """Return how often each judge names the person."""
        mine = pl.col("user") == user
        own = self.rows.filter(mine)["item"].unique().to_list()
        kept = self.rows.filter(~(mine & pl.col("item").is_in(list(changes.drop_items))))
        new = pl.DataFrame(
            {"user": user, "item": sorted(changes.add_items)}, schema={"user": str, "item": str}
        )
        half = HalfOfItems.of(pl.concat([kept, new], how="diagonal"))
        row, known = half.table.row_of(user), np.flatnonzero(half.table.items.is_in(own).to_numpy())
        rng = np.random.default_rng(0)
        drawn = [rng.choice(known, KNOWN_ITEMS, replace=False) for _ in range(ITEM_TRIES)]
        return {
            name: float(_named([ITEM_ATTACKERS[name](half, row, one, rng) for one in drawn], row))
            for name in ITEM_JUDGES
        }


def _named(scores: list[Any], row: int) -> Any:
    """Return how often a row has the largest score; an even guess among equals."""
    best = [score == score.max() for score in scores]
    return np.mean([one[row] / one.sum() for one in best])


def measured(crowd: Crowd, people: int, seed: int = 0) -> dict[str, Any]:
    """Sample people, advise those at risk, and judge what was promised."""
    started = time.time()
    prepared, measure, judges = PreparedCrowd.of(crowd), measure_named("linkability"), Judges(crowd)
    ready = measure.prepare(prepared, OPTIONS)
    counts: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for user in sampled(crowd, people, seed):
        counts["people"] += 1
        found = advised(prepared, measure, ready, user)
        if found is None:
            continue
        actions: tuple[Action, ...] = found["actions"]
        counts["at risk"] += 1
        counts["without a tested action"] += not actions
        counts["without advice"] += not actions and not is_concrete(found["told"])
        counts["only from now on"] += bool(actions) and all(one.from_now_on for one in actions)
        counts["only more than half"] += bool(actions) and all(one.beyond for one in actions)
        for changes in promised(actions):
            ranks = judges.ranks(found["person"].after(changes), *found["pair"])
            counts["promises"] += 1
            counts["broken"] += min(ranks.values()) <= FIRST
            broken.update(name for name, rank in ranks.items() if rank <= FIRST)
        print(json.dumps({**counts, "by": dict(broken), "seconds": round(time.time() - started)}), flush=True)
    return {
        **{
            name.replace(" ", "_"): counts[name]
            for name in ("people", "at risk", "without a tested action", "without advice", "promises")
        },
        "only_from_now_on": counts["only from now on"],
        "broken": counts["broken"],
        "broken_by": dict(broken),
        "seconds": time.time() - started,
    }


def assessed(crowd: Crowd, people: int, seed: int = 0) -> dict[str, Any]:
    """Assess random members by every measure, and count who at risk is left without advice."""
    started = time.time()
    prepared, judges = PreparedCrowd.of(crowd), ItemJudges(crowd)
    tables = crowd.posts(), crowd.items()
    everybody = sorted({user for one in tables for user in one.select("user").unique().collect()["user"]})
    counts: Counter[str] = Counter()
    for user in np.random.default_rng(seed).permutation(everybody)[:people]:
        report = assess(prepared, str(user))
        at_risk = report.verdict.level is Level.AT_RISK
        counts["people"] += 1
        counts["at risk"] += at_risk
        left_alone = at_risk and not report.actions
        counts["without a tested action"] += left_alone
        counts["without advice"] += left_alone and not is_concrete(report.write_differently)
        counts["only from now on"] += (
            at_risk and bool(report.actions) and all(one.from_now_on for one in report.actions)
        )
        counts["only more than half"] += at_risk and _only_beyond(report)
        counts["plans that end better"] += (
            at_risk and report.plan is not None and report.plan.verdict.level is not Level.AT_RISK
        )
        counts["plans with harm"] += report.plan is not None and bool(report.plan.harms)
        for one in report.actions if at_risk else ():
            if one.effect.measure == "microdata":
                counts["item promises"] += 1
                by = [
                    name
                    for name, often in judges.found(str(user), one.changes).items()
                    if often > AT_RISK_ABOVE
                ]
                counts["item promises broken"] += bool(by)
                counts.update(f"item promises broken by {name}" for name in by)
        counts["advice"] += len(report.actions)
        counts["advice that changes no level"] += sum(
            one.promised.severity >= one.effect.level_before.severity for one in report.actions
        )
        print(json.dumps({**counts, "seconds": round(time.time() - started)}), flush=True)
    return {name.replace(" ", "_"): count for name, count in counts.items()} | {
        "seconds": time.time() - started
    }


def main() -> dict[str, Any] | None:
    """Run it on a crowd given by its folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("crowd", type=Path, nargs="?")
    parser.add_argument("--people", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.crowd is None:
        print("   skipped: give the folder of a crowd, python benchmarks/advice.py CROWD")
        return None
    look = assessed if given.whole else measured
    report = look(Crowd(given.crowd), given.people, given.seed)
    if given.out:
        given.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report))
    return None


if __name__ == "__main__":
    main()
