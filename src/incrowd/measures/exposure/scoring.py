"""Score everybody in a crowd: posts pass by once, only everybody's strongest moments stay. At the end: the same, live.

Posts come in any order and in batches of any size. What is kept is the largest similarity to each topic in every
period in which somebody wrote; memory grows with people and periods, not with posts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import BudgetExceeded, InputError
from incrowd.measures.exposure.definition import (
    UNDATED,
    Floats,
    Ints,
    alert_ranks,
    breadth,
    means_of_best,
    periods,
    place_in_order,
    strengths,
    undefined_last,
)
from incrowd.measures.exposure.space import Encoder, Space
from incrowd.measures.exposure.spec import Dimension, ExposureOptions
from incrowd.measures.exposure.topics import TopicSet
from incrowd.measures.sampling import SampledRank, draw
from incrowd.result import Result, say_count

if TYPE_CHECKING:
    import polars as pl

    from incrowd.crowd import Crowd


MERGE_AT = 262_144
LEAST_MEMORY = 2**28
"""People are counted within this much, however small the budget: what is too large for it is said afterwards."""


@dataclass(frozen=True, eq=False)
class Peaks:
    """One row per (person, period), sorted by person and period; one column per topic."""

    person: Ints
    period: NDArray[np.int64]
    values: Floats
    people: int
    leading: Floats | None = None
    """For the literal definitions: the post most similar to each topic, as similarities to all topics."""
    means: Floats | None = None
    """For spaces whose strength is a mean: everybody's mean similarity over all posts."""
    words: NDArray[np.int64] | None = None
    """How many known words everybody wrote; None: enough."""
    enough: int = 0
    """Nothing is told about people with fewer."""

    @cached_property
    def strength(self) -> Floats:
        """Everybody's strength of interest in each topic."""
        return strengths(self.values, np.searchsorted(self.person, np.arange(self.people)))

    @property
    def pooled(self) -> Floats:
        """Everybody's strength as their space has it: the mean where there is one, else the largest similarity."""
        return self.strength if self.means is None else self.means

    def where_told(self, risk: Floats) -> Floats:
        """Return a copy with NaN for the people who wrote too few known words to be told anything."""
        told = np.array(risk, dtype=np.float64)
        if self.words is not None:
            told[self.words < self.enough] = np.nan
        return told

    def lasting(self, m: int, *, literal: bool = False) -> Floats:
        """Return the mean of everybody's m best periods; NaN for people without any dated post."""
        return self.lasting_over([m], literal=literal)[0]

    def lasting_over(self, several: Sequence[int], *, literal: bool = False) -> list[Floats]:
        """Return :meth:`lasting` for several m."""
        dated = self.period != UNDATED
        person = self.person[dated]
        starts = np.searchsorted(person, np.arange(self.people))
        undated = np.bincount(person, minlength=self.people) == 0
        found = means_of_best(self.values[dated], starts, several, literal=literal)
        for means in found:
            means[undated] = np.nan
        return found

    def risks(self, topics: TopicSet, dimension: Dimension, options: ExposureOptions) -> Floats:
        """Return everybody's risk for every topic: definition 5, 7, 8 or 9."""
        timed = "T" in dimension
        base = self.lasting(options.weeks, literal=options.literal) if timed else self.pooled
        risk = self.where_told(base)
        if "D" not in dimension:
            return risk
        everything = base if options.breadth_over == "periods" else self.pooled
        for topic in range(len(topics)):
            # As printed, definition 7 ranks over the whole domain, definition 9 over the rest of it.
            whole = options.literal and not timed
            others = topics.domain(topic) if whole else topics.siblings(topic)
            seen = self.leading[:, topic] if options.literal and self.leading is not None else everything
            risk[:, topic] -= breadth(seen, others, options.breadth)
        return risk


