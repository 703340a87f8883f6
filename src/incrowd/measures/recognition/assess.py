"""A community in, how soon its members are recognised out; one member's own numbers in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.crowd import Crowd
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.prepared import PreparedCrowd
from incrowd.measures.recognition.definition import halves, posts_it_takes
from incrowd.measures.recognition.history import (
    FEWEST,
    Histories,
    Lesson,
    OwnHistory,
    Rivals,
    as_days,
    features,
    learn,
)
from incrowd.measures.recognition.spec import (
    ADVERSARIES,
    DEFAULT_KNOWN,
    FEATURES,
    KNOWN,
    RIDGE,
    RecognitionOptions,
)
from incrowd.profiles.habits import PostHabits, post_habits
from incrowd.result import (
    Assessment,
    Assumptions,
    Direction,
    Result,
    Standing,
    Threat,
    say_count,
    say_percent,
)
from incrowd.statistics import Logistic


@dataclass(frozen=True, eq=False, repr=False)
class CommunityRecognition(Result):
    """What the past of a community says about recognising its members. Nobody is named in any rendering."""

    options: RecognitionOptions
    members: int
    """Everybody in the community who wrote there."""
    histories: Histories
    users: tuple[str, ...]
    """Whose histories these are, in their order; the ids of the store."""
    lessons: Mapping[int, Lesson]
    data_hash: str

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers other programs rely on."""
        return {
            "community": self.options.community,
            "people": self.members,
            "compared_with": len(self.users),
            "posts_known": {str(n): self._known(n) for n in KNOWN},
            "backtest": {
                name: {str(n): self._backtest(n, name) for n in KNOWN}
                for name in ("auc", "auc_of_many_posts", "calibration_error")
            },
            "not_told": {str(n): self._too_few for n in KNOWN if n not in self.lessons},
            "assumptions": self.options.parameters(),
            "standing": str(Standing.HEURISTIC),
            "data_hash": self.data_hash,
        }

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per number of posts."""
        return [
            {
                "posts_known": n,
                **self._known(n),
                **{name: self._backtest(n, name) for name in ("auc", "calibration_error")},
            }
            for n in KNOWN
        ]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return how often the right person was found, by posts read."""
        found = [(n, self._known(n)["found"]) for n in KNOWN]
        return [(say_count(n, "post"), math.nan if share is None else share) for n, share in found]

    @property
    def _too_few(self) -> str:
        return f"fewer than {FEWEST} people wrote enough to try it"

    def _known(self, n: int) -> dict[str, Any]:
        lesson = self.lessons.get(n)
        if lesson is None:
            return {"people": 0, "found": None, "predicted": None}
        judged = lesson.judged
        return {
            "people": len(judged.people),
            "found": float(judged.happened.mean()),
            "predicted": float(judged.predicted.mean()),
        }

    def _backtest(self, n: int, name: str) -> float | None:
        value = getattr(self.lessons[n].judged, name) if n in self.lessons else math.nan
        return None if math.isnan(value) else float(value)

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        told = [n for n in KNOWN if n in self.lessons]
        if not told:
            return f"Cannot tell for {self.options.community}: {self._too_few}."
        said = "; ".join(
            f"{say_count(n, 'post')}: {say_percent(float(self.lessons[n].judged.happened.mean()))}"
            for n in told
        )
        return (
            f"In {self.options.community}, somebody who has read some of a member's posts elsewhere names the right "
            f"one of {self.members:,} people this often, by posts read: {said}."
        )


@dataclass(frozen=True)
class MemberRecognition:
    """One member: how likely they are recognised by 1, 3, 10 or 30 of their posts, and how few it takes."""

    community: str
    members: int
    posts: int
    probability: Mapping[int, float]
    interval: Mapping[int, tuple[float, float]]
    reason: str = ""
    """Why nothing can be told; empty otherwise."""

    @property
    def takes(self) -> float:
        """The smallest number of posts by which they are recognised half of the time; infinity: more than tried."""
        return posts_it_takes(self.probability) if not self.reason else math.nan

    @property
    def takes_interval(self) -> tuple[float, float]:
        """The fewest and the most that `takes` may be, by the ends of the intervals."""
        low, high = ({n: ends[side] for n, ends in self.interval.items()} for side in (0, 1))
        return posts_it_takes(high), posts_it_takes(low)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the numbers as arrays, to be kept."""
        known = [n for n in KNOWN if n in self.probability]
        return {
            "people": np.array([self.members, self.posts]),
            "known": np.array(known, np.int64),
            "probability": np.array([self.probability[n] for n in known], np.float64),
            "interval": np.array([self.interval[n] for n in known], np.float64).reshape(len(known), 2),
            "reason": np.array(self.reason),
        }

    @classmethod
    def from_arrays(cls, community: str, kept: Mapping[str, NDArray[Any]]) -> MemberRecognition:
        """Read what :meth:`arrays` gave."""
        known = kept["known"].tolist()
        members, posts = (int(count) for count in kept["people"])
        return cls(
            community,
            members,
            posts,
            probability=dict(zip(known, kept["probability"].tolist(), strict=True)),
            interval={n: (float(a), float(b)) for n, (a, b) in zip(known, kept["interval"], strict=True)},
            reason=str(kept["reason"]),
        )

    def say_takes(self) -> str:
        """Say how many posts it takes."""
        if self.reason:
            return f"cannot tell: {self.reason}"
        if self.takes > self.posts:
            return "more posts than you wrote there"
        return say_count(int(self.takes), "post")

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers other programs rely on."""
        ends = self.takes_interval if not self.reason else (math.nan, math.nan)
        return {
            "community": self.community,
            "people": self.members,
            "posts": self.posts,
            "takes": _whole(self.takes),
            "takes_interval": [_whole(end) for end in ends],
            "takes_in_words": self.say_takes(),
            "probability": {str(n): _plain(self.probability.get(n, math.nan)) for n in KNOWN},
            "interval": {
                str(n): [_plain(end) for end in self.interval.get(n, (math.nan, math.nan))] for n in KNOWN
            },
            "reason": self.reason,
        }


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else value


