"""The crowd itself: make one up (demo), bring data in (ingest), say what is in it (info), only count (count)."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.assess import show_report, write_report
from incrowd.cli.console import (
    AsJson,
    Cluster,
    Columns,
    Computing,
    CrowdFolder,
    Format,
    Memory,
    Seed,
    WordChoices,
    in_groups,
    parse_memory,
    progress_bar,
    say,
    show,
    show_json,
    stopping_at_once,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from incrowd.crowd import Crowd, CrowdInfo, ImportReport
    from incrowd.crowd.ingest import Progress
    from incrowd.crowd.schema import Kind
    from incrowd.crowd.staging import Understood
    from incrowd.engine.count_files import CountReport
    from incrowd.errors import Undecided


def ingest(
    crowd: Annotated[
        Path, typer.Option("--crowd", help="The crowd's folder; made if it is not there.", show_default=False)
    ],
    sources: Annotated[
        list[Path] | None, typer.Argument(help="Files to import, all or none.", show_default=False)
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="posts, items or attributes; else the format decides.")
    ] = None,
    format: Format = "auto",
    columns: Columns = "",
    community: Annotated[
        str | None, typer.Option("--community", help="Community of every row, if the source names none.")
    ] = None,
    user: Annotated[
        str | None, typer.Option("--user", help="User of every row, for a person's own export.")
    ] = None,
    plain_names: Annotated[
        bool, typer.Option("--plain-names", help="Keep user names readable: synthetic or own data only.")
    ] = False,
    forget_key: Annotated[
        bool,
        typer.Option(
            "--forget-key",
            help="After the import throw the key away: nobody finds a person by name any more.",
        ),
    ] = False,
    keep_complete: Annotated[
        bool, typer.Option("--keep-complete", help="Keep the complete records of a truncated file.")
    ] = False,
    dates: Annotated[
        str | None, typer.Option("--dates", help="dmy or mdy: what 3/4/2020 means; else the column decides.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what was understood; nothing is imported.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Import as understood, also if many rows would be set aside.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait while another import is running.")] = False,
    memory: Memory = "1GiB",
    as_json: AsJson = False,
) -> None:
    """Import posts, ratings or attributes into a crowd, all or nothing.

    First it says what it understood: format, kind, whose data, columns, rows, people, dates. If something can be
    read in two ways it asks, or stops with the question and the option that answers it.

    Names become pseudonyms, rows that cannot be used are counted and listed, rows the crowd already has
    are not added again.
    """
    from incrowd.crowd import Crowd
    from incrowd.crowd.sources import require_files

    options: dict[str, Any] = {
        "kind": parse_kind(kind),
        "format": format,
        "columns": parse_columns(columns),
        "community": community,
        "user": user,
        "dates": dates,
        "keep_complete": keep_complete,
        "memory": parse_memory(memory),
        "wait": wait,
        "dry_run": dry_run,
        "yes": yes,
    }
    if not sources and forget_key:
        Crowd(crowd).forget_key()
        return
    # Look before making a folder: a mistyped name should leave nothing behind.
    require_files(sources or [])
    is_new = not crowd.exists()
    with stopping_at_once(partial(_take_away, crowd, is_new)) as too_late:
        target = Crowd.open_or_create(crowd, plain_names=plain_names)
        try:
            report = _import(target, sources or [], options, too_late, as_json=as_json)
        finally:
            if is_new:
                target.discard_if_empty()
    if forget_key and not dry_run:
        target.forget_key()
    if as_json:
        show_json(report.to_dict())
    elif not dry_run:
        show(_what_was_added(report, target))
    elif report.known:
        show(f"imported before, nothing to do: {', '.join(report.known)}")


def _take_away(crowd: Path, is_new: bool) -> None:
    """Leave no folder behind where there was none: an interrupted first import has committed nothing."""
    if is_new and not any((crowd / "parts").glob("*.parquet")):
        shutil.rmtree(crowd, ignore_errors=True)


def _import(
    target: Crowd,
    sources: list[Path],
    options: dict[str, Any],
    too_late: Callable[[], None],
    *,
    as_json: bool,
) -> ImportReport:
    """Import; whoever sits at a terminal is asked what only a person can decide, and the import goes on."""
    from incrowd.crowd.ingest import COMMITTING, stop_at_questions
    from incrowd.errors import Undecided

    shown: set[str] = set()

    def confirm(understood: Sequence[Understood]) -> None:
        for one in understood:
            if not as_json and one.file not in shown:
                shown.add(one.file)
                show(_what_was_understood(one))
        if not chosen["yes"] and not chosen["dry_run"]:
            stop_at_questions(understood)

    chosen = dict(options)
    while True:
        given = {name: value for name, value in chosen.items() if name != "yes"}
        try:
            with progress_bar("importing") as show_progress:
                progress = partial(_heeding, COMMITTING, too_late, show_progress)
                return target.ingest(sources, **given, confirm=confirm, progress=progress)
        except Undecided as question:
            if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            chosen = _answered(question, chosen)
            shown.clear()


def _heeding(
    last: str, call: Callable[[], None], show: Progress, done: float, total: float | None, what: str
) -> None:
    """Pass progress on; when the last step is told, call something first."""
    if what == last:
        call()
    show(done, total, what)


def _answered(question: Undecided, options: dict[str, Any]) -> dict[str, Any]:
    """Put a question to the person at the terminal; return the options with the answer in them."""
    from incrowd.errors import InputError

    say(question.question, err=True)
    if question.option == "yes":
        if not typer.confirm("Import?", err=True):
            raise InputError("nothing was imported.")
        return {**options, "yes": True}
    offered = f" ({' or '.join(question.choices)})" if question.choices else ""
    answer = typer.prompt(f"--{question.option}{offered}", err=True).strip()
    if question.option == "columns":
        return {**options, "columns": {**options["columns"], **parse_columns(answer)}}
    return {**options, question.option: answer}


def _what_was_understood(one: Understood) -> RenderableType:
    """Lay out format, kind, whose, columns, rows, people, dates, examples and doubts of a source."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    whose = {
        "own": f"one person's own: {one.owner}",
        "chat": f"a chat; only the words of {one.owner} are read",
        "many": f"{one.people:,} {'person' if one.people == 1 else 'people'}",
    }[one.whose]
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts = [
        ("read as", f"{one.title} ({one.format}), {one.kind}"),
        ("whose", whose),
        ("columns", ", ".join(f"{ours} ← {theirs}" for ours, theirs in one.columns.items())),
        ("rows", f"{one.rows:,}" + (f", {sum(one.set_aside.values()):,} set aside" if one.set_aside else "")),
        ("dates", _time_span(one)),
        ("left out", _left_out(one)),
        *(("for example", _example(row)) for row in one.examples),
        *(("unsure", note) for note in one.unsure),
    ]
    for name, fact in facts:
        if fact:
            table.add_row(Text(name, style="dim"), Text(fact))
    return Group(Text(one.file, style="bold"), table)


