"""What `incrowd serve` can be told, and a port of our own to serve at."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from incrowd.errors import InputError

HOST = "127.0.0.1"
"""Only this machine can reach the server. From elsewhere: an SSH tunnel to the same port."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much one request may bring along."""

    upload_bytes: int = 2 * 2**30
    """All files of one upload together."""
    upload_files: int = 20
    form_bytes: int = 2**20
    """Everything that is no upload: drafts, changes, options."""
    jobs: int = 2
    """Jobs that run at a time; others wait."""
    kept_results: int = 40
    """Finished jobs whose results stay reachable; the oldest go first."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """Which crowd is shown, at which port, and who may see it."""

    crowd: Path
    port: int
    gateway: Path | None = None
    """Folder of a gateway's state, for its report."""
    limits: Limits = field(default_factory=Limits)
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """Whoever starts the server passes it on once, in the address; the browser then keeps a cookie."""
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def address(self) -> str:
        """The address to open, with the token."""
        return f"http://{HOST}:{self.port}/?token={self.token}"

    @property
    def hosts(self) -> frozenset[str]:
        """The names under which a browser may ask for us; another one is a DNS rebinding attack."""
        return frozenset(f"{name}:{self.port}" for name in (HOST, "localhost"))

    @property
    def cookie(self) -> str:
        """The cookie's name. Browsers share cookies between ports, so the port is part of it."""
        return f"incrowd-{self.port}"

    @property
    def form_key(self) -> str:
        """A secret every form of ours carries, so that no other page can send one in the person's name."""
        return hmac.new(self.session.encode(), b"form", hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Listening:
    """A port that is ours, before anybody is answered."""

    options: ServeOptions
    socket: socket.socket


@contextmanager
def listen(
    crowd: Path, port: int = 0, *, gateway: Path | None = None, limits: Limits | None = None
) -> Iterator[Listening]:
    """Take a port on the loopback address. The address is known before the server runs."""
    # With the protocol named asyncio sends small packets at once, instead of waiting 40 ms for an acknowledgement.
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((HOST, port))
        except OSError:
            raise InputError(
                f"--port: {port} is taken on this machine. Give another one, or 0 for any."
            ) from None
        # From here on a browser that is quicker than we are waits instead of being refused.
        taken.listen()
        number = int(taken.getsockname()[1])
        yield Listening(
            ServeOptions(crowd=crowd, port=number, gateway=gateway, limits=limits or Limits()), taken
        )
    finally:
        taken.close()
