"""Where questions are decided: in threads of this process, or in a worker process.

Deciding is work for processors and for Python's lock: beside it replies would leave late, and how late would depend
on the data. So the process that replies (`service.py`) hands questions to a worker process, which holds the data,
the ledger and the solvers. It is started as `python -m incrowd.gateway.worker` with one end of a socket. When the
replying process goes away, however rudely, the socket closes and the worker ends at once; the ledger is on the
disk.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any, Protocol

from incrowd.errors import IncrowdError, InputError
from incrowd.gateway.cache import Cache
from incrowd.gateway.core import Decided, Gateway
from incrowd.gateway.databases import connect
from incrowd.gateway.monitoring import log_error, log_to_stderr, logger
from incrowd.gateway.policy import GatewayPolicy
from incrowd.gateway.query import Answer, Client, Explanation, Query
from incrowd.gateway.report import Support, support_of
from incrowd.gateway.solver import Solver, SolverOptions


class DecisionService(Protocol):
    """Whoever decides questions. What takes time comes as a future; one that failed was logged where it failed."""

    @property
    def alive(self) -> bool:
        """True while questions can be decided."""

    def repeated(self, client: Client, query: Query) -> Decided | None:
        """Return at once what this question was answered before, if that is at hand."""

    def decide(self, client: Client, query: Query) -> Future[Decided]:
        """Decide a question and write it into the ledger."""

    def explain(self, query: Query, client: Client | None) -> Future[Explanation]:
        """Say how a question would be answered and why."""

    def support(self, key: bytes) -> Future[Support]:
        """Say what the current snapshot can give; the key breaks ties."""

    def budget(self, client: Client) -> Future[dict[str, Any]]:
        """Say what a client may still ask."""

    def trouble(self, audited: int) -> Future[str]:
        """Say why questions cannot be answered well now; empty while all is well.

        `audited`: how many records the audit log holds.
        """

    def refresh(self) -> Future[int]:
        """Take a new snapshot if one is due; return the number of the one in use."""

    def close(self) -> None:
        """Stop deciding and let go of everything."""


def threads_of(policy: GatewayPolicy) -> int:
    """How many questions are decided at once: more than there are processors would only make all of them late."""
    return min(policy.limits.concurrency, max(2, os.cpu_count() or 2))


class DecisionThreads:
    """Decides in threads of this process."""

    def __init__(self, gateway: Gateway, solver: Solver | None = None) -> None:
        self.gateway = gateway
        self._solver = solver
        self._pool = ThreadPoolExecutor(threads_of(gateway.policy), thread_name_prefix="decide")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="aside")
        """For the provider's own questions and for snapshots, which may take long."""
        self._watch = ThreadPoolExecutor(1, thread_name_prefix="watch")

    @property
    def alive(self) -> bool:
        """True while questions can be decided."""
        return self._solver is None or self._solver.alive

    def repeated(self, client: Client, query: Query) -> Decided | None:
        """Return at once what this question was answered before, if that is at hand."""
        return self.gateway.repeated(client, query)

    def decide(self, client: Client, query: Query) -> Future[Decided]:
        """Decide a question and write it into the ledger."""
        return self._pool.submit(_hide_errors, self.gateway.decide, client, query)

    def explain(self, query: Query, client: Client | None) -> Future[Explanation]:
        """Say how a question would be answered and why."""
        return self._aside.submit(_hide_errors, self.gateway.explain, query, client)

    def support(self, key: bytes) -> Future[Support]:
        """Say what the current snapshot can give; the key breaks ties."""

        return self._aside.submit(_hide_errors, support_of, self.gateway, self.gateway.policy, key)

    def budget(self, client: Client) -> Future[dict[str, Any]]:
        """Say what a client may still ask."""
        return self._watch.submit(_hide_errors, self.gateway.budget, client)

    def trouble(self, audited: int) -> Future[str]:
        """Say why questions cannot be answered well now; empty while all is well."""
        return self._watch.submit(_hide_errors, self._trouble, audited)

    def refresh(self) -> Future[int]:
        """Take a new snapshot if one is due; return the number of the one in use."""
        return self._aside.submit(_hide_errors, self._refresh)

    def close(self) -> None:
        """Finish what is being decided, then let go of everything."""
        self._pool.shutdown(cancel_futures=True)
        self._aside.shutdown(cancel_futures=True)
        self._watch.shutdown(cancel_futures=True)
        self.gateway.close()
        if self._solver is not None:
            self._solver.close()

    def _trouble(self, audited: int) -> str:
        if self._solver is not None and not self._solver.alive:
            return "the solver is not running"
        return self.gateway.trouble(audited)

    def _refresh(self) -> int:
        return self.gateway.refresh() if self.gateway.due else self.gateway.snapshot.number


