"""One file's bytes: decompressed, capped, and honest about where they end.

Every reader takes its bytes from here, so that every format survives the same hostile files: a truncated or
corrupt archive names its byte offset, a bomb stops at a cap, and no single call can return more than it was
asked for, however well the file compresses.
"""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Protocol

from incrowd.crowd.readers.base import ReadOptions
from incrowd.errors import UnreadableSource

RAW_BYTES = 2**17
FREE_OUTPUT_BYTES = 64 * 2**20
"""The ratio cap starts here: a small file of blanks is no bomb."""
WINDOW_LOG = 31
"""Reddit dumps need a 2 GiB zstd window; the format's default cap is 128 MiB."""

MAGIC: dict[str, bytes] = {
    "gzip": b"\x1f\x8b",
    "bzip2": b"BZh",
    "xz": b"\xfd7zXZ\x00",
    "zstd": b"\x28\xb5\x2f\xfd",
}
ZSTD_SKIPPABLE = tuple(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16))


class Decompressor(Protocol):
    """What bz2, lzma and zstd decompressors share; one object decodes one member (frame, stream)."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """zlib's decompressor with the manners of the other three."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.eof and not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


def _zstd() -> Decompressor:
    from backports import zstd

    options = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
    decompressor: Decompressor = zstd.ZstdDecompressor(options=options)
    return decompressor


CODECS: dict[str, Callable[[], Decompressor]] = {
    "gzip": _Gzip,
    "bzip2": bz2.BZ2Decompressor,
    "xz": lzma.LZMADecompressor,
    "zstd": _zstd,
}


def codec_of(head: bytes) -> str | None:
    """Name the compression a file's first bytes declare, or None for plain bytes."""
    if head.startswith(ZSTD_SKIPPABLE):
        return "zstd"
    return next((name for name, magic in MAGIC.items() if head.startswith(magic)), None)


