"""One question from arrival to reply: who asks, what, may it leave, written down, sent on the clock.

Nothing here knows HTTP. Whatever goes wrong after a question was understood ends in the same empty reply. How large,
slow and frequent requests may be is checked here, too.

Nothing about a reply but its content tells what was decided: answered, empty, denied and over budget have the same
status, the same headers, a length from a short list of sizes, and leave at the same time after the question arrived.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from base64 import b64encode
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b, shake_256
from math import ceil
from secrets import token_hex
from time import monotonic
from typing import Any
from weakref import WeakValueDictionary

from incrowd.errors import IncrowdError, InputError
from incrowd.gateway.audit import AuditLog
from incrowd.gateway.core import Decided
from incrowd.gateway.monitoring import Metrics, log_error, logger
from incrowd.gateway.policy import GatewayPolicy
from incrowd.gateway.query import Answer, Client, Query
from incrowd.gateway.rules import LATE
from incrowd.gateway.state import KeyStore, Secret
from incrowd.gateway.text_query import query_from, read_queries
from incrowd.gateway.worker import DecisionService, threads_of

SMALLEST = 4096
"""Bytes of the smallest reply; larger ones double, so a length says at most log2(size / smallest) bits."""
HEADERS = {
    "content-type": "application/json",
    # no-transform: a proxy that compresses would turn the padding back into a hint.
    "cache-control": "no-store, no-transform",
    "x-content-type-options": "nosniff",
}


def padded(values: Sequence[Any] | Mapping[str, Sequence[Any]], *, key: bytes, seed: bytes) -> bytes:
    """Return an answer as JSON of one of the allowed sizes.

    The padding is pseudo-random under the gateway's key, so that it does not compress, and depends on the
    question alone, so that a repeated question gets the same bytes.

    Examples
    --------
    >>> len(padded([], key=b"k", seed=b"q")), len(padded(["Titanic"] * 50, key=b"k", seed=b"q"))
    (4096, 4096)
    """
    plain = dict(values) if isinstance(values, Mapping) else list(values)
    head = json.dumps({"values": plain, "padding": ""}, ensure_ascii=False)[:-2].encode()
    size = size_bucket(len(head) + 2)
    return head + _noise(key + seed, size - len(head) - 2) + b'"}'


def size_bucket(needed: int) -> int:
    """Return the smallest allowed length that fits."""
    size = SMALLEST
    while size < needed:
        size *= 2
    return size


def _noise(seed: bytes, length: int) -> bytes:
    return b64encode(shake_256(seed).digest(-(-length * 3 // 4) + 3))[:length]


@dataclass(frozen=True, kw_only=True)
class ReplyClock:
    """When replies leave: a fixed time after the question arrived, or the next multiple of it.

    The time a decision takes depends on the data, so nobody may see it. A decision that takes longer than
    the deadline waits for the next multiple; after the last one the reply is empty.
    """

    deadline: float
    multiples: int = 4

    @classmethod
    def within(cls, deadline: float, seconds: float) -> ReplyClock:
        """Return the clock that waits for decisions of up to so many seconds."""
        return cls(deadline=deadline, multiples=max(4, ceil(seconds / deadline)))

    @property
    def last(self) -> float:
        """Seconds after which a question is answered with nothing."""
        return self.deadline * self.multiples

    def due(self, taken: float) -> float:
        """Return how long after its arrival a question decided after `taken` seconds is answered."""
        for multiple in range(1, self.multiples + 1):
            if taken <= multiple * self.deadline:
                return multiple * self.deadline
        return self.last

    def kept(self, taken: float) -> str:
        """Name the deadline that was met, for the operator: first, later or missed."""
        if taken <= self.deadline:
            return "first"
        return "later" if taken <= self.last else "missed"


# One question from arrival to reply: who asks, what, may it leave, written down, sent on the clock.
#
# Nothing here knows HTTP. Whatever goes wrong after a question was understood ends in the same empty reply. How large,
# slow and frequent requests may be is checked here, too.

BODY_SECONDS = 5.0
CLOSING_SECONDS = 5.0
FRESH_SECONDS = 30.0
"""How often to look whether a new snapshot is due."""
WATCH_SECONDS, WATCH_PATIENCE = 5.0, 10.0
"""How often to look whether all is well, and how long that may take."""
QUICK_THREADS = 4
"""For reading questions and looking up answers, so that repeats do not queue behind new questions."""
WAITING = 8
"""For each new question that is worked on, so many may wait or be worked on."""


@dataclass(frozen=True)
class Reply:
    """What leaves: a status, a body, and headers that are the same for every answer."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=lambda: dict(HEADERS))


