"""Mails as posts: what NNTP and mail archives give, read by the same reader as a mailbox on disk."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from incrowd.collect.services.base import Post
from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.readers.mbox import Mbox

LARGEST_MAILBOX = 256 * 2**20
"""Bytes of one answer's mails, decompressed."""
_SEPARATOR = b"From nobody Thu Jan  1 00:00:00 1970\n"
# Only lines that would look like the next mail are marked: readers take a marked line for a quotation.
_FROM = re.compile(rb"^(From [^\n]*\d:\d\d[^\n]*)$", re.MULTILINE)


def posts_in(mailbox: bytes, name: str, community: str | None = None) -> list[Post]:
    """Return the mails of a mailbox, packed or not, in its order; `name` is the file's, `community` overrules it."""
    if not mailbox.strip(b"\r\n"):
        return []
    options = ReadOptions(community=community, max_output_bytes=LARGEST_MAILBOX, keep_complete=False)
    with TemporaryDirectory(prefix="incrowd-") as folder:
        path = Path(folder) / name
        path.write_bytes(mailbox)
        return [
            Post(row["id"], row["user"], row["community"], row["time"], row["text"])
            for batch in Mbox().read(path, options)
            for row in batch.rows.iter_rows(named=True)
            if row["user"] and row["text"]
        ]


def bound(mails: Iterable[bytes]) -> bytes:
    """Return single mails as one mailbox."""
    return b"\n".join(_SEPARATOR + _FROM.sub(rb">\1", mail).rstrip(b"\n") + b"\n" for mail in mails)


def wants_no_archive(mail: bytes) -> bool:
    """Say whether an author asked, in the header, that a mail be kept nowhere."""
    head = mail.partition(b"\n\n")[0].lower()
    return (
        re.search(rb"^(?:x-no-archive:\s*yes|archive:\s*no|x-archive:\s*no)\b", head, re.MULTILINE)
        is not None
    )
