"""Runs the web interface until it is told to stop."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from incrowd.errors import InputError, MissingExtra
from incrowd.web.options import HOST, Limits, ServeOptions

GRACE_SECONDS = 2


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


def run(listening: Listening) -> None:
    """Answer until Ctrl-C or SIGTERM. No access log: addresses hold the token, and what people look at is theirs."""
    try:
        import uvicorn

        from incrowd.web.app import create_app
    except ImportError as missing:
        if isinstance(missing, MissingExtra) or (missing.name or "").startswith("incrowd"):
            raise
        raise MissingExtra("the web interface", "web") from None
    config = uvicorn.Config(
        create_app(listening.options),
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    # Ctrl-C is how one stops it, not a mishap; the server has shut down by the time it is raised.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening.socket])
