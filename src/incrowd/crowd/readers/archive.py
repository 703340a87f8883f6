"""What is inside an archive, read in place: nothing is unpacked into a folder.

Some services pack zips into a zip. Those are laid out in memory, or in a nameless temporary file if they are large, and
their files appear among the others: ``orders.zip/orders.csv``. One level, counted against the same caps.
"""

from __future__ import annotations

import io
import lzma
import re
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.readers.source import Bytes, Caps, DecompressedFile, codec_of, open_regular
from incrowd.errors import UnreadableSource

ZIP_MAGIC = b"PK\x03\x04"
TAR_MAGIC = slice(257, 262)
ENCRYPTED = 0x1
NESTED_BYTES = 512 * 2**20
"""How much of zips inside a zip is laid out; what lies in larger ones has to be unpacked by hand."""
JUNK = re.compile(r"(^|/)(__MACOSX/|\._|\.DS_Store$|Thumbs\.db$|desktop\.ini$)", re.IGNORECASE)
"""What a desktop packs along with somebody's files."""
SPOOL_BYTES = 8 * 2**20
PIECE_BYTES = 2**20
FAULTS = (
    zipfile.BadZipFile,
    KeyError,
    OSError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    zlib.error,
    lzma.LZMAError,
)


class Member:
    """The bytes of one file in a zip, counted against the archive's caps."""

    def __init__(self, file: IO[bytes], place: str, caps: Caps, archive_size: int) -> None:
        self._file = file
        self._place = place
        self._caps = caps
        self._archive_size = archive_size

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""
        try:
            piece = self._file.read(size)
        except FAULTS as error:
            raise UnreadableSource(
                f"{self._place}: damaged inside the archive. Expected a sound file. Fetch the archive again."
            ) from error
        self._caps.count(len(piece), self._archive_size)
        return piece


class Zip:
    """A zip archive that has been looked over: no passwords, no paths that lead out of it."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path = path
        self._file = open_regular(path)
        try:
            self._zip = zipfile.ZipFile(self._file)
        except FAULTS as error:
            self._file.close()
            raise UnreadableSource(
                f"{path}: the zip archive is damaged or cut off. Expected a whole one. Fetch it again."
            ) from error
        self._caps = Caps(path, options)
        self._size = path.stat().st_size
        self._opened = ExitStack()
        try:
            self._check(self._zip)
            self._entries = dict(self._listed())
        except UnreadableSource:
            self.__exit__()
            raise

    def __enter__(self) -> Zip:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        self._zip.close()
        self._file.close()

    @property
    def names(self) -> list[str]:
        """Return the files in the archive, and those in zips inside it."""
        return list(self._entries)

    @contextmanager
    def open(self, name: str) -> Iterator[Member]:
        """Open one file of the archive."""
        place = f"{self.path}/{name}"
        try:
            archive, info = self._entries[name]
            _refuse_nested(archive, info, place)
            file = archive.open(info)
        except FAULTS as error:
            raise UnreadableSource(
                f"{place}: damaged inside the archive. Fetch the archive again."
            ) from error
        with file:
            yield Member(file, place, self._caps, self._size)

    def _check(self, archive: zipfile.ZipFile) -> None:
        for info in archive.infolist():
            if info.flag_bits & ENCRYPTED:
                raise UnreadableSource(
                    f"{self.path}: needs a password. Unpack it and pack it anew without one."
                )
            refuse_escape(self.path, info.filename)

    def _listed(self) -> Iterator[tuple[str, tuple[zipfile.ZipFile, zipfile.ZipInfo]]]:
        """Yield every file's name, and where it is; a zip that cannot be looked into is a file like any other."""
        room = NESTED_BYTES
        for info in self._zip.infolist():
            name = info.filename
            if info.is_dir() or JUNK.search(name):
                continue
            nested = None
            if name.lower().endswith(".zip") and info.file_size <= room:
                room -= info.file_size
                nested = self._nested(info)
            if nested is None:
                yield name, (self._zip, info)
                continue
            for inner in nested.infolist():
                if not inner.is_dir() and not JUNK.search(inner.filename):
                    yield f"{name}/{inner.filename}", (nested, inner)

    def _nested(self, info: zipfile.ZipInfo) -> zipfile.ZipFile | None:
        """Lay out a zip inside this one; None if it is none."""
        laid_out = self._opened.enter_context(tempfile.SpooledTemporaryFile(SPOOL_BYTES))  # noqa: SIM115
        try:
            with self._zip.open(info) as file:
                member = Member(file, f"{self.path}/{info.filename}", self._caps, self._size)
                while piece := member.read(PIECE_BYTES):
                    laid_out.write(piece)
            laid_out.seek(0)
            nested = self._opened.enter_context(zipfile.ZipFile(laid_out))
        except FAULTS:
            return None
        self._check(nested)
        return nested


