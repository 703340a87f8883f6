"""The loop: the paper's plan, resumed after any kill, following deletions, leaving nothing half done."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.cli.running import incrowd
from tests.collect.gathering import CONTACT, gather, patient, plan, rows, who
from tests.collect.sites import SITES, Asked, Reply, Site, World, Written, make_world

from incrowd.cards.card import Card
from incrowd.collect import Collector
from incrowd.collect.journal import Journal, clean, post_key
from incrowd.collect.services import Page, Post
from incrowd.crowd import Crowd
from incrowd.crowd.forget import forget
from incrowd.errors import CrowdBusy, InputError

NAMES = [f"person{n}@tea.example" for n in range(6)]


def mastodon(world: World) -> Site:
    return SITES["mastodon"][0](world)


class TestPlan:
    def test_newest_posts_then_each_new_authors_last_posts(self, tmp_path: Path) -> None:
        world = make_world(people=6, posts=300)
        with mastodon(world).open() as server:
            done = gather(
                tmp_path / "crowd", plan("mastodon", server, "#tea", newest=4, per_author=7, people=3)
            )
        # The four newest posts of the community are by four people; three of them were followed.
        newest = world.newest("tea")[:4]
        followed = [post.user for post in newest][:3]
        wanted = {post.time for post in newest}
        for user in followed:
            wanted |= {post.time for post in world.newest(user=user)[:7]}
        assert {row[1] for row in rows(tmp_path / "crowd")} == wanted
        assert done.people == 3
        assert done.posts == len(wanted)

    def test_communities_only(self, tmp_path: Path) -> None:
        world = make_world()
        site = mastodon(world)
        with site.open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea", communities_only=True))
        assert {row[1] for row in rows(tmp_path / "crowd")} == {post.time for post in world.newest("tea")}
        assert all("/timelines/" in asked.path for asked in site.asked)

    def test_rounds_find_who_came_since(self, tmp_path: Path) -> None:
        world = make_world(people=3, posts=30)
        site = mastodon(world)
        added = []

        def newcomer(asked: Asked) -> Reply | None:
            if "/accounts/" in asked.path and not added:
                added.append(Written(900, "person8", "tea", "words 900 of mine"))
                world.posts.append(Written(899, "person8", "bread", "words 899 of mine"))
                world.posts += added
            return None

        site.fault = newcomer
        with site.open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea", rounds=3))
        assert {row[1] for row in rows(tmp_path / "crowd")} == {post.time for post in world.posts}

    def test_what_it_costs_is_said_before_the_first_request(self, tmp_path: Path) -> None:
        site = mastodon(make_world())
        with site.open() as server:
            client, _ = patient()
            wanted = plan("mastodon", server, "#tea", "#bread", newest=100, per_author=80, people=5, rounds=2)
            with Collector(wanted, Crowd.create(tmp_path / "crowd"), client) as collector:
                costs = collector.estimate()
            assert costs.requests == 2 * 2 * (3 + 1) + 5 * (2 + 1)
            assert costs.people == 5
            assert costs.posts == 2 * 2 * 100 + 5 * 80
            assert costs.minutes > 0
            assert costs.bytes > 0
        assert site.asked == []

    @pytest.mark.parametrize(
        "wrong", [{"newest": 0}, {"per_author": 0}, {"people": -1}, {"rounds": 0}, {"pause": -1.0}]
    )
    def test_nonsense_is_refused(self, tmp_path: Path, wrong: dict[str, int]) -> None:
        with pytest.raises(InputError, match="expected"):
            gather(tmp_path / "crowd", plan("mastodon", "http://127.0.0.1:9", "#tea", **wrong))

    def test_it_never_asks_for_more_than_it_estimated(self, tmp_path: Path) -> None:
        site = mastodon(make_world(people=9, posts=400))
        with site.open() as server:
            client, _ = patient()
            wanted = plan("mastodon", server, "#tea", newest=90, per_author=60, people=7)
            with Collector(wanted, Crowd.create(tmp_path / "crowd"), client) as collector:
                most = collector.estimate().requests
                collector.run()
        assert len(site.asked) <= most


class TestGoingOn:
    def test_killed_again_and_again_it_asks_at_most_one_page_twice_a_kill(self, tmp_path: Path) -> None:
        world = make_world(people=10, posts=600)
        kills = 4
        with mastodon(world).open() as server:
            gather(tmp_path / "peace", plan("mastodon", server, "#tea"))
        site = mastodon(world)
        site.fault = lambda asked: time.sleep(0.02)
        with site.open() as server:
            for kill in range(1, kills + 1):
                killed_after(site, 4 * kill, [*command(server, tmp_path / "killed")])
            done = subprocess.run(
                command(server, tmp_path / "killed"), capture_output=True, text=True, check=False
            )
        assert done.returncode == 0, done.stderr
        assert "need not be made again" in done.stderr
        assert rows(tmp_path / "killed") == rows(tmp_path / "peace")
        assert who(tmp_path / "killed", NAMES) == who(tmp_path / "peace", NAMES)
        times = Counter((asked.path, tuple(asked.query.items())) for asked in site.asked)
        assert sum(times.values()) - len(times) <= kills
        Crowd(tmp_path / "killed").verify()

    def test_killed_between_an_import_and_its_note_nothing_comes_twice(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world = make_world()
        with mastodon(world).open() as server:
            client, _ = patient()
            with Collector(
                plan("mastodon", server, "#tea"), Crowd.create(tmp_path / "crowd"), client
            ) as collector:
                monkeypatch.setattr(
                    collector.journal, "imported", lambda last: (_ for _ in ()).throw(SystemExit)
                )
                with pytest.raises(SystemExit):
                    collector.run()
            asked = client.requests
            client, _ = patient()
            with Collector(plan("mastodon", server, "#tea"), Crowd(tmp_path / "crowd"), client) as collector:
                collector.run()
        assert client.requests == 0 < asked
        assert {row[1] for row in rows(tmp_path / "crowd")} == {post.time for post in world.posts}
        assert len(rows(tmp_path / "crowd")) == len(world.posts)

    def test_a_server_that_fails_leaves_what_came_and_a_sentence(self, tmp_path: Path) -> None:
        world = make_world(people=6, posts=600)
        site = mastodon(world)
        site.fault = lambda asked: (500, {}, b"") if "/accounts/4/" in asked.path else None
        with site.open() as server:
            done = gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
            assert done.stopped is not None
            assert "goes on where it stopped" in done.stopped
            assert 0 < done.posts < len(world.posts)
            site.fault = lambda asked: None
            seen = len(site.asked)
            done = gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
        assert done.stopped is None
        assert {row[1] for row in rows(tmp_path / "crowd")} == {post.time for post in world.posts}
        assert not any("/timelines/" in asked.path for asked in site.asked[seen:])

    def test_pagination_that_goes_in_circles_ends(self, tmp_path: Path) -> None:
        world = make_world(posts=50)
        site = mastodon(world)
        first = site.routes["/api/v1/timelines/tag/"]
        site.routes["/api/v1/timelines/tag/"] = lambda asked: first(
            Asked("GET", asked.path, {"limit": "10"}, {})
        )
        with site.open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea", communities_only=True))
        assert len(site.asked) == 2
        assert len(rows(tmp_path / "crowd")) == 10

    def test_pages_without_end_and_without_anything_on_them_end(self, tmp_path: Path) -> None:
        site = Site()
        site.routes["/xrpc/"] = lambda asked: {
            "repos": [{"did": "x", "active": False}],
            "cursor": str(len(site.asked)),
        }
        with site.open() as server:
            done = gather(tmp_path / "crowd", plan("bluesky", server, "local"))
        assert done.stopped is None
        assert len(site.asked) == 100

    def test_a_list_of_accounts_ends_with_enough_of_them(self, tmp_path: Path) -> None:
        site = Site()

        def accounts(asked: Asked) -> object:
            if not asked.path.endswith("listRepos"):
                return {"records": []} if asked.path.endswith("listRecords") else {"value": {}}
            first = int(asked.query.get("cursor", 0))
            repos = [{"did": f"did:x:{n}"} for n in range(first, first + 10)]
            return {"repos": repos, "cursor": str(first + 10)}

        site.routes["/xrpc/"] = accounts
        with site.open() as server:
            done = gather(tmp_path / "crowd", plan("bluesky", server, "local", newest=25, people=5))
        assert sum(asked.path.endswith("listRepos") for asked in site.asked) == 3
        assert done.people == 5

    def test_a_cursor_as_long_as_a_book_ends_with_a_sentence(self, tmp_path: Path) -> None:
        site = Site()
        site.routes["/xrpc/"] = lambda asked: {"repos": [{"did": "did:x:1"}], "cursor": "x" * 10**6}
        with site.open() as server:
            done = gather(tmp_path / "crowd", plan("bluesky", server, "local"))
        assert done.stopped is not None
        assert "the next page" in done.stopped

    def test_only_one_collection_at_a_time(self, tmp_path: Path) -> None:
        crowd = Crowd.create(tmp_path / "crowd")
        wanted = plan("mastodon", "http://127.0.0.1:9", "#tea")
        with Collector(wanted, crowd), pytest.raises(CrowdBusy, match="another collection"):
            Collector(wanted, crowd)

    def test_memory_holds_a_page_not_a_crowd(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Imports happen on the way, whenever enough posts wait."""
        from incrowd.collect import collector as module

        monkeypatch.setattr(module, "BATCH_POSTS", 100)
        world = make_world(people=5, posts=500)
        with mastodon(world).open() as server:
            done = gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
        assert len(Crowd(tmp_path / "crowd").state.imports) >= 3
        assert done.posts == 500


