"""Where tiles run: the cores of this machine or a Dask cluster, with the same three methods (:mod:`.local`).

>>> connect("threads:2").workers
2
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.engine.dask import DaskEngine
from incrowd.engine.local import Engine, Local
from incrowd.errors import InputError
from incrowd.lazy import lazy_names

if TYPE_CHECKING:
    from incrowd.engine.checkpoints import Resumable, read_rows, write_rows, write_table
    from incrowd.engine.count_files import count_files, read_counts

__all__ = [
    "Engine",
    "Local",
    "Resumable",
    "connect",
    "count_files",
    "read_counts",
    "read_rows",
    "write_rows",
    "write_table",
]

lazy_names(
    __name__,
    {
        ".checkpoints": "Resumable read_rows write_rows write_table",
        ".count_files": "count_files read_counts",
    },
)


def connect(spec: str = "local") -> Engine:
    """Turn what a person writes after `--cluster` into an engine.

    ``local``: every core here. ``threads:2``: two of them. ``dask`` or ``dask:4``: a Dask cluster started on
    this machine (2 or 4 worker processes). ``tcp://host:8786``: a Dask cluster that is already running.
    """
    kind, _, rest = spec.partition(":")
    if spec == "local":
        return Local()
    if kind == "threads":
        return Local(_number(rest, spec))
    if kind == "dask":
        return DaskEngine.start(_number(rest, spec) if rest else 2)
    if kind in {"tcp", "tls", "ws", "wss", "ucx"} and rest.startswith("//"):
        return DaskEngine.join(spec)
    raise InputError(f"cluster: expected local, threads:N, dask, dask:N or tcp://host:port; got {spec!r}.")


def _number(text: str, spec: str) -> int:
    if text.isdigit() and int(text) > 0:
        return int(text)
    raise InputError(f"cluster: expected a number of workers after the colon, like threads:2; got {spec!r}.")
