"""What a client asks: one attribute of the people for whom a condition holds, checked and in one spelling.

Queries arrive as JSON (here) or as a line of text (`text_query.py`). Both become the same checked, canonical value;
whatever is not expressly allowed is refused with a message that depends on the question alone, never on the data.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from hashlib import sha256
from typing import Any

from incrowd.errors import InputError
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
    canonical,
    plain,
)

KINDS = ("text", "integer", "number", "date", "boolean", "latitude", "longitude")
ORDERED = frozenset({"integer", "number", "date", "latitude", "longitude"})
FLOATING = frozenset({"number", "latitude", "longitude"})
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
LARGEST = 2**62
"""Whole numbers beyond fit no column; the room above keeps `< n` and `<= n - 1` the same."""


@dataclass(frozen=True, kw_only=True)
class QueryLimits:
    """What may be asked, and how large a question may be."""

    filters: Mapping[str, str]
    """Name of a filter -> its kind, one of `KINDS`."""
    attributes: tuple[str, ...]
    allow_not: bool = False
    depth: int = 8
    nodes: int = 64
    choices: int = 64
    """Entries of one `in` list."""
    text: int = 200
    """Characters of one text literal."""
    characters: int = 2000
    """Characters of a query in text form."""

    def __hash__(self) -> int:
        return hash((tuple(sorted(self.filters.items())), self.attributes, self.depth, self.nodes))


def checked(predicate: Predicate, limits: QueryLimits) -> Predicate:
    """Return the condition with literals of the right kind, or refuse it."""
    checker = _Checker(limits, [limits.nodes])
    return checker.check(predicate, 1)


@dataclass(frozen=True)
class _Checker:
    limits: QueryLimits
    left: list[int]
    """How many more nodes are allowed, one number."""

    def check(self, predicate: Predicate, depth: int) -> Predicate:
        self._count(depth)
        match predicate:
            case And(parts):
                return And(tuple(self.check(part, depth + 1) for part in parts))
            case Or(parts):
                if not parts:
                    raise InputError("query: 'or' must have at least one part")
                return Or(tuple(self.check(part, depth + 1) for part in parts))
            case Not(part):
                self._allow_not()
                return Not(self.check(part, depth + 1))
            case Box():
                return self._box(predicate)
            case Compare() | OneOf() | Between():
                return self._leaf(predicate)
        raise InputError("query: a condition of an unknown form")

    def _count(self, depth: int) -> None:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise InputError(f"query: conditions may have {self.limits.nodes} parts in all, this has more")
        if depth > self.limits.depth:
            raise InputError(f"query: conditions may be nested {self.limits.depth} deep, this goes deeper")

    def _allow_not(self) -> None:
        if not self.limits.allow_not:
            raise InputError("query: 'not' and '!=' are not allowed here; say whom you mean instead")

    def _leaf(self, leaf: Compare | OneOf | Between) -> Predicate:
        kind = self._kind(leaf.column)
        match leaf:
            case Compare(column, op, value):
                if op not in OPERATORS or (op not in ("=", "!=") and kind not in ORDERED):
                    raise InputError(f"query: '{column}' ({kind}) cannot be compared in this way")
                if op == "!=":
                    self._allow_not()
                return Compare(column, op, self._literal(column, kind, value))
            case OneOf(column, values):
                if not 1 <= len(values) <= self.limits.choices:
                    raise InputError(f"query: 'in' takes 1 to {self.limits.choices} values")
                return OneOf(column, tuple(self._literal(column, kind, value) for value in values))
            case Between(column, low, high):
                if kind not in ORDERED:
                    raise InputError(f"query: '{column}' ({kind}) has no order, so nothing lies between")
                low, high = self._literal(column, kind, low), self._literal(column, kind, high)
                if low > high:  # type: ignore[operator]  # both are of the column's kind
                    raise InputError("query: 'between' takes the lower value first")
                return Between(column, low, high)

    def _kind(self, column: object) -> str:
        kind = self.limits.filters.get(column) if isinstance(column, str) else None
        if kind is None:
            allowed = ", ".join(f"'{name}'" for name in self.limits.filters)
            raise InputError(f"query: column must be one of {allowed}")
        return kind

    def _literal(self, column: str, kind: str, value: Any) -> Literal:
        made = _of_kind(kind, value)
        if made is None or (isinstance(made, str) and not self._decent(made)):
            raise InputError(f"query: '{column}' is compared with {_WANTED[kind]}, got something else")
        return made

    def _decent(self, text: str) -> bool:
        """Short, and free of control characters, surrogates and unassigned code points."""
        return len(text) <= self.limits.text and not any(unicodedata.category(c)[0] == "C" for c in text)

    def _box(self, box: Box) -> Box:
        if (self._kind(box.latitude), self._kind(box.longitude)) != ("latitude", "longitude"):
            raise InputError("query: a box takes a latitude and a longitude column")
        south, west, north, east = (
            _of_kind("number", corner) for corner in (box.south, box.west, box.north, box.east)
        )
        if not (_within(south, 90) and _within(north, 90) and _within(west, 180) and _within(east, 180)):
            raise InputError("query: a box lies between latitudes -90 and 90, longitudes -180 and 180")
        if south > north:  # type: ignore[operator]  # both are floats
            raise InputError("query: a box has its south below its north")
        return Box(box.latitude, box.longitude, south, west, north, east)  # type: ignore[arg-type]


_WANTED = {
    "text": "a short text without control characters",
    "integer": "a whole number",
    "number": "a number",
    "latitude": "a number",
    "longitude": "a number",
    "date": "a day as 'YYYY-MM-DD'",
    "boolean": "true or false",
}


def _of_kind(kind: str, value: Any) -> Literal | None:
    """Return the literal as the column's kind, or None if it is of another."""
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool):
        return None
    if kind == "text":
        return value if isinstance(value, str) else None
    if kind == "date":
        return _day(value)
    if not isinstance(value, int | float) or not abs(value) < LARGEST:  # NaN is refused here, too
        return None
    if kind in FLOATING:
        return float(value) + 0.0  # there is one zero
    return (
        int(value) if float(value).is_integer() and (isinstance(value, int) or abs(value) < 2**53) else None
    )


