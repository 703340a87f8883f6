"""What a file of no known format looks like, in words that show none of it."""

from __future__ import annotations

from incrowd.crowd.readers.archive import ZIP_MAGIC, is_tar

_BINARY = bytes(c for c in range(32) if c not in b"\t\n\r\f")


def what_it_is(head: bytes) -> str:
    """Name the first thing that does not fit."""
    start = head.lstrip()
    if not start:
        return "the file is empty"
    if head.startswith(ZIP_MAGIC):
        return "a zip archive without the files of a known export (comments.csv, data/tweets.js, outbox.json)"
    if is_tar(head):
        return "a tar archive without the files of a known export (outbox.json, EGO.feat with EGO.featnames)"
    if start[:4096].translate(None, _BINARY) != start[:4096]:
        return "neither text nor an archive that is known"
    if start.startswith(b"<"):
        return "XML or HTML, but no Stack Exchange dump (its first element is neither posts nor comments)"
    if start.startswith((b"{", b"[")):
        return "begins like JSON, but has neither one object a line nor one object that maps users to lists"
    return "text, but its first line names no column of users (author, user, username, user_id, ...)"
