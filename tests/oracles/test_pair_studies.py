"""Every value the studies of papers 000 and 003 print, against the brute-force versions, on small odd crowds."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from statistics import mean
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.oracles.linking import Forums, spearman

from incrowd.crowd import Crowd
from incrowd.drawing import Chart
from incrowd.study.anonymity import anonymity_study, precision_by_size
from incrowd.study.figures import Study, Table
from incrowd.study.linkability import linkability_study, ratio_chart, three_cases
from incrowd.study.matched import PairStudyOptions, matched_pairs
from incrowd.text.options import TextOptions

OPTIONS = PairStudyOptions(
    min_posts=1, min_profiles=1, min_pairs=1, text=TextOptions(tokens="simple", keep_stopwords=True)
)
LETTERS = [f"w{k}" for k in range(12)]


def made_up(seed: int) -> list[tuple[str, str, str]]:
    """Three forums; clones in them, people in one, two and three, and a fourth forum nobody else is in."""
    rng = np.random.default_rng(seed)
    posts = []
    for person in range(14):
        for community in ("books", "chess", "bikes"):
            if rng.random() < 0.7:
                likes = rng.dirichlet(np.full(len(LETTERS), 0.4))
                posts.append((f"p{person}", community, " ".join(rng.choice(LETTERS, 12, p=likes))))
    for person in ("clone", "twin"):
        posts += [(person, community, "w1 w2 w2 w3") for community in ("books", "chess")]
    return [*posts, ("p0", "empty", "w0 w1"), ("p0", "books", "w5 w6 w0")]


@pytest.fixture(scope="module", params=[0, 1])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Forums, Crowd]:
    posts = made_up(request.param)
    frame = pl.DataFrame(posts, schema=["user", "community", "text"], orient="row").with_columns(
        time=pl.lit(1)
    )
    crowd = Crowd.from_frame(frame, path=tmp_path_factory.mktemp("forums") / "crowd", plain_names=True)
    return Forums(posts), crowd


def part(study: Study, start: str) -> Any:
    found = [one for section in study.sections for one in section.parts if one.title.startswith(start)]
    assert len(found) == 1, start
    return found[0]


def cells(table: Table) -> dict[Any, tuple[Any, ...]]:
    return {row[0]: row[1:] for row in table.rows}


def points(chart: Chart, series: int = 0) -> list[tuple[float, float]]:
    return sorted(zip(chart.series[series].x, chart.series[series].y, strict=True))


def test_distances_are_those_of_the_paper(both: tuple[Forums, Crowd]) -> None:
    forums, crowd = both
    found = cells(part(anonymity_study(crowd, OPTIONS), "Distances between two profiles"))
    pairs = list(combinations(forums.words, 2))
    kinds = {
        "within communities": [forums.far[p] for p in pairs if p[0][1] == p[1][1]],
        "across communities": [forums.far[p] for p in pairs if p[0][1] != p[1][1]],
        "one person's profiles": [forums.far[p] for p in pairs if p[0][0] == p[1][0]],
        "all identities": [forums.far[p] for p in pairs],
    }
    for name, far in kinds.items():
        assert found[name][:3] == pytest.approx((min(far), max(far), mean(far)), abs=1e-6), name
    strangers = [forums.far[p] for p in pairs if p[0][0] != p[1][0] and p[0][1] != p[1][1]]
    assert found["across communities, two people"][2] == pytest.approx(mean(strangers), abs=1e-6)


def test_table_1_counts_words_and_people(both: tuple[Forums, Crowd]) -> None:
    forums, crowd = both
    rows = part(anonymity_study(crowd, OPTIONS), "Table 1").rows
    total, people = Counter[str](), dict[str, set[str]]()
    for (person, _), words in forums.words.items():
        total.update(words)
        for word in words:
            people.setdefault(word, set()).add(person)
    shown = [row[1] for row in rows if row[1] != "–"]
    assert {word for word in total if len(people[word]) >= 5} == set(shown)
    assert [total[word] for word in shown] == sorted((total[word] for word in shown), reverse=True)


def test_matches_and_strangers(both: tuple[Forums, Crowd]) -> None:
    forums, crowd = both
    study = anonymity_study(crowd, OPTIONS)
    known = [(forums.stranger(s, t), forums.far[s, t]) for s, t in forums.matches]
    lonely = [pair for pair in known if math.isnan(pair[0])]
    told = [pair for pair in known if not math.isnan(pair[0])]
    assert lonely, "somebody is alone in the target community"
    assert f"{len(lonely)} pairs have no stranger" in study.summary
    assert np.allclose(points(part(study, "Figure 2")), sorted(told), atol=1e-6)
    below = next(one for one in study.headlines if "average stranger" in one.result)
    assert below.here == pytest.approx(mean(far < stranger for stranger, far in told))


def test_figure_3_breaks_ties_by_lot_and_counts_people(both: tuple[Forums, Crowd]) -> None:
    forums, crowd = both
    rows = precision_by_size(matched_pairs(crowd, OPTIONS).rows, "anonymity")
    groups: dict[int, list[tuple[str, float, float]]] = {}
    for source, target in forums.matches:
        size = forums.sets(source, target)[1] // 10 * 10 + 5
        groups.setdefault(size, []).append(
            (source[0], forums.hit(source, target, 1), forums.hit(source, target, 5))
        )
    wanted = {
        size: (len({one[0] for one in of}), mean(one[1] for one in of), mean(one[2] for one in of))
        for size, of in groups.items()
        if len({one[0] for one in of}) >= 5
    }
    found = {row["size"]: (row["people"], row["at_1"], row["at_5"]) for row in rows.iter_rows(named=True)}
    assert set(found) == set(wanted)
    for size, values in wanted.items():
        assert found[size] == pytest.approx(values)


def test_eight_identical_people_are_found_once_in_eight(tmp_path: Any) -> None:
    posts = [(f"p{k}", community, "one two two") for k in range(8) for community in ("a", "b")]
    frame = pl.DataFrame(posts, schema=["user", "community", "text"], orient="row").with_columns(
        time=pl.lit(1)
    )
    rows = matched_pairs(Crowd.from_frame(frame, path=tmp_path / "crowd"), OPTIONS).rows
    found = precision_by_size(rows, "anonymity").row(0, named=True)
    assert (found["people"], found["at_1"], found["at_5"]) == (8, 0.125, 0.625)


def test_few_people_with_many_pairs_are_few_people() -> None:
    rows = pl.DataFrame(
        {"person": ["a"] * 6 + ["b"] * 6, "anonymity": [3] * 12, "nearer": [0] * 12, "ties": [0] * 12}
    )
    assert precision_by_size(rows, "anonymity").is_empty()


@pytest.fixture(scope="module")
def linked(both: tuple[Forums, Crowd]) -> tuple[Forums, Study]:
    return both[0], linkability_study(both[1], OPTIONS, source="books", target="chess")


def test_the_three_sets_over_all_pairs_and_over_one(linked: tuple[Forums, Study]) -> None:
    forums, study = linked
    found = cells(part(study, "Paper 003's figures beside ours"))
    for place, matches in enumerate(
        (
            [(s, t) for s, t in forums.matches if (s[1], t[1]) == ("books", "chess")],
            forums.matches,
        )
    ):
        sets = [forums.sets(s, t) for s, t in matches]
        wanted = {
            "Spearman of |A(d)| and |M(d)|": spearman([a for _, a, _ in sets], [m for m, _, _ in sets]),
            "|A|/|M| within 0.8 to 1.2": mean(4 * m <= 5 * a < 6 * m for m, a, _ in sets),
            "|A| > |M|: risk underestimated": mean(a > m for m, a, _ in sets),
            "conformity |mu|/|M| at least 0.8": mean(5 * mu >= 4 * m for m, _, mu in sets),
            "conformity above 1": 0,
        }
        for name, value in wanted.items():
            assert found[name][place] == pytest.approx(value, abs=1e-9), name


def test_figures_of_one_pair_hold_its_people_only(linked: tuple[Forums, Study]) -> None:
    forums, study = linked
    sets = [forums.sets(s, t) for s, t in forums.matches if (s[1], t[1]) == ("books", "chess")]
    assert points(part(study, "Figure 10")) == sorted((a, m) for m, a, _ in sets)
    assert points(part(study, "Figure 12a")) == sorted((m, mu) for m, _, mu in sets)
    assert points(part(study, "Figure 12c")) == sorted((a, mu) for _, a, mu in sets)
    pooled = [forums.sets(s, t) for s, t in forums.matches]
    assert points(part(study, "Ours: the same over all pairs")) == sorted((a, m) for m, a, _ in pooled)


def test_precision_recall_and_set_sizes_over_thresholds(linked: tuple[Forums, Study]) -> None:
    forums, study = linked
    sources, targets = forums.members("books"), forums.members("chess")
    matches = [(s, t) for s, t in forums.matches if (s[1], t[1]) == ("books", "chess")]
    figure = part(study, "Figure 5")
    for place in (0, 30, 60, 77, 100):
        radius = place / 100
        recalled = [forums.far[s, t] <= radius for s, t in matches]
        closed = sum(len(forums.matching(s, "chess", radius)) for s, _ in matches)
        openly = sum(len(forums.matching(s, "chess", radius)) for s in sources)
        got = [one.y[place] for one in figure.series]
        wanted = [sum(recalled) / n if n else math.nan for n in (closed, openly, len(matches))]
        assert got == pytest.approx(wanted, nan_ok=True)
        for title, people in (("Figure 6", sources), ("Figure 7", targets)):
            sizes = [len(forums.matching(one, "chess", radius)) for one in people]
            median, average = (one.y[place] for one in part(study, title).series)
            assert (median, average) == pytest.approx((float(np.median(sizes)), mean(sizes)))


def test_figure_8_shows_two_pairs_and_several(linked: tuple[Forums, Study]) -> None:
    forums, study = linked
    first, second = part(study, "Figure 8a"), part(study, "Figure 8b")
    assert "at 0.8" in first.title
    assert "at 0.85" in second.title
    matches = [(s, t) for s, t in forums.matches if (s[1], t[1]) == ("books", "chess")]
    sizes = sorted(len(forums.matching(s, "chess", 0.8)) for s, _ in matches)
    assert sorted(first.series[0].y) == sizes
    assert len(part(study, "Figure 8c").series) >= 3
    assert [one.name for one in part(study, "Two ways to rank").series] == ["by set size", "by convergence"]


def test_figure_9_takes_people_by_their_rank() -> None:
    ranks, sizes = np.array([1, 2, 3, 4, 5]), np.array([10, 50, 30, 40, 2])
    chosen = three_cases(ranks, sizes)
    assert chosen["underestimated"] == 4  # the safest rank, the smallest matching set
    assert chosen["well estimated"] in (2, 3)
    assert chosen["overestimated"] == 1


def test_section_5_1_has_every_model_and_distance(linked: tuple[Forums, Study]) -> None:
    forums, study = linked
    rows = part(study, "Identity models").rows
    assert len({row[:2] for row in rows}) == 6
    matches = [(s, t) for s, t in forums.matches if (s[1], t[1]) == ("books", "chess")]
    unigram = next(row for row in rows if row[:2] == ("unigram", "jensen-shannon"))
    assert unigram[2:4] == pytest.approx([mean(forums.hit(s, t, k) for s, t in matches) for k in (1, 10)])


def test_ratios_stand_in_their_own_bin() -> None:
    parts, wholes = pl.Series([3, 6, 7, 1, 9, 30]), pl.Series([5, 5, 5, 1, 5, 5])
    chart = ratio_chart(parts, wholes, "ratios")
    counts = [round(share * 6) for share in chart.series[0].y]
    assert dict(zip(chart.categories, counts, strict=True)) == {
        **dict.fromkeys(chart.categories, 0), "0.6–0.8": 1, "1.2–1.4": 1, "1.4–1.6": 1, "1.0–1.2": 1, "1.8+": 2,
    }  # fmt: skip
