"""A question in either of its forms: a tree of conditions as JSON, or one line of text."""

from __future__ import annotations

import json
from typing import Any

from incrowd.errors import InputError
from incrowd.gateway.limits import parse_json
from incrowd.gateway.policy import Policy
from incrowd.gateway.query import Query, query_from_json
from incrowd.gateway.text_query import query_from_text


def read_question(body: bytes, policy: Policy) -> Query:
    """Understand a question, or raise an error that depends on the question alone."""
    # Each level of a condition is an object in a list; a few more hold it.
    return question_from(parse_json(body, depth=2 * policy.limits.depth + 4), policy)


def question_from(document: Any, policy: Policy) -> Query:
    """Read a question from parsed JSON: {"text": ...} or {"attribute": ..., "where": ...}."""
    if isinstance(document, dict) and "text" in document:
        if set(document) != {"text"} or not isinstance(document["text"], str):
            raise InputError('query: expected {"text": "SELECT ..."} and nothing else')
        return query_from_text(document["text"], policy.asking)
    return query_from_json(document, policy.asking)


def typed_question(text: str) -> bytes:
    """Return what somebody typed, in either form, as a body."""
    return text.encode() if text.lstrip().startswith("{") else json.dumps({"text": text}).encode()
