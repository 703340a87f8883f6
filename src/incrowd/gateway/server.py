"""Running the gateway: who is connected and who makes room, where it listens, how it stops."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import resource
import signal
import socket
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

from incrowd.errors import InputError, MissingExtra
from incrowd.gateway.http import Asgi, Receive, Scope, Send, admin_app, gateway_app
from incrowd.gateway.monitoring import logger
from incrowd.gateway.policy import LimitPolicy
from incrowd.gateway.service import GatewayService, error_reply

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Peer = tuple[str, int]
"""The other side of a connection: its address and port."""
PREFIX = 64
"""Whoever has an IPv6 address has all addresses that share its first 64 bits."""


class Held(Protocol):
    """One connection."""

    transport: Any

    @property
    def busy(self) -> bool:
        """True while a request is being answered."""


class Connections:
    """Who is connected. Of those that have shown no key, one address may hold only so many.

    When an address has more, or all places are taken, whoever has shown no key and waits longest makes room. So
    somebody with a key always gets in, however many connections strangers hold or open. Behind a proxy all clients
    have the proxy's address, so proxies are not counted.

    Parameters
    ----------
    most
        Places in all.
    each
        How many of one address may have shown no key.
    proxies
        For these addresses `each` does not hold.
    """

    def __init__(self, most: int, each: int, proxies: Iterable[Network] = ()) -> None:
        self._most, self._each, self._proxies = most, each, tuple(proxies)
        self._unknown: dict[Peer, Held] = {}
        self._of_source: defaultdict[str, dict[Peer, Held]] = defaultdict(dict)
        self._known: set[Peer] = set()

    def __len__(self) -> int:
        return len(self._unknown) + len(self._known)

    def add(self, peer: Peer, connection: Held) -> None:
        """Take in a new connection, and close the oldest one without a key if there are too many."""
        source = self._source(peer[0])
        self._unknown[peer] = self._of_source[source][peer] = connection
        if source and len(self._of_source[source]) > self._each:
            self._make_room(self._of_source[source], peer)
        elif len(self) > self._most:
            self._make_room(self._unknown, peer)

    def prove(self, peer: Peer) -> None:
        """Note that a key of this gateway came through this connection."""
        if peer in self._unknown:
            self.remove(peer)
            self._known.add(peer)

    def is_known(self, peer: Peer) -> bool:
        """Tell whether a key came through it."""
        return peer in self._known

    def remove(self, peer: Peer) -> None:
        """Forget a connection that was closed."""
        self._known.discard(peer)
        if self._unknown.pop(peer, None) is not None:
            source = self._source(peer[0])
            del self._of_source[source][peer]
            if not self._of_source[source]:
                del self._of_source[source]

    def _make_room(self, among: dict[Peer, Held], newest: Peer) -> None:
        """Close the oldest that is not being answered; if all others are, the newest."""
        idle = (peer for peer, held in among.items() if not held.busy and peer != newest)
        chosen = next(chain(idle, [newest]))
        held = among[chosen]
        self.remove(chosen)
        held.transport.close()

    def _source(self, host: str) -> str:
        """Return what counts as one address; empty for a proxy, and for what has no address."""
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return ""
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(address in network for network in self._proxies):
            return ""
        if isinstance(address, ipaddress.IPv6Address):
            return str(ipaddress.ip_network((int(address), PREFIX), strict=False))
        return str(address)


# Running the gateway: where it listens, how it stops, how it writes what happens.

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError:
    raise MissingExtra("the gateway's web interface", "gateway") from None

Message = MutableMapping[str, Any]
IDLE_SECONDS = 20
FIRST_SECONDS = 5
"""How long a connection that has shown no key may send nothing complete."""
CONNECTIONS = 1000
WAITING = 4096
"""Connections that the system holds until they are taken in; one that finds no room is tried again after a second."""
TAKEN_AT_ONCE = 100
"""Connections that are taken in before others get a turn: replies are due meanwhile."""
SPARE_HANDLES = 200
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
    service: GatewayService, address: Address, started: Callable[[int, int], None] | None = None
) -> None:
    """Answer until SIGTERM or Ctrl-C, then finish what was begun and stop.

    `started` is called with the two ports once connections can be made.
    """
    limits = service.policy.limits
    public, admin = _server(gateway_app(service), limits), _server(admin_app(service), limits)
    if not _is_loopback(address.host) and limits.proxies == LimitPolicy.proxies:
        logger.warning(
            "limits.proxies does not name the proxy: all clients that come through it share the %d connections "
            "that one address may hold before it shows a key",
            limits.strangers,
        )
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
            await _widen({public: door, admin: side_door}, listening)
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


async def _widen(
    servers: Mapping[uvicorn.Server, socket.socket], listening: list[asyncio.Task[None]]
) -> None:
    """Let the system hold more connections than asyncio, which has one number for both, takes in at a time."""
    while not all(server.started for server in servers) and not any(task.done() for task in listening):
        await asyncio.sleep(0.01)
    for door in servers.values():
        door.listen(WAITING)


def _stopper(service: GatewayService, *servers: uvicorn.Server) -> Callable[[], None]:
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


def _protocol(connections: Connections) -> type[_IdleTimeout]:
    """Return the protocol of one server, which shares its list of connections."""
    return type("_Counted", (_IdleTimeout,), {"connections_of_server": connections})


class _IdleTimeout(H11Protocol):
    """Closes connections on which no request was completed for a while, however slowly bytes drip in.

    One that has shown no key yet gets less time.
    """

    connections_of_server: Connections

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._last_cycle: object = None
        self._address: tuple[str, int] = tuple((transport.get_extra_info("peername") or ("", id(self)))[:2])
        self._check = self.loop.call_later(FIRST_SECONDS, self._close_if_idle)
        self.connections_of_server.add(self._address, self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        self.connections_of_server.remove(self._address)
        super().connection_lost(exc)

    @property
    def busy(self) -> bool:
        """True while a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _close_if_idle(self) -> None:
        if not self.busy and self.cycle is self._last_cycle:
            self.transport.close()
            return
        self._last_cycle = self.cycle
        known = self.connections_of_server.is_known(self._address)
        self._check = self.loop.call_later(IDLE_SECONDS if known else FIRST_SECONDS, self._close_if_idle)


