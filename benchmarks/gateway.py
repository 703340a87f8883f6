"""The gateway under load: 100,000 people, mixed good, bad and hostile requests from a second process, kill -9.

Bars, on DuckDB and on PostgreSQL: 200 requests a second sustained on 2 cores with cached snapshots, p99 under
250 ms (replies leave on a fixed deadline, so the fastest takes as long), memory flat over the run, and no entry of
ledger or audit log lost when the service is killed in the middle, checked by asking everything again.

Requests are repeats, new questions and questions over budget in equal parts (``--mix thirds``), or mostly repeats with
mistakes and hostile questions among them (``--mix hostile``). ``python -m benchmarks.gateway --seconds 600`` is the
long run; ``--database duckdb`` takes one database only. Everybody is counted in one question of a month by default;
``--questions 10000`` counts them in all, which is the most work.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from tests.gateway.serving import DATABASE

from benchmarks._gateway_load import EMPTY, Load, Outcome, run_load, usual
from incrowd.gateway.audit import check_audit, read_audit
from incrowd.gateway.state import KeyStore, open_secret

USERS, CITIES, MOVIES, LISTED = 100_000, 60, 2_000, 10
GOOD, HOSTILE = [f"org{number}" for number in range(8)], [f"evil{number}" for number in range(4)]


def policy_text(mix: str, mechanism: str, questions: int, cache_mib: int = 256) -> str:
    """Good organisations may ask enough for the long run; others have the default budget, or none."""
    many, few = (10**6, "queries = 0\n") if mix == "thirds" else (1000, "")
    good = [f"[organisations.{name}]\nqueries = {many}\n" for name in GOOD]
    others = [f"[organisations.{name}]\n{few}" for name in HOSTILE]
    release = f'[release]\nmechanism = "{mechanism}"\n[privacy]\nquestions = {questions}\n'
    release += f"[limits]\ncache_mib = {cache_mib}\n"
    return "".join(["allow_weak = true\n" if mix == "thirds" else "", DATABASE, release, *good, *others])


def make_tables() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Made-up people: a few cities hold most of them, a few films are liked by most."""
    draw = np.random.default_rng(6)
    city = np.minimum(draw.zipf(1.4, USERS), CITIES)
    edges = np.cumsum(1 / np.arange(1, MOVIES + 1))
    movie = np.searchsorted(edges / edges[-1], draw.random(USERS * LISTED))
    people = {"id": np.arange(USERS), "city": city, "age": draw.integers(16, 90, USERS)}
    likes = {"person": np.repeat(np.arange(USERS), LISTED), "movie": movie}
    return people, likes


def fill_duckdb(folder: Path) -> str:
    import duckdb
    import pyarrow as pa

    people, likes = (pa.table(table) for table in make_tables())
    with duckdb.connect(str(folder / "people.duckdb")) as database:
        database.register("p", people)
        database.register("l", likes)
        database.execute(
            "CREATE TABLE people AS SELECT id, 'city ' || city AS city, age, "
            "TIMESTAMP '2020-01-01' AS joined FROM p"
        )
        database.execute("CREATE TABLE likes AS SELECT DISTINCT person, 'film ' || movie AS movie FROM l")
    return f"duckdb:///{folder}/people.duckdb"


def fill_postgresql(folder: Path) -> str:
    import pgserver
    import psycopg

    server = pgserver.get_server(folder / "postgresql", cleanup_mode="stop")  # type: ignore[attr-defined]
    globals()["_server"] = server  # it stops when it is forgotten
    people, likes = make_tables()
    with psycopg.connect(server.get_uri()) as database, database.cursor() as cursor:
        cursor.execute("CREATE TABLE people (id int, city text, age int, joined timestamp)")
        cursor.execute("CREATE TABLE likes (person int, movie text)")
        with cursor.copy("COPY people FROM STDIN") as copy:
            rows = zip(*(people[name].tolist() for name in ("id", "city", "age")), strict=True)
            for number, city, age in rows:
                copy.write_row((number, f"city {city}", age, "2020-01-01"))
        with cursor.copy("COPY likes FROM STDIN") as copy:
            for person, movie in set(zip(likes["person"].tolist(), likes["movie"].tolist(), strict=True)):
                copy.write_row((person, f"film {movie}"))
    return str(server.get_uri())


