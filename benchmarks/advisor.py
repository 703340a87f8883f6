"""How long `incrowd assess` takes on 10,000 identities and 1M posts, and whether advice keeps its promises.

    python -m benchmarks advisor
    python benchmarks/advisor.py [--people 200] [--posts 1000000] [--crowd DIR] [--work DIR] [--skip speed|honesty]

Speed: `incrowd assess` in a process of its own, for somebody in three communities: with an empty cache (the bar is
90 s on two cores), again (5 s), and for somebody else. The crowd is made first; that is not timed.

Honesty: for so many people of a small crowd, advice is looked for, then really carried out: a new crowd is made in
which the person did what one action, or the plan, says, and everything is measured from scratch. Counts, ranks and
probabilities that are exact must come out as promised, to nine digits. People take turns: one is advised about
words, the next about items, the next about attributes, every tenth about everything at once.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl

from incrowd import synthetic
from incrowd.advisor.answer import PersonReport
from incrowd.advisor.assess import assess
from incrowd.crowd import Crowd
from incrowd.crowd.synthetic.table import as_crowd
from incrowd.measures.microdata.spec import ADVERSARIES
from incrowd.measures.person import own_posts, without_words
from incrowd.measures.protocol import AdvisorOptions, Changes, Effect
from incrowd.text import TextOptions

STATES = {"lasting": 0.02, "passing": 0.02, "professional": 0.01}
Key = tuple[str, str, str, str]
CLOSE = 1e-9
"""A promise that came out closer than this, relatively, is kept."""


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Return seconds, and how many promises were compared and kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=200, help="people whose advice is carried out")
    parser.add_argument("--posts", type=int, default=1_000_000)
    parser.add_argument("--crowd", type=Path, help="a crowd for the timing, kept; made if it is not there")
    parser.add_argument("--work", type=Path, help="keeps the honesty run, so that it can go on where it was")
    parser.add_argument("--skip", choices=["speed", "honesty"])
    chosen = parser.parse_args(arguments if arguments is not None else sys.argv[1:])
    report: dict[str, Any] = {}
    if chosen.skip != "speed":
        with tempfile.TemporaryDirectory() as scratch:
            report["speed"] = speed(chosen.crowd or Path(scratch) / "crowd", chosen.posts)
    if chosen.skip != "honesty":
        with tempfile.TemporaryDirectory() as scratch:
            report["honesty"] = honesty(chosen.people, chosen.work or Path(scratch))
    return report


def speed(folder: Path, posts: int) -> dict[str, Any]:
    """Time the command as a person runs it."""
    crowd = Crowd(folder) if folder.exists() else large_crowd(folder, posts)
    first, other = in_three_communities(crowd)[:2]
    shutil.rmtree(folder / "cache", ignore_errors=True)
    info = crowd.info()
    return {
        "identities": info.identities,
        "posts": info.posts,
        "first": command(folder, first),
        "again": min((command(folder, first) for _ in range(3)), key=lambda one: one["wall_s"]),
        "somebody_else": command(folder, other),
    }


def large_crowd(folder: Path, posts: int) -> Crowd:
    """Make people who write, rate and have attributes."""
    writers = synthetic.posts(
        users=6_000,
        communities=12,
        identities=10_000,
        posts=posts,
        fewest_posts=10,
        states=STATES,
        seed=1,
    )
    raters = synthetic.items(users=6_000, items=2_000, entries=240_000, fewest=8, seed=1)
    return as_crowd([writers, raters, synthetic.attributes(users=6_000, seed=1)], folder, plain_names=True)


def in_three_communities(crowd: Crowd) -> list[str]:
    """Return people who write in exactly three communities."""
    places = crowd.posts().select("user", "community").unique().group_by("user").len()
    return places.filter(pl.col("len") == 3).sort("user").collect()["user"].to_list()


def command(folder: Path, user: str) -> dict[str, float]:
    """Return how long `incrowd assess` takes, start to end; CPU time tells how busy the machine was otherwise."""
    start = [sys.executable, "-c", "from incrowd.cli import main; main()"]
    line = [*start, "assess", str(folder), "--user", user, "--json"]
    begun, used = time.perf_counter(), _cpu()
    subprocess.run(line, check=True, capture_output=True)
    return {"wall_s": round(time.perf_counter() - begun, 2), "cpu_s": round(_cpu() - used, 2)}


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def honesty(people: int, work: Path) -> dict[str, Any]:
    """Carry advice out and compare; whoever is finished in the work folder is not done again."""
    work.mkdir(parents=True, exist_ok=True)
    folder, finished = work / f"crowd-{people}", work / f"finished-{people}.jsonl"
    crowd = Crowd(folder) if folder.exists() else demo_crowd(people, folder)
    users = sorted(crowd.posts().select("user").unique().collect()["user"].to_list())[:people]
    done = finished.read_text().splitlines() if finished.exists() else []
    with finished.open("a") as file:
        for number in range(len(done), len(users)):
            done.append(json.dumps(one_person(crowd, users[number], number)))
            print(done[-1], file=file, flush=True)
            if number % 20 == 19:
                print(f"   {summary(done)}", file=sys.stderr, flush=True)
    return summary(done)


def demo_crowd(people: int, folder: Path) -> Crowd:
    """Make the small crowd whose members are advised."""
    draft = folder.with_name("unfinished")
    shutil.rmtree(draft, ignore_errors=True)
    synthetic.demo_person(users=max(people, 60), seed=11).crowd(draft)
    draft.rename(folder)
    return Crowd(folder)


def one_person(crowd: Crowd, user: str, number: int) -> dict[str, Any]:
    """Advise a person, carry one piece of the advice out, and count promises, exact ones, and broken ones."""
    report = assess(crowd, user, options=AdvisorOptions(adversaries=turn(number), thorough=False))
    case = one_of(report, number)
    if case is None:
        return {"kind": "no advice"}
    kind, promised, changes = case
    return {"kind": kind, **carried_out(crowd, user, promised, changes)}


def summary(lines: list[str]) -> dict[str, Any]:
    """Add the records of all people up."""
    records = [json.loads(line) for line in lines]
    advised = [one for one in records if one["kind"] != "no advice"]
    totals = {name: sum(one[name] for one in advised) for name in ("promises", "exact", "broken")}
    gap = max((one["gap"] for one in advised), default=0.0)
    kinds = dict(sorted(Counter(one["kind"] for one in records).items()))
    measures = sum((Counter(one["measures"]) for one in advised), Counter[str]())
    return {
        "people": len(records), "with_advice": len(advised), **totals, "largest_gap": gap,
        "carried_out": kinds, "exact_promises_by_measure": dict(sorted(measures.items())),
    }  # fmt: skip


def turn(number: int) -> tuple[str, ...]:
    """Return whom this person is advised about; nobody named: about everybody."""
    kinds = (("unigram", "reader", "BOW"), tuple(ADVERSARIES), ("stranger",))
    return () if number % 10 == 9 else kinds[number % 3]


def one_of(report: PersonReport, number: int) -> tuple[str, list[Effect], Changes] | None:
    """Return one action or the plan, a different one for different people."""
    cases = [(kind(one.changes), [one.effect, *one.also], one.changes) for one in report.actions]
    if report.plan is not None and report.plan.changes:
        cases.append(("plan", list(report.plan.effects), report.plan.changes))
    return cases[(number // 3) % len(cases)] if cases else None


def kind(changes: Changes) -> str:
    """Return what is given up."""
    return " and ".join(name.replace("_", " ") for name, part in changes.to_dict().items() if part)


def carried_out(crowd: Crowd, user: str, promised: list[Effect], changes: Changes) -> dict[str, Any]:
    """Do it, measure from scratch, and compare."""
    with tempfile.TemporaryDirectory() as scratch:
        changed = applied(crowd, user, changes, Path(scratch) / "crowd")
        after = assess(changed, user, options=concerned(changes))
    measured: dict[Key, float] = {one.key: one.assessment.value for one in after.findings}
    seen = [one for one in promised if checkable(one, changes)]
    exact = [one for one in seen if one.exact]
    gaps = [gap(one, measured) for one in exact]
    return {
        "promises": len(seen),
        "exact": len(exact),
        "broken": sum(one > CLOSE for one in gaps),
        "gap": max(gaps, default=0.0),
        "measures": dict(Counter(one.measure for one in exact)),
    }


def checkable(effect: Effect, changes: Changes) -> bool:
    """Leave out what is no longer in the crowd: a withheld value as a secret, a name nobody knows."""
    secret = effect.subject.removeprefix("your ")
    return "other name" not in effect.subject and secret not in changes.withhold_attributes


def gap(effect: Effect, measured: dict[Key, float]) -> float:
    """Return how far a promise is from what came true, relative to it; infinite if one of them is undefined."""
    got = measured.get((effect.measure, effect.subject, effect.adversary, effect.unit), math.nan)
    if math.isnan(got) or math.isnan(effect.after):
        return 0.0 if math.isnan(got) and math.isnan(effect.after) else math.inf
    return abs(got - effect.after) / max(abs(effect.after), 1e-300) if got != effect.after else 0.0


def concerned(changes: Changes) -> AdvisorOptions:
    """Ask only the adversaries who could notice."""
    names: list[str] = []
    if changes.gone_posts or changes.edit_words:
        names += ["unigram", "reader", "BOW"]
    if changes.drop_items:
        names += list(ADVERSARIES)
    if changes.withhold_attributes:
        names.append("stranger")
    return AdvisorOptions(adversaries=tuple(names), thorough=False, advice=False)


def applied(crowd: Crowd, user: str, changes: Changes, path: Path) -> Crowd:
    """Return a new crowd in which the person has made the changes; everybody else is as before."""
    changed, mine = Crowd.create(path, plain_names=True), pl.col("user") == user
    posts = own_posts(crowd, user).with_columns(user=pl.lit(user))
    posts = posts.filter(~pl.col("number").is_in(list(changes.gone_posts)))
    texts = [without_words(text, changes.edit_words, TextOptions()) for text in posts["text"]]
    posts = posts.with_columns(text=pl.Series(texts, dtype=pl.String))
    others = crowd.posts().filter(~mine).collect()
    dropped = mine & pl.col("item").is_in(list(changes.drop_items))
    withheld = mine & pl.col("attribute").is_in(list(changes.withhold_attributes))
    # Tables in which nothing changes are not asked about again.
    if changes.gone_posts or changes.edit_words:
        changed.add_frame(pl.concat([others, posts.select(others.columns)]), "posts")
    if changes.drop_items:
        changed.add_frame(crowd.items().filter(~dropped).collect(), "items")
    if changes.withhold_attributes:
        changed.add_frame(crowd.attributes().filter(~withheld).collect(), "attributes")
    return changed


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
