"""What a watch must not forget: which lines are crossed, which alerts were decided, which were delivered.

One file of JSON lines that only grows. An alert is on the disk before anybody hears of it, and a delivery is noted
after it happened; so a process killed at any moment leaves an alert that is decided and not delivered, which the next
start delivers, and never one that is lost. Whoever receives alerts tells a repeated one by its id.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

from incrowd.crowd.disk import AS_BYTES, LOCK_NAME, take_lock
from incrowd.errors import CrowdBusy, CrowdDamaged

LOG_NAME = "alerts.log"


@dataclass(frozen=True, kw_only=True)
class Alert:
    """A line was crossed, one way or the other."""

    id: str
    """The same for the same crossing, whoever delivers it and however often."""
    line: str
    """The line's key."""
    crossing: int
    """1 for the first crossing of this line, 2 for the way back, ..."""
    crossed: bool
    """True: onto the wrong side; False: back."""
    value: float | None
    of: int
    position: int | str
    """The post after which it happened: its line in the file that is followed, or the state of the crowd."""
    sentence: str
    time: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return asdict(self)


def alert_id(owner: str, line: str, crossing: int) -> str:
    """Return the name of one crossing."""
    return blake2b(f"{owner}\0{line}\0{crossing}".encode(), digest_size=8).hexdigest()


class AlertLog:
    """The file, and what follows from it. One process at a time holds it."""

    def __init__(self, folder: Path, owner: str) -> None:
        self.owner = owner
        self.alerts: list[Alert] = []
        self.sent: set[tuple[str, str]] = set()
        self.sides: dict[str, tuple[bool, int]] = {}
        """Line -> which side it is on, and how often it was crossed."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = take_lock(folder / LOCK_NAME)
        if lock is None:
            raise CrowdBusy(f"{folder}: another watch uses this state; stop it, or give another --state")
        self._lock = lock
        self._path = folder / LOG_NAME
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | AS_BYTES, 0o600)
        try:
            self._read(drop_unfinished_line(self._file))
        except CrowdDamaged:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file and the lock."""
        os.close(self._file)
        self._lock.release()

    @property
    def position(self) -> int | str:
        """Return the post up to which everything was decided; 0 if nothing was."""
        return self.alerts[-1].position if self.alerts else 0

    def pending(self, sink: str) -> list[Alert]:
        """Return the alerts a sink has not confirmed, oldest first."""
        return [alert for alert in self.alerts if (alert.id, sink) not in self.sent]

    def decide(self, alerts: Iterable[Alert]) -> None:
        """Write alerts down; they count from here on."""
        decided = list(alerts)
        self._write([{"alert": alert.to_dict()} for alert in decided])
        for alert in decided:
            self._take(alert)

    def delivered(self, alert: Alert, sink: str) -> None:
        """Note that a sink has an alert."""
        self._write([{"sent": [alert.id, sink]}])
        self.sent.add((alert.id, sink))

    def _write(self, records: list[dict[str, Any]]) -> None:
        if records:
            os.write(self._file, "".join(json.dumps(record) + "\n" for record in records).encode())
            os.fsync(self._file)

    def _take(self, alert: Alert) -> None:
        self.alerts.append(alert)
        self.sides[alert.line] = alert.crossed, alert.crossing

    def _read(self, data: bytes) -> None:
        try:
            for line in data.splitlines():
                record = json.loads(line)
                if "owner" in record and record["owner"] != self.owner:
                    raise CrowdDamaged(
                        f"{self._path}: this is the state of another person's watch; give another --state"
                    )
                if "alert" in record:
                    self._take(Alert(**record["alert"]))
                elif "sent" in record:
                    self.sent.add((record["sent"][0], record["sent"][1]))
        except (ValueError, TypeError, KeyError, IndexError):
            raise CrowdDamaged(f"{self._path}: not readable; move it away to start the watch anew") from None
        if not data:
            self._write([{"owner": self.owner}])


def drop_unfinished_line(file: int) -> bytes:
    """Cut off a last line that a killed process did not finish; return the rest."""
    os.lseek(file, 0, os.SEEK_SET)
    parts = []
    while part := os.read(file, 2**20):
        parts.append(part)
    data = b"".join(parts)
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.ftruncate(file, whole)
    return data[:whole]
