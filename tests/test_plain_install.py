"""A plain install does what people need, without the extras, and without PyArrow that Polars and DuckDB like to use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXTRAS = [
    "cupy dask distributed fastapi gensim httpx keyring multipart opendp psycopg rapidfuzz safetensors sqlglot",
    "tokenizers tomotopy uvicorn wordllama",
]
WITHOUT = f"""
import sys
from pathlib import Path
for name in {" ".join(EXTRAS).split()} + ["pyarrow"]:
    sys.modules[name] = None
here = Path(sys.argv[1])
"""
COMMANDS = """
import polars as pl
from incrowd.cli import main
from incrowd.crowd import Crowd

def run(*words):
    sys.argv = ["incrowd", *map(str, words)]
    try:
        main()
    except SystemExit as end:
        assert end.code in (0, None), words

crowd, posts = here / "demo" / "crowd", here / "posts.parquet"
run("demo", "--out", here / "demo", "--users", 60, "--json")
of_alex = Crowd(crowd).posts().head(50).with_columns(user=pl.lit("alex"))
of_alex.sink_parquet(posts)
run("ingest", posts, "--crowd", crowd, "--yes", "--json")
community = of_alex.collect()["community"][0]
run("anonymity", crowd, "--community", community, "--json")
run("exposure", "rank", crowd, "--user", "alex", "--json")
run("assess", crowd, "--user", "alex", "--json")
run("count", posts, "--out", here / "counts", "--json")
run("forget", crowd, "--user", "alex", "--json")
"""
FRAMES = """
import duckdb
import pandas
from incrowd.crowd import Crowd

frame = pandas.DataFrame({"user": ["ann", None], "item": ["a", "b"], "rating": [1.5, None]})
made = [Crowd.from_frame(frame, kind="items"), Crowd.from_frame(duckdb.sql("FROM frame LIMIT 1"), kind="items")]
assert [crowd.items().collect().rows() for crowd in made] == [[("ann", "a", 1.5, None)]] * 2
"""


def run(code: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + code, str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


def test_the_way_of_a_person_needs_no_extra_and_no_pyarrow(tmp_path: Path) -> None:
    said = run(COMMANDS, tmp_path)
    assert "leaked" not in said, "DuckDB complains when Polars has seen its objects"


def test_frames_of_pandas_and_duckdb_need_no_pyarrow(tmp_path: Path) -> None:
    run(FRAMES, tmp_path)
