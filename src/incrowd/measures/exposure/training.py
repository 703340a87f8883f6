"""Learn a space from a background corpus: what an adversary does before looking at anybody.

LDA by tomotopy and word2vec by gensim (the extra `topics`), on one thread and with a seed, so that the same
corpus gives the same model. Sentence embeddings come with a model that others have trained (the extra
`embeddings`); the corpus says what posts have in common. In LDA and embeddings topics are placed afterwards:
at what background posts that use their salient words hold more of than others.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError, MissingExtra
from incrowd.measures.exposure.learnt_spaces import Embeddings, LdaSpace, WordVectors, word_vectors
from incrowd.measures.exposure.scoring import Progress
from incrowd.measures.exposure.space import Floats, WordLists
from incrowd.measures.exposure.topics import TopicSet
from incrowd.text.options import TextOptions
from incrowd.text.tokeniser import Tokeniser

if TYPE_CHECKING:
    import polars as pl

ALPHA, ETA = 0.1, 0.01
STEP = 10
PRIOR_WORDS = 30.0
"""How many words the prior of a fold-in counts for, over all dimensions alike: a short post says little."""
POSTS_A_PART = 8_192
HIGHEST_LEVEL = 0.99
PRIOR_LENGTH = 2.0
"""Embeddings: the length that every post has besides its words', in words of typical length."""
Placing = Literal["posts", "dimension"]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """How a space is learnt."""

    dims: int = 500
    """Latent dimensions."""
    rounds: int = 300
    """Passes over the corpus (LDA); word2vec takes a twentieth."""
    min_count: int = 5
    """Words used less often are left out."""
    placing: Placing = "posts"
    """Where a topic lies in LDA: at what the background's posts on it have in common, or, as in the paper, at
    one dimension, the one its words most likely come from."""
    plain: bool = False
    """Plain cosines. LDA: the paper's, with the prior of every post in it. word2vec: vectors as trained, each word
    counting by max(0, cosine), and no level that posts about anything else reach."""
    literal: bool = False
    """word2vec as in the paper: vectors as trained, words that point away from a topic turned towards it, and no
    level that posts about anything else reach. Every post then looks like every topic."""
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dims < 2 or self.rounds < 1 or self.min_count < 1:
            raise InputError("training needs at least 2 dimensions, 1 round and a minimum count of 1")
        if self.placing not in get_args(Placing):
            raise InputError(f"placing must be one of {', '.join(get_args(Placing))}; got '{self.placing}'")


def documents(texts: Iterable[pl.Series], options: TrainOptions) -> list[list[str]]:
    """Return the tokens of every post that has two known words or more."""
    tokeniser = Tokeniser(options.text)
    numbered = [tokeniser.numbers(part) for part in texts]
    words = np.array(tokeniser.vocabulary().to_list(), dtype=object)
    used = np.zeros(len(words), np.int64)
    for part in numbered:
        used += np.bincount(part.numbers, minlength=len(words))
    found: list[list[str]] = []
    for part in numbered:
        kept = used[part.numbers] >= options.min_count
        ends = np.concatenate([[0], np.cumsum(kept)])[part.ends]
        pieces = np.split(words[part.numbers[kept]], ends[:-1])
        found += [piece.tolist() for piece in pieces if len(piece) > 1]
    if not found:
        raise InputError(
            f"the background corpus has no post with two words used {options.min_count} times or more; "
            "give more text or lower --min-count"
        )
    return found


def train_lda(
    posts: list[list[str]], topics: TopicSet, options: TrainOptions, progress: Progress | None = None
) -> LdaSpace:
    """Learn an LDA space."""
    model = _lda_model(options)
    for post in posts:
        model.add_doc(post)
    for done in range(0, options.rounds, STEP):
        model.train(min(STEP, options.rounds - done), workers=1)
        if progress is not None:
            progress(done + STEP, options.rounds, "learning topics (LDA)")
    return _lda_space(model, posts, topics, options)


def _lda_model(options: TrainOptions) -> Any:
    try:
        # Its extension warns of an old interface of Python's when it loads; where warnings are errors, it
        # could not be loaded at all.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import tomotopy
    except ImportError:
        raise MissingExtra("learning an LDA space", "topics") from None
    return tomotopy.LDAModel(
        k=options.dims, alpha=ALPHA, eta=ETA, seed=options.seed, min_cf=options.min_count
    )


