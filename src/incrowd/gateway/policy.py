"""What the provider allows, as one frozen value read from a TOML file. What is not named is denied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from incrowd.errors import InputError
from incrowd.gateway.check import Limits


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
    aliases: Path | None = None
    """JSON file {"alias": "name"}: spellings that mean the same. With it, case, punctuation and a leading article
    are ignored as well; without it values are taken as they are spelt."""


@dataclass(frozen=True, kw_only=True)
class DatabasePolicy:
    """Which tables and columns there are. Nothing else of the database is ever read."""

    users: str
    """Table with one row a person."""
    id: str
    """Column of the users table that identifies a person."""
    created: str = ""
    """Column of the users table with the moment the account was made (date or timestamp, UTC)."""
    filters: Mapping[str, Filter]
    attributes: Mapping[str, AttributeSource]


@dataclass(frozen=True, kw_only=True)
class ReleasePolicy:
    """How sure an answer may make anybody."""

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
    scope: str = "organisation"
    """Who shares a ledger: each "organisation", or "everyone" if organisations may pool their answers."""


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


@dataclass(frozen=True, kw_only=True)
class Organisation:
    """Somebody who may ask."""

    queries: int | None = None
    """New questions in a window, if other than the budget's."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Everything the gateway may do. There is no default policy: without one nothing is answered."""

    database: DatabasePolicy
    organisations: Mapping[str, Organisation]
    release: ReleasePolicy = field(default_factory=ReleasePolicy)
    accounts: AccountPolicy = field(default_factory=AccountPolicy)
    snapshots: SnapshotPolicy = field(default_factory=SnapshotPolicy)
    budget: BudgetPolicy = field(default_factory=BudgetPolicy)
    limits: LimitPolicy = field(default_factory=LimitPolicy)
    allow_weak: bool = False
    """Accept settings that are known to be weak. For experiments with made-up data."""

    def __post_init__(self) -> None:
        from incrowd.gateway.policy_check import check_policy

        check_policy(self)

    @cached_property
    def asking(self) -> Limits:
        """What may be asked and how large a question may be."""
        return Limits(
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


def load_policy(path: Path) -> Policy:
    """Read and check a policy file; see docs/reference/gateway-policy.md for every setting."""
    from incrowd.gateway.policy_file import read_policy_file

    return read_policy_file(path)
