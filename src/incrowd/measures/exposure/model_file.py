"""A trained space in one file: arrays, the topics, and where it came from; checked when it is read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.errors import UnreadableSource
from incrowd.measures.exposure.embeddings import Embeddings
from incrowd.measures.exposure.lda import LdaSpace
from incrowd.measures.exposure.topics import Topic, TopicSet
from incrowd.measures.exposure.word2vec import WordVectors

FORMAT = 2
TrainedSpace = LdaSpace | WordVectors | Embeddings
KINDS: dict[str, tuple[type[TrainedSpace], tuple[str, ...]]] = {
    "LDA": (LdaSpace, ("word_starts", "dims", "weights", "prior", "topic_vectors")),
    "W2V": (WordVectors, ("vectors", "levels", "literal")),
    "EMB": (Embeddings, ("vectors", "topic_vectors", "prior")),
}
"""The spaces that can be learnt, and the arrays and numbers each is made of, in order."""


def save_space(space: TrainedSpace, path: Path | str, origin: Mapping[str, Any]) -> None:
    """Write a space; `origin` says what it was learnt from (hashes, options, seed). Whole or not at all."""
    _, names = KINDS[space.name]
    about = {
        "format": FORMAT,
        "space": space.name,
        "hash": space.hash,
        "origin": dict(origin),
        "topics": [[t.name, t.domain, list(t.words), t.sensitive] for t in space.topics.topics],
        "words": list(space.words),
    }
    text = json.dumps(about, ensure_ascii=False, sort_keys=True).encode()
    arrays = {name: getattr(space, name) for name in names}
    target = Path(path)
    unfinished = target.with_name(target.name + ".tmp")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, about=np.frombuffer(text, np.uint8), **arrays)
    unfinished.replace(target)


def load_space(path: Path | str) -> TrainedSpace:
    """Read a space and check that it is what was written."""
    try:
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
            about = json.loads(arrays.pop("about").tobytes())
        space = _space(about, arrays)
    except FileNotFoundError:
        raise UnreadableSource(f"{path}: no such model; learn one with: incrowd exposure train") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError):
        raise UnreadableSource(f"{path}: not a model of incrowd exposure train; learn it again") from None
    if space.hash != about["hash"]:
        raise UnreadableSource(f"{path}: the model differs from what was written; learn it again")
    return space


def model_origin(path: Path | str) -> dict[str, Any]:
    """Return what a model was learnt from."""
    with np.load(path, allow_pickle=False) as file:
        return dict(json.loads(file["about"].tobytes())["origin"])


def _space(about: dict[str, Any], arrays: dict[str, Any]) -> TrainedSpace:
    if about["format"] != FORMAT:
        raise ValueError("another format")
    topics = TopicSet(tuple(Topic(n, d, tuple(w), s) for n, d, w, s in about["topics"]))
    words = tuple(about["words"])
    kind, names = KINDS[about["space"]]
    return kind(
        topics, words, *(arrays[name] if arrays[name].ndim else arrays[name].item() for name in names)
    )