class TestDeletions:
    def test_only_what_lies_between_posts_still_shown_is_judged(self, tmp_path: Path) -> None:
        world = make_world(people=1, posts=120, communities=("tea",))
        wanted = {"newest": 40, "communities_only": True}
        with mastodon(world).open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea", **wanted))
            first = {row[1] for row in rows(tmp_path / "crowd")}
            world.posts += [Written(200 + n, "person0", "tea", f"words {200 + n} of mine") for n in range(10)]
            world.delete(110)
            done = gather(tmp_path / "crowd", plan("mastodon", server, "#tea", **wanted))
        now = {row[1] for row in rows(tmp_path / "crowd")}
        gone = first - now
        # Ten newer posts push older ones out of the forty: these were not deleted.
        assert len(gone) == done.removed == 1
        assert len(now) == 40 - 1 + 10

    def test_times_play_no_part(self, tmp_path: Path) -> None:
        """People date posts as they like: a listing's order counts."""
        world = make_world(people=1, posts=60, communities=("tea",))
        site = mastodon(world)
        inner = site.routes["/api/v1/timelines/tag/"]

        def dated(asked: Asked) -> object:
            found = inner(asked)
            for status in found:
                status["created_at"] = f"20{int(status['id']) * 7 % 24:02d}-01-01T00:00:00Z"
            return found

        site.routes["/api/v1/timelines/tag/"] = dated
        with site.open() as server:
            for _ in range(3):
                done = gather(
                    tmp_path / "crowd", plan("mastodon", server, "#tea", newest=30, communities_only=True)
                )
        assert done.removed == 0
        assert len(rows(tmp_path / "crowd")) == 30

    def test_a_closed_accounts_posts_go_and_a_new_wish_is_heard(self, tmp_path: Path) -> None:
        world = make_world()
        with mastodon(world).open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
            world.refusing = {"person1"}
            world.closed = {"person2"}
            world.posts = [post for post in world.posts if post.user != "person2"]
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
            counts = who(tmp_path / "crowd", NAMES)
            assert (counts[NAMES[1]], counts[NAMES[2]]) == (0, 0)
            assert min(counts[name] for name in NAMES if name not in NAMES[1:3]) > 0
            world.refusing = set()
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
        assert who(tmp_path / "crowd", NAMES)[NAMES[1]] == sum(post.user == "person1" for post in world.posts)

    def test_only_new_does_not_look_back(self, tmp_path: Path) -> None:
        world = make_world()
        site = mastodon(world)
        with site.open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
            first = len(site.asked)
            world.posts.append(Written(700, "person9", "tea", "words 700 of mine"))
            done = gather(tmp_path / "crowd", plan("mastodon", server, "#tea", only_new=True))
        assert done.posts == 1
        assert len(site.asked) - first < first


