"""Attacks on the running service: hostile questions, floods, and what errors and logs give away."""

from __future__ import annotations

import http.client
import json
import re
import resource
import socket
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Thread
from time import monotonic

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.gateway.serving import VICTIM, Got, Running, make_world, question, running

from incrowd.errors import InputError
from incrowd.gateway.policy import GatewayPolicy, load_policy
from incrowd.gateway.predicate import compile_predicate
from incrowd.gateway.state import KeyStore
from incrowd.gateway.text_query import read_query
from incrowd.measures.release import Budget, Method, measure_q

CANARY = "canary-7f3a91-do-not-show"
"""Stands in a file beside the database, in a column that is no filter, and in a table that is not named."""
SIZE = 4096
HARD = """
[database.attributes.tags]
table = "tags"
user = "person"
value = "tag"
"""
HOSTILE = [
    "'; DROP TABLE people; --",
    "' OR '1'='1",
    '" OR ""="',
    "ATTACH '/etc/passwd' AS x",
    "read_csv('/etc/passwd')",
    "read_text('canary.txt')",
    "(SELECT secret FROM hidden)",
    "COPY people TO '/tmp/stolen'",
    "INSTALL httpfs; LOAD httpfs",
    "PRAGMA database_list",
    "current_setting('home_directory')",
    "pg_read_file('/etc/passwd')",
    "lo_import('/etc/passwd')",
    "\\'; SELECT 1; --",
    "Denver\x00",
    "De\u200bnver",
    "ᴅenver",
    "ＤＥＮＶＥＲ",
    "'||(SELECT secret FROM hidden)||'",
    "${jndi:ldap://x}",
    "%s%s%n",
    "{{7*7}}",
    "?",
    "$1",
    ":name",
    "/**/",
]


@dataclass(frozen=True)
class Besieged:
    running: Running
    folder: Path
    keys: dict[str, str]
    policy: GatewayPolicy
    log: list[str]
    """What the process wrote so far."""

    def post(self, body: bytes, organisation: str = "lab") -> Got:
        return self.running.post(body, self.keys[organisation])

    @property
    def unforeseen(self) -> list[str]:
        """Lines of the log about errors that nobody had foreseen."""
        return [line for line in self.log if "unforeseen" in line]


@pytest.fixture(scope="module")
def service() -> Iterator[Besieged]:
    import duckdb

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        url = make_world(folder, reply=0.1, queries=1000)
        with duckdb.connect(str(folder / "club.duckdb")) as club:
            club.execute("ALTER TABLE people ADD COLUMN secret VARCHAR")
            club.execute("UPDATE people SET secret = ?", [CANARY])
            club.execute("CREATE TABLE hidden AS SELECT ? AS secret", [CANARY])
            club.execute(
                "INSERT INTO people SELECT 200000 + range, 'Metropolis', 30, DATE '2020-01-01', '' FROM range(700)"
            )
            club.execute(
                "CREATE TABLE tags AS SELECT 200000 + p.range AS person, 'tag ' || t.range AS tag "
                "FROM range(700) p, range(24) t WHERE hash(p.range * 100 + t.range) % 4 = 0"
            )
        (folder / "canary.txt").write_text(CANARY)
        policy = folder / "policy.toml"
        policy.write_text(policy.read_text().replace("[limits]", '[limits]\nproxies = ["127.0.0.1"]') + HARD)
        store = KeyStore(folder / "state")
        keys = {name: store.add(f"client-{name}", name) for name in ("lab", "press")}
        with running(url, folder) as process:
            log: list[str] = []
            assert process.process.stderr is not None
            Thread(target=log.extend, args=(process.process.stderr,), daemon=True).start()
            yield Besieged(process, folder, keys, load_policy(folder / "policy.toml"), log)


def is_decent(got: Got) -> bool:
    """One of the foreseen replies, with nothing in it that nobody may see."""
    text = got.body.decode()
    known = got.status in (200, 400, 408, 413) and set(got.json) in ({"values", "padding"}, {"error"})
    return known and CANARY not in text and VICTIM not in text and "Traceback" not in text


# Injection


def test_text_pasted_into_sql_reaches_what_nobody_may_see(service: Besieged) -> None:
    """What a gateway without bound parameters would do, and what this one does with the same words."""
    import duckdb

    wanted = "Nowhere' UNION SELECT secret FROM hidden --"
    with duckdb.connect(str(service.folder / "club.duckdb"), read_only=True) as club:
        rows = club.execute(f"SELECT city FROM people WHERE city = '{wanted}'").fetchall()
    assert (CANARY,) in rows
    got = service.post(question(wanted))
    assert got.json["values"] == []
    assert is_decent(got)


WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "UNION",
    "LIMIT",
    ";",
    "--",
    "(",
    ")",
    ",",
]
NAMES = [
    "movies",
    "tags",
    "users",
    "people",
    "city",
    "age",
    "secret",
    "hidden",
    "id",
    "*",
    "f_city",
    "number",
]
LITERALS = [*(f"'{one}'" for one in HOSTILE), "'Denver'", "1", "-1", "1e309", "0x10", "NULL", "TRUE", "''"]
token = st.sampled_from([*WORDS, *NAMES, *LITERALS, *HOSTILE, "=", "<", ">", "<>", "!=", "LIKE", "::", "."])
sentence = st.one_of(
    st.lists(token, max_size=14).map(" ".join),
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.lists(token, max_size=8)).map(
        lambda parts: f"SELECT {parts[0]} FROM users WHERE {parts[1]} = {' '.join(parts[2])}"
    ),
    st.sampled_from(HOSTILE).map(
        lambda one: "SELECT movies FROM users WHERE city = '" + one.replace("'", "''") + "'"
    ),
)
scalar = st.one_of(
    st.sampled_from([*HOSTILE, "Denver", ""]),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=8),
)
name = st.sampled_from([*NAMES, *HOSTILE])
leaf = st.one_of(
    st.fixed_dictionaries(
        {"column": name, "op": st.sampled_from(["=", "<", "!=", "LIKE", "; --"]), "value": scalar}
    ),
    st.fixed_dictionaries({"column": name, "in": st.lists(scalar, max_size=4)}),
    st.fixed_dictionaries({"column": name, "between": st.lists(scalar, max_size=3)}),
)
tree = st.recursive(
    leaf,
    lambda inner: st.sampled_from(["and", "or", "not"]).flatmap(
        lambda word: (inner if word == "not" else st.lists(inner, max_size=3)).map(lambda got: {word: got})
    ),
    max_leaves=6,
)
hostile_question = st.one_of(
    sentence.map(lambda text: {"text": text}),
    st.fixed_dictionaries({"attribute": name, "where": tree}),
    st.dictionaries(name, scalar, max_size=3),
)
SPELT = re.compile(r"(?:f_(?:city|age)|AND|OR|NOT|IN|BETWEEN|TRUE|FALSE|<>|<=|>=|[=<>(),?]|\s)*")


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(asked=hostile_question)
def test_no_word_of_a_client_reaches_the_database(service: Besieged, asked: object) -> None:
    try:
        query = read_query(json.dumps(asked).encode(), service.policy)
    except InputError as error:
        refusal = str(error)
        assert not any(one in refusal for one in HOSTILE if len(one) > 3)
        return
    compiled = compile_predicate(query.where, "?")
    assert SPELT.fullmatch(compiled.sql)
    assert compiled.sql.count("?") == len(compiled.parameters)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(asked=hostile_question)
def test_hostile_questions_get_foreseen_replies(service: Besieged, asked: object) -> None:
    assert is_decent(service.post(json.dumps(asked).encode()))


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(body=st.binary(max_size=300))
def test_bytes_that_are_no_question_get_foreseen_replies(service: Besieged, body: bytes) -> None:
    assert is_decent(service.post(body))


@pytest.mark.parametrize(("operation", "examples"), [("POST /v1/query", 10), ("GET /v1/schema", 1)])
def test_the_published_document_holds_for_generated_requests(
    service: Besieged, operation: str, examples: int
) -> None:
    import schemathesis

    base = f"http://127.0.0.1:{service.running.port}"
    method, path = operation.split()
    headers = {"Authorization": f"Bearer {service.keys['lab']}"}

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        phases=[Phase.generate],
    )
    @given(case=schemathesis.openapi.from_url(f"{base}/openapi.json")[path][method].as_strategy())
    def conforms(case: schemathesis.Case) -> None:
        reply = case.call(base_url=base, headers=headers)
        assert reply.status_code in (200, 400, 413)
        # The document describes the shape of a question; which names exist is in /v1/schema alone.
        case.validate_response(reply, excluded_checks=[schemathesis.checks.positive_data_acceptance])

    conforms()


def test_after_all_that_nothing_was_changed_and_nothing_broke(service: Besieged) -> None:
    import duckdb

    with duckdb.connect(str(service.folder / "club.duckdb"), read_only=True) as club:
        assert club.execute("SELECT count(*) FROM hidden").fetchone() == (1,)
    assert not service.unforeseen
    assert {path.name for path in service.folder.iterdir()} == {
        "club.duckdb",
        "policy.toml",
        "canary.txt",
        "state",
    }
    assert service.post(question(), "press").json["values"]


# Exhaustion

DEEP = b'{"attribute":"movies","where":' + b'{"and":[' * 5000 + b"]}" * 5000 + b"}"
LONG = json.dumps({"attribute": "movies", "where": {"column": "age", "in": list(range(3000))}}).encode()
WIDE = json.dumps(
    {"attribute": "movies", "where": {"or": [{"column": "age", "op": "=", "value": k} for k in range(200)]}}
).encode()
NESTED_TEXT = json.dumps(
    {"text": "SELECT movies FROM users WHERE " + "(" * 900 + "age = 1" + ")" * 900}
).encode()
HUGE = b'{"attribute":"movies","where":{"column":"age","op":"=","value":' + b"9" * 12000 + b"}}"


