"""A service in front of a database that answers questions about a crowd without giving away its people."""

from __future__ import annotations