class TestEdits:
    def test_an_edited_post_takes_the_place_of_its_earlier_version(self, tmp_path: Path) -> None:
        world = make_world(people=3, posts=40)
        with mastodon(world).open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
            place, old = next((n, post) for n, post in enumerate(world.posts) if post.community == "tea")
            world.posts[place] = replace(old, text="what I meant to say")
            done = gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
            again = gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
        texts = [row[2].partition(" & ")[0] for row in rows(tmp_path / "crowd")]
        assert texts.count("what I meant to say") == 1
        assert old.text not in texts
        assert len(texts) == len(world.posts)
        assert (done.edited, done.posts, done.removed) == (1, 0, 0)
        assert (again.edited, again.posts) == (0, 0)

    def test_edited_while_it_is_collected_the_newest_version_stays(self, tmp_path: Path) -> None:
        world = make_world(people=2, posts=20)
        site = mastodon(world)
        place, old = next((n, post) for n, post in enumerate(world.posts) if post.community == "tea")

        def edit(asked: Asked) -> Reply | None:
            if "/accounts/" in asked.path:
                world.posts[place] = replace(old, text="what I meant to say")
            return None

        site.fault = edit
        with site.open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea", rounds=2))
        texts = [row[2].partition(" & ")[0] for row in rows(tmp_path / "crowd")]
        assert "what I meant to say" in texts
        assert old.text not in texts


