"""Which settings are impossible, and which are known to be weak and need `allow_weak = true`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from incrowd.errors import InputError
from incrowd.gateway.check import KINDS

if TYPE_CHECKING:
    from incrowd.gateway.policy import DatabasePolicy, Policy

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
SOURCE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}(\.[A-Za-z_][A-Za-z0-9_$]{0,62})?")
RESERVED = frozenset(
    {"number", "users", "select", "from", "where", "and", "or", "not", "in", "between", "box"}
)
SOLVER_SHARE = 0.75
"""Of the time until a reply leaves, what searching may take; the rest is for the database and the ledger."""
ORGANISATION = re.compile(r"[\w.@+-]{1,80}")


def check_policy(policy: Policy) -> None:
    """Raise for settings that cannot work, and for weak ones unless they are allowed."""
    _check_names(policy.database)
    for name in policy.organisations:
        if not ORGANISATION.fullmatch(name):
            raise InputError(
                "policy, organisations: a name takes letters, digits and . @ + - _ up to 80 in all"
            )
    if not policy.organisations:
        raise InputError("policy: no organisation is named, so nobody could ask; add [organisations.NAME]")
    for name, one in policy.organisations.items():
        if one.queries is not None and not 0 <= one.queries <= 10**6:
            raise InputError(
                f"policy, organisations.{name}.queries: expected 0 to 1000000, got {one.queries}"
            )
    _check_ranges(policy)
    weak = weaknesses(policy)
    if weak and not policy.allow_weak:
        raise InputError(
            f"policy: weak settings: {'; '.join(weak)}. Change them, or set allow_weak = true for experiments "
            "with made-up data"
        )


def weaknesses(policy: Policy) -> list[str]:
    """Say which settings are known to invite attacks, a sentence each."""
    release = policy.release
    found = {
        f"release.q = {release.q} (expected 5 or more)": release.q < 5,
        f"release.min_class = {release.min_class} (expected twice q or more)": release.min_class
        < 2 * release.q,
        f"release.noise = {release.noise} (expected 3 or more)": release.noise < 3,
        "release.known_users = 0 (expected 1 or more)": release.known_users < 1,
        "release.allow_not = true": release.allow_not,
        "accounts.min_age_days below 1, planted accounts would count at once": policy.accounts.min_age_days
        < 1,
        "database.created is not given, so planted accounts cannot be told": not policy.database.created,
        "snapshots.period_hours below 1": policy.snapshots.period_hours < 1,
        "snapshots.history below 2": policy.snapshots.history < 2,
        "more than 1000 queries in a window": max(map(policy.queries_of, policy.organisations)) > 1000,
    }
    return [sentence for sentence, holds in found.items() if holds]


def cautions(policy: Policy) -> list[str]:
    """Say which settings are allowed and may still tell strangers something, a sentence each."""
    limits = policy.limits
    if limits.solver_seconds <= SOLVER_SHARE * limits.reply_seconds:
        return []
    return [
        f"limits.solver_seconds = {limits.solver_seconds:g} is more than three quarters of limits.reply_seconds = "
        f"{limits.reply_seconds:g}: replies to hard questions can leave later, which tells that they were hard"
    ]


def _check_names(database: DatabasePolicy) -> None:
    if not database.filters:
        raise InputError("policy, database.filters: name at least one column that queries may filter by")
    if not database.attributes:
        raise InputError("policy, database.attributes: name at least one attribute that may be asked for")
    for name, one in database.filters.items():
        if one.type not in KINDS:
            raise InputError(
                f"policy, filter '{name}': type must be one of {', '.join(KINDS)}; got '{one.type}'"
            )
    both = {"filters": database.filters, "attributes": database.attributes}
    for where, names in both.items():
        for name in names:
            if not NAME.fullmatch(name) or name in RESERVED:
                raise InputError(
                    f"policy, database.{where}: a name takes lower-case letters, digits and _, up to 40, and is "
                    f"no word of the query language; got '{name}'"
                )
    columns = [one.column for one in database.filters.values()]
    columns += [part for one in database.attributes.values() for part in (one.table, one.user, one.value)]
    columns += [database.users, database.id, *([database.created] if database.created else [])]
    for column in columns:
        if not SOURCE_NAME.fullmatch(column):
            raise InputError(f"policy, database: '{column}' is not a plain name of a table or column")


def _check_ranges(policy: Policy) -> None:
    ranges: dict[str, dict[str, tuple[float, float]]] = {
        "release": {
            "q": (2, 10**6),
            "min_class": (1, 10**9),
            "noise": (0, 1000),
            "known_users": (0, 100),
            "max_values": (1, 10**4),
        },
        "accounts": {"min_age_days": (0, 36500)},
        "snapshots": {"period_hours": (0.001, 8760), "history": (1, 1000)},
        "budget": {"queries": (0, 10**6), "window_hours": (0.01, 8760)},
        "limits": {
            "body_bytes": (256, 2**20),
            "depth": (1, 32),
            "nodes": (1, 1000),
            "choices": (1, 10**4),
            "text_length": (1, 10**4),
            "query_text": (16, 10**5),
            "concurrency": (1, 1000),
            "database_seconds": (0.01, 600),
            "solver_seconds": (0.01, 600),
            "solver_memory_mib": (16, 2**20),
            "reply_seconds": (0.01, 600),
            "cache_mib": (1, 2**20),
        },
    }
    for section, settings in ranges.items():
        for name, (low, high) in settings.items():
            value = getattr(getattr(policy, section), name)
            if not (low <= value <= high and math.isfinite(value)):
                raise InputError(f"policy, {section}.{name}: expected {low} to {high}, got {value}")
    if policy.release.min_class < policy.release.q:
        raise InputError("policy, release.min_class: expected at least release.q")
    if policy.release.joint not in ("all", "attribute", "once"):
        raise InputError('policy, release.joint: expected "all", "attribute" or "once"')
    if policy.budget.scope not in ("organisation", "everyone"):
        raise InputError('policy, budget.scope: expected "organisation" or "everyone"')
    if policy.accounts.min_age_days > 0 and not policy.database.created and not policy.allow_weak:
        raise InputError(
            "policy, accounts.min_age_days: needs database.created, the column that says when an account was made"
        )