@dataclass(frozen=True)
class Decision:
    """What became of a question: a query and its answer, or why it was not understood."""

    query: Query | None
    answer: Answer
    outcome: str
    refusal: str = ""
    rule: str = ""
    """Which rule emptied the answer; for the audit log alone."""
    repeated: bool = False
    parts: tuple[Decision, ...] = ()
    """One for each attribute, if several were asked for."""


class GatewayService:
    """Everything a running gateway holds, and how it treats a question."""

    def __init__(
        self,
        *,
        decisions: DecisionService,
        keys: KeyStore,
        policy: GatewayPolicy,
        audit: AuditLog,
        secret: Secret,
    ) -> None:
        self.decisions, self.keys, self.policy, self.audit = decisions, keys, policy, audit
        limits = policy.limits
        self.clock = ReplyClock.within(
            limits.reply_seconds, limits.database_seconds + 10 * limits.solver_seconds
        )
        self.admission = Admission(limits.concurrency * WAITING, limits.concurrency)
        self.metrics = Metrics()
        self.metrics.gauge(
            "incrowd_gateway_inside", "Questions being decided.", lambda: self.admission.inside
        )
        self.metrics.gauge("incrowd_gateway_ready", "1 while questions can be answered.", self._readiness)
        self.closing = False
        self._trouble = ""
        self._quick = ThreadPoolExecutor(QUICK_THREADS, thread_name_prefix="read")
        self._working: set[asyncio.Task[Decision]] = set()
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._padding, self._naming = secret.key("padding"), secret.key("audit query")
        self._operator, self._order = secret.key("operator").hex(), secret.key("order")

    @property
    def not_ready(self) -> str:
        """Why no question can be answered now; empty while all is well."""
        if self.closing:
            return "shutting down"
        if self.audit.broken:
            return "the audit log cannot be written"
        if not self.decisions.alive:
            return self._trouble or "what decides questions is not running"
        return self._trouble

    async def query(self, authorization: str, chunks: AsyncIterator[bytes]) -> Reply:
        """Treat one question, from the key to the reply."""
        client = self.client(authorization)
        if client is None:
            return self._refuse("unauthorised", 401, "a key is needed: Authorization: Bearer incrowd_...")
        try:
            body = await read_body(chunks, most=self.policy.limits.body_bytes, seconds=BODY_SECONDS)
            return await self._treat(client, body)
        except BodyTooLarge as error:
            return self._refuse("too_large", 413, str(error))
        except TooSlow as error:
            return self._refuse("malformed", 408, str(error))
        except Busy as error:
            return self._refuse("busy", 503, str(error))

    async def budget(self, authorization: str) -> Reply:
        """Say what a client may still ask, on the clock and while no question of its organisation is under way.

        Otherwise the moment at which one more is counted would tell how long a question took to decide.
        """
        client, arrived = self.client(authorization), monotonic()
        if client is None:
            return self._refuse("unauthorised", 401, "a key is needed: Authorization: Bearer incrowd_...")
        try:
            with self.admission.enter(client.organisation, alone=True):
                found = await asyncio.wrap_future(self.decisions.budget(client))
                await asyncio.sleep(arrived + self.clock.due(monotonic() - arrived) - monotonic())
        except Busy as error:
            return self._refuse("busy", 503, str(error))
        return Reply(200, json.dumps(found).encode())

    def client(self, authorization: str) -> Client | None:
        """Return whose key a header carries."""
        scheme, _, token = authorization.partition(" ")
        key = self.keys.find(token.strip()) if scheme.lower() == "bearer" else None
        return None if key is None else Client(key.name, key.organisation)

    def is_operator(self, authorization: str) -> bool:
        """Tell whether a header carries the operator's token, which is derived from the secret."""
        return hmac.compare_digest(authorization.encode(), f"Bearer {self._operator}".encode())

    def explain(self, body: bytes) -> dict[str, Any]:
        """Say how a question would be answered and why; for the operator alone."""
        wanted = json.loads(body)
        query, organisation = query_from(wanted["query"], self.policy), wanted["organisation"]
        client = None if organisation is None else Client("operator", organisation)
        return self.decisions.explain(query, client).result().to_dict()

    def support(self, body: bytes) -> dict[str, Any]:
        """Say what the current snapshot can give; for the operator alone."""
        return self.decisions.support(self._order).result().to_dict()

    async def close(self) -> None:
        """Finish what is being decided, as far as it takes no longer than a few seconds, then stop."""
        self.closing = True
        if self._working:
            _, late = await asyncio.wait(self._working, timeout=CLOSING_SECONDS)
            for task in late:
                task.cancel()
        self._quick.shutdown(cancel_futures=True)
        await asyncio.to_thread(self.decisions.close)
        self.audit.close()

    async def keep_fresh(self) -> None:
        """Take a new snapshot whenever the policy's period has passed; if that fails, the old one stays."""
        known = 0
        while True:
            try:
                number = await asyncio.wrap_future(self.decisions.refresh())
                if number != known:
                    logger.info("snapshot %d is in use", number)
                known = number
            except IncrowdError as error:  # its message names the cause and never quotes data
                logger.error("no new snapshot: %s", error)
            except Exception as error:
                log_error(error)
            await asyncio.sleep(FRESH_SECONDS)

    async def keep_watch(self) -> None:
        """Look every few seconds whether questions can be answered well, so that /ready says the truth."""
        while True:
            await self.look()
            await asyncio.sleep(WATCH_SECONDS)

    async def look(self) -> None:
        """Find out once whether something is wrong, and log it when it begins and ends."""
        before = self._trouble
        try:
            looking = asyncio.wrap_future(self.decisions.trouble(self.audit.records))
            self._trouble = await asyncio.wait_for(looking, WATCH_PATIENCE)
        except TimeoutError:
            self._trouble = "what decides questions does not answer"
        except Exception as error:
            self._trouble = str(error) if isinstance(error, IncrowdError) else "something unforeseen"
        if self._trouble != before:
            logger.error("%s", self._trouble) if self._trouble else logger.info("all is well again")

    def _readiness(self) -> float:
        return float(not self.not_ready)

    def _refuse(self, outcome: str, status: int, message: str) -> Reply:
        self.metrics.count(outcome)
        return error_reply(status, message)

    async def _treat(self, client: Client, body: bytes) -> Reply:
        """Decide in the background, wait for the clock, reply; what comes too late stays here."""
        arrived = monotonic()
        work = asyncio.create_task(self._decide(client, body, arrived))
        self._working.add(work)
        work.add_done_callback(self._working.discard)
        await asyncio.wait({work}, timeout=self.clock.last)
        taken = monotonic() - arrived
        decision = work.result() if work.done() else await self._too_late(client, taken)
        if decision.refusal:
            return self._refuse(decision.outcome, 400, decision.refusal)
        self.metrics.count(decision.outcome)
        reply = Reply(200, self._body(decision, body))
        due = self.clock.due(taken)
        await asyncio.sleep(arrived + due - monotonic())
        self.metrics.replied(work=taken, total=monotonic() - arrived, deadline=self.clock.kept(taken))
        return reply

    def _body(self, decision: Decision, body: bytes) -> bytes:
        if decision.parts:
            values = {part.query.attribute: part.answer.values for part in decision.parts if part.query}
            seed = b"".join(part.query.key for part in decision.parts if part.query)
            return padded(values, key=self._padding, seed=seed)
        seed = decision.query.key if decision.query else body
        return padded(decision.answer.values, key=self._padding, seed=seed)

    async def _decide(self, client: Client, body: bytes, arrived: float) -> Decision:
        """Return what may leave, once ledger and audit log are on the disk; nothing if anything goes wrong.

        Several attributes are decided one after the other, each together with those before it.
        """
        loop = asyncio.get_running_loop()
        understood = await loop.run_in_executor(self._quick, self._understand, body)
        if isinstance(understood, Decision):
            return await self._decide_one(client, understood, arrived)
        parts = [await self._decide_one(client, query, arrived) for query in understood]
        if len(parts) == 1:
            return parts[0]
        failed = [part for part in parts if part.outcome == "error"]
        outcome = "error" if failed else "answered" if any(part.answer.values for part in parts) else "empty"
        return Decision(None, Answer(), outcome, parts=tuple(parts))

    async def _decide_one(self, client: Client, asked: Query | Decision, arrived: float) -> Decision:
        loop = asyncio.get_running_loop()
        decision = asked
        if isinstance(decision, Query):
            decision = await loop.run_in_executor(self._quick, self._look_up, client, decision)
        if isinstance(decision, Query):
            with ExitStack() as place:
                place.enter_context(self.admission.enter(client.organisation))
                async with self._turn(client):
                    decision = await self._work(client, decision)
                # The place is free when the reply leaves: before, it would tell when the question was decided.
                spent = monotonic() - arrived
                loop.call_later(self.clock.due(spent) - spent, place.pop_all().close)
        try:
            record = self._record(client, decision, monotonic() - arrived)
            await asyncio.wrap_future(self.audit.append(record))
        except Exception as error:
            log_error(error)
            return Decision(decision.query, Answer(), "error")
        return decision

    async def _too_late(self, client: Client, taken: float) -> Decision:
        """Write down that a reply leaves empty because its decision is not there yet; that follows later."""
        decision = Decision(None, Answer(), "error", rule=LATE)
        try:
            await asyncio.wrap_future(self.audit.append(self._record(client, decision, taken)))
        except Exception as error:
            log_error(error)
        return decision

    def _turn(self, client: Client) -> asyncio.Semaphore:
        """Questions of one ledger are decided one after the other; where there are several, each holds one thread."""
        shared = self.policy.budget.scope == "everyone"
        scope = "" if shared else client.organisation
        turn = self._turns.get(scope)
        if turn is None:
            turn = self._turns[scope] = asyncio.Semaphore(threads_of(self.policy) if shared else 1)
        return turn

    def _understand(self, body: bytes) -> tuple[Query, ...] | Decision:
        """Understand a question, or say why it cannot be."""
        try:
            return read_queries(body, self.policy)
        except InputError as error:
            return Decision(None, Answer(), "refused", str(error))
        except Exception as error:
            log_error(error)
            return Decision(None, Answer(), "malformed", "query: it could not be read")

    def _look_up(self, client: Client, query: Query) -> Query | Decision:
        """Look whether a question was answered before; only new ones queue to be decided."""
        try:
            found = self.decisions.repeated(client, query)
        except Exception as error:
            log_error(error)
            return Decision(query, Answer(), "error")
        return query if found is None else _decision(query, found)

    async def _work(self, client: Client, query: Query) -> Decision:
        try:
            return _decision(query, await asyncio.wrap_future(self.decisions.decide(client, query)))
        except Exception as error:
            log_error(error)
            return Decision(query, Answer(), "error")

    def _record(self, client: Client, decision: Decision, seconds: float) -> dict[str, Any]:
        query = decision.query
        return {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "id": token_hex(8),
            "client": client.name,
            "organisation": client.organisation,
            "attribute": query.attribute if query else "",
            "query": blake2b(query.key, key=self._naming, digest_size=16).hexdigest() if query else "",
            "outcome": decision.outcome,
            "released": len(decision.answer.values),
            "rule": decision.rule,
            "repeated": decision.repeated,
            "ms": round(seconds * 1000, 1),
        }


