"""10,000 hostile connections without a key for five minutes, and what clients with a key see meanwhile.

Each hostile connection stays as long as the gateway lets it and is opened again a few seconds after it was closed. It
sends nothing, half a request, headers byte by byte, headers without end, or a request without a key. Clients with a key
ask 20 questions a second, repeats, new ones and ones over budget in equal parts; half of them over new connections. All
of it on this machine's loopback, and it ends by itself. The bar: p99 of clients with a key below a second.

``python -m benchmarks.gateway_siege --seconds 300`` is the long run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import tempfile
import time
from collections import Counter
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

from benchmarks._gateway_load import CITIES, Load, question, run_load
from benchmarks.gateway import (
    GOOD,
    HOSTILE,
    cpu_seconds,
    fill_duckdb,
    policy_text,
    resident,
    service,
    summary,
)
from incrowd.gateway.state import KeyStore

HALF = b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\n{"
KINDS = {
    "nothing": b"",
    "half a request": HALF,
    "byte by byte": b"GET /ready HTTP/1.1\r\nX: ",
    "endless headers": b"GET /ready HTTP/1.1\r\n" + b"X: y\r\n" * 200,
    "no key": b"POST /v1/query HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
}


async def one_hostile(
    port: int, draw: random.Random, until: float, pause: float, seen: Counter[str], held: list[int]
) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.sleep(draw.random() * pause)
    while loop.time() < until:
        kind = draw.choice(list(KINDS))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            seen["not opened"] += 1
            await asyncio.sleep(pause)
            continue
        seen[kind] += 1
        held[0] += 1
        try:
            writer.write(KINDS[kind])
            while loop.time() < until:
                try:
                    if not await asyncio.wait_for(reader.read(4096), 1.0):
                        break
                except TimeoutError:
                    if kind == "byte by byte":
                        writer.write(b"z")
        except OSError:
            seen["cut"] += 1
        finally:
            held[0] -= 1
            writer.close()
        await asyncio.sleep(pause * (0.5 + draw.random()))


def besiege(port: int, connections: int, seconds: float, pause: float, started: Event, out: Any) -> None:
    """Run as a process of its own, behind the others: attackers have processors of their own."""
    os.nice(10)

    async def everybody() -> None:
        until = asyncio.get_running_loop().time() + seconds
        seen: Counter[str] = Counter()
        held, most = [0], 0
        draws = [random.Random(number) for number in range(connections)]
        tasks = [asyncio.create_task(one_hostile(port, draw, until, pause, seen, held)) for draw in draws]
        started.set()
        while asyncio.get_running_loop().time() < until:
            most = max(most, held[0])
            await asyncio.sleep(0.5)
        await asyncio.wait(tasks, timeout=30)
        out.put({"opened": dict(seen), "held_at_once": most})

    asyncio.run(everybody())


def keyed(port: int, keys: list[str], seconds: float, rate: float) -> dict[str, object]:
    """Ask as clients do, and say how long replies took."""
    done = run_load(Load(port=port, keys=keys, seconds=seconds, rate=rate, seed=7, mix="thirds", reuse=0.5))
    statuses = Counter(one.status for one in done.outcomes)
    return {**summary(done.outcomes), "statuses": dict(statuses), "connection_errors": done.errors}


def main() -> dict[str, object]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument(
        "--pause", type=float, default=5.0, help="seconds before a closed one is opened again"
    )
    parser.add_argument("--rate", type=float, default=20.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = fill_duckdb(folder)
        (folder / "policy.toml").write_text(policy_text("thirds", "private", 1))
        store = KeyStore(folder / "state")
        keys = [store.add(f"client-{one}", one) for one in (*GOOD, *HOSTILE)]
        usual = [
            (key, question(city, low, 200))
            for city in CITIES[:6]
            for low in range(20, 70, 10)
            for key in keys[:1]
        ]
        context = multiprocessing.get_context("spawn")
        started, out = context.Event(), context.Queue()
        with service(url, folder) as (process, port, _):
            run_load(Load(port=port, keys=keys, seconds=0, rate=20, seed=1, replay=usual))
            quiet = keyed(port, keys, min(10.0, chosen.seconds), chosen.rate)
            arguments = (port, chosen.connections, chosen.seconds + 10, chosen.pause, started, out)
            hostile = context.Process(target=besiege, args=arguments)
            hostile.start()
            started.wait()
            time.sleep(5)
            before, memory = cpu_seconds(process.pid), resident(process.pid)
            besieged = keyed(port, keys, chosen.seconds, chosen.rate)
            used = cpu_seconds(process.pid) - before
            after = resident(process.pid)
            told = out.get(timeout=120)
            hostile.join()
            later = keyed(port, keys, min(10.0, chosen.seconds), chosen.rate)
        return {
            "quiet": quiet,
            "besieged": besieged,
            "later": later,
            "hostile": told,
            "service_cpu_share": used / chosen.seconds,
            "memory_mib": [memory / 2**20, after / 2**20],
        }


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
