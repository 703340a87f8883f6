"""Learn a space from a background corpus: what an adversary does before looking at anybody.

LDA by tomotopy and word2vec by gensim (the extra `topics`), on one thread and with a seed, so that the same
corpus gives the same model. LDA finds its dimensions freely; topics are placed among them afterwards, by their
salient words.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError, MissingExtra
from incrowd.measures.exposure.lda import LdaSpace
from incrowd.measures.exposure.space import WordLists
from incrowd.measures.exposure.topics import TopicSet
from incrowd.measures.exposure.word2vec import WordVectors
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    import polars as pl
    import scipy.sparse as sp

Progress = Callable[[float, float | None, str], None]
ALPHA, ETA = 0.1, 0.01
STEP = 10
ENOUGH_WORDS = 2
"""A background post is on a topic if it uses so many of its salient words."""
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
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dims < 2 or self.rounds < 1 or self.min_count < 1:
            raise InputError("training needs at least 2 dimensions, 1 round and a minimum count of 1")
        if self.placing not in get_args(Placing):
            raise InputError(f"placing must be one of {', '.join(get_args(Placing))}; got '{self.placing}'")


def documents(texts: Iterable[pl.Series], options: TrainOptions) -> list[list[str]]:
    """Return the tokens of every post that has two known words or more."""
    from incrowd.text.fast import Tokeniser

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
    return _lda_space(model, topics, options)


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


def _lda_space(model: Any, topics: TopicSet, options: TrainOptions) -> LdaSpace:
    words = tuple(model.used_vocabs)
    counts = np.stack([model.get_topic_word_dist(dim, normalize=False) for dim in range(options.dims)])
    # Smoothing gives every word a trace in every dimension; what was never drawn there is left out.
    kept = counts >= 0.5
    shares = np.where(kept, counts, 0.0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    place, dims = np.nonzero(kept.T)
    starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(words)))])
    return LdaSpace(
        topics=topics,
        words=words,
        word_starts=starts.astype(np.int64),
        dims=dims.astype(np.int32),
        weights=shares.T[kept.T].astype(np.float32),
        prior=np.asarray(model.alpha, dtype=np.float32),
        topic_vectors=_topic_vectors(model, topics, words, shares, options),
    )


def _topic_vectors(
    model: Any, topics: TopicSet, words: tuple[str, ...], shares: NDArray[Any], options: TrainOptions
) -> NDArray[np.float32]:
    place = {word: at for at, word in enumerate(words)}
    columns = [[place[word] for word in topic.words if word in place] for topic in topics.topics]
    if options.placing == "dimension":
        vectors = np.zeros((len(topics), options.dims))
        for row, known in enumerate(columns):
            if known:
                vectors[row, name_dimension(shares, known)] = 1.0
        return vectors.astype(np.float32)
    mixtures = np.stack([post.get_topic_dist() for post in model.docs])
    # tomotopy keeps the numbers of words too rare for the vocabulary; they lie beyond its end.
    numbered = [np.asarray(post.words, dtype=np.int64) for post in model.docs]
    lists = [numbers[(numbers >= 0) & (numbers < len(words))] for numbers in numbered]
    bounds = np.cumsum([0, *map(len, lists)])
    held = WordLists(np.concatenate(lists), bounds).counts(len(words)).tocsc() > 0
    return np.stack([place_by_posts(mixtures, held, some) for some in columns]).astype(np.float32)


def place_by_posts(mixtures: NDArray[Any], held: sp.csc_matrix, columns: list[int]) -> NDArray[Any]:
    """Return where a topic lies: what posts that use its words hold more of than posts at large, length 1.

    `held` says which post has which word. A topic that no post is on is a vector of zeros.
    """
    hits = np.asarray(held[:, columns].sum(axis=1)).ravel()
    enough = min(ENOUGH_WORDS, len(columns))
    if not columns or hits.max() < enough:
        return np.zeros(mixtures.shape[1])
    excess = np.maximum(mixtures[hits >= enough].mean(axis=0) - mixtures.mean(axis=0), 0.0)
    length = np.linalg.norm(excess)
    return np.asarray(excess / length if length > 0 else excess)


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
    return WordVectors(topics, tuple(model.wv.index_to_key), np.asarray(model.wv.vectors, np.float32))


def _stable_hash(word: str) -> int:
    from zlib import crc32

    return crc32(word.encode())
