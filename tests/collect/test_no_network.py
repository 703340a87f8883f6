"""No other command connects to another machine: shown by a guard on every socket, and by what modules import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import incrowd

ROOT = Path(incrowd.__file__).parent
GUARDED = """
import contextlib, io, ipaddress, json, socket, sys
from pathlib import Path

tried = []


def guard(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        address = arguments[1]
        if isinstance(address, tuple) and address and not local(address[0]):
            tried.append([event, str(address[0])])
            raise OSError("no connection beyond this machine")
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        if not local(arguments[0]):
            tried.append([event, str(arguments[0])])
            raise OSError("no name is looked up")


def local(host):
    if host in (None, "", b"", "localhost", b"localhost", socket.gethostname()):
        return True
    try:
        return ipaddress.ip_address(host.decode() if isinstance(host, bytes) else host).is_loopback
    except ValueError:
        return False


sys.addaudithook(guard)
from incrowd.cli import main

codes = {}
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
print(json.dumps({"tried": tried, "codes": codes, "collector": "incrowd.collect" in sys.modules}))
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
        ["crowd-report", crowd],
        ["study", "anonymity", crowd],
        ["release", "q", str(holders)],
        ["microdata", "evaluate", crowd],
        ["forget", crowd, "--user", "jo"],
        ["forget", crowd, "--yes"],
    ]
    said = _run(commands)
    assert said["tried"] == [["socket.getaddrinfo", "192.0.2.1"]]  # the guard's own check, and nothing else
    assert said["codes"]["demo --out"] == 0
    assert said["codes"][f"forget {crowd}"] == 0
    for name in ("linkability", "recognition", "assess", "draft", "disclosures", "crowd-report"):
        assert said["codes"][f"{name} {crowd}"] == 0, name
    assert said["collector"] is False


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
