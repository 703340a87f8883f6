"""Score everybody in a crowd: posts stream by once, only peaks stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.errors import BudgetExceeded, InputError
from incrowd.measures.exposure.definition import UNDATED, Floats, alert_ranks, periods
from incrowd.measures.exposure.peaks import Collector, Peaks
from incrowd.measures.exposure.space import Encoder, Space
from incrowd.measures.exposure.spec import Dimension, ExposureOptions

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

Progress = Callable[[float, float | None, str], None]
ROWS = 50_000


@dataclass(frozen=True, eq=False)
class Scored:
    """Everybody's peaks in one space; risks of any dimension follow from them."""

    users: pl.Series
    """Ids in the store, sorted; a person's place is their row."""
    peaks: Peaks
    space: Space
    options: ExposureOptions
    posts: int
    data_hash: str
    _risks: dict[str, Floats] = field(default_factory=dict, repr=False)

    def risks(self, dimension: Dimension | None = None) -> Floats:
        """Return everybody's risk for every topic, people down, topics across."""
        chosen = self.options.dimension if dimension is None else dimension
        if chosen not in self._risks:
            self._risks[chosen] = self.peaks.risks(self.space.topics, chosen, self.options)
        return self._risks[chosen]

    def ranks(self, topic: str, dimension: Dimension | None = None) -> NDArray[np.int64]:
        """Return everybody's R-Susceptibility for one topic; 1 = most exposed, equals share the best rank."""
        return alert_ranks(self.risks(dimension)[:, self.space.topics.place(topic)])

    def place(self, user: str) -> int:
        """Return a person's row."""
        found = self.users.index_of(user)
        if found is None:
            raise InputError("this person has no posts among those that were scored; check the community")
        return found


def score(
    crowd: Crowd, space: Space, options: ExposureOptions | None = None, progress: Progress | None = None
) -> Scored:
    """Return how similar everybody's posts are to each topic, at their peaks."""
    options = options or ExposureOptions()
    users, total = people(crowd, options)
    if options.literal:
        _require_room(8 * len(users) * len(space.topics) ** 2, options, "the literal definitions")
    collector = Collector(len(users), len(space.topics), literal=options.literal)
    encoder, done = Encoder(space, options.text), 0
    for batch in post_batches(crowd, options):
        person = numbers(batch["user"], users)
        when = post_periods(batch["time"], options.days)
        collector.add(person, when, space.similarities(encoder.encode(batch["text"])))
        done += batch.height
        if progress is not None:
            progress(done, total, f"comparing posts with {len(space.topics)} topics ({space.name})")
    return Scored(users, collector.finish(), space, options, total, crowd.data_hash)


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
    posts = crowd.posts(options.community)
    counted = posts.group_by("user").len().sort("user").collect()
    if not counted.height:
        raise InputError("this crowd has no posts; import some with: incrowd ingest")
    return counted["user"], int(counted["len"].sum())


def post_batches(crowd: Crowd, options: ExposureOptions) -> Iterator[pl.DataFrame]:
    """Yield user, time and text of all posts in question, some thousands at a time."""
    where, values = ("WHERE community = ?", [options.community]) if options.community else ("", [])
    with crowd.connect(options.memory // 2) as database:
        rows = database.sql(f"SELECT user, time, text FROM posts {where}", params=values)
        for batch in rows.to_arrow_reader(ROWS):
            frame = pl.from_arrow(batch)
            if isinstance(frame, pl.DataFrame) and frame.height:
                yield frame


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
