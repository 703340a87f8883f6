"""Published counts point at nobody: subtraction, count-1 items, sybils, and a bound for the all-knowing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import CrowdDamaged
from incrowd.measures.microdata.spec import ReleaseSpec
from incrowd.measures.microdata.statistics import (
    ReleaseState,
    load_state,
    make_bands,
    release_counts,
    save_state,
)

SAFE, EXACT = ReleaseSpec(), ReleaseSpec(literal=True)
THRESHOLD = 100


def counts(**people: int) -> pl.DataFrame:
    return pl.DataFrame(
        {"item": list(people), "people": list(people.values())},
        schema={"item": pl.String, "people": pl.Int64},
    )


def told(table: pl.DataFrame) -> dict[str, float]:
    return dict(table.iter_rows())


def releases(series: list[pl.DataFrame], spec: ReleaseSpec, secret: bytes) -> list[dict[str, float]]:
    state, out = ReleaseState.fresh(secret), []
    for one in series:
        table, state = release_counts(one, state, THRESHOLD, spec)
        out.append(told(table))
    return out


def many_items(seed: int, items: int = 400) -> dict[str, int]:
    rng = np.random.default_rng(seed)
    return {f"i{k:03d}": int(v) for k, v in enumerate(rng.zipf(1.3, items).clip(1, 5000))}


def changed(before: dict[str, float], after: dict[str, float]) -> set[str]:
    return {item for item in before.keys() | after.keys() if before.get(item, 0) != after.get(item, 0)}


def test_subtracting_two_exact_releases_reads_out_the_newcomer() -> None:
    base = many_items(0)
    victim = set(list(base)[::7])
    joined = {item: people + (item in victim) for item, people in base.items()}
    before, after = releases([counts(**base), counts(**joined)], EXACT, b"k")
    assert changed(before, after) == victim


@pytest.mark.parametrize("seed", range(5))
def test_subtracting_two_safe_releases_reads_out_nothing(seed: int) -> None:
    base = many_items(seed)
    victim = set(list(base)[::7])
    joined = {item: people + (item in victim) for item, people in base.items()}
    before, after = releases([counts(**base), counts(**joined)], SAFE, bytes([seed]))
    assert changed(before, after) <= {item for item in victim if base[item] < 2 * SAFE.crowd}
    # Only an item that was too rare to be opened before may appear at all; the listed ones all stand still.
    assert {item: v for item, v in after.items() if item in before} == before


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.integers(1, 400), max_size=20),
    st.binary(min_size=4, max_size=4),
)
@settings(max_examples=50, deadline=None)
def test_nothing_about_few_people_is_ever_listed(people: dict[str, int], secret: bytes) -> None:
    frame = pl.DataFrame(
        {"item": list(people), "people": list(people.values())},
        schema={"item": pl.String, "people": pl.Int64},
    )
    table, _ = release_counts(frame, ReleaseState.fresh(secret), THRESHOLD, SAFE)
    for item in told(table):
        assert people[item] > SAFE.crowd


@pytest.mark.parametrize("crowd", [1, 5, 10, 50])
def test_bands_are_wide_and_end_where_rare_items_begin(crowd: int) -> None:
    spec = ReleaseSpec(crowd=crowd)
    bands = make_bands(100_000, THRESHOLD, spec)
    assert np.all(np.diff(bands.edges) >= crowd)
    assert np.all(np.diff(bands.people) > 0)
    assert THRESHOLD + crowd // 2 in bands.edges


def test_a_told_count_is_near_the_true_one() -> None:
    true = {f"i{k}": int(v) for k, v in enumerate(np.geomspace(40, 50_000, 300))}
    (table,) = releases([counts(**true)], SAFE, b"near")
    error = [abs(table[item] - people) / people for item, people in true.items() if item in table]
    assert len(error) == 300
    assert np.median(error) < 0.06
    assert max(error) < 0.45


def test_the_same_counts_are_told_again_to_the_byte() -> None:
    base = counts(**many_items(3))
    first, second, third = releases([base, base, base], SAFE, b"again")
    assert first == second == third


def test_growth_shows_once_enough_people_have_come() -> None:
    series = [counts(a=50 + 5 * k) for k in range(30)]
    values = [one["a"] for one in releases(series, SAFE, b"grow")]
    steps = [k for k in range(1, 30) if values[k] != values[k - 1]]
    assert values[-1] > values[0] + 100
    assert len(steps) <= 15  # at least ten people (two days) between two changes


def test_an_item_that_everybody_dropped_goes_in_the_end() -> None:
    first, second = releases([counts(a=200, b=200), counts(b=200)], SAFE, b"drop")
    assert "a" in first
    assert "a" not in second


def test_the_all_knowing_gain_at_most_the_stated_bound() -> None:
    """Somebody who knows everybody but one person's one item: total variation of all they see is at most 2/k."""
    trials = 4000
    names = [f"i{k}" for k in range(trials)]  # every trial is an item with its own secrets
    worst = 0.0
    for start in (8, 14, 25, 60, 104):
        histories = []
        for extra in (0, 1):
            series = [
                pl.DataFrame({"item": names, "people": np.full(trials, count, dtype=np.int64)})
                for count in (start, start + extra, start + extra + 6, start + extra + 14)
            ]
            seen = pl.DataFrame({"item": names})
            state = ReleaseState.fresh(f"world {extra}".encode())
            for number, one in enumerate(series):
                table, state = release_counts(one, state, THRESHOLD, SAFE)
                seen = seen.join(table.rename({"people": f"r{number}"}), on="item", how="left")
            rows = seen.drop("item").fill_null(0.0).rows()
            histories.append({row: rows.count(row) / trials for row in set(rows)})
        without, having = histories
        apart = sum(abs(without.get(k, 0) - having.get(k, 0)) for k in without.keys() | having.keys()) / 2
        worst = max(worst, apart)
    assert worst <= 2 / SAFE.crowd + 0.04  # sampling error of two histograms of 4,000
    assert worst > 0.02  # the test sees the leak it bounds


