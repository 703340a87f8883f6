"""Gateways with a defence missing, so that tests can show that the attack it stops is real.

The product has no switch for this: here its list of rules is built without one, or its policy made weak.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from incrowd.gateway.core import Gateway
from incrowd.gateway.ledger import Entry
from incrowd.gateway.people import Numbers
from incrowd.gateway.policy import GatewayPolicy
from incrowd.gateway.query import Answer, Client, Query
from incrowd.gateway.rules import (
    AnsweredOnce,
    Case,
    Difference,
    Draft,
    GatewayRule,
    JointQ,
    KeyedOrder,
    OwnQ,
    SecretAmounts,
    Suppressor,
    SwappedStrangers,
    Thresholds,
    Unchanged,
    standard_rules,
)
from incrowd.gateway.state import Secret


@dataclass(frozen=True, kw_only=True)
class Defences:
    """Which defences stand; all do unless a test takes one away."""

    differencing: bool = True
    noise: bool = True
    q: bool = True
    """False: values leave by their number of holders alone (LCV)."""
    known_users: bool = True
    joint: bool = True
    account_age: bool = True
    batching: bool = True
    """False: an answer changes with the first person who changes."""
    swapping: bool = True
    """False: other strangers around the same holders, or around those who changed, draw new amounts."""
    order: bool = True
    """False: values leave with the commonest first."""

    def policy(self, policy: GatewayPolicy) -> GatewayPolicy:
        """Return the policy as weak as it has to be."""
        release, accounts = policy.release, policy.accounts
        if not self.noise:
            release = replace(release, noise=0)
        if not self.known_users:
            release = replace(release, known_users=0)
        if not self.account_age:
            accounts = replace(accounts, min_age_days=0.0)
        return replace(policy, release=release, accounts=accounts, allow_weak=True)

    def rules(self, policy: GatewayPolicy, secret: Secret, solver: Suppressor) -> Sequence[GatewayRule]:
        """Return the list of rules without those that are missing."""
        away = {
            Difference: not self.differencing,
            Unchanged: not self.batching,
            KeyedOrder: not self.order,
            SwappedStrangers: not self.swapping,
            JointQ: not (self.joint and self.q),
            AnsweredOnce: not self.joint,
            OwnQ: not self.q,
        }
        rules = [one for one in standard_rules(policy, secret, solver) if not away.get(type(one), False)]
        noise = SecretAmounts(secret.key("noise"), policy.release.noise)
        if not self.swapping:
            rules = [
                Unchanged(DrawnByQuestion(policy, noise)) if isinstance(one, Unchanged) else one
                for one in rules
            ]
        if self.q and not self.joint and policy.release.joint != "once":
            thresholds = Thresholds(policy, noise)
            rules.insert(4, OwnQ(thresholds, solver, secret.key("ties")))
        return rules if self.order else [*rules, CommonestFirst()]


class DrawnByQuestion(Thresholds):
    """How many must change is drawn anew for every question, whoever changed."""

    def changes(self, entry: Entry, who: Numbers) -> int:
        return self.policy.release.q + self.noise.draw("changes", entry.origin, entry.key)


class CommonestFirst(GatewayRule):
    """Values leave with the commonest first."""

    looks_back = True

    def apply(self, case: Case, draft: Draft) -> Draft:
        return replace(draft, codes=tuple(sorted(draft.codes, key=lambda code: -draft.supports[code])))


class AskedAnew:
    """Decides every question as if it had never been asked, with a new secret: what repeats are kept for."""

    def __init__(self, make: Callable[[Path], Gateway], secrets: Callable[[int], bytes]) -> None:
        self._make, self._secrets = make, secrets

    def answer(self, client: Client, query: Query) -> Answer:
        with tempfile.TemporaryDirectory() as folder:
            secret = Path(folder) / "secret"
            secret.touch(mode=0o600)
            secret.write_text(self._secrets(32).hex())
            made = self._make(Path(folder))
            try:
                return made.answer(client, query)
            finally:
                made.close()


def options(defences: Defences, policy: GatewayPolicy) -> dict[str, Any]:
    """Return policy and rules of a weakened gateway."""
    return {"policy": defences.policy(policy), "rules": defences.rules}
