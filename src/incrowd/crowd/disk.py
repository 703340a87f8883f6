"""Every byte the store writes passes here, so durability is one idea and tests can make any step fail."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from incrowd.errors import CrowdBusy, InputError

if TYPE_CHECKING:
    from filelock import BaseFileLock

AS_BYTES = getattr(os, "O_BINARY", 0)
"""For `os.open`: Windows would otherwise write two bytes for every line end."""
LOCK_NAME = ".lock"
REPLACE_TRIES = 40
"""Windows refuses to replace a file while somebody reads it; readers here are done within milliseconds."""
PRIVATE, PRIVATE_FOLDER = 0o600, 0o700
"""For the owner alone."""
PUBLIC = 0o666
"""For everybody, as far as the user's own settings allow."""


class Disk:
    """Writes files so that they survive a crash: contents first, then the name, then the folder."""

    def __init__(self, *, durable: bool = True) -> None:
        """Set `durable` to False for throw-away crowds, which need not survive a power cut."""
        self.durable = durable

    def open(self, path: Path, mode: int = PUBLIC) -> IO[bytes]:
        """Create or empty a file for writing."""
        return open(path, "wb", opener=lambda name, flags: os.open(name, flags | AS_BYTES, mode))

    def write(self, file: IO[bytes], data: Any) -> int:
        """Append bytes; a full disk is told with the path, what is needed and what is free."""
        try:
            return file.write(data)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise disk_full(Path(str(file.name)), memoryview(data).nbytes) from None
            raise

    def sync(self, file: IO[bytes]) -> None:
        """Wait until a file's bytes are on the disk."""
        try:
            file.flush()
            if self.durable:
                os.fsync(file.fileno())
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise disk_full(Path(str(file.name))) from None
            raise

    def sync_folder(self, folder: Path) -> None:
        """Wait until the names in a folder are on the disk; Windows opens no folders, and needs none opened."""
        if self.durable and hasattr(os, "O_DIRECTORY"):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file its final name; whoever looks sees the old file or the new one, never a part."""
        _replace(source, target)
        self.sync_folder(target.parent)

    def remove(self, path: Path) -> None:
        """Remove a file or a whole folder; nothing happens if it is not there."""
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def make_folder(self, path: Path, mode: int = 0o777) -> None:
        """Make a folder and the folders above it, unless it is there."""
        path.mkdir(mode, parents=True, exist_ok=True)

    def write_whole(self, path: Path, data: bytes, mode: int = PUBLIC) -> None:
        """Replace a file's whole contents in one step."""
        draft = path.with_name(path.name + ".tmp")
        self.remove(draft)  # a leftover would keep its own mode
        with self.writing(draft, mode) as file:
            self.write(file, data)
        self.rename(draft, path)

    @contextmanager
    def writing(self, path: Path, mode: int = PUBLIC) -> Iterator[IO[bytes]]:
        """Open a file, and have its bytes on the disk when the block ends well."""
        file = self.open(path, mode)
        try:
            yield file
            self.sync(file)
        except BaseException:
            # Closing tries once more to write what is left; on a full disk that would hide the first error.
            with suppress(OSError):
                file.close()
            raise
        file.close()


def disk_full(path: Path, needed: int = 0) -> OSError:
    """Return the error of a full disk, with the place and the bytes."""
    free = shutil.disk_usage(path if path.is_dir() else path.parent).free
    more = f"about {needed:,} bytes are needed, " if needed else ""
    return OSError(
        errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {more}{free:,} are free. Nothing was changed", str(path)
    )


def _replace(source: Path, target: Path) -> None:
    for attempt in range(1, REPLACE_TRIES + 1):
        try:
            os.replace(source, target)
        except PermissionError:
            if os.name != "nt" or attempt == REPLACE_TRIES:
                raise
            time.sleep(0.05)
        else:
            return


def take_lock(path: Path, *, seconds: float = 0) -> BaseFileLock | None:
    """Take a lock file for this process, waiting so long (-1: for ever); None if another process holds it.

    The system takes the lock back when the process dies, so a file left behind by a killed one blocks nobody.
    """
    from filelock import FileLock, Timeout  # it loads asyncio, and most commands take no lock

    lock = FileLock(path, mode=PRIVATE, thread_local=False)
    try:
        lock.acquire(timeout=seconds)
    except Timeout:
        return None
    return lock


@contextmanager
def import_lock(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a crowd for one import; if another import holds it, wait or raise :class:`CrowdBusy`."""
    lock = take_lock(folder / LOCK_NAME, seconds=-1 if wait else 0)
    if lock is None:
        raise CrowdBusy(
            f"{folder}: another import is running in this crowd. Wait for it to end, or pass --wait."
        )
    try:
        yield
    finally:
        lock.release()


def check_target(path: Path) -> Path:
    """Refuse a file that cannot be written, before anybody waits for what is to be in it."""
    if path.is_dir():
        raise InputError(f"{path}: expected a file to write, got a folder; name a file in it")
    if not path.parent.is_dir():
        raise InputError(
            f"{path}: expected a file in a folder that exists, got no folder {path.parent}; make it first"
        )
    return path


def hand_over(path: str | Path, text: str, mode: int = PRIVATE) -> None:
    """Write a file for the user: whole or not at all, and for nobody else to read unless `mode` says so."""
    target = check_target(Path(path))
    disk, draft = Disk(durable=False), target.with_name(target.name + ".tmp")
    try:
        disk.write_whole(target, text.encode(), mode)
    except OSError as error:
        raise InputError(f"{target}: cannot be written ({error.strerror}); name another file") from None
    finally:
        disk.remove(draft)
