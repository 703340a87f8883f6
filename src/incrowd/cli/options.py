"""Options that several commands share: crowd, files, how to compute, how to read words, what to make of attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from incrowd.cli.console import Memory, cleaned, parse_memory

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.crowd.ingest import Progress
    from incrowd.distances import Compute
    from incrowd.engine import Engine
    from incrowd.measures.protocol import AdvisorOptions
    from incrowd.profiles.attributes import AttributeTable
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


def in_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command take options by the group: each field of a parameter that is a dataclass is an option.

    ``def count(crowd: CrowdFolder, *, words: WordChoices)`` has the options --tokens and --keep-stopwords.
    """
    groups: dict[str, Any] = {}
    options: list[Parameter] = []
    for one in signature(command, eval_str=True).parameters.values():
        if not is_dataclass(one.annotation):
            options.append(one.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        groups[one.name] = one.annotation
        hints = get_type_hints(one.annotation, include_extras=True)
        options += [
            Parameter(field.name, Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
            for field in fields(one.annotation)
        ]

    @wraps(command)
    def grouped(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    grouped.__signature__ = Signature(options)  # type: ignore[attr-defined]  # what Typer reads
    grouped.__annotations__ = {one.name: one.annotation for one in options}
    return grouped


@dataclass(frozen=True, kw_only=True)
class Computing:
    """How to compute; no choice changes a result."""

    cluster: Cluster = "local"
    kernel: Kernel = "auto"
    resume: Resume = None
    verbose: Verbose = False

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


@dataclass(frozen=True, kw_only=True)
class WordChoices:
    """How text becomes words."""

    tokens: Annotated[
        str,
        typer.Option("--tokens", help="full: the six cleaning steps; simple: runs of a-z, 0-9 and '.'"),
    ] = "full"
    keep_stopwords: Annotated[bool, typer.Option("--keep-stopwords", help="Keep words such as “the”.")] = (
        False
    )

    @property
    def text(self) -> TextOptions:
        """The same for the text pipeline."""
        from incrowd.text.options import TextOptions

        return TextOptions(tokens=self.tokens, keep_stopwords=self.keep_stopwords)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class AdvisorChoices(WordChoices):
    """Who counts as like somebody, for every measure on one person."""

    radius: Annotated[float, typer.Option("--radius", help="Who counts as writing like you.")] = 0.8
    min_posts: Annotated[
        int, typer.Option("--min-posts", help="Profiles with fewer posts are not linked.")
    ] = 10
    memory: Memory = "1GiB"

    def options(self, **more: Any) -> AdvisorOptions:
        """The same for the advisor, with what only one command is told."""
        from incrowd.measures.protocol import AdvisorOptions

        return AdvisorOptions(
            radius=self.radius,
            min_posts=self.min_posts,
            text=self.text,
            memory=parse_memory(self.memory),
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class AttributeChoices:
    """What to make of a crowd's attributes."""

    bands: Annotated[
        list[str] | None,
        typer.Option(
            "--bands", help="Numbers in bands: age=18,25,35 or age=width:10 or age=groups:4. Repeat it."
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", help="Leave an attribute out. Repeat it.", metavar="ATTRIBUTE"),
    ] = None
    unknown: Annotated[
        list[str] | None,
        typer.Option("--unknown", help='A value that means "not given". Repeat it.', metavar="VALUE"),
    ] = None

    def table(self, crowd: Crowd) -> AttributeTable:
        """Read the attributes in this way."""
        from incrowd.profiles.attributes import TableChoices, attribute_table, parse_bands

        choices = TableChoices(
            bands=parse_bands(self.bands or ()),
            ignore=tuple(self.ignore or ()),
            unknown=tuple(self.unknown or ()),
        )
        return choices.apply(attribute_table(crowd))


TopicWords = Annotated[
    str | None,
    typer.Option(
        "--topics",
        help="Read text by topics, not words: a topic file (TOML), or 'starter' for the starter set.",
    ),
]


def topic_words(chosen: str | None) -> dict[str, tuple[str, ...]] | None:
    """Return the words of each topic."""
    from incrowd.measures.exposure.topics import load_topics, starter_topics

    if chosen is None:
        return None
    topics = starter_topics() if chosen == "starter" else load_topics(Path(chosen))
    return {topic.name: topic.words for topic in topics.topics}
