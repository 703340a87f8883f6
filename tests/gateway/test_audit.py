"""The audit log is whole, ordered, durable before an answer leaves, and says when it was touched."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from incrowd.gateway.audit import AuditError, AuditLog, check_audit, read_audit

KEY = b"k" * 32


def write(state: Path, count: int, **options: int) -> None:
    audit = AuditLog(state, KEY, **options)
    for number in range(count):
        audit.append({"number": number}).result(10)
    audit.close()


def test_records_come_back_in_order(tmp_path: Path) -> None:
    write(tmp_path, 5)
    write(tmp_path, 3)
    records = list(read_audit(tmp_path))
    assert [record["seq"] for record in records] == list(range(1, 9))
    assert [record["number"] for record in records] == [0, 1, 2, 3, 4, 0, 1, 2]
    assert check_audit(tmp_path, KEY).to_dict() == {"records": 8, "intact": True, "problem": ""}


def test_threads_share_syncs_and_lose_nothing(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path, KEY)
    with ThreadPoolExecutor(16) as pool:
        for future in [pool.submit(audit.append, {"n": n}) for n in range(300)]:
            future.result().result(10)
    audit.close()
    assert sorted(record["n"] for record in read_audit(tmp_path)) == list(range(300))
    assert check_audit(tmp_path, KEY).intact


def test_large_logs_continue_in_new_files(tmp_path: Path) -> None:
    write(tmp_path, 20, file_bytes=300)
    files = sorted((tmp_path / "audit").iterdir())
    assert len(files) > 3
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    assert check_audit(tmp_path, KEY).records == 20
    files[0].unlink()  # moved to an archive
    assert check_audit(tmp_path, KEY).intact
    write(tmp_path, 1, file_bytes=300)
    assert check_audit(tmp_path, KEY).intact


@pytest.mark.parametrize("damage", ["change", "remove", "swap", "other key"])
def test_touched_logs_are_noticed(tmp_path: Path, damage: str) -> None:
    write(tmp_path, 6)
    path = tmp_path / "audit" / "00000001.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    if damage == "change":
        lines[2] = lines[2].replace('"number":2', '"number":9')
    elif damage == "remove":
        del lines[2]
    elif damage == "swap":
        lines[2], lines[3] = lines[3], lines[2]
    path.write_text("".join(lines))
    checked = check_audit(tmp_path, b"x" * 32 if damage == "other key" else KEY)
    assert not checked.intact
    assert checked.problem == f"00000001.jsonl, line {1 if damage == 'other key' else 3}"


@pytest.mark.parametrize("kept", [0, 4])
def test_a_lost_end_is_noticed_also_after_the_log_went_on(tmp_path: Path, kept: int) -> None:
    write(tmp_path, 6)
    path = tmp_path / "audit" / "00000001.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:kept]))
    checked = check_audit(tmp_path, KEY)
    assert (checked.intact, checked.problem) == (False, f"the end: {6 - kept} records are missing")
    audit = AuditLog(tmp_path, KEY)
    assert audit.missing == 6 - kept
    audit.append({"number": 7}).result(10)
    audit.close()
    assert not check_audit(tmp_path, KEY).intact
    assert [record["seq"] for record in read_audit(tmp_path)][-1] == 7


def test_a_torn_line_is_cut_off_and_the_log_goes_on(tmp_path: Path) -> None:
    write(tmp_path, 3)
    path = tmp_path / "audit" / "00000001.jsonl"
    with path.open("ab") as file:
        file.write(b'{"seq":4,"numb')
    assert len(list(read_audit(tmp_path))) == 3
    write(tmp_path, 1)
    assert [record["seq"] for record in read_audit(tmp_path)] == [1, 2, 3, 4]
    assert check_audit(tmp_path, KEY).intact


def test_a_full_disk_refuses_from_then_on(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path, KEY)
    audit.append({"n": 1}).result(10)
    os.close(audit._file)
    audit._file = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(AuditError, match="nothing is answered"):
        audit.append({"n": 2}).result(10)
    assert audit.broken
    with pytest.raises(AuditError):
        audit.append({"n": 3}).result(10)
    audit.close()
    assert [record["n"] for record in read_audit(tmp_path)] == [1]


def test_what_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from incrowd.gateway.audit import AuditLog\n"
        f"audit = AuditLog(Path(sys.argv[1]), {KEY!r})\n"
        "for n in range(10**6):\n"
        "    audit.append({'n': n}).result(); print(n, flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    seen = [int(process.stdout.readline()) for _ in range(20)]
    process.send_signal(signal.SIGKILL)
    seen += [int(line) for line in process.stdout.read().splitlines()]
    process.wait()
    process.stdout.close()
    kept = [record["n"] for record in read_audit(tmp_path)]
    assert kept[: len(seen)] == seen
    write(tmp_path, 1)
    assert check_audit(tmp_path, KEY).intact


def test_every_line_is_json_with_a_sum(tmp_path: Path) -> None:
    write(tmp_path, 2)
    for line in (tmp_path / "audit" / "00000001.jsonl").read_text().splitlines():
        assert set(json.loads(line)) == {"seq", "number", "sum"}
