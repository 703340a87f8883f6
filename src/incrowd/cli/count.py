"""incrowd count: the words of every identity in many dump files, on every core or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.computing import Cluster, Computing
from incrowd.cli.console import AsJson, Memory, parse_memory, progress_bar, show, show_json
from incrowd.cli.ingest import parse_columns
from incrowd.cli.text_options import KeepStopwords, TokenRule, text_options

if TYPE_CHECKING:
    from incrowd.engine.count_files import CountReport


def count(
    sources: Annotated[list[Path], typer.Argument(help="Files of posts that do not overlap.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the counts; all workers must see it.")],
    crowd: Annotated[
        Path | None, typer.Option("--crowd", help="Give people the ids they have in this crowd.")
    ] = None,
    format: Annotated[
        str, typer.Option("--format", help="Name of the format; auto: recognised by content.")
    ] = "auto",
    columns: Annotated[
        str, typer.Option("--columns", help="Our column=theirs, e.g. user=author,time=created.")
    ] = "",
    tokens: TokenRule = "full",
    keep_stopwords: KeepStopwords = False,
    memory: Memory = "1GiB",
    cluster: Cluster = "local",
    as_json: AsJson = False,
) -> None:
    """Count words without importing: each worker reads files, the counts come together as Parquet.

    Names become ids under a key that stays in the folder, or in the crowd. Run it again to add files: those
    already counted are not read a second time.
    """
    from incrowd.crowd.readers.base import ReadOptions
    from incrowd.engine.count_files import count_files, naming_key

    read = ReadOptions(columns=parse_columns(columns))
    text = text_options(tokens, keep_stopwords)
    with progress_bar("counting words") as progress, Computing(cluster=cluster).engine() as engine:
        report = count_files(
            sources, out, text=text, format=format, read=read, key=naming_key(out, crowd),
            engine=engine, memory=parse_memory(memory), progress=progress,
        )  # fmt: skip
    show_json(report.to_dict()) if as_json else show(_sentence(report))


def _sentence(report: CountReport) -> str:
    return (
        f"{report.posts:,} posts of {report.identities:,} identities in {report.files:,} files: {report.words:,} "
        f"words counted; {report.set_aside:,} rows set aside.\n{report.words_path}\n{report.identities_path}"
    )