@contextmanager
def service(url: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], int, int]]:
    """Run the gateway as its users do, and wait until it listens."""
    command = [
        str(Path(sys.executable).with_name("incrowd")),
        "gateway",
        "--policy",
        str(folder / "policy.toml"),
    ]
    command += ["--state", str(folder / "state"), "--port", "0", "--admin-port", "0"]
    environment = {**os.environ, "INCROWD_DATABASE": url}
    with (folder / "service.log").open("w") as log:
        process = subprocess.Popen(command, stderr=log, text=True, env=environment)
    try:
        yield (process, *_ports(process, folder))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            print("the gateway did not stop by itself", file=sys.stderr)


def _ports(process: subprocess.Popen[str], folder: Path) -> tuple[int, int]:
    while process.poll() is None:
        if "listening" in (folder / "service.log").read_text():
            noted = json.loads((folder / "state" / "running.json").read_text())
            return noted["port"], noted["admin_port"]
        time.sleep(0.02)
    raise RuntimeError(f"the gateway did not start: {(folder / 'service.log').read_text()}")


def resident(pid: int) -> int:
    """Bytes that a process and its children hold."""
    pids, total = [pid], 0
    while pids:
        one = pids.pop()
        try:
            status = Path(f"/proc/{one}/status").read_text()
            pids += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += next((int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon")), 0)
    return total * 1024


def sustained(
    url: str, folder: Path, keys: list[str], seconds: float, rate: float, mix: str
) -> dict[str, object]:
    """Hold the rate, watch latency and memory."""
    with service(url, folder) as (process, port, _):
        first = run_load(Load(port=port, keys=keys, seconds=0, rate=10, seed=1, replay=usual(keys)))
        run_load(Load(port=port, keys=keys, seconds=min(20, seconds / 2), rate=rate / 2, seed=1, mix=mix))
        before, decided = cpu_seconds(process.pid), count_new(folder)
        done = run_load(
            Load(port=port, keys=keys, seconds=seconds, rate=rate, seed=2, mix=mix),
            watch=lambda: resident(process.pid),
        )
        used = cpu_seconds(process.pid) - before
    half, kinds = len(done.watched) // 2, sorted({one.kind for one in done.outcomes})
    logged = (folder / "service.log").read_text().count('"error"')
    return {
        "first_time_questions": summary(first.outcomes),
        "requests": len(done.outcomes),
        "requests_per_s": len(done.outcomes) / done.seconds,
        "new_questions_per_s": (count_new(folder) - decided) / done.seconds,
        "answers": summary([one for one in done.outcomes if one.kind != "bad"]),
        "by_kind": {kind: summary([one for one in done.outcomes if one.kind == kind]) for kind in kinds},
        "statuses": {
            f"{k} {s}": n for (k, s), n in sorted(Counter((o.kind, o.status) for o in done.outcomes).items())
        },
        "answered_share": float(np.mean([one.filled for one in done.outcomes if one.status == 200])),
        "connection_errors": done.errors,
        "errors_logged": logged,
        "service_cpu_share": used / done.seconds,
        "service_cpu_ms_per_request": 1000 * used / len(done.outcomes),
        "memory_mib": {
            "start": done.watched[0] / 2**20,
            "first_half_max": max(done.watched[: half + 1]) / 2**20,
            "second_half_max": max(done.watched[half:]) / 2**20,
            "max_of_each_tenth": [round(max(one) / 2**20) for one in np.array_split(done.watched, 10)],
        },
    }


def count_replies(folder: Path) -> int:
    """Audit records of requests that get status 200."""
    return sum(record["outcome"] in ("answered", "empty", "error") for record in read_audit(folder / "state"))


def count_new(folder: Path) -> int:
    return sum(bool(record["query"]) and not record["repeated"] for record in read_audit(folder / "state"))


def cpu_seconds(pid: int) -> float:
    import psutil

    processes = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(sum(one.cpu_times()[:2]) for one in processes)


def summary(outcomes: list[Outcome]) -> dict[str, float]:
    taken = np.array([one.seconds for one in outcomes]) * 1000
    quantiles = {f"p{q}_ms": float(np.percentile(taken, q)) for q in (1, 50, 99)} if len(taken) else {}
    return {"requests": len(outcomes), **quantiles, "max_ms": float(taken.max()) if len(taken) else 0.0}


def killed(
    url: str, folder: Path, keys: list[str], rate: float, mix: str, times: int = 3
) -> dict[str, object]:
    """Kill the service in the middle of its load, then ask all it answered again: the same bytes have to come."""
    told = same = other = empty = lost = 0
    secret = open_secret(folder / "state")
    for attempt in range(times):
        before = count_replies(folder)
        with service(url, folder) as (process, port, _):
            load = Load(port=port, keys=keys, seconds=4, rate=rate, seed=100 + attempt, mix=mix, keep=True)
            done = run_load(load, kill=(process.pid, 2 + attempt * 0.37))
        acknowledged = [one for one in done.outcomes if one.status == 200]
        lost += max(0, len(acknowledged) - (count_replies(folder) - before))
        filled = {asked: reply for asked, reply in done.kept.items() if not reply.startswith(EMPTY)}
        with service(url, folder) as (_, port, _):
            again = run_load(
                Load(port=port, keys=keys, seconds=1, rate=rate, seed=0, replay=filled, keep=True)
            )
        told, empty = told + len(filled), empty + len(done.kept) - len(filled)
        replies = [(again.kept[asked], reply) for asked, reply in filled.items() if asked in again.kept]
        same += sum(now == then for now, then in replies)
        other += sum(now != then for now, then in replies)
        assert check_audit(folder / "state", secret.key("audit")).intact
    return {
        "kills": times,
        "answers_told": told,
        "same_bytes_when_asked_again": same,
        "other_bytes": other,
        "not_answered_again": told - same - other,
        "empty_replies": empty,
        "audit_records_lost": lost,
    }


def on(database: str, chosen: argparse.Namespace) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = {"duckdb": fill_duckdb, "postgresql": fill_postgresql}[database](folder)
        (folder / "policy.toml").write_text(
            policy_text(chosen.mix, chosen.mechanism, chosen.questions, chosen.cache_mib)
        )
        store = KeyStore(folder / "state")
        keys = [store.add(f"client-{name}", name) for name in (*GOOD, *HOSTILE)]
        started = time.perf_counter()
        with service(url, folder):
            ready = time.perf_counter() - started
        report: dict[str, object] = {"first_start_s": ready}
        report["load"] = sustained(url, folder, keys, chosen.seconds, chosen.rate, chosen.mix)
        report["kill_9"] = killed(url, folder, keys, chosen.rate, chosen.mix)
        globals().pop("_server", None)
        return report


def main() -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--database", choices=["duckdb", "postgresql", "both"], default="both")
    parser.add_argument("--mix", choices=["thirds", "hostile"], default="thirds")
    parser.add_argument("--mechanism", choices=["private", "q"], default="private")
    parser.add_argument(
        "--questions", type=int, default=1, help="in how many questions a month people are counted"
    )
    parser.add_argument("--cache-mib", type=int, default=256, help="small: full, and flat, after seconds")
    chosen = parser.parse_args()
    names = ["duckdb", "postgresql"] if chosen.database == "both" else [chosen.database]
    return {name: on(name, chosen) for name in names}


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
