"""A card is one small file; what is damaged or hostile is refused with a sentence, before it costs anything."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.cli.running import incrowd

from incrowd import Card, TextOptions
from incrowd.cards.card import HEAD, LARGEST_FILE, text_facts
from incrowd.cards.default import default_card
from incrowd.errors import InputError, NotInCrowd, UnreadableSource


def a_card(**head: object) -> Card:
    table = pl.DataFrame({"word": ["tea", "cup"], "share": np.array([0.5, 0.25], np.float32)})
    facts = {"communities": [{"name": "pets", "people": 120}], "text": text_facts(TextOptions()), **head}
    return Card.made(facts, [{"words": table, "hours.shares": table}], {"items": table})


def test_what_is_written_is_read(tmp_path: Path) -> None:
    card = a_card()
    read = Card.read(card.write(tmp_path / "pets.card"))
    assert read.to_bytes() == card.to_bytes()
    assert read.hash == card.hash
    assert read.communities == ("pets",)
    assert read.text == TextOptions()
    assert read.tables("pets")["words"].equals(card.tables("pets")["words"])
    assert list(read.section("hours", "pets")) == ["shares"]
    assert read.section("hours") == {}
    with pytest.raises(NotInCrowd, match="it has: pets"):
        read.tables("cars")


def test_a_card_over_two_megabytes_is_not_written(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).random(600_000)
    card = Card.made(
        {"communities": [{"name": "a", "people": 100}]}, [{"words": pl.DataFrame({"share": noise})}]
    )
    with pytest.raises(InputError, match="may have 2 MiB"):
        card.write(tmp_path / "large.card")
    (tmp_path / "large.card").write_bytes(bytes(LARGEST_FILE + 1))
    with pytest.raises(UnreadableSource, match="at most 2 MiB"):
        Card.read(tmp_path / "large.card")


def test_a_changed_byte_is_noticed() -> None:
    whole = a_card().to_bytes()
    for place in np.random.default_rng(1).integers(len(whole), size=120).tolist():
        damaged = bytearray(whole)
        damaged[place] ^= 0x41
        try:
            read = Card.from_bytes(bytes(damaged))
        except UnreadableSource:
            continue
        assert read.hash == a_card().hash, "only bytes that say nothing (dates, names' flags) may differ"
        assert read.tables("pets")["words"].equals(a_card().tables("pets")["words"])


@pytest.mark.parametrize("length", [0, 1, 30, 400])
def test_a_piece_of_a_card_is_no_card(length: int) -> None:
    with pytest.raises(UnreadableSource, match="no card"):
        Card.from_bytes(a_card().to_bytes()[:length])


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="cannot be read"):
        Card.read(tmp_path / "none.card")


def repacked(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in files.items():
            file.writestr(name.replace("__", "/").replace("_dot_", "."), data)
    return buffer.getvalue()


def test_what_unpacks_to_too_much_is_refused_in_time() -> None:
    bomb = repacked(head_dot_json=b"{}", crowd__words_dot_arrow=bytes(200 * 2**20))
    assert len(bomb) < LARGEST_FILE
    with pytest.raises(UnreadableSource, match="larger than cards may be"):
        Card.from_bytes(bomb)


def test_a_table_that_would_grow_when_read_is_refused() -> None:
    from incrowd.cards.card import _digest

    sink = pa.BufferOutputStream()
    table = pa.table({"share": np.zeros(4_000_000)})
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as out:
        out.write_table(table)
    head = {**a_card().head, "hash": ""}
    files = {"community-0/words.arrow": sink.getvalue().to_pybytes()}
    head["hash"] = _digest(head, files)
    data = repacked(
        head_dot_json=json.dumps(head).encode(), **{"community-0__words_dot_arrow": files.popitem()[1]}
    )
    with pytest.raises(UnreadableSource, match="compressed"):
        Card.from_bytes(data)


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ({}, "no card of incrowd"),
        ({"format": "incrowd card", "hash": "x", "version": 9}, "version 9"),
        ({"format": "incrowd card", "hash": "x", "version": 1}, "does not list"),
        ({"format": "incrowd card", "hash": "x", "version": 1, "communities": []}, "damaged"),
    ],
)
def test_a_head_that_is_none_is_refused(head: dict[str, object], says: str) -> None:
    with pytest.raises(UnreadableSource, match=says):
        Card.from_bytes(repacked(head_dot_json=json.dumps(head).encode()))


def test_a_part_with_another_name_is_refused() -> None:
    with pytest.raises(UnreadableSource, match="no name we know"):
        Card.from_bytes(repacked(head_dot_json=b"{}", **{"..__evil": b"x"}))


def test_a_head_names_no_file_to_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden", encoding="utf-8")
    card = a_card(text={**text_facts(TextOptions()), "stop_words": str(secret)})
    assert "hidden" not in card.text.stop_word_list


def test_a_head_without_sense_is_refused() -> None:
    with pytest.raises(UnreadableSource, match="twice"):
        Card.made({"communities": [{"name": "a", "people": 1}] * 2}, [{}, {}])
    with pytest.raises(UnreadableSource, match="how text becomes words"):
        a_card(text={"tokens": "odd"})
    with pytest.raises(InputError, match="cannot be called"):
        Card.made({"communities": []}, [], {"../x": pl.DataFrame({"a": [1]})})


def test_the_head_is_the_first_part() -> None:
    with zipfile.ZipFile(io.BytesIO(a_card().to_bytes())) as file:
        assert file.namelist()[0] == HEAD
        assert json.loads(file.read(HEAD))["format"] == "incrowd card"


def test_without_a_file_the_card_inside_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    shown = incrowd(capsys, "card", "info")
    assert shown.code == 0, shown.err
    assert default_card().hash in " ".join(shown.out.split())
    told = json.loads(incrowd(capsys, "card", "info", "--json").out)
    assert (told["card"], told["hash"]) == ("reddit.card", default_card().hash)
    assert told["bytes"] > 0
