"""Thinning out an answer in a process of its own, which the system stops when it wants too much.

What is asked decides how hard the search is, and strangers ask. So the search never runs inside the gateway: it runs in
children with caps on memory and time, and whatever goes wrong there means that nothing is released. A fork server
(`python -m incrowd.gateway.solver`) compiles everything once; each child is a fork of it, so one that was killed is
replaced within milliseconds. When the gateway goes away, its end of the socket closes and everything here ends.

This needs POSIX (fork, Unix sockets, resource limits), and so does the gateway.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
from contextlib import suppress as ignoring
from dataclasses import dataclass
from math import ceil
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.measures.release import (
    HolderIndex,
    PatternCounts,
    Suppression,
    SuppressOptions,
    suppress,
    warm_up,
)

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
        self._start_fork_server()
        for _ in range(self.options.children):
            self._idle.put(self._fork_child())

    def __repr__(self) -> str:
        return f"Solver({self.options.children} children)"

    @property
    def alive(self) -> bool:
        """True while questions can be asked."""
        return not self._closed and self._fork_server.poll() is None

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
            self._fork_server.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._fork_server.kill()
            self._fork_server.wait()
        with ignoring(Empty):
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
                self._order(ENDED, child.pid)
                self._receive(1)
                return self._fork_child_locked()
            except OSError:  # the fork server itself is gone
                self._control.close()
                self._fork_server.kill()
                self._fork_server.wait()
                self._start_fork_server()
                return self._fork_child_locked()

    def _fork_child(self) -> _Child:
        with self._lock:
            return self._fork_child_locked()

    def _fork_child_locked(self) -> _Child:
        ours, theirs = socket.socketpair()
        order = FORKED + self.options.memory.to_bytes(NUMBER_BYTES, "big")
        socket.send_fds(self._control, [order], [theirs.fileno()])
        theirs.close()
        pid = int.from_bytes(self._receive(NUMBER_BYTES), "big")
        return _Child(pid, Connection(ours.detach()))

    def _start_fork_server(self) -> None:
        self._control, theirs = socket.socketpair()
        command = [sys.executable, "-m", "incrowd.gateway.solver", str(theirs.fileno())]
        self._fork_server = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
        )
        theirs.close()
        deadline = monotonic() + START_SECONDS
        self._control.settimeout(1.0)
        while monotonic() < deadline and self._fork_server.poll() is None:
            with ignoring(TimeoutError):
                if self._control.recv(1) == FORKED:
                    self._control.settimeout(30.0)
                    return
        self._control.close()
        self._fork_server.kill()
        self._fork_server.wait()
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


FORKED, ENDED = b"+", b"-"
NUMBER_BYTES = 8


def main(control: socket.socket) -> None:
    """Fork a solver for every socket that is sent here, and end those whose number is sent."""

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the gateway, which then ends us
    os.nice(5)  # replies that are due go before searches
    warm_up()
    control.sendall(FORKED)
    forked: set[int] = set()
    try:
        while True:
            order, handles, _, _ = socket.recv_fds(control, 1 + NUMBER_BYTES, 1)
            if order[:1] == FORKED:
                forked.add(_fork_child(control, handles[0], int.from_bytes(order[1:], "big")))
            elif order[:1] == ENDED:
                _end(int.from_bytes(order[1:], "big"), forked)
                control.sendall(ENDED)
            else:
                return
    except (ConnectionError, OSError):
        return
    finally:
        for pid in tuple(forked):
            _end(pid, forked)


def _fork_child(control: socket.socket, handle: int, memory: int) -> int:
    pid = os.fork()
    if pid == 0:
        control.close()
        try:
            work(Connection(handle), memory)
        finally:
            os._exit(0)
    os.close(handle)
    control.sendall(pid.to_bytes(NUMBER_BYTES, "big"))
    return pid


def _end(pid: int, forked: set[int]) -> None:
    # Only its parent may do this: until it waits, nobody else can be given the number.
    if pid in forked:
        forked.discard(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def work(questions: Connection, memory: int) -> None:
    """Answer one question after the other, within caps that the system enforces."""
    cap_memory(memory)
    while True:
        try:
            holders, threshold, options = questions.recv()
        except (EOFError, OSError):
            return
        cap_time(options.budget.seconds)
        questions.send(_suppress(holders, threshold, options))


def _suppress(holders: Any, threshold: int, options: Any) -> Any:

    try:
        found = suppress(holders, threshold, options=options)
    except (MemoryError, IncrowdError):
        return None
    return None if found.reason.startswith("over_budget") else found


def cap_memory(more: int) -> None:
    """Let this process map so many bytes more than it has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core file would hold people's data


def cap_time(seconds: float) -> None:
    """Have the system end this process if it computes for much longer than asked."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (ceil(used.ru_utime + used.ru_stime + seconds) + 1, hard))


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
