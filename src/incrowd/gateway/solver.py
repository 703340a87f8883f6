"""Thinning out an answer in a process of its own, which the system stops when it wants too much.

What is asked decides how hard the search is, and strangers ask. So the search never runs inside the
gateway: it runs in children with caps on memory and time, and whatever goes wrong there means that
nothing is released.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from incrowd.errors import IncrowdError
from incrowd.gateway.nursery import BORN, GONE, NUMBER_BYTES

if TYPE_CHECKING:
    from incrowd.measures.release import HolderIndex, PatternCounts, Suppression, SuppressOptions

QUEUE_SECONDS = 10.0
START_SECONDS = 300.0
"""Compiling on a busy machine takes its time."""


@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """How many children search, and what each may use."""

    children: int = 2
    memory: int = 2**30
    """Bytes each child may map beyond what it starts with."""
    grace: float = 0.25
    """Seconds a child may be late before it is killed."""


@dataclass(frozen=True)
class _Child:
    pid: int
    talk: Connection


class Solver:
    """A pool of capped children that thin out answers.

    Starting takes seconds (everything is compiled first); `close` ends every child.
    """

    def __init__(self, options: SolverOptions | None = None) -> None:
        self.options = options or SolverOptions()
        self.replaced = 0
        """How many children had to be replaced."""
        self._lock = Lock()
        self._closed = False
        self._idle: SimpleQueue[_Child] = SimpleQueue()
        self._start_nursery()
        for _ in range(self.options.children):
            self._idle.put(self._bear())

    def __repr__(self) -> str:
        return f"Solver({self.options.children} children)"

    @property
    def alive(self) -> bool:
        """True while questions can be asked."""
        return not self._closed and self._nursery.poll() is None

    def suppress(
        self, holders: PatternCounts | HolderIndex | Any, threshold: int, options: SuppressOptions
    ) -> Suppression | None:
        """Thin out an answer within `options.budget`, or return None: out of time, out of memory, or broken."""
        try:
            # Waiting for a child is the load's fault, not the question's: it does not use up its budget.
            child = self._idle.get(timeout=QUEUE_SECONDS)
        except Empty:
            return None
        try:
            return self._ask(child, (holders, threshold, options))
        except (EOFError, OSError):
            child = self._replace(child)
            return None
        finally:
            self._idle.put(child)

    def close(self) -> None:
        """End every child at once."""
        with self._lock:
            self._closed = True
            self._control.close()
        try:
            self._nursery.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._nursery.kill()
            self._nursery.wait()
        with suppress(Empty):
            while True:
                self._idle.get_nowait().talk.close()

    def _ask(self, child: _Child, question: tuple[Any, int, SuppressOptions]) -> Suppression | None:
        child.talk.send(question)
        if not child.talk.poll(question[2].budget.seconds + self.options.grace):
            raise TimeoutError
        answer: Suppression | None = child.talk.recv()
        return answer

    def _replace(self, child: _Child) -> _Child:
        child.talk.close()
        with self._lock:
            self.replaced += 1
            if self._closed:
                return child
            try:
                self._order(GONE, child.pid)
                self._receive(1)
                return self._bear_locked()
            except OSError:  # the nursery itself is gone
                self._control.close()
                self._nursery.kill()
                self._nursery.wait()
                self._start_nursery()
                return self._bear_locked()

    def _bear(self) -> _Child:
        with self._lock:
            return self._bear_locked()

    def _bear_locked(self) -> _Child:
        ours, theirs = socket.socketpair()
        order = BORN + self.options.memory.to_bytes(NUMBER_BYTES, "big")
        socket.send_fds(self._control, [order], [theirs.fileno()])
        theirs.close()
        pid = int.from_bytes(self._receive(NUMBER_BYTES), "big")
        return _Child(pid, Connection(ours.detach()))

    def _start_nursery(self) -> None:
        self._control, theirs = socket.socketpair()
        command = [sys.executable, "-m", "incrowd.gateway.nursery", str(theirs.fileno())]
        self._nursery = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        deadline = monotonic() + START_SECONDS
        self._control.settimeout(1.0)
        while monotonic() < deadline and self._nursery.poll() is None:
            with suppress(TimeoutError):
                if self._control.recv(1) == BORN:
                    self._control.settimeout(30.0)
                    return
        self._control.close()
        self._nursery.kill()
        self._nursery.wait()
        raise IncrowdError(
            f"the solver: expected a child process that is ready within {START_SECONDS:g} s, got none. "
            "Is there enough memory? Try: incrowd release q on a small file."
        )

    def _order(self, what: bytes, number: int) -> None:
        self._control.sendall(what + number.to_bytes(NUMBER_BYTES, "big"))

    def _receive(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            more = self._control.recv(count - len(received))
            if not more:
                raise ConnectionError
            received += more
        return received
