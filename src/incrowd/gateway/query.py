"""What a client asks: one attribute of the people for whom a condition holds.

Queries arrive as JSON (here) or as a line of text (`text_query.py`). Both become the same checked, canonical
value; whatever is not expressly allowed is refused with a message that depends on the question alone, never
on the data.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from incrowd.errors import InputError
from incrowd.gateway.canonical import canonical
from incrowd.gateway.check import Limits, checked
from incrowd.gateway.predicate import (
    EVERYBODY,
    OPERATORS,
    And,
    Between,
    Box,
    Compare,
    Literal,
    Not,
    OneOf,
    Or,
    Predicate,
    plain,
)

__all__ = [
    "EVERYBODY",
    "And",
    "Between",
    "Box",
    "Compare",
    "Limits",
    "Literal",
    "Not",
    "OneOf",
    "Or",
    "Predicate",
    "Query",
    "checked_query",
    "query_from_json",
]

CORNERS = ("south", "west", "north", "east")


@dataclass(frozen=True)
class Query:
    """The values of `attribute` that the people selected by `where` list."""

    attribute: str
    where: Predicate = EVERYBODY

    @cached_property
    def key(self) -> bytes:
        """32 bytes that stand for the question; canonical queries that mean the same share it."""
        return sha256(self.text.encode()).digest()

    @property
    def text(self) -> str:
        """The question as one line of JSON, for the provider's own records."""
        return json.dumps([self.attribute, plain(self.where)], sort_keys=True, separators=(",", ":"))


def checked_query(query: Query, limits: Limits) -> Query:
    """Return the canonical form of a query, or refuse it: names, kinds and size have to fit `limits`."""
    if query.attribute not in limits.attributes:
        raise InputError(f"query: attribute must be one of {_listed(limits.attributes)}")
    return Query(query.attribute, canonical(checked(query.where, limits)))


def query_from_json(document: object, limits: Limits) -> Query:
    """Read a query from parsed JSON.

    Examples
    --------
    >>> limits = Limits(filters={"city": "text", "age": "integer"}, attributes=("movies",))
    >>> young = {"and": [{"column": "city", "op": "=", "value": "Denver"}, {"column": "age", "op": "<", "value": 25}]}
    >>> query_from_json({"attribute": "movies", "where": young}, limits).where.parts[0]
    Compare(column='age', op='<=', value=24)
    """
    if not isinstance(document, Mapping) or "attribute" not in document:
        raise InputError(
            'query: expected {"attribute": ..., "where": ...} or {"text": "SELECT ..."}, got neither; '
            f"attributes that may be asked for: {_listed(limits.attributes)}"
        )
    fields = _fields(document, "query", {"attribute"}, {"where"})
    if not isinstance(fields["attribute"], str):
        raise InputError(f"query: attribute must be one of {_listed(limits.attributes)}")
    where = fields.get("where")
    reader = _Reader(limits)
    return checked_query(
        Query(fields["attribute"], EVERYBODY if where is None else reader.read(where)), limits
    )


@dataclass(frozen=True)
class _Reader:
    limits: Limits

    def read(self, node: object, depth: int = 1) -> Predicate:
        if depth > self.limits.depth:
            raise InputError(f"query: conditions may be nested {self.limits.depth} deep, this goes deeper")
        if not isinstance(node, Mapping) or not node:
            raise InputError("query: a condition must be an object, see the schema for the forms it can have")
        for kind, name in ((And, "and"), (Or, "or")):
            if name in node:
                parts = _list(_fields(node, name, {name})[name], f"'{name}'", self.limits.nodes)
                return kind(tuple(self.read(part, depth + 1) for part in parts))
        if "not" in node:
            return Not(self.read(_fields(node, "not", {"not"})["not"], depth + 1))
        if "box" in node:
            return _box(_fields(node, "box", {"box"})["box"])
        return self._leaf(node)

    def _leaf(self, node: Mapping[Any, Any]) -> Predicate:
        if "in" in node:
            fields = _fields(node, "condition", {"column", "in"})
            return OneOf(fields["column"], tuple(_list(fields["in"], "'in'", self.limits.choices)))
        if "between" in node:
            fields = _fields(node, "condition", {"column", "between"})
            pair = _list(fields["between"], "'between'", 2)
            if len(pair) != 2:
                raise InputError("query: 'between' must be a list of two values, the lower one first")
            return Between(fields["column"], *pair)
        fields = _fields(node, "condition", {"column", "op", "value"})
        if fields["op"] not in OPERATORS:
            raise InputError(f"query: op must be one of {', '.join(OPERATORS)}")
        return Compare(fields["column"], fields["op"], fields["value"])


def _box(node: object) -> Box:
    fields = _fields(node, "box", {"latitude", "longitude", *CORNERS})
    return Box(fields["latitude"], fields["longitude"], *(fields[corner] for corner in CORNERS))


def _fields(
    node: object,
    what: str,
    required: set[str],
    optional: set[str] = frozenset(),  # type: ignore[assignment]
) -> dict[str, Any]:
    allowed = required | optional
    if not isinstance(node, Mapping):
        raise InputError(f"query: {what} must be an object with {_listed(sorted(allowed))}")
    missing = sorted(required - set(node))
    if missing:
        raise InputError(f"query: {what} lacks {_listed(missing)}; it takes {_listed(sorted(allowed))}")
    if not set(node) <= allowed:
        raise InputError(f"query: {what} takes {_listed(sorted(allowed))}, and nothing else; got more")
    return dict(node)


def _list(node: object, what: str, most: int) -> list[Any]:
    if not isinstance(node, list) or not 1 <= len(node) <= most:
        raise InputError(f"query: {what} must be a list of 1 to {most} entries")
    return node


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in names)
