"""What is said when a source cannot be read: names from the policy, never an entry of a table."""

from __future__ import annotations

from incrowd.errors import InputError
from incrowd.gateway.databases.spelling import Select


def missing(part: Select) -> InputError:
    """A table or one of its columns is not there, or may not be read."""
    names = sorted({name for name, _ in part.columns.values()} | ({part.created} - {""}))
    return InputError(
        f"database: expected table '{part.table}' with the columns {', '.join(names)}, could not read them. "
        "Compare the policy's [database] with the tables, and check permissions"
    )


def unfit(error: Exception) -> InputError:
    """A table could not be copied; the driver's own message may quote an entry, so it is left out."""
    return InputError(
        f"database: a table could not be copied ({type(error).__name__}). Most often a column does not fit the "
        "type that the policy gives its filter"
    )


def not_unique(column: str) -> InputError:
    """Several rows of the users table have one id."""
    return InputError(f"database: column '{column}' must tell people apart, but some rows have the same")
