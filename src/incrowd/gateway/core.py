"""The gateway as a library: a client and a question in, an answer out that says as little as it may.

Everything an answer depends on is decided here and written to the ledger before it is returned. Questions of
one ledger are decided one after the other; different ledgers do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from secrets import token_bytes
from threading import Lock, RLock
from time import time

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import BudgetExceeded
from incrowd.gateway.answer import Answer, Client, Explanation, ValueDecision
from incrowd.gateway.cache import Cache
from incrowd.gateway.databases import Database
from incrowd.gateway.decide import (
    JOINT,
    OVER_TIME,
    TAKEN,
    TOO_CLOSE,
    Defences,
    InThisProcess,
    Proposal,
    Rules,
    Suppressor,
    explanation,
    restricted,
)
from incrowd.gateway.earlier import Earlier
from incrowd.gateway.groups import Group
from incrowd.gateway.joint import Clauses
from incrowd.gateway.ledger import Entry, Ledger
from incrowd.gateway.noise import Noise
from incrowd.gateway.occupy import occupy
from incrowd.gateway.policy import Policy
from incrowd.gateway.query import Query, checked_query
from incrowd.gateway.secret import open_secret
from incrowd.gateway.snapshot import Snapshot
from incrowd.gateway.snapshots import Snapshots
from incrowd.measures.release import measure_q

__all__ = ["Answer", "Client", "Defences", "Explanation", "Gateway", "Outcome", "Suppressor", "ValueDecision"]

OVER_BUDGET = "over-budget"
UNKNOWN_CLIENT = "unknown-client"
EVERYONE = "*"
NO_ANSWER = Answer()


@dataclass(frozen=True)
class Outcome:
    """An answer with what only the provider may know of it: which rule emptied it, whether it was stored."""

    answer: Answer
    rule: str = ""
    repeated: bool = False
    snapshot: int = 0

    @property
    def kept(self) -> bool:
        """True if the same question will get the same answer as long as the snapshot is in use."""
        return self.rule not in (OVER_BUDGET, UNKNOWN_CLIENT, OVER_TIME)

    def as_repeat(self) -> Outcome:
        """Return what the provider sees when it is asked again."""
        return Outcome(self.answer, repeated=True, snapshot=self.snapshot)


class Gateway:
    """Answers questions about the people of a database within a policy.

    Parameters
    ----------
    database
        Where the people are, see `databases.connect`.
    policy
        What is allowed.
    state
        A folder for the ledger, the secret and the snapshots. Whoever loses it loses the memory of what was
        told; whoever reads it reads everything.
    solver
        Thins out answers, perhaps in a capped child process; in this process if not given.
    """

    def __init__(
        self,
        database: Database,
        policy: Policy,
        state: Path,
        *,
        solver: Suppressor | None = None,
        defences: Defences = Defences(),  # noqa: B008  a frozen value
        clock: Callable[[], float] = time,
    ) -> None:
        compile_kernels()
        self.policy, self.database, self._clock, self._defences = policy, database, clock, defences
        budget = policy.limits.cache_mib * 2**20
        self._bodies: Cache[bytes] = Cache(budget // 8, len)
        self._groups: Cache[Group] = Cache(budget // 4, lambda group: group.nbytes)
        self._proposals: Cache[Proposal] = Cache(budget // 8, _proposal_size)
        self._ledgers: Cache[Earlier] = Cache(budget // 2, lambda earlier: earlier.nbytes)
        self._locks: dict[str, RLock] = {}
        self._lock, self._refreshing = Lock(), Lock()
        with ExitStack() as opened:
            opened.callback(occupy(state).release)
            secret = open_secret(state)
            self._order = Noise(secret.key("order"), 0)
            noise = Noise(secret.key("noise"), policy.release.noise)
            self._rules = Rules(policy, noise, solver or InThisProcess(), secret.key("ties"), defences)
            self.ledger = Ledger(state)
            opened.callback(self.ledger.close)
            opened.callback(database.close)
            database.open(state, secret.key("snapshots").hex()[:8], policy.limits.database_seconds)
            self._snapshots = Snapshots(
                database=database,
                policy=policy,
                ledger=self.ledger,
                folder=state / "prints",
                key=secret.key("fingerprints"),
                account_age=defences.account_age,
            )
            self.snapshot = self._snapshots.current() or self._snapshots.take(clock())
            self._opened = opened.pop_all()

    def __repr__(self) -> str:
        return f"Gateway({self.snapshot!r})"

    def answer(self, client: Client, query: Query) -> Answer:
        """Answer a question. Raises `InputError` for one that may not be asked, whoever the data are about."""
        return self.decide(client, query).answer

    def decide(self, client: Client, query: Query) -> Outcome:
        """Answer a question, and tell the provider which rule emptied the answer, if one did."""
        query = checked_query(query, self.policy.asking)
        if client.organisation not in self.policy.organisations:
            return Outcome(NO_ANSWER, UNKNOWN_CLIENT)
        if not self._defences.snapshots:
            self.refresh()
        scope = self._scope(client)
        stored = self._stored(scope, self.snapshot.number, query)
        if stored is not None:
            return stored
        with self._lock_of(scope):
            snapshot = self.snapshot  # looked up under the lock: a ledger only ever moves on to newer ones
            stored = self._stored(scope, snapshot.number, query)
            if stored is not None:
                return stored
            if self._spent(client):
                return Outcome(NO_ANSWER, OVER_BUDGET)
            return self._decide_anew(client, scope, snapshot, query)

    def repeated(self, client: Client, query: Query) -> Outcome | None:
        """Return what this question was answered before, without waiting for others; None if it is new."""
        if client.organisation not in self.policy.organisations:
            return Outcome(NO_ANSWER, UNKNOWN_CLIENT)
        return self._stored(self._scope(client), self.snapshot.number, query)

    def explain(self, query: Query, client: Client | None = None) -> Explanation:
        """Tell the provider how a question would be answered, and why; nothing is recorded.

        Without a client it is answered as to somebody who never asked before.
        """
        query = checked_query(query, self.policy.asking)
        with self._lock_of(EVERYONE if client is None else self._scope(client)):
            snapshot = self.snapshot
            group = self._group(snapshot, query)
            earlier = self._nothing_before(snapshot) if client is None else self._earlier(client, snapshot)
            proposal = self._propose(snapshot, query, group)
            before = self._told_before(earlier, query, group)
            rule, codes = self._judge(earlier, query, group, proposal)
        index = snapshot.attributes[query.attribute]
        if before is not None:
            rule = before.rule
            codes = tuple(index.code_of[value] for value in before.values if value in index.code_of)
        measured = measure_q(restricted(index, group, codes), budget=self._rules.budget)
        return explanation(
            snapshot, index, len(group), proposal, rule, codes, measured, repeated=before is not None
        )

    def sizes(self, filter: str) -> NDArray[np.int64]:
        """Tell the provider how many people share each value of a filter."""
        return self.database.sizes(self.snapshot.number, filter)

    @property
    def due(self) -> bool:
        """True once the policy's period has passed since the last snapshot."""
        current = self.ledger.snapshot()
        return current is None or self._clock() - current[1] >= self.policy.period

    def refresh(self) -> int:
        """Take a new snapshot and answer from it from now on; return its number."""
        with self._refreshing:
            self.snapshot = self._snapshots.take(self._clock())
            return self.snapshot.number

    def close(self) -> None:
        """Close the database and the ledger, and let go of the state."""
        self._opened.close()

    # Deciding

    def _decide_anew(self, client: Client, scope: str, snapshot: Snapshot, query: Query) -> Outcome:
        earlier = self._earlier(client, snapshot)
        try:
            group = self._group(snapshot, query)
            before = self._told_before(earlier, query, group)
            if before is not None:
                entry = self._entry(client, scope, snapshot, query, group, before.rule, before.body)
                entry = replace(entry, origin=before.origin, people=before.people)
                return self._tell(entry, earlier, repeated=True)
            proposal = self._propose(snapshot, query, group)
        except BudgetExceeded:
            return self._out_of_time(client, scope, snapshot, query)
        if proposal.rule == OVER_TIME:
            return self._out_of_time(client, scope, snapshot, query)
        rule, codes = self._judge(earlier, query, group, proposal)
        answer = Answer(tuple(self._in_order(query.attribute, snapshot, codes, proposal)))
        return self._tell(self._entry(client, scope, snapshot, query, group, rule, answer.body), earlier)

    def _out_of_time(self, client: Client, scope: str, snapshot: Snapshot, query: Query) -> Outcome:
        """Count the question, so that nobody can keep the service busy for free; it may be asked again."""
        nobody = Group(np.zeros(0, dtype=np.int32))
        entry = self._entry(client, scope, snapshot, query, nobody, OVER_TIME, NO_ANSWER.body)
        self.ledger.record(replace(entry, key=token_bytes(32), digest=token_bytes(16), people=None))
        return Outcome(NO_ANSWER, OVER_TIME)

    def _told_before(self, earlier: Earlier, query: Query, group: Group) -> Entry | None:
        """Return what was answered about exactly these people, or to this question before enough had changed."""
        same = earlier.same_people(query.attribute, group) if self._defences.repeats else None
        if same is not None or not self._defences.batching:
            return same
        nearly = earlier.nearly_same(query.attribute, group, self._rules.enough, self._snapshots.changed)
        told = [entry for entry, differ in reversed(nearly) if entry.key == query.key or not differ]
        return told[0] if told else None

    def _judge(
        self, earlier: Earlier, query: Query, group: Group, proposal: Proposal
    ) -> tuple[str, tuple[int, ...]]:
        """Apply the rules that look at what was told before."""
        q, attribute = self.policy.release.q, query.attribute
        if proposal.rule:
            return proposal.rule, ()
        if self._defences.differencing and earlier.too_close(attribute, group, q):
            return TOO_CLOSE, ()
        if self._defences.batching and any(
            not entry.rule
            for entry, _ in earlier.nearly_same(attribute, group, self._rules.enough, self._snapshots.changed)
        ):
            return TOO_CLOSE, ()
        if self._rules.once and self._defences.joint and earlier.overlaps(group):
            return TAKEN, ()
        if not self._rules.together:
            return "", proposal.codes
        joint, before = earlier.joint(attribute), self._rules.before(attribute, group)
        likely = self._rules.most_alone(earlier.snapshot, attribute, group, proposal, joint.about)
        codes = joint.allowed(Clauses(group, attribute, likely), proposal.threshold, before)
        return ("" if codes else JOINT), codes

    def _entry(
        self,
        client: Client,
        scope: str,
        snapshot: Snapshot,
        query: Query,
        group: Group,
        rule: str,
        body: bytes,
    ) -> Entry:
        listed = int((snapshot.attributes[query.attribute].supports(group.members) > 0).sum())
        return Entry(
            asked=self._clock(),
            client=client.name,
            organisation=client.organisation,
            scope=scope,
            snapshot=snapshot.number,
            origin=snapshot.number,
            attribute=query.attribute,
            key=query.key,
            question=query.text,
            digest=group.digest,
            people=group.words(snapshot.size),
            class_size=len(group),
            withheld=listed - len(Answer.from_body(body).values),
            rule=rule,
            body=body,
        )

    def _tell(self, entry: Entry, earlier: Earlier, *, repeated: bool = False) -> Outcome:
        """Write an entry to the disk, then let the answer go."""
        if self._defences.repeats:
            self.ledger.record(entry)
            self._bodies.put((entry.scope, entry.snapshot, entry.key), entry.body)
        earlier.add(entry)
        self._ledgers.put((entry.scope, entry.snapshot), earlier)
        return Outcome(Answer.from_body(entry.body), entry.rule, repeated, entry.snapshot)

    def _in_order(
        self, attribute: str, snapshot: Snapshot, codes: tuple[int, ...], proposal: Proposal
    ) -> list[str]:
        values = snapshot.attributes[attribute].values
        if not self._defences.order:
            return [values[code] for code in sorted(codes, key=lambda code: -proposal.supports[code])]
        return self._order.order(attribute, [values[code] for code in codes])

    # Looking up

    def _stored(self, scope: str, number: int, query: Query) -> Outcome | None:
        if not self._defences.repeats:
            return None
        key = (scope, number, query.key)
        body = self._bodies.get(key)
        if body is None:
            body = self.ledger.body(*key)
            if body is not None:
                self._bodies.put(key, body)
        return None if body is None else Outcome(Answer.from_body(body), repeated=True, snapshot=number)

    def _spent(self, client: Client) -> bool:
        if not self._defences.budget:
            return False
        since = self._clock() - self.policy.budget.window_hours * 3600
        return self.ledger.spent(client.organisation, since) >= self.policy.queries_of(client.organisation)

    def _group(self, snapshot: Snapshot, query: Query) -> Group:
        key = (snapshot.number, Query("", query.where).key)
        group = self._groups.get(key)
        if group is None:
            group = Group(self.database.members(snapshot.number, query.where))
            self._groups.put(key, group)
        return group

    def _propose(self, snapshot: Snapshot, query: Query, group: Group) -> Proposal:
        if not self._defences.repeats:
            return Rules(
                self.policy,
                Noise(token_bytes(32), self.policy.release.noise),
                self._rules.solver,
                self._rules.key,
                self._defences,
            ).propose(snapshot, query.attribute, group)
        key = (snapshot.number, query.attribute, group.digest)
        proposal = self._proposals.get(key)
        if proposal is None:
            proposal = self._rules.propose(snapshot, query.attribute, group)
            if proposal.rule != OVER_TIME:
                self._proposals.put(key, proposal)
        return proposal

    def _earlier(self, client: Client, snapshot: Snapshot) -> Earlier:
        scope = self._scope(client)
        earlier = self._ledgers.get((scope, snapshot.number))
        if earlier is None:
            earlier = self._nothing_before(snapshot)
            for entry in self.ledger.told(scope, self._snapshots.oldest(snapshot.number)):
                earlier.add(entry)
            self._ledgers.put((scope, snapshot.number), earlier)
        return earlier

    def _nothing_before(self, snapshot: Snapshot) -> Earlier:
        together = self.policy.release.joint == "all"
        return Earlier(snapshot, self._rules.base, together, room=self._rules.room)

    def _scope(self, client: Client) -> str:
        return EVERYONE if self.policy.budget.scope == "everyone" else client.organisation

    def _lock_of(self, scope: str) -> RLock:
        with self._lock:
            return self._locks.setdefault(scope, RLock())


def compile_kernels() -> None:
    """Compile what decisions are made of beforehand, so that none is late because of it."""
    from incrowd.gateway.companions_kernel import compile_companions
    from incrowd.gateway.listing_kernel import compile_listing
    from incrowd.gateway.lone import compile_lone

    compile_companions()
    compile_listing()
    compile_lone()


def _proposal_size(proposal: Proposal) -> int:
    return int(proposal.supports.nbytes) + 200 * len(proposal.withheld) + 50 * len(proposal.codes)
