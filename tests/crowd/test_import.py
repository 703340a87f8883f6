from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crowd.making import new_crowd, post, texts, write_jsonl, write_truncated

from incrowd.crowd import Crowd, ingest, merge
from incrowd.crowd.ingest import ImportBudget
from incrowd.errors import IncrowdError, InputError, UnreadableSource

THANKS = [post("ann", "thanks"), post("ann", "thanks"), post("bob", "thanks")]


@pytest.fixture
def crowd(tmp_path: Path) -> Crowd:
    return new_crowd(tmp_path / "crowd")


def test_rows_come_out_as_they_went_in(crowd: Crowd, tmp_path: Path) -> None:
    source = write_jsonl(
        tmp_path / "a.jsonl", [post("ann", "=1+1"), post("bob", "hi", "films", 7), post("cy", "x", time=None)]
    )
    report = crowd.ingest(source)
    assert (report.rows, report.added, dict(report.reasons)) == (3, 3, {})
    assert crowd.posts().sort("user").collect().rows() == [
        ("ann", "books", 1_500_000_000, "=1+1"),
        ("bob", "films", 7, "hi"),
        ("cy", "books", None, "x"),
    ]


def test_bad_rows_are_listed_by_file_and_number_without_their_text(crowd: Crowd, tmp_path: Path) -> None:
    rows = [post("ann", "hello"), post("[deleted]", "secret"), post("bob", "[removed]"), post("", "secret")]
    report = crowd.ingest(write_jsonl(tmp_path / "a.jsonl", rows))
    assert report.reasons == {"deleted_author": 1, "deleted_text": 1, "no_author": 1}
    assert crowd.quarantine().collect().rows() == [
        ("a.jsonl", 2, "deleted_author"),
        ("a.jsonl", 3, "deleted_text"),
        ("a.jsonl", 4, "no_author"),
    ]
    assert crowd.info().quarantined == 3


