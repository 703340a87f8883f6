"""Options about attributes that the belief commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from incrowd.profiles.attributes import TableChoices

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
