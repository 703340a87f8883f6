from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict

import polars as pl
import pytest
from backports import zstd

from incrowd.crowd.pseudonyms import Pseudonyms
from incrowd.engine import connect
from incrowd.engine.count_files import count_files, read_counts
from incrowd.errors import SchemaError, UnreadableSource
from incrowd.text import TextOptions, count_tokens, tokenise
from incrowd.text.counting import Filters

POSTS = [
    [("ann", "books", "Dune, Dune and MORE dune!"), ("bob", "books", "see www.example.org :)")],
    [("ann", "books", "dune again"), ("ann", "films", "the film of Dune"), ("[deleted]", "books", "gone")],
    [
        ("eve", "films", "naïve café naïve"),
        ("AutoModerator", "films", "read the rules"),
        ("bob", "books", ""),
    ],
]


@pytest.fixture
def files(tmp_path):
    paths = []
    for number, posts in enumerate(POSTS):
        path = tmp_path / f"dump {number}.jsonl"
        rows = ({"author": user, "community": where, "text": text} for user, where, text in posts)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        paths.append(path)
    return paths


def expected_words(options):
    kept = [post for posts in POSTS for post in posts if post[0] in {"ann", "bob", "eve"} and post[2]]
    return Counter((user, where, word) for user, where, text in kept for word in tokenise(text, options))


def words_of(report):
    return {tuple(row[:3]): row[3] for row in pl.read_parquet(report.words_path).rows()}


@pytest.mark.parametrize("options", [TextOptions(), TextOptions(tokens="simple", keep_stopwords=True)])
def test_words_are_those_of_the_reference_added_up_over_files(files, tmp_path, options):
    report = count_files(files, tmp_path / "out", text=options)
    assert words_of(report) == expected_words(options)
    posts = {(user, where): n for user, where, n in pl.read_parquet(report.identities_path).rows()}
    assert posts == {("ann", "books"): 2, ("ann", "films"): 1, ("bob", "books"): 1, ("eve", "films"): 1}
    assert (report.files, report.posts, report.set_aside, report.identities) == (3, 5, 3, 4)
    assert report.words == len(expected_words(options))


def test_a_cluster_counts_like_threads(files, tmp_path, cluster):
    here = count_files(files, tmp_path / "here", engine=connect("threads:2"))
    there = count_files(files, tmp_path / "there", engine=cluster)
    assert pl.read_parquet(there.words_path).equals(pl.read_parquet(here.words_path))
    assert pl.read_parquet(there.identities_path).equals(pl.read_parquet(here.identities_path))
    assert there.posts == here.posts


def test_names_become_the_ids_of_the_crowd_with_the_same_key(files, tmp_path):
    report = count_files(files, tmp_path / "out", key=b"k" * 32)
    users = set(pl.read_parquet(report.identities_path)["user"])
    assert users == {Pseudonyms(b"k" * 32).of(name) for name in ("ann", "bob", "eve")}


def test_a_second_run_counts_new_and_changed_files_only(files, tmp_path):
    first = count_files(files[:2], tmp_path / "out")
    parts = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "parts").iterdir()}
    files[0].write_text(files[0].read_text() + json.dumps({"author": "zoe", "text": "novel"}) + "\n")
    second = count_files(files, tmp_path / "out")
    now = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "parts").iterdir()}
    assert len(parts) == 4
    assert all(now[path] == written for path, written in parts.items())
    assert len(now) == 8
    assert second.posts == first.posts + 2
    assert second.set_aside == 3
    assert ("zoe", "default", "novel") in words_of(second)


def test_bots_can_be_let_in(files, tmp_path):
    report = count_files(files, tmp_path / "out", allow_bots=True)
    assert ("AutoModerator", "films", "rules") in words_of(report)


def test_a_file_of_nothing_but_rejects_counts_nobody(tmp_path):
    path = tmp_path / "bots.jsonl"
    path.write_text(json.dumps({"author": "[deleted]", "text": "gone"}) + "\n")
    report = count_files([path], tmp_path / "out")
    assert (report.posts, report.set_aside, report.identities, report.words) == (0, 1, 0, 0)


def test_a_broken_file_is_named_and_leaves_no_half_part(files, tmp_path):
    rows = "".join(json.dumps({"author": f"user {n}", "text": f"{n} {n * n}"}) + "\n" for n in range(4000))
    broken = tmp_path / "dump 9.jsonl.zst"
    whole = zstd.compress(rows.encode())
    broken.write_bytes(whole[: len(whole) * 9 // 10])
    with pytest.raises(UnreadableSource, match=r"dump 9"):
        count_files([files[0], broken], tmp_path / "out")
    assert not [path for path in (tmp_path / "out" / "parts").iterdir() if path.name.startswith(".")]


def test_files_of_ratings_are_refused(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,value\nann,dune,5\n")
    with pytest.raises(SchemaError, match="files of posts"):
        count_files([path], tmp_path / "out")


@pytest.mark.parametrize(
    "filters", [Filters(), Filters(min_posts=2), Filters(min_profiles=2, drop_largest=1)]
)
def test_counts_of_files_are_those_of_their_posts_together(files, tmp_path, filters):
    count_files(files, tmp_path / "out")
    found = read_counts(tmp_path / "out", filters=filters)
    kept = [post for posts in POSTS for post in posts if post[0] in {"ann", "bob", "eve"} and post[2]]
    together = pl.DataFrame(kept, schema=["user", "community", "text"], orient="row")
    known = count_tokens(together, **asdict(filters))
    assert found.vocabulary.equals(known.vocabulary)
    assert found.identities.equals(known.identities)
    assert found.dropped.equals(known.dropped)
    assert found.matrix.dtype == known.matrix.dtype
    assert (found.matrix.toarray() == known.matrix.toarray()).all()
    assert found.options_hash == known.options_hash


def test_people_who_say_nothing_but_stop_words_are_dropped_with_a_reason(tmp_path):
    path = tmp_path / "posts.jsonl"
    rows = [{"author": "ann", "text": "the and of"}, {"author": "bob", "text": "dune"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    count_files([path], tmp_path / "out")
    found = read_counts(tmp_path / "out")
    assert found.identities["user"].to_list() == ["bob"]
    assert found.dropped.rows() == [("ann", "default", "empty_profile")]