def _refuse_nested(archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: str) -> None:
    with archive.open(info) as file:
        head = file.read(512)
    if codec_of(head) or head.startswith(ZIP_MAGIC) or is_tar(head):
        raise UnreadableSource(
            f"{place}: an archive inside an archive, and too large, of another kind than zip, or inside a third one. "
            "Unpack the outer one first."
        )


def refuse_escape(path: Path, name: str) -> None:
    """Refuse an archive with a path that leads out of it; no honest export has one."""
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in parts.parts[0]:
        raise UnreadableSource(
            f"{path}: holds a path that leads outside the archive. Do not trust this file."
        )


def zip_names(path: Path, head: bytes) -> list[str]:
    """Return the files in a zip, or none if it is no zip."""
    if not head.startswith(ZIP_MAGIC):
        return []
    with Zip(path, ReadOptions()) as archive:
        return archive.names


def find(names: Sequence[str], ending: str) -> str | None:
    """Return the file whose path ends so, the shortest of several: exports differ in their outer folders."""
    matches = [name for name in names if name == ending or name.endswith("/" + ending)]
    return min(matches, key=lambda name: (len(name), name), default=None)


def is_tar(head: bytes) -> bool:
    """Say whether these are the first bytes of a tar archive."""
    return head[TAR_MAGIC] == b"ustar"


class TarMember:
    """The bytes of one file in a tar, read as the archive streams by; the source counts them against its caps."""

    def __init__(self, file: IO[bytes], archive: Path) -> None:
        self._file = file
        self._archive = archive

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""
        try:
            return self._file.read(size)
        except (tarfile.TarError, EOFError) as error:
            raise _damaged_tar(self._archive) from error


def _damaged_tar(path: Path) -> UnreadableSource:
    return UnreadableSource(f"{path}: the tar archive is damaged or cut off. Fetch it again.")


def tar_files(source: DecompressedFile) -> Generator[tuple[str, Bytes]]:
    """Walk through a tar archive: each plain file's path and bytes, to be read before the next one."""
    try:
        with tarfile.open(fileobj=io.BufferedReader(source), mode="r|") as archive:
            for info in archive:
                refuse_escape(source.path, info.name)
                if info.issparse():
                    raise UnreadableSource(
                        f"{source.path}: holds a file with holes, which may be of any size. Do not trust this file."
                    )
                file = archive.extractfile(info) if info.isfile() else None
                if file is not None:
                    yield info.name, TarMember(file, source.path)
    except (tarfile.TarError, EOFError) as error:
        raise _damaged_tar(source.path) from error


@contextmanager
def open_in_tar(source: DecompressedFile, ending: str) -> Iterator[Bytes | None]:
    """Walk through a tar archive to the file whose path ends so; None if it has none."""
    files = tar_files(source)
    yield next((file for name, file in files if name.endswith(ending)), None)
    files.close()  # and not before: the file's bytes come from the walk