def test_sybils_cannot_tell_whether_the_victim_came() -> None:
    """Nine planted accounts and the victim hold an item: without a secret line it would be listed iff they came."""
    trials, k = 2000, SAFE.crowd
    names = [f"i{t}" for t in range(trials)]
    listed = []
    for people in (k - 1, k):
        frame = pl.DataFrame({"item": names, "people": np.full(trials, people, dtype=np.int64)})
        table, _ = release_counts(frame, ReleaseState.fresh(b"sybil"), THRESHOLD, SAFE)
        listed.append(table.height / trials)
    assert listed == [0.0, 0.0]
    naive = [people >= k for people in (k - 1, k)]
    assert naive == [False, True]  # what a plain floor would have shown


def test_secrets_stay_out_of_sight() -> None:
    state = ReleaseState.fresh(b"0123456789abcdef")
    assert "0123" not in repr(state)
    assert "303132" not in repr(state)


def test_the_state_survives_on_disk_for_its_owner_alone(tmp_path) -> None:  # type: ignore[no-untyped-def]
    folder = tmp_path / "private"
    state = load_state(folder)
    assert state.number == 0
    first, state = release_counts(counts(**many_items(5)), state, THRESHOLD, SAFE)
    save_state(state, folder)
    back = load_state(folder)
    assert (back.secret, back.number) == (state.secret, 1)
    assert back.items.equals(state.items)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()}
    assert set(modes.values()) == {"0o600"}
    second, state = release_counts(counts(**many_items(5)), back, THRESHOLD, SAFE)
    assert told(first) == told(second)
    save_state(state, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["items-2.parquet", "release.json"]


def test_a_damaged_state_is_not_silently_replaced(tmp_path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "release.json").write_text('{"number": 3}')
    with pytest.raises(CrowdDamaged, match="Restore the folder"):
        load_state(tmp_path)