class TestForgetting:
    def test_a_forgotten_person_leaves_the_journal_and_is_not_collected_again(self, tmp_path: Path) -> None:
        world = make_world()
        with mastodon(world).open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
            crowd = Crowd(tmp_path / "crowd")
            done = forget(crowd, ids=[crowd.user(NAMES[1])])
            assert done.removed["posts"] > 0
            journal = (tmp_path / "crowd" / "collect" / "journal.sqlite").read_bytes()
            assert NAMES[1].encode() not in journal
            assert NAMES[2].encode() in journal
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
        counts = who(tmp_path / "crowd", NAMES)
        assert counts[NAMES[1]] == 0
        assert counts[NAMES[2]] > 0

    def test_who_is_called_almost_the_same_is_not_forgotten_along(self, tmp_path: Path) -> None:
        crowd = Crowd.create(tmp_path / "crowd")
        crowd.add_frame(pl.DataFrame({"user": ["tea_pot", "teaXpot"], "community": "tea", "text": "hi"}))
        journal = Journal(crowd.path)
        journal.begin()
        for name in ("tea_pot", "teaXpot"):
            page = Page(people=((name, name),))
            journal.walk(f"person/x/{name}")
            journal.add(f"person/x/{name}", "", page, checked=True, round_number=1)
        journal.close()
        forget(crowd, ids=[crowd.user("tea_pot")])
        with closing(sqlite3.connect(tmp_path / "crowd" / "collect" / "journal.sqlite")) as sql:
            assert sql.execute("SELECT name FROM walks").fetchall() == [("person/x/teaXpot",)]

    def test_what_is_old_and_forgotten_stays_away(self, tmp_path: Path) -> None:
        world = make_world()
        with mastodon(world).open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
            line = world.posts[60].time
            forget(Crowd(tmp_path / "crowd"), before=line)
            assert {row[1] for row in rows(tmp_path / "crowd")} == {
                p.time for p in world.posts if p.time >= line
            }
            done = gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
        assert done.posts == done.removed == 0
        assert min(row[1] for row in rows(tmp_path / "crowd")) == line

    def test_throwing_the_key_away_takes_the_journal_with_it(self, tmp_path: Path) -> None:
        with mastodon(make_world()).open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
        Crowd(tmp_path / "crowd").forget_key()
        assert not (tmp_path / "crowd" / "collect").exists()


