"""Facebook's download (JSON): the person's posts and comments, with its broken encoding repaired."""

from __future__ import annotations

from typing import Any

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import SKIP, Export, ExportPart, File, Files, Row, first_object, top_keys
from incrowd.crowd.readers.source import decoded

_COLUMNS = {"community": "group", "time": "timestamp", "text": "post or comment"}


def repaired(text: str) -> str:
    """Undo Meta's encoding: UTF-8 bytes written as if each were a letter.

    >>> repaired("caf\\u00c3\\u00a9")
    'café'
    """
    try:
        return text.encode("latin-1").decode("utf-8")
    except (UnicodeEncodeError, UnicodeDecodeError):
        return text


def _is_posts(head: bytes) -> bool:
    return (
        decoded(head)[0].lstrip().startswith("[")
        and "timestamp" in first_object(head)
        and {"data", "attachments", "title"} & set(first_object(head)) != set()
        and "creation_timestamp" not in first_object(head)
    )


def _is_comments(head: bytes) -> bool:
    return (
        bool(top_keys(head) & {"comments_v2", "comments", "group_comments_v2"})
        and b'"comment"' in head
        and b'"data"' in head
    )


def _is_group_posts(head: bytes) -> bool:
    return bool(top_keys(head) & {"group_posts_v2", "group_posts"}) and b'"timestamp"' in head


def _post(record: dict[str, Any], owner: str) -> Row | object:
    texts = [part["post"] for part in record.get("data", []) if isinstance(part.get("post"), str)]
    return Row(text=repaired("\n\n".join(texts)), time=record["timestamp"]) if texts else SKIP


def _comment(record: dict[str, Any], owner: str) -> Row | object:
    for part in record.get("data", []):
        comment = part.get("comment")
        if isinstance(comment, dict) and comment.get("comment"):
            group = comment.get("group")
            return Row(
                text=repaired(comment["comment"]),
                time=comment.get("timestamp", record["timestamp"]),
                community=repaired(group) if group else None,
            )
    return SKIP


def _owner(files: Files) -> str | None:
    profile = files.json(r"profile_information\.json$")
    name = (((profile or {}).get("profile_v2") or {}).get("name") or {}).get("full_name")
    return repaired(name) if isinstance(name, str) else None


FACEBOOK = Export(
    name="facebook",
    about=About(
        "Facebook download", whose="own", columns=_COLUMNS, left="messages, friends, reactions, pictures"
    ),
    parts=(
        ExportPart(knows=_is_posts, records=File.json, row=_post, files=r"posts/your_posts[^/]*\.json$"),
        ExportPart(
            knows=_is_comments,
            records=lambda file: file.json("*"),
            row=_comment,
            files=r"(comments[^/]*|groups)/[^/]*comments[^/]*\.json$",
        ),
        ExportPart(
            knows=_is_group_posts,
            records=lambda file: file.json("*"),
            row=_post,
            files=r"groups/[^/]*posts[^/]*\.json$",
        ),
    ),
    owner=_owner,
    community="facebook.com",
)
