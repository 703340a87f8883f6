"""A newcomer learns the names from `incrowd` alone; the list is short, complete and quick to load."""

from __future__ import annotations

import subprocess
import sys

import pytest

import incrowd


def test_every_public_name_resolves() -> None:
    for name in incrowd.__all__:
        assert getattr(incrowd, name) is not None


def test_the_list_is_sorted_and_short() -> None:
    assert list(incrowd.__all__) == sorted(incrowd.__all__)
    assert len(incrowd.__all__) <= 20


def test_an_unknown_name_lists_those_that_exist() -> None:
    with pytest.raises(AttributeError, match="it has: Advice, Assessment"):
        _ = incrowd.crowds  # type: ignore[attr-defined]


def test_importing_loads_nothing_heavy() -> None:
    heavy = {"numba", "polars", "duckdb", "pyarrow", "scipy", "pandas", "rich", "typer", "dask"}
    code = "import incrowd, sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not heavy & set(loaded)


def test_help_loads_nothing_heavy() -> None:
    heavy = {"numba", "polars", "duckdb", "pyarrow", "scipy", "numpy", "pandas", "dask"}
    code = (
        "import sys; sys.argv = ['incrowd', '--help']\n"
        "from incrowd.cli import app\n"
        "try: app()\n"
        "except SystemExit: print('LOADED', *sorted({n.split('.')[0] for n in sys.modules}), file=sys.stderr)"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ingest" in process.stdout
    assert not heavy & set(process.stderr.split())
