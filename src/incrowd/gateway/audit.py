"""The audit log: what was asked and what became of it, on the disk before the reply leaves.

One JSON object a line, in numbered files. It names clients and attributes, never a value, a literal or a
person; a query is known by a keyed hash. Each line carries a keyed sum over itself and the line before, so
that a change, a gap or a lost line in the middle shows; how far the log goes is noted beside it, so that a lost
end shows, too. Requests that arrive together share one fsync.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from threading import Condition, Thread
from typing import Any

from incrowd.crowd.disk import PRIVATE, PRIVATE_FOLDER, Disk
from incrowd.errors import IncrowdError
from incrowd.gateway.state import lock_state

FOLDER_NAME = "audit"
FILE_BYTES = 64 * 2**20
"""A file beyond this size is followed by a new one; old ones may be moved away."""
HEAD_NAME, HEAD_DIGITS = "head", 20
"""Number of the last record, in the log's folder and beside it."""
START = "0" * 32


class AuditError(IncrowdError):
    """The audit log cannot be written, so nothing may be answered."""


class AuditLog:
    """Appends records and says when they are safe.

    `known` is how many records there were according to the ledger: somebody may delete the log and the notes beside it.
    """

    def __init__(self, state: Path, key: bytes, *, known: int = 0, file_bytes: int = FILE_BYTES) -> None:
        self.folder = state / FOLDER_NAME
        self._key = key
        self._file_bytes = file_bytes
        self._disk = Disk()
        self._disk.make_folder(self.folder, PRIVATE_FOLDER)
        self._held = lock_state(self.folder)  # two that append would break the chain of sums
        self._number, last, self._sum = _recover(self.folder)
        # Records that are missing at the end leave a gap in the numbers, which every later check finds.
        self._sequence = max(last, _head(self.folder), known)
        self.missing = self._sequence - last
        """How many records at the end of the log are gone."""
        self._file = self._open()
        self._heads = [os.open(path, os.O_WRONLY | os.O_CREAT, PRIVATE) for path in _heads(self.folder)]
        self._waiting: list[tuple[dict[str, Any], Future[None]]] = []
        self._turn = Condition()
        self._closing = False
        self._broken = False
        self._writer = Thread(target=self._write_batches, name="audit", daemon=True)
        self._writer.start()

    @property
    def records(self) -> int:
        """Number of the last record."""
        return self._sequence

    @property
    def broken(self) -> bool:
        """True once a write failed: what is on the disk is then unknown, and nothing more is accepted."""
        return self._broken

    def append(self, record: Mapping[str, Any]) -> Future[None]:
        """Hand over a record; the future is done once it is on the disk, or fails if it cannot be."""
        done: Future[None] = Future()
        with self._turn:
            if self._broken or self._closing:
                done.set_exception(_refusal(self.folder))
            else:
                self._waiting.append((dict(record), done))
                self._turn.notify()
        return done

    def close(self) -> None:
        """Write what waits, then stop."""
        with self._turn:
            self._closing = True
            self._turn.notify()
        self._writer.join()
        os.close(self._file)
        for head in self._heads:
            os.close(head)
        self._held.release()

    def _write_batches(self) -> None:
        while batch := self._next_batch():
            try:
                self._write(b"".join([self._line(record) for record, _ in batch]))
            except OSError:
                self._fail(batch)
                return
            for _, done in batch:
                done.set_result(None)

    def _next_batch(self) -> list[tuple[dict[str, Any], Future[None]]]:
        with self._turn:
            while not self._waiting and not self._closing:
                self._turn.wait()
            batch, self._waiting = self._waiting, []
            return batch

    def _fail(self, batch: list[tuple[dict[str, Any], Future[None]]]) -> None:
        # After a failed fsync the system may have dropped the pages: trying again would only look safe.
        with self._turn:
            self._broken = True
            batch, self._waiting = batch + self._waiting, []
        for _, done in batch:
            done.set_exception(_refusal(self.folder))

    def _line(self, record: dict[str, Any]) -> bytes:
        self._sequence += 1
        text = json.dumps({"seq": self._sequence, **record}, ensure_ascii=False, separators=(",", ":"))
        self._sum = _sum(self._key, self._sum, text)
        return f'{text[:-1]},"sum":"{self._sum}"}}\n'.encode()

    def _write(self, data: bytes) -> None:
        written = 0
        while written < len(data):
            written += os.write(self._file, data[written:])
        os.fdatasync(self._file)
        # After the log and without waiting for the disk: it never says more than the log holds.
        for head in self._heads:
            os.pwrite(head, f"{self._sequence:0{HEAD_DIGITS}d}\n".encode(), 0)
        if os.fstat(self._file).st_size >= self._file_bytes:
            os.close(self._file)
            self._number += 1
            self._file = self._open()

    def _open(self) -> int:
        path = self.folder / _file_name(self._number)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, PRIVATE)
        self._disk.sync_folder(self.folder)
        return file