class TestPrivacy:
    def test_names_become_pseudonyms_and_no_text_stays_behind(self, tmp_path: Path) -> None:
        with mastodon(make_world()).open() as server:
            gather(tmp_path / "crowd", plan("mastodon", server, "#tea"))
        assert all(len(user) == 32 for user in Crowd(tmp_path / "crowd").posts().collect()["user"])
        journal = tmp_path / "crowd" / "collect" / "journal.sqlite"
        assert b"of mine" not in journal.read_bytes()
        assert [path.name for path in journal.parent.iterdir()] == ["journal.sqlite"]
        assert journal.stat().st_mode & 0o077 == 0
        assert journal.parent.stat().st_mode & 0o077 == 0
        for part in (tmp_path / "crowd" / "parts").iterdir():
            assert b"person1@tea.example" not in part.read_bytes()

    def test_credentials_are_sent_and_written_nowhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setenv("INCROWD_REDDIT_CLIENT_ID", "some-client-id")
        monkeypatch.setenv("INCROWD_REDDIT_CLIENT_SECRET", "very-secret-value")
        with SITES["reddit"][0](make_world()).open() as server:
            out = incrowd(
                capsys,
                *(
                    "collect",
                    "reddit",
                    "--server",
                    server,
                    "--community",
                    "tea",
                    "--crowd",
                    tmp_path / "crowd",
                ),
                *("--contact", CONTACT, "--yes", "--json"),
            )
        assert out.code == 0, out.err
        for secret in ("very-secret-value", "some-client-id", "app-token"):
            assert secret not in out.out + out.err
            for path in (tmp_path / "crowd").rglob("*"):
                assert not path.is_file() or secret.encode() not in path.read_bytes()

    def test_the_keyring_is_asked_if_the_environment_says_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import keyring

        from incrowd.collect.client import find_credential, need_credential

        monkeypatch.setattr(keyring, "get_password", lambda service, name: f"{service}:{name}")
        found = find_credential("reddit-client-id")
        assert found is not None
        assert found.value == "incrowd:reddit-client-id"
        assert "incrowd:" not in repr(found) + str(found)
        monkeypatch.setenv("INCROWD_REDDIT_CLIENT_ID", "from-outside")
        assert need_credential("reddit-client-id", "why").value == "from-outside"
        monkeypatch.delenv("INCROWD_REDDIT_CLIENT_ID")
        monkeypatch.setattr(keyring, "get_password", lambda service, name: None)
        with pytest.raises(
            InputError, match=r"INCROWD_REDDIT_CLIENT_ID.*keyring set incrowd reddit-client-id"
        ):
            need_credential("reddit-client-id", "why")


