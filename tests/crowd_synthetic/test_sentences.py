from __future__ import annotations

import polars as pl
import pytest

from incrowd import synthetic
from incrowd.crowd.synthetic.sentences import FILLER, Sentences
from incrowd.crowd.synthetic.words import FUNCTION_WORDS, Vocabulary
from incrowd.text.languages import is_readable

OURS = Sentences.ours()
DEMO = synthetic.demo_person(users=40)
POSTS = DEMO.posts.to_frame()
MINE = POSTS.filter(user="alex").sort("community", "time")


def test_the_person_speaks_english_and_everybody_else_made_up_words():
    assert is_readable(MINE["text"].to_list())
    assert not MINE["text"].str.contains("[{}]").any()
    assert MINE["text"].str.contains("^[A-Z0-9]").all()
    others = POSTS.filter(pl.col("user") != "alex")["text"].str.split(" ").explode().unique()
    assert others.is_in(DEMO.posts.lexicon.words[-1000:].to_list()).sum() > 100


def test_what_the_person_tells_is_said_once():
    for community, told in OURS.told.items():
        said = MINE.filter(community=community)["text"]
        assert [said.str.contains(one, literal=True).sum() for one in told] == [1] * len(told)
    assert set(OURS.told) <= set(DEMO.communities)


def test_the_topic_is_talked_about_where_and_when_the_truth_says():
    about = "depress|therap|hopeless|worthless|Prozac|suicidal|Cried"
    shown = MINE.with_columns(on_topic=pl.col("text").str.contains(about))
    counted = {name: int(count) for name, count in shown.group_by("community").agg(pl.sum("on_topic")).rows()}
    assert counted["gardening"] == 0
    assert counted["cycling"] >= DEMO.posts.stakes.posts[0] - 2


@pytest.mark.parametrize("seed", [0, 3])
def test_posts_do_not_depend_on_how_they_are_cut(seed):
    posts = synthetic.demo_person(users=25, seed=seed).posts
    whole = posts.to_frame()
    assert pl.concat(posts.frames(chunk=157)).equals(whole)
    assert synthetic.demo_person(users=25, seed=seed).posts.to_frame().equals(whole)
    assert not synthetic.demo_person(users=25, seed=seed + 1).posts.to_frame().equals(whole)


def test_no_sentence_comes_back_before_all_others_were_said():
    plain = Sentences({"here": [f"No. {k}." for k in range(9)]}, ["So."], {"rain": ["Wet."]}, {}, {})
    said = plain.posts("here", "rain", [1] * 27, [False] * 27, seed=2)
    rounds = [{one.removesuffix(" So.") for one in said[first : first + 9]} for first in (0, 9, 18)]
    assert [len(one) for one in rounds] == [9, 9, 9]
    assert [place for place, one in enumerate(said) if one.endswith(" So.")] == list(range(0, 27, 3))


def test_every_slot_has_fillers():
    said = [
        *OURS.everywhere,
        *(
            one
            for part in (OURS.communities, OURS.topics, OURS.told)
            for some in part.values()
            for one in some
        ),
    ]
    slots = {name for one in said for name in FILLER.findall(one)}
    assert slots == set(OURS.fillers)


def test_others_use_the_persons_words_as_their_commonest():
    topics, real = DEMO.posts.topics, OURS.words()
    made_up, mixed = Vocabulary(topics, 1_000), Vocabulary(topics, 1_000, real)
    assert mixed.words.n_unique() == len(mixed.words) == len(made_up.words)
    first = mixed.first_made_up
    assert mixed.words[:first].equals(made_up.words[:first])
    known = {*FUNCTION_WORDS, *(word for topic in topics.values() for word in topic.words)}
    ours = [word for word in real if word not in known]
    assert mixed.words[first : first + len(ours)].to_list() == ours
    assert mixed.words[first + len(ours) :].equals(made_up.words[first : first + 1_000 - len(ours)])
