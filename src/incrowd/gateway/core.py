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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import BudgetExceeded, IncrowdError, InputError
from incrowd.gateway.alternatives import compile_alternatives, compile_sole_holders
from incrowd.gateway.cache import Cache
from incrowd.gateway.databases import Database
from incrowd.gateway.history import History
from incrowd.gateway.ledger import EVERYONE, OVER_TIME, EarlierAnswer, Entry, Ledger
from incrowd.gateway.monitoring import logger
from incrowd.gateway.people import Selection, compile_listing, members_of
from incrowd.gateway.policy import GatewayPolicy
from incrowd.gateway.private import (
    PersonBudgets,
    compile_windows,
    mechanisms_of,
)
from incrowd.gateway.query import Answer, Client, Explanation, Query, checked_query
from incrowd.gateway.rules import (
    BEFORE,
    BELOW_NOISE,
    CLOSED,
    JOINT,
    NO_BUDGET,
    NOT_TESTED,
    OVER_BUDGET,
    RULES,
    UNKNOWN_CLIENT,
    Case,
    Draft,
    InThisProcess,
    MakeRules,
    SecretAmounts,
    Suppressor,
    class_draft,
    explanation,
    judged,
    restricted,
    solver_budget,
    standard_rules,
    stored_entry,
)
from incrowd.gateway.snapshot import Snapshot, SnapshotStore
from incrowd.gateway.state import BrokenState, Secret, SteadyClock, lock_state, moment, open_secret
from incrowd.measures.release import measure_q

NO_ANSWER = Answer()


