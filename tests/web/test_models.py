"""Models that strangers bring: read in a child, whose memory and time end before the server's do."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.web.visiting import form_key, options_for, visitor, wait_for

from incrowd.errors import UnreadableSource
from incrowd.measures.exposure.learnt_spaces import LdaSpace, save_space
from incrowd.measures.exposure.topics import Topic, TopicSet
from incrowd.web.models import read_in_child

SPACE = LdaSpace(
    topics=TopicSet((Topic("debt", "money", ("debt", "loan"), True, None, None),)),
    words=("debt", "loan"),
    word_starts=np.array([0, 1, 2]),
    dims=np.array([0, 0], np.int32),
    weights=np.array([0.5, 0.5], np.float32),
    prior=np.array([0.1], np.float32),
    topic_vectors=np.ones((1, 1), np.float32),
)


def small_file_of_many_lists(path: Path) -> None:
    """120 MB of JSON, packed into some hundred kilobytes, that would be 40 million objects."""
    text = json.dumps({"format": 2, "space": "LDA", "topics": [], "words": "HERE"}).encode()
    before, after = text.split(b'"HERE"')
    many = b"[" + b"{}," * 40_000_000 + b"{}]"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("about.npy", "w") as file:
        size = len(before) + len(many) + len(after)
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (size,)})
        for part in (before, many, after):
            file.write(part)


def test_a_model_comes_back_as_it_was_written(tmp_path: Path) -> None:
    save_space(SPACE, tmp_path / "model.npz", {})
    assert read_in_child(tmp_path / "model.npz").hash == SPACE.hash


def test_a_file_that_unpacks_to_too_much_is_refused_with_a_sentence(tmp_path: Path) -> None:
    small_file_of_many_lists(tmp_path / "model.npz")
    assert (tmp_path / "model.npz").stat().st_size < 2**20
    with pytest.raises(UnreadableSource, match="2 GiB of memory"):
        read_in_child(tmp_path / "model.npz")


def test_what_is_no_model_is_explained(tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes(b"rubbish")
    with pytest.raises(UnreadableSource, match="not a model"):
        read_in_child(tmp_path / "model.npz")


def test_a_model_can_be_brought_to_the_page(tmp_path: Path) -> None:
    save_space(SPACE, tmp_path / "model.npz", {})
    with visitor(options_for(tmp_path / "crowd")) as client:
        key = form_key(client, "/judges")
        file = ("model.npz", (tmp_path / "model.npz").read_bytes())
        sent = client.post("/uploads/judges/space", files=[("form_key", (None, key)), ("files", file)])
        assert sent.status_code == 200
        assert wait_for(client, sent)["state"] == "done"
        bad = client.post(
            "/uploads/judges/space", files=[("form_key", (None, key)), ("files", ("m.npz", b"PK"))]
        )
        assert bad.status_code == 400
        assert str(tmp_path) not in bad.text
        none = client.post("/uploads/judges/space", files=[("form_key", (None, key))])
        assert none.status_code == 400
