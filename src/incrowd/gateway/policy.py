"""What the provider allows, as one frozen value read from a TOML file. What is not named is denied."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

from incrowd.errors import InputError
from incrowd.gateway.query import KINDS, QueryLimits
from incrowd.policy_file import load_toml, read_settings


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A column of the users table that queries may filter by."""

    column: str
    type: str
    """One of text, integer, number, date, boolean, latitude, longitude."""


@dataclass(frozen=True, kw_only=True)
class AttributeSource:
    """A multi-valued attribute that may be asked for: a table with a row for each user and value."""

    table: str
    user: str
    """Column with the user's id."""
    value: str
    """Column with the value."""
    candidates: Path | None = None
    """JSON file ["value", ...]: all values that may be asked about, public and made without a look at the data.
    With it, `mechanism = "private"` releases more; without it, values have to be found, too."""
    aliases: Path | None = None
    """JSON file {"alias": "name"}: spellings that mean the same. With it, case, punctuation and a leading article
    are ignored as well; without it values are taken as they are spelt."""


@dataclass(frozen=True, kw_only=True)
class DatabasePolicy:
    """Which tables and columns there are. Nothing else of the database is ever read."""

    users: str
    """Table with one row per person."""
    id: str
    """Column of the users table that identifies a person."""
    created: str = ""
    """Column of the users table with the moment the account was made (date or timestamp, UTC)."""
    filters: Mapping[str, Filter]
    attributes: Mapping[str, AttributeSource]


@dataclass(frozen=True, kw_only=True)
class ReleasePolicy:
    """How sure an answer may make anybody."""

    mechanism: str = "private"
    """"private": which values leave is decided by noisy counts, within every person's budget (`privacy`). "q": by
    the rule of paper 001 alone; somebody who chooses each question after the last answer wins against it."""
    q: int = 10
    """Nobody may be tied to an answer, or to all answers together, with a probability above 1/q."""
    min_class: int = 20
    """The smallest number of people a query must select."""
    noise: int = 4
    """Thresholds are raised by secret amounts from 0 to this, so that one person more or less is rarely seen."""
    known_users: int = 2
    """How many people of a class somebody may know completely without q falling below its threshold."""
    allow_not: bool = False
    """Whether queries may say NOT and !=, the usual way to cut one person out of a class."""
    joint: str = "all"
    """Which earlier answers are judged together with a new one: "all", or those on the same "attribute".

    "once": each person is in one answer only. It gives most from small databases, one question long.
    """
    max_values: int = 200
    """Most values in one answer; common ones stay, secret amounts decide between about equally common ones."""


@dataclass(frozen=True, kw_only=True)
class PrivacyPolicy:
    """What may be learnt about one person with `mechanism = "private"`, over all questions of a window."""

    epsilon: float = 1.0
    """Nothing an answer says becomes more than exp(epsilon) times as likely because of what one person lists."""
    delta: float = 1e-8
    """Probability with which that may fail."""
    window_days: float = 30.0
    """Length of the window."""
    questions: int = 1
    """In how many questions of a window each person is counted; the more, the noisier each is."""


@dataclass(frozen=True, kw_only=True)
class AccountPolicy:
    """Which accounts count as people."""

    min_age_days: float = 30.0
    """Accounts younger than this are left out, so that planted ones have to be planned ahead."""


@dataclass(frozen=True, kw_only=True)
class SnapshotPolicy:
    """When changes of the data become visible."""

    period_hours: float = 24.0
    """Time between snapshots; in between every question sees the same data."""
    history: int = 7
    """How many snapshots back answers are remembered and judged together with new ones."""


@dataclass(frozen=True, kw_only=True)
class BudgetPolicy:
    """How much one organisation may ask."""

    queries: int = 100
    """New questions of an organisation in a window; repeats are free."""
    window_hours: float = 24.0
    """Length of the window."""
    scope: str = "everyone"
    """Who shares a ledger and people's budgets: "everyone", or each "organisation" if they never pool their
    answers."""


@dataclass(frozen=True, kw_only=True)
class LimitPolicy:
    """Bounds on size, time and memory, so that no question can harm the service."""

    body_bytes: int = 16384
    """Size of a request."""
    depth: int = 8
    """How deep conditions may be nested."""
    nodes: int = 64
    """How many parts a condition may have."""
    choices: int = 64
    """Entries of one list of values."""
    text_length: int = 200
    """Characters of one text literal."""
    query_text: int = 2000
    """Characters of a query in text form."""
    concurrency: int = 8
    """Requests that are worked on at once."""
    database_seconds: float = 2.0
    """Time of one query in the database."""
    solver_seconds: float = 0.15
    """Time to find out which values may leave; beyond it nothing is released."""
    solver_memory_mib: int = 512
    """Memory of that search."""
    reply_seconds: float = 0.2
    """Replies leave at this time after the request, or at the next multiple."""
    cache_mib: int = 256
    """Memory for remembered classes, answers and prepared decisions."""
    strangers: int = 50
    """Connections that one address may hold before a key came through them."""
    proxies: tuple[str, ...] = ("127.0.0.0/8", "::1")
    """Addresses and networks for which that does not hold, since many clients come from them."""

    @cached_property
    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """The proxies as networks."""
        return tuple(_network(one) for one in self.proxies)


