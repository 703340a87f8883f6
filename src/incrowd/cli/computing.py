"""Options of commands that compare whole crowds: where, with what, and whether to keep finished parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import Progress

if TYPE_CHECKING:
    from incrowd.distances import Compute
    from incrowd.engine import Engine

Cluster = Annotated[
    str,
    typer.Option("--cluster", help="Where to compute: local, threads:N, dask, dask:N or tcp://host:port."),
]
Kernel = Annotated[
    str, typer.Option("--kernel", help="What computes distances: auto, gpu, cpu or reference.")
]
Resume = Annotated[
    Path | None,
    typer.Option("--resume", help="Keep finished parts in this folder; a second run computes the others."),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say what computes, how the work is cut, and why.")
]


@dataclass(frozen=True, kw_only=True)
class Computing:
    """What a command was told about how to compute; no choice changes a result."""

    cluster: str = "local"
    kernel: str = "auto"
    resume: Path | None = None
    verbose: bool = False

    @contextmanager
    def engine(self) -> Iterator[Engine]:
        """Start or join the workers; stop what was started."""
        from incrowd.engine import connect
        from incrowd.engine.checkpoints import Resumable

        with connect(self.cluster) as engine:
            yield Resumable(engine, self.resume) if self.resume else engine

    @contextmanager
    def compute(self, memory: int, progress: Progress | None = None) -> Iterator[Compute]:
        """Yield how distances are computed."""
        from incrowd.distances import Compute

        with self.engine() as engine:
            yield Compute(
                kernel=self.kernel,
                engine=engine,
                memory=memory,
                progress=progress,
                explain=_say_once() if self.verbose else None,
            )


def _say_once() -> Callable[[str], None]:
    """Print each line the first time it is said: a study asks the same kind of question many times."""
    said: set[str] = set()

    def say(line: str) -> None:
        if line not in said:
            said.add(line)
            typer.echo(line, err=True)

    return say
