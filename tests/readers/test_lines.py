"""Lines: all of them, once, with their numbers."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.readers.source import Lines, first_lines, lines_of, read_lines

from .test_source import Pieces

texts = st.lists(
    st.binary(max_size=12).map(lambda line: line.replace(b"\n", b"").replace(b"\0", b"")), max_size=12
)


def numbered(chunks: list[Lines]) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for lines in chunks:
        each = lines.data.split(b"\n")[:-1]
        assert len(each) == lines.count
        found.update({lines.first_row + i: line for i, line in enumerate(each)})
    return found


@settings(max_examples=60, deadline=None)
@given(texts, st.integers(1, 40), st.integers(1, 20), st.booleans())
def test_lines_keep_their_order_and_numbers(lines: list[bytes], batch: int, piece: int, ended: bool) -> None:
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    chunks = list(lines_of(Pieces(b"ab\n" + data, piece), ReadOptions(batch_bytes=batch)))
    expected = [b"ab", *data.split(b"\n")]
    expected = expected[:-1] if expected[-1] == b"" else expected
    assert list(numbered(chunks).values()) == expected
    assert list(numbered(chunks)) == list(range(1, len(expected) + 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=10), st.integers(1, 50), st.integers(1, 60))
def test_a_line_over_the_cap_is_named_and_left_empty(lengths: list[int], batch: int, piece: int) -> None:
    data = b"".join(b"x" * length + b"\n" for length in lengths)
    options = ReadOptions(batch_bytes=batch, max_line_bytes=16)
    chunks = list(lines_of(Pieces(b"....\n" + data, piece), options))
    too_long = [row for lines in chunks for row in lines.too_long]
    assert too_long == [row for row, length in enumerate(lengths, 2) if length > 16]
    kept = {row: b"" if length > 16 else b"x" * length for row, length in enumerate(lengths, 2)}
    assert numbered(chunks) == {1: b"....", **kept}


def test_an_endless_line_is_not_held_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "endless"
    with path.open("wb") as file:
        file.write(b"short\n")
        for _ in range(40):
            file.write(b"x" * 2**20)
        file.write(b"\nlast")
    chunks = list(read_lines(path, ReadOptions(batch_bytes=2**20)))
    assert max(len(lines.data) for lines in chunks) < 2**20
    assert numbered(chunks) == {1: b"short", 2: b"", 3: b"last"}
    assert [row for lines in chunks for row in lines.too_long] == [2]


def test_the_first_lines_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 2**18 + b"\nb\nc")
    assert first_lines(path) == b"a" * 2**18 + b"\nb\n"