@dataclass(frozen=True, kw_only=True)
class Organisation:
    """Somebody who may ask."""

    queries: int | None = None
    """New questions in a window, if other than the budget's."""


@dataclass(frozen=True, kw_only=True)
class GatewayPolicy:
    """Everything the gateway may do. There is no default policy: without one nothing is answered."""

    database: DatabasePolicy
    organisations: Mapping[str, Organisation]
    release: ReleasePolicy = field(default_factory=ReleasePolicy)
    privacy: PrivacyPolicy = field(default_factory=PrivacyPolicy)
    accounts: AccountPolicy = field(default_factory=AccountPolicy)
    snapshots: SnapshotPolicy = field(default_factory=SnapshotPolicy)
    budget: BudgetPolicy = field(default_factory=BudgetPolicy)
    limits: LimitPolicy = field(default_factory=LimitPolicy)
    allow_weak: bool = False
    """Accept settings that are known to be weak. For experiments with made-up data."""

    def __post_init__(self) -> None:

        check_policy(self)

    @cached_property
    def asking(self) -> QueryLimits:
        """What may be asked and how large a question may be."""
        return QueryLimits(
            filters={name: one.type for name, one in self.database.filters.items()},
            attributes=tuple(self.database.attributes),
            allow_not=self.release.allow_not,
            depth=self.limits.depth,
            nodes=self.limits.nodes,
            choices=self.limits.choices,
            text=self.limits.text_length,
            characters=self.limits.query_text,
        )

    def queries_of(self, organisation: str) -> int:
        """How many new questions the organisation may ask in a window; 0 if the policy does not name it."""
        named = self.organisations.get(organisation)
        if named is None:
            return 0
        return self.budget.queries if named.queries is None else named.queries

    def known(self, organisation: str, where: str) -> None:
        """Refuse the name of an organisation that the policy does not have."""
        if organisation not in self.organisations:
            names = ", ".join(self.organisations)
            raise InputError(
                f"{where}: expected an organisation that the policy names ({len(self.organisations)} in all: {names}), "
                f"got '{organisation}'; add [organisations.NAME] to the policy if it may ask"
            )

    @property
    def least(self) -> int:
        """The threshold before secret amounts are added: q, with room for people somebody knows."""
        return self.release.q + self.release.known_users

    @property
    def period(self) -> float:
        """Seconds between snapshots."""
        return self.snapshots.period_hours * 3600

    @property
    def memory(self) -> float:
        """Seconds after which what was told counts no longer."""
        if self.release.mechanism == "private":
            return self.privacy.window_days * 86400
        return self.snapshots.history * self.period


NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
SOURCE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]{0,62}(\.[A-Za-z_][A-Za-z0-9_$]{0,62})?")
RESERVED = frozenset(
    {"number", "users", "select", "from", "where", "and", "or", "not", "in", "between", "box"}
)
SOLVER_SHARE = 0.75
"""Of the time until a reply leaves, what searching may take; the rest is for the database and the ledger."""
ORGANISATION = re.compile(r"[\w.@+-]{1,80}")


def check_policy(policy: GatewayPolicy) -> None:
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
    _ = policy.limits.proxy_networks
    weak = weaknesses(policy)
    if weak and not policy.allow_weak:
        raise InputError(
            f"policy: weak settings: {'; '.join(weak)}. Change them, or set allow_weak = true for experiments "
            "with made-up data"
        )


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise InputError(
            "policy, limits.proxies: expected addresses (127.0.0.1) or networks (10.0.0.0/8), "
            f"got '{text}' ({error})"
        ) from None


def weaknesses(policy: GatewayPolicy) -> list[str]:
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
        f"privacy.epsilon = {policy.privacy.epsilon:g} (expected 3 or less)": policy.privacy.epsilon > 3,
        f"privacy.delta = {policy.privacy.delta:g} (expected 1e-6 or less)": policy.privacy.delta > 1e-6,
        "privacy.window_days below 1": policy.privacy.window_days < 1,
        "more than 1000 queries in a window": max(map(policy.queries_of, policy.organisations)) > 1000,
    }
    return [sentence for sentence, holds in found.items() if holds]


