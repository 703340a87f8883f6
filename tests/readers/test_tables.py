"""CSV and TSV: quotes, ragged rows, headers, and what is refused before anything is read."""

from __future__ import annotations

import csv
import io
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd.readers import ReadOptions, detect
from incrowd.crowd.readers.source import Lines
from incrowd.crowd.readers.table import RecordSplitter, parse_records
from incrowd.errors import InputError, SchemaError

from .files import table
from .reading import outcome, read, rejects, rows

cells = st.text(alphabet='ab",\n;é ', max_size=6)


def write(folder: Path, data: bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def parsed(
    data: bytes, columns: int, cuts: list[int]
) -> tuple[list[tuple[object, ...]], list[tuple[int, str]]]:
    """Parse delimited bytes that arrive in pieces of whole lines."""
    splitter = RecordSplitter(b",", 2**20, "here")
    wanted = {place: f"c{place}" for place in range(columns)}
    lines = data.split(b"\n")[:-1]
    found: list[tuple[object, ...]] = []
    bad: list[tuple[int, str]] = []
    ends = [0, *sorted({cut % (len(lines) + 1) for cut in cuts}), len(lines)]
    for start, end in pairwise(ends):
        piece = b"".join(line + b"\n" for line in lines[start:end])
        part = parse_records(splitter.split(Lines.of(piece, start + 1)), columns, wanted, ",")
        found += part.rows.drop("link", strict=False).rows()
        bad += [(row, str(reason)) for row, reason in part.rejects]
    splitter.finish(incomplete=False)
    return found, bad


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(cells, cells), max_size=8), st.lists(st.integers(0, 20), max_size=4))
def test_what_was_written_is_read(records: list[tuple[str, str]], cuts: list[int]) -> None:
    found, bad = parsed(table(*records), 2, cuts)
    assert found == [(row, *record) for row, record in enumerate(records, 1)]
    assert not bad


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='ab",\n', max_size=40), st.lists(st.integers(0, 20), max_size=3))
def test_any_text_is_split_as_the_csv_module_splits_it(text: str, cuts: list[int]) -> None:
    expected = list(csv.reader(io.StringIO(text + "\n", newline=""), strict=False))
    try:
        found, bad = parsed(text.encode() + b"\n", 2, cuts)
    except SchemaError:
        assert text.count('"') > 0
        return
    numbered = [(row, record) for row, record in enumerate(expected, 1) if record]
    assert found == [(row, *record) for row, record in numbered if len(record) == 2]
    assert bad == [(row, "ragged_row") for row, record in numbered if len(record) != 2]


def test_quotes_and_no_quotes_are_read_alike() -> None:
    plain = b"".join(b"a%d,b%d\n" % (n, n) for n in range(50))
    assert parsed(plain, 2, []) == parsed(plain.replace(b"a7,", b'"a7",'), 2, [])


def test_one_ragged_row_among_many_is_set_aside(tmp_path: Path) -> None:
    body = [("ann", f"text {n}") for n in range(40)]
    path = write(tmp_path, table(("user", "text"), *body, ("bob", "too", "many"), ("cat",), ("dan", "fine")))
    assert rejects(path) == {42: "ragged_row", 43: "ragged_row"}
    assert rows(path)[-1]["row"] == 44


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"user,text\na,b,c\nd,e,f\ng,h\n", "2 of the first 3 rows"),
        (b"user,text\na\n", "1 of the first 1 rows"),
        (b'user,text\nann,"never closed\nbob,hi\n', "record 2 is never closed"),
        (b"user,text,text\na,b,c\n", "twice"),
        (b"name of the person,what\na,b\n", "no column for 'user'"),
        (b"user\na\n", "no column holds an attribute"),
        (b"user;text\na;b\n", None),
    ],
)
def test_a_broken_shape_is_refused(data: bytes, said: str | None, tmp_path: Path) -> None:
    path = write(tmp_path, data)
    if said is None:
        assert rows(path, format="csv")[0]["text"] == "b"
        return
    with pytest.raises(SchemaError, match=said):
        read(path, format="csv")


def test_a_wrong_delimiter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match="no column"):
        read(write(tmp_path, b"user,text\na,b\n"), format="tsv")


def test_a_million_columns_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, b"user," + b",".join(b"c%d" % n for n in range(10**6)) + b"\n")
    with pytest.raises(SchemaError, match="1000001 columns"):
        read(path, format="csv")


def test_a_huge_cell_is_set_aside_and_the_rest_is_read(tmp_path: Path) -> None:
    path = write(
        tmp_path, table(("user", "text"), ("ann", "x\n" * 200), ("bob", "y" * 300), ("cat", "hi\nho"))
    )
    options = ReadOptions(max_line_bytes=100)
    assert rejects(path, options) == {2: "text_too_long", 3: "text_too_long"}
    assert [row["text"] for row in rows(path, options)] == ["hi\nho"]
    small = ReadOptions(max_line_bytes=100, batch_bytes=10)
    assert outcome(path, small) == outcome(path, options)


def test_cells_that_look_like_formulas_are_kept_as_they_are(tmp_path: Path) -> None:
    texts = ["=1+1", "+1", "-1", "@x", "\tx", " x "]
    path = write(tmp_path, table(("user", "text"), *(("ann", text) for text in texts)))
    assert [row["text"] for row in rows(path)] == texts


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_every_encoding_is_read(encoding: str, tmp_path: Path) -> None:
    path = write(tmp_path, "user,text\nann,žluťoučký 😀\n".encode(encoding))
    assert detect(path).name == "csv"
    assert rows(path)[0]["text"] == "žluťoučký 😀"


