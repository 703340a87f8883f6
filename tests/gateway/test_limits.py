"""Strangers may send only so much, so deep and so slowly; replies have one shape and leave on the clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InputError
from incrowd.gateway.monitoring import Histogram, Metrics
from incrowd.gateway.query import parse_json
from incrowd.gateway.server import Connections, guarded
from incrowd.gateway.service import (
    SMALLEST,
    Admission,
    BodyTooLarge,
    Busy,
    ReplyClock,
    TooSlow,
    padded,
    read_body,
)


async def chunks(*parts: bytes, pause: float = 0.0) -> AsyncIterator[bytes]:
    for part in parts:
        await asyncio.sleep(pause)
        yield part


def test_a_body_is_read_up_to_the_limit() -> None:
    assert asyncio.run(read_body(chunks(b"ab", b"cd"), most=4, seconds=5)) == b"abcd"
    with pytest.raises(BodyTooLarge):
        asyncio.run(read_body(chunks(b"ab", b"cd", b"e"), most=4, seconds=5))
    with pytest.raises(TooSlow):
        asyncio.run(read_body(chunks(b"a", b"b", pause=5), most=4, seconds=0.01))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff{}",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1, "a": 2}',
        b"[" * 50_000,
        b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b'"\\u12"',
        b"{} {}",
    ],
    ids=range(11),
)
def test_strange_json_is_an_input_error(body: bytes) -> None:
    with pytest.raises(InputError, match="body: expected"):
        parse_json(body, depth=16)


def test_brackets_inside_strings_are_no_nesting() -> None:
    value = {"a": ["[" * 40 + '"\\' + "{" * 40]}
    assert parse_json(json.dumps(value).encode(), depth=2) == value


@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=20))
def test_nesting_is_counted_exactly(value: object) -> None:
    def depth(part: object) -> int:
        return 1 + max(map(depth, part), default=0) if isinstance(part, list) else 0

    body = json.dumps(value).encode()
    assert parse_json(body, depth=depth(value)) == value
    if depth(value):
        with pytest.raises(InputError, match="nesting"):
            parse_json(body, depth=depth(value) - 1)


def test_only_so_many_enter_and_only_so_many_of_one_organisation() -> None:
    door = Admission(most=3, each=2)
    with door.enter("a"), door.enter("a"):
        with pytest.raises(Busy), door.enter("a"):
            pass
        with door.enter("b"), pytest.raises(Busy), door.enter("c"):
            pass
        assert door.inside == 2
    assert door.inside == 0


@given(st.lists(st.text(max_size=30), max_size=200))
def test_replies_have_few_sizes_and_say_what_they_should(values: list[str]) -> None:
    reply = padded(values, key=b"k", seed=b"q")
    assert json.loads(reply)["values"] == values
    assert len(reply) % SMALLEST == 0
    assert (len(reply) // SMALLEST).bit_count() == 1
    assert reply == padded(values, key=b"k", seed=b"q")


def test_a_reply_is_full_to_the_byte_at_every_border() -> None:
    for length in range(SMALLEST - 60, SMALLEST + 60):
        reply = padded(["x" * length], key=b"k", seed=b"q")
        assert len(reply) in (SMALLEST, 2 * SMALLEST)
        assert json.loads(reply)["values"] == ["x" * length]


def test_padding_differs_between_questions_and_gateways() -> None:
    replies = {padded([], key=key, seed=seed) for key in (b"1", b"2") for seed in (b"a", b"b")}
    assert len(replies) == 4


def test_replies_leave_at_multiples_of_the_deadline() -> None:
    clock = ReplyClock(deadline=0.1, multiples=3)
    assert [clock.due(taken) for taken in (0.0, 0.1, 0.11, 0.29, 9.0)] == pytest.approx(
        [0.1, 0.1, 0.2, 0.3, 0.3]
    )
    assert ReplyClock.within(0.1, 3.05).last == pytest.approx(3.1)
    assert [clock.kept(taken) for taken in (0.0, 0.11, 9.0)] == ["first", "later", "missed"]


def test_histograms_are_cumulative_and_end_at_infinity() -> None:
    times = Histogram("t", "help", edges=(0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        times.observe(seconds)
    assert list(times.lines())[2:] == [
        't_bucket{le="0.1"} 2',
        't_bucket{le="1.0"} 3',
        't_bucket{le="+Inf"} 4',
        "t_sum 7.650000",
        "t_count 4",
    ]


def test_metrics_follow_the_text_format() -> None:
    metrics = Metrics()
    metrics.gauge("incrowd_gateway_inside", "Queries being decided.", lambda: 2)
    metrics.count("answered")
    metrics.replied(work=0.01, total=0.1, deadline="first")
    text = metrics.text()
    assert 'incrowd_gateway_requests_total{outcome="answered"} 1' in text
    assert "incrowd_gateway_inside 2\n" in text
    for line in text.splitlines():
        assert line.startswith("# ") or float(line.rpartition(" ")[2]) >= 0
    with pytest.raises(KeyError):
        metrics.count("something a client wrote")


class Held:
    """A connection as the list of connections sees it."""

    def __init__(self, busy: bool = False) -> None:
        self.busy, self.closed = busy, False
        self.transport = self

    def close(self) -> None:
        self.closed = True


def test_strangers_make_room_for_each_other_and_never_lose_a_client_his_place() -> None:
    connections = Connections(3, each=3)
    held = {number: Held(busy=number == 1) for number in range(6)}
    for number in range(3):
        connections.add(("a", number), held[number])  # type: ignore[arg-type]
    connections.prove(("a", 0))
    for number in range(3, 6):
        connections.add(("a", number), held[number])  # type: ignore[arg-type]
    assert [held[number].closed for number in range(6)] == [False, False, True, True, True, False]
    assert connections.is_known(("a", 0))
    assert len(connections) == 3
    connections.remove(("a", 0))
    assert len(connections) == 2


def test_one_address_makes_room_for_itself_alone() -> None:
    proxies = [ip_network("10.0.0.0/8"), ip_network("::1")]
    connections = Connections(100, each=2, proxies=proxies)
    hosts = ["192.0.2.1", "192.0.2.1", "192.0.2.2", "10.1.1.1", "10.1.1.1", "10.1.1.1", "::1", "::1", "::1"]
    hosts += ["2001:db8::1", "2001:db8::2", "::ffff:192.0.2.2"]
    held = [Held() for _ in hosts]
    for port, host in enumerate(hosts):
        connections.add((host, port), held[port])  # type: ignore[arg-type]
    assert not any(one.closed for one in held)

    connections.prove(("192.0.2.1", 0))  # it counts no more
    late = Held()
    connections.add(("192.0.2.1", 90), late)  # type: ignore[arg-type]
    assert not any(one.closed for one in held)
    connections.add(("192.0.2.1", 91), Held())  # type: ignore[arg-type]
    assert [port for port, one in enumerate(held) if one.closed] == [1]
    connections.add(("2001:db8::3", 92), Held())  # type: ignore[arg-type]
    connections.add(("192.0.2.2", 93), Held())  # type: ignore[arg-type]
    assert [port for port, one in enumerate(held) if one.closed] == [1, 2, 9]
    assert not late.closed

    connections.remove(("192.0.2.1", 90))
    connections.add(("192.0.2.1", 94), Held(busy=True))  # type: ignore[arg-type]
    assert len(connections) == 13


def test_where_all_of_an_address_are_being_answered_the_newest_goes() -> None:
    connections, newest = Connections(100, each=1), Held()
    connections.add(("192.0.2.1", 1), Held(busy=True))  # type: ignore[arg-type]
    connections.add(("192.0.2.1", 2), newest)  # type: ignore[arg-type]
    assert newest.closed
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([(b"host", b"x")], 200),
        ([(b"content-length", b"5"), (b"transfer-encoding", b"chunked")], 400),
        ([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")], 400),
        ([(b"x", b"y" * 20_000)], 431),
        ([(b"x%d" % number, b"y") for number in range(4000)], 431),
    ],
)
def test_headers_that_are_too_large_or_ambiguous_are_refused(
    headers: list[tuple[bytes, bytes]], status: int
) -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    connections = Connections(3, each=3)
    connections.add(("a", 1), Held())  # type: ignore[arg-type]
    scope = {
        "type": "http",
        "path": "/v1/query",
        "raw_path": b"/v1/query",
        "headers": headers,
        "client": ("a", 1),
    }
    asyncio.run(guarded(app, connections)(scope, None, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == status
    assert connections.is_known(("a", 1)) == (status == 200)
