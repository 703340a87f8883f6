"""One file's bytes and lines: decompressed, capped, and honest about where they end.

Every reader takes its bytes from here, so that every format survives the same hostile files: a truncated or
corrupt file names its byte offset, a bomb stops at a cap, and no single call can return more than it was
asked for, however well the file compresses. Bytes that are no UTF-8 are replaced by U+FFFD, and counted.
"""

from __future__ import annotations

import bz2
import codecs
import io
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from backports import zstd

from incrowd.crowd.readers.base import ReadOptions
from incrowd.errors import UnreadableSource

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

RAW_BYTES = 2**17
FREE_OUTPUT_BYTES = 64 * 2**20
"""The ratio cap starts here: a small file of blanks is no bomb."""
ZSTD_WINDOW_LOG = 31
"""Reddit dumps need a 2 GiB window; the format's own cap is 128 MiB."""
XZ_MEMORY = 2**28

MAGIC = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\x00", "zstd": b"\x28\xb5\x2f\xfd"}
ZSTD_SKIPPABLE = tuple(bytes([0x50 + n]) + b"\x2a\x4d\x18" for n in range(16))
LONGEST_MAGIC = 6
FAULTS = (OSError, EOFError, ValueError, MemoryError, zlib.error, lzma.LZMAError, zstd.ZstdError)


class Decompressor(Protocol):
    """What the decompressors of bz2, lzma and zstd share. Each decodes one member (frame, stream)."""

    @property
    def eof(self) -> bool:
        """Whether the member is complete."""

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes out before something goes in."""

    @property
    def unused_data(self) -> bytes:
        """What follows the member."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Return at most `max_length` bytes."""


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

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


CODECS: dict[str, Callable[[], Decompressor]] = {
    "gzip": _Gzip,
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(memlimit=XZ_MEMORY),
    "zstd": lambda: zstd.ZstdDecompressor(
        options={int(zstd.DecompressionParameter.window_log_max): ZSTD_WINDOW_LOG}
    ),
}


def codec_of(head: bytes) -> str | None:
    """Name the compression that a file's first bytes declare, or None for plain bytes."""
    if head.startswith(ZSTD_SKIPPABLE):
        return "zstd"
    return next((name for name, magic in MAGIC.items() if head.startswith(magic)), None)


class Caps:
    """How much may come out of a file, in all and in proportion to what went in."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self._path = path
        self._options = options
        self._produced = 0

    def count(self, produced: int, taken: int) -> None:
        """Add what came out just now, given all that went in so far; refuse a bomb."""
        self._produced += produced
        most, ratio = self._options.max_output_bytes, self._options.max_ratio
        if self._produced > most:
            raise UnreadableSource(
                f"{self._path}: over {most} bytes when decompressed, which is more than is allowed. "
                "If you trust it, unpack it yourself and give what is inside."
            )
        if self._produced > max(FREE_OUTPUT_BYTES, ratio * taken):
            raise UnreadableSource(
                f"{self._path}: decompresses to over {ratio} times its size, as a bomb does. "
                "If you trust it, unpack it yourself and give what is inside."
            )


class DecompressedFile(io.RawIOBase):
    """The decompressed bytes of one file, in pieces no larger than asked for."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        super().__init__()
        self.path = path
        self.incomplete = False
        self._keep_complete = options.keep_complete
        self._caps = Caps(path, options)
        self._raw = open_regular(path)
        self._taken = 0
        self._pending = self._fetch(RAW_BYTES)
        self._codec = codec_of(self._pending)
        self._member: Decompressor | None = None

    @property
    def taken(self) -> int:
        """How many bytes of the file were read so far, packed as they are."""
        return self._taken

    def readable(self) -> bool:
        """Say that this is a stream to read from."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return up to `size` bytes; none at the end."""
        if size < 0:
            return self.readall()
        if self._codec is None:
            return self._plain(size)
        piece = self._decompressed(size)
        self._caps.count(len(piece), self._taken)
        return piece

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Fill a buffer, as io and tarfile ask."""
        view = memoryview(buffer).cast("B")
        piece = self.read(len(view))
        view[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
        super().close()

    def _plain(self, size: int) -> bytes:
        if not self._pending:
            return self._fetch(size)
        piece, self._pending = self._pending[:size], self._pending[size:]
        return piece

    def _fetch(self, size: int) -> bytes:
        try:
            data = self._raw.read(size)
        except OSError as error:
            raise UnreadableSource(
                f"{self.path}: reading failed at byte {self._taken} ({error.strerror}). "
                "Check the disk, or copy the file anew."
            ) from error
        self._taken += len(data)
        return data

    def _decompressed(self, size: int) -> bytes:
        while not self.incomplete:
            if self._member is None:
                self._member = self._next_member()
            if self._member is None:
                return b""
            if self._member.needs_input and not self._pending:
                self._pending = self._fetch(RAW_BYTES)
                if not self._pending:
                    self._stop("ends early, at")
                    return b""
            if piece := self._advance(self._member, size):
                return piece
        return b""

    def _advance(self, member: Decompressor, size: int) -> bytes:
        data, self._pending = self._pending, b""
        try:
            piece = member.decompress(data, size)
        except FAULTS as error:
            self._stop("is corrupt before", error)
            return b""
        if member.eof:
            self._pending = member.unused_data
            self._member = None
        return piece

    def _next_member(self) -> Decompressor | None:
        """Start the next member, if there is one. Zeros may pad a file; nothing else may follow."""
        self._pending = self._pending.lstrip(b"\x00")
        while len(self._pending) < LONGEST_MAGIC and (more := self._fetch(RAW_BYTES)):
            self._pending = (self._pending + more).lstrip(b"\x00")
        if self._pending and codec_of(self._pending) == self._codec:
            return CODECS[str(self._codec)]()
        if self._pending:
            cut = MAGIC[str(self._codec)].startswith(self._pending)
            self._stop("ends early, at" if cut else "is followed by something else before")
        return None

    def _stop(self, what: str, error: Exception | None = None) -> None:
        """Refuse a broken file, or note that it is broken if the caller wants its complete records."""
        if not self._keep_complete:
            window = "; its window is larger than 2 GiB" if "window" in str(error).lower() else ""
            raise UnreadableSource(
                f"{self.path}: the {self._codec} data {what} byte {self._taken}{window}. Expected a whole, "
                "sound file. Fetch it again. Or keep its complete records with --keep-complete."
            ) from error
        self.incomplete = True


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file, and nothing else: a pipe could block for ever."""
    try:
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableSource(f"{path}: expected a file, got a folder. Name the files in it.")
        if not stat.S_ISREG(mode):
            raise UnreadableSource(f"{path}: expected a file, got a pipe or device. Save it to a file first.")
        return open(path, "rb")
    except OSError as error:
        raise UnreadableSource(
            f"{path}: cannot be opened ({error.strerror}). Check its name and your rights to it."
        ) from error


