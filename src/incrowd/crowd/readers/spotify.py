"""Spotify: what a person listened to, from the account data or the extended history."""

from __future__ import annotations

from incrowd.crowd.readers.base import About
from incrowd.crowd.readers.export import SKIP, Export, ExportPart, File, Files, Row, first_object

_COLUMNS = {"item": "artist: track", "time": "endTime or ts"}


def _is_history(head: bytes) -> bool:
    first = set(first_object(head))
    return {"endTime", "artistName", "trackName"} <= first or {"ts", "master_metadata_track_name"} <= first


def _played(record: dict[str, str], owner: str) -> Row | object:
    track = record.get("trackName", record.get("master_metadata_track_name"))
    artist = record.get("artistName", record.get("master_metadata_album_artist_name"))
    if not track:
        return SKIP  # an episode of a podcast, or a video
    return Row(item=f"{artist}: {track}", time=record.get("endTime", record.get("ts")))


def _owner(files: Files) -> str | None:
    identity = files.json(r"(^|/)(Identity|Userdata)\.json$")
    if not isinstance(identity, dict):
        return None
    return identity.get("username") or identity.get("displayName")


SPOTIFY = Export(
    name="spotify",
    about=About(
        "Spotify streaming history", whose="own", columns=_COLUMNS, left="podcasts, playlists, searches"
    ),
    parts=(
        ExportPart(
            knows=_is_history,
            records=File.json,
            row=_played,
            files=r"(StreamingHistory|Streaming_History_Audio|endsong).*\.json$",
            kind="items",
        ),
    ),
    owner=_owner,
)
