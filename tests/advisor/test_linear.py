"""One person is compared with everybody, not everybody with everybody; what a sample says agrees with all."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks import linear
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import distances
from incrowd.advisor.assess import assess
from incrowd.advisor.assessor import memory_for_work
from incrowd.crowd import Crowd
from incrowd.crowd.array_cache import DiskArray, cached_arrays
from incrowd.distances import profile_index
from incrowd.distances.index_layout import lay_out
from incrowd.measures import sampling
from incrowd.measures.exposure import scoring
from incrowd.measures.person import Person
from incrowd.measures.prepared import PreparedCrowd
from incrowd.measures.protocol import AdvisorOptions
from incrowd.measures.sampling import SampledRank, draw, sampled_rows
from incrowd.result import Assessment

exposure = import_module("incrowd.measures.exposure.measure")
BY_WORDS = AdvisorOptions(adversaries=("reader", "WORDS", "unigram"), advice=False)


def forum(people: int) -> Crowd:
    frame = pl.DataFrame(linear.posts(0, people))
    return Crowd.from_frame(frame.group_by("user", maintain_order=True).head(6))


@pytest.fixture
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_PAIRS", 1_000)
    monkeypatch.setattr(sampling, "FEWEST_SAMPLED", 40)
    monkeypatch.setattr(exposure, "MOST_SCORED", 60)


# Ranks from a sample


@pytest.mark.parametrize("before", [0, 3, 40, 900, 2_960, 3_000])
def test_the_interval_of_a_sampled_rank_covers(before: int) -> None:
    others, sampled, tries = 3_000, 300, 2_000
    seen = np.random.default_rng(before).hypergeometric(before, others - before, sampled, tries)
    found = [SampledRank.of(int(count), sampled, others).interval for count in seen]
    held = [low <= 1 + before <= high for low, high in found if (low, high)]  # type: ignore[misc]
    # 95 of 100 by construction; two standard errors of 2,000 tries below that is the least to be seen.
    assert len(held) == tries
    assert np.mean(held) > 0.94


@given(st.integers(1, 60), st.data())
def test_a_rank_among_all_is_exact(others: int, data: st.DataObject) -> None:
    before = data.draw(st.integers(0, others))
    assert SampledRank.of(before, others, others) == SampledRank(1 + before, None, others)


@given(st.integers(2, 500), st.data())
def test_an_interval_holds_the_estimate_and_whom_it_saw(others: int, data: st.DataObject) -> None:
    sampled = data.draw(st.integers(1, others - 1))
    before = data.draw(st.integers(0, sampled))
    rank = SampledRank.of(before, sampled, others)
    assert rank.interval is not None
    low, high = rank.interval
    assert 1 + before <= low <= rank.rank <= high <= 1 + others - (sampled - before)


def test_the_sample_is_the_same_for_everybody_and_grows_no_further() -> None:
    one, two = draw(50_000, 400), draw(50_000, 400)
    assert one is not None
    assert two is not None
    assert one.tolist() == two.tolist() == sorted(set(one.tolist()))
    assert draw(400, 400) is None
    assert sampled_rows(10_000) is None
    assert sampled_rows(10**6, exact=True) is None
    sizes = {
        people: len(some) for people in (20_000, 10**6, 10**7) if (some := sampled_rows(people)) is not None
    }
    assert sizes == {20_000: 5_000, 10**6: 300, 10**7: 300}


def by_subject(crowd: Crowd, user: str, options: AdvisorOptions) -> dict[Any, Assessment]:
    found = assess(crowd, user, options=options).findings
    return {one.key: one.assessment for one in found}


@pytest.mark.usefixtures("small_samples")
def test_a_sample_agrees_with_everybody(tiny_crowd: Crowd) -> None:
    users = tiny_crowd.posts().select("user").unique().collect()["user"].sort().to_list()[::40]
    within = []
    for user in users:
        some = by_subject(tiny_crowd, user, BY_WORDS)
        every = by_subject(
            tiny_crowd,
            user,
            AdvisorOptions(adversaries=("reader", "WORDS", "unigram"), advice=False, exact=True),
        )
        assert some.keys() == every.keys()
        for key, exact in every.items():
            sampled = some[key]
            if exact.unit == "people":
                assert sampled.value == exact.value  # one person against everybody is exact
            assert exact.interval is None
            assert "rank_interval" not in exact.assumptions.parameters  # everybody was compared
            assert sampled.crowd_size == exact.crowd_size
            low, high = sampled.assumptions.parameters.get("rank_interval", [exact.crowd_rank] * 2)
            within.append(exact.crowd_rank is None or low <= exact.crowd_rank <= high)
    assert len(within) > 50
    assert np.mean(within) > 0.9


# Cost


@pytest.mark.usefixtures("small_samples")
def test_twice_the_people_are_twice_the_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    def cost(people: int) -> tuple[int, int]:
        """Assess one member of a forum; return pairs of people compared, and posts held against topics."""
        pairs, posts = [], []
        ball_sizes, batches = distances.ball_sizes, scoring.post_batches

        def counted(x: Any, y: Any = None, **more: Any) -> Any:
            pairs.append(x.shape[0] * (x if y is None else y).shape[0])
            return ball_sizes(x, y, **more)

        def read(*arguments: Any) -> Any:
            for batch in batches(*arguments):
                posts.append(batch.height)
                yield batch

        with monkeypatch.context() as patched:
            patched.setattr(distances, "ball_sizes", counted)
            patched.setattr(scoring, "post_batches", read)
            assess(forum(people), linear.name(people // 3), options=BY_WORDS)
        return sum(pairs), sum(posts)

    assert cost(300) == (40 * 300, 60 * 6)
    assert cost(600) == (40 * 600, 60 * 6)


# The index


rows = st.lists(st.dictionaries(st.integers(0, 7), st.integers(1, 9), min_size=1), min_size=1, max_size=9)


@settings(max_examples=50)
@given(rows, st.integers(1, 4), st.sampled_from([1, 40, 10**6]))
def test_words_are_laid_out_alike_in_any_pieces(people: list[dict[int, int]], cuts: int, memory: int) -> None:
    def block(some: list[dict[int, int]]) -> tuple[Any, Any, Any]:
        used = [(word, one[word]) for one in some for word in sorted(one)]
        columns, counts = np.array(used, np.int32).reshape(-1, 2).T
        return columns, counts, np.array([len(one) for one in some], np.int64)

    parts = [
        people[at::1][: len(people) // cuts + 1] for at in range(0, len(people), len(people) // cuts + 1)
    ]
    laid = lay_out([block(part) for part in parts], 8, memory)
    found = {name: array[:] for name, array in laid.items()}
    for word in range(8):
        span = slice(found["word_starts"][word], found["word_starts"][word + 1])
        holders = {row: one[word] for row, one in enumerate(people) if word in one}
        assert (
            dict(zip(found["word_rows"][span].tolist(), found["word_counts"][span].tolist(), strict=True))
            == holders
        )
        share = sum(count / sum(people[row].values()) for row, count in holders.items())
        assert found["word_shares"][word] == pytest.approx(share)
    assert found["totals"].tolist() == [sum(one.values()) for one in people]
    assert np.diff(found["row_starts"]).tolist() == [len(one) for one in people]


def test_words_gone_through_in_pieces_say_the_same(
    tiny_crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = PreparedCrowd.of(tiny_crowd)
    alex = Person(tiny_crowd.user("alex"), crowd)
    name = next(iter(alex.communities))
    index, profile = crowd.words(name), alex.profile(name)
    held = index.squares(profile).squares
    monkeypatch.setattr(profile_index, "HELD_ENTRIES", 64)
    assert np.allclose(index.squares(profile).squares, held, atol=1e-9)
    whole = index.shares(slice(None), index.keys).toarray()
    parts = [index.shares(part, index.keys).toarray() for part in index.pieces(5_000)]
    assert len(parts) > 1
    assert np.array_equal(np.concatenate(parts), whole)


def test_a_community_counted_alone_is_the_one_counted_with_others(tiny_crowd: Crowd) -> None:
    alone, together = PreparedCrowd.of(tiny_crowd), PreparedCrowd.of(tiny_crowd)
    name = together.population.communities[0]
    together._together = (name,)
    one, _ = alone._make_words(name)
    other, _ = together._make_words(name)
    assert one.keys() == other.keys()
    for key, array in one.items():
        assert (
            np.allclose(array[:], other[key])
            if key == "word_shares"
            else np.array_equal(array[:], other[key])
        )


def test_arrays_on_disk_are_kept_as_they_are(tmp_path: Path) -> None:
    def make() -> tuple[dict[str, Any], dict[str, Any]]:
        (tmp_path / "advisor").mkdir(exist_ok=True)
        large = DiskArray(np.int32, tmp_path / "advisor", may_be_kept=True)
        large.append(np.arange(7))
        empty = DiskArray(np.int32, tmp_path, may_be_kept=True)
        return {"large": large, "empty": empty, "small": np.arange(3)}, {"fact": 1}

    for _ in range(2):
        arrays, about = cached_arrays(tmp_path, "kind", {}, "hash", make)
        assert about == {"fact": 1}
        assert {name: array.tolist() for name, array in arrays.items()} == {
            "large": [*range(7)],
            "empty": [],
            "small": [0, 1, 2],
        }
    assert [path.name for path in (tmp_path / "advisor").glob("unfinished-*")] == []


# Memory


def test_of_a_budget_the_program_itself_is_taken_off() -> None:
    mib = 2**20
    budgets = [128 * mib, 512 * mib, 600 * mib, 2**30, 2**32]
    left = [memory_for_work(budget) for budget in budgets]
    assert left == [128 * mib, 512 * mib, 512 * mib, 640 * mib, 2**32 - 384 * mib]
    assert sorted(left) == left


ANSWER = """
import re, sys
from pathlib import Path
from incrowd.cli import main
sys.argv = ["incrowd", *sys.argv[1:]]
try:
    main()
