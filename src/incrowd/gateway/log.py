"""The service's own log: one JSON object a line on standard error, never what an error quotes."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path

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