REPLACEMENT = "\ufffd"
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")


class Bytes(Protocol):
    """Anything with bytes to read."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""


class Utf8:
    """A text's bytes as UTF-8: a byte-order mark is dropped, UTF-16 is converted.

    What has no UTF-8 form (half a surrogate pair, half a code unit) becomes invalid bytes, so that the one
    place that replaces and counts invalid bytes sees it.
    """

    def __init__(self, source: Bytes) -> None:
        self._source = source
        self._decoder: codecs.IncrementalDecoder | None = None
        self._head = _at_least(source, 4)
        if self._head.startswith(codecs.BOM_UTF8):
            self._head = self._head[3:]
        elif encoding := utf16_of(self._head):
            self._decoder = codecs.getincrementaldecoder(encoding)(errors="surrogatepass")
            self._head = self._decoder.decode(self._head).lstrip("\ufeff").encode("utf-8", "surrogatepass")

    def read(self, size: int, /) -> bytes:
        """Return about `size` bytes; none at the end."""
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._source.read(size) if self._decoder is None else self._converted(self._decoder, size)

    def _converted(self, decoder: codecs.IncrementalDecoder, size: int) -> bytes:
        while True:
            data = self._source.read(size)
            try:
                text = decoder.decode(data, final=not data)
            except UnicodeDecodeError:
                decoder.reset()
                return b"\xff"
            if text or not data:
                return text.encode("utf-8", "surrogatepass")


def utf16_of(head: bytes) -> str | None:
    """Name the UTF-16 flavour of a text's first bytes, or None."""
    marked = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    if head[:2] in marked:
        return marked[head[:2]]
    zeros = "".join("0" if byte == 0 else "x" for byte in head[:4])
    return {"x0x0": "utf-16-le", "0x0x": "utf-16-be"}.get(zeros)


def decoded(data: bytes) -> tuple[str, bool]:
    """Decode UTF-8; also say whether anything was replaced."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").replace("\x00", REPLACEMENT), True
    return (text.replace("\x00", REPLACEMENT), True) if "\x00" in text else (text, False)


def storable(text: str) -> str:
    """Replace what a table of UTF-8 texts cannot hold: half surrogate pairs and NUL."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def _at_least(source: Bytes, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := source.read(size - len(data))):
        data += piece
    return data


PIECE_BYTES = 2**18
HEAD_BYTES = 2**18
HEAD = ReadOptions(keep_complete=True)
"""To look at the first bytes only: a file that breaks off later is found out when it is read."""