finally:
    peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
    print(int(peak[1]) // 1024, file=sys.stderr)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells the peak of a process")
def test_an_answer_takes_little_more_than_the_program(tmp_path: Path) -> None:
    """The small twin of the bar for 10,000 people: at this size next to all of the memory is the program's own."""
    crowd = Crowd.create(tmp_path / "crowd", plain_names=True)
    pl.DataFrame(linear.posts(0, 60)).write_parquet(tmp_path / "posts.parquet")
    crowd.ingest([tmp_path / "posts.parquet"], kind="posts")
    asked = ["assess", str(crowd.path), "--user", linear.name(20), "--memory", "1GiB", "--json"]
    run = subprocess.run([sys.executable, "-c", ANSWER, *asked], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["person"] == linear.name(20)
    assert int(run.stderr.split()[-1]) < 640


FIRST = """
import sys
from incrowd.cli import assess, main
frugally = assess.answer_frugally
def told() -> None:
    print("numpy" in sys.modules, file=sys.stderr)
    frugally()
assess.answer_frugally = told
sys.argv = ["incrowd", *sys.argv[1:]]
main()
"""


def test_an_answer_says_how_many_threads_before_numpy_is_loaded(tmp_path: Path) -> None:
    """Later the setting has no effect, and numbers depend on the machine's cores."""
    asked = [sys.executable, "-c", FIRST, "assess", str(tmp_path), "--user", "alex"]
    run = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert run.stderr.splitlines()[0] == "False"
