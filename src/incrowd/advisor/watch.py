"""Follows new posts and says so when a line is crossed: once a crossing, also after being killed.

::

    a growing file, standard input, or the crowd's folder
        │ posts the crowd did not have, by the readers and the checks of an import
        ▼
    the person's levels, by the rule of the verdict, and numbers that they drew lines
    for, kept up to date by the measures (measures/following.py)
        │ a question comes to another level, or a number changes sides of a line (watch_policy.py)
        ▼
    the alert is written down first, then delivered (watch_alerts.py)

The state of a line is what was written down last. After a restart the posts up to the last alert are taken in again
in silence; then the numbers are compared with that state, and whatever differs is a crossing.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.advisor.answer import Theme
from incrowd.advisor.watch_alerts import Alert, AlertLog, Sink, alert_id, drop_unfinished_line
from incrowd.advisor.watch_policy import (
    NOT_BY_YOU,
    WatchedLevels,
    WatchPolicy,
    default_policy,
    is_crossed,
    question_key,
    say_level,
    say_line,
)
from incrowd.crowd import Crowd
from incrowd.crowd.array_cache import identity
from incrowd.crowd.disk import AS_BYTES
from incrowd.crowd.manifest import PARTS_FOLDER, load
from incrowd.crowd.readers.base import ReadOptions
from incrowd.crowd.schema import check
from incrowd.crowd.sources import open_files
from incrowd.crowd.staging import add_hashes
from incrowd.errors import CrowdDamaged, CrowdError, InputError, NotInCrowd, UnreadableSource
from incrowd.measures.following import FollowedPost, Follower, GrowingCrowd, Line, LineReading
from incrowd.measures.prepared import PreparedCrowd, naming
from incrowd.measures.protocol import SMALLEST_CROWD, AdvisorOptions, Level, ThemeName, measure_named

if TYPE_CHECKING:
    from incrowd.crowd import Crowd


PIECE_BYTES = 16 * 2**20
ATTEMPTS = 3


@dataclass
class Skipped:
    """Lines that brought nothing, by reason; never their text."""

    reasons: Counter[str] = field(default_factory=Counter)

    def sentence(self) -> str:
        """Say how many and why."""
        return ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.reasons.items()))


class Newcomers:
    """Tells posts that the crowd does not have, by the rule of an import."""

    def __init__(self, crowd: Crowd) -> None:
        with crowd.connect() as database:
            rows = database.sql(
                "SELECT coalesce(id_hi, content_hi) AS hi FROM "
                + crowd.source_sql("posts", ("content_hi", "id_hi"))
            ).fetchnumpy()
        hashes = np.ma.getdata(rows["hi"]).astype(np.uint64) if len(rows["hi"]) else np.zeros(0, np.uint64)
        self._there = np.sort(hashes)
        self._seen: Counter[int] = Counter()

    def is_new(self, content: int, named: int | None) -> bool:
        """Say whether a post is new: by its own id if it has one, else by being one more of its content."""
        key = content if named is None else named
        self._seen[key] += 1
        at = np.uint64(key)
        there = int(np.searchsorted(self._there, at, "right") - np.searchsorted(self._there, at, "left"))
        allowed = there if named is None else (1 if there else 0)
        return self._seen[key] > allowed and (named is None or self._seen[key] == 1)


class GrowingFile:
    """JSON lines that somebody else appends to; only finished lines are read."""

    def __init__(self, path: Path, crowd: Crowd, format: str = "auto") -> None:
        self._path, self._crowd, self._format = path, crowd, format
        self._at = self._lines = 0
        self._newcomers = Newcomers(crowd)
        self.skipped = Skipped()

    def posts(self) -> Iterator[tuple[int, FollowedPost]]:
        """Yield what was appended since the last call: the number of its line, and the post."""
        for piece in self._pieces():
            count = piece.count(b"\n")
            yield from self._read(piece, self._lines)
            self._lines += count

    def _pieces(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < self._at:
                    raise InputError(
                        f"{self._path}: the file became shorter than what was read of it. Import what it held with "
                        "incrowd ingest, then start the watch with a new --state."
                    )
                file.seek(self._at)
                rest = b""
                while data := file.read(PIECE_BYTES):
                    rest += data
                    whole, rest = rest[: rest.rfind(b"\n") + 1], rest[rest.rfind(b"\n") + 1 :]
                    if whole:
                        self._at += len(whole)
                        yield whole
        except FileNotFoundError:
            raise UnreadableSource(f"{self._path}: no such file to follow; make it, even empty") from None

    def _read(self, piece: bytes, lines_before: int) -> Iterator[tuple[int, FollowedPost]]:
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            file.write(piece)
            file.flush()
            try:
                for rows in self._checked(Path(file.name)):
                    yield from self._new(rows, lines_before)
            except InputError:
                # A piece without one readable record; the next one may have some.
                self.skipped.reasons["unreadable"] += piece.count(b"\n")

    def _checked(self, piece: Path) -> Iterator[pl.DataFrame]:
        """Read, check, pseudonymise and hash rows as an import does."""
        (source,) = open_files([piece], self._format, ReadOptions(kind="posts"))
        names = naming(self._crowd.path)
        if names is None:
            raise CrowdError(
                f"{self._crowd.path}: the crowd's key was thrown away, so new posts have no owner here"
            )
        with self._crowd.connect() as database:
            for batch in source.batches(PIECE_BYTES):
                checked = check(batch.rows, "posts", now=int(time.time()))
                for rejects in (batch.rejects, checked.rejects):
                    self.skipped.reasons.update(rejects["reason"].to_list())
                named = checked.rows.with_columns(names.replace(checked.rows["user"]).alias("user"))
                yield add_hashes(database, named, "posts")

    def _new(self, rows: pl.DataFrame, lines_before: int) -> Iterator[tuple[int, FollowedPost]]:
        columns = ("row", "user", "community", "time", "text", "content_hi", "id_hi")
        for row, user, community, when, text, content, named in rows.select(columns).iter_rows():
            if self._newcomers.is_new(content, named):
                yield lines_before + row, FollowedPost(user, community, when, text)
            else:
                self.skipped.reasons["duplicate"] += 1


class CrowdFolder:
    """The crowd itself: what imports added since the last look."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd

    def look(self) -> tuple[Crowd, pl.DataFrame | None] | None:
        """Return the crowd's new state and the posts it brought, or None if it is unchanged.

        No posts: an import has put the tables together anew, and everything must be read again.
        """

        if load(self.crowd.path).data_hash == self.crowd.data_hash:
            return None
        before = {part.file for part in self.crowd.state.tables["posts"].parts}
        self.crowd = _opened(self.crowd.path)
        after = {part.file for part in self.crowd.state.tables["posts"].parts}
        if not before <= after:
            return self.crowd, None
        paths = [self.crowd.path / PARTS_FOLDER / name for name in sorted(after - before)]
        wanted = ["user", "community", "time", "text"]
        frames = [pl.read_parquet(path, columns=wanted).select(wanted) for path in paths]
        return self.crowd, pl.concat(frames) if frames else pl.DataFrame(
            schema=dict.fromkeys(wanted, pl.String)
        )


