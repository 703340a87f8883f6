"""Options that several commands share: crowd, files, how to compute, how to read words, what to make of attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import cleaned

if TYPE_CHECKING:
    from incrowd.crowd.ingest import Progress
    from incrowd.distances import Compute
    from incrowd.engine import Engine
    from incrowd.profiles.attributes import TableChoices
    from incrowd.text.options import TextOptions

CrowdFolder = Annotated[Path, typer.Argument(metavar="DIR", help="The crowd's folder.", show_default=False)]
Community = Annotated[str, typer.Option("--community", help="The community to look at.", show_default=False)]
Format = Annotated[str, typer.Option("--format", help="Name of the format; auto: recognised by content.")]
Columns = Annotated[str, typer.Option("--columns", help="Our column=theirs, e.g. user=author,time=created.")]

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
            typer.echo(cleaned(line), err=True)

    return say


TokenRule = Annotated[
    str, typer.Option("--tokens", help="full: the six cleaning steps; simple: runs of a-z, 0-9 and '.")
]
KeepStopwords = Annotated[bool, typer.Option("--keep-stopwords", help="Keep words such as “the”.")]


def text_options(tokens: str, keep_stopwords: bool) -> TextOptions:
    """Turn the two switches into the text pipeline's options."""
    from incrowd.text.options import TextOptions

    return TextOptions(tokens=tokens, keep_stopwords=keep_stopwords)  # type: ignore[arg-type]


Bands = Annotated[
    list[str] | None,
    typer.Option(
        "--bands", help="Numbers in bands: age=18,25,35 or age=width:10 or age=groups:4. Repeat it."
    ),
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", help="Leave an attribute out. Repeat it.", metavar="ATTRIBUTE")
]
Unknown = Annotated[
    list[str] | None,
    typer.Option("--unknown", help='A value that means "not given". Repeat it.', metavar="VALUE"),
]
TopicWords = Annotated[
    str | None,
    typer.Option(
        "--topics",
        help="Read text by topics, not words: a topic file (TOML), or 'starter' for the starter set.",
    ),
]


def table_choices(
    bands: list[str] | None, ignore: list[str] | None, unknown: list[str] | None
) -> TableChoices:
    """Put what was said about attributes together."""
    from incrowd.profiles.attributes import TableChoices, parse_bands

    return TableChoices(
        bands=parse_bands(bands or ()), ignore=tuple(ignore or ()), unknown=tuple(unknown or ())
    )


def topic_words(chosen: str | None) -> dict[str, tuple[str, ...]] | None:
    """Return the words of each topic."""
    from incrowd.measures.exposure.topics import load_topics, starter_topics

    if chosen is None:
        return None
    topics = starter_topics() if chosen == "starter" else load_topics(Path(chosen))
    return {topic.name: topic.words for topic in topics.topics}
