"""The collecting loop of paper 000, section 6.2: the communities' newest posts, then each new author's last posts.

One loop for all services. Pages go into the journal as they come; from there posts are imported in large batches, each
import all or nothing; a post edited since takes the place of its earlier version. At the end of a run what was deleted
at the source since the last one leaves the crowd, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from incrowd.collect.client import Forbidden, NotThere, PoliteClient, credential_variable
from incrowd.collect.journal import ENDED, LIMITED, OPEN, Journal
from incrowd.collect.services import Page, Post, service_named
from incrowd.crowd import Crowd
from incrowd.crowd.forget import FORGOTTEN, remove
from incrowd.crowd.ingest import LEAST, Progress
from incrowd.crowd.schema import COLUMNS, check
from incrowd.errors import InputError, ServerError

BATCH_POSTS = 20_000
"""Posts that make an import worthwhile. More would take more memory, and to import so few takes a second, whatever the
size of the crowd; every eighth import puts the table's parts together, a few seconds for a million posts."""
BATCHES = 500
"""A crowd of so many batches is imported into in larger ones, so that this does not become most of the work."""
IMPORT_MEMORY = LEAST
"""What an import may take: the least it needs, which is the most that a long collection comes to."""
SECONDS_A_REQUEST = 0.4
"""What a request takes beside the pause: a usual answer over the network."""
MOST_BARREN_PAGES = 100
"""So many pages in a row with nobody and nothing on them are a server that goes on for ever."""
LONGEST_CURSOR = 4096
BYTES_A_POST = 1500
"""About what a service sends for a post, compressed: most of it is not text."""


@dataclass(frozen=True, kw_only=True)
class CollectPlan:
    """What to collect, and how much of it."""

    service: str
    communities: tuple[str, ...]
    server: str = ""
    newest: int = 1000
    """Posts of each community in each round."""
    per_author: int = 1000
    """Posts of each author."""
    people: int = 1000
    """Authors whose posts are collected."""
    rounds: int = 1
    """How often the communities are looked at."""
    communities_only: bool = False
    """Whether authors are not followed."""
    only_new: bool = False
    """Whether people and posts of earlier collections are not looked at again; deletions then stay unnoticed."""
    contact: str = ""
    pause: float = 0.0
    """Seconds between two requests, if more than the service's own."""

    def checked(self) -> CollectPlan:
        """Return the plan, or complain about it; nothing is asked for yet."""
        if not self.communities:
            raise InputError("--community: expected at least one community, got none.")
        for name, least in (("newest", 1), ("per_author", 1), ("people", 0), ("rounds", 1)):
            if getattr(self, name) < least:
                raise InputError(f"--{name.replace('_', '-')}: expected at least {least}.")
        if not 0 <= self.pause < math.inf:
            raise InputError("--pause: expected a number of seconds, 0 or more.")
        return self


@dataclass(frozen=True, kw_only=True)
class CollectCost:
    """What a plan costs, told before the first request: the most, but for long posts and troubles that need more."""

    requests: int
    minutes: float
    people: int
    posts: int
    bytes: int
    done: int
    """Requests of an unfinished collection that need not be made again."""

    def to_dict(self) -> dict[str, float]:
        """Return plain JSON-ready types."""
        return {**self.__dict__, "minutes": round(self.minutes, 1)}


@dataclass(kw_only=True)
class Collected:
    """What a collection did."""

    requests: int = 0
    bytes: int = 0
    waited: float = 0.0
    posts: int = 0
    """Posts the crowd did not have before."""
    edited: int = 0
    """Posts that were edited at the source since, and are in the crowd as they are now."""
    set_aside: dict[str, int] = field(default_factory=dict)
    people: int = 0
    """People whose posts were asked for."""
    left_out: int = 0
    """People who do not want to be collected."""
    unavailable: int = 0
    """People whose accounts are closed or hidden."""
    removed: int = 0
    """Posts that left the crowd: deleted at the source, or their author wants to be left out."""
    stopped: str | None = None
    """Why it stopped before its end; the same command goes on."""

    def to_dict(self) -> dict[str, object]:
        """Return plain JSON-ready types."""
        return {**self.__dict__, "waited": round(self.waited, 1)}


