"""What all commands share: options by themselves and in groups, how to print, progress, exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from incrowd.crowd import Crowd
    from incrowd.crowd.ingest import Progress
    from incrowd.distances import Compute
    from incrowd.engine import Engine
    from incrowd.measures.protocol import AdvisorOptions
    from incrowd.profiles.attributes import AttributeTable
    from incrowd.result import Assessment
    from incrowd.text.options import TextOptions


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for other programs instead of text.")]
FailAbove = Annotated[
    float | None,
    typer.Option(
        "--fail-above", min=0, max=1, help="Exit with 1 if the risk is above this, 0 to 1, or unknown."
    ),
]
Memory = Annotated[str, typer.Option("--memory", help="Memory budget, e.g. 512MiB or 4GiB.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random step; same seed, same bytes.")]


def writable(path: Path | None) -> Path | None:
    """Refuse a file that cannot be written before the work starts, not after it."""
    from incrowd.crowd.disk import check_target

    return None if path is None else check_target(path)


# Everything that goes to the terminal goes through `show`, `show_json`, `say` or `complain`: names, communities, posts
# and messages are other people's text, and escape sequences in them could write the clipboard or hide what is shown.
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
"""Control characters but for tab and new line, marks that turn the direction of text round, and line separators."""


def cleaned(text: str) -> str:
    """Return text without what a terminal would obey instead of show."""
    return HARMFUL.sub("", text)


def as_json_text(value: Any, indent: int | None = None) -> str:
    """Write JSON that a terminal can show: what it would obey is escaped, which changes nothing for programs."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return HARMFUL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class _Cleaned:
    """A renderable whose text is cleaned after it was laid out; colours and layout are ours and stay."""

    def __init__(self, renderable: RenderableType) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.segment import Segment

        for part in console.render(self._renderable, options):
            yield part if part.control else Segment(cleaned(part.text), part.style)


def show(renderable: RenderableType) -> None:
    """Print for a person."""
    from rich.console import Console

    Console().print(_Cleaned(renderable))


def show_json(value: Any) -> None:
    """Print for a program: one JSON document on standard output."""
    typer.echo(as_json_text(value, indent=2))


def say(text: str, *, err: bool = False) -> None:
    """Print a plain line."""
    typer.echo(cleaned(text), err=err)


def open_in_browser(address: str) -> None:
    """Open an address; where there is no browser (a server, a container), do nothing."""
    import webbrowser

    webbrowser.open(address)


def complain(message: str) -> None:
    """Print one error line on standard error."""
    say(f"incrowd: {message}", err=True)


def exit_for_risk(risk: float, fail_above: float | None) -> None:
    """Exit with 1 if the risk is above the line the user drew, or cannot be told: unknown is not safe."""
    if fail_above is not None and not risk <= fail_above:
        raise typer.Exit(1)


def exit_for_person(assessments: Sequence[Assessment], fail_above: float | None) -> None:
    """Do the same for one person: their measures say what the risk is."""
    from incrowd.measures.protocol import largest_risk

    exit_for_risk(largest_risk(assessments), fail_above)


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Show a progress bar on a terminal; stay silent in a pipe or a log."""
    if not sys.stderr.isatty():
        yield lambda done, total, what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(cleaned(what), total=None)

        def advance(done: float, total: float | None, what: str) -> None:
            bars.update(task, completed=done, total=total, description=cleaned(what))

        yield advance


@contextmanager
def stopping_at_once(tidy: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Let Ctrl-C end the process there and then, with one line: for work whose half-written files harm nobody.

    An exception instead could be raised inside a library's own code, which swallows it or reports something else.
    Yields what to call before the work is made to last: from then on Ctrl-C comes too late, and changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    lasting = False

    def stop(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with suppress(Exception):
            tidy()
        show_cursor = b"\x1b[?25h" if sys.stderr.isatty() else b""
        os.write(2, show_cursor + b"incrowd: interrupted; nothing half-written was kept\n")
        os._exit(130)

    def too_late() -> None:
        nonlocal lasting
        lasting = True
        signal.signal(signal.SIGINT, lambda *_: None)

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield too_late
    finally:
        if not lasting:
            signal.signal(signal.SIGINT, before)


def answer_frugally() -> None:
    """Use no more memory and processor than an answer about one person needs; to be called before NumPy is loaded.

    glibc keeps freed blocks of up to 32 MiB for later, hundreds of megabytes of them after a large crowd: freed arrays
    are to go back to the system at once. Other systems' allocators have no such setting and need none. And the products
    of one person's small matrices are done before a second core has woken up, which then turns idly for longer; with
    one thread they also come out the same whatever the number of cores, to the last digit.
    """
    import ctypes  # not needed by most commands

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

    with suppress(OSError, AttributeError):
        set_option = ctypes.CDLL("libc.so.6").mallopt
        for option, value in _MALLOC_OPTIONS:
            set_option(option, value)


_MALLOC_OPTIONS = ((-3, 2**24), (-1, 2**24), (-8, 2))
"""M_MMAP_THRESHOLD and M_TRIM_THRESHOLD in bytes, M_ARENA_MAX."""


def parse_memory(text: str) -> int:
    """Turn "512MiB", "4GiB" or a plain number of bytes into bytes."""
    from incrowd.errors import InputError

    units = {"": 1, "b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
    stripped = text.strip().lower()
    number = stripped.rstrip("bitgmk ")
    unit = stripped[len(number) :].strip().removesuffix("b").removesuffix("i")
    try:
        size = int(float(number) * units[unit])
    except (ValueError, OverflowError, KeyError):
        size = 0
    if size < 1:
        raise InputError(f"--memory takes a size such as 512MiB or 4GiB, got '{text}'")
    return size


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