class PeakCollector:
    """Takes batches of scored posts and keeps the peaks."""

    def __init__(
        self, people: int, topics: int, *, literal: bool = False, space: Space | None = None
    ) -> None:
        self._people, self._topics = people, topics
        mean = space is not None and space.pooling == "mean"
        self._sums = np.zeros((people, topics)) if mean else None
        self._posts = np.zeros(people, np.int64)
        self._words: NDArray[np.int64] | None = None
        self._enough = 0 if space is None else space.enough
        self._parts: list[tuple[Ints, NDArray[np.int64], Floats]] = []
        self._waiting = 0
        self._leading = np.full((people, topics, topics), -np.inf) if literal else None

    def add(
        self, person: Ints, period: NDArray[np.int64], similarities: Floats, words: Ints | None = None
    ) -> None:
        """Add posts: who wrote them, in which period, how similar they are to each topic, how many words they hold.

        Where the number of words is not told, it is taken to be enough.
        """
        if not len(person):
            return
        if self._sums is not None:
            order = np.argsort(person, kind="stable")
            who, first = np.unique(person[order], return_index=True)
            self._sums[who] += np.add.reduceat(similarities[order].astype(np.float64), first, axis=0)
            self._posts += np.bincount(person, minlength=self._people)
        if words is not None:
            held = np.bincount(person, words, self._people).astype(np.int64)
            self._words = held if self._words is None else self._words + held
        if self._leading is not None:
            self._lead(person, similarities)
        self._parts.append(_largest(person, period, similarities))
        self._waiting += len(self._parts[-1][0])
        if self._waiting > MERGE_AT and len(self._parts) > 1:
            self._merge()

    def _lead(self, person: Ints, similarities: Floats) -> None:
        leading = self._leading
        if leading is None:
            return
        for topic in range(self._topics):
            # Stable: among equals the earliest post leads.
            order = np.lexsort((-similarities[:, topic], person))
            first = order[np.diff(person[order], prepend=-1) != 0]
            better = first[similarities[first, topic] > leading[person[first], topic, topic]]
            leading[person[better], topic] = similarities[better]

    def _merge(self) -> None:
        columns = zip(*self._parts, strict=True)
        self._parts = [_largest(*(np.concatenate(column) for column in columns))]
        self._waiting = 0

    def finish(self) -> Peaks:
        """Return the peaks of everybody who was added."""
        if not self._parts:
            empty = np.zeros((0, self._topics))
            return Peaks(np.zeros(0, np.int64), np.zeros(0, np.int64), empty, 0)
        self._merge()
        means = None if self._sums is None else self._sums / np.maximum(self._posts, 1)[:, None]
        return Peaks(
            *self._parts[0],
            people=self._people,
            leading=self._leading,
            means=means,
            words=self._words,
            enough=self._enough,
        )


def _largest(
    person: Ints, period: NDArray[np.int64], values: Floats
) -> tuple[Ints, NDArray[np.int64], Floats]:
    order = np.lexsort((period, person))
    person, period = person[order], period[order]
    changes = (person[1:] != person[:-1]) | (period[1:] != period[:-1])
    new = np.flatnonzero(np.concatenate([[True], changes]))
    return person[new], period[new], np.maximum.reduceat(values[order], new, axis=0)


Progress = Callable[[float, float | None, str], None]


@dataclass(frozen=True, eq=False, repr=False)
class Scored(Result):
    """Everybody's peaks in one space; risks of any dimension follow from them."""

    users: pl.Series
    """Ids in the store, sorted; a person's place is their row."""
    peaks: Peaks
    space: Space
    options: ExposureOptions
    posts: int
    data_hash: str
    _risks: dict[str, Floats] = field(default_factory=dict, repr=False)
    members: int | None = None
    """How many people there are, where only a sample of them was scored."""

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        topics = say_count(len(self.space.topics.names), "sensitive topic")
        people, posts = say_count(len(self.users), "person", "people"), say_count(self.posts, "post")
        return f"How exposed {people} are in {topics}, by {posts}."

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row for each person: the risk of every topic."""
        risks = self.risks().tolist()
        return [
            {"user": user, **dict(zip(self.space.topics.names, row, strict=True))}
            for user, row in zip(self.users, risks, strict=True)
        ]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the risk at which the most exposed tenth begins, the highest first."""
        told = [(one["topic"], one["highest_tenth_from"]) for one in self.to_dict()["topics"]]
        return sorted(((name, risk) for name, risk in told if risk is not None), key=lambda one: -one[1])

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types: of topics, nobody's own numbers."""
        risks = self.risks() if len(self.users) else np.full((1, len(self.space.topics.names)), np.nan)
        tenths = np.quantile(risks, 0.9, axis=0)
        return {
            "people": self.people,
            "scored": len(self.users),
            "posts": self.posts,
            "dimension": self.options.dimension,
            "topics": [
                {"topic": name, "highest_tenth_from": None if math.isnan(risk) else float(risk)}
                for name, risk in zip(self.space.topics.names, tenths.tolist(), strict=True)
            ],
            "data_hash": self.data_hash,
        }

    @property
    def people(self) -> int:
        """How many people there are, scored or not."""
        return len(self.users) if self.members is None else self.members

    def risks(self, dimension: Dimension | None = None) -> Floats:
        """Return everybody's risk for every topic, people down, topics across."""
        chosen = self.options.dimension if dimension is None else dimension
        if chosen not in self._risks:
            self._risks[chosen] = self.peaks.risks(self.space.topics, chosen, self.options)
        return self._risks[chosen]

    def ranks(self, topic: str, dimension: Dimension | None = None) -> NDArray[np.int64]:
        """Return everybody's R-Susceptibility for one topic; 1 = most exposed, equals share the best rank."""
        return alert_ranks(self.risks(dimension)[:, self.space.topics.place(topic)])

    def rank(self, topic: str, row: int) -> int:
        """Return one row's rank for one topic, without ranking everybody; its risk must be defined."""
        return self.standing(topic, row).rank

    def standing(self, topic: str, row: int) -> SampledRank:
        """Return the same with its interval, where a sample was scored."""
        risks = self.risks()[:, self.space.topics.place(topic)]
        return SampledRank.of(int((risks > risks[row]).sum()), len(risks) - 1, self.people - 1)

    def place(self, user: str) -> int:
        """Return a person's row."""
        found = self.users.index_of(user)
        if found is None:
            raise InputError("this person has no posts among those that were scored; check the community")
        return found


