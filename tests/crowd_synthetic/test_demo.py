from __future__ import annotations

import doctest
import importlib
import pkgutil

import polars as pl
import pytest

from incrowd import synthetic
from incrowd.errors import InputError

DEMO = synthetic.demo_person(users=80)


def test_the_person_writes_in_exactly_two_communities():
    mine = DEMO.posts.truth.identities.filter(user="alex")
    assert tuple(mine["community"]) == DEMO.communities
    assert mine["posts"].to_list() == [140, 120]
    rows = DEMO.posts.to_frame()
    assert rows.filter(user="alex").height == 260
    assert rows["user"].n_unique() == 80


def test_the_person_keeps_coming_back_to_the_topic():
    state = DEMO.posts.truth.states.filter(user="alex").row(0, named=True)
    assert (state["topic"], state["state"], state["community"]) == ("depression", "lasting", "cycling")
    words = "|".join(DEMO.posts.topics["depression"].words)
    mine = DEMO.posts.to_frame().filter(user="alex", community="cycling")
    on_topic = mine.filter(pl.col("text").str.to_lowercase().str.contains(words))
    assert on_topic.height >= 15
    assert ((on_topic["time"] - DEMO.posts.start) // (7 * 86_400)).n_unique() >= 8


def test_most_of_the_persons_style_goes_everywhere():
    shared = DEMO.posts.truth.styles.filter(user="alex")["shared"].explode().mean()
    assert shared > 0.75


def test_the_person_has_ratings_and_all_attributes():
    assert DEMO.items.to_frame().filter(user="alex").height == 45
    assert DEMO.attributes.to_frame().filter(user="alex").height == 20


def test_files_and_crowd_hold_the_same_rows(tmp_path):
    from incrowd import Crowd

    files = DEMO.write(tmp_path / "files")
    by_hand = Crowd.create(tmp_path / "by-hand", plain_names=True)
    by_hand.ingest(files)
    crowd = DEMO.crowd(tmp_path / "crowd")
    assert crowd.data_hash == by_hand.data_hash
    assert crowd.user("alex") == "alex"


def test_a_cast_that_does_not_fit_is_refused():
    stranger = synthetic.Character(name="sam", posts=(30,), linkability=1.0, topic="chess", state="lasting")
    with pytest.raises(InputError, match="synthetic cast: expected a topic out of"):
        synthetic.posts(users=10, communities=2, cast=(stranger,))


def test_examples_in_the_docstrings_run():
    package = importlib.import_module("incrowd.crowd.synthetic")
    for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        failed, _ = doctest.testmod(importlib.import_module(module.name))
        assert failed == 0, module.name