def _lda_space(model: Any, posts: list[list[str]], topics: TopicSet, options: TrainOptions) -> LdaSpace:
    words = tuple(model.used_vocabs)
    counts = np.stack([model.get_topic_word_dist(dim, normalize=False) for dim in range(options.dims)])
    # Smoothing gives every word a trace in every dimension; what was never drawn there is left out.
    kept = counts >= 0.5
    shares = np.where(kept, counts, 0.0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    place, dims = np.nonzero(kept.T)
    starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(words)))])
    space = LdaSpace(
        topics=topics,
        words=words,
        word_starts=starts.astype(np.int64),
        dims=dims.astype(np.int32),
        weights=shares.T[kept.T].astype(np.float32),
        prior=np.full(options.dims, PRIOR_WORDS / options.dims, np.float32),
        topic_vectors=np.zeros((len(topics), options.dims), np.float32),
        plain=options.plain,
    )
    columns = known_words(topics, words)
    if options.placing == "dimension":
        return replace(space, topic_vectors=_one_dimension_each(shares, columns))
    return replace(space, topic_vectors=_places_of_topics(space, word_lists(posts, words), columns))


def _one_dimension_each(shares: NDArray[Any], columns: list[list[int]]) -> NDArray[np.float32]:
    vectors = np.zeros((len(columns), len(shares)), np.float32)
    for row, known in enumerate(columns):
        if known:
            vectors[row, name_dimension(shares, known)] = 1.0
    return vectors


def _places_of_topics(space: LdaSpace, lists: WordLists, columns: list[list[int]]) -> NDArray[np.float32]:
    mixtures = (space.mixtures(part) for part in _parts(lists))
    shares = (part / np.maximum(part.sum(axis=1, keepdims=True), 1e-12) for part in mixtures)
    on = posts_on_topics(lists, columns, len(space.words))
    return unit(np.maximum(excess(shares, on), 0.0))


def _parts(lists: WordLists) -> Iterator[WordLists]:
    for first in range(0, len(lists), POSTS_A_PART):
        yield lists.part(first, min(first + POSTS_A_PART, len(lists)))


def name_dimension(shares: NDArray[Any], columns: list[int]) -> int:
    """Return the dimension that a topic names: where its words, each counted alike, most likely come from.

    `shares` holds P(word | dimension), dimensions down. Words are weighed by P(dimension | word).
    """
    chosen = shares[:, columns]
    return int((chosen / np.maximum(chosen.sum(axis=0), 1e-12)).sum(axis=1).argmax())


def train_word2vec(posts: list[list[str]], topics: TopicSet, options: TrainOptions) -> WordVectors:
    """Learn a word2vec space (skip-gram with negative sampling)."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise MissingExtra("learning a word2vec space", "topics") from None
    model = Word2Vec(
        posts,
        vector_size=options.dims,
        sg=1,
        min_count=options.min_count,
        epochs=max(1, options.rounds // 20),
        seed=options.seed,
        workers=1,
        # Python's own string hash differs from run to run.
        hashfxn=_stable_hash,
    )
    words = tuple(model.wv.index_to_key)
    vectors, levels = np.asarray(model.wv.vectors, np.float32), np.zeros(len(topics), np.float32)
    if options.literal or options.plain:
        return WordVectors(topics, words, vectors, levels, literal=options.literal)
    vectors = centre(unit(vectors), np.array([model.wv.get_vecattr(word, "count") for word in words]))
    return with_levels(WordVectors(topics, words, vectors, levels), posts)


def with_levels(space: WordVectors, posts: list[list[str]]) -> WordVectors:
    """Set the levels that posts about anything else reach: their mean cosine and one standard deviation."""
    lists = word_lists(posts, space.words)
    on = posts_on_topics(lists, known_words(space.topics, space.words), len(space.words))
    others = np.ma.masked_array(space.cosines(lists), on)
    levels = np.ma.filled(others.mean(axis=0) + others.std(axis=0), 0.0)
    return replace(space, levels=np.minimum(levels, HIGHEST_LEVEL).astype(np.float32))


def _stable_hash(word: str) -> int:
    return crc32(word.encode())


def learn_embeddings(posts: list[list[str]], topics: TopicSet, options: TrainOptions) -> Embeddings:
    """Make a space of sentence embeddings: vectors from the model, what is common and where topics lie from the posts.

    A topic that no post is on lies where its words lie.
    """
    used = Counter(chain.from_iterable(posts))
    enough = {word for word, times in used.items() if times >= options.min_count}
    words = tuple(sorted(enough.union(topics.vocabulary)))
    times = np.array([used[word] for word in words])
    lists, columns = word_lists(posts, words), known_words(topics, words)
    nowhere = np.zeros((len(topics), 0), np.float32)
    space = Embeddings(topics, words, centre(word_vectors(words), times), nowhere, prior=0.0)
    vectors = space.vectors @ evening(unit(space.sums(part)) for part in _parts(lists))
    typical = np.sqrt(times @ np.einsum("wd,wd->w", vectors, vectors) / max(1, times.sum()))
    space = replace(space, vectors=vectors, prior=float(PRIOR_LENGTH * typical))
    on = posts_on_topics(lists, columns, len(words))
    by_posts = excess((unit(space.sums(part)) for part in _parts(lists)), on)
    by_words = np.stack([space.vectors[some].sum(axis=0) for some in columns])
    some_post = on.sum(axis=0)[:, None] > 0
    return replace(space, topic_vectors=unit(np.where(some_post, by_posts, by_words)))


EVENING = 0.2
"""What every direction's spread counts as besides its own, as a share of the mean spread."""