def score(
    crowd: Crowd,
    space: Space,
    options: ExposureOptions | None = None,
    progress: Progress | None = None,
    *,
    most: int | None = None,
) -> Scored:
    """Return how similar everybody's posts are to each topic, at their peaks; `most`: a sample of so many people."""
    options = options or ExposureOptions()
    users, total = people(crowd, options)
    members, some = len(users), None if most is None else draw(len(users), most)
    users = users if some is None else users.gather(some)
    if options.literal:
        _require_room(8 * len(users) * len(space.topics) ** 2, options, "the literal definitions")
    collector = PeakCollector(len(users), len(space.topics), literal=options.literal, space=space)
    encoder, done = Encoder(space, options.text), 0
    for batch in post_batches(crowd, options, None if some is None else users):
        person = numbers(batch["user"], users)
        when = post_periods(batch["time"], options.days)
        lists = encoder.encode(batch["text"])
        collector.add(person, when, space.similarities(lists), np.diff(lists.bounds))
        done += batch.height
        if progress is not None:
            progress(done, total, f"comparing posts with {len(space.topics)} topics ({space.name})")
    return Scored(users, collector.finish(), space, options, done, crowd.data_hash, members=members)


def words_held(crowd: Crowd, space: Space, options: ExposureOptions) -> NDArray[np.bool_]:
    """Return who used which of the space's words at least once, people down, words across."""
    users, _ = people(crowd, options)
    _require_room(len(users) * len(space.words), options, "ENTROPY and DIFF-PRIV")
    held = np.zeros((len(users), len(space.words)), dtype=np.bool_)
    encoder = Encoder(space, options.text)
    for batch in post_batches(crowd, options):
        lists = encoder.encode(batch["text"])
        person = np.repeat(numbers(batch["user"], users), np.diff(lists.bounds))
        held[person, lists.words] = True
    return held


