"""Credentials: the user's own, from the environment or the system's keyring, and nowhere else.

They are never written to a file, a log, a journal or a crowd, and never shown: a value that has to be passed on
is wrapped, so that no message and no repr can hold it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from incrowd.errors import InputError

KEYRING_SERVICE = "incrowd"


@dataclass(frozen=True)
class Credential:
    """A value that does not show itself."""

    value: str

    def __repr__(self) -> str:
        return "Credential(hidden)"

    __str__ = __repr__


def variable(name: str) -> str:
    """Return the environment variable of a credential.

    >>> variable("reddit-client-id")
    'INCROWD_REDDIT_CLIENT_ID'
    """
    return "INCROWD_" + name.upper().replace("-", "_")


def find(name: str) -> Credential | None:
    """Return a credential from the environment, else from the keyring, if there is one."""
    value = os.environ.get(variable(name), "").strip() or _from_keyring(name)
    return Credential(value) if value else None


def need(name: str, why: str) -> Credential:
    """Return a credential, or say how to give it."""
    found = find(name)
    if found is None:
        raise InputError(
            f"{why}. Set the environment variable {variable(name)}, "
            f"or store it in the system's keyring with: keyring set {KEYRING_SERVICE} {name}"
        )
    return found


def _from_keyring(name: str) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, name) or ""
    except (KeyringError, RuntimeError, OSError):
        # No keyring on this machine, or it is locked: as if nothing were in it.
        return ""