class Source(io.RawIOBase):
    """The decompressed bytes of one file, in pieces no larger than asked for."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__()
        self.path = path
        self.incomplete = False
        self._options = options
        self._raw = _open(path)
        self._pending = self._raw.read(RAW_BYTES)
        self._taken = len(self._pending)
        self._produced = 0
        self._codec = codec_of(self._pending)
        self._member = CODECS[self._codec]() if self._codec else None
        self._member_fed = False

    @property
    def codec(self) -> str | None:
        """The compression found, or None."""
        return self._codec

    def readable(self) -> bool:
        """Say that this is a stream to read from."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; none at the end."""
        if size < 0:
            return self.readall()
        piece = self._plain(size) if self._codec is None else self._decompressed(size)
        self._produced += len(piece)
        self._check_caps()
        return piece

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Fill a buffer (what io and tarfile call)."""
        piece = self.read(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
        super().close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _plain(self, size: int) -> bytes:
        if self._pending:
            piece, self._pending = self._pending[:size], self._pending[size:]
            return piece
        return self._fetch(size)

    def _fetch(self, size: int) -> bytes:
        try:
            data = self._raw.read(size)
        except OSError as error:
            raise UnreadableSource(
                f"{self.path}: reading failed at byte {self._taken} ({error.strerror}). Check the disk or copy the file anew."
            ) from error
        self._taken += len(data)
        return data

    def _decompressed(self, size: int) -> bytes:
        while not self.incomplete:
            if self._member is None and not self._next_member():
                return b""
            assert self._member is not None  # noqa: S101 - for the type checker
            if self._member.needs_input and not self._pending:
                self._pending = self._fetch(RAW_BYTES)
                if not self._pending:
                    return self._ended_early()
            piece = self._advance(self._member, size)
            if piece:
                return piece
        return b""

    def _advance(self, member: Decompressor, size: int) -> bytes:
        data, self._pending = self._pending, b""
        self._member_fed = self._member_fed or bool(data)
        try:
            piece = member.decompress(data, size)
        except (OSError, zlib.error, lzma.LZMAError, EOFError, ValueError, *_zstd_errors()) as error:
            return self._corrupt(error)
        if member.eof:
            self._pending = member.unused_data
            self._member = None
        return piece

    def _next_member(self) -> bool:
        """Start the next frame, if there is one; padding with zeros is allowed, anything else is not."""
        if not self._pending:
            self._pending = self._fetch(RAW_BYTES)
        self._pending = self._pending.lstrip(b"\x00")
        while not self._pending:
            piece = self._fetch(RAW_BYTES)
            if not piece:
                return False
            self._pending = piece.lstrip(b"\x00")
        if len(self._pending) < 6:
            self._pending += self._fetch(RAW_BYTES)
        if codec_of(self._pending) != self._codec:
            if self._pending and any(magic.startswith(self._pending) for magic in MAGIC.values()):
                self._ended_early()
            else:
                self._corrupt(ValueError("something else follows the compressed data"))
            return False
        assert self._codec is not None  # noqa: S101 - for the type checker
        self._member = CODECS[self._codec]()
        return True

    def _ended_early(self) -> bytes:
        if not self._options.keep_complete:
            raise UnreadableSource(
                f"{self.path}: the {self._codec} data ends early, at byte {self._taken}. "
                "Expected a complete file. Fetch it again, or keep the complete records with --keep-complete."
            )
        self.incomplete = True
        return b""

    def _corrupt(self, error: Exception) -> bytes:
        if not self._options.keep_complete:
            window = " (its window is larger than 2 GiB)" if "window" in str(error).lower() else ""
            raise UnreadableSource(
                f"{self.path}: the {self._codec} data is corrupt before byte {self._taken}{window}. "
                "Expected a sound file. Fetch it again, or keep the complete records with --keep-complete."
            ) from error
        self.incomplete = True
        return b""

    def _check_caps(self) -> None:
        options = self._options
        if self._produced > options.max_output_bytes:
            raise UnreadableSource(
                f"{self.path}: more than {options.max_output_bytes} bytes after decompression; this looks like a bomb. "
                "Raise max_output_bytes if the file is trusted."
            )
        if self._produced > max(FREE_OUTPUT_BYTES, options.max_ratio * self._taken):
            raise UnreadableSource(
                f"{self.path}: decompresses to over {options.max_ratio} times its size; this looks like a bomb. "
                "Raise max_ratio if the file is trusted."
            )


def _zstd_errors() -> tuple[type[Exception], ...]:
    from backports import zstd

    return (zstd.ZstdError,)


def _open(path: Path) -> io.BufferedReader:
    """Open a regular file, and nothing else: a pipe could block for ever."""
    try:
        status = os.stat(path)
        if stat.S_ISDIR(status.st_mode):
            raise UnreadableSource(f"{path}: expected a file, got a folder. Name the files in it.")
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableSource(f"{path}: expected a file, got a pipe or device. Save it to a file first.")
        return open(path, "rb")  # noqa: SIM115 - Source closes it
    except OSError as error:
        raise UnreadableSource(
            f"{path}: cannot be opened ({error.strerror}). Check the path and its rights."
        ) from error


class Utf8:
    """Text bytes as UTF-8: a byte-order mark is dropped, UTF-16 is converted.

    What has no UTF-8 form (half a surrogate pair) becomes invalid bytes, so that the one place that
    replaces and counts invalid bytes sees it.
    """

    def __init__(self, source: io.RawIOBase) -> None:
        self._source = source
        self._decoder: codecs.IncrementalDecoder | None = None
        self._started = False

    def read(self, size: int) -> bytes:
        """Return about `size` bytes; none at the end."""
        if not self._started:
            return self._first(size)
        return self._converted(size) if self._decoder else self._source.read(size) or b""

    def _first(self, size: int) -> bytes:
        self._started = True
        head = _read_at_least(self._source, 4)
        if head.startswith(codecs.BOM_UTF8):
            head = head[3:]
        elif encoding := utf16_of(head):
            self._decoder = codecs.getincrementaldecoder(encoding)(errors="surrogatepass")
            head = self._decoder.decode(head).lstrip("\ufeff").encode("utf-8", "surrogatepass")
        return head or self.read(size)

    def _converted(self, size: int) -> bytes:
        assert self._decoder is not None  # noqa: S101 - for the type checker
        while True:
            data = self._source.read(size) or b""
            try:
                text = self._decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                self._decoder.reset()
                return b"\xff"
            if text or not data:
                return text.encode("utf-8", "surrogatepass")


def utf16_of(head: bytes) -> str | None:
    """Name the UTF-16 flavour of a text file's first bytes, or None."""
    if head.startswith(codecs.BOM_UTF16_LE) or (
        len(head) >= 4 and head[0] and head[1:4:2] == b"\0\0" and head[2]
    ):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE) or (
        len(head) >= 4 and head[1] and head[0:4:2] == b"\0\0" and head[3]
    ):
        return "utf-16-be"
    return None


def _read_at_least(source: io.RawIOBase, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := source.read(size - len(data))):
        data += piece
    return data