def people(crowd: Crowd, options: ExposureOptions) -> tuple[pl.Series, int]:
    """Return who wrote in the community, sorted, and how many posts there are."""
    from incrowd.crowd.tables import fetched  # slow to load, as DuckDB is

    crowd.posts(options.community)  # refuses a community that is not there
    where, values = ("WHERE community = ?", [options.community]) if options.community else ("", [])
    with crowd.connect(max(options.memory // 2, LEAST_MEMORY)) as database:
        counted = f'SELECT "user", count(*) AS posts FROM posts {where} GROUP BY ALL ORDER BY ALL'
        found = fetched(database.sql(counted, params=values))
    if not found.height:
        raise InputError("this crowd has no posts; import some with: incrowd ingest")
    return found["user"], int(found["posts"].sum())


def post_batches(
    crowd: Crowd, options: ExposureOptions, users: pl.Series | None = None
) -> Iterator[pl.DataFrame]:
    """Yield user, time and text of all posts in question, or of some people's, some thousands at a time."""
    import polars as pl  # not at the top: checking a draft comes by here and needs no table

    asked = [pl.lit(value=True)]
    if options.community:
        asked.append(pl.col("community") == options.community)
    if users is not None:
        asked.append(pl.col("user").is_in(users.implode()))
    return crowd.pieces("posts", ["user", "time", "text"], pl.all_horizontal(asked))


def post_periods(times: pl.Series, days: int) -> NDArray[np.int64]:
    """Return the period of each post; UNDATED without a time."""
    dated = times.is_not_null().to_numpy()
    return np.where(dated, periods(times.fill_null(0).to_numpy(), days), UNDATED)


def numbers(users: pl.Series, order: pl.Series) -> NDArray[np.int64]:
    """Return the row of each user in the sorted `order`."""
    return np.asarray(order.search_sorted(users), dtype=np.int64)


def _require_room(needed: int, options: ExposureOptions, what: str) -> None:
    if needed > options.memory:
        raise BudgetExceeded(
            f"{what} need {needed / 2**20:,.0f} MiB for this crowd, got a budget of "
            f"{options.memory / 2**20:,.0f} MiB; raise --memory or choose a community"
        )


def summary(scored: Scored, topic: str) -> dict[str, Any]:
    """Return how a community looks for one topic, without singling anybody out."""
    values = scored.risks()[:, scored.space.topics.place(topic)]
    known = values[~np.isnan(values)]
    levels = np.quantile(known, [0.5, 0.9, 0.99]) if known.size else np.full(3, np.nan)
    return {
        "topic": topic,
        "people": len(values),
        "undefined": int(np.isnan(values).sum()),
        "median": _plain(levels[0]),
        "highest_tenth_from": _plain(levels[1]),
        "highest_hundredth_from": _plain(levels[2]) if known.size >= 1000 else None,
    }


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


# Follow a stream of posts: everybody's risk after each post, and a word when somebody crosses their line.


class PersonRisks:
    """The corrected definitions for one person, laid out so that all topics take a few array operations."""

    def __init__(self, topics: TopicSet, options: ExposureOptions) -> None:
        self._options = options
        siblings = [topics.siblings(topic) for topic in range(len(topics))]
        widest = max(map(len, siblings), default=0)
        # Topics with fewer siblings are filled up with one that nobody writes about.
        nobody = len(topics)
        self._siblings = np.array([row + [nobody] * (widest - len(row)) for row in siblings], np.intp)
        places = np.array([place_in_order(options.breadth, len(row)) for row in siblings])
        self._with_siblings = np.flatnonzero(places)
        self._from_the_top = widest - places[self._with_siblings]

    def risks(self, weeks: Mapping[int, Floats]) -> Floats:
        """Return the risk for every topic from the peaks of each period; NaN where time is unknown."""
        peaks = np.stack(list(weeks.values())).astype(np.float64)
        strength = peaks.max(axis=0)
        risk = self._lasting(weeks, peaks) if "T" in self._options.dimension else strength.copy()
        if "D" in self._options.dimension and len(self._with_siblings):
            known = np.append(risk if self._options.breadth_over == "periods" else strength, -np.inf)
            ordered = np.sort(known[self._siblings[self._with_siblings]], axis=1)
            risk[self._with_siblings] -= ordered[np.arange(len(ordered)), self._from_the_top]
        return risk

    def _lasting(self, weeks: Mapping[int, Floats], peaks: Floats) -> Floats:
        dated = np.fromiter(weeks, np.int64, len(weeks)) != UNDATED
        if not dated.any():
            return np.full(peaks.shape[1], np.nan)
        m = self._options.weeks
        # Added from the largest down, as for a whole crowd, so that both agree to the last bit.
        best = -np.sort(-peaks[dated], axis=0)[:m]
        return np.asarray(np.cumsum(best, axis=0)[-1] / m)


@dataclass(frozen=True, kw_only=True)
class RankAlert:
    """Somebody's rank for a topic has crossed the line they set."""

    topic: str
    before: int
    after: int
    line: int
    people: int

    def sentence(self) -> str:
        """Say it in plain words."""
        way = "up to" if self.after <= self.line else "back down to"
        return (
            f"For {self.topic} you moved from number {self.before:,} {way} number {self.after:,} of "
            f"{self.people:,} (1 is the most exposed; your line is {self.line:,})."
        )


@dataclass(frozen=True)
class _Watches:
    """The lines people set, and where each of them stands: one entry each."""

    row: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    topic: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    line: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    rank: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def and_one(self, row: int, topic: int, line: int, rank: int) -> _Watches:
        return _Watches(
            np.append(self.row, row),
            np.append(self.topic, topic),
            np.append(self.line, line),
            np.append(self.rank, rank),
        )


@dataclass
class LiveExposure:
    """Risks that follow new posts. After any number of posts they equal a computation from scratch."""

    space: Space
    options: ExposureOptions
    people: dict[str, int] = field(default_factory=dict)
    _weeks: list[dict[int, Floats]] = field(default_factory=list, repr=False)
    _watches: _Watches = field(default_factory=_Watches, repr=False)

    def __post_init__(self) -> None:
        if self.options.literal:
            raise InputError("a stream follows the corrected definitions; leave out --literal")
        if self.space.pooling == "mean" and "T" not in self.options.dimension:
            raise InputError(
                "a stream keeps the best of every period; choose dimension T or DT in this space"
            )
        self._encoder = Encoder(self.space, self.options.text)
        self._of_person = PersonRisks(self.space.topics, self.options)
        self._risks: Floats = np.zeros((0, len(self.space.topics)))

    @classmethod
    def of(cls, scored: Scored) -> LiveExposure:
        """Go on from a scored crowd."""
        live = cls(scored.space, scored.options, {user: row for row, user in enumerate(scored.users)})
        live._weeks = [{} for _ in scored.users]
        peaks = scored.peaks
        for person, period, values in zip(peaks.person, peaks.period, peaks.values, strict=True):
            live._weeks[person][int(period)] = values
        live._risks = scored.risks().copy()
        return live

    @property
    def risks(self) -> Floats:
        """Everybody's risk for every topic, people down in the order of `people`."""
        return self._risks[: len(self.people)]

    def watch(self, user: str, topic: str, line: int) -> None:
        """Ask for an alert when the person's rank for the topic crosses `line`."""
        if user not in self.people:
            raise InputError("this person has not written anything yet; watch them after their first post")
        place = self.space.topics.place(topic)
        self._watches = self._watches.and_one(self.people[user], place, line, self.rank(user, topic))

    def rank(self, user: str, topic: str) -> int:
        """Return a person's rank; 1 = most exposed, equals share the best rank, undefined comes last."""
        return self._rank(self.people[user], self.space.topics.place(topic))

    def _rank(self, row: int, topic: int) -> int:
        risks = undefined_last(self.risks[:, topic])
        return 1 + int((risks > risks[row]).sum())

    def add_post(self, user: str, time: int | None, text: str) -> tuple[RankAlert, ...]:
        """Take in a post and return the alerts it sets off, of whomever it moved across their line."""
        row = self._row(user)
        period = UNDATED if time is None else int(periods(time, self.options.days))
        similar = self.space.similarities(self._encoder.encode_one(text))[0]
        weeks = self._weeks[row]
        weeks[period] = np.maximum(weeks[period], similar) if period in weeks else similar
        before = self.risks[row].copy()
        self.risks[row] = self._of_person.risks(weeks)
        return tuple(self._alerts(row, before))

    def _alerts(self, row: int, before: Floats) -> Iterator[RankAlert]:
        """Bring the watched ranks up to date: one person moved, so everybody else's changes by one at most."""
        watches = self._watches
        was = watches.rank.copy()
        mine = undefined_last(self.risks[watches.row, watches.topic])
        old, new = (undefined_last(risks[watches.topic]) for risks in (before, self.risks[row]))
        watches.rank[:] += (new > mine).astype(np.int64) - (old > mine)
        for own in np.flatnonzero(watches.row == row):
            watches.rank[own] = self._rank(row, int(watches.topic[own]))
        for at in np.flatnonzero((was <= watches.line) != (watches.rank <= watches.line)):
            yield RankAlert(
                topic=self.space.topics.names[watches.topic[at]],
                before=int(was[at]),
                after=int(watches.rank[at]),
                line=int(watches.line[at]),
                people=len(self.people),
            )

    def _row(self, user: str) -> int:
        if user not in self.people:
            self.people[user] = len(self.people)
            self._weeks.append({})
            if len(self._risks) < len(self.people):
                # Room for twice as many, so that newcomers cost little.
                room = np.full((max(16, len(self._risks)), len(self.space.topics)), np.nan)
                self._risks = np.concatenate([self._risks, room])
        return self.people[user]
