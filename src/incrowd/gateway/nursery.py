"""The process that solvers are born from: it compiles everything once, then each solver is a fork of it.

A solver that was killed is replaced within milliseconds that way. When the gateway goes away, however
rudely, its end of the socket closes and everything here ends.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
from math import ceil
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

BORN, GONE = b"+", b"-"
NUMBER_BYTES = 8


def main(control: socket.socket) -> None:
    """Fork a solver for every socket that is sent here, and end those whose number is sent."""
    from incrowd.measures.release import warm_up

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the gateway, which then ends us
    os.nice(5)  # replies that are due go before searches
    warm_up()
    control.sendall(BORN)
    born: set[int] = set()
    try:
        while True:
            order, handles, _, _ = socket.recv_fds(control, 1 + NUMBER_BYTES, 1)
            if order[:1] == BORN:
                born.add(_bear(control, handles[0], int.from_bytes(order[1:], "big")))
            elif order[:1] == GONE:
                _end(int.from_bytes(order[1:], "big"), born)
                control.sendall(GONE)
            else:
                return
    except (ConnectionError, OSError):
        return
    finally:
        for pid in tuple(born):
            _end(pid, born)


def _bear(control: socket.socket, handle: int, memory: int) -> int:
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


def _end(pid: int, born: set[int]) -> None:
    # Only its parent may do this: until it waits, nobody else can be given the number.
    if pid in born:
        born.discard(pid)
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
    from incrowd.errors import IncrowdError
    from incrowd.measures.release import suppress

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
