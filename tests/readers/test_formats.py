"""Every format: recognised by its content, read to the same rows whatever the size of a batch."""

from __future__ import annotations

import io
import json
import random
import zipfile
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from incrowd.crowd.readers import FORMATS, Batch, ReadOptions, archive, detect
from incrowd.crowd.readers.base import empty_rows
from incrowd.crowd.readers.export import FirstLook
from incrowd.crowd.readers.source import first_bytes
from incrowd.errors import InputError, UnreadableSource

from .files import COMPRESS, EXAMPLES, Example, zipped
from .reading import outcome, read, rejects, rows

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=repr)


@each_example
def test_a_sound_file_is_recognised_and_read(example: Example, tmp_path: Path) -> None:
    path = example.write(tmp_path)
    assert detect(path).name == example.format
    expected = [
        {name: tmp_path.name if value == "FOLDER" else value for name, value in row.items()}
        for row in example.rows
    ]
    assert rows(path, example.options) == expected


@each_example
def test_the_name_of_a_file_does_not_matter(example: Example, tmp_path: Path) -> None:
    path = tmp_path / "something"
    path.write_bytes(example.data)
    assert detect(path).name == example.format


@pytest.mark.parametrize("example", [e for e in EXAMPLES if not e.is_packed], ids=repr)
def test_compressing_a_file_changes_nothing(example: Example, tmp_path: Path) -> None:
    path = example.write(tmp_path)
    packed = tmp_path / "packed"
    packed.mkdir()
    for name, pack in COMPRESS.items():
        other = packed / example.name
        other.write_bytes(pack(example.data))
        assert detect(other).name == example.format, name
        options = replace(example.options, community="c")
        assert rows(other, options) == rows(path, options), name


@each_example
@pytest.mark.parametrize("batch_bytes", [1, 7, 100])
def test_the_size_of_a_batch_does_not_matter(example: Example, batch_bytes: int, tmp_path: Path) -> None:
    path = example.write(tmp_path)
    assert outcome(path, replace(example.options, batch_bytes=batch_bytes)) == outcome(path, example.options)


@each_example
def test_every_batch_has_the_columns_of_its_table(example: Example, tmp_path: Path) -> None:
    for batch in read(example.write(tmp_path), example.options):
        assert batch.rows.schema == empty_rows(batch.kind).schema
        assert batch.rejects.schema == pl.Schema({"row": pl.UInt64(), "reason": pl.String()})
        assert batch.rows["row"].is_sorted()
        assert not batch.incomplete


@each_example
def test_forcing_the_format_gives_the_same(example: Example, tmp_path: Path) -> None:
    path = example.write(tmp_path)
    batches = detect(path, example.format).read(path, example.options)
    forced = pl.concat([batch.rows for batch in batches]).drop("link", strict=False)
    assert forced.to_dicts() == rows(path, example.options)


@each_example
def test_a_damaged_file_raises_our_errors_or_gives_rows(example: Example, tmp_path: Path) -> None:
    """Flip or cut bytes anywhere: nothing but our own errors comes out, and never anyone's words."""
    chance = random.Random(0)
    path = tmp_path / example.name
    for _ in range(30):
        data = bytearray(example.data)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.randrange(1, len(data) + 1)])
        said, batches = attempt(path, example)
        assert not any(word in said for word in ("kettle", "Green", "cake", "Hello", "First"))
        for batch in batches:
            assert batch.rows.schema == empty_rows(batch.kind).schema


def attempt(path: Path, example: Example) -> tuple[str, list[Batch]]:
    options = replace(
        example.options, user=example.options.user or "me", dates=example.options.dates or "dmy"
    )
    try:
        return "", list(FORMATS[example.format].read(path, options))
    except InputError as error:
        return str(error), []


GENERAL = {"csv", "tsv", "jsonl", "json", "json-map", "ratings", "fimi"}
"""Layouts rather than services: they take what no service's reader knows."""


@each_example
def test_no_file_is_taken_by_two_readers(example: Example, tmp_path: Path) -> None:
    """Every pair of a reader and a file: a service's file is taken by its own reader and by no other service's."""
    path = example.write(tmp_path)
    with FirstLook(path, first_bytes(path)) as look:
        takers = {name for name, reader in FORMATS.items() if reader.probe(look)}
    takers -= GENERAL - {example.format}
    assert takers == {example.format}