@pytest.mark.parametrize("body", [DEEP, LONG, WIDE, NESTED_TEXT, HUGE, b"x" * 100_000], ids=range(6))
def test_outsized_questions_are_refused(service: Besieged, body: bytes) -> None:
    got = service.post(body)
    assert got.status in (400, 413)
    assert is_decent(got)


def hard_question(number: int) -> bytes:
    where = {
        "or": [
            {"column": "city", "op": "=", "value": "Metropolis"},
            {
                "and": [
                    {"column": "city", "op": "=", "value": "Denver"},
                    {"column": "age", "op": ">", "value": number},
                ]
            },
        ]
    }
    return json.dumps({"attribute": "tags", "where": where}).encode()


def test_an_exact_solver_would_be_stalled(service: Besieged) -> None:
    import duckdb

    with duckdb.connect(str(service.folder / "club.duckdb"), read_only=True) as club:
        rows = club.execute("SELECT tag, list(person) FROM tags GROUP BY tag").fetchall()
    measured = measure_q(dict(rows), budget=Budget(seconds=1.0))
    assert measured.method == Method.INTERVAL


def test_a_flood_of_hard_questions_leaves_the_service_alive(service: Besieged) -> None:
    """700 people and 24 common values stall an exact solver for minutes; here each question has a tenth of a second."""
    idle = [socket.create_connection(("127.0.0.1", service.running.port)) for _ in range(30)]
    for one in idle:
        one.sendall(b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Le")  # and never more
    with ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda k: service.post(hard_question(k)), range(36)))
    assert {got.status for got in replies} <= {200, 503}
    assert {len(got.body) for got in replies if got.status == 200} == {SIZE}
    assert service.running.request("GET", "/ready").status == 200
    other = service.post(question("Boulder"), "press")
    assert other.status == 200
    assert other.json["values"]
    for one in idle:
        one.close()
    assert not service.unforeseen


def test_connections_that_send_nothing_shut_nobody_out(service: Besieged) -> None:
    """More than there are places for: whoever has a key is answered at once, while strangers are replaced."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, before[1]), before[1]))
    idle: list[socket.socket] = []
    try:
        for _ in range(1200):
            idle.append(socket.create_connection(("127.0.0.1", service.running.port)))
        started = monotonic()
        assert service.post(question("Boulder"), "press").status == 200
        assert monotonic() - started < 5
        assert service.running.request("GET", "/health").status == 200
    finally:
        for one in idle:
            one.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_one_address_holds_only_so_many_connections_without_a_key(service: Besieged) -> None:
    """Opened over and over; other addresses, and those who have shown a key, keep theirs."""
    door, key = ("127.0.0.1", service.running.port), service.keys["press"]
    others = [socket.create_connection(door, source_address=("127.0.0.3", 0)) for _ in range(3)]
    client = http.client.HTTPConnection(*door, source_address=("127.0.0.2", 0), timeout=30)
    headers = {"Authorization": f"Bearer {key}"}
    client.request("GET", "/v1/schema", headers=headers)
    assert client.getresponse().read()
    first = client.sock
    crowd: list[socket.socket] = []
    for _ in range(3):  # again and again
        crowd += [socket.create_connection(door, source_address=("127.0.0.2", 0)) for _ in range(60)]
        client.request("GET", "/v1/schema", headers=headers)
        assert client.getresponse().read()
    try:
        assert client.sock is first
        assert sum(map(_is_open, crowd)) == service.policy.limits.strangers
        assert all(map(_is_open, others))
    finally:
        for one in (*crowd, *others, client):
            one.close()


def _is_open(one: socket.socket) -> bool:
    one.settimeout(0.005)
    try:
        return bool(one.recv(1))
    except TimeoutError:
        return True


# Errors and logs

FORBIDDEN = [VICTIM, CANARY, "Film ", "Denver", "Metropolis", "DROP TABLE"]


def test_audit_metrics_and_refusals_hold_no_value_and_no_literal(service: Besieged) -> None:
    service.post(question())
    refused = service.post(
        json.dumps({"attribute": "movies", "where": {"column": VICTIM, "op": "=", "value": 1}}).encode()
    )
    metrics = service.running.request("GET", "/metrics", admin=True).body.decode()
    audit = "".join(path.read_text() for path in (service.folder / "state" / "audit").iterdir())
    assert "lab" in audit
    for text in (refused.body.decode(), metrics, audit, *service.log):
        assert not [one for one in FORBIDDEN if one in text]


def test_nothing_but_the_state_folder_remembers(service: Besieged) -> None:
    """The ledger must know what was said; every other file beside it must not."""
    for path in (service.folder / "state").rglob("*"):
        if path.is_file() and not path.name.startswith(("ledger", "snapshots")):
            assert VICTIM.encode() not in path.read_bytes()
    for path in (service.folder / "state").iterdir():
        assert path.stat().st_mode & 0o077 == 0


def test_a_key_is_stored_so_that_it_cannot_be_read_back(service: Besieged) -> None:
    held = b"".join(path.read_bytes() for path in (service.folder / "state").iterdir() if path.is_file())
    for key in service.keys.values():
        assert key.encode() not in held
        assert sha256(key.encode()).hexdigest().encode() not in held