class TestCommand:
    def test_it_asks_unless_told_yes(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        site = mastodon(make_world())
        with site.open() as server:
            out = incrowd(
                capsys,
                *(
                    "collect",
                    "mastodon",
                    "--server",
                    server,
                    "--community",
                    "#tea",
                    "--crowd",
                    tmp_path / "crowd",
                ),
                *("--contact", CONTACT),
            )
        assert out.code == 2
        assert site.asked == []
        assert not (tmp_path / "crowd").exists()

    def test_a_summary_for_people_and_for_programs(self, tmp_path: Path) -> None:
        done = []
        with mastodon(make_world()).open() as server:
            for extra in ((), ("--json",)):
                run = subprocess.run(
                    [*command(server, tmp_path / "crowd"), *extra],
                    capture_output=True,
                    text=True,
                    check=False,
                )
                assert run.returncode == 0, run.stderr
                assert "up to" in run.stderr
                done.append(run.stdout)
        assert "130 to" in done[0]
        assert json.loads(done[1])["requests"] > 0

    def test_of_too_few_people_no_card_is_made_and_the_posts_are_kept(self, tmp_path: Path) -> None:
        card = tmp_path / "tea.card"
        with mastodon(make_world()).open() as server:
            run = subprocess.run(
                [*command(server, None), "--card", str(card), "--forget"],
                capture_output=True,
                text=True,
                check=False,
            )
        assert run.returncode == 2
        assert "too few to be published" in run.stderr
        assert "incrowd forget" in run.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["tea.card.crowd"]

    def test_a_card_is_made_and_nothing_else_is_kept(self, tmp_path: Path) -> None:
        card = tmp_path / "tea.card"
        with mastodon(make_world(people=120, posts=480, communities=("tea",))).open() as server:
            run = subprocess.run(
                [*command(server, None), "--card", str(card), "--forget"],
                capture_output=True,
                text=True,
                check=False,
            )
        assert run.returncode == 0, run.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["tea.card"]
        made = Card.read(card)
        assert made.head["communities"][0]["people"] in range(90, 160)
        assert "person1" not in card.read_bytes().decode("latin-1")


def test_a_posts_key_is_the_hash_the_store_keeps(tmp_path: Path) -> None:
    post = Post("id 1\0", " jo ", " tea\ud800 ", 1_700_000_000, "words")
    path = tmp_path / "one.jsonl"
    kept = clean(post)
    facts = {name: getattr(kept, name) for name in ("id", "user", "community", "time", "text")}
    path.write_text(json.dumps(facts) + "\n", encoding="utf-8")
    crowd = Crowd.create(tmp_path / "crowd")
    crowd.ingest(path)
    import polars as pl

    (part,) = (tmp_path / "crowd" / "parts").glob("posts*")
    row = pl.read_parquet(part).row(0, named=True)
    assert post_key(kept) == row["id_hi"].to_bytes(8, "big") + row["id_lo"].to_bytes(8, "big")


def test_a_journal_of_another_version_or_of_garbage_is_named(tmp_path: Path) -> None:
    from incrowd.collect.journal import Journal
    from incrowd.errors import CrowdDamaged

    crowd = Crowd.create(tmp_path / "crowd")
    Journal(crowd.path).close()
    path = crowd.path / "collect" / "journal.sqlite"
    with sqlite3.connect(path) as sql:
        sql.execute("UPDATE meta SET value = '99' WHERE name = 'version'")
    sql.close()
    with pytest.raises(CrowdDamaged, match="another version"):
        Journal(crowd.path)
    path.write_bytes(b"garbage " * 1000)
    with pytest.raises(CrowdDamaged, match="Delete it"):
        Journal(crowd.path)


def command(server: str, crowd: Path | None) -> list[str]:
    start = [sys.executable, "-c", "from incrowd.cli import main; main()"]
    where = [] if crowd is None else ["--crowd", str(crowd)]
    return [
        *start,
        "collect",
        "mastodon",
        "--server",
        server,
        "--community",
        "#tea",
        *where,
        "--contact",
        CONTACT,
        "--yes",
    ]


def killed_after(site: Site, requests: int, command: list[str]) -> None:
    """Start a command, and kill it once the server has seen some more requests."""
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    aim, end = len(site.asked) + requests, time.monotonic() + 60
    while len(site.asked) < aim and running.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    running.send_signal(signal.SIGKILL)
    running.wait()
