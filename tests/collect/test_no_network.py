"""No other command connects to another machine: shown by a guard on every socket, and by what modules import."""

from __future__ import annotations

import ast
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import typer
from tests.gateway.serving import make_world, question, running

import incrowd
from incrowd.cli import app
from incrowd.gateway.state import KeyStore

ROOT = Path(incrowd.__file__).parent
GUARD = """
import contextlib, io, ipaddress, json, os, socket, sys

tried = []


def guard(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if isinstance(address, tuple) and address and not local(address[0]):
            note([event, str(address[0])])
            raise OSError("no connection beyond this machine")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        if not local(arguments[0]):
            note([event, str(arguments[0])])
            raise OSError("no name is looked up")


def note(what):
    tried.append(what)
    if "INCROWD_TEST_TRIED" in os.environ:
        with open(os.environ["INCROWD_TEST_TRIED"], "a") as file:
            file.write(json.dumps(what) + "\\n")


def local(host):
    if host in (None, "", b"", "localhost", b"localhost", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else host).is_loopback
    except ValueError:
        return False


sys.addaudithook(guard)
"""
GUARDED = f"""{GUARD}
from incrowd.cli import main

codes = {{}}
for words in json.loads(sys.argv[1]):
    sys.argv = ["incrowd", *words]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    codes[" ".join(words[:2])] = code
with contextlib.suppress(OSError):  # the guard works: a test that cannot fail proves nothing
    socket.create_connection(("192.0.2.1", 9), timeout=0.1)
print(json.dumps({{"tried": tried, "codes": codes, "collector": "incrowd.collect" in sys.modules}}))
"""
CLIENTS = {
    "httpx",
    "requests",
    "aiohttp",
    "urllib3",
    "http.client",
    "urllib.request",
    "ftplib",
    "smtplib",
    "nntplib",
}

ON_THIS_MACHINE = {
    "advisor/watch_alerts.py",  # a webhook: its address is checked to be loopback, tested with the alerts
    "measures/disclosures/model_reader.py",  # a model of the user's own; another machine only by a named option
    "gateway/operate.py",  # the operator's own gateway, at 127.0.0.1
}


def test_the_main_commands_connect_to_no_other_machine(tmp_path: Path) -> None:
    crowd = str(tmp_path / "demo" / "crowd")
    posts = tmp_path / "more.csv"
    posts.write_text("user,community,time,text\njo,tea,1700000000,I like tea\n", encoding="utf-8")
    items = tmp_path / "items.csv"
    items.write_text("user,item\n" + "".join(f"u{n % 9},i{n % 7}\n" for n in range(60)), encoding="utf-8")
    holders = tmp_path / "holders.json"
    holders.write_text('{"red": ["a", "b"], "blue": ["b", "c"]}', encoding="utf-8")
    commands = [
        ["demo", "--out", str(tmp_path / "demo"), "--users", "60", "--no-open"],
        ["ingest", str(posts), "--crowd", crowd],
        ["ingest", str(items), "--kind", "items", "--crowd", crowd],
        ["info", crowd, "--verify"],
        ["plan", "anonymity", crowd, "--community", "tea"],
        ["anonymity", crowd, "--community", "gardening"],
        ["linkability", crowd, "--source", "gardening", "--target", "cycling"],
        ["recognition", crowd, "--community", "gardening", "--judged", "40"],
        ["assess", crowd, "--user", "alex", "--no-thorough"],
        ["draft", crowd, "--user", "alex", "--community", "gardening", "I am 31 and I live in Duluth"],
        ["disclosures", crowd, "--user", "alex"],
        ["crowd-report", crowd, "--people", "5"],
        ["watch", crowd, "--user", "alex", "--once"],
        ["study", "anonymity", crowd],
        ["release", "q", str(holders)],
        ["microdata", "evaluate", crowd],
        ["belief", "rules", crowd],
        ["card", "info", str(ROOT / "cards" / "reddit.card")],
        ["count", str(posts), "--out", str(tmp_path / "counts")],
        ["exposure", "rank", crowd, "--topic", "depression"],
        ["link", str(posts), str(posts)],
        ["forget", crowd, "--user", "jo"],
        ["forget", crowd, "--yes"],
    ]
    every = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
    services = {"serve", "gateway"}  # below
    assert {words[0] for words in commands} == every - services - {"collect"}
    said = _run(commands)
    assert said["tried"] == [["socket.getaddrinfo", "192.0.2.1"]]  # the guard's own check, and nothing else
    assert said["codes"]["demo --out"] == 0
    assert said["codes"][f"forget {crowd}"] == 0
    for name in ("linkability", "recognition", "assess", "draft", "disclosures", "crowd-report", "watch"):
        assert said["codes"][f"{name} {crowd}"] == 0, name
    assert said["codes"][f"count {posts}"] == said["codes"]["card info"] == 0
    assert said["collector"] is False


def test_services_connect_to_no_other_machine_and_listen_on_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the guard in every process they start: the web page and the gateway, with its worker and its solver."""
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    tried = tmp_path / "tried.jsonl"
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "guard"))
    monkeypatch.setenv("INCROWD_TEST_TRIED", str(tried))
    outside = "import socket; socket.create_connection(('192.0.2.1', 9), timeout=0.1)"
    assert subprocess.run([sys.executable, "-c", outside], capture_output=True, check=False).returncode != 0
    assert "192.0.2.1" in tried.read_text("utf-8")  # the guard works, and in child processes
    tried.unlink()

    url = make_world(tmp_path)
    with running(url, tmp_path) as gateway:
        key = KeyStore(tmp_path / "state").add("ann", "lab")
        assert gateway.post(question(), key).status == 200
        assert gateway.request("GET", "/metrics", admin=True).status == 200
        assert listening(gateway.process.pid) == {"127.0.0.1"}
    incrowd_command = [str(Path(sys.executable).with_name("incrowd")), "serve", str(tmp_path / "crowd")]
    web = subprocess.Popen(
        [*incrowd_command, "--port", "0", "--no-open", "--json"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert web.stdout is not None
        address = next(word for line in web.stdout for word in line.split('"') if word.startswith("http://"))
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with browser.open(address, timeout=30) as page:
            assert page.status == 200
        assert listening(web.pid) == {"127.0.0.1"}
    finally:
        web.send_signal(signal.SIGINT)
        web.wait(30)
        assert web.stdout is not None
        web.stdout.close()
    assert not tried.exists(), tried.read_text("utf-8")


def listening(pid: int) -> set[str]:
    """The addresses at which a process and its children wait for connections."""
    pids, held = [pid], set()
    while pids:
        one = pids.pop()
        pids += map(int, Path(f"/proc/{one}/task/{one}/children").read_text("ascii").split())
        held |= {os.readlink(file) for file in Path(f"/proc/{one}/fd").iterdir() if file.is_symlink()}
    found = set()
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        path = Path("/proc/net") / table
        for line in path.read_text("ascii").splitlines()[1:] if path.exists() else []:
            parts = line.split()
            if parts[3] == "0A" and f"socket:[{parts[9]}]" in held:
                words = bytes.fromhex(parts[1].split(":")[0])
                turned = b"".join(words[k : k + 4][::-1] for k in range(0, len(words), 4))
                found.add(socket.inet_ntop(family, turned))
    return found


def _run(commands: list[list[str]]) -> dict:  # type: ignore[type-arg]
    import json

    done = subprocess.run(
        [sys.executable, "-c", GUARDED, json.dumps(commands)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_no_other_module_imports_what_asks_servers() -> None:
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("collect/") or name in ON_THIS_MACHINE:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not CLIENTS & set(names), f"{path}: {names}"
