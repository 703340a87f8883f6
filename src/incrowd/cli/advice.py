"""Advice that fits the command: what reads files names options of `ingest`, and other commands read files, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Set

ABOUT_FILES = ("format", "keep-complete", "columns", "kind", "dates", "community", "yes")
"""Options of `ingest` that say how to read a file."""
_OPTION = re.compile(rf"(?<![\w-])--({'|'.join(ABOUT_FILES)})(?![\w-])")


def for_the_command(message: str, options: Callable[[], Set[str]]) -> str:
    """Leave out advice to use options about files that the command does not take, and name the command that does."""
    if not _OPTION.search(message) or "incrowd " in message:  # whole commands are right as they are
        return message
    taken = options()
    sentences = re.split(r"(?<=[.!?]) +", message)
    kept = [one for one in sentences if set(_OPTION.findall(one)) <= taken]
    missing = [option for one in sentences for option in _OPTION.findall(one) if option not in taken]
    if not missing or not kept:
        return message
    named = " and ".join(f"--{option}" for option in dict.fromkeys(missing))
    return " ".join([*kept, f"Or import it into a crowd with incrowd ingest, which takes {named}."])