def _time_span(one: Understood) -> str:
    if one.first is None or one.last is None:
        return ""
    days = [datetime.fromtimestamp(time, UTC).date().isoformat() for time in (one.first, one.last)]
    return f"{days[0]} to {days[1]} (UTC; times without a zone are taken as UTC)"


def _left_out(one: Understood) -> str:
    parts = [
        f"{one.left:,} records of other people" if one.left else "",
        f"{one.skipped:,} records that are no {one.kind}" if one.skipped else "",
        one.not_read,
    ]
    return "; ".join(part for part in parts if part)


def _example(row: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in row.items() if value is not None}
    if isinstance(shown.get("time"), int):
        shown["time"] = datetime.fromtimestamp(shown["time"], UTC).strftime("%Y-%m-%d %H:%M")
    return " | ".join(str(value) for value in shown.values())


def parse_columns(text: str) -> dict[str, str]:
    """Turn "user=author,time=t" into a mapping."""
    from incrowd.errors import InputError

    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    mapping = {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
    if not all(ours and theirs for ours, theirs in mapping.items()) or len(mapping) < len(pairs):
        raise InputError(f"--columns: expected OURS=THEIRS,... with each of ours once, got '{text}'.")
    return mapping


def parse_kind(text: str | None) -> Kind | None:
    """Check the name of a table."""
    from incrowd.crowd.schema import KINDS
    from incrowd.errors import InputError

    for kind in KINDS:
        if text == kind:
            return kind
    if text is not None:
        raise InputError(f"--kind: expected one of {', '.join(KINDS)}, got '{text}'.")
    return None


def _what_was_added(report: ImportReport, crowd: Crowd) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    lines = [Text(f"{report.added:,} of {report.rows:,} rows added to {crowd.path}", style="bold")]
    if report.known:
        lines.append(Text(f"imported before, nothing to do: {', '.join(report.known)}"))
    incomplete = [source.name for source in report.sources if source.incomplete]
    if incomplete:
        lines.append(Text(f"cut off, complete records kept: {', '.join(incomplete)}", style="yellow"))
    if not report.reasons:
        return Group(*lines)
    return Group(*lines, reason_table(report.reasons, "set aside"))


def reason_table(reasons: Mapping[str, int], title: str) -> Table:
    """Return rows set aside, by reason, in words."""
    from rich.table import Table

    from incrowd.crowd.schema import MEANING

    table = Table(title, "rows", "meaning", box=None, header_style="dim")
    for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1]):
        table.add_row(reason, f"{count:,}", MEANING.get(reason, ""))
    return table


