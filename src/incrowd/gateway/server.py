"""Running the gateway: where it listens, how it stops, how it writes what happens."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from incrowd.errors import InputError, MissingExtra
from incrowd.gateway.http import Asgi, admin_app, gateway_app
from incrowd.gateway.monitoring import logger
from incrowd.gateway.service import Service

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise MissingExtra("the gateway's web interface", "gateway") from None

IDLE_SECONDS = 20
CONNECTIONS = 1000
GRACE_SECONDS = 10
HEADER_BYTES = 16384


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the gateway listens. It speaks plain HTTP, so it stays on this machine unless told otherwise."""

    host: str = "127.0.0.1"
    port: int = 8400
    admin_port: int = 8401
    """For metrics; always on this machine only."""
    behind_proxy: bool = False
    """The operator says that a proxy in front ends TLS and is the only one that can reach this port."""

    def __post_init__(self) -> None:
        if not self.behind_proxy and not _is_loopback(self.host):
            raise InputError(
                f"--host: expected an address of this machine alone (127.0.0.1, ::1 or localhost), got "
                f"'{self.host}'. The gateway speaks plain HTTP: keys and answers would cross the network readable. "
                "Put a proxy that ends TLS in front of it, make sure that only the proxy reaches this port, "
                "and say so with --behind-proxy."
            )
        if self.port == self.admin_port and self.port:
            raise InputError(f"--admin-port: expected another port than --port, got {self.port} for both")


async def serve(
    service: Service, address: Address, started: Callable[[int, int], None] | None = None
) -> None:
    """Answer until SIGTERM or Ctrl-C, then finish what was begun and stop.

    `started` is called with the two ports once connections can be made.
    """
    public, admin = _server(gateway_app(service)), _server(admin_app(service))
    stop = _stopper(service, public, admin)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        with (
            _listen(address.host, address.port) as door,
            _listen("127.0.0.1", address.admin_port) as side_door,
        ):
            ports = door.getsockname()[1], side_door.getsockname()[1]
            listening = [
                asyncio.create_task(public.serve(sockets=[door])),
                asyncio.create_task(admin.serve(sockets=[side_door])),
            ]
            if started is not None:
                started(*ports)
            background = [asyncio.create_task(one) for one in (service.keep_fresh(), service.keep_watch())]
            logger.info("listening on %s port %d, operator port %d", address.host, *ports)
            await asyncio.wait(listening, return_when=asyncio.FIRST_COMPLETED)
            stop()
            await asyncio.gather(*listening)
            for task in background:
                task.cancel()
    finally:
        await service.close()
        logger.info("stopped")


def _stopper(service: Service, *servers: uvicorn.Server) -> Callable[[], None]:
    def stop() -> None:
        service.closing = True
        for server in servers:
            server.should_exit = True

    return stop


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _IdleTimeout(H11Protocol):
    """Closes connections on which no request was completed for a while, however slowly bytes drip in."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._last_cycle: object = None
        self._check = self.loop.call_later(IDLE_SECONDS, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        super().connection_lost(exc)

    def _close_if_idle(self) -> None:
        busy = self.cycle is not None and not self.cycle.response_complete
        if not busy and self.cycle is self._last_cycle:
            self.transport.close()
            return
        self._last_cycle = self.cycle
        self._check = self.loop.call_later(IDLE_SECONDS, self._close_if_idle)


class _WithoutSignals(uvicorn.Server):
    """Leaves signals to us: two servers stop together."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=CONNECTIONS)
    except OSError as error:
        raise InputError(
            f"{host} port {port}: expected a free port of this machine, got '{error.strerror}'. "
            "Choose others with --port and --admin-port."
        ) from None
    # Opened anew by its number it knows that it speaks TCP, and only then asyncio sends small packets at once:
    # otherwise replies wait 40 ms for the other side to acknowledge their headers.
    return socket.socket(fileno=made.detach())


def _server(app: Asgi) -> uvicorn.Server:
    return _WithoutSignals(
        uvicorn.Config(
            app,
            http=_IdleTimeout,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
    )
