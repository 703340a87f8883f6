"""The bytes of a file: what comes out of sound, broken and hostile ones."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.readers.source import DecompressedFile, Utf8, decoded, utf16_of
from incrowd.errors import UnreadableSource

from .files import COMPRESS, wide_window

DATA = b"".join(b"line %d of a text that compresses\n" % n for n in range(400))
PACKED = {name: pack for name, pack in COMPRESS.items() if name != "plain"}
each_codec = pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED)


def contents(path: Path, options: ReadOptions | None = None, size: int = 1000) -> bytes:
    with DecompressedFile(path, options or ReadOptions()) as source:
        pieces = list(iter(lambda: source.read(size), b""))
        assert all(len(piece) <= size for piece in pieces)
        return b"".join(pieces)


def write(folder: Path, data: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("pack", COMPRESS.values(), ids=COMPRESS)
@pytest.mark.parametrize("size", [1, 1000, 2**20])
def test_what_was_packed_comes_out(pack: object, size: int, tmp_path: Path) -> None:
    assert callable(pack)
    assert contents(write(tmp_path, pack(DATA)), size=size) == DATA


@each_codec
def test_members_that_follow_each_other_are_one_text(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    assert contents(write(tmp_path, pack(DATA) + pack(b"") + pack(b"end"))) == DATA + b"end"


@each_codec
def test_an_empty_member_is_an_empty_text(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    assert contents(write(tmp_path, pack(b""))) == b""


@each_codec
def test_a_cut_file_is_refused_wherever_it_is_cut(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    packed = pack(DATA)
    for end in {7, len(packed) // 2, len(packed) - 5, len(packed) - 1}:
        path = write(tmp_path, packed[:end])
        with pytest.raises(UnreadableSource, match=r"(ends early|corrupt).* byte \d+.*keep_complete"):
            contents(path)


@each_codec
def test_a_second_member_cut_in_its_first_bytes_is_refused(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    with pytest.raises(UnreadableSource, match="ends early"):
        contents(write(tmp_path, pack(DATA) + pack(DATA)[:2]))


@each_codec
def test_what_is_complete_can_be_kept(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    path = write(tmp_path, pack(DATA) + pack(DATA)[:-5])
    with DecompressedFile(path, ReadOptions(keep_complete=True)) as source:
        kept = source.readall()
        assert source.incomplete
    assert kept.startswith(DATA)
    assert (DATA + DATA).startswith(kept)


@each_codec
def test_a_flipped_byte_is_found(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    packed = bytearray(pack(DATA))
    packed[len(packed) // 2] ^= 0x55
    with pytest.raises(UnreadableSource, match="corrupt"):
        contents(write(tmp_path, packed))


@each_codec
def test_something_else_after_the_data_is_refused(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    with pytest.raises(UnreadableSource, match="followed by something else"):
        contents(write(tmp_path, pack(DATA) + b"garbage"))


@each_codec
def test_zeros_after_the_data_are_padding(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    assert contents(write(tmp_path, pack(DATA) + bytes(1000))) == DATA


def test_a_window_of_two_gibibytes_is_read(tmp_path: Path) -> None:
    packed = wide_window(DATA)
    assert zstd.get_frame_info(packed).decompressed_size is None
    with pytest.raises(zstd.ZstdError):
        zstd.decompress(packed)
    assert contents(write(tmp_path, packed)) == DATA


def test_a_larger_window_is_refused(tmp_path: Path) -> None:
    descriptor = bytes([(41 - 10) << 3])
    with pytest.raises(UnreadableSource, match="zstd data is corrupt"):
        contents(write(tmp_path, b"\x28\xb5\x2f\xfd\x00" + descriptor + bytes(50)))


def test_a_skippable_frame_is_skipped(tmp_path: Path) -> None:
    skippable = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"meta"
    assert contents(write(tmp_path, skippable + zstd.compress(DATA))) == DATA


@each_codec
def test_a_bomb_stops_at_the_ratio_cap(pack: object, tmp_path: Path) -> None:
    assert callable(pack)
    pieces: list[int] = []
    bomb = write(tmp_path, pack(bytes(2**20)) * 80)
    with (
        DecompressedFile(bomb, ReadOptions(max_ratio=50)) as source,
        pytest.raises(UnreadableSource, match="bomb"),
    ):
        pieces.extend(len(piece) for piece in iter(lambda: source.read(2**20), b""))
    assert 60 * 2**20 < sum(pieces) <= 64 * 2**20
    assert max(pieces) <= 2**20


def test_output_stops_at_its_cap(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="over 100 bytes"):
        contents(write(tmp_path, gzip.compress(DATA)), ReadOptions(max_output_bytes=100), size=50)


def test_a_missing_file_a_folder_and_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, said in {"missing": "cannot be opened", ".": "folder", "pipe": "pipe or device"}.items():
        with pytest.raises(UnreadableSource, match=said):
            DecompressedFile(tmp_path / name, ReadOptions())


def test_a_failing_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing:
        reads = 0

        def read(self, size: int) -> bytes:
            self.reads += 1
            if self.reads > 1:
                raise OSError(5, "Input/output error")
            return b"x" * 10

        def close(self) -> None: ...

    monkeypatch.setattr("incrowd.crowd.readers.source.open_regular", lambda path: Failing())
    with DecompressedFile(tmp_path / "f", ReadOptions()) as source:
        assert source.read(100) == b"x" * 10
        with pytest.raises(UnreadableSource, match="reading failed at byte 10"):
            source.read(100)


class Pieces:
    """Bytes that come in pieces of one size."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data = data
        self._size = size

    def read(self, size: int, /) -> bytes:
        piece, self._data = self._data[: min(size, self._size)], self._data[min(size, self._size) :]
        return piece


def utf8(data: bytes, size: int = 3) -> bytes:
    text = Utf8(Pieces(data, size))
    return b"".join(iter(lambda: text.read(5), b""))


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufeff")),
    st.integers(1, 9),
)
def test_every_encoding_gives_the_same_utf8(text: str, size: int) -> None:
    expected = text.encode()
    assert utf8(b"\xef\xbb\xbf" + expected, size) == expected
    assert utf8(b"\xff\xfe" + text.encode("utf-16-le"), size) == expected
    assert utf8(b"\xfe\xff" + text.encode("utf-16-be"), size) == expected


def test_utf16_without_a_mark_is_found_by_its_zeros() -> None:
    assert utf16_of("a,b".encode("utf-16-le")) == "utf-16-le"
    assert utf16_of("a,b".encode("utf-16-be")) == "utf-16-be"
    assert utf16_of(b"a,b,") is None
    assert utf8("user,text\n".encode("utf-16-le")) == b"user,text\n"


def test_half_a_pair_in_utf16_becomes_invalid_bytes_and_is_counted() -> None:
    converted = utf8(b"\xff\xfe" + "a".encode("utf-16-le") + b"\x00\xd8" + "b".encode("utf-16-le"))
    assert decoded(converted) == ("a\ufffd\ufffd\ufffdb", True)
    assert decoded(utf8(b"\xff\xfea\x00b")) == ("a\ufffd", True)


def test_zlib_alone_is_not_taken_for_text(tmp_path: Path) -> None:
    assert contents(write(tmp_path, zlib.compress(DATA))) == zlib.compress(DATA)
