"""incrowd plan: what a command would cost, before it runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import AsJson, show, show_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from incrowd.crowd import Crowd
    from incrowd.crowd.plan import JobCost, JobStep, MachineRates


MOST_STEPS = 8


def plan(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="The command to plan, as you would run it, without 'incrowd'.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what a command would cost: rows, people, pairs, memory and time; and what costs most.

    Counts of a crowd are exact, the rows of a long file an estimate. Speed is measured now, on a sample of the data;
    the time is right within a factor of
    three or so. Put --json before the command: incrowd plan --json linkability DIR --source S --target T
    """
    words = [*(command or []), *context.args]
    name, options = _understood(words)
    made = _plan(name, options)
    if as_json:
        show_json(made.to_dict())
    else:
        show(_summary(made))


def _understood(words: list[str]) -> tuple[str, dict[str, Any]]:
    """Let the command itself read its words, so that a mistake shows now and not in an hour."""
    from typer.main import get_command

    from incrowd.cli import app
    from incrowd.errors import InputError

    found: Any = get_command(app)
    path: list[str] = []
    while (children := getattr(found, "commands", None)) is not None:
        if not words or words[0] not in children:
            expected = ", ".join(_plannable(children, path))
            if not expected:
                raise InputError(_not_planned(" ".join(path)))
            raise InputError(f"plan: expected a command to plan ({expected}), got '{' '.join(words[:1])}'.")
        path.append(words[0])
        found, words = children[words[0]], words[1:]
    read = found.make_context(" ".join(path), list(words)).params
    # Typer before 0.29 makes paths of arguments only when the command itself runs.
    arguments = {one.name for one in found.params if one.param_type_name == "argument"}
    paths = {name: _as_paths(read[name]) for name in arguments if read.get(name)}
    return " ".join(path), {**read, **paths}


def _as_paths(given: Any) -> Any:
    if isinstance(given, list | tuple):
        return [_as_paths(one) for one in given]
    return Path(given) if isinstance(given, str) else given


def _plannable(commands: Mapping[str, Any], path: Sequence[str]) -> list[str]:
    """Return those of some commands that can be planned, or that have one below them that can."""

    def can(name: str, command: Any) -> bool:
        below = getattr(command, "commands", None)
        if below is not None:
            return any(can(f"{name} {child}", one) for child, one in below.items())
        return name == "ingest" or name in KNOWN or _compares(name, {one.name for one in command.params})

    return sorted(name for name, command in commands.items() if can(" ".join([*path, name]), command))


def _compares(name: str, options: Iterable[str]) -> bool:
    """Say whether this is a measure about communities: each of these compares the texts of their people."""
    from incrowd.measures import REGISTERED

    return name in REGISTERED and not {"community", "source"}.isdisjoint(options)


def _not_planned(name: str) -> str:
    return (
        f"plan: '{name}' cannot be planned; these can: ingest, measures of a community, "
        f"{', '.join(sorted(KNOWN))}."
    )


def _given_paths(options: Mapping[str, Any]) -> list[Path]:
    """Return the paths among what a command was given; some take several."""
    listed = [value if isinstance(value, list | tuple) else [value] for value in options.values()]
    return [value for values in listed for value in values if isinstance(value, Path)]


def _plan(name: str, options: Mapping[str, Any]) -> JobCost:
    from incrowd.crowd.plan import JobCost
    from incrowd.errors import InputError

    if name == "ingest":
        return _import_plan(options)
    if name not in KNOWN and not _compares(name, options):
        raise InputError(_not_planned(name))
    paths = _given_paths(options)
    crowd = next((path for path in paths if path.is_dir()), None)
    if crowd is None and name in TAKE_EXPORTS and any(path.is_file() for path in paths):
        raise InputError(
            f"plan: '{name}' of an export needs no plan: it is compared with a few thousand people made up from a "
            "card, however long the export is. Just run it."
        )
    if crowd is None:
        raise InputError(f"plan: expected the folder of a crowd after '{name}', got none that exists.")
    from incrowd.crowd import Crowd

    opened = Crowd(crowd)
    steps = KNOWN.get(name, _community_steps)(opened, options)
    community = options.get("target") or options.get("community")
    rates = _measure_rates(opened, next(iter(community), None) if isinstance(community, tuple) else community)
    return JobCost(command=name, steps=tuple(steps), rates=rates)


