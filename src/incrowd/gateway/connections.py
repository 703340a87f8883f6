"""Who is connected to the gateway, and who makes room when places are taken."""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import Any, Protocol

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
