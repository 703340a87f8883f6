"""A person's own Mastodon posts: outbox.json, bare or in the archive that Mastodon hands out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from incrowd.crowd.readers.archive import Zip, find, is_tar, open_in_tar, zip_names
from incrowd.crowd.readers.base import About, Batch, Look, ReadOptions, html_text
from incrowd.crowd.readers.jsonstream import JsonStream
from incrowd.crowd.readers.rows import POSTS, RowBatch, Whole, batch_of
from incrowd.crowd.readers.source import Bytes, DecompressedFile
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import UnreadableSource

OUTBOX = "outbox.json"
ITEMS = "orderedItems"
EMPTY = RowBatch(POSTS, 0).take()
PUBLIC = ("https://www.w3.org/ns/activitystreams#Public", "as:Public", "Public")
TAR_PARTS = (
    "outbox.json",
    "actor.json",
    "likes.json",
    "bookmarks.json",
    "media_attachments",
    "avatar",
    "header",
)
_ORDERED = re.compile(rb'"(?:type"\s*:\s*"OrderedCollection"|orderedItems"\s*:)')


class MastodonOutbox:
    """Posts everybody may read; boosts and private posts are skipped."""

    name = "mastodon"
    about = About("Mastodon archive", whose="own")
    kind: Kind = "posts"

    def probe(self, look: Look) -> bool:
        """Say whether this is an ActivityPub outbox, or an archive with one."""
        if is_tar(look.head):
            return (
                look.head.split(b"\0", 1)[0]
                .decode("utf-8", "replace")
                .removeprefix("./")
                .startswith(TAR_PARTS)
            )
        if look.head.lstrip().startswith(b"{"):
            return _ORDERED.search(look.head[:4096]) is not None
        return find(look.names, OUTBOX) is not None

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the posts in order."""
        with _outbox(path, options) as outbox:
            stream = JsonStream(outbox, str(path), options)
            found = False
            for key in stream.members():
                found = found or key == ITEMS
                if key == ITEMS and stream.peek() == "[":
                    yield from _batches(stream, options)
                else:
                    stream.value()
            if not found and not stream.incomplete:
                raise UnreadableSource(f"{path}: no list of posts ({ITEMS}). Expected an outbox.")
            yield batch_of(EMPTY, POSTS, options, Whole(incomplete=stream.incomplete))


@contextmanager
def _outbox(path: Path, options: ReadOptions) -> Iterator[Bytes]:
    """Open the outbox, wherever it is."""
    with DecompressedFile(path, options) as source:
        head = source.read(512)
    if zip_names(path, head):
        with Zip(path, options) as archive, archive.open(find(archive.names, OUTBOX) or OUTBOX) as member:
            yield member
    elif is_tar(head):
        with DecompressedFile(path, options) as source, open_in_tar(source, OUTBOX) as member:
            if member is None:
                raise UnreadableSource(f"{path}: no {OUTBOX} is in the archive.")
            yield member
    else:
        with DecompressedFile(path, options) as source:
            yield source


def _batches(stream: JsonStream, options: ReadOptions) -> Iterator[Batch]:
    rows = RowBatch(POSTS, options.batch_bytes)
    for number, activity in enumerate(stream.items(), 1):
        _add(rows, number, activity, options)
        if rows.full:
            yield batch_of(rows.take(), POSTS, options)
    yield batch_of(rows.take(), POSTS, options, Whole(incomplete=stream.incomplete))


def _add(rows: RowBatch, number: int, activity: object, options: ReadOptions) -> None:
    if not isinstance(activity, dict):
        return rows.reject(number, Reason.NOT_AN_OBJECT)
    note = activity.get("object")
    if activity.get("type") != "Create" or not isinstance(note, dict) or not _public(note):
        return rows.skip()
    content, title = note.get("content"), note.get("summary")
    if content is None:
        return rows.reject(number, Reason.MISSING_FIELD)
    actor = note.get("attributedTo", activity.get("actor"))
    if not all(isinstance(field, str) for field in (content, actor or "", title or "")):
        return rows.reject(number, Reason.WRONG_TYPE)
    user, host = account_name(actor) if actor else (None, None)
    text = "\n\n".join(part for part in (title, html_text(content)) if part)
    identity = note["id"] if isinstance(note.get("id"), str) else None
    published = note.get("published")
    time = published if published is None or isinstance(published, str) else json.dumps(published)
    link = note["url"] if isinstance(note.get("url"), str) else identity
    return rows.add(number, (identity, options.user or user, options.community or host, time, text, link))


def _public(note: dict[str, object]) -> bool:
    """Say whether everybody may read a post, listed or not."""
    fields = [note.get("to"), note.get("cc")]
    audience = [who for field in fields for who in (field if isinstance(field, list) else [field])]
    return any(isinstance(who, str) and who in PUBLIC for who in audience)


def account_name(actor: str) -> tuple[str, str | None]:
    """Return ``name@host`` and the host of an account's address."""
    address = urlsplit(actor)
    name = address.path.rstrip("/").rsplit("/", 1)[-1].lstrip("@")
    return (f"{name}@{address.netloc}", address.netloc) if name and address.netloc else (actor, None)
