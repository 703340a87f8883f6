"""Where questions are decided. A service hands them to a desk and waits for the clock meanwhile.

`DeskHere` decides in threads of this process; `desk_apart.DeskApart` has another process for it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.errors import IncrowdError, InputError
from incrowd.gateway.answer import Client, Explanation
from incrowd.gateway.log import log_error

if TYPE_CHECKING:
    from incrowd.gateway.core import Gateway, Outcome
    from incrowd.gateway.query import Query
    from incrowd.gateway.report import Support
    from incrowd.gateway.solver import Solver


class Desk(Protocol):
    """Whoever decides questions. What takes time comes as a future; one that failed was logged where it failed."""

    @property
    def alive(self) -> bool:
        """True while questions can be decided."""

    def repeated(self, client: Client, query: Query) -> Outcome | None:
        """Return at once what this question was answered before, if that is at hand."""

    def decide(self, client: Client, query: Query) -> Future[Outcome]:
        """Decide a question and write it into the ledger."""

    def explain(self, query: Query, client: Client | None) -> Future[Explanation]:
        """Say how a question would be answered and why."""

    def support(self, key: bytes) -> Future[Support]:
        """Say what the current snapshot can give; the key breaks ties."""

    def refresh(self) -> Future[int]:
        """Take a new snapshot if one is due; return the number of the one in use."""

    def close(self) -> None:
        """Stop deciding and let go of everything."""


class DeskHere:
    """Decides in threads of this process."""

    def __init__(self, gateway: Gateway, solver: Solver | None = None) -> None:
        self.gateway = gateway
        self._solver = solver
        # More threads than processors would only make all of them late.
        threads = min(gateway.policy.limits.concurrency, max(2, os.cpu_count() or 2))
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="decide")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="aside")
        """For the provider's own questions and for snapshots, which may take long."""

    @property
    def alive(self) -> bool:
        """True while questions can be decided."""
        return self._solver is None or self._solver.alive

    def repeated(self, client: Client, query: Query) -> Outcome | None:
        """Return at once what this question was answered before, if that is at hand."""
        return self.gateway.repeated(client, query)

    def decide(self, client: Client, query: Query) -> Future[Outcome]:
        """Decide a question and write it into the ledger."""
        return self._pool.submit(_discreetly, self.gateway.decide, client, query)

    def explain(self, query: Query, client: Client | None) -> Future[Explanation]:
        """Say how a question would be answered and why."""
        return self._aside.submit(_discreetly, self.gateway.explain, query, client)

    def support(self, key: bytes) -> Future[Support]:
        """Say what the current snapshot can give; the key breaks ties."""
        from incrowd.gateway.report import support_of

        return self._aside.submit(_discreetly, support_of, self.gateway, self.gateway.policy, key)

    def refresh(self) -> Future[int]:
        """Take a new snapshot if one is due; return the number of the one in use."""
        return self._aside.submit(_discreetly, self._refresh)

    def close(self) -> None:
        """Finish what is being decided, then let go of everything."""
        self._pool.shutdown(cancel_futures=True)
        self._aside.shutdown(cancel_futures=True)
        self.gateway.close()
        if self._solver is not None:
            self._solver.close()

    def _refresh(self) -> int:
        return self.gateway.refresh() if self.gateway.due else self.gateway.snapshot.number


def _discreetly(work: Callable[..., Any], *arguments: Any) -> Any:
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