@dataclass(frozen=True)
class Lines:
    """Some whole lines of a source; a line over the cap is left empty and named in `too_long`."""

    first_row: int
    data: bytes
    """Every line ends with a line end, the last one too."""
    count: int
    too_long: tuple[int, ...] = ()
    incomplete: bool = False

    @classmethod
    def of(cls, data: bytes, first_row: int = 1) -> Lines:
        """Return whole lines."""
        return cls(first_row, data, data.count(b"\n"))


class _Collector:
    """Joins pieces into whole lines, and drops a line once it is over the cap."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._whole: list[bytes] = []
        self._open: list[bytes] = []
        self._open_size = 0
        self._rows_before = 0
        self._rows = 0
        self._too_long: list[int] = []
        self.size = 0

    def add(self, piece: bytes) -> None:
        end = piece.rfind(b"\n") + 1
        if end:
            first = piece.find(b"\n") + 1
            self._close(piece[:first])
            self._append(piece[first:end])
        self._extend(piece[end:])

    def finish(self) -> None:
        if self._open_size:
            self._close(b"")

    def take(self) -> Lines:
        lines = Lines(self._rows_before + 1, b"".join(self._whole), self._rows, tuple(self._too_long))
        self._rows_before += self._rows
        self._whole, self._too_long, self._rows, self.size = [], [], 0, 0
        return lines

    def _extend(self, part: bytes) -> None:
        self._open_size += len(part)
        if self._open_size > self._cap:
            self._open.clear()
        elif part:
            self._open.append(part)

    def _close(self, end: bytes) -> None:
        self._extend(end.removesuffix(b"\n"))
        line = b"".join(self._open)
        if self._open_size > self._cap:
            self._too_long.append(self._rows_before + self._rows + 1)
        self._open, self._open_size = [], 0
        self._append(line + b"\n")

    def _append(self, data: bytes) -> None:
        self._whole.append(data)
        # NumPy counts in a long text many times as fast, and takes a moment to begin.
        whole = np.frombuffer(data, np.uint8) == ord("\n") if len(data) > RAW_BYTES else None
        self._rows += data.count(b"\n") if whole is None else int(np.count_nonzero(whole))
        self.size += len(data)


def read_lines(path: Path, options: ReadOptions) -> Iterator[Lines]:
    """Yield a text file's lines, about ``options.batch_bytes`` at a time."""
    with DecompressedFile(path, options) as source:
        for lines in lines_of(source, options):
            yield replace(lines, incomplete=source.incomplete)


def lines_of(source: Bytes, options: ReadOptions) -> Iterator[Lines]:
    """Yield the lines of text that is already open."""
    text = Utf8(source)
    lines = _Collector(options.max_line_bytes)
    # Half the cap: UTF-16 may grow by half when converted, and no line may hide inside one piece.
    step = max(1, min(PIECE_BYTES, options.batch_bytes, options.max_line_bytes // 2))
    while piece := text.read(step):
        lines.add(piece)
        if lines.size >= options.batch_bytes:
            yield lines.take()
    if not getattr(source, "incomplete", False):
        lines.finish()
    yield lines.take()


def first_bytes(path: Path, options: ReadOptions = HEAD) -> bytes:
    """Return a file's first decompressed bytes, as they are."""
    with DecompressedFile(path, options) as source:
        text = Utf8(source)
        head = b""
        while len(head) < HEAD_BYTES and (piece := text.read(HEAD_BYTES)):
            head += piece
        return head


def first_lines(path: Path, options: ReadOptions = HEAD) -> bytes:
    """Return a text file's first whole lines: the same ones whatever the size of a batch."""
    with DecompressedFile(path, options) as source:
        return next(lines_of(source, replace(options, batch_bytes=HEAD_BYTES))).data


EXTENT_BYTES = 256 * 2**20
FEWEST_LINES = 100
"""With fewer in a sample, its rows do not lie in lines."""


def extent(path: Path, sample_bytes: int) -> tuple[float, float]:
    """Estimate a file's bytes, unpacked, and how many samples' rows it holds.

    Lines tell the rows better than bytes do: a file may begin with short ones.
    """
    lines = unpacked = 0
    whole = ReadOptions(keep_complete=True, batch_bytes=sample_bytes)
    with DecompressedFile(path, whole) as source:
        sample_lines = next(lines_of(source, whole)).count
    with DecompressedFile(path, whole) as source:
        # What a packed file's decompressor holds back is a small part of so much.
        while unpacked < EXTENT_BYTES and (piece := source.read(sample_bytes)):
            lines += piece.count(b"\n")
            unpacked += len(piece)
        seen = source.taken / path.stat().st_size
    samples = lines / sample_lines if sample_lines >= FEWEST_LINES else unpacked / sample_bytes
    return unpacked / seen, max(1.0, samples / seen)