def _hide_errors(work: Callable[..., Any], *arguments: Any) -> Any:
    """Let errors that were meant for the provider pass; of others only the kind, since they may quote data."""
    try:
        return work(*arguments)
    except IncrowdError as error:
        raise plain(error) from None
    except Exception as error:
        log_error(error)
        raise IncrowdError(f"unforeseen {type(error).__name__}") from None


def plain(error: IncrowdError) -> IncrowdError:
    """Return an error of the same message that can be sent to another process."""
    return (InputError if isinstance(error, InputError) else IncrowdError)(str(error))


MAY_BE_ASKED = ("decide", "explain", "support", "budget", "trouble", "refresh")


def open_decisions(url: str, policy: GatewayPolicy, state: Path) -> DecisionThreads:
    """Open everything that decisions need; the first time this takes a snapshot."""

    solver = None
    if policy.release.mechanism == "q":  # noisy counts need no search
        solver = Solver(SolverOptions(memory=policy.limits.solver_memory_mib * 2**20))
    try:
        return DecisionThreads(Gateway(connect(url), policy, state, solver=solver), solver)
    except BaseException:
        if solver is not None:
            solver.close()
        raise


def main(talk: Connection) -> None:
    """Answer what comes through the socket until it closes."""

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they are for the gateway, which then ends us
    os.umask(0o077)
    os.nice(5)  # replies that are due go before decisions
    log_to_stderr()
    try:
        decisions = open_decisions(*talk.recv())
    except IncrowdError as error:
        talk.send(plain(error))
        return
    except Exception as error:
        log_error(error)
        return
    talk.send(decisions.gateway.snapshot.number)
    work(talk, decisions)
    decisions.close()


def work(talk: Connection, decisions: DecisionThreads) -> None:
    """Take questions and send back what became of them; return when told to stop."""
    lock = Lock()

    def send_back(number: int, what: str, done: Future[Any]) -> None:
        said = done.exception() or done.result()
        try:
            with lock:
                talk.send((number, what, said))
        except OSError:
            os._exit(0)

    while True:
        try:
            asked = talk.recv()
        except (EOFError, OSError):
            os._exit(0)  # the gateway is gone: nothing decided now could reach anybody
        if asked is None:
            return
        number, what, arguments = asked
        if what in MAY_BE_ASKED:
            deciding = getattr(decisions, what)(*arguments)
            deciding.add_done_callback(lambda done, n=number, w=what: send_back(n, w, done))


if __name__ == "__main__":
    main(Connection(socket.socket(fileno=int(sys.argv[1])).detach()))