class Collector:
    """Collects into one crowd by one plan; use it in a with statement."""

    def __init__(self, plan: CollectPlan, crowd: Crowd, client: PoliteClient | None = None) -> None:
        self.plan = plan.checked()
        kind = service_named(plan.service)
        self.client = client or PoliteClient(
            contact=plan.contact, pause=max(kind.pause, plan.pause), robots=kind.robots
        )
        self.service = kind(plan.server, self.client)
        self.communities = [self.service.check(name) for name in plan.communities]
        self.crowd = crowd
        self.journal = Journal(crowd.path)
        self._names = crowd.naming()
        self._left_out = self.journal.left_out()
        self._progress: Progress = lambda done, total, what: None
        self.result = Collected()

    def __enter__(self) -> Collector:
        return self

    def __exit__(self, *_: object) -> None:
        self.journal.close()
        self.service.close()
        self.client.close()

    @property
    def _source(self) -> str:
        """The part of listings' names that tells servers apart."""
        return f"{self.service.name} {self.service.server}"

    # Before

    def estimate(self) -> CollectCost:
        """Return what the plan costs if everybody has posted as much as is asked for."""
        plan, service = self.plan, self.service
        follows = service.follows_people and not plan.communities_only
        authors = len(self.communities) * plan.rounds * plan.newest
        people = min(plan.people, authors) if follows else authors
        # That a list has ended may take a page to find out.
        newest = len(self.communities) * plan.rounds * (math.ceil(plan.newest / service.page_posts) + 1)
        profiles = authors if service.needs_profile("") else 0
        each = math.ceil(plan.per_author / service.page_posts) + 1 if follows else 0
        requests = newest + profiles + people * each
        posts = authors + (people * plan.per_author if follows else 0)
        done = self.journal.requests
        left = max(0, requests - done)
        seconds = left * (self.client.gap(self.service.host) + SECONDS_A_REQUEST)
        return CollectCost(
            requests=left,
            minutes=seconds / 60,
            people=people,
            posts=posts,
            bytes=posts * BYTES_A_POST,
            done=done,
        )

    # The loop

    def run(self, progress: Progress | None = None) -> Collected:
        """Collect, import, and remove what is gone; a server's refusal ends it after what came is safe."""
        self._progress = progress or self._progress
        self.journal.begin()
        try:
            self._rounds()
            self._check_wishes()
        except ServerError as error:
            self.result.stopped = str(error) + self._hint(error)
            self._import()
        else:
            self._import()
            self._remove()
            self._sum_up()
            self.journal.finish()
        return self._sum_up()

    def _hint(self, error: ServerError) -> str:
        """Say which credentials the service takes, where it showed us nothing."""
        names = [credential_variable(name) for name in self.service.wants]
        return (
            f" Set {' and '.join(names)} if you have them." if names and isinstance(error, Forbidden) else ""
        )

    def _rounds(self) -> None:
        for number in range(1, self.plan.rounds + 1):
            for community in self.communities:
                self._community(community, number)
            if self.service.follows_people and not self.plan.communities_only:
                self._people()

    def _community(self, community: str, number: int) -> None:
        kind = "community" if number == 1 else f"community#{number}"
        self._walk(
            f"{kind}/{self._source}/{community}",
            lambda cursor: self.service.newest(community, cursor),
            self.plan.newest,
            round_number=number,
        )

    def _people(self) -> None:
        while self.journal.people()[0] < self.plan.people:
            person = self.journal.next_person(only_new=self.plan.only_new)
            if person is None:
                return
            self._person(*person)

    def _check_wishes(self) -> None:
        """Ask the others, whose posts only a community showed, whether they want to be left out."""
        while (person := self.journal.next_unchecked()) is not None:
            self._person(*person, pages=1)

    def _person(self, account: str, user: str, pages: int | None = None) -> None:
        if self._reason(user) == FORGOTTEN:
            self.journal.visited(account)
            return
        name = f"person/{self._source}/{account}"
        try:
            self._walk(
                name,
                lambda cursor: self.service.posts_of(account, cursor),
                self.plan.per_author,
                pages=pages,
                user=user,
            )
        except (NotThere, Forbidden) as error:
            # A closed account's posts are gone; a hidden one's are not for us.
            self.result.unavailable += 1
            if isinstance(error, NotThere):
                self._end(name, ENDED)
        self.journal.visited(account, only_checked=pages is not None)

    def _walk(
        self,
        name: str,
        ask: Callable[[str], Page],
        limit: int,
        *,
        pages: int | None = None,
        round_number: int = 1,
        user: str | None = None,
    ) -> None:
        """Ask for a listing's pages until there are enough posts, no more pages, or nothing new."""
        walk = self.journal.walk(name)
        posts, asked, barren = walk.posts, 0, 0
        while walk.state == OPEN:
            if posts >= limit:
                return self._end(name, LIMITED)
            if asked == pages:
                return None
            cursor = self.journal.next_cursor(name)
            if cursor is None:
                return self._end(name, ENDED)
            page = self._taken(ask(cursor), limit - posts, user)
            checked = not self.service.needs_profile(page.people[0][0] if page.people else "")
            new = self.journal.add(name, cursor, page, checked=checked, round_number=round_number)
            posts, asked = posts + page.found, asked + 1
            barren = 0 if page.found else barren + 1
            self._report()
            if page.left_out:
                return self._end(name, ENDED)
            if barren >= MOST_BARREN_PAGES or self._nothing_new(new, page, round_number):
                return self._end(name, LIMITED)
        return None

    def _nothing_new(self, new: int, page: Page, round_number: int) -> bool:
        """Say whether a page shows that the rest is known: in later rounds, or where only news are wanted."""
        return bool(page.posts) and not new and (round_number > 1 or self.plan.only_new)

    def _end(self, name: str, state: str) -> None:
        self.journal.walk(name)
        self.journal.end_walk(name, state, self.service.most_listed, ordered=self.service.ordered)

    def _taken(self, page: Page, room: int, user: str | None) -> Page:
        """Return the part of a page that may be kept, and note who does not want to be."""
        for name in page.refused:
            self._leave_out(name, REFUSED)
        if page.left_out and user is not None:
            self._leave_out(user, REFUSED)
        elif user is not None and (page.posts or page.cursors):
            self._welcome(user)
        for account, name in page.people:
            if not self.service.needs_profile(account):
                self._welcome(name)
        if any(len(cursor) > LONGEST_CURSOR for cursor in page.cursors):
            raise self.service.wrong("the next page")
        before = int(self.journal.meta("before") or 0)
        posts = [
            post
            for post in page.posts[:room]
            if self._reason(post.user) is None and (post.time is None or post.time >= before)
        ]
        people = [pair for pair in page.people if self._reason(pair[1]) is None]
        return Page(
            posts=() if page.left_out else tuple(posts),
            part=page.part,
            people=tuple(people),
            cursors=page.cursors,
            left_out=page.left_out,
        )

    def _reason(self, user: str) -> str | None:
        return self._left_out.get(self._names.of(user.strip())) if self._left_out else None

    def _leave_out(self, user: str, reason: str) -> None:
        identity = self._names.of(user.strip())
        if self._left_out.get(identity) is None:
            self._left_out[identity] = reason
            self.journal.leave_out(identity, reason)
            self.result.left_out += 1

    def _welcome(self, user: str) -> None:
        """Note that a person no longer asks to be left out."""
        if self._reason(user) == REFUSED:
            del self._left_out[self._names.of(user.strip())]
            self.journal.welcome(self._names.of(user.strip()))

    def _report(self) -> None:
        visited, known = self.journal.people()
        staged = self.journal.staged()
        total = min(self.plan.people, known) or None
        self._progress(
            visited, total, f"{self.client.requests:,} requests, {staged:,} posts waiting, {visited:,} people"
        )
        rows = self.crowd.state.tables["posts"].rows
        if staged >= max(BATCH_POSTS, rows // BATCHES):
            self._import()

    # Into the crowd and out of it

    def _import(self) -> None:
        """Import the posts that wait, all or nothing; offered again after a kill, they are known by their ids."""
        self._progress(0, None, "importing")
        edited = self.journal.edited()
        # Earlier versions go first: of two rows with one id the store keeps the one it has.
        replaced = remove(self.crowd, keys=edited).rows if edited else 0
        self.result.edited += replaced
        path = self.journal.folder / f"{self.service.name}-{self.journal.run}.jsonl"
        last, usable = self._write(path)
        try:
            if usable:
                report = self.crowd.ingest(
                    path,
                    kind="posts",
                    format="jsonl",
                    columns={name: name for name in _COLUMNS},
                    wait=True,
                    memory=IMPORT_MEMORY,
                )
                self.result.posts += max(0, report.added - replaced)
                for reason, count in report.reasons.items():
                    self.result.set_aside[reason] = self.result.set_aside.get(reason, 0) + count
            self.journal.imported(last)
        finally:
            path.unlink(missing_ok=True)

    def _write(self, path: Path) -> tuple[int, bool]:
        """Write the posts that wait as JSON lines; return the last one's place, and whether any is worth importing."""
        last, usable, some = 0, False, []
        path.unlink(missing_ok=True)
        with path.open("x", encoding="utf-8") as file:
            path.chmod(0o600)
            for place, post in self.journal.waiting():
                last = max(last, place)
                if self._reason(post.user) is not None:
                    continue
                # The run makes the bytes new: what was forgotten since can be collected again.
                line = {**{name: getattr(post, name) for name in _COLUMNS}, "run": self.journal.run}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
                if not usable:
                    some.append(post)
                    if len(some) >= 1000:
                        usable, some = _any_usable(some), []
        return last, usable or _any_usable(some)

    def _remove(self) -> None:
        """Take what was deleted at the source, and who does not want to be in it, out of the crowd."""
        keys, people = self.journal.gone(), self.journal.to_clear()
        if keys or people:
            self._progress(0, None, "removing what is gone")
            self.result.removed += remove(self.crowd, ids=people, keys=keys).rows
        self.journal.drop_gone()
        self.journal.cleared()

    def _sum_up(self) -> Collected:
        result, client = self.result, self.client
        result.requests, result.bytes, result.waited = client.requests, client.received, client.waited
        if self.journal.run is not None:
            result.people = self.journal.people()[0]
        return result


REFUSED = "refused"
_COLUMNS = ("id", "user", "community", "time", "text")


def _any_usable(posts: list[Post]) -> bool:
    """Say whether an import would take any of some posts; one without a usable row is refused as a mistake."""
    if not posts:
        return False
    rows = pl.DataFrame(
        {name: [getattr(post, name) for post in posts] for name in COLUMNS["posts"]}, schema=COLUMNS["posts"]
    ).with_row_index("row")
    return check(rows, "posts", now=2**40).rows.height > 0
