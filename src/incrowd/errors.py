"""The exceptions incrowd raises, one tree.

::

    IncrowdError                 everything below; the command line prints its message and exits 2
    ├── InputError               what the caller handed in cannot be used
    │   ├── UnreadableSource     a file is missing, truncated, corrupt, or no known format
    │   ├── SchemaError          a file was read but its columns do not fit
    │   │   └── Undecided        it may be read in two ways; one option answers the question
    │   └── NotInCrowd           the user, community or item asked for is not there
    ├── CrowdError               the crowd folder itself
    │   ├── CrowdBusy            another process is importing into it
    │   └── CrowdDamaged         a part is missing or does not match its recorded hash
    ├── OnlyACard                a card is here, and the question takes a crowd
    ├── ServerError              a server could not be asked, or its answer cannot be used (`collect` only)
    ├── BudgetExceeded           the job does not fit the memory or time it was given
    └── MissingExtra             an optional dependency is not installed

A message has four parts: the place, what was expected, what arrived, and the remedy. It never
holds a person's text or name: a row is named by file and number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_COMMANDS: ContextVar[bool] = ContextVar("speaking to the command line", default=False)
_OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*)")
_COMMAND = re.compile(r"(\bincrowd [a-z][^.;]*)")


@contextmanager
def on_the_command_line() -> Iterator[None]:
    """Let messages name options as a command takes them: ``--min-posts``."""
    before = _COMMANDS.set(True)
    try:
        yield
    finally:
        _COMMANDS.reset(before)


def in_python(message: str) -> str:
    """Name options as Python takes them; whole commands stay as they are.

    >>> in_python("lower --min-posts, or import more: incrowd ingest FILE --kind items")
    'lower min_posts, or import more: incrowd ingest FILE --kind items'
    """
    parts = _COMMAND.split(message)
    plain = (_OPTION.sub(lambda option: option[1].replace("-", "_"), part) for part in parts[::2])
    return "".join(part for both in zip(plain, [*parts[1::2], ""], strict=True) for part in both)


class IncrowdError(Exception):
    """Any error whose message is meant for the user; options go by the names that Python, or a command, takes."""

    def __str__(self) -> str:
        message = super().__str__()
        return message if _COMMANDS.get() else in_python(message)


class InputError(IncrowdError, ValueError):
    """What the caller handed in cannot be used."""


class UnreadableSource(InputError):
    """A file is missing, truncated, corrupt, unsafe to open, or of no known format."""


class SchemaError(InputError):
    """A file was read, but its columns or types do not fit the table."""


class Undecided(SchemaError):
    """A source may be understood in more than one way, and only a person knows which is right."""

    def __init__(self, question: str, option: str, choices: tuple[str, ...] = ()) -> None:
        offered = " or ".join(choices) if choices else "NAME"
        super().__init__(f"{question} Answer with --{option} {offered}.".replace("--yes yes", "--yes"))
        self.question = question
        self.option = option
        """The option that answers: `user`, `dates`, `kind`, `columns`, `format`, or `yes` to go on as shown."""
        self.choices = choices
        """What may be answered; nothing: any name."""


class NotInCrowd(InputError):
    """The user, community or item asked for is not in the crowd."""


class CrowdError(IncrowdError):
    """Something is wrong with the crowd folder itself."""


class CrowdBusy(CrowdError):
    """Another process is importing into this crowd."""


class CrowdDamaged(CrowdError):
    """A part of the crowd is missing or differs from its recorded hash."""


class OnlyACard(IncrowdError):
    """The question takes real people's data, and only a card of their statistics is here."""


class ServerError(IncrowdError):
    """A server on the network could not be asked, or its answer cannot be used."""


class BudgetExceeded(IncrowdError):
    """The job does not fit the memory or time it was given."""


class MissingExtra(IncrowdError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs the extra '{extra}'. Install it with: pip install 'incrowd[{extra}]'"
        )
        self.extra = extra
