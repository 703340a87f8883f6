"""The process in which questions are decided: it holds the data, the ledger and the solvers.

When the gateway goes away, however rudely, its end of the socket closes and this process ends at once; the ledger
is on the disk.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from concurrent.futures import Future
from multiprocessing.connection import Connection
from threading import Lock
from typing import TYPE_CHECKING, Any

from incrowd.errors import IncrowdError
from incrowd.gateway.log import log_error, log_to_stderr

if TYPE_CHECKING:
    from pathlib import Path

    from incrowd.gateway.desk import DeskHere
    from incrowd.gateway.policy import Policy

MAY_BE_ASKED = ("decide", "explain", "support", "refresh")


def open_desk(url: str, policy: Policy, state: Path) -> DeskHere:
    """Open everything that decisions need; the first time this takes a snapshot."""
    from incrowd.gateway.core import Gateway
    from incrowd.gateway.databases import connect
    from incrowd.gateway.desk import DeskHere
    from incrowd.gateway.solver import Solver, SolverOptions

    solver = Solver(SolverOptions(memory=policy.limits.solver_memory_mib * 2**20))
    try:
        return DeskHere(Gateway(connect(url), policy, state, solver=solver), solver)
    except BaseException:
        solver.close()
        raise


def main(talk: Connection) -> None:
    """Answer what comes through the socket until it closes."""
    from incrowd.gateway.desk import plain

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # they are for the gateway, which then ends us
    os.umask(0o077)
    os.nice(5)  # replies that are due go before decisions
    log_to_stderr()
    try:
        desk = open_desk(*talk.recv())
    except IncrowdError as error:
        talk.send(plain(error))
        return
    except Exception as error:
        log_error(error)
        return
    talk.send(desk.gateway.snapshot.number)
    work(talk, desk)
    desk.close()


def work(talk: Connection, desk: DeskHere) -> None:
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
            deciding = getattr(desk, what)(*arguments)
            deciding.add_done_callback(lambda done, n=number, w=what: send_back(n, w, done))


if __name__ == "__main__":
    main(Connection(socket.socket(fileno=int(sys.argv[1])).detach()))
