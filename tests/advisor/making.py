"""Crowds for the advisor's tests, and crowds in which somebody really did what was advised."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from incrowd.advisor.answer import PersonReport
from incrowd.crowd import Crowd
from incrowd.measures.microdata.spec import ADVERSARIES, FEW_ITEMS
from incrowd.measures.person import Person, numbered_posts, without_words
from incrowd.measures.prepared import PreparedCrowd
from incrowd.measures.protocol import AdvisorOptions, Changes
from incrowd.text import TextOptions

QUICK = AdvisorOptions(thorough=False)
MEASURE_ONLY = AdvisorOptions(thorough=False, advice=False)


def concerned(changes: Changes) -> AdvisorOptions:
    """Ask only the adversaries who could notice: the others need not be asked again."""
    names: list[str] = []
    if changes.gone_posts or changes.edit_words:
        names += ["unigram", "reader", "WORDS"]
    if changes.drop_items or changes.add_items:
        names += [*FEW_ITEMS, *ADVERSARIES]
    if changes.withhold_attributes:
        names.append("stranger")
    return AdvisorOptions(adversaries=tuple(names), thorough=False, advice=False)


def applied(crowd: Crowd, user: str, changes: Changes, path: Path) -> Crowd:
    """Return a new crowd in which the person has made the changes; everybody else is as before."""
    changed = Crowd.create(path, plain_names=True)
    mine = pl.col("user") == user
    others = crowd.posts().filter(~mine).collect()
    posts = pl.concat([others, _posts(crowd, user, changes).select(others.columns)])
    items = crowd.items().filter(~(mine & pl.col("item").is_in(list(changes.drop_items)))).collect()
    new = pl.DataFrame(
        {"user": user, "item": sorted(changes.add_items)}, schema_overrides={"item": pl.String}
    )
    items = pl.concat([items, new], how="diagonal")
    withheld = pl.col("attribute").is_in(list(changes.withhold_attributes))
    attributes = crowd.attributes().filter(~(mine & withheld)).collect()
    for kind, frame in (("posts", posts), ("items", items), ("attributes", attributes)):
        if frame.height:
            changed.add_frame(frame, kind)  # type: ignore[arg-type]
    return changed


def _posts(crowd: Crowd, user: str, changes: Changes) -> pl.DataFrame:
    posts = numbered_posts(crowd, user).with_columns(user=pl.lit(user))
    kept = posts.filter(~pl.col("number").is_in(list(changes.gone_posts)))
    if changes.edit_words:
        edited = [without_words(text, changes.edit_words, TextOptions()) for text in kept["text"]]
        kept = kept.with_columns(text=pl.Series(edited, dtype=pl.String))
    return kept


def values(report: PersonReport) -> dict[tuple[str, str, str, str], float]:
    """Return every finding's value by what it is about."""
    return {one.key: one.assessment.value for one in report.findings}


def some_people(crowd: Crowd, count: int, fewest_posts: int = 25) -> list[str]:
    """Return people who write in at least two communities."""
    counted = crowd.posts().group_by("user", "community").len().filter(pl.col("len") >= fewest_posts)
    several = counted.group_by("user").len().filter(pl.col("len") >= 2).sort("user").collect()
    return several["user"].to_list()[:count]


def own(crowd: Crowd, user: str) -> Person:
    """Return what is known of somebody."""
    return Person(crowd.user(user), PreparedCrowd.of(crowd))
