"""incrowd plan: what a command would cost, before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import AsJson, show, show_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from incrowd.crowd.plan import JobCost, JobStep

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
            expected = ", ".join(sorted(children))
            raise InputError(f"plan: expected a command to plan ({expected}), got '{' '.join(words[:1])}'.")
        path.append(words[0])
        found, words = children[words[0]], words[1:]
    read = found.make_context(" ".join(path), list(words)).params
    # Typer before 0.29 makes paths of arguments only when the command itself runs.
    arguments = {one.name for one in found.params if one.param_type_name == "argument"}
    paths = {name: Path(read[name]) for name in arguments if isinstance(read.get(name), str)}
    return " ".join(path), {**read, **paths}


def _plan(name: str, options: Mapping[str, Any]) -> JobCost:
    from incrowd.crowd.plan import JobCost
    from incrowd.errors import InputError
    from incrowd.measures import REGISTERED

    if name == "ingest":
        return _import_plan(options)
    crowd = next((value for value in options.values() if isinstance(value, Path) and value.is_dir()), None)
    # Every measure with a command about communities compares the texts of their people.
    compares = name in REGISTERED and not {"community", "source"}.isdisjoint(options)
    if name not in KNOWN and not compares:
        raise InputError(
            f"plan: '{name}' cannot be planned; these can: ingest, measures of a community, "
            f"{', '.join(sorted(KNOWN))}."
        )
    if crowd is None:
        raise InputError(f"plan: expected the folder of a crowd after '{name}', got none that exists.")
    from incrowd.crowd import Crowd
    from incrowd.engine.rates import measure_rates

    opened = Crowd(crowd)
    steps = KNOWN.get(name, _community_steps)(opened, options)
    community = options.get("target") or options.get("community")
    rates = measure_rates(opened, next(iter(community), None) if isinstance(community, tuple) else community)
    return JobCost(command=name, steps=tuple(steps), rates=rates)


def _import_plan(options: Mapping[str, Any]) -> JobCost:
    from incrowd.cli.crowds import parse_columns, parse_kind
    from incrowd.crowd.plan import STORED_OVER_TEXT, JobCost, plan_import
    from incrowd.crowd.readers.base import ReadOptions
    from incrowd.engine.rates import TYPICAL

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
    from incrowd.measures.sampling import sampled_rows

    def sampled(people: int) -> int | None:
        rows = sampled_rows(people, exact=bool(options.get("exact")))
        return None if rows is None else len(rows)

    planner = Planner.of(crowd)
    own = planner.communities_of(crowd.user(str(options["user"])))[: options["most_communities"]]
    return [*planner.reading(own), *planner.one_against(own), *planner.sample_against(own, sampled)]


def _card_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    """Plan what reads some communities, or everybody: comparing those held out costs little beside it."""
    from incrowd.crowd.plan import Planner

    return Planner.of(crowd).reading(options.get("community") or None)


def _text_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    from incrowd.crowd.plan import Planner

    return Planner.of(crowd).reading()


def _item_steps(crowd: Any, options: Mapping[str, Any]) -> list[JobStep]:
    from incrowd.crowd.plan import Planner

    return [Planner.of(crowd).items()]


KNOWN = {
    "assess": _assess_steps,
    "draft": _community_steps,
    "study anonymity": _community_steps,
    "study linkability": _community_steps,
    "study card": _community_steps,
    "card make": _card_steps,
    "card audit": _card_steps,
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