@dataclass(frozen=True, kw_only=True)
class AuditCheck:
    """Whether the audit log is as it was written."""

    records: int
    intact: bool
    problem: str
    """File and line of the first record that does not fit, or how many are gone at the end; empty if all is well."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        return {"records": self.records, "intact": self.intact, "problem": self.problem}


def check_audit(state: Path, key: bytes, *, known: int = 0) -> AuditCheck:
    """Recompute the sums of every line; files moved away at the front are no problem, gaps are.

    `known` is how many records there were according to the ledger.
    """
    before: str | None = None
    sequence, records = 0, 0
    head = max(known, _head(state / FOLDER_NAME))  # first: a running gateway goes on writing
    for place, line in _lines(state / FOLDER_NAME):
        record = _parse(line)
        text, _, rest = line.decode(errors="replace").rpartition(',"sum":"')
        first = before is None
        if first and record is not None and record["seq"] != 1 and place.startswith(_file_name(1)):
            # Old files may be moved away; the first one that was ever written begins with the first record.
            return AuditCheck(
                records=0, intact=False, problem=f"the beginning: {record['seq'] - 1} records are missing"
            )
        fits = record is not None and (first or record["seq"] == sequence + 1)
        if fits and not (first and record is not None and record["seq"] != 1):
            fits = rest == f'{_sum(key, before or START, text + "}")}"}}\n'
        if record is None or not fits:
            return AuditCheck(records=records, intact=False, problem=place)
        before, sequence, records = record["sum"], record["seq"], records + 1
    missing = head - sequence
    problem = f"the end: {missing} records are missing" if missing > 0 else ""
    return AuditCheck(records=records, intact=not problem, problem=problem)


def read_audit(state: Path) -> Iterator[dict[str, Any]]:
    """Yield every complete record, oldest first; a line torn by a crash was never answered and is left out."""
    for _, line in _lines(state / FOLDER_NAME):
        record = _parse(line)
        if record is not None:
            yield record


def _refusal(folder: Path) -> AuditError:
    return AuditError(
        f"{folder}: the audit log cannot be written, so nothing is answered. "
        "Make room or repair the disk, then restart the gateway."
    )


def _sum(key: bytes, before: str, text: str) -> str:
    return blake2b(before.encode() + text.encode(), key=key, digest_size=16).hexdigest()


def _heads(folder: Path) -> tuple[Path, Path]:
    """Return where the last number is noted: in the log's folder, and beside it, so that a lost folder shows, too."""
    return folder / HEAD_NAME, folder.with_name(f"{FOLDER_NAME}.{HEAD_NAME}")


def _head(folder: Path) -> int:
    """Return the number of the last record that was noted; 0 if nothing was."""
    found = [0]
    for path in _heads(folder):
        with suppress(FileNotFoundError, ValueError):
            found.append(int(path.read_text("ascii")))
    return max(found)


def _file_name(number: int) -> str:
    return f"{number:08d}.jsonl"


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("[0-9]" * 8 + ".jsonl"))


def _lines(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in _files(folder):
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield f"{path.name}, line {number}", line


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return record if isinstance(record, dict) and {"seq", "sum"} <= record.keys() else None


def _recover(folder: Path) -> tuple[int, int, str]:
    """Return number of the last file, last sequence number and last sum; cut off a line torn by a crash."""
    files = _files(folder)
    for path in reversed(files):
        whole = path.read_bytes()
        complete = whole[: whole.rfind(b"\n") + 1]
        if path == files[-1] and len(complete) < len(whole):
            os.truncate(path, len(complete))
        last = _parse(complete[complete[:-1].rfind(b"\n") + 1 :]) if complete else None
        if last is not None:
            return int(files[-1].stem), int(last["seq"]), str(last["sum"])
    return (int(files[-1].stem) if files else 1), 0, START