def _decision(query: Query, found: Decided) -> Decision:
    outcome = "answered" if found.answer.values else "empty"
    return Decision(query, found.answer, outcome, rule=found.rule, repeated=found.repeated)


def error_reply(status: int, message: str) -> Reply:
    """Return a refusal that depends on the request alone, never on the data."""
    headers = dict(HEADERS)
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    if status == 503:
        headers["retry-after"] = "1"
    return Reply(status, json.dumps({"error": message}, ensure_ascii=False).encode(), headers)


class BodyTooLarge(InputError):
    """The body is larger than allowed."""


class TooSlow(InputError):
    """The body did not arrive in time."""


class Busy(InputError):
    """As many queries as allowed are being decided."""


async def read_body(chunks: AsyncIterator[bytes], *, most: int, seconds: float) -> bytes:
    """Return a request's body unless it is too large or too slow; never hold more than is allowed."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in chunks:
                body += chunk
                if len(body) > most:
                    raise BodyTooLarge(
                        f"body: expected at most {most} bytes, got more; ask for less at a time"
                    )
    except TimeoutError:
        raise TooSlow(f"body: expected all of it within {seconds:g} seconds, got only a part") from None
    return bytes(body)


class Admission:
    """Lets in only so many queries at once, and only a part of them from one organisation.

    Whoever does not fit is told to come back, before anything of theirs is looked at: it depends on the
    load alone.
    """

    def __init__(self, most: int, each: int) -> None:
        self._most = most
        self._each = each
        self._inside: Counter[str] = Counter()

    @property
    def inside(self) -> int:
        """How many queries are being decided."""
        return self._inside.total()

    @contextmanager
    def enter(self, organisation: str, *, alone: bool = False) -> Iterator[None]:
        """Hold a place for one query, or raise :class:`Busy`; `alone` only if the organisation holds none."""
        if self.inside >= self._most or self._inside[organisation] >= (1 if alone else self._each):
            raise Busy("too many queries at once; ask again in a second")
        self._inside[organisation] += 1
        try:
            yield
        finally:
            self._inside[organisation] -= 1
            if not self._inside[organisation]:
                del self._inside[organisation]
