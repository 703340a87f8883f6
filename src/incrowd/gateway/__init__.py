"""A service in front of a database that answers questions about a crowd without giving away its people.

As a library: ``Gateway(connect(url), load_policy(path), state).answer(Client(name, organisation), query)``, with
queries from `query_from_json` or `query_from_text`. Everything loads on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.gateway.core import Gateway
    from incrowd.gateway.databases import connect
    from incrowd.gateway.policy import GatewayPolicy, load_policy
    from incrowd.gateway.query import Answer, Client, Query, query_from_json
    from incrowd.gateway.text_query import query_from_text

__all__ = [
    "Answer",
    "Client",
    "Gateway",
    "GatewayPolicy",
    "Query",
    "connect",
    "load_policy",
    "query_from_json",
    "query_from_text",
]

lazy_names(
    __name__,
    {
        ".core": "Gateway",
        ".databases": "connect",
        ".policy": "GatewayPolicy load_policy",
        ".query": "Answer Client Query query_from_json",
        ".text_query": "query_from_text",
    },
)