def centre(vectors: Floats, used: NDArray[Any]) -> NDArray[np.float32]:
    """Take the mean off word vectors, each word counted as often as it is used.

    >>> centre(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3, 1])).tolist()
    [[0.25, -0.25], [-0.75, 0.75]]
    """
    return np.asarray(vectors - (used @ vectors) / max(1, used.sum()), np.float32)


def evening(parts: Iterable[Floats]) -> NDArray[np.float32]:
    """Return the map after which posts spread alike in all directions, but for those in which they hardly do.

    The inverse square root of the posts' covariance, with a share of its mean eigenvalue added.
    """
    posts, total, products = 0, np.zeros(1), np.zeros((1, 1))
    for part in parts:
        posts += len(part)
        total = total + part.sum(axis=0, dtype=np.float64)
        products = products + part.T @ part
    mean = total / max(1, posts)
    spread, directions = np.linalg.eigh(products / max(1, posts) - np.outer(mean, mean))
    spread = np.maximum(spread, 0) + EVENING * max(float(spread.mean()), 1e-12)
    return np.asarray(directions / np.sqrt(spread) @ directions.T, np.float32)


MOST_WORDS = 40
"""So many of a topic's words place it in a learnt space."""
ENOUGH_WORDS = 2
"""A background post is on a topic if it uses so many of its salient words."""


def word_lists(posts: Sequence[Sequence[str]], words: Sequence[str]) -> WordLists:
    """Return the posts as numbers of the words that are known; the others are left out."""
    place = {word: at for at, word in enumerate(words)}
    sizes = np.fromiter(map(len, posts), np.int64, len(posts))
    tokens = chain.from_iterable(posts)
    numbers = np.fromiter((place.get(token, -1) for token in tokens), np.int32, int(sizes.sum()))
    kept = np.concatenate([[0], np.cumsum(numbers >= 0)])
    return WordLists(numbers[numbers >= 0], kept[np.concatenate([[0], np.cumsum(sizes)])])


def known_words(topics: TopicSet, words: Sequence[str]) -> list[list[int]]:
    """Return, for each topic, the numbers of those of its salient words that a space knows, the weightiest first."""
    place = {word: at for at, word in enumerate(words)}
    found = []
    for topic in topics.topics:
        singles = topic.single_words()
        # Learnt topics have a thousand words; those that count little would put every post on every topic.
        known = sorted((word for word in singles if word in place), key=lambda word: -singles[word])
        found.append([place[word] for word in known[:MOST_WORDS]])
    return found


def posts_on_topics(posts: WordLists, columns: Sequence[Sequence[int]], width: int) -> NDArray[np.bool_]:
    """Say which post is on which topic: it uses two of its salient words, or the only one that is known."""
    held = posts.counts(width).tocsc() > 0
    on = np.zeros((len(posts), len(columns)), np.bool_)
    for topic, some in enumerate(columns):
        if some:
            hits = np.asarray(held[:, list(some)].sum(axis=1)).ravel()
            on[:, topic] = hits >= min(ENOUGH_WORDS, len(some))
    return on


def excess(parts: Iterable[Floats], on: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how the mean of the posts on each topic differs from the mean of all, one row per topic.

    `parts` are the posts' vectors in order, some at a time. A topic that no post is on is a row of zeros.

    >>> excess([np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])], np.array([[True, False], [False, False]])).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """
    inside: Any = 0.0
    everything: Any = 0.0
    begin = 0
    for part in parts:
        inside = inside + on[begin : begin + len(part)].T.astype(np.float64) @ part
        everything = everything + part.sum(axis=0, dtype=np.float64)
        begin += len(part)
    posts = on.sum(axis=0)[:, None]
    return np.where(posts > 0, inside / np.maximum(posts, 1) - everything / len(on), 0.0)


def unit(vectors: Floats) -> NDArray[np.float32]:
    """Bring every row to length 1; a row of zeros stays."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0), np.float32)
