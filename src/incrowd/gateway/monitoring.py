"""What the operator sees of a running gateway: its own log, and counts and times; no values, no clients.

The log is one JSON object a line on standard error and never holds what an error quotes. The text format of
Prometheus is a few lines of counters and histograms, so it is written here: no further dependency, no global
registry, and every name and label is fixed below, so that nothing can leak into one.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

logger = logging.getLogger("incrowd.gateway")


def log_error(error: BaseException) -> None:
    """Log what went wrong and where, without the message: it may quote data."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    logger.error("unforeseen %s at %s", type(error).__name__, places)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": time, "level": record.levelname.lower(), "event": record.getMessage()})


def log_to_stderr() -> None:
    """Write one JSON object a line about the service itself; of uvicorn only that something happened."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logging.getLogger("uvicorn").handlers[:] = [logging.NullHandler()]
    logging.getLogger("uvicorn").propagate = False


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass
class Counter:
    """How often something happened, by kind; the kinds are known beforehand."""

    name: str
    help: str
    label: str
    kinds: tuple[str, ...]
    counts: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = dict.fromkeys(self.kinds, 0)

    def add(self, kind: str) -> None:
        """Count one more of a known kind."""
        self.counts[kind] += 1

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        yield from _head(self.name, self.help, "counter")
        for kind, count in self.counts.items():
            yield f'{self.name}{{{self.label}="{kind}"}} {count}'


@dataclass
class Histogram:
    """How long something took, in buckets."""

    name: str
    help: str
    edges: tuple[float, ...] = SECONDS
    counts: list[int] = field(init=False)
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.edges) + 1)

    def observe(self, seconds: float) -> None:
        """Add one time."""
        self.counts[bisect_left(self.edges, seconds)] += 1
        self.total += seconds

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format; its buckets are cumulative."""
        yield from _head(self.name, self.help, "histogram")
        so_far = 0
        for edge, count in zip((*map(str, self.edges), "+Inf"), self.counts, strict=True):
            so_far += count
            yield f'{self.name}_bucket{{le="{edge}"}} {so_far}'
        yield f"{self.name}_sum {self.total:.6f}"
        yield f"{self.name}_count {so_far}"


OUTCOMES = ("answered", "empty", "refused", "unauthorised", "malformed", "too_large", "busy", "error")
"""refused: the query is outside the policy. empty: nothing was released, whatever the reason."""


class Metrics:
    """All numbers of one gateway. Answered and empty are told apart here, so only the operator may look."""

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], float]]] | None = None) -> None:
        self._lock = Lock()
        self._gauges = dict(gauges or {})
        self.requests = Counter("incrowd_gateway_requests_total", "Requests by outcome.", "outcome", OUTCOMES)
        self.replies = Counter(
            "incrowd_gateway_replies_total",
            "Replies by whether they met the first reply deadline.",
            "deadline",
            ("first", "later", "missed"),
        )
        self.work = Histogram(
            "incrowd_gateway_work_seconds", "Time to decide and record an answer, before it waits."
        )
        self.reply = Histogram("incrowd_gateway_reply_seconds", "Time from the request to its reply.")

    def count(self, outcome: str) -> None:
        """Count a request."""
        with self._lock:
            self.requests.add(outcome)

    def replied(self, *, work: float, total: float, deadline: str) -> None:
        """Note how long one query took to decide and until its reply left, and which deadline it met."""
        with self._lock:
            self.work.observe(work)
            self.reply.observe(total)
            self.replies.add(deadline)

    def gauge(self, name: str, help: str, read: Callable[[], float]) -> None:
        """Show a number that is read when somebody looks."""
        self._gauges[name] = (help, read)

    def text(self) -> str:
        """Return everything in Prometheus' text format."""
        with self._lock:
            lines = [
                line for one in (self.requests, self.replies, self.work, self.reply) for line in one.lines()
            ]
        for name, (help, read) in self._gauges.items():
            lines += [*_head(name, help, "gauge"), f"{name} {read():g}"]
        return "\n".join(lines) + "\n"


def _head(name: str, help: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} {help}", f"# TYPE {name} {kind}"