def guarded(app: Asgi, connections: Connections) -> Asgi:
    """Refuse requests that are too large before they are read or that two readers would read differently."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope.get("headers", [])
        names = [name for name, _ in headers]
        refusal: tuple[int, str] | None = None
        if sum(len(name) + len(value) + 4 for name, value in headers) + len(scope["raw_path"]) > HEADER_BYTES:
            refusal = 431, f"expected at most {HEADER_BYTES} bytes of headers, got more"
        elif b"content-length" in names and b"transfer-encoding" in names:
            refusal = 400, "expected Content-Length or Transfer-Encoding, got both"
        elif names.count(b"authorization") > 1:
            refusal = 400, "expected one Authorization header, got several"

        async def sending(message: Message) -> None:
            answered = message["type"] == "http.response.start" and message["status"] == 200
            if answered and scope["path"].startswith("/v1/"):  # these paths answer with 200 to a key only
                connections.prove(tuple(scope["client"] or ("", 0)))
            await send(message)

        if refusal is not None:
            await _refuse(send, *refusal)
            return
        await app(scope, receive, sending)

    return wrapped


async def _refuse(send: Send, status: int, message: str) -> None:
    reply = error_reply(status, message)
    named = {**reply.headers, "connection": "close", "content-length": str(len(reply.body))}
    headers = [(name.encode(), value.encode()) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body})


class _WithoutSignals(uvicorn.Server):
    """Leaves signals to us: two servers stop together."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        made = socket.create_server((host, port), family=family, backlog=WAITING)
    except OSError as error:
        raise InputError(
            f"{host} port {port}: expected a free port of this machine, got '{error.strerror}'. "
            "Choose others with --port and --admin-port."
        ) from None
    # Opened anew by its number it knows that it speaks TCP, and only then asyncio sends small packets at once:
    # otherwise replies wait 40 ms for the other side to acknowledge their headers.
    return socket.socket(fileno=made.detach())


def _most_connections() -> int:
    """As many as there are handles for, with some left for files."""
    handles, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, min(CONNECTIONS, handles - SPARE_HANDLES))


def _server(app: Asgi, limits: LimitPolicy) -> uvicorn.Server:
    connections = Connections(_most_connections(), limits.strangers, limits.proxy_networks)
    return _WithoutSignals(
        uvicorn.Config(
            guarded(app, connections),
            http=_protocol(connections),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=TAKEN_AT_ONCE,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            h11_max_incomplete_event_size=HEADER_BYTES,
        )
    )