def _whole(value: float) -> int | None:
    return int(value) if math.isfinite(value) else None


def community_recognition(
    crowd: Crowd, options: RecognitionOptions, *, keep: str | None = None
) -> CommunityRecognition:
    """Try out how soon the members of a community are recognised; `keep` (a user's id) is in every sample."""
    histories, _, users, members = community_histories(crowd, options, keep=keep)
    lessons = learn(histories, options.how, most=options.judged)
    return CommunityRecognition(options, members, histories, tuple(users), lessons, crowd.data_hash)


def member_recognition(result: CommunityRecognition, user: str) -> MemberRecognition:
    """Say how soon one member (by id) is recognised."""
    o = result.options
    if user not in result.users:
        raise NotInCrowd(
            f"this person has no posts in '{o.community}', or was not asked for when it was measured"
        )
    place = result.users.index(user)
    h, rows = result.histories, result.histories.of[place]
    own = OwnHistory(h.posts.only(rows), h.words[rows], h.days[rows], halves(len(rows))[0])
    rivals = Rivals(h.without(place), o.how)
    return predicted(own, own, rivals, {n: one.model for n, one in result.lessons.items()}, o, result.members)


def predicted(
    own: OwnHistory,
    elsewhere: OwnHistory,
    rivals: Rivals,
    models: Mapping[int, Logistic],
    options: RecognitionOptions,
    members: int,
) -> MemberRecognition:
    """Say how soon somebody with a history is recognised among rivals, by what the past taught.

    `elsewhere` is the history as it was before any change: see :meth:`Rivals.features`.
    """
    posts = own.posts.count
    if reason := too_little(options, posts, bool(models)):
        return MemberRecognition(options.community, members, posts, {}, {}, reason)
    features = rivals.features(own, elsewhere)
    probability = {n: float(one.predict(features)[0]) for n, one in models.items()}
    ends = {n: one.interval(features) for n, one in models.items()}
    intervals = {n: (float(low[0]), float(high[0])) for n, (low, high) in ends.items()}
    return MemberRecognition(options.community, members, posts, probability, intervals)


def too_little(options: RecognitionOptions, posts: int, taught: bool) -> str:
    """Say why nothing can be told about somebody with so many posts; empty if something can."""
    name, least = options.community, options.min_posts
    if posts < least:
        return f"too_little_text: {say_count(posts, 'post')} of yours in {name}; it takes {least}"
    if not taught:
        return f"small_crowd: fewer than {FEWEST} people of {name} wrote enough to learn from"
    return ""


def recognition_assessment(
    found: MemberRecognition, options: RecognitionOptions, data_hash: str, n: int | None = None
) -> Assessment:
    """Put into words how likely somebody who has read n posts finds the person, and what it takes.

    Without n: the plausible adversary. Undefined with a reason.
    """
    if n is None:
        n = (
            DEFAULT_KNOWN
            if DEFAULT_KNOWN in found.probability
            else min(found.probability, default=DEFAULT_KNOWN)
        )
    told = found.to_dict()
    return Assessment(
        measure="recognition",
        subject=f"you in {found.community}",
        value=found.probability.get(n, math.nan),
        unit="probability",
        direction=Direction.LOWER_IS_SAFER,
        meaning=_meaning(found, n),
        standing=Standing.HEURISTIC,
        assumptions=Assumptions(
            adversary=ADVERSARIES[f"read-{n}"],
            parameters=options.parameters()
            | {"posts_known": n, **{name: told[name] for name in ("takes", "takes_interval", "probability")}},
            seed=options.seed,
            data_hash=data_hash,
        ),
        interval=found.interval.get(n),
        baseline=1 / max(found.members, 1),
        crowd_size=found.members,
        threats=(Threat.SINGLING_OUT, Threat.LINKABILITY),
        reason=found.reason,
    )


def _meaning(found: MemberRecognition, n: int) -> str:
    if found.reason:
        return ""
    chance = say_percent(found.probability[n])
    read = "one of your posts" if n == 1 else f"{n} of your posts"
    return (
        f"Somebody who has read {read} elsewhere would pick you out of the {found.members:,} people in "
        f"{found.community} {chance} of the time. Recognising you half of the time takes {found.say_takes()}."
    )