def test_the_same_file_twice_adds_nothing(crowd: Crowd, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", THANKS)
    crowd.ingest(source)
    before = crowd.data_hash
    moved = write_jsonl(tmp_path / "elsewhere" / "b.jsonl", THANKS)
    report = crowd.ingest([source, moved])
    assert report.known == ("a.jsonl", "b.jsonl")
    assert report.added == 0
    assert crowd.data_hash == before
    assert crowd.info().imports == 1


def test_an_overlapping_export_adds_only_what_is_new(crowd: Crowd, tmp_path: Path) -> None:
    crowd.ingest(write_jsonl(tmp_path / "a.jsonl", THANKS))
    report = crowd.ingest(
        write_jsonl(tmp_path / "b.jsonl", [*THANKS, post("ann", "thanks"), post("ann", "new")])
    )
    assert report.added == 2
    assert report.reasons == {"duplicate": 3}
    assert texts(crowd) == ["new", "thanks", "thanks", "thanks", "thanks"]


def test_who_wrote_the_same_twice_keeps_both(crowd: Crowd, tmp_path: Path) -> None:
    crowd.ingest(write_jsonl(tmp_path / "a.jsonl", THANKS))
    assert crowd.posts(user="ann").collect().height == 2


def test_the_first_row_with_an_id_wins_and_edits_are_counted(crowd: Crowd, tmp_path: Path) -> None:
    rows = [post("ann", "first", id="1"), post("ann", "edited", id="1"), post("ann", "first", id="1")]
    report = crowd.ingest(write_jsonl(tmp_path / "a.jsonl", rows))
    assert texts(crowd) == ["first"]
    assert report.reasons == {"conflicting_id": 1, "duplicate": 1}
    assert crowd.quarantine().collect().rows() == [("a.jsonl", 2, "conflicting_id")]
    later = crowd.ingest(
        write_jsonl(tmp_path / "b.jsonl", [post("ann", "again", id="1"), post("ann", "first", id="1")])
    )
    assert later.added == 0
    assert later.reasons == {"conflicting_id": 1, "duplicate": 1}


def test_the_same_id_in_another_community_is_another_post(crowd: Crowd, tmp_path: Path) -> None:
    crowd.ingest(
        write_jsonl(
            tmp_path / "a.jsonl", [post("ann", "x", "books", id="1"), post("bob", "y", "films", id="1")]
        )
    )
    assert texts(crowd) == ["x", "y"]


def test_a_user_has_an_item_once(crowd: Crowd, tmp_path: Path) -> None:
    rows = [
        {"user": u, "item": i, "rating": r}
        for u, i, r in [("a", "x", 5), ("a", "x", 1), ("b", "x", 2), ("a", "y", 3)]
    ]
    report = crowd.ingest(write_jsonl(tmp_path / "a.jsonl", rows), kind="items")
    assert report.reasons == {"duplicate": 1}
    assert crowd.items().collect().rows() == [
        ("a", "x", 5.0, None),
        ("a", "y", 3.0, None),
        ("b", "x", 2.0, None),
    ]
    again = crowd.ingest(
        write_jsonl(tmp_path / "b.jsonl", [*rows, {"user": "c", "item": "x", "rating": 1}]), kind="items"
    )
    assert again.added == 1


def test_an_attribute_value_is_kept_once(crowd: Crowd, tmp_path: Path) -> None:
    rows = [{"user": "a", "attribute": "town", "value": v} for v in ("Ulm", "Ulm", "Bonn")]
    crowd.ingest(write_jsonl(tmp_path / "a.jsonl", rows), kind="attributes")
    assert crowd.attributes().collect().rows() == [("a", "town", "Bonn"), ("a", "town", "Ulm")]


def test_one_bad_source_keeps_all_out(crowd: Crowd, tmp_path: Path) -> None:
    good = write_jsonl(tmp_path / "a.jsonl", THANKS)
    broken = write_truncated(tmp_path / "b.jsonl")
    with pytest.raises(UnreadableSource):
        crowd.ingest([good, broken])
    assert crowd.posts().collect().is_empty()
    assert not Crowd(crowd.path).state.imports


def test_an_import_without_a_usable_row_is_refused(crowd: Crowd, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 deleted_author"):
        crowd.ingest(write_jsonl(tmp_path / "a.jsonl", [post("[deleted]", "x")] * 2))
    assert crowd.info().quarantined == 0


def test_a_failed_import_leaves_nothing_on_the_disk_but_finished_sources(
    crowd: Crowd, tmp_path: Path
) -> None:
    good = write_jsonl(tmp_path / "a.jsonl", THANKS)
    broken = write_truncated(tmp_path / "b.jsonl")
    with pytest.raises(UnreadableSource):
        crowd.ingest([good, broken])
    staged = list((crowd.path / "staging").iterdir())
    assert [sorted(p.name for p in folder.iterdir()) for folder in staged] == [
        ["done.json", "rejects.parquet", "rows.parquet", "understood.json"]
    ]
    assert not list((crowd.path / "parts").iterdir())


def test_a_later_import_goes_on_from_finished_sources(crowd: Crowd, tmp_path: Path) -> None:
    good = write_jsonl(tmp_path / "a.jsonl", THANKS)
    broken = write_truncated(tmp_path / "b.jsonl")
    with pytest.raises(UnreadableSource):
        crowd.ingest([good, broken])
    read: list[str] = []
    crowd.ingest(good, progress=lambda done, total, what: read.append(what))
    assert "reading a.jsonl" not in read
    assert texts(crowd) == ["thanks"] * 3
    assert not list((crowd.path / "staging").iterdir())


def test_a_file_that_changes_while_it_is_read_is_refused(crowd: Crowd, tmp_path: Path) -> None:
    source = write_jsonl(tmp_path / "a.jsonl", THANKS)

    def tamper(done: float, total: float | None, what: str) -> None:
        with source.open("a") as file:
            file.write("\n")

    with pytest.raises(UnreadableSource, match="changed while it was read"):
        crowd.ingest(source, progress=tamper)


def test_many_small_imports_are_gathered_into_few_parts(
    crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "MOST_RUNS", 3)
    for number in range(5):
        rows = [post("ann", f"post {number}", time=number), post("[deleted]", "x")]
        crowd.ingest(write_jsonl(tmp_path / f"{number}.jsonl", rows))
    assert len(crowd.state.tables["posts"].parts) <= 3
    assert len(crowd.state.tables["quarantine"].parts) <= 3
    assert crowd.posts().collect().height == 5
    assert crowd.info().quarantined == 5
    at_once = new_crowd(tmp_path / "at once")
    at_once.ingest([tmp_path / f"{number}.jsonl" for number in range(5)])
    assert at_once.data_hash == crowd.data_hash
    crowd.verify()


def test_items_survive_being_gathered(crowd: Crowd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "MOST_RUNS", 2)
    for number in range(4):
        rows = [{"user": f"u{number}", "item": "x"}, {"user": "u0", "item": "x"}]
        crowd.ingest(write_jsonl(tmp_path / f"{number}.jsonl", rows), kind="items")
    assert crowd.items().collect().height == 4
    at_once = new_crowd(tmp_path / "at once")
    at_once.ingest([tmp_path / f"{number}.jsonl" for number in range(4)], kind="items")
    assert at_once.data_hash == crowd.data_hash


def test_parts_are_sorted_by_community_and_user(crowd: Crowd, tmp_path: Path) -> None:
    rows = [post(f"u{n % 7}", f"t{n}", f"c{n % 3}", n) for n in range(100)]
    crowd.ingest(write_jsonl(tmp_path / "a.jsonl", rows))
    stored = crowd.posts().collect()
    assert stored.equals(stored.sort("community", "user", "time"))


ROWS = st.lists(
    st.builds(
        post,
        user=st.sampled_from(["ann", "bob", "[deleted]", "Zoë 漢字"]),
        text=st.sampled_from(["thanks", "no", "\u202eabc", "e\u0301\u0301", "", "'; --"]),
        community=st.sampled_from(["books", "films"]),
        time=st.sampled_from([1, 2, None, -5]),
        id=st.sampled_from([None, None, "1", "2"]),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=6, deadline=None)
@given(files=st.lists(ROWS, min_size=1, max_size=4), batch=st.integers(1, 400), data=st.data())
def test_neither_the_order_of_files_nor_the_size_of_batches_matters(
    files: list[list[dict[str, object]]],
    batch: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("order")
    paths = [write_jsonl(folder / f"{number}.jsonl", rows) for number, rows in enumerate(files)]
    shuffled = data.draw(st.permutations(paths))
    outcomes = []
    for order, budget in ((paths, 2**20), (shuffled, batch)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                ImportBudget,
                "of",
                classmethod(lambda cls, memory, size=budget: cls(database=2**28, batch=size, bucket=size)),
            )
            crowd = new_crowd(folder / f"crowd {len(outcomes)}")
            try:
                reasons = crowd.ingest(order).reasons
            except IncrowdError as error:
                outcomes.append(str(error))
                continue
        outcomes.append(
            (crowd.data_hash, reasons, crowd.posts().collect().rows(), crowd.quarantine().collect().rows())
        )
    assert outcomes[0] == outcomes[1]


@settings(max_examples=4, deadline=None)
@given(first=ROWS, second=ROWS)
def test_importing_again_is_importing_once(
    first: list[dict[str, object]], second: list[dict[str, object]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("again")
    sound = [post("ann", "sound")]  # an import without any usable row is refused
    crowd = new_crowd(folder / "crowd")
    crowd.ingest(write_jsonl(folder / "a.jsonl", first + sound))
    crowd.ingest(write_jsonl(folder / "b.jsonl", second + sound))
    before = crowd.data_hash
    for number, rows in enumerate((first, second)):
        # Other bytes, same rows: the rows themselves must be recognised.
        again = crowd.ingest(
            write_jsonl(folder / f"again {number}.jsonl", [*rows, *sound, post("[deleted]", "x")])
        )
        assert again.added == 0
    assert crowd.data_hash == before


def test_progress_is_told(crowd: Crowd, tmp_path: Path) -> None:
    said: list[str] = []
    crowd.ingest(
        write_jsonl(tmp_path / "a.jsonl", THANKS), progress=lambda done, total, what: said.append(what)
    )
    assert said == ["reading a.jsonl", "merging posts", "committing"]


def test_a_report_is_plain_json(crowd: Crowd, tmp_path: Path) -> None:
    plain = crowd.ingest(write_jsonl(tmp_path / "a.jsonl", THANKS)).to_dict()
    assert plain["rows"] == plain["added"] == 3
    assert plain["sources"][0]["reader"] == "jsonl"
    assert isinstance(ingest.ImportReport(sources=(), known=(), data_hash="").to_dict()["reasons"], dict)
