"""What changes do: findings before and after, side by side, both measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from incrowd.advisor.answer import Changes, Effect, Judged, Level
from incrowd.advisor.person import Own
from incrowd.measures.linkability.spec import ADVERSARIES

Key = tuple[str, str, str, str]
SAME = 1e-12


def effects(before: Iterable[Judged], after: Iterable[Judged]) -> dict[Key, Effect]:
    """Return every finding whose value changes, or that is gone, or new."""
    old, new = ({one.key: one for one in part} for part in (before, after))
    found = {key: effect(old.get(key), new.get(key)) for key in {**old, **new}}
    return {key: one for key, one in found.items() if not _same(one.before, one.after)}


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
        # The determined adversary's weights stay those learnt before the change.
        exact=about.exact and about.assumptions.adversary != ADVERSARIES["determined"],
    )


def loss_share(own: Own, changes: Changes) -> float:
    """Return what is given up: shares of one's words, items and attributes, added up."""
    after = own.after(changes)
    parts = (
        (own.words.matrix.sum(), after.words.matrix.sum()),
        (len(own.items), len(after.items)),
        (len(own.attributes), len(own.attributes.keys() - after.withheld)),
    )
    return float(sum(1 - left / had for had, left in parts if had))


def say_loss(own: Own, changes: Changes) -> str:
    """Say what is given up."""
    after = own.after(changes)
    said = []
    if changes.gone_posts:
        said.append(f"{len(changes.gone_posts):,} of your {own.posts.height:,} posts")
    if changes.edit_words:
        words = 1 - after.words.matrix.sum() / max(own.words.matrix.sum(), 1)
        said.append(
            f"{_words(len(changes.edit_words))}, {words:.1%} of all you wrote with what goes with them"
        )
    if changes.drop_items:
        said.append(f"{len(changes.drop_items):,} of your {len(own.items):,} items")
    if changes.withhold_attributes:
        said.append(f"{len(changes.withhold_attributes)} of your {len(own.attributes)} attributes")
    return "; ".join(said) or "nothing"


def _words(count: int) -> str:
    return "1 word" if count == 1 else f"{count} words"


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=SAME, abs_tol=SAME)


def improved(found: Sequence[Effect]) -> bool:
    """Say whether no level got worse."""
    return all(one.level_after.severity <= one.level_before.severity for one in found)
