"""What a client can see of the gateway: one shape for every answer, and refusals that depend on the request alone."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest
from tests.gateway.serving import VICTIM, Got, ask, call, make_world, question

from incrowd.errors import InputError
from incrowd.gateway.audit import AuditLog, read_audit
from incrowd.gateway.core import Gateway
from incrowd.gateway.databases import connect
from incrowd.gateway.http import admin_app, gateway_app
from incrowd.gateway.policy import load_policy
from incrowd.gateway.server import Address
from incrowd.gateway.service import SMALLEST, GatewayService, ReplyClock
from incrowd.gateway.state import KeyStore, open_secret
from incrowd.gateway.worker import DecisionThreads
from incrowd.measures.release import warm_up


class Place:
    """A gateway inside the test: its two applications, and a key for each organisation."""

    def __init__(self, folder: Path) -> None:
        self.url, self.state = make_world(folder), folder / "state"
        policy, secret, store = (
            load_policy(folder / "policy.toml"),
            open_secret(self.state),
            KeyStore(self.state),
        )
        self.keys = {name: store.add(f"client-{name}", name) for name in ("lab", "press", "poor", "stranger")}
        self.service = GatewayService(
            decisions=DecisionThreads(Gateway(connect(self.url), policy, self.state)),
            keys=store,
            policy=policy,
            audit=AuditLog(self.state, secret.key("audit")),
            secret=secret,
        )
        self.app, self.admin = gateway_app(self.service), admin_app(self.service)
        self.token = secret.key("operator").hex()

    def query(self, body: bytes, organisation: str = "lab") -> Got:
        return ask(self.app, ("POST", "/v1/query", body, self.keys[organisation]))[0]


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """As the service does before it listens."""
    warm_up()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    asyncio.run(made.service.close())


def test_an_answer_lists_common_values_only(place: Place) -> None:
    got = place.query(question())
    assert got.status == 200
    assert any(value.startswith("Film ") for value in got.json["values"])
    assert VICTIM not in got.body.decode()
    assert set(got.json) == {"values", "padding"}


def test_several_attributes_are_decided_one_after_the_other(place: Place) -> None:
    where = json.loads(question())["where"]
    alone = place.query(question())
    got = place.query(json.dumps({"attributes": ["movies"], "where": where}).encode())
    assert got.json["values"] == alone.json["values"]
    policy = place.service.policy
    films = replace(policy.database.attributes["movies"])
    both = {**policy.database.attributes, "films": films}
    place.service.policy = replace(policy, database=replace(policy.database, attributes=both))
    twice = place.query(b'{"text": "SELECT movies, movies FROM users"}')
    assert twice.status == 400
    assert "different attributes" in twice.json["error"]
    several = place.query(json.dumps({"attributes": ["movies", "films"], "where": where}).encode())
    assert several.status == 200
    assert len(several.body) == SMALLEST
    assert several.json["values"]["movies"] == alone.json["values"]
    assert several.json["values"]["films"] == []  # the gateway behind has no such attribute: nothing leaves


def test_both_forms_and_all_repeats_get_the_same_bytes(place: Place) -> None:
    body = json.dumps({"text": "SELECT movies FROM users WHERE city = 'Denver' AND age BETWEEN 0 AND 200"})
    first, again = place.query(question()), place.query(question())
    assert first == again == place.query(body.encode())


def test_denied_empty_and_over_budget_look_the_same(place: Place) -> None:
    nobody = place.query(question("Atlantis"))
    alone = place.query(question("Nowhere"))
    small = place.query(question("Aspen", 30, 31))
    over_budget = place.query(question(), "poor")
    unnamed = place.query(question(), "stranger")
    answered = place.query(question())
    assert {len(got.body) for got in (nobody, alone, small, over_budget, unnamed, answered)} == {SMALLEST}
    assert {(got.status, got.headers) for got in (nobody, alone, small, over_budget, unnamed, answered)} == {
        (200, answered.headers)
    }
    assert [got.json["values"] for got in (nobody, alone, small, over_budget, unnamed)] == [[]] * 5
    assert answered.json["values"]


def test_no_reply_leaves_before_the_deadline(place: Place) -> None:
    for body in (question(), question(), question("Atlantis")):
        started = monotonic()
        place.query(body)
        assert monotonic() - started >= place.service.clock.deadline


def test_a_key_is_needed(place: Place) -> None:
    body, wrong = question(), place.keys["lab"][:-1] + "~"
    for key in ("", wrong, "x" * 5000):
        (got,) = ask(place.app, ("POST", "/v1/query", body, key))
        assert got.status == 401
        assert dict(got.headers)["www-authenticate"] == "Bearer"
    (schema,) = ask(place.app, ("GET", "/v1/schema", b"", wrong))
    assert schema.status == 401
    place.service.keys.remove("client-lab")
    assert place.query(body).status == 401
    assert not list(read_audit(place.state))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[1]", 400),
        (b'{"attribute": "diagnoses-Smith"}', 400),
        (b'{"attribute": "movies", "where": {"column": "Smith", "op": "=", "value": "Smith"}}', 400),
        (b'{"attribute": "movies", "where": {"column": "age", "op": "=", "value": "Smith"}}', 400),
        (b'{"attribute": "movies", "where": {"not": {"column": "age", "op": "=", "value": 3}}}', 400),
        (b'{"text": "SELECT movies FROM users WHERE name = \'Smith\'"}', 400),
        (b'{"text": "SELECT movies FROM users", "also": "Smith"}', 400),
        (b'{"text": 7}', 400),
        (b"[" * 10_000, 400),
        (b'{"attribute": "' + b"Smith" * 10_000 + b'"}', 413),
    ],
    ids=range(12),
)
def test_a_bad_request_is_refused_without_repeating_it(place: Place, body: bytes, status: int) -> None:
    got = place.query(body)
    assert got.status == status
    assert set(got.json) == {"error"}
    assert "Smith" not in got.body.decode()


def test_too_many_new_questions_at_once_are_sent_away_and_others_do_not_wait(place: Place) -> None:
    first = place.query(question())
    with ExitStack() as inside:
        for _ in range(place.service.policy.limits.concurrency):
            inside.enter_context(place.service.admission.enter("lab"))
        new, again = place.query(question("Boulder")), place.query(question())
        other, bad = place.query(question("Boulder"), "press"), place.query(b"{")
    assert new.status == 503
    assert dict(new.headers)["retry-after"] == "1"
    assert (again, other.status, bad.status) == (first, 200, 400)
    assert place.query(question("Boulder")).status == 200


def test_a_burst_is_answered_and_every_answer_is_on_the_disk(place: Place) -> None:
    requests = [("POST", "/v1/query", question(high=40 + n % 2), place.keys["lab"]) for n in range(8)]
    got = ask(place.app, *requests)
    assert {one.status for one in got} == {200}
    assert len(list(read_audit(place.state))) == 8
    for n in range(2):
        assert len({got[k].body for k in range(n, 8, 2)}) == 1


def test_an_error_inside_looks_like_an_empty_answer_and_is_logged_without_words(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    empty = place.query(question("Atlantis"))
    place.service.decisions.gateway.database.close()
    with caplog.at_level(logging.ERROR, "incrowd.gateway"):
        broken = place.query(question("Denver", 18, 50))
    assert (broken.status, broken.headers, len(broken.body)) == (empty.status, empty.headers, len(empty.body))
    assert broken.json["values"] == []
    assert "unforeseen" in caplog.text
    assert "Denver" not in caplog.text


def test_the_audit_log_holds_no_values_and_no_literals(place: Place) -> None:
    released = place.query(question()).json["values"]
    place.query(question("Aspen", 30, 31))
    place.query(b'{"attribute": "movies", "where": "Denver"}')
    records = list(read_audit(place.state))
    assert [(one["outcome"], one["released"]) for one in records] == [
        ("answered", len(released)),
        ("empty", 0),
        ("refused", 0),
    ]
    assert records[0]["client"] == "client-lab"
    written = json.dumps(records)
    assert not any(word in written for word in ("Denver", "Aspen", "Film", VICTIM, question().hex()))


def test_without_an_audit_log_nothing_leaves(place: Place) -> None:
    import os

    assert place.query(question()).json["values"]
    os.close(place.service.audit._file)
    place.service.audit._file = os.open("/dev/full", os.O_WRONLY)
    got = place.query(question())
    assert (got.status, got.json["values"]) == (200, [])
    (ready,) = ask(place.app, ("GET", "/ready"))
    assert ready.status == 503
    assert "audit" in ready.json["status"]


def test_health_readiness_schema_and_document(place: Place) -> None:
    health, ready, schema, budget, document = ask(
        place.app,
        ("GET", "/health"),
        ("GET", "/ready"),
        ("GET", "/v1/schema", b"", place.keys["lab"]),
        ("GET", "/v1/budget", b"", place.keys["lab"]),
        ("GET", "/openapi.json"),
    )
    assert (health.json, ready.json) == ({"status": "alive"}, {"status": "ready"})
    assert schema.json["attributes"] == ["movies"]
    assert schema.json["filters"] == {"city": "text", "age": "integer"}
    assert budget.json["queries_left"] == budget.json["queries"] == 100
    assert ask(place.app, ("GET", "/v1/budget"))[0].status == 401
    assert set(document.json["paths"]) == {"/v1/query", "/v1/schema", "/v1/budget", "/health", "/ready"}
    assert {"200", "400", "401", "413", "503"} <= set(
        document.json["paths"]["/v1/query"]["post"]["responses"]
    )


def test_unknown_paths_and_methods_are_refused(place: Place) -> None:
    for method, path, status in (("GET", "/v1/query", 405), ("GET", "/metrics", 404), ("POST", "/try", 404)):
        (got,) = ask(place.app, (method, path))
        assert got.status == status
        assert set(got.json) == {"error"}


def test_metrics_are_for_the_operator_port(place: Place) -> None:
    place.query(question())
    place.query(b"{")
    (got,) = ask(place.admin, ("GET", "/metrics"))
    text = got.body.decode()
    assert 'incrowd_gateway_requests_total{outcome="answered"} 1' in text
    assert 'incrowd_gateway_requests_total{outcome="refused"} 1' in text
    assert "incrowd_gateway_reply_seconds_count 1" in text
    assert "client-lab" not in text


def test_only_the_operator_may_ask_why(place: Place) -> None:
    wanted = json.dumps({"query": json.loads(question("Aspen", 30, 31)), "organisation": "lab"}).encode()
    refused, also, got, bad = ask(
        place.admin,
        ("POST", "/try", wanted, place.keys["lab"]),
        ("POST", "/support", b"{}"),
        ("POST", "/try", wanted, place.token),
        ("POST", "/try", b'{"query": {"attribute": "x"}, "organisation": null}', place.token),
    )
    assert (refused.status, also.status, bad.status) == (401, 401, 400)
    assert got.json["class_size"] < 10
    assert got.json["rule"]
    assert not list(read_audit(place.state))


def test_the_operator_sees_what_the_data_support(place: Place) -> None:
    (got,) = ask(place.admin, ("POST", "/support", b"{}", place.token))
    (movies,) = got.json["attributes"]
    assert movies["attribute"] == "movies"
    assert movies["values"] == 13
    assert movies["at"][0]["frequent"] >= movies["at"][0]["released"] > 0
    filters = {one["filter"]: one for one in got.json["filters"]}
    assert filters["city"]["classes"] == 4
    assert filters["city"]["people"] == 401


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "::", "example.org"])
def test_it_stays_on_this_machine_unless_a_proxy_is_in_front(host: str) -> None:
    with pytest.raises(InputError, match="behind_proxy"):
        Address(host=host)
    assert Address(host=host, behind_proxy=True).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_this_machine_needs_no_proxy(host: str) -> None:
    assert Address(host=host).host == host
    with pytest.raises(InputError, match="another port"):
        Address(host=host, port=1, admin_port=1)


def test_a_decision_that_takes_too_long_leaves_an_empty_reply_and_is_written_down(place: Place) -> None:
    place.service.clock = ReplyClock(deadline=0.01, multiples=2)
    place.service.decisions.gateway.ledger._lock.acquire()  # the disk hangs
    try:
        got = asyncio.run(until_late(place))
    finally:
        place.service.decisions.gateway.ledger._lock.release()
    assert (got.status, got.json["values"]) == (200, [])
    assert len(got.body) == SMALLEST
    assert [(one["outcome"], one["rule"]) for one in read_audit(place.state)][:1] == [("error", "late")]


async def until_late(place: Place) -> Got:
    got: Got = await call(place.app, "POST", "/v1/query", question(), place.keys["lab"])
    place.service.decisions.gateway.ledger._lock.release()
    await asyncio.wait(place.service._working)
    place.service.decisions.gateway.ledger._lock.acquire()
    return got
