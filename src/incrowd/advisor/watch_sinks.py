"""Where alerts go. Every sink may be handed the same alert twice and shows it once, as far as it can know."""

from __future__ import annotations

import http.client
import ipaddress
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from incrowd.advisor.watch_policy import WatchPolicy
from incrowd.advisor.watch_state import Alert, drop_unfinished_line
from incrowd.errors import InputError

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
        found.append(JsonLines(policy.jsonl))
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


class JsonLines:
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
