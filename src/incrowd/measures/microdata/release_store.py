"""Keeps a provider's secrets between releases in a private folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import polars as pl

from incrowd.errors import CrowdDamaged
from incrowd.measures.microdata.release import STATE_SCHEMA, ReleaseState

RECORD = "release.json"
FORMAT = "incrowd-microdata-release-state"


def save_state(state: ReleaseState, folder: str | Path) -> None:
    """Write the state; only its owner may read it. The record names the table, so both change at once."""
    home = Path(folder)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.chmod(0o700)
    table = home / f"items-{state.number}.parquet"
    _private(table)
    state.items.write_parquet(table)
    record = {
        "format": FORMAT,
        "version": 1,
        "number": state.number,
        "secret": state.secret.hex(),
        "items": table.name,
    }
    unfinished = home / (RECORD + ".tmp")
    _private(unfinished)
    unfinished.write_text(json.dumps(record), encoding="utf-8")
    unfinished.replace(home / RECORD)
    for old in home.glob("items-*.parquet"):
        if old.name != table.name:
            old.unlink()


def load_state(folder: str | Path) -> ReleaseState:
    """Read the state of the last release; a fresh one if there was none."""
    record_path = Path(folder) / RECORD
    if not record_path.exists():
        return ReleaseState.fresh()
    try:
        record = json.loads(record_path.read_text(encoding="utf-8"))
        items = pl.read_parquet(record_path.parent / record["items"]).select(list(STATE_SCHEMA))
        return ReleaseState(bytes.fromhex(record["secret"]), int(record["number"]), items)
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        raise CrowdDamaged(
            f"{folder}: expected the secrets of the last release, but they cannot be read "
            f"({type(error).__name__}). "
            "Restore the folder from a backup: starting over would let releases be compared."
        ) from None


def _private(path: Path) -> None:
    """Make an empty file that nobody else can read, before anything is written into it."""
    os.close(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