def _import_plan(options: Mapping[str, Any]) -> JobCost:
    from incrowd.cli.crowds import parse_columns, parse_kind
    from incrowd.crowd.plan import STORED_OVER_TEXT, TYPICAL, JobCost, plan_import
    from incrowd.crowd.readers.base import ReadOptions

    reading = ReadOptions(
        kind=parse_kind(options["kind"]),
        columns=parse_columns(options["columns"]),
        community=options["community"],
        user=options["user"],
    )
    steps = plan_import(options["sources"] or [], options["format"], reading)
    disk = round(sum(step.text_bytes for step in steps) * STORED_OVER_TEXT)
    return JobCost(command="ingest", steps=tuple(steps), rates=TYPICAL, disk_bytes=disk)


def _community_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    """Plan what compares texts: two communities, one, a person's own, or all."""
    from incrowd.crowd.plan import Planner

    planner = Planner.of(crowd, options.get("min_posts") or 1)
    source, target, community = (options.get(name) for name in ("source", "target", "community"))
    user = options.get("user")
    if source and target:
        # Linking also asks how large a crowd each target has at home.
        compared = planner.one_against([target]) if user else [planner.between(source, target)]
        return [*planner.reading([source, target]), *compared, *([] if user else planner.within([target]))]
    if community:
        return [
            *planner.reading([community]),
            *(planner.one_against([community]) if user else planner.within([community])),
        ]
    if user:
        own = planner.communities_of(crowd.user(user))
        return [*planner.reading(own), *planner.one_against(own)]
    return [*planner.reading(), *planner.within()]


def _assess_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    """Plan one person's first answer: their communities are read, they and a sample are compared with everybody."""
    from incrowd.crowd.plan import Planner
    from incrowd.errors import InputError
    from incrowd.measures.sampling import sampled_rows

    def sampled(people: int) -> int | None:
        rows = sampled_rows(people, exact=bool(options.get("exact")))
        return None if rows is None else len(rows)

    if not options.get("user"):
        raise InputError("expected the name of the person in this crowd (--user), got none")
    planner = Planner.of(crowd)
    own = planner.communities_of(crowd.user(options["user"]))[: options["most_communities"]]
    return [*planner.reading(own), *planner.one_against(own), *planner.sample_against(own, sampled)]


LOADING, ONE_PERSON, ONE_RIVAL, MOST_RIVALS = 10.0, 0.1, 0.0013, 2_000
"""Seconds for everything that is loaded once, for each person, and for each of the people they are held against.

From reports on demo crowds of 80 and of 1,000 people; of larger ones samples are compared.
"""


def _report_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    """Plan a report on everybody: all is read and compared, then people are assessed one by one."""
    from incrowd.crowd.plan import JobStep, Planner

    planner, users = Planner.of(crowd), crowd.people()
    people = min(int(options["people"]), users)
    steps = [*planner.reading(), *planner.within(), planner.items()]
    seconds = LOADING + people * (ONE_PERSON + ONE_RIVAL * min(users, MOST_RIVALS))
    return [*steps, JobStep(what=f"assess {people:,} people one by one", seconds=seconds)]


def _card_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    """Plan what reads some communities, or everybody: comparing those held out costs little beside it."""
    from incrowd.crowd.plan import Planner

    return Planner.of(crowd).reading(options.get("community") or None)


ATTACKED_BYTE = 1e-8
"""Seconds for each byte of text and each card that is made and attacked; from made-up crowds of 300 to 3,000 people."""


def _audit_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    """Plan an audit: what is read once is made into many cards. Too few people are refused now."""
    from incrowd.cards.make import SMALLEST
    from incrowd.crowd.plan import JobStep
    from incrowd.errors import InputError

    reading, cards = _card_steps(crowd, options), int(options["cards"])
    needed = 2 * SMALLEST + int(options["planted"])
    counts = [one.identities for one in reading] if options.get("community") else [crowd.people()]
    if min(counts) < needed:
        raise InputError(
            f"plan: this audit cannot run: it splits people and needs {needed}, and here are {min(counts)}."
        )
    seconds = sum(one.text_bytes for one in reading) * cards * ATTACKED_BYTE
    return [*reading, JobStep(what=f"make and attack {cards} cards", seconds=seconds)]


def _text_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    from incrowd.crowd.plan import Planner

    return Planner.of(crowd).reading()


