"""Compare methods on people whom judges have labelled (paper 004, tables 4 to 6 and the sweeps of §5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.errors import InputError, NotInCrowd, SchemaError, UnreadableSource
from incrowd.measures.exposure import baselines
from incrowd.measures.exposure.bag_of_words import BagOfWords
from incrowd.measures.exposure.definition import Floats
from incrowd.measures.exposure.evaluation import Merit, mcnemar, merit, paired_t_test, sample_by_score
from incrowd.measures.exposure.scoring import Progress, Scored, numbers, people, score, words_held
from incrowd.measures.exposure.space import Space
from incrowd.measures.exposure.spec import BASELINES, DIMENSIONS, ExposureOptions, method_name
from incrowd.measures.exposure.topics import TopicSet

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

BREADTHS = tuple(k / 10 for k in range(1, 11))
WEEKS = tuple(range(1, 13))


@dataclass(frozen=True, eq=False)
class Labels:
    """What judges said: for each topic the rows of the judged people and their share of yes votes."""

    rows: Mapping[str, NDArray[np.int64]]
    votes: Mapping[str, Floats]

    def of_judged(self, risks: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the judged people's risks out of everybody's."""
        return {name: risks[name][rows] for name, rows in self.rows.items()}

    def judge(self, risks: Mapping[str, Floats]) -> Merit:
        """Judge a method by everybody's risks for each topic."""
        return self.judge_judged(self.of_judged(risks))

    def judge_judged(self, risks: Mapping[str, Floats]) -> Merit:
        """Judge a method by the judged people's risks."""
        return merit({name: (risks[name], votes) for name, votes in self.votes.items()})


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side."""

    methods: Mapping[str, Merit]
    risks: Mapping[str, Mapping[str, Floats]]
    """For each method and topic: the judged people's risks."""
    judged: Mapping[str, tuple[int, int]]
    """For each topic: people judged, and how many of them were found sensitive."""
    scored: Mapping[str, Scored]
    labels: Labels

    @property
    def chance(self) -> float:
        """The r-precision of a random order: the share of sensitive people, over all topics."""
        judged, found = (sum(column) for column in zip(*self.judged.values(), strict=True))
        return float(found / judged)

    @property
    def chance_map(self) -> float:
        """About the MAP of a random order: the mean over topics of the share of sensitive people."""
        return float(np.mean([found / judged for judged, found in self.judged.values() if found]))

    def significance(self, method: str, against: str) -> dict[str, float]:
        """Return how likely a difference in hits this large is by chance, two-sided."""
        first, second = self.methods[method].hits, self.methods[against].hits
        return {"t_test": paired_t_test(first, second), "mcnemar": mcnemar(first, second)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain types: rates only, nobody's own numbers."""
        tests = {
            name: {"against": other} | self.significance(name, other)
            for name in self.methods
            for other in [_rival(name, self.methods)]
            if other is not None
        }
        judged = {t: {"people": n, "sensitive": r} for t, (n, r) in self.judged.items()}
        return {
            "methods": {name: one.to_dict() for name, one in self.methods.items()},
            "topics": judged,
            "chance": self.chance,
            "significance": tests,
        }

    def sweep(self, space: str) -> dict[str, dict[float, float]]:
        """Return micro r-precision of -D over k and of -T over m."""
        scored, names = self.scored[space], self.scored[space].space.topics.names

        def judged(dimension: Any, options: ExposureOptions) -> float:
            risks = scored.peaks.risks(scored.space.topics, dimension, options)
            return self.labels.judge(dict(zip(names, risks.T, strict=True))).r_precision_micro

        return {
            "breadth": {k: judged("D", replace(scored.options, breadth=k)) for k in BREADTHS},
            "weeks": {float(m): judged("T", replace(scored.options, weeks=m)) for m in WEEKS},
        }


def compare(
    crowd: Crowd,
    spaces: Sequence[Space],
    labels: pl.DataFrame,
    options: ExposureOptions | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Judge every space with every dimension, and the two baselines.

    `labels` has the columns user (id in the store), topic and vote (0 to 1, several rows are averaged).
    """
    options = options or ExposureOptions()
    users, _ = people(crowd, options)
    topics = spaces[0].topics
    known = _labels(labels, users, topics)
    risks = {name: known.of_judged(one) for name, one in baseline_risks(crowd, topics, options).items()}
    scored = {space.name: score(crowd, space, options, progress) for space in spaces}
    for name, one in scored.items():
        for dimension in DIMENSIONS:
            by_topic = dict(zip(one.space.topics.names, one.risks(dimension).T, strict=True))
            risks[method_name(name, dimension)] = known.of_judged(by_topic)
    methods = {name: known.judge_judged(one) for name, one in risks.items()}
    judged = {topic: (len(votes), int((votes > 0.5).sum())) for topic, votes in known.votes.items()}
    return Comparison(methods, risks, judged, scored, known)


def baseline_risks(crowd: Crowd, topics: TopicSet, options: ExposureOptions) -> dict[str, dict[str, Floats]]:
    """Return ENTROPY and DIFF-PRIV of everybody for every topic, as numbers in their order."""
    words = BagOfWords(topics)
    held = words_held(crowd, words, options)
    place = {word: at for at, word in enumerate(words.words)}
    entropy, privacy = {}, {}
    for topic in topics.topics:
        own = held[:, [place[word] for word in topic.words]]
        entropy[topic.name] = baselines.entropy_risks(own)
        privacy[topic.name] = baselines.diff_priv_order(*baselines.diff_priv_risks(own))
    return dict(zip(BASELINES, (entropy, privacy), strict=True))


def _labels(labels: pl.DataFrame, users: pl.Series, topics: TopicSet) -> Labels:
    mean = labels.group_by("user", "topic").agg(pl.col("vote").mean()).sort("topic", "user")
    mean = mean.filter(pl.col("user").is_in(users.implode()))
    if not mean.height:
        raise NotInCrowd("none of the labelled people wrote anything in this crowd or community")
    rows, votes = {}, {}
    for (topic,), part in mean.group_by("topic", maintain_order=True):
        topics.place(str(topic))
        rows[str(topic)] = numbers(part["user"], users)
        votes[str(topic)] = part["vote"].to_numpy()
    if not any((one > 0.5).any() for one in votes.values()):
        raise InputError("nobody is labelled sensitive (a mean vote above 0.5): there is nothing to find")
    return Labels(rows, votes)


def read_labels(path: Path | str, crowd: Crowd) -> pl.DataFrame:
    """Read labels from a CSV file with the columns user, topic and vote, and look the people up.

    People go by their names, or by the ids of :func:`people_to_judge`.
    """
    from incrowd.crowd import pseudonyms

    try:
        frame = pl.read_csv(
            path, schema_overrides={"user": pl.String, "topic": pl.String, "vote": pl.Float64}
        )
    except FileNotFoundError:
        raise UnreadableSource(
            f"{path}: no such file; labels are a CSV file with user, topic, vote"
        ) from None
    except pl.exceptions.PolarsError:
        raise UnreadableSource(f"{path}: expected a CSV file with user, topic and vote (a number)") from None
    if missing := {"user", "topic", "vote"} - set(frame.columns):
        raise SchemaError(f"{path}: expected the columns user, topic and vote; add '{min(missing)}'")
    frame = frame.drop_nulls("vote")  # nobody has judged those
    if not frame.height:
        raise SchemaError(f"{path}: expected votes from 0 to 1, got none; fill in the column vote")
    if not frame["vote"].is_between(0, 1).all():
        raise SchemaError(f"{path}: votes must be between 0 and 1, the share of judges who said yes")
    state = crowd.state
    key = pseudonyms.load_key(crowd.path, state.key_id) if state.names == "keyed" else None
    ids = pseudonyms.Pseudonyms(key).replace(frame["user"])
    stored = crowd.posts().select("user").unique().collect()["user"]
    by_id = frame["user"].is_in(stored.implode())
    return frame.with_columns(frame["user"].zip_with(by_id, ids).alias("user"))


def people_to_judge(
    scored: Scored, topics: Sequence[str], count: int, base: float, seed: int
) -> pl.DataFrame:
    """Draw people for judges, for each topic with weight base^risk: a sheet of user (id), topic and an empty vote."""
    if count < 1 or not base > 0:
        raise InputError(f"a sample needs at least one person and a base above 0, got {count} and {base}")
    parts = []
    for topic in topics:
        risks = scored.risks()[:, scored.space.topics.place(topic)]
        chosen = sample_by_score(risks, count, base, seed)
        parts.append(pl.DataFrame({"user": scored.users[chosen.tolist()], "topic": topic}))
    return pl.concat(parts).with_columns(vote=pl.lit(None, pl.Float64))


def _rival(method: str, methods: Mapping[str, Merit]) -> str | None:
    """Return what a method is tested against: its own strength of interest, or the baseline ENTROPY."""
    if method in BASELINES:
        return None
    plain = method.split("-")[0]
    return plain if plain != method and plain in methods else "ENTROPY"
