"""Spaces learnt from a background corpus, and the file each is kept in.

LDA: a post is a mixture of latent dimensions, a topic is one of them or a direction among them. word2vec: related
words lie close together, and a post leans towards the words near the topic. Sentence embeddings: what a model that has
read a large part of the web makes of a post.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from incrowd.errors import MissingExtra, UnreadableSource
from incrowd.measures.exposure.space import Floats, Ints, Pooling, WordLists, in_parts
from incrowd.measures.exposure.topics import Topic, TopicSet


@njit(nogil=True, cache=True)
def fold_in_compiled(
    words: Any, bounds: Any, word_starts: Any, dims: Any, weights: Any, prior: Any, rounds: int, mixtures: Any
) -> None:
    """Infer the mixture of every post; see :func:`fold_in`."""
    now, after = np.empty_like(prior), np.empty_like(prior)
    for post in range(len(bounds) - 1):
        first, last = bounds[post], bounds[post + 1]
        mixtures[post, :] = 0.0
        if first == last:
            continue
        now[:] = prior
        for _ in range(rounds):
            after[:] = prior
            for at in range(first, last):
                begin, end = word_starts[words[at]], word_starts[words[at] + 1]
                total = np.float32(0.0)
                for entry in range(begin, end):
                    total += now[dims[entry]] * weights[entry]
                if total > 0:
                    scale = np.float32(1.0) / total
                    for entry in range(begin, end):
                        after[dims[entry]] += now[dims[entry]] * weights[entry] * scale
            now, after = after, now
        mixtures[post, :] = now


@njit(nogil=True, cache=True)
def weighted_cosines(
    words: Any, bounds: Any, vectors: Any, projections: Any, relevance: Any, lengths: Any, out: Any
) -> None:
    """Return each post's cosine with each topic; see :func:`post_vector`."""
    dims = vectors.shape[1]
    total = np.empty(dims, np.float32)
    for post in range(len(bounds) - 1):
        for topic in range(relevance.shape[1]):
            total[:] = 0.0
            along = 0.0
            for at in range(bounds[post], bounds[post + 1]):
                weight = relevance[words[at], topic]
                if weight != 0.0:
                    along += weight * projections[words[at], topic]
                    for dim in range(dims):
                        total[dim] += weight * vectors[words[at], dim]
            norm = 0.0
            for dim in range(dims):
                norm += total[dim] * total[dim]
            out[post, topic] = along / (np.sqrt(norm) * lengths[topic]) if norm > 0 else 0.0


ROUNDS = 20
POSTS_A_PART = 8_192