def _item_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    from incrowd.crowd.plan import Planner

    return [Planner.of(crowd).items()]


TAKE_EXPORTS = ("assess", "draft")
KNOWN = {
    "assess": _assess_steps,
    "crowd-report": _report_steps,
    "draft": _community_steps,
    "study anonymity": _community_steps,
    "study linkability": _community_steps,
    "study card": _community_steps,
    "card make": _card_steps,
    "card audit": _audit_steps,
    "exposure topics": _text_steps,
    "exposure train": _text_steps,
    "exposure learn": _text_steps,
    "exposure annotate": _text_steps,
    "exposure rank": _text_steps,
    "exposure evaluate": _text_steps,
    "microdata publish": _item_steps,
    "microdata evaluate": _item_steps,
    "microdata assess": _item_steps,
    "study microdata": _item_steps,
}


def _summary(made: JobCost) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    facts = made.to_dict()
    table = Table.grid(padding=(0, 2))
    for name, value in _facts(facts):
        table.add_row(Text(name, style="dim"), Text(value))
    steps = Table("what takes longest", "rows", "people", "pairs", "time", box=None, header_style="dim")
    ordered = sorted(facts["steps"], key=lambda step: -step["seconds"])
    for step in ordered[:MOST_STEPS]:
        pairs = step["pairs"] + step["item_pairs"]
        counts = [f"{n:,}" if n else "" for n in (step["rows"], step["identities"], pairs)]
        steps.add_row(Text(step["what"]), *counts, _duration(step["seconds"]))
    if len(ordered) > MOST_STEPS:
        rest = ordered[MOST_STEPS:]
        steps.add_row(f"… {len(rest):,} more", "", "", "", _duration(sum(step["seconds"] for step in rest)))
    return Group(table, Text(""), steps)


def _facts(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    seconds = facts["seconds"]
    rows = [
        ("command", facts["command"]),
        ("rows", f"{'about ' if facts['rows_estimated'] else ''}{facts['rows']:,}"),
    ]
    if facts["identities"]:
        rows += [("people", f"{facts['identities']:,} profiles"), ("pairs", f"{facts['pairs']:,}")]
    if facts["disk_bytes"]:
        rows.append(("disk", f"about {facts['disk_bytes'] / 2**20:,.0f} MiB, twice that while it runs"))
    elif facts["memory"]:
        rows.append(("memory", f"about {facts['memory'] / 2**20:,.0f} MiB for profiles"))
    rows.append(("time", f"{_duration(seconds['low'])} to {_duration(seconds['high'])}"))
    if facts["worst"]:
        rows.append(("costs most", facts["worst"]["what"]))
    return rows


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "under a second"
    for limit, unit, size in ((120, "s", 1), (7200, "min", 60), (172_800, "h", 3600)):
        if seconds < limit:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds / 86_400:,.0f} days"


SAMPLED_POSTS = 20_000
SAMPLED_PROFILES = 300


def _measure_rates(crowd: Crowd, community: str | None = None) -> MachineRates:
    """Clean, count and compare some posts (of the largest community, unless told) and take the time."""
    from incrowd.crowd.plan import TYPICAL, MachineRates
    from incrowd.distances import ball_sizes
    from incrowd.profiles import unigram
    from incrowd.text import count_tokens

    posts = crowd.posts(community or _largest(crowd)).head(SAMPLED_POSTS).collect()
    size = int(posts["text"].str.len_bytes().sum())
    if size == 0:
        return TYPICAL
    count_tokens(posts.head(1))  # loads and compiles what is needed
    counting, counted = _timed(lambda: count_tokens(posts))
    rows = unigram(counted).matrix[:SAMPLED_PROFILES]
    if rows.shape[0] < 2:
        return MachineRates(text_bytes=size / counting, pairs=TYPICAL.pairs, cells=counted.matrix.nnz / size)
    ball_sizes(rows[:2], radii=[0.5])
    comparing, _ = _timed(lambda: ball_sizes(rows, radii=[0.5]))
    pairs = rows.shape[0] * (rows.shape[0] - 1) / 2
    return MachineRates(text_bytes=size / counting, pairs=pairs / comparing, cells=counted.matrix.nnz / size)


def _largest(crowd: Crowd) -> str | None:
    names = crowd.communities()["community"]
    return names[0] if len(names) else None


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    outcome = work()
    return max(time.perf_counter() - start, 1e-6), outcome
