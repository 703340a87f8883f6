"""What the OpenAPI document says about a question and its answers."""

from __future__ import annotations

from typing import Any

from incrowd.gateway.check import KINDS
from incrowd.gateway.predicate import OPERATORS

DESCRIPTION = (
    "Asks one attribute of a class of people. An answer lists values that hide everybody in the crowd; it has no "
    "counts and no meaningful order. An empty answer does not say why it is empty. Every answer has the same "
    "status and headers, one of a few lengths, and leaves after a fixed time."
)
LITERAL = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}
COLUMN = {"type": "string", "description": "A filter named by /v1/schema."}


def _object(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


def _condition(depth: int) -> dict[str, Any]:
    """The forms of a condition; written out to a small depth, so that the document needs no references."""
    number = {"type": "number"}
    corners = dict.fromkeys(("south", "west", "north", "east"), number)
    forms = [
        _object({"column": COLUMN, "op": {"enum": list(OPERATORS)}, "value": LITERAL}),
        _object({"column": COLUMN, "in": {"type": "array", "items": LITERAL, "minItems": 1}}),
        _object(
            {"column": COLUMN, "between": {"type": "array", "items": LITERAL, "minItems": 2, "maxItems": 2}}
        ),
        _object({"box": _object({"latitude": COLUMN, "longitude": COLUMN, **corners})}),
    ]
    if depth > 1:
        inner = _condition(depth - 1)
        several = {"type": "array", "items": inner, "minItems": 1}
        forms += [_object({"and": several}), _object({"or": several}), _object({"not": inner})]
    return {"anyOf": forms}


QUERY = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"attribute": {"type": "string"}, "where": _condition(3)},
            "required": ["attribute"],
            "additionalProperties": False,
        },
        _object(
            {"text": {"type": "string", "description": "SELECT movies FROM users WHERE city = 'Denver'"}}
        ),
    ]
}
QUERY_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": QUERY,
                "example": {
                    "attribute": "movies",
                    "where": {
                        "and": [
                            {"column": "city", "op": "=", "value": "Denver"},
                            {"column": "age", "op": "<", "value": 25},
                        ]
                    },
                },
            }
        },
    }
}
ANSWER = _object({"values": {"type": "array", "items": {"type": "string"}}, "padding": {"type": "string"}})
ERROR = _object({"error": {"type": "string"}})


def _as(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


UNAUTHORISED = _as("No key, or not one of this gateway.", ERROR)
QUERY_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: _as("The values that may leave; none if there are none, whatever the reason.", ANSWER),
    400: _as("The question cannot be understood or is outside what may be asked.", ERROR),
    401: UNAUTHORISED,
    408: _as("The question did not arrive in time.", ERROR),
    413: _as("The question is too large.", ERROR),
    503: _as("Too many questions at once; come back in a second.", ERROR),
}
LIMITS = {
    "body_bytes": "Size of a request.",
    "depth": "How deep conditions may be nested.",
    "nodes": "How many parts a condition may have.",
    "choices": "Entries of one list of values.",
    "text_length": "Characters of one text literal.",
    "query_text": "Characters of a query in text form.",
}
SCHEMA = _object(
    {
        "attributes": {"type": "array", "items": {"type": "string"}, "description": "What can be asked for."},
        "filters": {
            "type": "object",
            "additionalProperties": {"enum": list(KINDS)},
            "description": "What conditions can be about: name and kind of each filter.",
        },
        "allow_not": {"type": "boolean", "description": "Whether conditions may use 'not' and '!='."},
        "limits": _object({name: {"type": "integer", "description": what} for name, what in LIMITS.items()}),
        "snapshot_period_hours": {
            "type": "number",
            "description": "Answers see the data as they were at most this long ago.",
        },
    }
)
SCHEMA_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: _as("Attributes, filters with their kinds, and limits.", SCHEMA),
    401: UNAUTHORISED,
}