@dataclass(frozen=True)
class Decided:
    """An answer with what only the provider may know of it: which rule emptied it, whether it was stored."""

    answer: Answer
    rule: str = ""
    repeated: bool = False
    snapshot: int = 0

    @property
    def kept(self) -> bool:
        """True if the same question will get the same answer as long as the snapshot is in use."""
        return self.rule not in (OVER_BUDGET, CLOSED, UNKNOWN_CLIENT, OVER_TIME)


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
    rules
        Makes the list of rules that answers have to pass; attacks in the tests leave one out.
    """

    def __init__(
        self,
        database: Database,
        policy: GatewayPolicy,
        state: Path,
        *,
        solver: Suppressor | None = None,
        rules: MakeRules = standard_rules,
        clock: Callable[[], float] | None = None,
    ) -> None:
        compile_kernels()
        self.policy, self.database = policy, database
        budget = policy.limits.cache_mib * 2**20
        self._bodies: Cache[bytes] = Cache(budget // 32, len)
        self._groups: Cache[Selection] = Cache(budget // 32, lambda group: group.nbytes)
        self._drafts: Cache[Draft] = Cache(budget // 8, lambda draft: draft.nbytes)
        self._histories: Cache[History] = Cache(budget // 2, lambda history: history.nbytes)
        self._private_answers: Cache[tuple[bytes, float]] = Cache(budget // 32, lambda one: len(one[0]))
        self._budgets: dict[str, PersonBudgets] = {}
        self._cause = ""
        self._locks: dict[str, RLock] = {}
        self._lock, self._refreshing = Lock(), Lock()
        with ExitStack() as opened:
            opened.callback(lock_state(state).release)
            secret = open_secret(state)
            self._rules = tuple(rules(policy, secret, solver or InThisProcess()))
            self._private = policy.release.mechanism == "private"
            self._mechanisms = mechanisms_of(policy, secret) if self._private else {}
            self._order = SecretAmounts(secret.key("order"), 0)
            self.ledger = Ledger(state, secret)
            opened.callback(self.ledger.close)
            self._clock = clock or SteadyClock()
            self._heal_times()
            self._closed_until = self._after_reset()
            self._check_people()
            opened.callback(database.close)
            database.open(state, secret.key("snapshots").hex()[:8], policy.limits.database_seconds)
            self._check_snapshots(state, secret)
            self._snapshots = SnapshotStore(
                database=database,
                policy=policy,
                ledger=self.ledger,
                folder=state / "prints",
                key=secret.key("fingerprints"),
            )
            self.snapshot = self._snapshots.current() or self._snapshots.take(self._clock())
            self._opened = opened.pop_all()

    def __repr__(self) -> str:
        return f"Gateway({self.snapshot!r})"

    def _check_snapshots(self, state: Path, secret: Secret) -> None:
        """Refuse snapshots that are not those the ledger speaks of: everybody's number is kept in them."""
        owner, known = self.database.identity(), self.ledger.snapshot()
        if owner is None:
            self.database.claim(secret.identity)
        elif owner != secret.identity:
            raise BrokenState(state, "expected the snapshots of this gateway, got another one's")
        if known is not None and known[0] not in self.database.snapshots() and any(self.ledger.replay()):
            raise BrokenState(state, "expected the snapshot that was in use, there is none or an older one")

    def _check_people(self) -> None:
        """Refuse another way to tell people apart: everybody would be somebody new, with a budget of their own."""
        column = self.policy.database.id
        if not self.ledger.same_people(column):
            raise InputError(
                f"policy, database.id: expected the column by which people were told apart before, got '{column}'. "
                "With another one everybody would be somebody new of whom nothing was told. Put it back, or start "
                "anew with all budgets spent ('incrowd gateway reset')"
            )

    def _heal_times(self) -> None:
        """Go on from the last sign of life if the clock is before it, or days after it."""
        if moved := self.ledger.heal_times(self._clock()):
            logger.warning(
                "by the system's clock %.1f days have passed since the last sign of life. That may be a clock that "
                "jumped: the time is not counted, and what was told is as old as it was",
                moved / 86400,
            )

    def _after_reset(self) -> float:
        """Return the moment from which on questions are answered; what was told before a reset is not known."""
        begun = self.ledger.started_anew
        return begun + self.policy.memory if begun else 0.0

    def trouble(self, audited: int = 0) -> str:
        """Say why questions cannot be answered well now; empty while all is well.

        Strangers may read it, so the cause of what is wrong with the database is for the log alone. `audited` is the
        length of the audit log, noted here so that it shows if the log is gone.
        """
        current, now = self.ledger.snapshot(), self._clock()
        try:
            self.ledger.write_probe(now, audited)
        except Exception:
            return "the ledger cannot be written"
        try:
            self.database.check()
        except IncrowdError as error:
            if str(error) != self._cause:
                self._cause = str(error)
                logger.error("%s", error)
            return "the database cannot be reached"
        self._cause = ""
        if current is not None and now - current[1] > 2 * self.policy.period + 60:
            return "the snapshot is overdue"
        return RULES[CLOSED] if now < self._closed_until else ""

    def answer(self, client: Client, query: Query) -> Answer:
        """Answer a question. Raises `InputError` for one that may not be asked, whoever the data are about."""
        return self.decide(client, query).answer

    def decide(self, client: Client, query: Query) -> Decided:
        """Answer a question, and tell the provider which rule emptied the answer, if one did."""
        query = checked_query(query, self.policy.asking)
        if client.organisation not in self.policy.organisations:
            return Decided(NO_ANSWER, UNKNOWN_CLIENT)
        scope = self._scope(client)
        stored = self._stored(client, self.snapshot.number, query)
        if stored is not None:
            return stored
        if rule := self._turned_away(client):
            return Decided(NO_ANSWER, rule)
        snapshot = self.snapshot
        try:
            group = self._group(snapshot, query)  # asked before the lock: others need not wait for it
            with self._lock_of(scope):
                if snapshot is not self.snapshot:  # under the lock, since a ledger only ever moves on
                    snapshot = self.snapshot
                    group = self._group(snapshot, query)
                stored = self._stored(client, snapshot.number, query)
                if stored is not None:
                    return stored
                if rule := self._turned_away(client):
                    return Decided(NO_ANSWER, rule)
                decide = self._decide_privately if self._private else self._decide_anew
                return decide(client, scope, self._case(scope, snapshot, query, group), query)
        except BudgetExceeded:
            with self._lock_of(scope):
                return self._out_of_time(client, scope, snapshot, query)

    def repeated(self, client: Client, query: Query) -> Decided | None:
        """Return what this question was answered before, without waiting for others; None if it is new."""
        if client.organisation not in self.policy.organisations:
            return Decided(NO_ANSWER, UNKNOWN_CLIENT)
        return self._stored(client, self.snapshot.number, query)

    def explain(self, query: Query, client: Client | None = None) -> Explanation:
        """Tell the provider how a question would be answered, and why; nothing is recorded.

        Without a client it is answered as to somebody who never asked before.
        """
        query = checked_query(query, self.policy.asking)
        if self._private:
            return self._explain_privately(query, client)
        scope = EVERYONE if client is None else self._scope(client)
        with self._lock_of(scope):
            case = self._case(
                None if client is None else scope, self.snapshot, query, self._group(self.snapshot, query)
            )
            before, rule = stored_entry(self._rules, case), self._turned_away(client)
            draft = self._class_draft(case)
            found = replace(draft.denied(rule), withheld={}) if rule else judged(self._rules, case, draft)
        if before is not None:
            return self._explain_again(scope, case, draft, before)
        return self._explained(case, found, mechanism="q", repeated=False, closed_until=self._closed)

    def _explain_again(self, scope: str, case: Case, draft: Draft, before: Entry) -> Explanation:
        """Give the reasons of an answer that is given again: as of then, if they can still be found."""
        told, now = self.ledger.first_told(scope, before), case.snapshot
        history = self._nothing_before(now)
        for entry in self.ledger.told(scope, self._snapshots.oldest(now.number), before=told.entry):
            history.add(entry)
        draft = judged(self._rules, replace(case, history=history), draft)
        codes = case.codes_of(before.values)
        as_then = before.origin == now.number and not told.private and set(codes) == set(draft.codes)
        why = (draft.rule or JOINT) if as_then else before.rule or BEFORE
        withheld = draft.withheld if as_then else {}
        draft = replace(draft, codes=codes, rule=before.rule, withheld=withheld)
        mechanism = "private" if told.private else "q"
        return self._explained(
            case, draft, why=why, mechanism=mechanism, repeated=True, decided=moment(told.asked)
        )

    def _explain_privately(self, query: Query, client: Client | None) -> Explanation:
        """Say what noise would leave as it is; the answer itself is drawn when somebody asks."""
        snapshot = self.snapshot
        case = self._case(None, snapshot, query, self._group(snapshot, query))
        scope = EVERYONE if client is None else self._scope(client)
        told = None if client is None else self._told_privately(client, scope, query)
        if told is not None:
            return self._explain_privately_again(case, told)
        turned_away = self._turned_away(client)
        with self._lock_of(scope):
            counted = self._budget_of(scope).with_budget(case.group, snapshot.size, self._clock())
        if turned_away == CLOSED:
            counted = Selection(counted.members[:0])
        found = self._mechanisms[query.attribute].release(case.index, counted, noise=False)
        codes = () if turned_away else case.codes_of(found.values)
        withheld = dict.fromkeys(
            set(range(len(case.index.values))) - {*case.codes_of(found.tested)}, NOT_TESTED
        )
        withheld |= dict.fromkeys(case.listed_by_none(counted), NO_BUDGET)
        rule = turned_away or ("" if codes else _emptied_by(case, counted))
        draft = Draft(
            codes=codes,
            supports=case.index.supports(case.group.members),
            threshold=0 if turned_away else found.threshold,
            rule=rule,
            withheld={} if turned_away else withheld,
        )
        return self._explained(
            case,
            draft,
            why=turned_away or BELOW_NOISE,
            mechanism="private",
            repeated=False,
            counted=len(counted),
            closed_until=self._closed,
        )

    def _explain_privately_again(self, case: Case, told: EarlierAnswer) -> Explanation:
        """Give what was drawn when the question was asked first. Which values were tested then is not kept."""
        words = self.ledger.charged(told.entry) if told.private else None
        counted = None if words is None else Selection(members_of(words))
        draft = Draft(
            codes=case.codes_of(Answer.from_body(told.body).values),
            supports=case.index.supports(case.group.members),
            rule=told.rule,
            withheld={} if counted is None else dict.fromkeys(case.listed_by_none(counted), NO_BUDGET),
        )
        return self._explained(
            case,
            draft,
            why=BELOW_NOISE if told.private else BEFORE,
            mechanism="private" if told.private else "q",
            repeated=True,
            decided=moment(told.asked),
            counted=None if counted is None else len(counted),
        )

    def _explained(self, case: Case, draft: Draft, **more: Any) -> Explanation:
        measured = measure_q(
            restricted(case.index, case.group, draft.codes), budget=solver_budget(self.policy)
        )
        return explanation(case, draft, measured, **more)

    def sizes(self, filter: str) -> NDArray[np.int64]:
        """Tell the provider how many people share each value of a filter."""
        return self.database.sizes(self.snapshot.number, filter)

    def would_leave(self, attribute: str) -> Callable[[int], tuple[int, ...]] | None:
        """Tell the provider by q which values the private mechanism would release about everybody.

        Without noise, and as if nobody had been counted before; None if it is not the policy's mechanism.
        """
        if not self._private:
            return None
        snapshot, query = self.snapshot, Query(attribute)
        case = self._case(None, snapshot, query, self._group(snapshot, query))
        made, known = self._mechanisms[attribute], self.policy.release.known_users

        def released(q: int) -> tuple[int, ...]:
            found = replace(made, base=q + known).release(case.index, case.group, noise=False)
            return case.codes_of(found.values)

        return released

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

    def _decide_anew(self, client: Client, scope: str, case: Case, query: Query) -> Decided:
        before = stored_entry(self._rules, case)
        if before is not None:
            entry = self._entry(client, scope, case, query, before.rule, before.body)
            entry = replace(entry, origin=before.origin, people=before.people)
            return self._tell(entry, case.history, repeated=True)
        draft = self._class_draft(case)
        if draft.rule == OVER_TIME:
            return self._out_of_time(client, scope, case.snapshot, query)
        draft = judged(self._rules, case, draft)
        answer = Answer(tuple(case.index.values[code] for code in draft.codes))
        return self._tell(self._entry(client, scope, case, query, draft.rule, answer.body), case.history)

    def _decide_privately(self, client: Client, scope: str, case: Case, query: Query) -> Decided:
        """Count those who have budget left, with noise; whatever comes of it, their budgets are charged."""
        snapshot = case.snapshot
        counted = self._budget_of(scope).with_budget(case.group, snapshot.size, self._clock())
        mechanism = self._mechanisms[query.attribute]
        found = mechanism.release(case.index, counted)
        answer = Answer(tuple(self._order.order(query.attribute, found.values)))
        rule = "" if answer.values else _emptied_by(case, counted)
        entry = self._entry(client, scope, case, query, rule, answer.body)
        self.ledger.record(entry, (mechanism.spending.settings, counted.words(snapshot.size)))
        self._private_answers.put((scope, query.key), (entry.body, entry.asked))
        return Decided(answer, rule, snapshot=snapshot.number)

    def _out_of_time(self, client: Client, scope: str, snapshot: Snapshot, query: Query) -> Decided:
        """Count the question, so that nobody can keep the service busy for free; it may be asked again."""
        nobody = Selection(np.zeros(0, dtype=np.int32))
        case = self._case(None, snapshot, query, nobody)
        entry = self._entry(client, scope, case, query, OVER_TIME, NO_ANSWER.body)
        self.ledger.record(replace(entry, key=token_bytes(32), digest=token_bytes(16), people=None))
        return Decided(NO_ANSWER, OVER_TIME)

    def _class_draft(self, case: Case) -> Draft:
        """Apply the rules that look at the class alone; it is decided once for everybody who asks."""
        key = (case.snapshot.number, case.attribute, case.group.digest)
        draft = self._drafts.get(key)
        if draft is None:
            draft = class_draft(self._rules, case)
            if draft.rule != OVER_TIME:
                self._drafts.put(key, draft)
        return draft

    def _entry(self, client: Client, scope: str, case: Case, query: Query, rule: str, body: bytes) -> Entry:
        listed = int((case.index.supports(case.group.members) > 0).sum())
        return Entry(
            asked=self._clock(),
            client=client.name,
            organisation=client.organisation,
            scope=scope,
            snapshot=case.snapshot.number,
            origin=case.snapshot.number,
            attribute=query.attribute,
            key=query.key,
            question=query.text,
            digest=case.group.digest,
            people=case.group.words(case.snapshot.size),
            class_size=len(case.group),
            withheld=listed - len(Answer.from_body(body).values),
            rule=rule,
            body=body,
        )

    def _tell(self, entry: Entry, history: History, *, repeated: bool = False) -> Decided:
        """Write an entry to the disk, then let the answer go."""
        self.ledger.record(entry)
        self._bodies.put((entry.scope, entry.snapshot, entry.key), entry.body)
        history.add(entry)
        self._histories.put((entry.scope, entry.snapshot), history)
        return Decided(Answer.from_body(entry.body), entry.rule, repeated, entry.snapshot)

    # Looking up

    def _stored(self, client: Client, number: int, query: Query) -> Decided | None:
        scope = self._scope(client)
        if self._private:
            return self._stored_privately(client, scope, number, query)
        key = (scope, number, query.key)
        body = self._bodies.get(key)
        if body is None:
            body = self.ledger.body(*key)
            if body is not None:
                self._bodies.put(key, body)
        return None if body is None else Decided(Answer.from_body(body), repeated=True, snapshot=number)

    def _stored_privately(self, client: Client, scope: str, number: int, query: Query) -> Decided | None:
        """Return what this question was answered within the window: to tell it again costs nobody anything."""
        found = self._private_answers.get((scope, query.key))
        if found is None or found[1] < self._clock() - self.policy.memory:
            told = self._told_privately(client, scope, query)
            found = None if told is None else (told.body, told.asked)
        return None if found is None else Decided(Answer.from_body(found[0]), repeated=True, snapshot=number)

    def _told_privately(self, client: Client, scope: str, query: Query) -> EarlierAnswer | None:
        since = self._clock() - self.policy.memory
        return self.ledger.private_answer(scope, client.organisation, query.key, since)

    def budget(self, client: Client) -> dict[str, Any]:
        """Tell a client what it may still ask, and what one question costs; nothing here is about the data."""
        found: dict[str, Any] = {
            "mechanism": self.policy.release.mechanism,
            "queries": self.policy.queries_of(client.organisation),
            "queries_left": self.queries_left(client.organisation),
            "window_hours": self.policy.budget.window_hours,
        }
        if self._closed:
            found["closed_until"] = self._closed
        if self._private:
            privacy = self.policy.privacy
            found["privacy"] = {
                "epsilon": privacy.epsilon,
                "delta": privacy.delta,
                "window_days": privacy.window_days,
                "questions_per_person": privacy.questions,
            }
        return found

    def queries_left(self, organisation: str) -> int:
        """How many new questions an organisation may still ask in the window of its budget."""
        if self._closed:
            return 0
        since = self._clock() - self.policy.budget.window_hours * 3600
        return max(0, self.policy.queries_of(organisation) - self.ledger.spent(organisation, since))

    def _turned_away(self, client: Client | None) -> str:
        """Return the rule by which nothing new is decided now, whatever is asked; empty if there is none."""
        if self._closed:
            return CLOSED
        return OVER_BUDGET if client is not None and not self.queries_left(client.organisation) else ""

    @property
    def _closed(self) -> str:
        """Until when nothing is answered since a reset; empty if it is open."""
        return moment(self._closed_until) if self._clock() < self._closed_until else ""

    def _budget_of(self, scope: str) -> PersonBudgets:
        if scope not in self._budgets:
            settings = next(iter(self._mechanisms.values())).spending.settings
            self._budgets[scope] = PersonBudgets(self.ledger, scope, self.policy.privacy, settings)
        return self._budgets[scope]

    def _case(self, scope: str | None, snapshot: Snapshot, query: Query, group: Selection) -> Case:
        """Put together what a decision depends on; without a scope, as if nothing had been told."""
        if self._private:  # noise needs no history: what was told is in people's budgets
            scope = None
        return Case(
            snapshot=snapshot,
            attribute=query.attribute,
            group=group,
            key=query.key,
            history=self._nothing_before(snapshot) if scope is None else self._history(scope, snapshot),
            changed=self._snapshots.changed,
        )

    def _group(self, snapshot: Snapshot, query: Query) -> Selection:
        key = (snapshot.number, Query("", query.where).key)
        group = self._groups.get(key)
        if group is None:
            group = Selection(self.database.members(snapshot.number, query.where))
            self._groups.put(key, group)
        return group

    def _history(self, scope: str, snapshot: Snapshot) -> History:
        history = self._histories.get((scope, snapshot.number))
        if history is None:
            history = self._nothing_before(snapshot)
            for entry in self.ledger.told(scope, self._snapshots.oldest(snapshot.number)):
                history.add(entry)
            self._histories.put((scope, snapshot.number), history)
        return history

    def _nothing_before(self, snapshot: Snapshot) -> History:
        together = self.policy.release.joint == "all"
        return History(snapshot, self.policy.least, together, room=self.policy.release.noise)

    def _scope(self, client: Client) -> str:
        return EVERYONE if self.policy.budget.scope == "everyone" else client.organisation

    def _lock_of(self, scope: str) -> RLock:
        with self._lock:
            return self._locks.setdefault(scope, RLock())


def _emptied_by(case: Case, counted: Selection) -> str:
    """Say why a noisy answer is empty; only who is in the class and in earlier ones matters for it."""
    return NO_BUDGET if len(case.group) and not len(counted) else BELOW_NOISE


def compile_kernels() -> None:
    """Compile what decisions are made of beforehand, so that none is late because of it."""
    compile_alternatives()
    compile_listing()
    compile_sole_holders()
    compile_windows()
