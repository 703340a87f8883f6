"""The collector against servers that were not written for it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from tests.collect.gathering import gather, plan, rows, who
from tests.collect.real_servers import NO_INN, NO_PDS, Pds, has_inn, has_pds, inn, pds, post_articles

from incrowd.crowd import Crowd

needs_pds = pytest.mark.skipif(not has_pds(), reason=NO_PDS)
needs_inn = pytest.mark.skipif(not has_inn(), reason=NO_INN)


@pytest.fixture
def bluesky(tmp_path: Path) -> Iterator[Pds]:
    with pds(tmp_path / "pds") as server:
        yield server


@needs_pds
def test_everybody_on_blueskys_own_server_is_collected_and_followed(bluesky: Pds, tmp_path: Path) -> None:
    people = [bluesky.account(f"person{n}") for n in range(4)]
    for n, person in enumerate(people):
        bluesky.post(person, [f"post {i} of person {n}" for i in range(130)])
    bluesky.refuse(people[3])
    wanted = plan("bluesky", bluesky.address, "local", per_author=500)
    crowd = tmp_path / "crowd"
    first = gather(crowd, wanted)
    names = [person.did for person in people]
    assert who(crowd, names) == dict(zip(names, [130, 130, 130, 0], strict=True))
    assert (first.left_out, first.stopped) == (1, None)
    assert {text for _, _, text in rows(crowd)} == {
        f"post {i} of person {n}" for n in range(3) for i in range(130)
    }

    # The account's own export, a CAR file, holds the same posts.
    export = tmp_path / "repo.car"
    export.write_bytes(bluesky.http.get("/com.atproto.sync.getRepo", params={"did": people[0].did}).content)
    report = Crowd(crowd).ingest(export)
    assert (report.rows, report.added, dict(report.reasons)) == (130, 0, {"duplicate": 130})

    bluesky.delete(people[0], "post 100 of person 0")
    bluesky.post(people[0], ["something new"], start=500)
    bluesky.close_account(people[1])
    bluesky.refuse(people[2])
    second = gather(crowd, wanted)
    assert who(crowd, names) == dict(zip(names, [130, 0, 0, 0], strict=True))
    texts = {text for _, _, text in rows(crowd)}
    assert "something new" in texts
    assert "post 100 of person 0" not in texts
    assert second.removed == 1 + 130 + 130
    Crowd(crowd).verify()

    gather(tmp_path / "newest", plan("bluesky", bluesky.address, "local", per_author=30))
    newest = {"something new", *(f"post {i} of person 0" for i in range(100, 130) if i != 100)}
    assert {text for _, _, text in rows(tmp_path / "newest")} == newest


def article(number: int, group: str, header: str = "") -> str:
    head = f"From: Person {number % 3} <p{number % 3}@example.test>\nNewsgroups: {group}\nSubject: tea\n"
    return (
        f"{head}Message-ID: <n{number}@example.test>\n{header}\nwords {number} of mine\n\n..dots\nFrom me\n"
    )


@needs_inn
def test_newsgroups_of_inn_are_collected_and_cancellations_followed(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # INN runs as another user, who cannot read pytest's folders.
    work = Path(mkdtemp(prefix="incrowd-inn-"))
    work.chmod(0o755)
    request.addfinalizer(lambda: shutil.rmtree(work, ignore_errors=True))
    with inn(work / "inn", ["test.tea", "test.bread"]) as address:
        post_articles(address, [article(n, "test.tea") for n in range(120)])
        post_articles(address, [article(n, "test.bread") for n in range(200, 210)])
        post_articles(address, [article(300, "test.tea", "X-No-Archive: yes\n")])
        wanted = plan("nntp", address, "test.tea", "test.bread")
        crowd = tmp_path / "crowd"
        gather(crowd, wanted)
        found = rows(crowd)
        assert len(found) == 130
        assert {community for community, _, _ in found} == {"test.tea", "test.bread"}
        assert all(text.endswith(".dots\nFrom me") for _, _, text in found)
        assert who(crowd, ["p0@example.test"])["p0@example.test"] == 40 + 3
        cancel = "Control: cancel <n50@example.test>\nApproved: p2@example.test\n"
        post_articles(address, [article(400, "test.tea", cancel).replace("n400", "c50")])
        done = gather(crowd, wanted)
        assert done.removed == 1
        assert not any("words 50 of" in text for _, _, text in rows(crowd))
        stopped = gather(tmp_path / "other", plan("nntp", address, "test.nothing")).stopped
        assert stopped is not None
        assert "no such newsgroup" in stopped


def test_a_news_server_that_is_none_ends_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.collect.sites import Site

    from incrowd.collect.services import nntp

    monkeypatch.setattr(nntp, "TIMEOUT", 0.3)
    with Site().open() as server:
        done = gather(tmp_path / "crowd", plan("nntp", server.replace("http", "nntp"), "test.tea"))
    assert done.stopped is not None
    assert "Is this a news server?" in done.stopped
