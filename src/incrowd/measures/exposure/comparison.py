"""Compare methods on people whom judges have labelled (paper 004, tables 4 to 6 and the sweeps of §5.4).

Beside the methods stand two measures made for tables and applied to words, ENTROPY and DIFF-PRIV (definitions 2 and 3);
an order that reads no words, by the number of periods somebody wrote in; and a bound that has seen labels, a logistic
regression on TF-IDF which for every person is fitted to the labels of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from incrowd.crowd import pseudonyms
from incrowd.errors import InputError, NotInCrowd, SchemaError, UnreadableSource
from incrowd.measures.exposure.definition import UNDATED, Floats
from incrowd.measures.exposure.evaluation import (
    Merit,
    auc,
    auc_interval,
    mcnemar,
    merit,
    paired_t_test,
    sample_by_score,
    sensitive,
)
from incrowd.measures.exposure.learning import fit
from incrowd.measures.exposure.scoring import (
    Peaks,
    Progress,
    Scored,
    numbers,
    people,
    post_batches,
    score,
    words_held,
)
from incrowd.measures.exposure.space import BagOfWords, Space
from incrowd.measures.exposure.spec import BASELINES, DIMENSIONS, ExposureOptions, method_name
from incrowd.measures.exposure.topics import TopicSet
from incrowd.profiles import from_matrix
from incrowd.profiles import tfidf as tfidf_profiles
from incrowd.text.options import TextOptions
from incrowd.text.tokeniser import Tokeniser

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

# ENTROPY and DIFF-PRIV: each salient word of a topic is an attribute that a person has or has not. Both ask how much
# one person changes the share of people who have it: U is everybody else (k people), U* is U with the person. `held`
# has one row per person and one column per word. NOTES.md says why neither orders people by how exposed they are.


def _word_divergence(count: Floats, k: int, has: bool) -> Floats:
    """KL(P_U || P_U*) in bits for words that `count` of k others have, by log1p: the values are tiny."""
    share, change = count / k, ((k - count) if has else -count) / (k * (k + 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        present = np.where(share > 0, -share * np.log1p(change / share), 0.0)
        absent = np.where(share < 1, -(1 - share) * np.log1p(-change / (1 - share)), 0.0)
    return np.asarray(np.maximum(present + absent, 0.0) / np.log(2))


def entropy_risks(held: ArrayLike, *, present_only: bool = False) -> Floats:
    """Return ENTROPY: the mean over words of KL(P_U || P_U*), in bits.

    `present_only` counts the words a person has and no others: as printed, lacking a common word scores as
    high as having a rare one.

    >>> entropy_risks(np.eye(101, 1, dtype=bool))[:1].round(4).tolist()
    [0.0144]
    """
    has = np.asarray(held, dtype=bool)
    others = len(has) - 1
    if others < 1 or not has.shape[1]:
        return np.zeros(len(has))
    total = has.sum(axis=0).astype(np.float64)
    holder = _word_divergence(np.maximum(total - 1, 0), others, has=True)
    lacker = (
        np.zeros_like(total) if present_only else _word_divergence(np.minimum(total, others), others, False)
    )
    # In order: the same terms add up to the same number, and people who tie stay tied.
    return np.asarray(np.sort(np.where(has, holder, lacker), axis=1).mean(axis=1))


def diff_priv_risks(held: ArrayLike, *, smoothed: bool = False) -> tuple[Floats, NDArray[np.int64]]:
    """Return DIFF-PRIV, max over words of |log2(P_U / P_U*)|, and how many words nobody else has.

    Infinite for a person with such a word, unless `smoothed` adds half a person to each side of every count.

    >>> risks, unique = diff_priv_risks([[True], [False], [False]])
    >>> risks.round(3).tolist(), unique.tolist()
    ([inf, 0.585, 0.585], [1, 0, 0])
    """
    has = np.asarray(held, dtype=bool)
    others = len(has) - 1
    if others < 1 or not has.shape[1]:
        return np.zeros(len(has)), np.zeros(len(has), np.int64)
    total = has.sum(axis=0).astype(np.float64)
    before, after = np.broadcast_to(total - has, has.shape), np.broadcast_to(total, has.shape)
    # One division of whole numbers: equal shares are equal to the last digit, and people who tie stay tied.
    more = 0.5 if smoothed else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log2((before + more) * (others + 1 + 2 * more) / ((after + more) * (others + 2 * more)))
    # Nobody has the word, the person included: 0/0, no change.
    change = np.where(after == 0, 0.0, np.abs(ratio))
    return np.asarray(change.max(axis=1)), (has & (total == 1)).sum(axis=1)


def diff_priv_order(risks: ArrayLike, unique: ArrayLike) -> Floats:
    """Return finite numbers in the order of DIFF-PRIV: infinite first, among them by how many such words.

    >>> diff_priv_order([0.5, np.inf, np.inf], [0, 1, 3]).tolist()
    [0.5, 2.5, 4.5]
    """
    values, words = np.asarray(risks, np.float64), np.asarray(unique)
    finite = values[np.isfinite(values)]
    top = finite.max() if finite.size else 0.0
    return np.where(np.isinf(values), top + 1 + words, values)


FOLDS = 5
FEWEST_PEOPLE = 10
"""Words of fewer people are left out, or of a hundredth of the people where that is less."""


def periods_written(peaks: Peaks) -> Floats:
    """Return in how many periods everybody wrote anything at all."""
    dated = peaks.person[peaks.period != UNDATED]
    return np.bincount(dated, minlength=peaks.people).astype(np.float64)


def words_of_people(crowd: Crowd, users: pl.Series, options: ExposureOptions) -> sp.csr_matrix:
    """Return how often each of some people, sorted by id, used each word; small words tell much, so they stay in."""
    tokeniser, parts = Tokeniser(TextOptions(keep_stopwords=True)), []
    for batch in post_batches(crowd, options):
        wanted = batch.filter(pl.col("user").is_in(users.implode()))
        tokens = tokeniser.numbers(wanted["text"])
        person = np.repeat(numbers(wanted["user"], users), np.diff(tokens.ends, prepend=0))
        shape = (len(users), len(tokeniser.vocabulary()))
        parts.append(sp.coo_matrix((np.ones(len(person)), (person, tokens.numbers)), shape).tocsr())
    for part in parts:
        part.resize((len(users), len(tokeniser.vocabulary())))
    return sum(parts[1:], parts[0])


def tfidf(counts: sp.csr_matrix) -> sp.csr_matrix:
    """Weigh words by (1 + ln count) times how rare they are among people, every person to length 1."""
    held = np.bincount(counts.indices, minlength=counts.shape[1])
    fewest = max(1, min(FEWEST_PEOPLE, counts.shape[0] // 100))
    common, everybody = from_matrix(counts[:, held >= fewest]), np.arange(counts.shape[0])
    rows = tfidf_profiles(common, domain=everybody, sublinear=True).matrix
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    return (sp.diags(1 / np.maximum(length, 1e-12)) @ rows).tocsr()


def supervised_risks(features: sp.csr_matrix, votes: Floats, *, seed: int = 0) -> Floats:
    """Return a score for everybody from a model that has seen the labels of others only.

    NaN if fewer than two people are labelled on either side: nothing can then be learnt and checked.
    """
    truth = sensitive(votes)
    folds = min(FOLDS, int(truth.sum()), int((~truth).sum()))
    scores = np.full(len(truth), np.nan)
    if folds < 2:
        return scores
    fold = np.empty(len(truth), np.int64)
    rng = np.random.default_rng(seed)
    for side in (truth, ~truth):
        fold[side] = rng.permutation(int(side.sum())) % folds
    for number in range(folds):
        inside = fold == number
        weights = fit(features[~inside], truth[~inside])
        scores[inside] = features[inside] @ weights[:-1] + weights[-1]
    return scores


DEFAULT = "default"
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


@dataclass(frozen=True)
class Auc:
    """How often a sensitive person comes before another one, and how sure that is."""

    value: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, risks: Floats, votes: Floats) -> Auc:
        """Judge one method for one topic."""
        truth = sensitive(votes)
        value = auc(risks, votes)
        return cls(value, auc_interval(value, int(truth.sum()), int((~truth).sum())))

    @property
    def plain(self) -> float | None:
        """The value for JSON."""
        return None if np.isnan(self.value) else self.value

    @property
    def plain_interval(self) -> list[float] | None:
        """The interval for JSON."""
        return None if np.isnan(self.value) else list(self.interval)


def _random_precision(people: int, sensitive: int) -> float:
    places = np.arange(1, people + 1)
    before = (places - 1) * (sensitive - 1) / max(people - 1, 1)
    return float(np.mean((1 + before) / places))


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Methods side by side."""

    methods: Mapping[str, Merit]
    risks: Mapping[str, Mapping[str, Floats]]
    """For each method and topic: the judged people's risks."""
    judged: Mapping[str, tuple[int, int]]
    """For each topic: people judged, and how many of them were found sensitive."""
    scored: Mapping[str, Scored]
    labels: Labels

    @property
    def default(self) -> str:
        """The method whose strength is the default's: the first space by itself, without breadth or time."""
        return next(iter(self.scored))

    @property
    def chance(self) -> float:
        """The micro r-precision of a random order: of a topic's r places, r of n are expected to be right."""
        found = sum(found for _, found in self.judged.values())
        return (
            sum(found**2 / judged for judged, found in self.judged.values()) / found
            if found
            else float("nan")
        )

    @property
    def chance_map(self) -> float:
        """The MAP of a random order, in expectation.

        Somebody sensitive is at each place equally often, and each of the places before holds another one with the
        chance (r - 1)/(n - 1).
        """
        return float(np.mean([_random_precision(n, r) for n, r in self.judged.values() if r]))

    def significance(self, method: str, against: str) -> dict[str, float]:
        """Return how likely a difference in hits this large is by chance, two-sided."""
        first, second = self.methods[method].hits, self.methods[against].hits
        return {"t_test": paired_t_test(first, second), "mcnemar": mcnemar(first, second)}

    def auc(self) -> dict[str, dict[str, Auc]]:
        """Return the AUC of every method for each topic, with its interval, and under "default" the default's."""
        return {
            topic: {
                method: Auc.of(one[topic], self.labels.votes[topic])
                for method, one in (*self.risks.items(), (DEFAULT, self.risks[self.default]))
            }
            for topic in self.judged
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain types: rates only, nobody's own numbers."""
        tests = {
            name: {"against": other} | _plain_test(self.significance(name, other))
            for name in self.methods
            for other in [_rival(name, self.methods)]
            if other is not None
        }
        auc = self.auc()
        judged = {t: {"people": n, "sensitive": r} for t, (n, r) in self.judged.items()}
        return {
            "methods": {name: one.to_dict() for name, one in self.methods.items()},
            "topics": judged,
            "chance": self.chance,
            "significance": tests,
            "auc": {topic: {name: one.plain for name, one in each.items()} for topic, each in auc.items()},
            "auc_interval": {
                topic: {name: one.plain_interval for name, one in each.items()} for topic, each in auc.items()
            },
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
) -> MethodComparison:
    """Judge every space with every dimension, and the two baselines.

    `labels` has the columns user (id in the store), topic and vote (0 to 1, several rows are averaged).
    """
    options = options or ExposureOptions()
    users, _ = people(crowd, options)
    known = _labels(labels, users, spaces[0].topics)
    # Hand-made lists, where there are any: ENTROPY and DIFF-PRIV are about twenty words, not a thousand.
    topics = next((space.topics for space in spaces if space.name == "BOW"), spaces[0].topics)
    risks = {name: known.of_judged(one) for name, one in baseline_risks(crowd, topics, options).items()}
    scored = {space.name: score(crowd, space, options, progress) for space in spaces}
    for name, one in scored.items():
        for dimension in DIMENSIONS:
            by_topic = dict(zip(one.space.topics.names, one.risks(dimension).T, strict=True))
            risks[method_name(name, dimension)] = known.of_judged(by_topic)
    methods = {name: known.judge_judged(one) for name, one in risks.items()}
    judged = {topic: (len(votes), int((votes > 0.5).sum())) for topic, votes in known.votes.items()}
    return MethodComparison(methods, risks, judged, scored, known)


def baseline_risks(crowd: Crowd, topics: TopicSet, options: ExposureOptions) -> dict[str, dict[str, Floats]]:
    """Return ENTROPY and DIFF-PRIV of everybody for every topic, as numbers in their order."""
    words = BagOfWords(topics)
    held = words_held(crowd, words, options)
    place = {word: at for at, word in enumerate(words.words)}
    entropy, privacy = {}, {}
    for topic in topics.topics:
        own = held[:, [place[word] for word in topic.words]]
        entropy[topic.name] = entropy_risks(own)
        privacy[topic.name] = diff_priv_order(*diff_priv_risks(own))
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
    for number, topic in enumerate(topics):
        risks = scored.risks()[:, scored.space.topics.place(topic)]
        # Every topic has a draw of its own: with one draw for all, the same few people would be judged for each.
        chosen = sample_by_score(risks, count, base, [seed, number])
        parts.append(pl.DataFrame({"user": scored.users[chosen.tolist()], "topic": topic}))
    return pl.concat(parts).with_columns(vote=pl.lit(None, pl.Float64))


def _plain_test(significance: Mapping[str, float]) -> dict[str, Any]:
    plain: dict[str, Any] = {name: None if np.isnan(p) else p for name, p in significance.items()}
    undefined = any(p is None for p in plain.values())
    return plain | ({"reason": "one of the two methods has no scores"} if undefined else {})


def _rival(method: str, methods: Mapping[str, Merit]) -> str | None:
    """Return what a method is tested against: its own strength of interest, or the baseline ENTROPY."""
    if method in BASELINES:
        return None
    plain = method.split("-")[0]
    return plain if plain != method and plain in methods else "ENTROPY"