WESTERN = "Der Gärtner grüßt: “Schön”, sagt die Übrige – für 5 € im Café, señor, naïve œuvre"


@pytest.mark.parametrize("place", [0, 40])
def test_a_table_as_western_spreadsheets_save_it_is_read_and_said(place: int, tmp_path: Path) -> None:
    said = [WESTERN if n == place else f"plain words, number {n}" for n in range(80)]
    text = "Größe,user,text\n" + "".join(f'1,ann,"{one}"\n' for one in said)
    path = write(tmp_path, text.encode("cp1252"))
    assert [row["text"] for row in rows(path)] == said
    for batch_bytes in (1, 2**20):
        batches = list(detect(path).read(path, ReadOptions(batch_bytes=batch_bytes)))
        assert sum(batch.replaced for batch in batches) == 0
        assert any("Windows-1252" in note for note in batches[0].notes)


@pytest.mark.parametrize(
    "odd",
    [
        "Сегодня я читала книгу".encode("cp1251"),
        "今日は本を読みました".encode("shift-jis"),
        "Zażółć gęślą jaźń".encode("cp1250"),
        "schön".encode("cp1252") + " und größer".encode(),
        b"a\xffb",
        b"a\x81b",
    ],
    ids=["russian", "japanese", "polish", "mixed", "lone", "undefined"],
)
def test_what_is_neither_utf8_nor_western_is_not_guessed(odd: bytes, tmp_path: Path) -> None:
    path = write(tmp_path, b"user,text\nann,hello\nann," + odd + b"\n")
    assert sum(batch.replaced for batch in read(path)) == 1


def test_invalid_bytes_are_replaced_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, b"user,text\nann,a\xffb\nbob,c\x00d\ncat,fine\n")
    assert [row["text"] for row in rows(path)] == ["a\ufffdb", "c\ufffdd", "fine"]
    assert sum(batch.replaced for batch in read(path)) == 2


def test_line_ends_of_windows_and_blank_lines_are_no_rows(tmp_path: Path) -> None:
    path = write(tmp_path, b'user,text\r\n\r\nann,hi\r\n\r\nbob,"a\r\nb"\r\n')
    assert [(row["row"], row["text"]) for row in rows(path)] == [(3, "hi"), (5, "a\r\nb")]


def test_a_column_may_be_called_row_or_reason(tmp_path: Path) -> None:
    path = write(tmp_path, b"user,row,reason,id,value\nann,1,2,3,4\n")
    found = {row["attribute"]: row["value"] for row in rows(path)}
    assert found == {"row": "1", "reason": "2", "value": "4"}


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = write(tmp_path, b"node_1,node_2\n0,24208\n")
    options = ReadOptions(columns={"user": "node_1", "item": "node_2"})
    assert [(row["user"], row["item"]) for row in rows(path, options)] == [("0", "24208")]


def test_texts_of_several_columns_are_joined(tmp_path: Path) -> None:
    path = write(tmp_path, b"user,title,text\nann,T,x\nbob,,y\ncat,U,\n")
    assert [row["text"] for row in rows(path)] == ["T\n\nx", "y", "U"]
    only = ReadOptions(columns={"text": "text"})
    assert [row["text"] for row in rows(path, only)] == ["x", "y", ""]
    turned = ReadOptions(columns={"text": "text+title"})
    assert [row["text"] for row in rows(path, turned)] == ["x\n\nT", "y", "U"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"user": "missing"},
            "names 'missing', which the file does not have. Columns in the file: user, text.",
        ),
        ({"colour": "text"}, "sets 'colour'; a table of posts has user, community, time, text, id"),
    ],
)
def test_a_wrong_mapping_says_what_there_is(columns: dict[str, str], said: str, tmp_path: Path) -> None:
    path = write(tmp_path, b"user,text\nann,hi\n")
    with pytest.raises(SchemaError, match=said):
        read(path, ReadOptions(columns=columns))


def test_without_a_header_no_name_is_shown(tmp_path: Path) -> None:
    path = write(tmp_path, b"Zebediah,I am ill\nAda,so am I\n")
    with pytest.raises(InputError) as caught:
        read(path, format="csv")
    assert "Zebediah" not in str(caught.value)


def test_the_kind_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path, b"user,item,rating,text\nann,tea,5,lovely\n")
    assert read(path)[0].kind == "posts"
    assert read(path, ReadOptions(kind="items"))[0].kind == "items"
    wide = rows(path, ReadOptions(kind="attributes"))
    assert {row["attribute"]: row["value"] for row in wide} == {
        "item": "tea",
        "rating": "5",
        "text": "lovely",
    }


def test_a_bad_number_or_time_is_set_aside(tmp_path: Path) -> None:
    data = b"user,item,rating,time\na,x,5,1\nb,x,lots,1\nc,x,nan,1\nd,x,1,soon\ne,,1,1\nf,x,,\n"
    path = write(tmp_path, data)
    assert rejects(path) == {3: "bad_value", 4: "bad_value", 5: "bad_time", 6: "missing_field"}
    assert [(row["user"], row["value"], row["time"]) for row in rows(path)] == [
        ("a", 5.0, 1),
        ("f", None, None),
    ]


def test_the_file_of_one_person_takes_the_name_given(tmp_path: Path) -> None:
    path = write(tmp_path, b"date,text\n2020-01-01,hi\n")
    with pytest.raises(SchemaError, match="user NAME"):
        read(path, format="csv")
    options = ReadOptions(user="me", community="diary")
    assert [(row["user"], row["community"]) for row in rows(path, options, format="csv")] == [("me", "diary")]
