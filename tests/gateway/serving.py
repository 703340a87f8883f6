"""A made-up club in DuckDB, and a gateway in front of it: inside the test, or as a process of its own."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATABASE = """
[database]
users = "people"
id = "id"
created = "joined"
[database.filters]
city = "text"
age = "integer"
[database.attributes.movies]
table = "likes"
user = "person"
value = "movie"
"""
POLICY = (
    DATABASE
    + """
[budget]
scope = "organisation"
[release]
mechanism = "q"
q = 5
min_class = 10
noise = 3
[limits]
reply_seconds = {reply}
solver_seconds = 5
[organisations.lab]
queries = {queries}
[organisations.press]
[organisations.poor]
queries = 0
"""
)
VICTIM = "Zanzibar Diaries"
"""A film that one person alone lists: it must never be seen anywhere."""


def make_world(folder: Path, *, people: int = 400, reply: float = 0.05, queries: int = 100) -> str:
    """Write database and policy; return the database's URL."""
    import duckdb

    with duckdb.connect(str(folder / "club.duckdb")) as club:
        club.execute(
            "CREATE TABLE people AS SELECT range AS id, "
            "CASE WHEN range % 10 < 6 THEN 'Denver' WHEN range % 10 < 9 THEN 'Boulder' ELSE 'Aspen' END AS city, "
            f"18 + (range * 7) % 60 AS age, DATE '2020-01-01' AS joined FROM range({people})"
        )
        club.execute(
            "CREATE TABLE likes AS SELECT person, 'Film ' || film AS movie FROM "
            f"(SELECT range AS person FROM range({people})) p, (SELECT range AS film FROM range(12)) f "
            "WHERE hash(person * 100 + film) % 1000 < 600 / (film + 1)"
        )
        club.execute("INSERT INTO likes VALUES (3, ?)", [VICTIM])
        club.execute("INSERT INTO people VALUES (100000, 'Nowhere', 30, DATE '2020-01-01')")
    (folder / "policy.toml").write_text(POLICY.format(reply=reply, queries=queries))
    return f"duckdb:///{folder}/club.duckdb"


def question(city: str = "Denver", low: int = 0, high: int = 200) -> bytes:
    where = [
        {"column": "city", "op": "=", "value": city},
        {"column": "age", "between": [low, high]},
    ]
    return json.dumps({"attribute": "movies", "where": {"and": where}}).encode()


@dataclass(frozen=True)
class Got:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def call(app: Any, method: str, path: str, body: bytes = b"", key: str = "") -> Any:
    """Return the coroutine of one request to an application, without a network."""

    async def request() -> Got:
        sent: list[Any] = []
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return parts.pop(0) if parts else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"authorization", f"Bearer {key}".encode())] if key else []
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8400),
        }
        await app(scope, receive, send)
        start, *rest = sent
        headers_out = tuple((name.decode(), value.decode()) for name, value in start["headers"])
        return Got(start["status"], headers_out, b"".join(part.get("body", b"") for part in rest))

    return request()


def ask(app: Any, *requests: tuple[Any, ...]) -> list[Got]:
    """Send requests at once and wait for all."""

    async def everything() -> list[Got]:
        return list(await asyncio.gather(*(call(app, *one) for one in requests)))

    return asyncio.run(everything())


@dataclass
class Running:
    process: subprocess.Popen[str]
    port: int
    admin_port: int

    def post(self, body: bytes, key: str) -> Got:
        return self.request("POST", "/v1/query", body, key)

    def request(
        self, method: str, path: str, body: bytes | None = None, key: str = "", *, admin: bool = False
    ) -> Got:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.admin_port if admin else self.port, timeout=60
        )
        try:
            connection.request(method, path, body, {"Authorization": f"Bearer {key}"} if key else {})
            reply = connection.getresponse()
            return Got(reply.status, tuple(reply.getheaders()), reply.read())
        finally:
            connection.close()


@contextmanager
def running(url: str, folder: Path, *options: str) -> Iterator[Running]:
    """Run `incrowd gateway` as its users do, and wait until it listens."""
    command = [str(Path(sys.executable).with_name("incrowd")), "gateway"]
    command += ["--policy", str(folder / "policy.toml"), "--state", str(folder / "state")]
    command += ["--port", "0", "--admin-port", "0", *options]
    environment = {**os.environ, "INCROWD_DATABASE": url}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "listening" in line:
                break
        assert any("listening" in line for line in lines), f"the gateway did not start: {lines}"
        noted = json.loads((folder / "state" / "running.json").read_text())
        yield Running(process, noted["port"], noted["admin_port"])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(60)
        process.stderr.close()