NAMES = {
    "keyed": "pseudonyms; the key's owner finds people by name",
    "plain": "readable",
    "forgotten": "pseudonyms; the key was thrown away",
}


def info(
    crowd: CrowdFolder,
    verify: Annotated[
        bool, typer.Option("--verify", help="Also read every part and compare it with its recorded hash.")
    ] = False,
    quarantine: Annotated[
        Path | None,
        typer.Option("--quarantine", help="Write the rows that were set aside to this CSV file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is in a crowd: people, communities, dates, items, and what was set aside and why."""
    from incrowd.crowd import Crowd
    from incrowd.crowd.store import write_csv

    opened = Crowd(crowd)
    if verify:
        opened.verify()
    facts = opened.info()
    if quarantine is not None:
        write_csv(opened.quarantine(), quarantine)
    if as_json:
        show_json(facts.to_dict())
    else:
        show(_what_is_in_it(facts))


def _what_is_in_it(facts: CrowdInfo) -> RenderableType:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for name, value in _rows(facts):
        table.add_row(Text(name, style="dim"), Text(value))
    parts: list[RenderableType] = [table]
    if facts.largest_communities:
        largest = Table("largest communities", "posts", box=None, header_style="dim")
        for community, posts in facts.largest_communities.items():
            largest.add_row(Text(community), f"{posts:,}")
        parts += [Text(""), largest]
    if facts.quarantine:
        parts += [Text(""), reason_table(facts.quarantine, "in quarantine")]
    return Group(*parts)


def _rows(facts: CrowdInfo) -> list[tuple[str, str]]:
    rows = [("people", f"{facts.users:,}")]
    if facts.posts:
        rows += [
            (
                "posts",
                f"{facts.posts:,} in {facts.communities:,} {'community' if facts.communities == 1 else 'communities'}",
            ),
            ("dates", _dates(facts)),
            ("identities", f"{facts.identities:,} (a person as one community sees them)"),
            ("in several communities", f"{facts.users_in_several:,} people"),
        ]
    if facts.item_rows:
        rows.append(("items", f"{facts.items:,} different, {facts.item_rows:,} choices"))
    if facts.attribute_rows:
        rows.append(("attributes", f"{facts.attributes:,} different, {facts.attribute_rows:,} values"))
    rows += [
        ("set aside", f"{facts.quarantined:,} rows in quarantine"),
        ("sources", f"{facts.imports:,}" + (f", {facts.incomplete} cut off" if facts.incomplete else "")),
        ("names", NAMES[facts.names]),
        ("size", f"{facts.bytes / 2**20:,.1f} MiB"),
        ("data hash", facts.data_hash),
    ]
    return rows


def _dates(facts: CrowdInfo) -> str:
    if facts.first_post is None or facts.last_post is None:
        return "none of the posts has one"
    first, last = (datetime.fromtimestamp(time, UTC).date() for time in (facts.first_post, facts.last_post))
    undated = f", {facts.undated_posts:,} posts without a date" if facts.undated_posts else ""
    return f"{first} to {last}{undated}"


@in_groups
def count(
    sources: Annotated[list[Path], typer.Argument(help="Files of posts that do not overlap.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the counts; all workers must see it.")],
    crowd: Annotated[
        Path | None, typer.Option("--crowd", help="Give people the ids they have in this crowd.")
    ] = None,
    format: Format = "auto",
    columns: Columns = "",
    *,
    words: WordChoices,
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
    with progress_bar("counting words") as progress, Computing(cluster=cluster).engine() as engine:
        report = count_files(
            sources, out, text=words.text, format=format, read=read, key=naming_key(out, crowd),
            engine=engine, memory=parse_memory(memory), progress=progress,
        )  # fmt: skip
    show_json(report.to_dict()) if as_json else show(_sentence(report))


def _sentence(report: CountReport) -> str:
    return (
        f"{report.posts:,} posts of {report.identities:,} identities in {report.files:,} files: {report.words:,} "
        f"words counted; {report.set_aside:,} rows set aside.\n{report.words_path}\n{report.identities_path}"
    )


YOUR_OWN = (
    "Your own data: incrowd assess YOUR-EXPORT.zip. With other people's data, too: incrowd ingest YOUR-EXPORT.zip "
    "DUMP --crowd my-crowd, then incrowd assess my-crowd --user YOUR-NAME"
)


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Folder for the files, the crowd and the report.")
    ] = Path("incrowd-demo"),
    users: Annotated[int, typer.Option("--users", help="How many people to make up.", min=50)] = 400,
    open_report: Annotated[
        bool | None,
        typer.Option(
            "--open/--no-open",
            help="Open the report in the browser.",
            show_default="if there is a screen",
        ),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make up people, assess one of them by their export alone and then in the crowd, write and open their report.

    Everybody in it is invented. The same seed makes the same crowd.
    """
    from incrowd import AdvisorOptions, assess, synthetic
    from incrowd.result import to_plain

    made = synthetic.demo_person(users=users, seed=seed)
    with progress_bar("making up people") as progress:
        files = made.write(out / "files")
        progress(1, 3, "importing")
        crowd = _imported(out / "crowd", files)
        export = out / "files" / "export.ndjson"
        crowd.posts(user=crowd.user(made.person)).collect().write_ndjson(export)
        alone = assess([export], options=AdvisorOptions(seed=seed), progress=progress)
        report = assess(crowd, made.person, progress=progress)
    page, first = out / "report.html", out / "report-without-a-crowd.html"
    write_report(alone, first)
    write_report(report, page, out / "label.svg")
    if as_json:
        without = {"report": str(first), "export": str(export), "verdict": to_plain(alone.verdict)}
        told = {"report": str(page), "crowd": str(crowd.path), "without_a_crowd": without}
        show_json(told | report.to_dict())
    else:
        show(f"With an export and nothing else (incrowd assess {export}):")
        show(alone.verdict.sentence)
        show(f"Report: {first}\n")
        _introduce(crowd, made.person)
        show_report(report)
        show(f"Report: {page}")
        say(YOUR_OWN)
    if _has_screen() if open_report is None else open_report:
        typer.launch(str(page.resolve()))


def _imported(folder: Path, files: list[Path]) -> Crowd:
    from incrowd.crowd import Crowd

    crowd = Crowd.open_or_create(folder, plain_names=True)
    for kind, file in zip(("posts", "items", "attributes"), files, strict=True):
        crowd.ingest([file], kind=kind)  # type: ignore[arg-type]
    return crowd


def _introduce(crowd: Crowd, person: str) -> None:
    info = crowd.info().to_dict()
    show(
        f"A crowd of {info['users']:,} made-up people: {info['posts']:,} posts in {info['communities']} communities, "
        f"{info['item_rows']:,} ratings. How well does {person} hide in it?"
    )


def _has_screen() -> bool:
    """Say whether a browser could show something: somebody sits at a terminal, and there is a display."""
    displayed = sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    return displayed and sys.stdout.isatty()
