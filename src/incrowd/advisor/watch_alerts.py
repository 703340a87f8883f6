"""Alerts: written down before anybody hears of them, then delivered. Killed at any moment, a watch loses none.

The log is one file of JSON lines that only grows: which lines are crossed, which alerts were decided, which were
delivered. An alert is on the disk before it is delivered, and a delivery is noted after it happened; so a process
killed at any moment leaves an alert that is decided and not delivered, which the next start delivers, and never one
that is lost. Every sink may be handed the same alert twice and shows it once, as far as it can know, by its id.
"""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import socket
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from incrowd.advisor.watch_policy import WatchPolicy
from incrowd.crowd.disk import AS_BYTES, LOCK_NAME, take_lock
from incrowd.errors import CrowdBusy, CrowdDamaged, InputError
from incrowd.measures.protocol import Level

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
    level: str = ""
    """For a question of the label: the level it has come to."""

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
        self.levels: dict[str, Level] = {}
        """Question -> the level that was told last."""
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
        if alert.level:
            self.levels[alert.line] = Level(alert.level)

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


TIMEOUT = 3.0


class Sink(Protocol):
    """Somewhere an alert can be delivered to."""

    name: str

    def deliver(self, alert: Alert) -> bool:
        """Deliver an alert; False: not now, try again later."""
        ...


def sinks_of(policy: WatchPolicy, show: Callable[[Alert], None]) -> list[Sink]:
    """Return the sinks a policy names."""
    found: list[Sink] = [Terminal(show)] if policy.terminal else []
    if policy.jsonl is not None:
        found.append(JsonLinesSink(policy.jsonl))
    if policy.webhook is not None:
        found.append(Webhook(policy.webhook))
    if policy.desktop is not None:
        found.append(DesktopFile(policy.desktop))
    if not found:
        raise InputError("policy: alerts go nowhere; name a place under [alerts], or leave terminal = true")
    return found


class Terminal:
    """The screen. What stands there cannot be read back: killed in the very moment, an alert may come twice."""

    name = "terminal"

    def __init__(self, show: Callable[[Alert], None]) -> None:
        self._show = show

    def deliver(self, alert: Alert) -> bool:
        """Print it."""
        self._show(alert)
        return True


class JsonLinesSink:
    """A file that grows by one JSON object an alert; an alert that is in it already is not written again."""

    def __init__(self, path: Path) -> None:
        self.name = f"jsonl:{path}"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        self._there = {_id_of(line) for line in drop_unfinished_line(self._file).splitlines()}

    def deliver(self, alert: Alert) -> bool:
        """Append it, in one write."""
        if alert.id not in self._there:
            os.write(self._file, (json.dumps(alert.to_dict(), ensure_ascii=False) + "\n").encode())
            os.fsync(self._file)
            self._there.add(alert.id)
        return True


def _id_of(line: bytes) -> str:
    try:
        return str(json.loads(line)["id"])
    except (ValueError, TypeError, KeyError):
        return ""


class DesktopFile:
    """A folder, say the desktop, that gets one text file an alert, named after it."""

    def __init__(self, folder: Path) -> None:
        self.name = f"desktop:{folder}"
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def deliver(self, alert: Alert) -> bool:
        """Write the file, whole or not at all."""
        path = self._folder / f"incrowd-alert-{alert.id}.txt"
        draft = path.with_suffix(".tmp")
        draft.write_text(alert.sentence + "\n", encoding="utf-8")
        draft.replace(path)
        return True


class Webhook:
    """A program on this machine; nothing is ever sent to another one.

    The alert's id goes along as ``Idempotency-Key``: a receiver that keeps ids sees every alert once.
    """

    def __init__(self, url: str) -> None:
        self.name = f"webhook:{url}"
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname or parts.username or parts.password:
            raise InputError(f"webhook: expected http://127.0.0.1:PORT/path, got '{url}'")
        self._path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._port = parts.port or 80
        self._address = loopback_address(parts.hostname, self._port)

    def deliver(self, alert: Alert) -> bool:
        """POST it; anything but a 2xx answer means: later."""
        # Straight to the address that was checked: no proxy, no second look-up, no redirect.
        connection = http.client.HTTPConnection(self._address, self._port, timeout=TIMEOUT)
        try:
            body = json.dumps(alert.to_dict(), ensure_ascii=False).encode()
            headers = {"Content-Type": "application/json", "Idempotency-Key": alert.id}
            connection.request("POST", self._path, body, headers)
            return 200 <= connection.getresponse().status < 300
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def loopback_address(host: str, port: int) -> str:
    """Return the address behind a host name, or refuse one that is not this machine's alone."""
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except OSError:
        found = set()
    if not found or not all(ipaddress.ip_address(address.split("%")[0]).is_loopback for address in found):
        raise InputError(
            f"webhook: alerts stay on this machine; expected 127.0.0.1, ::1 or localhost, got '{host}'. "
            "To pass them on, run a program here that does so."
        )
    return min(found)
