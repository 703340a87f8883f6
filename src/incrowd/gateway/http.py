"""The gateway over HTTP: an application for clients, one for the operator, and what OpenAPI says of them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from incrowd.errors import IncrowdError, MissingExtra
from incrowd.gateway.monitoring import CONTENT_TYPE, log_error
from incrowd.gateway.policy import GatewayPolicy
from incrowd.gateway.predicate import OPERATORS
from incrowd.gateway.query import KINDS, MOST_ATTRIBUTES
from incrowd.gateway.service import HEADERS, GatewayService, Reply, error_reply

try:
    from fastapi import Depends, FastAPI, Request
    from fastapi.responses import Response
    from fastapi.security import HTTPBearer
    from starlette.exceptions import HTTPException
except ImportError:
    raise MissingExtra("the gateway's web interface", "gateway") from None

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


def gateway_app(service: GatewayService) -> Asgi:
    """Return the application that clients talk to."""
    # The pages that FastAPI would draw of the document load scripts from elsewhere: left out.
    app = FastAPI(title="incrowd gateway", description=DESCRIPTION, docs_url=None, redoc_url=None)
    _show_errors_as_json(app)
    _add_health(app, service)
    key = Depends(HTTPBearer(auto_error=False, description="An API key of this gateway."))

    @app.post(
        "/v1/query",
        summary="Ask for the values of one attribute",
        dependencies=[key],
        openapi_extra=QUERY_BODY,
        responses=QUERY_RESPONSES,
    )
    async def query(request: Request) -> Response:
        return _response(await service.query(_authorization(request), request.stream()))

    @app.get("/v1/schema", summary="What may be asked", dependencies=[key], responses=SCHEMA_RESPONSES)
    async def schema(request: Request) -> Response:
        if service.client(_authorization(request)) is None:
            service.metrics.count("unauthorised")
            return _response(error_reply(401, "a key is needed: Authorization: Bearer incrowd_..."))
        return _json(what_may_be_asked(service.policy))

    @app.get("/v1/budget", summary="What may still be asked", dependencies=[key], responses=BUDGET_RESPONSES)
    async def budget(request: Request) -> Response:
        return _response(await service.budget(_authorization(request)))

    return _hide_errors(app)


def admin_app(service: GatewayService) -> Asgi:
    """Return the operator's application: metrics tell answered from empty, so it stays on this machine."""
    app = FastAPI(title="incrowd gateway, operator", openapi_url=None, docs_url=None, redoc_url=None)
    _show_errors_as_json(app)
    _add_health(app, service)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    @app.post("/try")
    async def explain(request: Request) -> Response:
        return await _for_operator(service, request, service.explain)

    @app.post("/support")
    async def support(request: Request) -> Response:
        return await _for_operator(service, request, service.support)

    return _hide_errors(_for_this_machine(app))


LOCAL_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\]|)(:[0-9]{1,5})?|::1")


def _for_this_machine(app: Asgi) -> Asgi:
    """Refuse requests that name another host: a web page could send them through a browser on this machine."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        hosts = [value for name, value in scope.get("headers", []) if name == b"host"]
        named = LOCAL_HOST.fullmatch((hosts[0] if hosts else b"").decode("latin-1").lower())
        if len(hosts) > 1 or named is None:
            await _response(error_reply(421, "this port is for the operator's own machine"))(
                scope, receive, send
            )
            return
        await app(scope, receive, send)

    return wrapped


async def _for_operator(
    service: GatewayService, request: Request, work: Callable[[bytes], dict[str, Any]]
) -> Response:
    """Do what only somebody with the operator's token may ask for."""
    if not service.is_operator(_authorization(request)):
        return _response(error_reply(401, "the operator's token is needed"))
    try:
        return _json(await asyncio.to_thread(work, await request.body()))
    except IncrowdError as error:
        return _response(error_reply(400, str(error)))


def what_may_be_asked(policy: GatewayPolicy) -> dict[str, Any]:
    """Return the names, kinds and limits a client needs, and nothing about the data."""
    asking = policy.asking
    return {
        "attributes": list(asking.attributes),
        "filters": dict(asking.filters),
        "allow_not": asking.allow_not,
        "limits": {
            "body_bytes": policy.limits.body_bytes,
            "depth": asking.depth,
            "nodes": asking.nodes,
            "choices": asking.choices,
            "text_length": asking.text,
            "query_text": asking.characters,
        },
        "snapshot_period_hours": policy.snapshots.period_hours,
    }


def _add_health(app: FastAPI, service: GatewayService) -> None:
    @app.get("/health", summary="Is the process alive?")
    async def health() -> Response:
        return _json({"status": "alive"})

    @app.get("/ready", summary="Can questions be answered?", responses={503: {"description": "Not now."}})
    async def ready() -> Response:
        reason = service.not_ready
        return _json({"status": reason or "ready"}, status=503 if reason else 200)


def _authorization(request: Request) -> str:
    return request.headers.get("authorization", "")


def _json(value: Any, status: int = 200) -> Response:
    return Response(json.dumps(value, ensure_ascii=False), status, headers=HEADERS)


def _response(reply: Reply) -> Response:
    return Response(reply.body, reply.status, headers=reply.headers)


def _show_errors_as_json(app: FastAPI) -> None:
    @app.exception_handler(HTTPException)
    async def known(request: Request, error: HTTPException) -> Response:
        reply = error_reply(error.status_code, str(error.detail))
        return Response(reply.body, reply.status, headers={**reply.headers, **(error.headers or {})})


def _hide_errors(app: Asgi) -> Asgi:
    """Let no unforeseen error reach the server's log, which would print its message."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await app(scope, receive, sending)
        except Exception as error:
            log_error(error)
            if not started and scope["type"] == "http":
                await _response(error_reply(500, "internal error"))(scope, receive, send)

    return wrapped


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
        {
            "type": "object",
            "properties": {
                "attributes": {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": MOST_ATTRIBUTES,
                    "description": "Several attributes of the same people; each counts as a question.",
                },
                "where": _condition(3),
            },
            "required": ["attributes"],
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
VALUES = {"type": "array", "items": {"type": "string"}}
ANSWER = _object(
    {
        "values": {
            "anyOf": [VALUES, {"type": "object", "additionalProperties": VALUES}],
            "description": "A list; if several attributes were asked for, a list for each.",
        },
        "padding": {"type": "string"},
    }
)
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
BUDGET = _object(
    {
        "mechanism": {"enum": ["private", "q"], "description": "How it is decided which values leave."},
        "queries": {"type": "integer", "description": "New questions of your organisation in a window."},
        "queries_left": {"type": "integer", "description": "How many of them are left now."},
        "window_hours": {"type": "number", "description": "Length of that window."},
        "closed_until": {
            "type": "string",
            "description": "Nobody gets a new answer before this moment, since the gateway's state was lost.",
        },
        "privacy": _object(
            {
                "epsilon": {"type": "number", "description": "What all questions may tell about one person."},
                "delta": {"type": "number", "description": "Probability with which that may fail."},
                "window_days": {"type": "number", "description": "Over so many days."},
                "questions_per_person": {
                    "type": "integer",
                    "description": "In how many new questions of all clients each person is counted in that time.",
                },
            }
        ),
    },
    required=["mechanism", "queries", "queries_left", "window_hours"],
)
BUDGET_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: _as("What is left, and what a question costs; nothing about the data.", BUDGET),
    401: UNAUTHORISED,
    503: _as("A question of your organisation is under way; come back when it is answered.", ERROR),
}