@each_example
def test_a_foreign_file_is_refused_or_gives_no_rows(example: Example, tmp_path: Path) -> None:
    """Forced onto a file of another service, a reader says so; it never makes rows of it."""
    path = example.write(tmp_path)
    for name, reader in FORMATS.items():
        if name in GENERAL | {example.format, "sqlite", "excel", "parquet", "mbox", "msweb", "netflix"}:
            continue
        if {name, example.format} in ({"reddit", "jsonl"}, {"facebook", "instagram"}):
            continue
        try:
            batches = list(reader.read(path, ReadOptions(user="me", dates="dmy")))
        except InputError:
            continue
        assert sum(batch.rows.height for batch in batches) == 0, name


def test_every_format_has_an_example() -> None:
    assert {example.format for example in EXAMPLES} == set(FORMATS)


def test_the_documentation_describes_every_format() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "formats.md").read_text("utf-8")
    assert all(f"| `{name}` |" in page for name in FORMATS)


def test_an_unknown_format_name_lists_the_known(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Known: .*reddit, "):
        detect(tmp_path / "x", "word")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b" \n ", "empty"),
        (b"\x7fELF\2\1\1\0\0", "neither text nor"),
        (b"<html><body>hello</body></html>", "neither a feed, nor"),
        (b"[1, 2, 3]", "begins like JSON"),
        (b"{broken", "begins like JSON"),
        (b"Dear diary,\ntoday I met Zebediah\n", "names no column of users"),
    ],
)
def test_an_unknown_file_says_what_did_not_fit(data: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "unknown"
    path.write_bytes(data)
    with pytest.raises(UnreadableSource, match=said) as caught:
        detect(path)
    assert "Zebediah" not in str(caught.value)
    assert "see docs/how-to/formats.md" in str(caught.value)


def test_a_first_line_that_is_too_long_does_not_hide_the_format(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(
        b'{"author": "a", "text": "' + b"x" * 17 * 2**20 + b'"}\n{"author": "b", "text": "short"}\n'
    )
    assert detect(path).name == "jsonl"
    assert rejects(path) == {1: "text_too_long"}
    assert [row["user"] for row in rows(path)] == ["b"]


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.data.startswith(b"PK")], ids=lambda e: e.name)
def test_what_a_desktop_packs_along_does_no_harm(example: Example, tmp_path: Path) -> None:
    plain = outcome(example.write(tmp_path), example.options, example.format)
    packed = tmp_path / "again.zip"
    with zipfile.ZipFile(io.BytesIO(example.data)) as old, zipfile.ZipFile(packed, "w") as new:
        for name in old.namelist():
            folder, _, last = name.rpartition("/")
            new.writestr(f"__MACOSX/{folder}/._{last}".replace("//", "/"), b"\x00\x05\x16\x07 Mac OS X")
            new.writestr(name, old.read(name))
        for name in (".DS_Store", "desktop.ini", "a/Thumbs.db"):
            new.writestr(name, "[x]\r\n".encode("utf-16"))
    assert detect(packed).name == example.format
    assert outcome(packed, example.options, example.format) == plain


def test_an_archive_of_many_files_is_opened_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workspace's export has a file for every channel and day, tens of thousands of them."""
    opened: list[object] = []
    original = archive.Zip.__init__

    def counted(self: archive.Zip, *args: object) -> None:
        opened.append(self)
        original(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(archive.Zip, "__init__", counted)
    day = b'[{"type": "message", "user": "U1", "text": "hi", "ts": "1609502400.0001"}]'
    people = json.dumps([{"id": "U1", "name": "ann", "padding": "x" * 2**20}, {"id": "U2"}]).encode()
    files = {f"tea/2021-01-{n:02}.json": day for n in range(1, 32)}
    path = tmp_path / "slack.zip"
    path.write_bytes(zipped({"users.json": people, **files}))
    assert detect(path).name == "slack"
    assert len(rows(path, ReadOptions(user="ann"), "slack")) == 31
    assert len(opened) <= 3


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("Benutzer;Datum;Text", "ann;31.01.2021;Green"),
        ("Utilisateur;Date;Texte", "ann;31/01/2021;Green"),
        ("Usuario;Fecha;Texto", "ann;31/01/2021;Green"),
    ],
)
def test_columns_in_other_languages_are_known(header: str, line: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n{line}\n", encoding="utf-8-sig")
    (row,) = rows(path, ReadOptions(dates="dmy"))
    assert (row["user"], row["time"], row["text"]) == ("ann", 1612051200, "Green")


def test_a_decimal_comma_is_read_and_a_comma_between_thousands_is_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(
        "Nutzer;Film;Bewertung\nann;Tee;4,5\nann;Kuchen;-3,75\nann;Brot;1,250\n", encoding="utf-8"
    )
    assert [row["value"] for row in rows(path)] == [4.5, -3.75]
    assert rejects(path) == {4: "bad_value"}
