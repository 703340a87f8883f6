"""Real servers on this machine: Bluesky's own data server (from npm) and INN (from Debian).

`make test` installs both under build/servers; where that is impossible the tests are skipped with a sentence.
"""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parents[2]
SERVERS = Path(os.environ.get("INCROWD_TEST_SERVERS", ROOT / "build" / "servers"))
PDS_MODULES = SERVERS / "pds"
INN_ROOT = SERVERS / "inn" / "root"
NO_PDS = "Bluesky's PDS is not installed (make servers needs node, npm and a compiler)"
NO_INN = "INN is not installed (make servers takes it from Debian's packages)"


def has_pds() -> bool:
    built = PDS_MODULES / "node_modules" / "better-sqlite3" / "build" / "Release" / "better_sqlite3.node"
    return shutil.which("node") is not None and built.exists()


def has_inn() -> bool:
    return sys.platform == "linux" and (INN_ROOT / "usr" / "lib" / "news" / "bin" / "innd").exists()


@dataclass
class Account:
    did: str
    token: str


class Pds:
    """A data server whose accounts and posts the test makes."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.http = httpx.Client(base_url=f"{address}/xrpc", trust_env=False, timeout=60)

    def account(self, name: str) -> Account:
        facts = {"handle": f"{name}.test", "email": f"{name}@example.test", "password": "only-for-tests"}
        made = self._call("com.atproto.server.createAccount", facts)
        return Account(made["did"], made["accessJwt"])

    def post(self, account: Account, texts: Sequence[str], start: int = 0) -> None:
        """Write posts, two hundred at a time, which is as many as the server takes at once."""
        for at in range(0, len(texts), 200):
            writes = [
                {
                    "$type": "com.atproto.repo.applyWrites#create",
                    "collection": "app.bsky.feed.post",
                    "value": {
                        "$type": "app.bsky.feed.post",
                        "text": text,
                        "createdAt": _time(start + at + n),
                    },
                }
                for n, text in enumerate(texts[at : at + 200])
            ]
            self._call("com.atproto.repo.applyWrites", {"repo": account.did, "writes": writes}, account)

    def refuse(self, account: Account) -> None:
        """Label an account as not for outsiders, as the app does."""
        labels = {"$type": "com.atproto.label.defs#selfLabels", "values": [{"val": "!no-unauthenticated"}]}
        record = {"$type": "app.bsky.actor.profile", "displayName": "Somebody", "labels": labels}
        where = {"repo": account.did, "collection": "app.bsky.actor.profile", "rkey": "self"}
        self._call("com.atproto.repo.putRecord", {**where, "record": record}, account)

    def delete(self, account: Account, text: str) -> None:
        where = {"repo": account.did, "collection": "app.bsky.feed.post"}
        found = self.http.get("/com.atproto.repo.listRecords", params={**where, "limit": "100"}).json()
        key = next(r["uri"].rsplit("/", 1)[1] for r in found["records"] if r["value"]["text"] == text)
        self._call("com.atproto.repo.deleteRecord", {**where, "rkey": key}, account)

    def close_account(self, account: Account) -> None:
        self._call("com.atproto.server.deactivateAccount", {}, account)

    def _call(self, method: str, body: dict[str, Any], account: Account | None = None) -> Any:
        headers = {"authorization": f"Bearer {account.token}"} if account else {}
        answer = self.http.post(f"/{method}", json=body, headers=headers)
        answer.raise_for_status()
        return answer.json() if answer.content else None


def _time(number: int) -> str:
    return f"2024-01-{1 + number // 86400:02d}T{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.000Z"


@contextmanager
def pds(folder: Path) -> Iterator[Pds]:
    """Start a data server and its directory."""
    script = Path(__file__).parent / "pds" / "servers.cjs"
    running = subprocess.Popen(
        ["node", str(script), str(PDS_MODULES), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "LOG_ENABLED": "false"},
    )
    assert running.stdin is not None
    assert running.stdout is not None
    try:
        server = Pds(json.loads(running.stdout.readline())["pds"])
        yield server
        server.http.close()
    finally:
        running.stdin.close()
        running.wait(timeout=20)
        running.stdout.close()


INN_SETTINGS = """
mta: "/bin/true %s"
ovmethod: tradindexed
hismethod: hisv6
pathhost: news.example.test
domain: example.test
pathnews: {news}
pathbin: {news}/bin
pathetc: {work}/etc
pathdb: {work}/db
pathspool: {work}/spool
patharticles: {work}/spool/articles
pathoverview: {work}/spool/overview
pathincoming: {work}/spool/incoming
pathoutgoing: {work}/spool/outgoing
pathlog: {work}/log
pathrun: {work}/run
pathtmp: {work}/tmp
pathfilter: {work}/filter
port: {port}
nnrpdpostport: {port}
bindaddress: 127.0.0.1
bindaddress6: "::1"
enableoverview: true
doinnwatch: false
docancels: all
nnrpdloadlimit: 0
runasuser: {user}
runasgroup: {user}
"""


@contextmanager
def inn(work: Path, groups: Sequence[str]) -> Iterator[str]:
    """Start INN with some newsgroups; return its address."""
    root, user = INN_ROOT, getpass.getuser()
    if os.geteuid() == 0:
        # INN does not run as root: Debian has a user for it, who may not be able to read our folders.
        root, user = work / "root", "news"
        shutil.copytree(INN_ROOT, root, symlinks=True)
    news = root / "usr" / "lib" / "news"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for name in ("etc", "db", "spool/articles", "spool/overview", "spool/incoming/bad", "spool/outgoing"):
        (work / name).mkdir(parents=True)
    for name in ("log", "run", "tmp", "filter"):
        (work / name).mkdir()
    files = {
        "etc/inn.conf": INN_SETTINGS.format(news=news, work=work, port=port, user=user),
        "etc/newsfeeds": "ME:!*/!local::\n",
        "etc/incoming.conf": 'peer ME {\n  hostname: "localhost, 127.0.0.1"\n}\n',
        "db/active": "".join(
            f"{name} 0000000000 0000000001 {flag}\n"
            for name, flag in [
                *((n, "n") for n in ("control", "control.cancel", "junk")),
                *((n, "y") for n in groups),
            ]
        ),
        **dict.fromkeys(("db/newsgroups", "db/active.times", "db/history"), ""),
    }
    for name, text in files.items():
        (work / name).write_text(text, encoding="utf-8")
    for name in ("storage.conf", "expire.ctl", "control.ctl", "readers.conf"):
        shutil.copy(root / "etc" / "news" / name, work / "etc" / name)
    libraries = f"{news}{os.pathsep}{root / 'usr' / 'lib' / f'{os.uname().machine}-linux-gnu'}"
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "INNCONF": str(work / "etc" / "inn.conf")}
    become: list[str] = []
    if os.geteuid() == 0:
        subprocess.run(["chown", "-R", f"{user}:{user}", str(work)], check=True)
        become = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    history = [str(news / "bin" / "makedbz"), "-i", "-o", "-s", "1000", "-f", str(work / "db" / "history")]
    subprocess.run([*become, *history], env=environment, check=True, capture_output=True)
    running = subprocess.Popen(
        [*become, str(news / "bin" / "innd"), "-f", "-N"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, running)
        yield f"nntp://127.0.0.1:{port}"
    finally:
        running.kill()  # asked to end, it takes its time
        running.wait(timeout=20)


def _wait_for(port: int, running: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and running.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("INN does not listen")


def post_articles(address: str, articles: Sequence[str]) -> None:
    """Post articles as a news reader does; with a Control header, cancel them."""
    port = int(address.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as line, line.makefile("rwb") as file:
        _talk(file, None, b"200")
        _talk(file, "MODE READER", b"200")
        for article in articles:
            _talk(file, "POST", b"340")
            _talk(file, article.replace("\n", "\r\n") + "\r\n.", b"240")
        _talk(file, "QUIT", b"205")


def _talk(file: Any, command: str | None, expected: bytes) -> None:
    if command is not None:
        file.write(command.encode() + b"\r\n")
        file.flush()
    answer = file.readline()
    assert answer.startswith(expected), answer
