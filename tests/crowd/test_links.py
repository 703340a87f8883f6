"""Where a person's own posts are: kept of their own export alone, found also beside a dump, gone when forgotten."""

from __future__ import annotations

import csv
import io
import json
import stat
import sys
import zipfile
from pathlib import Path

import pytest

from incrowd.crowd import Crowd
from incrowd.crowd.forget import forget
from incrowd.crowd.own_export import read_export
from incrowd.crowd.tables import LINKS_NAME, read_links
from incrowd.measures.prepared import PreparedCrowd

SAID = ["first words of mine", "a second thing i said", "and the third"]


def address(number: int) -> str:
    return f"https://www.reddit.com/r/chess/comments/t{number}/x/c{number}/"


@pytest.fixture
def export(tmp_path: Path) -> Path:
    """A Reddit data request: an address, one without its host, and something that is none."""
    links = [address(0), "/r/chess/comments/t1/x/c1/", "javascript:alert(1)"]
    table = io.StringIO()
    rows = csv.writer(table)
    rows.writerow(["id", "permalink", "date", "subreddit", "body"])
    for number, (link, text) in enumerate(zip(links, SAID, strict=True)):
        rows.writerow([f"c{number}", link, f"2024-01-0{number + 1} 10:00:00 UTC", "chess", text])
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("comments.csv", table.getvalue())
        archive.writestr("statistics.csv", "statistic,value\naccount name,me\n")
    return path


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A dump of the community, in which the first post is, too, and everybody's posts have an address."""
    mine = {"author": "me", "subreddit": "chess", "created_utc": 1704103200, "id": "c0", "body": SAID[0]}
    other = {"author": "you", "subreddit": "chess", "created_utc": 1704103200, "id": "c9", "body": "hello"}
    path = tmp_path / "dump.ndjson"
    path.write_text("\n".join(json.dumps({**one, "permalink": address(9)}) for one in (mine, other)) + "\n")
    return path


def by_text(crowd: Crowd, name: str) -> dict[str, str]:
    prepared = PreparedCrowd.of(crowd)
    user = prepared.user_id(name)
    texts = dict(prepared.own_posts(user).select("number", "text").iter_rows())
    return {texts[number]: link for number, link in prepared.own_links(user).items()}


def test_an_export_says_where_its_posts_are(export: Path) -> None:
    posts = read_export([export]).posts
    assert posts.sort("time")["link"].to_list() == [address(0), address(1), None]


def test_addresses_are_found_beside_a_dump_that_had_the_post_first(
    export: Path, dump: Path, tmp_path: Path
) -> None:
    crowd = Crowd.create(tmp_path / "crowd")
    crowd.ingest([dump])
    assert by_text(crowd, "me") == {}, "of a dump about many people no address is kept"
    crowd.ingest([export])
    assert by_text(crowd, "me") == {SAID[0]: address(0), SAID[1]: address(1)}
    assert by_text(crowd, "you") == {}
    if sys.platform != "win32":
        assert stat.S_IMODE((crowd.path / LINKS_NAME).stat().st_mode) == 0o600


def test_an_import_again_changes_nothing(export: Path, tmp_path: Path) -> None:
    crowd = Crowd.create(tmp_path / "crowd")
    crowd.ingest([export])
    before = read_links(crowd.path)
    crowd.ingest([export])
    assert read_links(crowd.path).equals(before)


def test_what_is_forgotten_has_no_address(export: Path, tmp_path: Path) -> None:
    crowd = Crowd.create(tmp_path / "crowd")
    crowd.ingest([export])
    forget(crowd, before=1704103201)
    assert read_links(crowd.path)["link"].to_list() == [address(1)]
    forget(crowd, ids=[crowd.user("me")])
    assert not (crowd.path / LINKS_NAME).exists()


def test_who_throws_the_key_away_keeps_no_address(export: Path, tmp_path: Path) -> None:
    crowd = Crowd.create(tmp_path / "crowd")
    crowd.ingest([export])
    crowd.forget_key()
    assert not (crowd.path / LINKS_NAME).exists()
