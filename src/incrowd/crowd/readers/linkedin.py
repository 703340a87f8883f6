"""LinkedIn's data archive: what the person shared and commented."""

from __future__ import annotations

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import SKIP, Export, ExportPart, File, Files, Row, header_of, pick

_COLUMNS = {"time": "Date", "text": "ShareCommentary or Message"}


def _is_shares(head: bytes) -> bool:
    return {"date", "sharelink", "sharecommentary"} <= header_of(head)


def _is_comments(head: bytes) -> bool:
    return header_of(head) == {"date", "link", "message"}


def _post(record: dict[str, str], owner: str) -> Row | object:
    text = pick(record, "sharecommentary", "message")
    # LinkedIn doubles the quotes of text that has line ends a second time.
    link = pick(record, "sharelink", "link")
    return Row(text=text.replace('"\n"', "\n").strip('"'), time=record["date"], link=link) if text else SKIP


def _owner(files: Files) -> str | None:
    name = files.find(r"(^|/)Profile\.csv$")
    if name is None:
        return None
    with files.open(name) as file:
        profile = next(file.table(), None)
    if not isinstance(profile, dict):
        return None
    return " ".join(profile[part] for part in ("first name", "last name") if profile.get(part)) or None


LINKEDIN = Export(
    name="linkedin",
    about=About("LinkedIn archive", whose="own", columns=_COLUMNS, left="messages, connections, invitations"),
    parts=(
        ExportPart(knows=_is_shares, records=File.table, row=_post, files=r"(^|/)Shares\.csv$"),
        ExportPart(knows=_is_comments, records=File.table, row=_post, files=r"(^|/)Comments\.csv$"),
    ),
    owner=_owner,
    community="linkedin.com",
)