def _digest(topics: TopicSet, words: Sequence[str], *parts: NDArray[Any] | bytes) -> str:
    digest = blake2b("\n".join(words).encode(), digest_size=8, key=topics.hash.encode())
    for part in parts:
        digest.update(part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class LdaSpace:
    """A trained model, sparse: word w has the entries ``word_starts[w]`` up to ``word_starts[w + 1]``."""

    topics: TopicSet
    words: tuple[str, ...]
    word_starts: NDArray[np.int64]
    dims: NDArray[np.int32]
    """The dimension of each entry."""
    weights: NDArray[np.float32]
    """P(word | dimension) of each entry."""
    prior: NDArray[np.float32]
    """alpha: what each dimension counts before any word is read."""
    topic_vectors: NDArray[np.float32]
    """One row per topic, of length 1; a topic that the model does not know is a row of zeros."""
    plain: bool = False
    """The paper's cosine, with the prior in it: a post that says nothing then lies close to every topic."""
    name = "LDA"
    pooling: ClassVar[Pooling] = "largest"
    enough: ClassVar[int] = 0

    @cached_property
    def hash(self) -> str:
        """A digest of the topics and the trained numbers."""
        arrays = (self.word_starts, self.dims, self.weights, self.prior, self.topic_vectors)
        return _digest(self.topics, self.words, *arrays, b"plain" if self.plain else b"")

    @cached_property
    def _prior_along(self) -> Floats:
        """What the prior adds to every post's scalar product with each topic, and is taken off again."""
        return np.asarray(self.prior @ self.topic_vectors.T) * (not self.plain)

    def mixtures(self, posts: WordLists) -> Floats:
        """Return the (unscaled) mixture of each post; zeros for a post without a known word."""
        out = np.empty((len(posts), len(self.prior)), np.float32)
        fold_in_compiled(
            posts.words, posts.bounds, self.word_starts, self.dims, self.weights, self.prior, ROUNDS, out
        )
        return out

    def similarities(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic, as far as it comes from the post's words.

        The prior lies in every post, so what it adds says nothing about anybody: it counts in the length only,
        unless the paper's plain cosine is asked for. A post without a known word has 0 either way.
        """
        return in_parts(posts, len(self.topics), POSTS_A_PART, self._cosines)

    def _cosines(self, posts: WordLists) -> Floats:
        mixtures = self.mixtures(posts)
        length = np.sqrt(np.einsum("pk,pk->p", mixtures, mixtures))
        along = mixtures @ self.topic_vectors.T - self._prior_along
        # Rounding may leave a trace below 0.
        return np.asarray(
            np.where(length[:, None] > 0, np.maximum(along, 0), 0) / np.maximum(length, 1e-9)[:, None]
        )

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word adds to the cosine."""
        mixture, drawn = fold_in(self, words)
        direction = self.topic_vectors[topic].astype(np.float64)
        # In the plain cosine the prior has its part too; it is shared out evenly.
        prior = float(self.prior @ direction) / max(1, len(words)) if self.plain else 0.0
        return np.asarray((drawn @ direction + prior) / np.sqrt(mixture @ mixture))


def fold_in(space: LdaSpace, words: Ints) -> tuple[Floats, Floats]:
    """Return a post's mixture, and how much of each word comes from each dimension: the readable reference.

    Start from the prior. In each round, share every word out among the dimensions in proportion to mixture
    times P(word | dimension); the next mixture is the prior plus the shares.
    """
    table = np.zeros((len(words), len(space.prior)))
    for row, word in enumerate(words):
        entries = slice(space.word_starts[word], space.word_starts[word + 1])
        table[row, space.dims[entries]] = space.weights[entries]
    mixture, drawn = space.prior.astype(np.float64), table
    for _ in range(ROUNDS):
        likely = mixture * table
        total = likely.sum(axis=1, keepdims=True)
        drawn = np.divide(likely, total, out=np.zeros_like(likely), where=total > 0)
        mixture = space.prior + drawn.sum(axis=0)
    return mixture, drawn


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Trained word vectors. A topic is the sum of its words' vectors."""

    topics: TopicSet
    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    levels: NDArray[np.float32]
    """For each topic the cosine that posts about anything else reach; 0 as printed."""
    literal: bool = False
    """Let words that point away from a topic count too, turned towards it, as printed."""
    name = "W2V"
    pooling: ClassVar[Pooling] = "largest"
    enough: ClassVar[int] = 0

    @cached_property
    def hash(self) -> str:
        """A digest of the topics and the vectors."""
        return _digest(self.topics, self.words, self.vectors, bytes([self.literal]), self.levels)

    @cached_property
    def topic_vectors(self) -> NDArray[np.float32]:
        """One row per topic: the sum of its words' vectors, each as much as the word counts; zeros if none is known."""
        place = {word: at for at, word in enumerate(self.words)}
        rows = []
        for topic in self.topics.topics:
            known = {place[word]: weight for word, weight in topic.single_words().items() if word in place}
            weights = np.fromiter(known.values(), np.float32, len(known))
            rows.append(weights @ self.vectors[list(known)] if known else np.zeros(self.vectors.shape[1]))
        return np.array(rows, np.float32)

    @cached_property
    def _projections(self) -> NDArray[np.float32]:
        """The scalar product of every word with every topic."""
        return np.asarray(self.vectors @ self.topic_vectors.T)

    @cached_property
    def _topic_lengths(self) -> NDArray[np.float32]:
        return np.asarray(np.linalg.norm(self.topic_vectors, axis=1), np.float32)

    @cached_property
    def relevance(self) -> NDArray[np.float32]:
        """How much each word counts for each topic: its cosine with it, 0 where that is negative."""
        lengths = np.outer(np.linalg.norm(self.vectors, axis=1), self._topic_lengths)
        cosines = np.divide(
            self._projections, lengths, out=np.zeros_like(self._projections), where=lengths > 0
        )
        return cosines if self.literal else np.maximum(cosines, 0)

    def similarities(self, posts: WordLists) -> Floats:
        """Return how far each post's cosine with each topic lies above its level: 0 there or below, 1 at cosine 1."""
        return np.asarray(np.maximum(self.cosines(posts) - self.levels, 0) / (1 - self.levels))

    def cosines(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic."""
        return in_parts(posts, len(self.topics), POSTS_A_PART, self._cosines)

    def _cosines(self, posts: WordLists) -> Floats:
        distinct = posts.counts(len(self.words))
        out = np.empty((len(posts), len(self.topics)), np.float32)
        weighted_cosines(
            distinct.indices, distinct.indptr, self.vectors, self._projections, self.relevance,
            self._topic_lengths, out,
        )  # fmt: skip
        return out

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word adds to the similarity; a word said again adds nothing."""
        total = post_vector(self, words, topic)
        length = np.linalg.norm(total) * self._topic_lengths[topic]
        if not length > 0:
            return np.zeros(len(words))
        first = np.zeros(len(words), bool)
        first[np.unique(words, return_index=True)[1]] = True
        parts = first * self.relevance[words, topic] * self._projections[words, topic] / length
        cosine, level = parts.sum(), self.levels[topic]
        above = max(cosine - level, 0) / (1 - level)
        return np.asarray(parts * (above / cosine)) if cosine > 0 else np.zeros(len(words))


def post_vector(space: WordVectors, words: Ints, topic: int) -> Floats:
    """Return a post's vector as seen from a topic: its distinct words, each as far as it points there."""
    distinct = np.unique(words)
    weights = space.relevance[distinct, topic].astype(np.float64)
    return np.asarray(weights @ space.vectors[distinct].astype(np.float64))


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Word vectors of a sentence model, fitted to a background; a post is the sum of its words."""

    topics: TopicSet
    words: tuple[str, ...]
    vectors: NDArray[np.float32]
    topic_vectors: NDArray[np.float32]
    """One row per topic, of length 1; a topic that the model does not know is a row of zeros."""
    prior: float
    """The length that every post has besides its words': a short post says little."""
    name = "EMB"
    pooling: ClassVar[Pooling] = "largest"
    enough: ClassVar[int] = 0

    @cached_property
    def hash(self) -> str:
        """A digest of the topics and the vectors."""
        return _digest(
            self.topics, self.words, self.vectors, self.topic_vectors, np.float64(self.prior).tobytes()
        )

    def sums(self, posts: WordLists) -> Floats:
        """Return each post's vector: the sum of its words' vectors."""
        return np.asarray(posts.counts(len(self.words)).astype(np.float32) @ self.vectors)

    def similarities(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic, with the prior in the length; 0 for posts that point away."""
        return in_parts(posts, len(self.topics), POSTS_A_PART, self._cosines)

    def _cosines(self, posts: WordLists) -> Floats:
        sums = self.sums(posts)
        length = np.hypot(np.linalg.norm(sums, axis=1), self.prior)
        along = sums @ self.topic_vectors.T
        return np.asarray(np.maximum(along, 0) / np.where(length > 0, length, 1)[:, None])

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word adds to the cosine; nothing if the post points away from the topic."""
        chosen = self.vectors[words].astype(np.float64)
        along = chosen @ self.topic_vectors[topic].astype(np.float64)
        length = np.hypot(np.linalg.norm(chosen.sum(axis=0)), self.prior)
        return along / length if along.sum() > 0 else np.zeros(len(words))


# A sentence model that comes with its weights in a Python package: nothing is ever downloaded. The package (WordLlama,
# the extra `embeddings`) holds one vector for each of 32,000 word pieces, trained so that the mean over a sentence's
# pieces is an embedding of the sentence. Only its two data files are read.
PACKAGE = "wordllama"
WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
PIECES = Path("tokenizers") / "l2_supercat_tokenizer_config.json"
TASK = "learning a space of sentence embeddings"


def word_vectors(words: Sequence[str]) -> NDArray[np.float32]:
    """Return what each word adds to a sentence: the sum of its pieces' vectors."""
    pieces, table = _sentence_model()
    numbers = [one.ids for one in pieces.encode_batch_fast(list(words), add_special_tokens=False)]
    bounds = np.cumsum([0, *map(len, numbers)])
    chosen = np.fromiter((piece for one in numbers for piece in one), np.int32, int(bounds[-1]))
    counts = sp.csr_matrix((np.ones(len(chosen), np.float32), chosen, bounds), shape=(len(words), len(table)))
    return np.asarray(counts @ table)


@cache
def _sentence_model() -> tuple[Any, NDArray[np.float32]]:
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra(TASK, "embeddings") from None
    folder = _model_folder()
    pieces = Tokenizer.from_file(str(folder / PIECES))
    pieces.no_padding()
    pieces.no_truncation()
    (table,) = load_file(folder / WEIGHTS).values()
    return pieces, table.astype(np.float32)


def _model_folder() -> Path:
    """Find the package without running it: it sets up logging and can download other models."""
    found = find_spec(PACKAGE)
    folder = None if found is None or found.origin is None else Path(found.origin).parent
    if folder is None or not (folder / WEIGHTS).exists() or not (folder / PIECES).exists():
        raise MissingExtra(TASK, "embeddings")
    return folder


FORMAT = 2
TrainedSpace = LdaSpace | WordVectors | Embeddings
KINDS: dict[str, tuple[type[TrainedSpace], tuple[str, ...]]] = {
    "LDA": (LdaSpace, ("word_starts", "dims", "weights", "prior", "topic_vectors", "plain")),
    "W2V": (WordVectors, ("vectors", "levels", "literal")),
    "EMB": (Embeddings, ("vectors", "topic_vectors", "prior")),
}
"""The spaces that can be learnt, and the arrays and numbers each is made of, in order."""


def save_space(space: TrainedSpace, path: Path | str, origin: Mapping[str, Any]) -> None:
    """Write a space; `origin` says what it was learnt from (hashes, options, seed). Whole or not at all."""
    _, names = KINDS[space.name]
    about = {
        "format": FORMAT,
        "space": space.name,
        "hash": space.hash,
        "origin": dict(origin),
        "topics": [
            [t.name, t.domain, list(t.words), t.sensitive, t.weights, t.level] for t in space.topics.topics
        ],
        "words": list(space.words),
    }
    text = json.dumps(about, ensure_ascii=False, sort_keys=True).encode()
    arrays = {name: getattr(space, name) for name in names}
    target = Path(path)
    unfinished = target.with_name(target.name + ".tmp")
    with unfinished.open("wb") as file:
        np.savez_compressed(file, about=np.frombuffer(text, np.uint8), **arrays)
    unfinished.replace(target)


MOST_BYTES = 8 * 2**30
"""What a model may take once it is unpacked."""


def load_space(path: Path | str, *, most_bytes: int = MOST_BYTES) -> TrainedSpace:
    """Read a space and check that it is what was written; one that would unpack to more is refused before that."""
    try:
        _check_sizes(Path(path), most_bytes)
        with Path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
            about = json.loads(arrays.pop("about").tobytes())
        space = _space(about, arrays)
    except UnreadableSource:
        raise
    except FileNotFoundError:
        raise UnreadableSource(f"{path}: no such model; learn one with: incrowd exposure train") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError):
        raise UnreadableSource(f"{path}: not a model of incrowd exposure train; learn it again") from None
    if space.hash != about["hash"]:
        raise UnreadableSource(f"{path}: the model differs from what was written; learn it again")
    return space


def _check_sizes(path: Path, most: int) -> None:
    """Raise if a model would unpack to too much: a few megabytes of zeros can stand for gigabytes."""
    total = 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                major, _ = np.lib.format.read_magic(file)
                read = (
                    np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
                )
                shape, _, kind = read(file)
            claimed = math.prod(shape) * kind.itemsize
            total += max(claimed, member.file_size)
            if claimed > member.file_size or total > most:
                raise UnreadableSource(
                    f"{path}: expected a model that unpacks to at most {most / 2**20:,.0f} MiB, got a larger one, or "
                    "one that claims more than it holds"
                )


def _topic(
    name: str, domain: str, words: list[str], sensitive: bool, weights: Any = None, level: Any = None
) -> Topic:
    return Topic(name, domain, tuple(words), sensitive, None if weights is None else tuple(weights), level)


def _space(about: dict[str, Any], arrays: dict[str, Any]) -> TrainedSpace:
    if about["format"] != FORMAT:
        raise ValueError("another format")
    topics = TopicSet(tuple(_topic(*parts) for parts in about["topics"]))
    words = tuple(about["words"])
    kind, names = KINDS[about["space"]]
    # Models written before a choice existed lack it, and have what was then the only way.
    given = {name: arrays[name] for name in names if name in arrays}
    return kind(topics, words, **{name: one if one.ndim else one.item() for name, one in given.items()})
