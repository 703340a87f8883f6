"""incrowd disclosures: what have you told about yourself, and how many people does it fit?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import AsJson, FailAbove, exit_for_person, progress_bar, show, show_json, writable

if TYPE_CHECKING:
    from incrowd.measures.disclosures.assess import Disclosed, Post
    from incrowd.measures.disclosures.facts import Told

FACTS_SHOWN = 30


def disclosures(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="EXPORT...|DIR", help="Files of your own export, or a crowd's folder.", show_default=False
        ),
    ],
    user: Annotated[
        str | None,
        typer.Option("--user", help="Your account, by name; left out: the export's only one."),
    ] = None,
    quote: Annotated[bool, typer.Option("--quote", help="Show your own words beside each find.")] = False,
    language: Annotated[str, typer.Option("--language", help="The language of the posts.")] = "en",
    format: Annotated[str, typer.Option("--format", help="The export's format; auto: recognised.")] = "auto",
    out: Annotated[
        Path | None,
        typer.Option("--html", callback=writable, help="Where to write the page (one offline HTML file)."),
    ] = None,
    reader: Annotated[
        str | None,
        typer.Option(
            "--reader",
            help="A language model on this machine, e.g. http://127.0.0.1:11434/v1: what would it add?",
            show_default=False,
        ),
    ] = None,
    elsewhere: Annotated[
        str | None,
        typer.Option(
            "--send-my-posts-to",
            help="The same, on another machine: your posts leave this one.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[str, typer.Option("--model", help="The model's name there.")] = "default",
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """What have you told about yourself in your posts, and how many people does it fit together?

    Works on one account at a time; in a crowd, only for whoever holds its key. The risk for --fail-above is how often
    naming one of the people whom it fits would be right; a post that names you directly fits one.
    """
    from incrowd.crowd import Crowd
    from incrowd.errors import InputError
    from incrowd.measures.disclosures.assess import disclosed
    from incrowd.measures.disclosures.posts import posts_in_crowd, posts_of_export
    from incrowd.measures.disclosures.spec import DisclosureOptions

    options = DisclosureOptions(language=language, quote=quote)
    with progress_bar("reading posts"):
        if len(sources) == 1 and sources[0].is_dir():
            if user is None:
                raise InputError(
                    "disclosures: name the person in this crowd with --user; one is answered at a time."
                )
            posts = posts_in_crowd(Crowd(sources[0]), user)
        else:
            posts = posts_of_export(sources, user, format=format)
        found = disclosed(posts, options)
    added = None
    if reader is not None or elsewhere is not None:
        added = _with_model(found, posts, reader, elsewhere, model)
    if out is not None:
        out.write_text(_page(found), encoding="utf-8")
    in_crowd = len(sources) == 1 and sources[0].is_dir()
    show_json(found.to_dict() | _model_part(added)) if as_json else _show(found, added, in_crowd=in_crowd)
    if out is not None and not as_json:
        show(f"Page: {out}")
    exit_for_person([found.assessment()], fail_above)


def _with_model(
    found: Disclosed, posts: list[Post], reader: str | None, elsewhere: str | None, model: str
) -> tuple[Told, ...]:
    import os

    from incrowd.errors import InputError
    from incrowd.measures.disclosures.model_reader import ModelOptions, added_by_model, read_with_model

    if reader is not None and elsewhere is not None:
        raise InputError("give --reader or --send-my-posts-to, not both")
    options = ModelOptions(
        address=reader or elsewhere or "",
        model=model,
        elsewhere=elsewhere is not None,
        key=os.environ.get("INCROWD_READER_KEY", ""),
    )
    with progress_bar("asking the model") as progress:
        return added_by_model(found, read_with_model(posts, options, found.options.language, progress))


def _model_part(added: tuple[Told, ...] | None) -> dict[str, object]:
    from incrowd.measures.disclosures.model_reader import NOTE

    facts = None if added is None else [fact.to_dict() for fact in added]
    return {"language_model": {"note": NOTE, "adds": facts}}


def _show(found: Disclosed, added: tuple[Told, ...] | None = None, *, in_crowd: bool = False) -> None:
    from rich.table import Table
    from rich.text import Text

    for named in found.identifiers:
        posts = ", ".join(map(str, named.posts[:8]))
        show(
            Text(f"Your posts give away a direct identifier: {named.kind} (post {posts}).", style="bold red")
        )
        for words in found.quotes.get(named.kind, ()):
            show(Text(f"   {words}"))
    show(Text(found.sentence()))
    if found.facts:
        table = Table("what", "value", "certainty", "posts", "when", "")
        for fact in found.facts[:FACTS_SHOWN]:
            when = (
                "–".join(str(year) for year in sorted({fact.years[0], fact.years[-1]})) if fact.years else ""
            )
            other = "; ".join(f"also: {value}" for value in list(fact.against)[:3])
            how = "" if fact.said else "suggested"
            told = "" if fact.certainty >= found.options.told else "not certain"
            notes = ", ".join(note for note in (how, told, other) if note)
            numbers = ", ".join(map(str, fact.posts[:6])) + (" …" if len(fact.posts) > 6 else "")
            table.add_row(
                Text(fact.attribute), Text(fact.value), f"{fact.certainty:.0%}", numbers, when, Text(notes)
            )
            for words in found.quotes.get(f"{fact.attribute}: {fact.value}", ())[:3]:
                table.add_row("", Text(f"“{words}”", style="italic"), "", "", "", "")
        show(table)
        begin = "as incrowd.own_posts has them" if in_crowd else "the oldest first, as assess does"
        show(Text(f"Posts are counted from 0, {begin}.", style="dim"))
    now = found.together.words
    for one in [one for one in found.wordings if one.people.words != now][:4]:
        show(Text(f"“{one.instead}” in place of “{one.said}” would fit {one.people.words}."))
    for edit in [edit for edit in found.edits if edit.after.words != now][:3]:
        show(Text(edit.sentence()))
    if found.others:
        from incrowd.result import say_count

        show(f"{say_count(found.others, 'statement')} about other people left out.")
    _show_model(added)
    show("The number of people is an estimate from population tables (heuristic).")


def _show_model(added: tuple[Told, ...] | None) -> None:
    from rich.text import Text

    from incrowd.measures.disclosures.model_reader import NOTE

    if added is None:
        show(Text(NOTE, style="dim"))
    elif added:
        said = ", ".join(f"{fact.attribute}: {fact.value} ({fact.certainty:.0%})" for fact in added)
        show(Text(f"A language model that reads your posts adds: {said}."))
    else:
        show("A language model that read your posts adds nothing.")


def _page(found: Disclosed) -> str:
    body = found.to_html()
    years = "".join(f"<li>{year}: {len(facts)} new</li>" for year, facts in found.timeline.items())
    edits = "".join(f"<li>{edit.sentence()}</li>" for edit in found.edits)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>What you have told</title>"
        f"<h1>What you have told</h1>{body}<h2>By year</h2><ul>{years}</ul><h2>What to do</h2><ul>{edits}</ul></html>"
    )
