from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd import synthetic
from incrowd.crowd.synthetic import words
from incrowd.crowd.synthetic.words import FUNCTION_WORDS, Vocabulary

MANY = words.made_up_words(60_000)


def test_made_up_words_are_distinct_short_ones_first_and_not_function_or_topic_words():
    assert MANY.n_unique() == len(MANY)
    assert MANY.str.len_chars().is_sorted()
    real = {*FUNCTION_WORDS, *(word for topic in synthetic.default_topics().values() for word in topic.words)}
    assert not real & set(MANY)


@settings(max_examples=30, deadline=None)
@given(start=st.integers(0, 59_000), count=st.integers(0, 1_000))
def test_any_range_of_words_can_be_made_without_the_ones_before(start, count):
    assert words.made_up_words(count, start).equals(MANY.slice(start, count))


def test_no_name_is_a_word_of_the_vocabulary():
    assert not set(words.user_names(5_000)) & set(MANY)


def test_a_user_has_one_name_in_every_kind_of_table():
    tables = [
        synthetic.posts(users=20, communities=2),
        synthetic.items(users=20, items=40),
        synthetic.attributes(users=20),
        synthetic.holders(users=20, values=40),
    ]
    names = [set(table.to_frame()["user"]) for table in tables]
    assert all(found == set(words.user_names(20)) for found in names)


def test_topics_own_their_words_and_know_their_siblings():
    topics = synthetic.default_topics()
    vocabulary = Vocabulary(topics, 100)
    assert len(topics) == 12
    for number, (name, topic) in enumerate(topics.items()):
        low, high = vocabulary.salient_bounds[number : number + 2]
        assert tuple(vocabulary.words[int(low) : int(high)]) == topic.words, name
        assert len(set(topic.words)) == 20
        siblings = [list(topics.values())[other].domain for other in vocabulary.siblings[number]]
        assert siblings == [topic.domain] * 4
        assert vocabulary.siblings[number][0] == number