CLOSING_SECONDS = 10.0
PATIENCE = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between attempts to start a process that ended."""


class DecisionProcess:
    """Decides in a process of its own, which is replaced when it ends.

    Answers are remembered here, so that repeats need not ask for them; whatever the other process does, they leave
    on time.
    """

    def __init__(self, url: str, policy: GatewayPolicy, state: Path) -> None:
        self._setup = (url, policy, state)
        self._told: Cache[bytes] = Cache(policy.limits.cache_mib * 2**20 // 32, len)
        self._numbers = count()
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = Lock()
        self._closing = Event()
        self._talk: Connection | None = None
        self._start()
        self._reader = Thread(target=self._read, name="decisions", daemon=True)
        self._reader.start()

    @property
    def alive(self) -> bool:
        """True while questions can be decided."""
        return self._talk is not None

    def repeated(self, client: Client, query: Query) -> Decided | None:
        """Return at once what this question was answered before, if that is at hand."""
        snapshot = self._snapshot
        body = self._told.get((client.organisation, snapshot, query.key))
        return None if body is None else Decided(Answer.from_body(body), repeated=True, snapshot=snapshot)

    def decide(self, client: Client, query: Query) -> Future[Decided]:
        """Have a question decided and written into the ledger."""
        deciding: Future[Decided] = self._ask("decide", client, query)
        deciding.add_done_callback(lambda done: self._remember(client, query, done))
        return deciding

    def explain(self, query: Query, client: Client | None) -> Future[Explanation]:
        """Say how a question would be answered and why."""
        return self._ask("explain", query, client)

    def support(self, key: bytes) -> Future[Support]:
        """Say what the current snapshot can give; the key breaks ties."""
        return self._ask("support", key)

    def budget(self, client: Client) -> Future[dict[str, Any]]:
        """Say what a client may still ask."""
        return self._ask("budget", client)

    def trouble(self, audited: int) -> Future[str]:
        """Say why questions cannot be answered well now; empty while all is well."""
        return self._ask("trouble", audited)

    def refresh(self) -> Future[int]:
        """Take a new snapshot if one is due; return the number of the one in use."""
        return self._ask("refresh")

    def close(self) -> None:
        """Let the process finish what it is deciding, then end it."""
        self._closing.set()
        with self._lock:
            if self._talk is not None:
                self._talk.send(None)
        try:
            self._process.wait(CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(CLOSING_SECONDS)

    def _ask(self, what: str, *arguments: Any) -> Future[Any]:
        asked: Future[Any] = Future()
        asked.set_running_or_notify_cancel()  # whoever stops waiting does not stop the decision
        number = next(self._numbers)
        with self._lock:
            try:
                if self._talk is None or self._closing.is_set():
                    raise OSError
                self._waiting[number] = asked
                self._talk.send((number, what, arguments))
                return asked
            except OSError:
                self._waiting.pop(number, None)
        asked.set_exception(_gone())
        return asked

    def _remember(self, client: Client, query: Query, done: Future[Decided]) -> None:
        if not done.cancelled() and done.exception() is None and done.result().kept:
            outcome = done.result()
            self._told.put((client.organisation, outcome.snapshot, query.key), outcome.answer.body)

    def _start(self) -> None:
        """Start the process and wait until it can decide, or raise what it could not start for."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "incrowd.gateway.worker", str(theirs.fileno())]
        self._process = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        talk = Connection(ours.detach())
        try:
            talk.send(self._setup)
            first = talk.recv()
        except (EOFError, OSError):
            first = _gone()
        if isinstance(first, IncrowdError):
            talk.close()
            self._process.wait()
            raise first
        self._snapshot: int = first
        self._talk = talk

    def _read(self) -> None:
        """Hand on what the process says, and replace it when it ends."""
        while not self._closing.is_set():
            talk = self._talk
            if talk is not None:
                self._hand_on(talk)
                self._lose(talk)
            if not self._closing.is_set():
                logger.error("the process that decides ended; starting another")
                self._start_again()

    def _hand_on(self, talk: Connection) -> None:
        while True:
            try:
                number, what, said = talk.recv()
            except (EOFError, OSError):
                return
            if what == "refresh" and not isinstance(said, IncrowdError):
                self._snapshot = said
            asked = self._waiting.pop(number)
            if isinstance(said, IncrowdError):
                asked.set_exception(said)
            else:
                asked.set_result(said)

    def _lose(self, talk: Connection) -> None:
        with self._lock:
            self._talk = None
            talk.close()
            waiting, self._waiting = self._waiting, {}
        for asked in waiting.values():
            asked.set_exception(_gone())
        if not self._closing.is_set():
            self._process.kill()
            self._process.wait()

    def _start_again(self) -> None:
        for seconds in (*PATIENCE, *[PATIENCE[-1]] * 10_000):
            try:
                self._start()
                return
            except IncrowdError as error:
                log_error(error)
            if self._closing.wait(seconds):
                return


def _gone() -> IncrowdError:
    return IncrowdError("the process that decides questions ended")
