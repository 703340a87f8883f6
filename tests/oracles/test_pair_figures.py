"""Words, crowds at one radius, rankings, the three cases and section 5.1 of the studies of papers 000 and 003."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from statistics import mean, median
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from tests.oracles.linking import Forums, spearman
from tests.oracles.test_pair_studies import OPTIONS, both, linked, part, points

from incrowd.crowd import Crowd
from incrowd.study.anonymity import anonymity_study
from incrowd.study.figures import Study
from incrowd.study.linkability import OnePair

__all__ = ["both", "linked"]  # fixtures
RISKS = ("underestimated", "well estimated", "overestimated")


@pytest.fixture(scope="module")
def alone(both: tuple[Forums, Crowd]) -> tuple[Forums, Study]:
    return both[0], anonymity_study(both[1], OPTIONS)


def heaviest(forums: Forums, community: str | None, *, shares: bool) -> list[tuple[str, float]]:
    """Every word that five people or more use, with its count or the mean share of a member's words."""
    weight, people, members = defaultdict[str, float](float), defaultdict[str, set[str]](set), 0
    for (person, where), words in forums.words.items():
        if community in (None, where):
            members += 1
            for word, times in words.items():
                weight[word] += times / words.total() if shares else times
                people[word].add(person)
    kept = [(word, weight[word] / (members if shares else 1)) for word in weight if len(people[word]) >= 5]
    return sorted(kept, key=lambda one: -one[1])[:20]


@pytest.mark.parametrize(("title", "shares"), [("Table 1", False), ("Ours: commonest words", True)])
def test_words_everywhere_and_in_the_two_largest_communities(
    alone: tuple[Forums, Study], title: str, shares: bool
) -> None:
    forums, study = alone
    table = part(study, title)
    sizes = Counter(community for _, community in forums.words)
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))[:2]
    assert table.columns == ("place", "everywhere", *largest)
    assert [row[0] for row in table.rows] == list(range(1, len(table.rows) + 1))
    for column, community in enumerate((None, *largest), start=1):
        wanted = heaviest(forums, community, shares=shares)
        weight = dict(wanted)
        shown = [row[column] for row in table.rows if row[column] != "–"]
        assert set(shown) == set(weight)
        assert [weight[word] for word in shown] == pytest.approx([size for _, size in wanted])