def _opened(path: Path) -> Crowd:
    """Open a crowd; an import that commits in this very moment takes old parts away, so try again."""
    for _ in range(ATTEMPTS):
        try:
            return Crowd(path)
        except CrowdDamaged:
            time.sleep(0.1)
    return Crowd(path)


RECEIVED_NAME = "received.jsonl"
"""Standard input cannot be read twice, so what came in is kept until the watch is started anew."""


class Watch:
    """One person's watch over one crowd.

    Parameters
    ----------
    crowd, user
        Who is watched, by name; they need not have written anything yet if a policy is given.
    policy
        The lines; None: those of :func:`~incrowd.advisor.watch_policy.default_policy`.
    state
        A folder of its own, which makes restarts lose and repeat nothing.
    sinks
        Where alerts go; :func:`~incrowd.advisor.watch_alerts.sinks_of` makes those a policy names.
    follow
        A file of JSON lines to follow; None: the crowd's own imports.
    """

    def __init__(
        self,
        crowd: Crowd,
        user: str,
        policy: WatchPolicy | None,
        state: Path,
        *,
        sinks: Iterable[Sink],
        follow: Path | None = None,
        space: Any = None,
        options: AdvisorOptions | None = None,
    ) -> None:
        self._options = options or AdvisorOptions()
        if space is not None:
            self._options = replace(self._options, space=space)
        self._sinks = list(sinks)
        self._log: AlertLog | None = None
        self._user = _owner(crowd, user)
        self.policy = policy or self._own_policy(crowd)
        self._log = AlertLog(state, identity(f"{self._user}").decode())
        self._live = self._open(crowd)
        self._levels = self._open_levels(crowd)
        self._levels_moved = True
        self._folder = CrowdFolder(crowd)
        self.file = None if follow is None else GrowingFile(follow, crowd)
        self._caught_up = False

    def close(self) -> None:
        """Let go of the state."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def readings(self) -> dict[Line, LineReading]:
        """Return where the person stands on every line."""
        return {line: self._live.reading(line) for line in self.policy.lines}

    def standings(self) -> dict[ThemeName, Theme]:
        """Return at which level the person stands on every question that is watched."""
        if self._levels is None:
            return {}
        return {question: self._levels.standing(question) for question in self.policy.questions}

    def step(self) -> list[Alert]:
        """Take in what is new, decide, deliver; return the alerts that were decided."""
        decided = self._follow_crowd() if self.file is None else self._follow_file(self.file)
        self._deliver()
        return decided

    def run(self, every: float, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Go on until interrupted."""
        while True:
            self.step()
            sleep(every)

    # What is new

    def _follow_file(self, file: GrowingFile) -> list[Alert]:
        decided: list[Alert] = []
        # A state that followed the crowd before has no line number to go on from.
        known = self.log.position if isinstance(self.log.position, int) else 0
        last = known
        for position, post in file.posts():
            if position > known:
                decided += self._catch_up(known)
                decided += self._decide(self._live.add(post), position)
            else:
                self._live.add(post)
            if self._levels is not None and self._levels.add(post, new=position > known):
                self._levels_moved = True
            last = max(last, position)
        decided += self._catch_up(known)
        # Levels take seconds: once for all that came, not after every post.
        return decided + self._decide_levels(last)

    def _catch_up(self, position: int | str) -> list[Alert]:
        """Compare all lines once with what was written down before this start."""
        if self._caught_up:
            return []
        self._caught_up = True
        return self._decide(self.policy.lines, position)

    def _follow_crowd(self) -> list[Alert]:
        found = self._folder.look()
        if found is None:
            state = self._folder.crowd.data_hash
            return self._catch_up(state) + self._decide_levels(state)
        self._caught_up = True
        crowd, posts = found
        own = () if posts is None else (FollowedPost(*row) for row in posts.iter_rows())
        self._levels = self._open_levels(crowd, [post for post in own if post.user == self._user])
        self._levels_moved = True
        if posts is None:
            self._live = self._open(crowd)
            decided = self._decide(self.policy.lines, crowd.data_hash)
            return decided + self._decide_levels(crowd.data_hash)
        touched: set[Line] = set()
        for row in posts.iter_rows():
            touched |= self._live.add(FollowedPost(*row))
        return self._decide(touched, crowd.data_hash) + self._decide_levels(crowd.data_hash)

    # Alerts

    @property
    def log(self) -> AlertLog:
        """What was written down."""
        if self._log is None:
            raise ValueError("the watch is closed")
        return self._log

    def _decide(self, lines: Iterable[Line], position: int | str) -> list[Alert]:
        """Write down every line among some that is on another side than it was."""
        wanted = set(lines)
        alerts = []
        for line in self.policy.lines:
            if line in wanted:
                was, crossings = self.log.sides.get(line.key, (False, 0))
                reading = self._live.reading(line)
                if is_crossed(line, reading) != was:
                    alerts.append(self._alert(line, reading, crossings + 1, position))
        self.log.decide(alerts)
        return alerts

    def _decide_levels(self, position: int | str) -> list[Alert]:
        """Write down every question that has come to another level; what cannot be told changes nothing."""
        if self._levels is None or not self._levels_moved:
            return []
        alerts = []
        for question, now in self.standings().items():
            before = self.log.levels.get(question_key(question))
            if now.level is not Level.CANNOT_TELL and now.level is not (before or Level.WELL_HIDDEN):
                alerts.append(self._level_alert(self._levels, question, before, position))
        self.log.decide(alerts)
        self._levels.settle()
        self._levels_moved = False
        return alerts

    def _level_alert(
        self, levels: WatchedLevels, question: ThemeName, before: Level | None, position: int | str
    ) -> Alert:
        now, key = levels.standing(question), question_key(question)
        worse = now.level.severity > (before or Level.WELL_HIDDEN).severity
        came_with = levels.came_with(question) if worse else ""
        if worse and before is not None:
            came_with = came_with or NOT_BY_YOU
        crossing = self.log.sides.get(key, (False, 0))[1] + 1
        return Alert(
            id=alert_id(self.log.owner, key, crossing),
            line=key,
            crossing=crossing,
            crossed=worse,
            value=now.risk,
            of=levels.people,
            position=position,
            sentence=say_level(question, now, before, came_with),
            time=int(time.time()),
            level=str(now.level),
        )

    def _alert(self, line: Line, reading: LineReading, crossing: int, position: int | str) -> Alert:
        crossed = is_crossed(line, reading)
        back = "Back on the right side: " if reading.defined and not crossed else ""
        return Alert(
            id=alert_id(self.log.owner, line.key, crossing),
            line=line.key,
            crossing=crossing,
            crossed=crossed,
            value=float(reading.value) if reading.defined else None,
            of=reading.of,
            position=position,
            sentence=back + say_line(line, reading),
            time=int(time.time()),
        )

    def _deliver(self) -> None:
        for sink in self._sinks:
            for alert in self.log.pending(sink.name):
                if not sink.deliver(alert):
                    break  # in order: the next step tries again
                self.log.delivered(alert, sink.name)

    # Setting up

    def _open(self, crowd: Crowd) -> WatchedPerson:
        return WatchedPerson(self._prepared(crowd), self._user, self.policy.lines, self._options)

    def _open_levels(self, crowd: Crowd, imported: Iterable[FollowedPost] = ()) -> WatchedLevels | None:
        if not self.policy.questions:
            return None
        return WatchedLevels(self._prepared(crowd), self._user, self._options, imported)

    def _prepared(self, crowd: Crowd) -> PreparedCrowd:
        return PreparedCrowd.of(crowd, self._options.text, self._options.memory)

    def _own_policy(self, crowd: Crowd) -> WatchPolicy:
        if not self._prepared(crowd).population.of(self._user):
            raise InputError(
                "this person has not written anything yet, so there is nothing to watch without a --policy"
            )
        return default_policy()


