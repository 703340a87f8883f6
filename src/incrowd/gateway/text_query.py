"""Queries as a line of text: ``SELECT movies FROM users WHERE city = 'Denver' AND age < 25``.

The text is parsed by sqlglot, and every node of the result has to be on the list here, without any option
set; the rest is refused. What is understood becomes the same value as a query in JSON. The text itself goes
nowhere else.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from incrowd.errors import InputError, MissingExtra
from incrowd.gateway.policy import GatewayPolicy
from incrowd.gateway.predicate import EVERYBODY, And, Between, Box, Compare, Not, OneOf, Or, Predicate
from incrowd.gateway.query import (
    Query,
    QueryLimits,
    checked_attributes,
    checked_query,
    only,
    parse_json,
    queries_from_json,
)

try:
    from sqlglot import exp, parse, tokenize
    from sqlglot.errors import SqlglotError
except ImportError:
    raise MissingExtra("a query in text form", "gateway") from None

PEOPLE = "users"
"""What stands after FROM, whatever the table is called in the database."""
COMPARISONS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!="}
TOKENS_PER_NODE = 12
FORM = (
    "query: expected SELECT attribute FROM users WHERE condition; a condition is built of =, <, <=, >, >=, "
    "BETWEEN, IN (...), BOX(latitude, longitude, south, west, north, east), AND, OR and parentheses"
)


def query_from_text(text: str, limits: QueryLimits) -> Query:
    """Read a query in text form.

    Examples
    --------
    >>> limits = QueryLimits(filters={"city": "text", "age": "integer"}, attributes=("movies",))
    >>> query_from_text("SELECT movies FROM users WHERE city = 'Denver' AND age < 25", limits).attribute
    'movies'
    """
    return only(queries_from_text(text, limits))


def queries_from_text(text: str, limits: QueryLimits) -> tuple[Query, ...]:
    """Read a query in text form that may ask for several attributes of the same people."""
    if len(text) > limits.characters:
        raise InputError(f"query: expected at most {limits.characters} characters, got {len(text)}")
    return _read(text, limits)


@lru_cache(maxsize=1024)
def _read(text: str, limits: QueryLimits) -> tuple[Query, ...]:
    """Parse a query; the same lines come again and again, and parsing takes longer than repeating an answer."""
    attributes, where = _parts(_parsed(text, limits))
    condition = EVERYBODY if where is None else _TextReader(limits).read(where)
    return tuple(checked_query(Query(name, condition), limits) for name in checked_attributes(attributes))


def _parsed(text: str, limits: QueryLimits) -> exp.Select:
    try:
        # Counted first: a parser works in proportion to this, and recurses.
        if len(tokenize(text)) > TOKENS_PER_NODE * limits.nodes + 2 * limits.choices:
            raise InputError("query: expected a shorter condition")
        statements = parse(text)
    except (SqlglotError, RecursionError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(FORM) from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Select):
        raise InputError(FORM)
    return statements[0]


def _parts(select: exp.Select) -> tuple[list[str], exp.Expression | None]:
    """Return what is selected and the condition, if nothing else is said."""
    given = _given(select)
    if not {"expressions", "from_"} <= set(given) <= {"expressions", "from_", "where"}:
        raise InputError(FORM)
    source = given["from_"]
    if set(_given(source)) != {"this"} or _name(source.this, exp.Table).lower() != PEOPLE:
        raise InputError(f"query: expected FROM {PEOPLE}")
    where = given.get("where")
    names = [_name(one, exp.Column) for one in given["expressions"]]
    return names, None if where is None else _only(where)


class _TextReader:
    def __init__(self, limits: QueryLimits) -> None:
        self._limits = limits

    def read(self, node: exp.Expression, depth: int = 1) -> Predicate:
        if depth > 4 * self._limits.depth + self._limits.nodes:  # AND of n parts nests n deep in the parser
            raise InputError(f"query: conditions may be nested {self._limits.depth} deep, this goes deeper")
        match node:
            case exp.Paren():
                return self.read(_only(node), depth + 1)
            case exp.And() | exp.Or():
                return self._joined(node, depth)
            case exp.Not():
                return Not(self.read(_only(node), depth + 1))
            case exp.In():
                return self._one_of(node)
            case exp.Between():
                return self._between(node)
            case exp.Anonymous():
                return self._box(node)
        return self._comparison(node)

    def _joined(self, node: exp.Expression, depth: int) -> Predicate:
        """Chains of the same word are one list, so that they do not count as depth."""
        kind = exp.And if isinstance(node, exp.And) else exp.Or
        parts: list[Predicate] = []
        chain = [node]
        while chain:
            one = chain.pop()
            if isinstance(one, kind):
                left, right = _two(one)
                chain += [right, left]
            else:
                parts.append(self.read(one, depth + 1))
        return And(tuple(parts)) if kind is exp.And else Or(tuple(parts))

    def _comparison(self, node: exp.Expression) -> Predicate:
        op = COMPARISONS.get(type(node))
        if op is None:
            raise InputError(FORM)
        left, right = _two(node)
        if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
            left, right, op = right, left, MIRRORED[op]
        return Compare(_name(left, exp.Column), op, _literal(right))

    def _one_of(self, node: exp.In) -> Predicate:
        given = _given(node)
        if set(given) != {"this", "expressions"} or len(given["expressions"]) > self._limits.choices:
            raise InputError(f"query: IN takes a list of 1 to {self._limits.choices} values in parentheses")
        return OneOf(_name(given["this"], exp.Column), tuple(map(_literal, given["expressions"])))

    def _between(self, node: exp.Between) -> Predicate:
        given = _given(node)
        if set(given) != {"this", "low", "high"}:
            raise InputError(FORM)
        return Between(_name(given["this"], exp.Column), _literal(given["low"]), _literal(given["high"]))

    def _box(self, node: exp.Anonymous) -> Predicate:
        arguments = node.expressions
        if (
            str(node.this).lower() != "box"
            or len(arguments) != 6
            or set(_given(node)) != {"this", "expressions"}
        ):
            raise InputError(FORM)
        latitude, longitude = (_name(one, exp.Column) for one in arguments[:2])
        return Box(latitude, longitude, *map(_literal, arguments[2:]))


def _given(node: exp.Expression) -> dict[str, Any]:
    """Return the arguments that are set; comments and positions are no arguments."""
    return {name: value for name, value in node.args.items() if value not in (None, False, [])}


def _only(node: exp.Expression) -> exp.Expression:
    if set(_given(node)) != {"this"}:
        raise InputError(FORM)
    return node.this  # type: ignore[no-any-return]


def _two(node: exp.Expression) -> tuple[exp.Expression, exp.Expression]:
    if set(_given(node)) != {"this", "expression"}:
        raise InputError(FORM)
    return node.this, node.expression


def _name(node: Any, kind: type[exp.Expression]) -> str:
    """Return a plain name: no table before it, no alias after it."""
    if (
        not isinstance(node, kind)
        or set(_given(node)) != {"this"}
        or not isinstance(node.this, exp.Identifier)
    ):
        raise InputError(FORM)
    return str(node.this.this)


def _literal(node: Any) -> Any:
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        return -_number(node.this.this)
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else _number(node.this)
    raise InputError("query: expected a number, a text in single quotes, true or false to compare with")


def _number(text: str) -> int | float:
    try:
        return int(text) if text.isdecimal() and len(text) < 20 else float(text)
    except ValueError:
        raise InputError("query: expected a number") from None


def read_queries(body: bytes, policy: GatewayPolicy) -> tuple[Query, ...]:
    """Understand a question, or raise an error that depends on the question alone; one query for each attribute."""
    # Each level of a condition is an object in a list; a few more hold it.
    return queries_from(parse_json(body, depth=2 * policy.limits.depth + 4), policy)


def read_query(body: bytes, policy: GatewayPolicy) -> Query:
    """Understand a question about one attribute."""
    return only(read_queries(body, policy))


def queries_from(document: Any, policy: GatewayPolicy) -> tuple[Query, ...]:
    """Read a question from parsed JSON: {"text": ...}, or {"attribute": ...} or {"attributes": [...]} with "where"."""
    if isinstance(document, dict) and "text" in document:
        if set(document) != {"text"} or not isinstance(document["text"], str):
            raise InputError('query: expected {"text": "SELECT ..."} and nothing else')
        return queries_from_text(document["text"], policy.asking)
    return queries_from_json(document, policy.asking)


def query_from(document: Any, policy: GatewayPolicy) -> Query:
    """Read a question about one attribute from parsed JSON."""
    return only(queries_from(document, policy))


def typed_query(text: str) -> bytes:
    """Return what somebody typed, in either form, as a body."""
    return text.encode() if text.lstrip().startswith("{") else json.dumps({"text": text}).encode()
