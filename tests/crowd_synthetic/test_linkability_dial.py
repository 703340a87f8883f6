"""The dial must do what it says to an adversary who compares word frequencies."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from incrowd import synthetic
from incrowd.crowd.synthetic.words import FUNCTION_WORDS

PEOPLE = 130


def xlogx(p: np.ndarray) -> np.ndarray:
    return p * np.log2(p, out=np.zeros_like(p), where=p > 0)


def distances(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Jensen-Shannon distance, base 2: 1 - half the sum over shared words of h(p+q) - h(p) - h(q)."""
    rows = []
    for p in sources:
        shared = np.flatnonzero(p)
        p, q = p[shared], targets[:, shared]
        rows.append(1 - (xlogx(p + q) - xlogx(p) - xlogx(q)).sum(axis=1) / 2)
    return np.sqrt(np.clip(rows, 0, 1))


def unigrams(rows: pl.DataFrame, people: pl.Series) -> np.ndarray:
    """One row a person, words of all people in the columns."""
    lists = rows.select("user", word=pl.col("text").str.to_lowercase().str.extract_all(r"[a-z]+"))
    words = lists.explode("word", empty_as_null=False).filter(~pl.col("word").is_in(FUNCTION_WORDS))
    counts = words.group_by("user", "word").len()
    table = np.zeros((len(people), VOCABULARY.len()))
    order = {name: number for number, name in enumerate(people)}
    columns = counts.join(VOCABULARY_INDEX, on="word")
    table[columns["user"].replace_strict(order).to_numpy(), columns["column"].to_numpy()] = columns[
        "len"
    ].to_numpy()
    return table / table.sum(axis=1, keepdims=True)


VOCABULARY = synthetic.posts(users=2, communities=1).lexicon.words.unique(maintain_order=True)
VOCABULARY_INDEX = pl.DataFrame({"word": VOCABULARY}).with_row_index("column")


def ranks_of_the_true_match(linkability: float, posts: int = 100, seed: int = 0) -> np.ndarray:
    crowd = synthetic.posts(
        users=PEOPLE,
        communities=2,
        posts=2 * PEOPLE * posts,
        fewest_posts=posts // 2,
        most_posts=2 * posts,
        linkability=linkability,
        seed=seed,
    )
    rows = crowd.to_frame()
    people = crowd.user_names
    source, target = (unigrams(rows.filter(community=name), people) for name in crowd.place_names)
    found = distances(source, target)
    return (found < np.diag(found)[:, None]).sum(axis=1)


@pytest.fixture(scope="module")
def ranks() -> dict[float, np.ndarray]:
    return {dial: ranks_of_the_true_match(dial) for dial in (0.0, 0.25, 0.5, 0.75, 1.0)}


def test_at_zero_linking_is_guessing(ranks):
    # A guess ranks the match uniformly among all: mean (n-1)/2, standard error n / sqrt(12 n).
    error = PEOPLE / np.sqrt(12 * PEOPLE)
    assert abs(ranks[0.0].mean() - (PEOPLE - 1) / 2) < 3 * error
    assert (ranks[0.0] == 0).sum() <= 5  # one is expected; six or more have chance below 0.001


def test_at_one_nearly_everybody_is_linked(ranks):
    assert (ranks[1.0] == 0).mean() > 0.95


def test_more_linkability_links_more_people(ranks):
    precision = [(ranks[dial] == 0).mean() for dial in sorted(ranks)]
    assert (np.diff(precision) > 0).all()


def test_the_dial_is_the_share_of_traits_a_person_carries_along():
    for dial in (0.0, 0.3, 1.0):
        shared = synthetic.posts(users=300, communities=2, linkability=dial).styles.shared
        assert shared.mean() == pytest.approx(dial, abs=0.02)


def test_shared_favourites_are_equal_in_all_communities_and_others_are_not():
    crowd = synthetic.posts(users=200, communities=2, linkability=0.5)
    first, second = crowd.styles.favourites[0::2], crowd.styles.favourites[1::2]
    both = crowd.styles.shared[0::2] & crowd.styles.shared[1::2]
    assert (first == second)[both].all()
    assert (first == second)[~both].mean() < 0.01