def _candidates(crowd: Crowd, options: RecognitionOptions, keep: str | None) -> tuple[list[str], int]:
    """Return whom to compare with, sorted, and how many people the community has."""
    with crowd.connect(max(options.memory // 4, 2**28)) as database:
        wanted = 'SELECT DISTINCT "user" FROM posts WHERE community = ? ORDER BY ALL'
        everybody = [user for (user,) in database.sql(wanted, params=[options.community]).fetchall()]
    if len(everybody) < 2:
        raise InputError(
            f"community '{options.community}' has one person who wrote there; recognising takes at least two"
        )
    if len(everybody) <= options.candidates:
        return everybody, len(everybody)
    rng = np.random.default_rng(options.seed)
    some = {everybody[i] for i in rng.choice(len(everybody), options.candidates, replace=False)}
    if keep is not None and keep in everybody:
        some.add(keep)
    return sorted(some), len(everybody)


def _posts(crowd: Crowd, community: str) -> pl.LazyFrame:
    """Return a community's posts; refuse one that is not there, and say which ones are."""
    try:
        return crowd.posts(community=community)
    except NotInCrowd:
        there = crowd.communities()["community"].to_list()
        some = ", ".join(there[:8]) + (", …" if len(there) > 8 else "")
        raise NotInCrowd(f"community '{community}' is not in this crowd; it has: {some}") from None


def community_histories(
    crowd: Crowd, options: RecognitionOptions, *, keep: str | None = None
) -> tuple[Histories, pl.Series, list[str], int]:
    """Read everybody's posts in a community, or a sample's: histories, texts, whose they are, and how many people."""
    posts = _posts(crowd, options.community).select("user", "time", "text")
    users, members = _candidates(crowd, options, keep)
    if len(users) < members:
        posts = posts.filter(pl.col("user").is_in(users))
    # Undated posts come last, in the order of their text: there is no better order to be had.
    read = posts.collect().sort("user", "time", "text", nulls_last=True)
    users, read = _by_first_post(read)
    counted = post_habits(read["text"])
    own = read["place"].to_numpy()
    starts = np.searchsorted(own, np.arange(len(users) + 1))
    histories = Histories(
        posts=counted,
        words=words_of(counted),
        days=days_of(read["time"]),
        of=tuple(np.arange(a, b) for a, b in itertools.pairwise(starts)),
        outside=members - len(users),
    )
    return histories, read["text"], users, members


def _by_first_post(read: pl.DataFrame) -> tuple[list[str], pl.DataFrame]:
    """Order people by when they came, and number their places.

    Ids are hashed with a new key at each import; this way the same data has the same people tried.
    """
    came = read.group_by("user", maintain_order=True).first().sort("time", "text", "user", nulls_last=True)
    places = came.select("user").with_row_index("place")
    ordered = read.join(places, on="user", how="left", maintain_order="left")
    return came["user"].to_list(), ordered.sort("place", maintain_order=True)


def own_history(texts: pl.Series, times: pl.Series, cut: int) -> OwnHistory:
    """Count the habits of one person's posts, earliest first; `cut` of them belong to the earlier half."""
    posts = post_habits(texts)
    return OwnHistory(posts, words_of(posts), days_of(times), cut)


def taught(crowd: PreparedCrowd, histories: Histories, options: RecognitionOptions) -> dict[int, Logistic]:
    """Return what a community's past teaches about each number of posts, found out once."""

    def find() -> dict[str, NDArray[Any]]:
        lessons = learn(histories, options.how, most=options.judged)
        return {f"{n} {name}": part for n, one in lessons.items() for name, part in vars(one.model).items()}

    kept = crowd.answer(
        {"what": "recognition taught", "by": FEATURES, "ridge": RIDGE, **options.parameters()}, find
    )
    names = [part.name for part in fields(Logistic)]
    return {
        n: Logistic(**{name: np.asarray(kept[f"{n} {name}"]) for name in names})
        for n in KNOWN
        if f"{n} {names[0]}" in kept
    }


def recognised_today(
    histories: Histories,
    people: NDArray[np.int64],
    models: Mapping[int, Logistic],
    options: RecognitionOptions,
) -> dict[int, NDArray[np.float64]]:
    """Return, for each number of posts read, how likely each of some people (by place) is recognised as things stand.

    The same as asking about one after the other, but nobody is added or taken out: one comparison serves all.
    """
    found = features(histories, ("earlier", "later"), histories.of, people, options.how)
    return {n: np.asarray(model.predict(found)) for n, model in models.items()}


def words_of(posts: PostHabits) -> NDArray[np.float64]:
    """Return how many words each post has."""
    return np.asarray(posts.rows["vocabulary"].sum(axis=1), np.float64).ravel()


def days_of(times: pl.Series) -> NDArray[np.float64]:
    """Return times as days; NaN: unknown."""
    return as_days(times.cast(pl.Float64).fill_null(float("nan")).to_numpy())