def _day(value: Any) -> date | None:
    if isinstance(value, date) and type(value) is date:
        return value
    if not isinstance(value, str) or not DAY.fullmatch(value):  # Python alone takes weeks and blanks, too
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def _within(value: Literal | None, most: float) -> bool:
    return isinstance(value, float) and math.fabs(value) <= most


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


def checked_query(query: Query, limits: QueryLimits) -> Query:
    """Return the canonical form of a query, or refuse it: names, kinds and size have to fit `limits`."""
    if query.attribute not in limits.attributes:
        raise InputError(f"query: attribute must be one of {_listed(limits.attributes)}")
    return Query(query.attribute, canonical(checked(query.where, limits)))


def query_from_json(document: object, limits: QueryLimits) -> Query:
    """Read a query from parsed JSON.

    Examples
    --------
    >>> limits = QueryLimits(filters={"city": "text", "age": "integer"}, attributes=("movies",))
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


MOST_ATTRIBUTES = 8
"""In one question. Each is decided like a question of its own, one after the other, together with those before."""


def queries_from_json(document: object, limits: QueryLimits) -> tuple[Query, ...]:
    """Read a query that may ask for several attributes of the same people: {"attributes": [...], "where": ...}."""
    if not isinstance(document, Mapping) or "attributes" not in document:
        return (query_from_json(document, limits),)
    fields = _fields(document, "query", {"attributes"}, {"where"})
    names = checked_attributes(_list(fields["attributes"], "'attributes'", MOST_ATTRIBUTES))
    rest = {name: value for name, value in fields.items() if name == "where"}
    return tuple(query_from_json({"attribute": name, **rest}, limits) for name in names)


def checked_attributes(names: Sequence[Any]) -> Sequence[Any]:
    """Refuse too many attributes in one question, or one twice."""
    if not 1 <= len(names) <= MOST_ATTRIBUTES or len(set(map(str, names))) < len(names):
        raise InputError(f"query: expected 1 to {MOST_ATTRIBUTES} different attributes")
    return names


def only(queries: tuple[Query, ...]) -> Query:
    """Return the one query of a question about one attribute."""
    if len(queries) != 1:
        raise InputError("query: expected one attribute here; ask for each by itself")
    return queries[0]


@dataclass(frozen=True)
class _Reader:
    limits: QueryLimits

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
            allowed = [op for op in OPERATORS if op != "!=" or self.limits.allow_not]
            raise InputError(f"query: op must be one of {', '.join(allowed)}")
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


# Reading JSON strictly

STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
BRACKET = re.compile(r"[\[\]{}]")


def parse_json(body: bytes, *, depth: int) -> Any:
    """Read one JSON value strictly: no repeated keys, no NaN, no nesting beyond the limit."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise InputError("body: expected JSON in UTF-8, got other bytes") from None
    if _nesting(text) > depth:
        raise InputError(f"body: expected nesting of at most {depth} levels, got more")
    try:
        return json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except InputError:
        raise
    except (ValueError, RecursionError):
        raise InputError("body: expected one JSON object, could not read it as JSON") from None


def _nesting(text: str) -> int:
    """How deep brackets nest outside strings."""
    deepest = level = 0
    for bracket in BRACKET.findall(STRING.sub("", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise InputError("body: expected every key once in an object, got a key twice")
    return made


def _no_constant(name: str) -> Any:
    raise InputError("body: expected finite numbers, got NaN or Infinity")


# Who asks, what they are answered, and why: the first two leave the gateway, the last is for the provider
# alone.


@dataclass(frozen=True)
class Client:
    """Somebody who asks; everybody of an organisation shares one ledger."""

    name: str
    organisation: str


@dataclass(frozen=True)
class Answer:
    """The values that may leave, in an order that says nothing. Empty for whatever reason; none is given."""

    values: tuple[str, ...] = ()

    @property
    def body(self) -> bytes:
        """The answer as it is stored and repeated, byte for byte."""
        return json.dumps({"values": list(self.values)}, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def from_body(cls, body: bytes) -> Answer:
        """Read what was stored."""
        return cls(tuple(json.loads(body)["values"]))


@dataclass(frozen=True, kw_only=True)
class ValueDecision:
    """What became of one value of the class, for the provider's eyes only."""

    value: str
    holders: int
    """How many people of the class list it."""
    released: bool
    rule: str
    """Which rule withheld it; empty if released."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a question is answered as it is. Everything in here is secret: only the provider may see it."""

    snapshot: int
    class_size: int
    repeated: bool
    """True if the client gets what was answered before; the rest is what would be decided now."""
    rule: str
    """Which rule denied the whole answer; empty if it was not denied."""
    threshold: int
    """The least q asked of this answer, secret amount included."""
    q: float | None
    """q of the released values, or a proved lower bound; None if nothing is released."""
    method: str
    values: tuple[ValueDecision, ...]
    mechanism: str
    """Under which it is decided, or was when it was asked first: "private" or "q"."""
    decided: str = ""
    """When it was decided; empty if it is new."""
    counted: int | None = None
    """With "private": how many people of the class still had budget to be counted with; None if that is not known."""
    closed_until: str = ""
    """Until when nothing new is answered since the state was reset; empty if it is open."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "values"}
        return {**plain, "values": [dict(vars(one)) for one in self.values]}
