"""Requests for the gateway's benchmark: good, bad and hostile, at a steady rate, over plain sockets.

Open loop: a request starts when its time has come, whether or not earlier ones are back, and its latency counts
from then, so that a stall is not hidden. Run as a process of its own, the load cannot share a lock with what it
measures.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

CONNECTIONS = 160
PATIENCE = 30.0
EMPTY = b'{"values": []'
CITIES = [f"city {number}" for number in range(1, 61)]
Question = tuple[str, bytes]
"""Key of the client, body."""


@dataclass(frozen=True, kw_only=True)
class Load:
    port: int
    keys: list[str]
    seconds: float
    rate: float
    seed: int
    mix: str = "hostile"
    """Which requests: see `MIXES`."""
    reuse: float = 1.0
    """Share of the requests that may use a connection that is open already."""
    keep: bool = False
    """Keep every reply, to compare it later."""
    replay: Iterable[Question] | None = None
    """Ask exactly these questions instead."""


@dataclass(frozen=True)
class Outcome:
    kind: str
    status: int
    seconds: float
    filled: bool


@dataclass
class Done:
    outcomes: list[Outcome] = field(default_factory=list)
    kept: dict[Question, bytes] = field(default_factory=dict)
    watched: list[int] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0


def run_load(
    load: Load, *, watch: Callable[[], int] | None = None, kill: tuple[int, float] | None = None
) -> Done:
    return asyncio.run(_run(load, watch, kill))


async def _run(load: Load, watch: Callable[[], int] | None, kill: tuple[int, float] | None) -> Done:
    draw, done, loop = random.Random(load.seed), Done(), asyncio.get_running_loop()
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    tasks: set[asyncio.Task[None]] = set()
    if kill:
        loop.call_later(kill[1], os.kill, kill[0], signal.SIGKILL)
    started, watched, number = loop.time(), -1.0, 0
    questions = list(load.replay) if load.replay is not None else None
    total = len(questions) if questions is not None else int(load.seconds * load.rate)
    while number < total:
        due = started + number / load.rate
        if (wait := due - loop.time()) > 0:
            await asyncio.sleep(wait)
        kind, key, body = (
            ("repeat", *questions[number]) if questions is not None else MIXES[load.mix](draw, load.keys)
        )
        open_already = idle if load.reuse == 1 or draw.random() < load.reuse else []
        task = asyncio.create_task(_ask(load, kind, key, body, due, open_already, done))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        number += 1
        if watch and loop.time() - watched > 1:
            watched = loop.time()
            done.watched.append(watch())
    if tasks:
        await asyncio.wait(tasks)
    done.seconds = loop.time() - started
    for _, writer in idle:
        writer.close()
    return done


async def _ask(
    load: Load,
    kind: str,
    key: str,
    body: bytes,
    due: float,
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]],
    done: Done,
) -> None:
    writer = None
    try:
        while idle and idle[-1][0].at_eof():  # the service closed it, as nobody had used it for a while
            idle.pop()[1].close()
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", load.port)
        head = f"POST /v1/query HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n"
        writer.write(
            f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        status = int(answer[9:12])
        length = next(
            int(line[15:]) for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length:")
        )
        reply = await reader.readexactly(length)
    except (OSError, EOFError, ValueError, TimeoutError):
        done.errors += 1
        if writer is not None:
            writer.close()
        return
    seconds = asyncio.get_running_loop().time() - due
    done.outcomes.append(Outcome(kind, status, seconds, not reply.startswith(EMPTY)))
    if load.keep and status == 200:
        done.kept[key, body] = reply
    if b"connection: close" in answer.lower():
        writer.close()
    elif len(idle) < CONNECTIONS:
        idle.append((reader, writer))
    else:
        writer.close()


def usual(keys: list[str]) -> list[Question]:
    """What good clients ask every day."""
    return [
        (key, question(city, low, 200))
        for city in CITIES[:6]
        for low in range(20, 70, 10)
        for key in keys[:-2]
    ]


def in_thirds(draw: random.Random, keys: list[str]) -> tuple[str, str, bytes]:
    """Repeats, new questions and questions over budget in equal parts; the last four clients have no budget."""
    kind = draw.choice(("repeat", "fresh", "over budget"))
    if kind == "repeat":
        return (
            kind,
            draw.choice(keys[:-4]),
            question(draw.choice(CITIES[:6]), draw.randrange(20, 70, 10), 200),
        )
    low = draw.randrange(16, 86)
    body = question(draw.choice(CITIES[:30]), low, low + draw.randrange(1, 2**31))
    return kind, draw.choice(keys[:-4] if kind == "fresh" else keys[-4:]), body


def mostly_repeats(draw: random.Random, keys: list[str]) -> tuple[str, str, bytes]:
    """Draw a kind of request, a client and a body; the last two clients are hostile."""
    key, chance = draw.choice(keys[:-2]), draw.random()
    if chance < 0.79:
        return "repeat", key, question(draw.choice(CITIES[:6]), draw.randrange(20, 70, 10), 200)
    if chance < 0.80:
        return (
            "fresh",
            key,
            question(draw.choice(CITIES[:20]), draw.randrange(16, 80, 4), draw.randrange(84, 95, 4)),
        )
    if chance < 0.90:
        return "bad", *bad(draw, key)
    return "hostile", draw.choice(keys[-2:]), hostile(draw)


def question(city: str, low: int, high: int) -> bytes:
    parts = [{"column": "city", "op": "=", "value": city}, {"column": "age", "op": ">=", "value": low}]
    parts.append({"column": "age", "op": "<", "value": high})
    return json.dumps({"attribute": "movies", "where": {"and": parts}}).encode()


def bad(draw: random.Random, key: str) -> tuple[str, bytes]:
    """Mistakes: broken JSON, unknown names, no key, too much, not allowed."""
    return draw.choice(
        [
            (key, b'{"attribute": '),
            (key, b'{"attribute": "salaries"}'),
            (key, b'{"attribute": "movies", "where": {"column": "name", "op": "=", "value": "x"}}'),
            (key, b"[" * 15_000),
            (key, b'{"attribute": "movies", "padding": "' + b"x" * 20_000 + b'"}'),
            (key[:-1] + "~", b"{}"),
            (key, b'{"text": "DROP TABLE people"}'),
            (key, b'{"attribute": "movies", "where": {"not": {"column": "age", "op": "<", "value": 20}}}'),
        ]
    )


def hostile(draw: random.Random) -> bytes:
    """Differencing neighbours, wide lists, deep trees, injection in literals."""
    what = draw.randrange(4)
    if what == 0:  # classes that differ by a few people
        low = draw.randrange(16, 80)
        return question(draw.choice(CITIES[:6]), low, low + draw.randrange(1, 3))
    if what == 1:
        where: object = {"column": "city", "in": draw.sample(CITIES, draw.randrange(2, 50))}
    elif what == 2:
        where = {"column": "age", "op": "<", "value": draw.randrange(16, 90)}
        for depth in range(6):
            where = {
                ("and", "or")[depth % 2]: [where, {"column": "age", "op": ">", "value": draw.randrange(90)}]
            }
    else:
        word = draw.choice(["' OR 1=1 --", "city 1'; ATTACH 'x'", "%s%s%n", "read_csv('/etc/passwd')"])
        where = {"column": "city", "op": "=", "value": word + str(draw.randrange(50))}
    return json.dumps({"attribute": "movies", "where": where}).encode()


MIXES = {"thirds": in_thirds, "hostile": mostly_repeats}
