"""Every table and curve of the exposure study, from the definitions, on eight people and two topics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, permutations, product
from statistics import mean
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as students_t
from scipy.stats import ttest_rel
from tests.oracles.test_exposure_ranks import FEATURES, MONDAY, TOPICS, WEEK, WORDS, Post, risk

from incrowd.crowd import Crowd
from incrowd.measures.exposure.space import BagOfWords, Space
from incrowd.measures.exposure.topics import TopicSet
from incrowd.study.exposure import exposure_study
from incrowd.study.figures import Study

PEOPLE = [f"p{n}" for n in range(10)]
JUDGED = PEOPLE[:7]
"""Three are in the crowd and were not judged; the last of the judged wrote without dates."""
VOTES = {
    "fear": dict(zip(JUDGED, [1.0, 0.6, 0.4, 0.0, 0.8, 0.2, 0.0], strict=True)),
    "money": dict(zip(JUDGED, [0.0, 0.2, 1.0, 0.8, 0.0, 0.0, 0.4], strict=True)),
}
DIMENSIONS = ("", "D", "T", "DT")
Risks = dict[str, dict[str, float]]


def made_up() -> list[Post]:
    rng = np.random.default_rng(5)
    return [
        (
            one,
            None if one == JUDGED[-1] else MONDAY + WEEK * int(rng.integers(6)),
            " ".join(rng.choice(WORDS, 4)),
        )
        for one in PEOPLE
        for _ in range(rng.integers(2, 6))
    ]


POSTS = made_up()


def of(person: str) -> list[Post]:
    return [post for post in POSTS if post[0] == person]


def studied(spaces: Sequence[Space] = (), called: Mapping[str, str] | None = None) -> Study:
    frame = pl.DataFrame(POSTS, schema={"user": pl.String, "time": pl.Int64, "text": pl.String}, orient="row")
    crowd = Crowd.from_frame(frame.with_columns(community=pl.lit("c")), plain_names=True)
    labels = pl.DataFrame(
        [
            (one, (called or {}).get(topic, topic), vote)
            for topic, votes in VOTES.items()
            for one, vote in votes.items()
        ],
        schema=["user", "topic", "vote"],
        orient="row",
    )
    return exposure_study(crowd, spaces or [BagOfWords(TOPICS)], labels, judges=5)


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    return studied().to_dict()


def part(study: dict[str, Any], start: str) -> dict[str, Any]:
    parts = [one for section in study["sections"] for one in section["parts"]]
    (found,) = [one for one in parts if one.get("table", one.get("chart")).startswith(start)]
    return dict(found)


def strength(dimension: str, **settings: Any) -> Risks:
    return {topic: {one: risk(of(one), topic, dimension, **settings) for one in JUDGED} for topic in VOTES}


def holds(person: str, feature: str) -> bool:
    return any(f" {feature} " in f" {text} " for *_, text in of(person))


def divergence(p: float, q: float) -> float:
    return sum(a * math.log2(a / b) for a, b in ((p, q), (1 - p, 1 - q)) if a)


def as_in_tables(topic: str, person: str) -> tuple[float, float]:
    """ENT and DIFF-PRIV: what the person changes in the share of people who have each salient word."""
    others = [one for one in PEOPLE if one != person]
    shares = [
        (mean(holds(one, word) for one in others), mean(holds(one, word) for one in PEOPLE))
        for word in FEATURES[topic]
    ]
    private = [0.0 if q == 0 else math.inf if p == 0 else abs(math.log2(p / q)) for p, q in shares]
    # Infinite comes first; among those, who has more words that nobody else has.
    alone = sum(map(math.isinf, private))
    return mean(divergence(p, q) for p, q in shares), 1e6 + alone if alone else max(private)


def methods() -> dict[str, Risks]:
    tables = {topic: {one: as_in_tables(topic, one) for one in JUDGED} for topic in VOTES}
    found = {
        "ENTROPY": {topic: {one: both[0] for one, both in each.items()} for topic, each in tables.items()},
        "DIFF-PRIV": {topic: {one: both[1] for one, both in each.items()} for topic, each in tables.items()},
    }
    return found | {f"BOW-{d}".rstrip("-"): strength(d) for d in DIMENSIONS}


def sensitive(topic: str) -> set[str]:
    return {one for one, vote in VOTES[topic].items() if vote > 0.5}


def expected(scores: dict[str, float], figure: Callable[[tuple[str, ...]], float]) -> float:
    """Over all orders in which nobody stands before somebody with a higher score; who has none comes last."""
    known = {one: -math.inf if math.isnan(score) else round(score, 9) for one, score in scores.items()}
    orders = [order for order in permutations(known) if all(known[a] >= known[b] for a, b in pairwise(order))]
    return mean(map(figure, orders))


def r_precision(scores: dict[str, float], topic: str) -> float:
    found = sensitive(topic)
    return expected(scores, lambda order: len(found & {*order[: len(found)]}) / len(found))


def average_precision(scores: dict[str, float], topic: str) -> float:
    found = sensitive(topic)

    def of_order(order: tuple[str, ...]) -> float:
        places = [place for place, one in enumerate(order, 1) if one in found]
        return mean(hits / place for hits, place in enumerate(places, 1))

    return expected(scores, of_order)


def ndcg(scores: dict[str, float], topic: str) -> float:
    votes = VOTES[topic]

    def gain(order: Any) -> float:
        return sum(votes[one] / math.log2(place + 1) for place, one in enumerate(order, 1))

    return expected(scores, gain) / gain(sorted(votes, key=votes.__getitem__, reverse=True))


def figures(risks: Risks) -> list[float]:
    each = {topic: r_precision(scores, topic) for topic, scores in risks.items()}
    sizes = {topic: len(sensitive(topic)) for topic in risks}
    at_5 = [expected(s, lambda order, t=t: len(sensitive(t) & {*order[:5]}) / 5) for t, s in risks.items()]  # type: ignore[misc]
    return [
        sum(each[topic] * sizes[topic] for topic in risks) / sum(sizes.values()),
        mean(each.values()),
        mean(at_5),
        mean(average_precision(scores, topic) for topic, scores in risks.items()),
        mean(ndcg(scores, topic) for topic, scores in risks.items()),
    ]


def said(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def test_tables_3_to_6(study: dict[str, Any]) -> None:
    assert sorted(part(study, "Table 3")["rows"]) == sorted(
        [t, len(JUDGED), len(sensitive(t))] for t in VOTES
    )
    topics = part(study, "Table 6")["columns"][1:]
    per_topic = {row[0]: row[1:] for row in part(study, "Table 6")["rows"]}
    rows = {row[0]: row[1:] for name in ("Table 4", "Table 5") for row in part(study, name)["rows"]}
    intervals = {row[0]: row[1:] for row in part(study, "MAP with")["rows"]}
    compared = methods()
    assert set(rows) == set(per_topic) == set(compared)
    for name, risks in compared.items():
        wanted = figures(risks)
        assert rows[name] == pytest.approx(wanted), name
        assert per_topic[name] == pytest.approx([r_precision(risks[topic], topic) for topic in topics]), name
        assert intervals[name][0] == pytest.approx(wanted[3])
        assert intervals[name][3] == pytest.approx(wanted[3] / intervals["supervised bound"][0])


def test_intervals_of_map_leave_everybody_judged_out_once(study: dict[str, Any]) -> None:
    """The jackknife on log-odds: the bias off, Student's t with a topic's sensitive people less one."""
    rows = {row[0]: row[1:] for row in part(study, "MAP with")["rows"]}
    freedom = max(2.0, mean(len(sensitive(topic)) for topic in VOTES) - 1)

    def log_odds(risks: Risks, out: str | None) -> float:
        some = {topic: {one: s for one, s in scores.items() if one != out} for topic, scores in risks.items()}
        share = mean(average_precision(scores, topic) for topic, scores in some.items())
        share = min(max(share, 0.001), 0.999)
        return math.log(share / (1 - share))

    for name, risks in methods().items():
        whole, without = log_odds(risks, None), [log_odds(risks, one) for one in JUDGED]
        n, centre = len(JUDGED), mean(without)
        error = math.sqrt((n - 1) / n * sum((one - centre) ** 2 for one in without))
        middle, reach = n * whole - (n - 1) * centre, error * float(students_t.ppf(0.975, freedom))
        ends = [1 / (1 + math.exp(-one)) for one in (middle - reach, middle + reach)]
        assert rows[name][1:3] == pytest.approx(ends), name
    assert rows["supervised bound"][3:] == pytest.approx([1, 1, 1])  # as a share of itself


def test_settings_are_chosen_on_one_half_and_judged_on_the_other(study: dict[str, Any]) -> None:
    """Twenty times half of a topic's sensitive people and half of the others choose; the halves are the seed's."""
    ways: dict[str, Risks] = {}
    for m in (None, 2, 3, 4, 5, 6, 8):
        for k in (None, 0.1, 0.3, 0.6):
            dimension = "D" * (k is not None) + "T" * (m is not None)
            given = {name: value for name, value in (("m", m), ("k", k)) if value is not None}
            said = "".join(f", {name} = {value}" for name, value in given.items())
            ways[f"BOW-{dimension}".rstrip("-") + said] = strength(dimension, **given)

    def found(risks: Risks, some: dict[str, set[str]]) -> float:
        return mean(
            average_precision({one: risks[topic][one] for one in people}, topic)
            for topic, people in some.items()
        )

    rng, maps, chosen = np.random.default_rng(0), [], Counter[str]()
    for _ in range(20):
        choose: dict[str, set[str]] = {}
        for topic in VOTES:
            choose[topic] = set()
            for kind in (True, False):
                members = rng.permutation(
                    [n for n, one in enumerate(JUDGED) if (one in sensitive(topic)) == kind]
                )
                choose[topic] |= {JUDGED[n] for n in members[: len(members) // 2]}
        best = max(ways, key=lambda name: round(found(ways[name], choose), 9))
        chosen[best] += 1
        maps.append(found(ways[best], {topic: {*JUDGED} - people for topic, people in choose.items()}))
    rows = {row[0]: row[1:] for row in part(study, "Settings chosen")["rows"]}
    assert rows["BOW"][0] == pytest.approx(mean(maps))
    assert rows["BOW"][1:3] == pytest.approx(np.quantile(maps, [0.025, 0.975]))
    assert rows["BOW"][4] == chosen.most_common(1)[0][0]
    assert rows["supervised bound"][3] == pytest.approx(1)  # as a share of itself


def test_a_control_that_reads_no_word(study: dict[str, Any]) -> None:
    weeks = {one: float(len({time // WEEK for _, time, _ in of(one) if time is not None})) for one in JUDGED}
    rows = {row[0]: row[1] for row in part(study, "MAP with")["rows"]}
    wanted = mean(average_precision(weeks, topic) for topic in VOTES)
    assert rows["periods written in (no words)"] == pytest.approx(wanted)


def test_differences_in_hits(study: dict[str, Any]) -> None:
    def hit(scores: dict[str, float], topic: str, one: str) -> float:
        return expected(scores, lambda order: float(one in order[: len(sensitive(topic))]))

    def hits(risks: Risks) -> list[float]:
        return [hit(risks[topic], topic, one) for topic in sorted(VOTES) for one in sorted(sensitive(topic))]

    compared = {name: hits(risks) for name, risks in methods().items()}
    for name, against, by_t, by_flips in part(study, "Is the difference")["rows"]:
        gaps = [a - b for a, b in zip(compared[name], compared[against], strict=True)]
        ways = [
            abs(sum(s * gap for s, gap in zip(signs, gaps, strict=True)))
            for signs in product((-1, 1), repeat=len(gaps))
        ]
        assert by_flips == pytest.approx(mean(way >= abs(sum(gaps)) - 1e-9 for way in ways))
        if len({round(gap, 9) for gap in gaps}) > 1:
            assert by_t == pytest.approx(ttest_rel(compared[name], compared[against]).pvalue)


def test_what_k_and_m_change(study: dict[str, Any]) -> None:
    for title, dimension, setting in (("-D over k", "D", "k"), ("-T over m", "T", "m")):
        (curve,) = part(study, title)["series"]
        assert curve["x"] == pytest.approx([n / 10 for n in range(1, 11)] if setting == "k" else range(1, 13))
        for value, found in zip(curve["x"], curve["y"], strict=True):
            chosen = {setting: int(value) if setting == "m" else value}
            assert found == pytest.approx(figures(strength(dimension, **chosen))[0])


def test_figure_1_shows_those_judged_beside_everybody(study: dict[str, Any]) -> None:
    for topic in VOTES:
        for series, people in zip(part(study, f"Figure 1: {topic}")["series"], (PEOPLE, JUDGED), strict=True):
            scores = [risk(of(one), topic, "") for one in people]
            assert series["y"] == pytest.approx(np.quantile(scores, 1 - np.array(series["x"])))


def test_headlines_and_how_far_judges_agree(study: dict[str, Any]) -> None:
    here = {one["result"].split(": strength")[0].split(" (")[0]: one["here"] for one in study["headlines"]}
    micro = {name: said(figures(risks)[0]) for name, risks in methods().items()}
    assert here["ENTROPY; DIFF-PRIV"] == f"{micro['ENTROPY']}; {micro['DIFF-PRIV']}"
    assert here["BOW"] == ", ".join(micro[f"BOW-{one}".rstrip("-")] for one in DIMENSIONS)
    assert here["W2V"] == here["LDA"] == here["LDA, strength of interest"] == "not tried (--model)"
    yes = [round(5 * vote) for votes in VOTES.values() for vote in votes.values()]
    alike = mean((n * (n - 1) + (5 - n) * (4 - n)) / 20 for n in yes)
    share = sum(yes) / (5 * len(yes))
    chance = share**2 + (1 - share) ** 2
    assert here["agreement of those who judged people"] == pytest.approx((alike - chance) / (1 - chance))


def test_a_random_order_by_all_orders(study: dict[str, Any]) -> None:
    by_lot = figures({topic: dict.fromkeys(JUDGED, 0.0) for topic in VOTES})
    assert f"a random order reaches an r-precision of {by_lot[0]:.3f}" in study["summary"]
    text = next(one["text"] for one in study["sections"] if one["heading"].startswith("How sure"))
    assert f"A random order has a MAP of {by_lot[3]:.3f}" in text


def test_the_papers_rows_hold_its_spaces_and_topics_only() -> None:
    """The same study, topics and space called as in the paper: table 6 beside ours, weighted words nowhere."""
    called = {"fear": "depression", "money": "debts"}
    topics = TopicSet(tuple(replace(one, name=called.get(one.name, one.name)) for one in TOPICS.topics))

    class Latent(BagOfWords):
        name = "LDA"

    study = studied([Latent(topics)], called).to_dict()
    here = {one["result"]: one["here"] for one in study["headlines"]}
    compared = methods()
    assert here["LDA, strength of interest (table 4)"] == said(figures(compared["BOW"])[0])
    for topic, name in called.items():
        wanted = [r_precision(compared[f"BOW-{one}".rstrip("-")][topic], topic) for one in DIMENSIONS]
        assert here[f"{name}, LDA: strength, -D, -T, -DT (table 6)"] == ", ".join(map(said, wanted))
    assert not [one for one in here if "WORDS" in one or "WORDS" in str(here[one])]