class WatchedPerson:
    """The readings of all lines of one person, kept up to date by the measures the lines are about."""

    def __init__(
        self, crowd: PreparedCrowd, user: str, lines: Iterable[Line], options: AdvisorOptions
    ) -> None:
        self._crowd = GrowingCrowd(crowd, user)
        by_measure: dict[str, list[Line]] = {}
        for line in lines:
            by_measure.setdefault(line.measure, []).append(line)
        self._followers: dict[str, Follower] = {
            name: measure_named(name).follow(self._crowd, some, options) for name, some in by_measure.items()
        }

    def add(self, post: FollowedPost) -> set[Line]:
        """Take in a post; return the lines whose reading may have changed."""
        self._crowd.add(post)
        return {line for one in self._followers.values() for line in one.add(post)}

    def reading(self, line: Line) -> LineReading:
        """Return where the person stands; a handful of people is no crowd."""
        reading = self._followers[line.measure].reading(line)
        if reading.defined and reading.of < SMALLEST_CROWD:
            reason = f"fewer than {SMALLEST_CROWD} people are no crowd"
            return LineReading(value=math.nan, of=reading.of, reason=reason)
        return reading


def _owner(crowd: Crowd, user: str) -> str:
    """Return the person's id; somebody who is not in the crowd yet gets the id they will have."""

    try:
        return PreparedCrowd.of(crowd).user_id(user)
    except NotInCrowd:
        names = naming(crowd.path)
        if names is None:
            raise
        return names.of(user.strip())


def spool_standard_input(folder: Path) -> Path:
    """Make the file that keeps what standard input brings, and return it; a line cut by a kill is dropped."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / RECEIVED_NAME
    file = os.open(path, os.O_RDWR | os.O_CREAT | AS_BYTES, 0o600)
    try:
        drop_unfinished_line(file)
    finally:
        os.close(file)
    return path


def receive(path: Path, step: Callable[[], object]) -> None:
    """Append standard input to the file as it comes, and take a step after each part, until it ends."""
    source = sys.stdin.fileno()
    with path.open("ab", buffering=0) as file:
        step()
        while data := os.read(source, 2**16):
            file.write(data)
            step()
        file.write(b"\n")  # the last line may lack it; an empty line says nothing
        step()