@pytest.mark.parametrize(
    ("title", "fixed"), [("Figure 3", False), ("The same with the crowd counted at distance 0.8", True)]
)
def test_precision_by_the_size_of_the_crowd(alone: tuple[Forums, Study], title: str, fixed: bool) -> None:
    forums, study = alone
    groups = defaultdict[int, list[Any]](list)
    for source, target in forums.matches:
        size = len(forums.matching(target, target[1], 0.8)) if fixed else forums.sets(source, target)[1]
        groups[size // 10 * 10 + 5].append((source, target))
    groups = {size: of for size, of in sorted(groups.items()) if len({s[0] for s, _ in of}) >= 5}
    for number, k in enumerate((1, 5, 10, 20)):
        wanted = [(size, mean(forums.hit(s, t, k) for s, t in of)) for size, of in groups.items()]
        found = points(part(study, title), number)
        assert [size for size, _ in found] == [size for size, _ in wanted]
        assert [rate for _, rate in found] == pytest.approx([rate for _, rate in wanted])
    if not fixed and len(groups) > 1:
        at_5 = [mean(forums.hit(s, t, 5) for s, t in of) for of in groups.values()]
        sizes = list(groups)
        told = f"{at_5[0]:.2f} in crowds around {sizes[0]}; {at_5[-1]:.2f} in crowds around {sizes[-1]}"
        assert study.headlines[-1].here == told


def test_the_line_in_figure_2_is_where_both_are_equal(alone: tuple[Forums, Study]) -> None:
    line = next(one for one in part(alone[1], "Figure 2").series if one.name == "equal")
    assert line.x == line.y == (0, 1)  # distances go from 0 to 1


def test_headlines_of_paper_000(alone: tuple[Forums, Study]) -> None:
    forums, study = alone
    here = {one.result: one.here for one in study.headlines}
    within = [d for (i, j), d in forums.far.items() if i < j and i[1] == j[1]]
    across = [d for (i, j), d in forums.far.items() if i < j and i[1] != j[1]]
    assert here["mean distance within communities"] == pytest.approx(mean(within), abs=1e-6)
    assert here["smallest distance within communities"] == pytest.approx(min(within), abs=1e-6)
    assert here["mean distance across communities"] == pytest.approx(mean(across), abs=1e-6)


def ranks_possible(rows: list[list[float]]) -> np.ndarray:
    """How often each identity (row) could have each rank, 1 = the smallest; equal ones share their ranks."""
    many = len(rows)
    weight = np.zeros((many, many))
    for column in zip(*rows, strict=True):
        for identity, size in enumerate(column):
            first = sum(other < size for other in column)
            weight[identity, first : first + sum(other == size for other in column)] += 1
    return weight


@pytest.fixture(scope="module")
def pair(both: tuple[Forums, Crowd]) -> OnePair:
    return OnePair(both[1], OPTIONS, "books", "chess", None)


@pytest.mark.parametrize("way", ["ranking", "by_convergence"])
def test_ranks_agree_with_as_many_radii_as_ranks_can(
    both: tuple[Forums, Crowd], pair: OnePair, way: str
) -> None:
    forums, attack = both[0], pair.attack
    users = attack.meeting.counts.identities["user"].to_numpy()[attack.meeting.targets]
    targets = [(str(user), "chess") for user in users]
    far = [[forums.far[one, other] for other in targets] for one in targets]
    if way == "ranking":
        rows = [[sum(d <= place / 1000 for d in row) for place in range(1001)] for row in far]
    else:  # the largest radius needed comes first
        rows = [[-d for d in sorted(row[:n] + row[n + 1 :])] for n, row in enumerate(far)]
    weight, found = ranks_possible(rows), getattr(pair, way).ranks
    assert sorted(found) == list(range(1, len(targets) + 1))
    best = weight[linear_sum_assignment(weight, maximize=True)].sum()
    assert weight[np.arange(len(found)), found - 1].sum() == best


def test_correlations_of_ranks_and_matching_sets(linked: tuple[Forums, Study], pair: OnePair) -> None:
    forums, study = linked
    attack = pair.attack
    users = attack.meeting.counts.identities["user"].to_numpy()[attack.meeting.targets]
    people = [str(users[place]) for place in attack.pairs[:, 1]]

    def correlation(ranks: Any, radius: float) -> float:
        sizes = [len(forums.matching((one, "books"), "chess", radius)) for one in people]
        return spearman([ranks[place] for place in attack.pairs[:, 1]], sizes)

    first = part(study, "Figure 8a")
    told = re.search(r"correlation is (\S+) ", first.sentence)
    wanted = correlation(pair.ranking.ranks, 0.8)
    assert told
    assert told[1] == f"{wanted:.2f}"
    thresholds = [place / 20 for place in range(1, 21)]
    by_size = [correlation(pair.ranking.ranks, radius) for radius in thresholds]
    by_radius = [correlation(pair.by_convergence.ranks, radius) for radius in thresholds]
    ways = part(study, "Two ways to rank").series
    assert ways[0].x == pytest.approx(thresholds)
    assert ways[0].y == pytest.approx(by_size, nan_ok=True)
    assert ways[1].y == pytest.approx(by_radius, nan_ok=True)
    several = part(study, "Figure 8c").series
    assert several[0].name == "books to chess"
    assert several[0].y == pytest.approx(by_size, nan_ok=True)
    known = [value for value in by_size if not math.isnan(value)]
    headline = next(one for one in study.headlines if "figure 8c" in one.result)
    assert headline.here == f"Spearman {min(known):.2f} to {max(known):.2f}"


def test_figure_8_by_brute_force(both: tuple[Forums, Crowd], linked: tuple[Forums, Study]) -> None:
    """Ranks have an oracle of their own; here it is who they belong to, and every other value shown."""
    forums, study = linked
    radii, shown_as = [place / 20 for place in range(1, 21)], set()
    for series in part(study, "Figure 8c").series:
        source, target = series.name.split(" to ")
        shown = OnePair(both[1], OPTIONS, source, target, None)
        users = shown.attack.meeting.counts.identities["user"].to_numpy()[shown.attack.meeting.targets]
        places = shown.attack.pairs[:, 1]
        ranks = [shown.ranking.ranks[place] for place in places]
        people = [str(users[place]) for place in places]
        assert sorted(people) == sorted(s[0] for s, t in forums.matches if (s[1], t[1]) == (source, target))

        def sizes(
            radius: float, people: list[str] = people, source: str = source, target: str = target
        ) -> list[int]:
            return [len(forums.matching((one, source), target, radius)) for one in people]

        assert series.x == pytest.approx(radii)
        assert series.y == pytest.approx([spearman(ranks, sizes(radius)) for radius in radii], nan_ok=True)
        for title, radius in (("Figure 8a", 0.8), ("Figure 8b", 0.85)):
            chart = part(study, title)
            if chart.sentence.startswith(f"{source} to {target}:"):
                shown_as.add(title)
                assert points(chart) == sorted(zip(ranks, sizes(radius), strict=True))
    assert shown_as == {"Figure 8a", "Figure 8b"}


def test_curves_run_over_all_radii(linked: tuple[Forums, Study]) -> None:
    _, study = linked
    for title in ("Figure 5", "Figure 6", "Figure 7", *(f"Risk {one}" for one in RISKS)):
        for series in part(study, title).series:
            assert series.x == pytest.approx([place / 100 for place in range(101)])
    for series in part(study, "Two ways to rank").series:
        assert series.x == pytest.approx([place / 20 for place in range(1, 21)])


def test_figure_9_shows_how_far_the_community_is_from_three_people(
    linked: tuple[Forums, Study], pair: OnePair
) -> None:
    forums, study = linked
    attack = pair.attack
    users = attack.meeting.counts.identities["user"].to_numpy()[attack.meeting.targets]
    people = [str(users[place]) for place in attack.pairs[:, 1]]
    ranks = [pair.ranking.ranks[place] for place in attack.pairs[:, 1]]
    sizes = [len(forums.matching((one, "books"), "chess", 0.8)) for one in people]

    def standing(values: list[int], own: int) -> float:
        return (sum(v < own for v in values) + sum(v <= own for v in values)) / (2 * len(values))

    gap = [standing(ranks, r) - standing(sizes, m) for r, m in zip(ranks, sizes, strict=True)]
    chosen = {
        "underestimated": gap.index(max(gap)),
        "well estimated": min(range(len(gap)), key=lambda place: abs(gap[place])),
        "overestimated": gap.index(min(gap)),
    }
    everybody = forums.members("chess")
    for name, place in chosen.items():
        chart = part(study, f"Risk {name}")
        for series, community in zip(chart.series, ("chess", "books"), strict=True):
            far = [forums.far[(people[place], community), other] for other in everybody]
            # A distance that is a hundredth to the last digit could fall on either side of it.
            sure = [x for x in range(101) if all(abs(d - x / 100) > 1e-7 or d == 0 for d in far)]
            wanted = [mean(d <= x / 100 for d in far) for x in sure]
            assert [series.y[x] for x in sure] == pytest.approx(wanted)


def test_section_5_1_by_brute_force(linked: tuple[Forums, Study], pair: OnePair) -> None:
    """The other columns of the unigram row: rank and |M| at the median distance, |A| and |M|, conformity."""
    forums, study = linked
    row = next(r for r in part(study, "Identity models").rows if r[:2] == ("unigram", "jensen-shannon"))
    matches = [(s, t) for s, t in forums.matches if (s[1], t[1]) == ("books", "chess")]
    sets = [forums.sets(s, t) for s, t in matches]
    users = pair.attack.meeting.counts.identities["user"].to_numpy()[pair.attack.meeting.targets]
    rank = {(str(users[place]), "chess"): pair.ranking.ranks[place] for place in pair.attack.pairs[:, 1]}
    middle = median(forums.far[match] for match in matches) + 1e-9  # its own pair counts
    sizes = [len(forums.matching(source, "chess", middle)) for source, _ in matches]
    assert row[4] == pytest.approx(spearman([rank[target] for _, target in matches], sizes))
    assert row[5] == pytest.approx(spearman([a for _, a, _ in sets], [m for m, _, _ in sets]))
    assert row[6] == pytest.approx(mean(a > m for m, a, _ in sets))
    assert row[7] == pytest.approx(mean(5 * mu >= 4 * m for m, _, mu in sets))


def test_headlines_of_paper_003(linked: tuple[Forums, Study]) -> None:
    forums, study = linked
    here = {one.result: one.here for one in study.headlines}
    sources, targets = forums.members("books"), forums.members("chess")
    for name, people in (("matching set at 0.8", sources), ("anonymity set at 0.8", targets)):
        (found,) = [value for result, value in here.items() if name in result]
        assert found == median(len(forums.matching(one, "chess", 0.8)) for one in people)
    own = [forums.sets(s, t) for s, t in forums.matches if (s[1], t[1]) == ("books", "chess")]
    (found,) = [value for result, value in here.items() if "one pair (figure 10)" in result]
    assert found == pytest.approx(spearman([a for _, a, _ in own], [m for m, _, _ in own]))
    sets = [forums.sets(s, t) for s, t in forums.matches]
    for name, wanted in (
        ("|A|/|M| in [0.8, 1.2)", mean(4 * m <= 5 * a < 6 * m for m, a, _ in sets)),
        ("|A| > |M|", mean(a > m for m, a, _ in sets)),
        ("conformity of 0.8", mean(5 * mu >= 4 * m for m, _, mu in sets)),
    ):
        (found,) = [value for result, value in here.items() if result.startswith(name)]
        assert found == pytest.approx(wanted)


@pytest.mark.parametrize(("title", "parts"), [("Figure 11", 1), ("Figure 12b", 2)])
def test_bars_over_all_pairs_by_brute_force(linked: tuple[Forums, Study], title: str, parts: int) -> None:
    """|A| or |mu| divided by |M|, in whole numbers: bars of a fifth, the last one open."""
    forums, study = linked
    sets = [forums.sets(s, t) for s, t in forums.matches]
    (series,) = part(study, title).series
    assert points(part(study, "Ours: 12a over all pairs")) == sorted((m, mu) for m, _, mu in sets)
    bars = Counter(min(5 * one[parts] // one[0], len(series.y) - 1) for one in sets)
    assert series.y == pytest.approx([bars[place] / len(sets) for place in range(len(series.y))])