def promise(policy: GatewayPolicy) -> str:
    """Say in a sentence what the answers of a policy keep to, and where that ends."""
    release, privacy = policy.release, policy.privacy
    shared = policy.budget.scope == "everyone"
    if release.mechanism == "private":
        bound = math.tanh(privacy.epsilon / 2) + privacy.delta
        return (
            f"all answers to {'everyone' if shared else 'one organisation'} within {privacy.window_days:g} days are "
            f"({privacy.epsilon:g}, {privacy.delta:g})-differentially private in everything one person lists: however "
            f"questions are chosen, no attack has an advantage above {bound:.2f}. q of one answer is at least "
            f"{policy.least} with a probability of 0.999"
        )
    told = {"all": "all answers", "attribute": "all answers on one attribute", "once": "one answer a person"}
    return (
        f"over {told[release.joint]} to {'everyone' if shared else 'one organisation'}, as far back as "
        f"{policy.snapshots.history} snapshots, nobody is tied to a value with a measured probability above "
        f"1/{release.q}, also by somebody who knows {release.known_users} people of each class completely. That number "
        "is a heuristic, and nothing is promised against somebody who chooses each question after the last answer"
    )


ADAPTIVE = (
    'release.mechanism = "q": somebody who chooses each question after the last answer finds out what one person '
    "lists. With 30 accounts of their own, or 30 people's lists known, they are certain after about 5 questions; noise "
    "of 8 or 16 makes that 13 or 46 and takes 60 or 90 accounts. accounts.min_age_days and budget.queries slow it down "
    'and do not end it. mechanism = "private" is the one with a guarantee'
)


def cautions(policy: GatewayPolicy) -> list[str]:
    """Say which settings are allowed and may still tell strangers something, a sentence each."""
    limits, found = policy.limits, []
    if policy.release.mechanism == "q":
        found.append(ADAPTIVE)
    if policy.release.mechanism == "private" and policy.budget.scope == "organisation":
        found.append(
            'budget.scope = "organisation": every organisation has a budget of its own for each person, so those that '
            "pool their answers learn as much as their budgets together"
        )
    if limits.solver_seconds > SOLVER_SHARE * limits.reply_seconds:
        found.append(
            f"limits.solver_seconds = {limits.solver_seconds:g} is more than three quarters of limits.reply_seconds = "
            f"{limits.reply_seconds:g}: replies to hard questions can leave later, which tells that they were hard"
        )
    return found


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


def _check_ranges(policy: GatewayPolicy) -> None:
    ranges: dict[str, dict[str, tuple[float, float]]] = {
        "release": {
            "q": (2, 10**6),
            "min_class": (1, 10**9),
            "noise": (0, 1000),
            "known_users": (0, 100),
            "max_values": (1, 10**4),
        },
        "privacy": {
            "epsilon": (0.001, 100),
            "delta": (1e-15, 0.01),
            "window_days": (0.01, 36500),
            "questions": (1, 10**4),
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
            "strangers": (1, 10**6),
        },
    }
    for section, settings in ranges.items():
        for name, (low, high) in settings.items():
            value = getattr(getattr(policy, section), name)
            if not (low <= value <= high and math.isfinite(value)):
                raise InputError(f"policy, {section}.{name}: expected {low} to {high}, got {value}")
    if policy.release.min_class < policy.release.q:
        raise InputError("policy, release.min_class: expected at least release.q")
    if policy.release.mechanism not in ("private", "q"):
        raise InputError('policy, release.mechanism: expected "private" or "q"')
    if policy.release.joint not in ("all", "attribute", "once"):
        raise InputError('policy, release.joint: expected "all", "attribute" or "once"')
    if policy.budget.scope not in ("organisation", "everyone"):
        raise InputError('policy, budget.scope: expected "organisation" or "everyone"')
    if policy.accounts.min_age_days > 0 and not policy.database.created and not policy.allow_weak:
        raise InputError(
            "policy, accounts.min_age_days: needs database.created, the column that says when an account was made"
        )


def load_policy(path: Path) -> GatewayPolicy:
    """Read and check a policy file; paths in it are relative to it.

    docs/reference/gateway-policy.md has every setting.
    """
    content = load_toml(path)
    try:
        return read_policy(content, path.parent)
    except InputError as error:
        said = str(error).removeprefix("policy").lstrip(":, ")
        raise InputError(f"{path}: {said}") from None


def read_policy(content: Mapping[str, Any], folder: Path = Path()) -> GatewayPolicy:
    """Make a policy from what a TOML file says."""
    if "database" not in content:
        raise InputError("policy: [database] is missing; it says which tables and columns there are")
    plain: dict[str, Any] = {"organisations": {}, **content}
    if isinstance(content["database"], Mapping):
        database: dict[str, Any] = {"filters": {}, "attributes": {}, **content["database"]}
        if isinstance(database["filters"], Mapping):
            database["filters"] = {name: _filter(name, one) for name, one in database["filters"].items()}
        plain["database"] = database
    return read_settings(GatewayPolicy, plain, folder=folder)


def _filter(name: str, content: Any) -> Any:
    """`age = "integer"` is short for a column of the same name."""
    if isinstance(content, str):
        return {"column": name, "type": content}
    return {"column": name, **content} if isinstance(content, Mapping) else content
