"""What is watched: the questions of the label, and lines that a person draws in a TOML file; as values.

A question's level follows from the rule of one person's verdict. The person's own new posts are added to what the crowd
holds, as a draft would be; what others post counts from the next import on, when the crowd is opened anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.advisor.answer import Theme
from incrowd.advisor.assessor import unless_only_a_card
from incrowd.advisor.combine import theme
from incrowd.errors import InputError
from incrowd.measures.following import FollowedPost, Line, LineReading
from incrowd.measures.protocol import (
    AdvisorOptions,
    Changes,
    Finding,
    Findings,
    Level,
    Measure,
    NewPost,
    Person,
    PreparedCrowd,
    Ready,
    ThemeName,
    measure_named,
    moved_by_posts,
    registered,
)
from incrowd.policy_file import TITLE, load_toml, read_settings
from incrowd.wording import say_day

NOT_BY_YOU = "No new post of yours did it: others write differently now."


def watchable_questions() -> tuple[ThemeName, ...]:
    """Return the questions that a post can move, in the order of the label."""
    moved = {one.theme for one in moved_by_posts()}
    return tuple(name for name in ThemeName if name in moved)


def question_key(question: ThemeName) -> str:
    """Return what makes a question the same line after a restart."""
    return f"level|{question}"


class WatchedLevels:
    """One person's questions in one state of a crowd, and the person's posts that are new to it.

    Parameters
    ----------
    imported
        Posts of the person that the crowd's last import brought: they are in the crowd, and new.
    """

    def __init__(
        self,
        crowd: PreparedCrowd,
        user: str,
        options: AdvisorOptions,
        imported: Iterable[FollowedPost] = (),
    ) -> None:
        self._person = Person(user, crowd)
        # Also what posts do not move: a question is answered by all its measures, as in an assessment.
        self._ready = [
            (one, one.prepare(crowd, options))
            for one in registered().values()
            if one.theme in watchable_questions() and one.asked(options)
        ]
        self._settled = Changes()
        self._news: list[tuple[FollowedPost, Changes, Changes]] = [
            (post, Changes(), Changes(delete_posts=frozenset({number})))
            for post in imported
            if (number := self._number(post)) is not None
        ]
        self._known: dict[tuple[ThemeName, int], Theme] = {}
        self.people = crowd.people

    def _number(self, post: FollowedPost) -> int | None:
        """Return the number of a post that the crowd holds."""
        rows = self._person.posts.select("number", "community", "time", "text").iter_rows()
        wanted = post.community, post.time, post.text
        return next((number for number, *rest in rows if tuple(rest) == wanted), None)

    def add(self, post: FollowedPost, *, new: bool = True) -> bool:
        """Take in a post; say whether it can move a level. `new`: it may be what an alert comes with."""
        if post.user != self._person.user:
            return False
        added = NewPost(community=post.community, time=post.time, text=post.text)
        self._news.append((post, Changes(add_posts=frozenset({added})), Changes()))
        self._known.clear()
        if not new:
            self.settle()
        return True

    def settle(self) -> None:
        """Count all posts as known: no alert comes with one of them any more."""
        for _, bring, _ in self._news:
            self._settled |= bring
        now = {question: self.standing(question) for question in {known for known, _ in self._known}}
        self._news = []
        self._known = {(question, 0): one for question, one in now.items()}

    def standing(self, question: ThemeName) -> Theme:
        """Return where the person stands with all posts."""
        return self._with(question, len(self._news))

    def came_with(self, question: ThemeName) -> str:
        """Say with which new post the person came to the level of a question; empty if it is not one of theirs."""
        level = self.standing(question).level
        if not self._news or not self._is_below(question, 0, level):
            return ""
        below, there = 0, len(self._news)
        while there - below > 1:
            middle = (below + there) // 2
            below, there = (middle, there) if self._is_below(question, middle, level) else (below, middle)
        post, _, _ = self._news[there - 1]
        day = f" of {say_day(post.time)}" if post.time is not None else ""
        which = f" (number {there} of {len(self._news)} new ones)" if len(self._news) > 1 else ""
        return f"It came with your post{day} in {post.community}{which}."

    def _is_below(self, question: ThemeName, posts: int, level: Level) -> bool:
        return self._with(question, posts).level.severity < level.severity

    def _with(self, question: ThemeName, posts: int) -> Theme:
        """Return where the person stands with so many of the new posts."""
        if (question, posts) not in self._known:
            person = self._after(posts)
            asked = [(one, ready) for one, ready in self._ready if one.theme is question]
            findings = [
                finding
                for one, ready in asked
                if not one.nothing_known(person)
                for finding in _ask(one, ready, person)
            ]
            self._known[question, posts] = theme(question, findings)
        return self._known[question, posts]

    def _after(self, posts: int) -> Person:
        changes = self._settled
        for _, bring, _ in self._news[:posts]:
            changes |= bring
        for _, _, take_away in self._news[posts:]:
            changes |= take_away
        return self._person.after(changes)


def _ask(one: Measure, ready: Ready, person: Person) -> list[Finding]:
    """Ask a measure all it can say, as an assessment does."""

    def all_of_it() -> Findings:
        quick = ready.assess(person, explain=False).assessments
        return Findings((*quick, *ready.assess_thorough(person, explain=False).assessments))

    return [one.finding(about) for about in unless_only_a_card(one, all_of_it).assessments]


def say_level(question: ThemeName, now: Theme, before: Level | None, came_with: str) -> str:
    """Say at which level a question is now, in plain words."""
    then = "" if before is None else f", {before} before"
    said = f"{question.question} {str(now.level).capitalize()}{then}. {now.sentence}"
    return f"{said} {came_with}" if came_with else said


def is_crossed(line: Line, reading: LineReading) -> bool:
    """Say whether a number is on the wrong side of a line."""
    return measure_named(line.measure).is_crossed(line, reading)


def say_line(line: Line, reading: LineReading) -> str:
    """Say where the person stands, in plain words."""
    where = line.community or "this crowd"
    if not reading.defined:
        place = f"from {where} to {line.target}" if line.target else f"in {where}"
        return f"Cannot tell for your line on {line.measure} {place}: {reading.reason}."
    if reading.silent:
        return f"Nothing you wrote in {where} points to {line.topic} in particular."
    return f"{measure_named(line.measure).say_reading(line, reading)}; your line is {line.at:,}."


@dataclass(frozen=True, kw_only=True)
class AlertPlaces:
    """Where alerts go."""

    jsonl: Path | None = None
    """A file that gets one JSON object a line."""
    webhook: str | None = None
    """An address on this machine that gets each alert as a POST."""
    desktop: Path | None = None
    """A folder that gets a text file for each alert."""
    terminal: bool = True


@dataclass(frozen=True, kw_only=True)
class WatchPolicy(AlertPlaces):
    """All lines, and where alerts go."""

    lines: tuple[Line, ...] = ()
    questions: tuple[ThemeName, ...] = ()
    """Questions of the label: say so when one comes to another level."""

    def __post_init__(self) -> None:
        if not self.lines and not self.questions:
            raise InputError("policy: expected at least one [[line]], got none; see the how-to on watching")
        twice = len({line.key for line in self.lines}) < len(self.lines)
        if twice or len(set(self.questions)) < len(self.questions):
            raise InputError("policy: the same line stands there twice; leave it in once")


def load_policy(path: Path | str) -> WatchPolicy:
    """Read a policy from a TOML file; paths in it are relative to it."""
    place = Path(path)
    plain = load_toml(place)
    if unknown := set(plain) - {"line", "alerts"}:
        raise InputError(f"{path}: unknown table '{min(unknown)}'; a policy has [[line]] and [alerts]")
    tables = plain.get("line", [])
    if not isinstance(tables, list):
        raise InputError(f"{path}: write lines as [[line]], with double brackets")
    lines, questions = list[Line](), list[ThemeName]()
    for number, table in enumerate(tables, 1):
        where = f"{path}, line {number}"
        if isinstance(table, Mapping) and "question" in table:
            questions.append(_question(table, where))
        else:
            lines.append(_line(table, where))
    alerts = _alerts(plain.get("alerts", {}), place)
    return WatchPolicy(lines=tuple(lines), questions=tuple(questions), **vars(alerts))


def _question(table: Mapping[str, Any], where: str) -> ThemeName:
    known = {str(name): name for name in watchable_questions()}
    if table["question"] not in known:
        raise InputError(f"{where}: 'question' must be one of {', '.join(known)}; got {table['question']!r}")
    if unknown := set(table) - {"question"}:
        raise InputError(f"{where}: unknown key '{min(unknown)}'; a line with a question has nothing else")
    return known[table["question"]]


def _line(table: Any, where: str) -> Line:
    measure: Any = table.get("measure") if isinstance(table, Mapping) else None
    watched = {one.name: one for one in moved_by_posts() if one.line_keys}
    if measure not in watched:
        raise InputError(
            f"{where}: 'measure' must be one of {', '.join(watched)}, or name a 'question'; got {measure!r}"
        )
    wanted, optional = watched[measure].line_keys, watched[measure].optional_line_keys
    if unknown := set(table) - {"measure", *wanted}:
        raise InputError(
            f"{where}: unknown key '{min(unknown)}'; a line of {measure} has: {', '.join(wanted)}"
        )
    missing = [name for name in wanted if name not in table and name not in optional]
    if missing:
        raise InputError(f"{where}: '{missing[0]}' is missing; a line of {measure} has: {', '.join(wanted)}")
    at = table[wanted[-1]]
    if not isinstance(at, int) or isinstance(at, bool):
        raise InputError(f"{where}: '{wanted[-1]}' must be a whole number, got {at!r}")
    names = {name: table[name] for name in wanted[:-1] if name in table}
    if not all(isinstance(name, str) for name in names.values()):
        raise InputError(f"{where}: names of communities and topics are text")
    return Line(
        measure=measure,
        community=names.get("community", names.get("source")),
        target=names.get("target"),
        topic=names.get("topic"),
        at=at,
    )


def _alerts(table: Any, place: Path) -> AlertPlaces:
    try:
        return read_settings(AlertPlaces, table, folder=place.absolute().parent)
    except InputError as error:
        raise InputError(f"{place}, [alerts]: {str(error).removeprefix(TITLE).lstrip(':, ')}") from None


def default_policy() -> WatchPolicy:
    """Return what somebody watches who drew no lines: every question of the label that a post can move."""
    return WatchPolicy(questions=watchable_questions())
