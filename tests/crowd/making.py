"""Tiny sources and crowds for the tests of the store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from backports import zstd

from incrowd.crowd import Crowd
from incrowd.crowd.disk import Disk


def post(
    user: str, text: str, community: str = "books", time: int | None = 1_500_000_000, **more: Any
) -> dict[str, Any]:
    return {"author": user, "community": community, "time": time, "text": text, **more}


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_truncated(path: Path) -> Path:
    """Write a compressed source that breaks off after many good rows."""
    rows = [post(f"user {n}", f"{n} {n * 7919} {n * n}") for n in range(5000)]
    whole = zstd.compress(write_jsonl(path, rows).read_bytes())
    path.write_bytes(whole[: len(whole) * 9 // 10])
    return path


def texts(crowd: Crowd) -> list[str]:
    return sorted(crowd.posts().collect()["text"])


def new_crowd(path: Path, disk: Disk | None = None) -> Crowd:
    """Make a plain-named crowd; unless told otherwise it does not wait for the disk."""
    crowd = Crowd.create(path, plain_names=True)
    crowd._disk = disk or Disk(durable=False)
    return crowd
