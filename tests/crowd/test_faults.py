"""Whatever fails, at whatever moment: the old state stays readable and the next import succeeds."""

from __future__ import annotations

import errno
import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest
from tests.crowd.making import new_crowd, post, texts, write_jsonl

from incrowd.crowd import Crowd
from incrowd.crowd.disk import Disk

OLD = [post("ann", "old"), post("[deleted]", "x")]
NEW = [post("ann", "new"), post("bob", "new"), post("[deleted]", "x")]


class Crash(BaseException):
    """Stands for a power cut: no handler of ours may catch it."""


class FaultyDisk(Disk):
    """Does something terrible at the n-th step."""

    def __init__(self, fatal_step: int, fault: Callable[[], Any]) -> None:
        super().__init__(durable=False)
        self.steps, self.fatal_step, self.fault = 0, fatal_step, fault

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.fatal_step:
            self.fault()

    def open(self, path: Path, mode: int = 0o666) -> IO[bytes]:
        self.step()
        return super().open(path, mode)

    def write(self, file: IO[bytes], data: Any) -> int:
        self.step()
        return super().write(file, data)

    def sync(self, file: IO[bytes]) -> None:
        self.step()
        super().sync(file)

    def sync_folder(self, folder: Path) -> None:
        self.step()
        super().sync_folder(folder)

    def rename(self, source: Path, target: Path) -> None:
        self.step()
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self.step()
        super().remove(path)


def disk_full() -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def crash() -> None:
    raise Crash


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [write_jsonl(tmp_path / "old.jsonl", OLD), write_jsonl(tmp_path / "new.jsonl", NEW)]


@pytest.fixture
def old_crowd(tmp_path: Path, files: list[Path]) -> Crowd:
    crowd = new_crowd(tmp_path / "old")
    crowd.ingest(files[0])
    return crowd


def copy(crowd: Crowd, path: Path) -> Crowd:
    return Crowd(shutil.copytree(crowd.path, path))


def steps_of_an_import(crowd: Crowd, files: list[Path]) -> tuple[int, str]:
    crowd._disk = counter = FaultyDisk(0, crash)
    crowd.ingest(files[1])
    return counter.steps, crowd.data_hash


def check_recovery(path: Path, files: list[Path], before: str, after: str) -> None:
    """The state is the old or the new one, nothing between; importing again ends in the new one."""
    found = Crowd(path)
    found.verify()
    assert found.data_hash in (before, after)
    assert texts(found) == (["old"] if found.data_hash == before else ["new", "new", "old"])
    found._disk = Disk(durable=False)
    found.ingest(files[1])
    assert found.data_hash == after
    assert texts(found) == ["new", "new", "old"]
    assert found.state.tables["quarantine"].rows == 2
    assert sorted(p.name for p in (path / "parts").iterdir()) == sorted(found.state.files)
    assert not list((path / "staging").iterdir())


@pytest.mark.parametrize("fault", [disk_full, crash])
def test_any_single_step_may_fail(
    fault: Callable[[], Any], old_crowd: Crowd, tmp_path: Path, files: list[Path]
) -> None:
    steps, after = steps_of_an_import(copy(old_crowd, tmp_path / "clean"), files)
    assert steps > 30
    # Long rows of writes are alike; around the commit, at the end, every single step is tried.
    moments = [*range(1, steps - 12, 25), *range(steps - 12, steps + 1)]
    failures = 0
    for moment in moments:
        crowd = copy(old_crowd, tmp_path / f"crowd {moment}")
        crowd._disk = FaultyDisk(moment, fault)
        try:
            crowd.ingest(files[1])
        except (OSError, Crash):
            failures += 1
        check_recovery(crowd.path, files, old_crowd.data_hash, after)
    # After the commit, leftovers that cannot be removed are no failure.
    assert failures >= len(moments) - 5


def test_a_disk_that_stays_full_changes_nothing(old_crowd: Crowd, files: list[Path]) -> None:
    before = old_crowd.data_hash

    class FullDisk(FaultyDisk):
        def write(self, file: IO[bytes], data: Any) -> int:
            disk_full()
            return 0

    old_crowd._disk = FullDisk(0, crash)
    with pytest.raises(OSError, match="No space left"):
        old_crowd.ingest(files[1])
    assert Crowd(old_crowd.path).data_hash == before


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.crowd.test_faults import FaultyDisk
from incrowd.crowd import Crowd
crowd = Crowd(Path(sys.argv[1]))
crowd._disk = FaultyDisk(int(sys.argv[3]), lambda: os.kill(os.getpid(), signal.SIGKILL))
crowd.ingest(sys.argv[2])
"""


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_kill_minus_nine_leaves_a_crowd_that_can_be_read_and_imported_into(
    share: float, old_crowd: Crowd, tmp_path: Path, files: list[Path]
) -> None:
    steps, after = steps_of_an_import(copy(old_crowd, tmp_path / "clean"), files)
    crowd = copy(old_crowd, tmp_path / "crowd")
    command = [sys.executable, "-c", KILLED, str(crowd.path), str(files[1]), str(round(steps * share))]
    outcome = subprocess.run(command, capture_output=True, cwd=Path(__file__).parents[2], check=False)
    assert outcome.returncode == -signal.SIGKILL, outcome.stderr.decode()
    check_recovery(crowd.path, files, crowd.data_hash, after)


def test_a_killed_creation_can_be_repeated(tmp_path: Path) -> None:
    for moment in range(1, 12):
        path = tmp_path / str(moment)
        try:
            Crowd._create(path, plain_names=False, disk=FaultyDisk(moment, crash))
        except Crash:
            Crowd.open_or_create(path)
        assert Crowd(path).names == "keyed"


LIMITED = """
import resource, sys
from incrowd.crowd import Crowd
crowd = Crowd.create(sys.argv[2], plain_names=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    crowd.ingest(sys.argv[1])
except OSError as error:
    print(error.strerror)
"""


def test_the_systems_own_refusal_to_write_more_is_survived(tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", [post(f"u{n}", f"{n * 7919}") for n in range(20_000)])
    command = [sys.executable, "-c", LIMITED, str(source), str(tmp_path / "crowd")]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.stdout.strip() == os.strerror(errno.EFBIG), outcome.stderr
    assert Crowd(tmp_path / "crowd").info().posts == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may make a small disk")
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", small], check=False, capture_output=True
    ).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        source = write_jsonl(tmp_path / "a.jsonl", [post(f"u{n}", f"{n**9:x}") for n in range(60_000)])
        crowd = Crowd.create(small / "crowd")
        with pytest.raises(
            OSError, match=r"No space left on device: about [\d,]+ bytes are needed, [\d,]+ are free"
        ) as caught:
            crowd.ingest(source)
        assert caught.value.filename == str(crowd.path)
        assert Crowd(crowd.path).info().posts == 0
        assert not list((crowd.path / "staging").iterdir())
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_full_disk_names_the_path_and_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        name = str(tmp_path / "rows.parquet")

        def write(self, data: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"5 bytes are needed, .* are free") as caught:
        Disk().write(Full(), b"hello")
    assert caught.value.filename == str(tmp_path / "rows.parquet")
