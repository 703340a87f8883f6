"""A service in front of a database that answers questions about a crowd without giving away its people.

As a library: ``Gateway(connect(url), load_policy(path), state).answer(Client(name, organisation), query)``, with
queries from `query_from_json` or `query_from_text`. Everything loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from incrowd.gateway.core import Answer, Client, Gateway
    from incrowd.gateway.databases import connect
    from incrowd.gateway.policy import Policy, load_policy
    from incrowd.gateway.query import Query, query_from_json
    from incrowd.gateway.text_query import query_from_text

__all__ = [
    "Answer",
    "Client",
    "Gateway",
    "Policy",
    "Query",
    "connect",
    "load_policy",
    "query_from_json",
    "query_from_text",
]

_HOME = {
    "Answer": "core",
    "Client": "core",
    "Gateway": "core",
    "Policy": "policy",
    "Query": "query",
    "connect": "databases",
    "load_policy": "policy",
    "query_from_json": "query",
    "query_from_text": "text_query",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(
            f"module 'incrowd.gateway' has no attribute {name!r}; it has: {', '.join(__all__)}"
        )
    return getattr(import_module(f"incrowd.gateway.{_HOME[name]}"), name)
