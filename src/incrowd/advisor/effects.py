"""What changes do: findings before and after, side by side, both measured; and what they cost."""

from __future__ import annotations

import math
from collections.abc import Iterable

from incrowd.advisor.answer import Changes, Effect, Judged, Level
from incrowd.advisor.person import Own
from incrowd.measures.linkability.spec import ADVERSARIES
from incrowd.result import say_count

Key = tuple[str, str, str, str]
SAME = 1e-12


def effects(before: Iterable[Judged], after: Iterable[Judged]) -> dict[Key, Effect]:
    """Return every finding whose value changes, or that is gone, or new."""
    old, new = ({one.key: one for one in part} for part in (before, after))
    found = {key: effect(old.get(key), new.get(key)) for key in {**old, **new}}
    return {key: one for key, one in found.items() if not _same(one)}


def effect(before: Judged | None, after: Judged | None) -> Effect:
    """Put one finding before and after side by side; at least one of them is there."""
    there = after or before
    if there is None:
        raise ValueError("an effect needs a finding")
    about = there.assessment
    return Effect(
        theme=there.theme,
        measure=about.measure,
        subject=about.subject,
        adversary=about.assumptions.adversary,
        unit=about.unit,
        direction=about.direction,
        before=math.nan if before is None else before.assessment.value,
        after=math.nan if after is None else after.assessment.value,
        level_before=Level.CANNOT_TELL if before is None else before.level,
        level_after=Level.CANNOT_TELL if after is None else after.level,
        says="" if after is None else about.sentence(),
        # The determined adversary's weights stay those learnt before the change.
        exact=about.exact and about.assumptions.adversary != ADVERSARIES["determined"],
    )


def _same(one: Effect) -> bool:
    both_undefined = math.isnan(one.before) and math.isnan(one.after)
    close = math.isclose(one.before, one.after, rel_tol=SAME, abs_tol=SAME)
    return both_undefined or (close and one.level_before is one.level_after)


def shares_given_up(own: Own, after: Own) -> dict[str, float]:
    """Return the share of one's words, of the posts of each community, of items and of attributes that goes."""
    left = after.communities
    parts: dict[str, tuple[float, float]] = {
        "words": (own.words.matrix.sum(), after.words.matrix.sum()),
        **{f"posts in {name}": (count, left.get(name, 0)) for name, count in own.communities.items()},
        "items": (len(own.items), len(after.items)),
        "attributes": (len(own.attributes), len(own.attributes.keys() - after.withheld)),
    }
    return {name: float(1 - kept / had) for name, (had, kept) in parts.items() if had}


def loss_share(own: Own, after: Own) -> float:
    """Return what is given up: shares of one's words, items and attributes, added up."""
    shares = shares_given_up(own, after)
    return math.fsum(shares.get(kind, 0.0) for kind in ("words", "items", "attributes"))


def say_loss(own: Own, after: Own, changes: Changes) -> str:
    """Say what is given up."""
    said = []
    if changes.gone_posts:
        said.append(f"{len(changes.gone_posts):,} of your {own.posts.height:,} posts")
    if changes.edit_words:
        share = shares_given_up(own, after)["words"]
        together = "with the posts " if changes.gone_posts else ""
        said.append(f"{say_count(len(changes.edit_words), 'word')}, {together}{share:.0%} of all you wrote")
    if changes.drop_items:
        said.append(f"{len(changes.drop_items):,} of your {len(own.items):,} items")
    if changes.withhold_attributes:
        said.append(f"{len(changes.withhold_attributes)} of your {len(own.attributes)} attributes")
    return "; ".join(said) or "nothing"
