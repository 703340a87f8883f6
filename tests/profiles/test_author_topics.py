"""Author topics find authors again who write alike, whatever their posts are about."""

from __future__ import annotations

import numpy as np

from incrowd.profiles.models import AuthorTopicOptions, author_topics

OPTIONS = AuthorTopicOptions(author_topics=4, document_topics=4, sweeps=60, averaged=20)


def simulated(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Twelve authors in two groups: half of each post's words show the group, half the post's subject."""
    generator = np.random.default_rng(seed)
    words, posts, authors = [], [], []
    for author in range(12):
        for _ in range(15):
            post = len(authors)
            authors.append(author)
            subject = int(generator.integers(3))
            own = generator.integers(0, 10, 12) + 10 * (author % 2)
            about = generator.integers(0, 10, 12) + 20 + 10 * subject
            for word in np.concatenate([own, about]):
                words.append(word)
                posts.append(post)
    return np.array(words), np.array(posts), np.array(authors)


def test_authors_of_one_group_get_similar_mixtures() -> None:
    mixtures = author_topics(*simulated(1), 50, options=OPTIONS, seed=1)
    group = np.arange(12) % 2
    far = np.abs(mixtures[:, None] - mixtures[None]).sum(axis=2)
    same = group[:, None] == group[None]
    assert far[same].mean() < 0.5 * far[~same].mean()


def test_mixtures_are_distributions_and_repeat_with_the_seed() -> None:
    first = author_topics(*simulated(2), 50, options=OPTIONS, seed=3)
    assert np.allclose(first.sum(axis=1), 1.0)
    assert (first == author_topics(*simulated(2), 50, options=OPTIONS, seed=3)).all()
    assert (first != author_topics(*simulated(2), 50, options=OPTIONS, seed=4)).any()


def test_no_words_say_nothing() -> None:
    empty = np.zeros(0, np.int32)
    assert author_topics(empty, empty, np.array([0, 1]), 5, options=OPTIONS).tolist() == [[0.25] * 4] * 2
