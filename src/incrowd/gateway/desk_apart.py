"""Deciding in a process of its own, seen from the process that replies.

Deciding is work for processors and for Python's lock: beside it replies would leave late, and how late would depend on
the data. `clerk.py` is the other side.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from concurrent.futures import Future
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from incrowd.errors import IncrowdError
from incrowd.gateway.answer import Client, Explanation
from incrowd.gateway.cache import Cache
from incrowd.gateway.log import log_error, logger

if TYPE_CHECKING:
    from incrowd.gateway.core import Outcome
    from incrowd.gateway.policy import Policy
    from incrowd.gateway.query import Query
    from incrowd.gateway.report import Support

CLOSING_SECONDS = 10.0
PATIENCE = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds between attempts to start a process that ended."""


class DeskApart:
    """Decides in a process of its own, which is replaced when it ends.

    Answers are remembered here, so that repeats need not ask for them; whatever the other process does, they leave
    on time.
    """

    def __init__(self, url: str, policy: Policy, state: Path) -> None:
        self._setup = (url, policy, state)
        self._told: Cache[Outcome] = Cache(policy.limits.cache_mib * 2**17, lambda one: len(one.answer.body))
        self._numbers = count()
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = Lock()
        self._closing = Event()
        self._talk: Connection | None = None
        self._start()
        self._reader = Thread(target=self._read, name="desk", daemon=True)
        self._reader.start()

    @property
    def alive(self) -> bool:
        """True while questions can be decided."""
        return self._talk is not None

    def repeated(self, client: Client, query: Query) -> Outcome | None:
        """Return at once what this question was answered before, if that is at hand."""
        return self._told.get((client.organisation, self._snapshot, query.key))

    def decide(self, client: Client, query: Query) -> Future[Outcome]:
        """Have a question decided and written into the ledger."""
        deciding: Future[Outcome] = self._ask("decide", client, query)
        deciding.add_done_callback(lambda done: self._remember(client, query, done))
        return deciding

    def explain(self, query: Query, client: Client | None) -> Future[Explanation]:
        """Say how a question would be answered and why."""
        return self._ask("explain", query, client)

    def support(self, key: bytes) -> Future[Support]:
        """Say what the current snapshot can give; the key breaks ties."""
        return self._ask("support", key)

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

    def _remember(self, client: Client, query: Query, done: Future[Outcome]) -> None:
        if not done.cancelled() and done.exception() is None and done.result().kept:
            outcome = done.result()
            self._told.put((client.organisation, outcome.snapshot, query.key), outcome.as_repeat())

    def _start(self) -> None:
        """Start the process and wait until it can decide, or raise what it could not start for."""
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "incrowd.gateway.clerk", str(theirs.fileno())]
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
