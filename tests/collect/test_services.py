"""Every service, asked through a server that speaks its documented protocol."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.collect.gathering import CONTACT, gather, plan, rows
from tests.collect.sites import SITES, START, Asked, Reply, Written, mailbox, make_world

from incrowd.collect.client import PoliteClient
from incrowd.collect.journal import clean, post_key
from incrowd.collect.services import SERVICES
from incrowd.crowd import Crowd
from incrowd.errors import InputError, ServerError

FOLLOWING = [name for name in SITES if SERVICES[name].follows_people]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INCROWD_REDDIT_CLIENT_ID", "test-id")
    monkeypatch.setenv("INCROWD_REDDIT_CLIENT_SECRET", "very-secret-value")


@pytest.mark.parametrize("name", SITES)
def test_a_community_and_its_peoples_posts_are_collected(name: str, tmp_path: Path) -> None:
    make, community = SITES[name]
    world = make_world()
    with make(world).open() as server:
        gather(tmp_path / "crowd", plan(name, server, community))
    everywhere = SERVICES[name].follows_people
    wanted = {post.time for post in world.posts if everywhere or post.community == "tea"}
    found = rows(tmp_path / "crowd")
    assert {time for _, time, _ in found} == wanted
    assert len(found) == len(wanted)
    assert all(f"words {time - START} of mine" in text for _, time, text in found)
    assert not any("not mine" in text or "<p>" in text or "other:" in text for _, _, text in found)


@pytest.mark.parametrize("name", FOLLOWING)
def test_people_who_ask_to_be_left_out_are_and_closed_accounts_do_no_harm(name: str, tmp_path: Path) -> None:
    make, community = SITES[name]
    world = make_world()
    says_so = name not in ("hackernews", "stackexchange")  # these have no such wish
    world.refusing = {"person1"} if says_so else set()
    world.closed = {"person2"} if says_so else set()
    with make(world).open() as server:
        done = gather(tmp_path / "crowd", plan(name, server, community))
    times = {time for _, time, _ in rows(tmp_path / "crowd")}
    assert not times & {post.time for post in world.posts if post.user in world.refusing}
    assert times >= {time for _, time in world.seen()}
    assert (done.left_out, done.unavailable) == ((1, 1) if says_so else (0, 0))


@pytest.mark.parametrize("name", SITES)
def test_what_is_deleted_at_the_source_leaves_the_crowd(name: str, tmp_path: Path) -> None:
    make, community = SITES[name]
    world = make_world()
    gone = next(post for post in world.posts if post.number > 60 and post.community == "tea")
    with make(world).open() as server:
        gather(tmp_path / "crowd", plan(name, server, community))
        before = rows(tmp_path / "crowd")
        world.delete(gone.number)
        world.posts.append(Written(500, "person3", "tea", "words 500 of mine"))
        done = gather(tmp_path / "crowd", plan(name, server, community))
    after = rows(tmp_path / "crowd")
    assert done.removed == 1
    assert done.posts == 1
    assert {row[1] for row in before} - {row[1] for row in after} == {gone.time}
    Crowd(tmp_path / "crowd").verify()


@pytest.mark.parametrize("name", SERVICES)
def test_a_wrong_community_is_refused_before_anything_is_asked(name: str) -> None:
    server = "nntp://127.0.0.1:9" if name == "nntp" else "http://127.0.0.1:9"
    service = SERVICES[name](server, PoliteClient(contact=CONTACT))
    for wrong in ("", " ", "a b\n", "x" * 400, "../../etc"):
        with pytest.raises(InputError, match="community:"):
            service.check(wrong)
    assert service.check(service.example)


def test_a_service_on_many_servers_wants_one_and_over_https() -> None:
    for name in ("mastodon", "lemmy", "discourse", "mailman", "nntp"):
        with pytest.raises(InputError, match="server:"):
            SERVICES[name]("", PoliteClient(contact=CONTACT))
    with pytest.raises(InputError, match="https"):
        SERVICES["mastodon"]("http://example.social", PoliteClient(contact=CONTACT))
    assert (
        SERVICES["mastodon"]("example.social", PoliteClient(contact=CONTACT)).server
        == "https://example.social"
    )


def test_a_discourse_category_is_read_topic_by_topic(tmp_path: Path) -> None:
    make, _ = SITES["discourse"]
    world = make_world(posts=50)
    with make(world).open() as server:
        gather(tmp_path / "crowd", plan("discourse", server, "c/cooking/12", communities_only=True))
    assert {time for _, time, _ in rows(tmp_path / "crowd")} == {post.time for post in world.posts}


class TestOnePost:
    """The same post from a dump and from the collector is one post."""

    def test_reddit(self, tmp_path: Path) -> None:
        world = make_world()
        dump = tmp_path / "dump.jsonl"
        lines = []
        for post in world.posts:
            words = (
                {"body": post.text} if post.number % 2 == 0 else {"title": "A title", "selftext": post.text}
            )
            facts = {"author": post.user, "subreddit": post.community, "created_utc": post.time}
            lines.append(json.dumps({"id": f"x{post.number}", **facts, **words}))
        dump.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._same(tmp_path, dump, "reddit", len(world.posts))

    def test_mastodon(self, tmp_path: Path) -> None:
        world = make_world(people=1)
        actor = "https://tea.example/users/person0"
        items = [
            {
                "type": "Create",
                "actor": actor,
                "object": {
                    "id": f"{actor}/statuses/{post.number}",
                    "attributedTo": actor,
                    "published": post.iso,
                    "to": ["https://www.w3.org/ns/activitystreams#Public"],
                    "content": f"<p>{post.text} &amp; #{post.community}</p>",
                },
            }
            for post in world.posts
        ]
        outbox = tmp_path / "outbox.json"
        outbox.write_text(json.dumps({"type": "OrderedCollection", "orderedItems": items}), encoding="utf-8")
        self._same(tmp_path, outbox, "mastodon", len(world.posts), people=1)

    def test_stackexchange(self, tmp_path: Path) -> None:
        world = make_world()
        folder = tmp_path / "cooking.stackexchange.com"
        folder.mkdir()
        files = {"Posts.xml": "posts", "Comments.xml": "comments"}
        for name, tag in files.items():
            lines = []
            for post in world.posts:
                comment = post.number % 3 == 2
                if comment != (tag == "comments"):
                    continue
                user = int(post.user.removeprefix("person")) + 100
                words = f'UserId="{user}" Text="{post.text}"'
                if not comment:
                    title = ' Title="How &amp; why?"' if post.number % 3 == 0 else ""
                    words = f'OwnerUserId="{user}" Body="&lt;p&gt;{post.text}&lt;/p&gt;"{title}'
                lines.append(f'  <row Id="{post.number}" CreationDate="{post.iso[:-1]}.000" {words} />')
            path = folder / name
            path.write_text(f"<{tag}>\n" + "\n".join(lines) + f"\n</{tag}>\n", encoding="utf-8")
        self._same(tmp_path, folder / "Posts.xml", "stackexchange", len(world.posts), folder / "Comments.xml")

    def test_mailman(self, tmp_path: Path) -> None:
        world = make_world(communities=("tea",))
        box = tmp_path / "tea.mbox"
        box.write_bytes(mailbox(world.posts))
        self._same(tmp_path, box, "mailman", len(world.posts), communities=("tea",))

    def test_lemmy_and_hacker_news(self, tmp_path: Path) -> None:
        """What the readers take from saved answers is what the collector takes from them."""
        for name in ("lemmy", "hackernews"):
            folder = tmp_path / name
            folder.mkdir()
            make, community = SITES[name]
            world = make_world(posts=40, communities=("tea",))
            crowd = Crowd.create(folder / "crowd")
            site = make(world)
            with site.open() as server:
                asked = {
                    "lemmy": [
                        Asked(
                            "GET",
                            f"/api/v3/{kind}/list",
                            {"community_name": "tea", "page": "1", "limit": "50"},
                            {},
                        )
                        for kind in ("post", "comment")
                    ],
                    "hackernews": [
                        Asked("GET", "/api/v1/search_by_date", {"tags": "all", "hitsPerPage": "1000"}, {})
                    ],
                }[name]
                site.compress = False
                for number, question in enumerate(asked):
                    (folder / f"{number}.json").write_bytes(site.answer(question)[2])
                    crowd.ingest(folder / f"{number}.json")
                before = crowd.data_hash
                assert crowd.state.tables["posts"].rows == 40
                done = gather(folder / "crowd", plan(name, server, community))
            assert done.posts == 0
            assert Crowd(folder / "crowd").data_hash == before

    def test_discourse(self, tmp_path: Path) -> None:
        world = make_world(people=1, posts=40)
        make, _ = SITES["discourse"]
        with make(world).open() as server:
            lines = ["topic_title,categories,is_pm,post_raw,created_at,url"]
            for post in world.posts:
                lines.append(f"On tea,Food|Tea,No,{post.text},{post.iso},{server}/t/on-tea/7/{post.number}")
            archive = tmp_path / "user_archive-1.csv"
            archive.write_text("\n".join(lines) + "\n", encoding="utf-8")
            crowd = Crowd.create(tmp_path / "crowd")
            crowd.ingest(archive, user="person0")
            assert crowd.state.tables["posts"].rows == 40
            before = crowd.data_hash
            done = gather(tmp_path / "crowd", plan("discourse", server, "all"))
        assert done.posts == 0
        assert Crowd(tmp_path / "crowd").data_hash == before

    def _same(self, folder: Path, dump: Path, name: str, count: int, *more: Path, **world: object) -> None:
        make, community = SITES[name]
        crowd = Crowd.create(folder / "crowd")
        crowd.ingest([dump, *more])
        assert crowd.state.tables["posts"].rows == count
        before = crowd.data_hash
        with make(make_world(**world)).open() as server:  # type: ignore[arg-type]
            done = gather(folder / "crowd", plan(name, server, community))
        assert done.posts == 0
        assert set(done.set_aside) == {"duplicate"}
        assert Crowd(folder / "crowd").data_hash == before


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)


class Scripted(PoliteClient):
    """A client that answers with whatever it is told to."""

    answer: object = None

    def json(self, *_: object, **__: object) -> object:
        return self.answer

    def post(self, *_: object, **__: object) -> object:
        return {"access_token": "x", "accessJwt": "x"}


@pytest.mark.parametrize("name", [name for name in SITES if name != "mailman"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_a_server_answers_is_a_page_or_a_sentence(name: str, data: st.DataObject) -> None:
    """Sound answers in which one thing is replaced by anything at all."""
    _, community = SITES[name]
    client = Scripted(contact=CONTACT)
    service = SERVICES[name]("http://127.0.0.1:9", client)
    answer = _sound(name, data)
    client.answer = _spoilt(answer, data)
    for ask in (service.newest, service.posts_of):
        try:
            page = ask(service.check(community) if ask == service.newest else "person1", "")
        except ServerError:
            continue
        for post in page.posts:
            kept = clean(post)
            post_key(kept)
            json.dumps(kept.__dict__)
        assert all(isinstance(cursor, str) for cursor in page.cursors)


ANSWERS: dict[str, list[object]] = {}


def _sound(name: str, data: st.DataObject) -> object:
    """Return an answer that the test's server gave."""
    if name not in ANSWERS:
        make, community = SITES[name]
        site = make(make_world(posts=12))
        found: list[object] = []
        answer = site.answer
        site.compress = False

        def kept(asked: Asked) -> Reply:
            reply = answer(asked)
            if reply[0] == 200 and asked.path != "/robots.txt":
                found.append(json.loads(reply[2]))
            return reply

        site.answer = kept  # type: ignore[method-assign]
        with site.open() as server, TemporaryDirectory() as folder:
            gather(Path(folder) / "crowd", plan(name, server, community))
        ANSWERS[name] = found
    return data.draw(st.sampled_from(ANSWERS[name]))


def _spoilt(value: object, data: st.DataObject) -> object:
    """Return a copy of an answer in which one place holds something else."""
    if isinstance(value, dict) and value and data.draw(st.booleans() | st.just(True)):
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.integers(0, 9)) == 0:
            return {name: inner for name, inner in value.items() if name != key}
        return {**value, key: _spoilt(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 5)):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], _spoilt(value[at], data), *value[at + 1 :]]
    return data.draw(JSON_VALUES)


def test_a_token_that_ran_out_is_asked_for_again(tmp_path: Path) -> None:
    site = SITES["reddit"][0](make_world())
    left = [1]

    def expired(asked: Asked) -> Reply | None:
        if asked.path.startswith("/user/person3/") and left[0]:
            left[0] -= 1
            return 401, {"content-type": "application/json"}, b"{}"
        return None

    site.fault = expired
    with site.open() as server:
        done = gather(tmp_path / "crowd", plan("reddit", server, "tea"))
    assert done.unavailable == 0
    assert sum(asked.path == "/api/v1/access_token" for asked in site.asked) == 2
    assert len(rows(tmp_path / "crowd")) == 130
