"""A space: how an adversary tells how close a post is to a topic. Two of them: a bag of words, and weighted words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import UnreadableSource
from incrowd.measures.exposure.topics import Topic, TopicSet
from incrowd.text.reference import tokenise

if TYPE_CHECKING:
    import polars as pl
    import scipy.sparse as sp

    from incrowd.text.options import TextOptions
    from incrowd.text.tokeniser import Tokeniser


Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
Pooling = Literal["largest", "mean"]


@dataclass(frozen=True)
class WordLists:
    """The words of some posts as numbers of a space: post p has ``words[bounds[p]:bounds[p + 1]]``."""

    words: NDArray[np.int32]
    bounds: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def part(self, first: int, last: int) -> WordLists:
        """Return the posts from `first` up to `last`."""
        begin, end = self.bounds[first], self.bounds[last]
        return WordLists(self.words[begin:end], self.bounds[first : last + 1] - begin)

    def counts(self, width: int) -> sp.csr_matrix:
        """Return how often each post has each word."""
        # One post of a draft needs no matrix, and somebody waits for it: SciPy is loaded for whole columns only.
        import scipy.sparse as sp

        ones = np.ones(len(self.words))
        matrix = sp.csr_matrix((ones, self.words, self.bounds), shape=(len(self), width), copy=True)
        matrix.sum_duplicates()
        return matrix


class Space(Protocol):
    """What an adversary knows about words and topics."""

    @property
    def name(self) -> str:
        """The paper's name, BOW, LDA or W2V; or EMB, or WORDS."""
        ...

    @property
    def pooling(self) -> Pooling:
        """What somebody's strength is: the largest similarity of their posts, or the mean over all."""
        ...

    @property
    def enough(self) -> int:
        """Nothing is told about somebody who has written fewer known words; 0: always something."""
        ...

    @property
    def topics(self) -> TopicSet:
        """The topics, in the order of the columns."""
        ...

    @property
    def words(self) -> Sequence[str]:
        """The words, and pairs of words, that this adversary knows; all others are passed over."""
        ...

    @property
    def hash(self) -> str:
        """A digest of all that decides similarities."""
        ...

    def similarities(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic; a post without a known word has 0."""
        ...

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word of one post adds to its similarity, over that of a post that says nothing."""
        ...


def silence(space: Space) -> Floats:
    """Return the similarity of a post that says nothing with each topic: 0 in most spaces."""
    nothing = WordLists(np.zeros(0, np.int32), np.zeros(2, np.int64))
    return np.asarray(space.similarities(nothing)[0], np.float64)


class Encoder:
    """Turns posts into a space's words and pairs of words, a column of texts at a time."""

    def __init__(self, space: Space, text: TextOptions) -> None:
        self._known = {word: place for place, word in enumerate(space.words)}
        pairs = {tuple(word.split(" ")): place for word, place in self._known.items() if " " in word}
        # A pair may hold a stop word, and stop words between two others keep them from being neighbours.
        self._text = replace(text, keep_stopwords=True) if pairs else text
        self._tokeniser: Tokeniser | None = None
        self._places = np.empty((2, 0), np.int32)
        self._parts = {part: at for at, part in enumerate(dict.fromkeys(chain.from_iterable(pairs)))}
        keys = np.array([self._parts[a] * len(self._parts) + self._parts[b] for a, b in pairs], np.int64)
        order = np.argsort(keys)
        self._pair_keys = keys[order]
        self._pair_places = np.array(list(pairs.values()), np.int32)[order]

    def encode(self, texts: pl.Series) -> WordLists:
        """Return the posts' known words and pairs; a pair stands behind its second word."""
        if self._tokeniser is None:
            # Compiled; a draft is read without it.
            from incrowd.text.tokeniser import Tokeniser

            self._tokeniser = Tokeniser(self._text)
        tokens = self._tokeniser.numbers(texts)
        self._look_up(self._tokeniser.vocabulary()[self._places.shape[1] :].to_list())
        places, parts = self._places[:, tokens.numbers]
        if len(self._pair_keys):
            places = np.stack([places, self._pairs(parts, tokens.ends)], axis=1).ravel()
        kept_before = np.concatenate([[0], np.cumsum(places >= 0)])
        ends = tokens.ends * (2 if len(self._pair_keys) else 1)
        bounds = kept_before[np.concatenate([[0], ends])]
        return WordLists(places[places >= 0], bounds.astype(np.int64))

    def words(self, text: str) -> list[str]:
        """Return one post's known words and pairs, in the same order, without the cost of a whole column."""
        tokens = tokenise(text, self._text)
        found = []
        for before, token in zip(["", *tokens], tokens, strict=False):
            found += [one for one in (token, f"{before} {token}") if one in self._known]
        return found

    def encode_one(self, text: str) -> WordLists:
        """Return the same as numbers."""
        places = [self._known[word] for word in self.words(text)]
        return WordLists(np.array(places, np.int32), np.array([0, len(places)], np.int64))

    def _look_up(self, new: list[str]) -> None:
        found = [[known.get(word, -1) for word in new] for known in (self._known, self._parts)]
        self._places = np.concatenate([self._places, np.array(found, np.int32).reshape(2, len(new))], axis=1)

    def _pairs(self, parts: Ints, ends: Ints) -> NDArray[np.int32]:
        """Return the pair that each word is the second of; -1 for none, and for the first word of a post."""
        keys = parts[:-1].astype(np.int64) * len(self._parts) + parts[1:]
        at = np.minimum(np.searchsorted(self._pair_keys, keys), len(self._pair_keys) - 1)
        hit = (self._pair_keys[at] == keys) & (parts[:-1] >= 0) & (parts[1:] >= 0)
        found = np.full(len(parts), -1, np.int32)
        found[1:][hit] = self._pair_places[at[hit]]
        firsts = np.concatenate([[0], ends[:-1]])
        found[firsts[firsts < len(parts)]] = -1
        return found


def in_parts(posts: WordLists, topics: int, size: int, work: Callable[[WordLists], Floats]) -> Floats:
    """Run `work` on parts of the posts, on all cores; kernels release the lock."""
    firsts = range(0, len(posts), size)
    parts = [posts.part(first, min(first + size, len(posts))) for first in firsts]
    if len(parts) <= 1:
        return work(posts) if parts else np.zeros((0, topics), np.float32)
    with ThreadPoolExecutor() as threads:
        return np.concatenate(list(threads.map(work, parts)))


@dataclass(frozen=True)
class BagOfWords:
    """Needs no training. Its features are the salient words of all its topics."""

    topics: TopicSet
    name = "BOW"
    pooling: ClassVar[Pooling] = "largest"
    enough: ClassVar[int] = 0

    @property
    def words(self) -> tuple[str, ...]:
        """All salient words."""
        return self.topics.vocabulary

    @property
    def hash(self) -> str:
        """The topics decide everything."""
        return self.topics.hash

    @cached_property
    def _topic_words(self) -> Floats:
        """One column per topic: its words' weights, brought to length 1."""
        place = {word: at for at, word in enumerate(self.words)}
        matrix = np.zeros((len(self.words), len(self.topics)))
        for column, topic in enumerate(self.topics.topics):
            weights = np.array([weight for _, weight in topic.weighted_words])
            matrix[[place[word] for word in topic.words], column] = weights / np.sqrt(
                (weights**2).sum() or 1.0
            )
        return matrix

    def similarities(self, posts: WordLists) -> Floats:
        """Return the cosine of each post with each topic; 0 for a post that points away."""
        if len(posts) == 1:
            return self._one(posts.words)
        counts = posts.counts(len(self.words))
        length = np.sqrt(np.asarray(counts.multiply(counts).sum(axis=1)).ravel())
        return np.asarray(np.maximum(counts @ self._topic_words, 0.0) / np.maximum(length, 1.0)[:, None])

    def _one(self, words: Ints) -> Floats:
        """Do the same for one post, to the bit, without loading SciPy: somebody waits for a draft's answer."""
        every = np.bincount(words, minlength=len(self.words))
        used = np.flatnonzero(every)
        counts = every[used]
        length = np.sqrt((counts**2).sum())
        total = (counts[:, None] * self._topic_words[used]).sum(axis=0)
        return np.asarray(np.maximum(total, 0.0) / np.maximum(length, 1.0))[None, :]

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word adds to the cosine."""
        if not len(words):
            return np.zeros(0)
        length = np.sqrt((np.bincount(words) ** 2).sum())
        along = np.asarray(self._topic_words[words, topic] / length)
        return along if along.sum() > 0 else np.zeros(len(words))


# Weighted words: the default space. Learnt words and word pairs add up to how likely a post is about a topic.
#
# A post's log-odds for a topic are the topic's level plus the weights of the post's words and pairs, each counted 1 +
# ln(times) and divided by the square root of how many different ones the post holds (with some added, so that a short
# post says little). The similarity is the probability that belongs to these log-odds: it was calibrated on posts that
# had no part in the learning, at one post in fifty on the topic. It is never exactly 0.
#
# What somebody writes as a whole is the mean over their posts: about which share of them is on the topic.

FORMAT = "incrowd learnt topics 1"
FILE = "learnt_topics.json"
HUNDREDTHS = 100
"""Weights are kept in hundredths."""


@dataclass(frozen=True, eq=False)
class WeightedWords:
    """Words and pairs with learnt weights. Needs nothing but its file."""

    topics: TopicSet
    """Each with weights and a level."""
    prior: float
    """How many words and pairs are added to those of every post before the square root is taken."""
    enough: int
    """Whoever has written fewer known words and pairs: nothing can be told about them."""
    name = "WORDS"
    pooling: ClassVar[Pooling] = "mean"

    @cached_property
    def words(self) -> tuple[str, ...]:
        """All words and pairs, each once."""
        return self.topics.vocabulary

    @cached_property
    def hash(self) -> str:
        """The topics, and how their weights are put together."""
        return f"{self.topics.hash}-{self.prior:g}-{self.enough}"

    @cached_property
    def _weights(self) -> NDArray[np.float32]:
        """One row per word, one column per topic."""
        place = {word: at for at, word in enumerate(self.words)}
        matrix = np.zeros((len(self.words), len(self.topics)), np.float32)
        for column, topic in enumerate(self.topics.topics):
            matrix[[place[word] for word in topic.words], column] = topic.weights or 1.0
        return matrix

    @cached_property
    def _levels(self) -> NDArray[np.float64]:
        return np.array([topic.level or 0.0 for topic in self.topics.topics])

    def similarities(self, posts: WordLists) -> Floats:
        """Return how likely each post is about each topic."""
        if len(posts) == 1:
            return self._one(posts.words)
        counts = posts.counts(len(self.words)).astype(np.float32)
        counts.data = 1 + np.log(counts.data)
        length = np.sqrt(np.diff(counts.indptr) + self.prior)
        return np.asarray(_probability(counts @ self._weights / length[:, None] + self._levels), np.float32)

    def _one(self, words: Ints) -> Floats:
        """Do the same for one post without loading SciPy: somebody waits for a draft's answer."""
        used, times = np.unique(words, return_counts=True)
        # Added up word by word, as a sparse matrix does it: both agree to the last bit.
        told = ((1 + np.log(times.astype(np.float32)))[:, None] * self._weights[used]).sum(axis=0)
        length = np.sqrt(len(used) + self.prior)
        return np.asarray(_probability(told / length + self._levels), np.float32)[None, :]

    def shares(self, words: Ints, topic: int) -> Floats:
        """Return what each word adds to the probability of a post that says nothing; they add up to the difference.

        Log-odds add up; a probability is followed along the straight line from the one of a silent post.
        """
        if not len(words):
            return np.zeros(0)
        used, at, times = np.unique(words, return_inverse=True, return_counts=True)
        told = (
            self._weights[used, topic].astype(np.float64)
            * (1 + np.log(times))
            / np.sqrt(len(used) + self.prior)
        )
        level, total = self._levels[topic], float(told.sum())
        silent, spoken = _probability(np.array([level, level + total]))
        slope = (spoken - silent) / total if abs(total) > 1e-9 else silent * (1 - silent)
        return np.asarray((told / times)[at] * slope)


def _probability(log_odds: Any) -> Any:
    return 1 / (1 + np.exp(-log_odds))


@cache
def default_space() -> WeightedWords:
    """Return the space that is used where none is asked for: what incrowd has learnt, as it is shipped."""
    return _read((files("incrowd.measures.exposure") / FILE).read_text(encoding="utf-8"), "the learnt topics")


def learnt_figures() -> dict[str, Any]:
    """Return what the shipped weights were learnt from and how well they do on posts that had no part in it."""
    text = (files("incrowd.measures.exposure") / FILE).read_text(encoding="utf-8")
    return dict(json.loads(text)["about"])


def load_weighted(path: Path | str) -> WeightedWords:
    """Read weights written by `incrowd exposure learn`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UnreadableSource(f"{path}: no such file; learn weights with: incrowd exposure learn") from None
    except UnicodeDecodeError:
        raise UnreadableSource(f"{path}: expected weights written by incrowd exposure learn") from None
    return _read(text, str(path))


def _read(text: str, place: str) -> WeightedWords:
    try:
        plain = json.loads(text)
        if plain["format"] != FORMAT:
            raise ValueError("another format")
        topics = tuple(_topic(name, table) for name, table in plain["topics"].items())
        return WeightedWords(TopicSet(topics), float(plain["prior"]), int(plain["enough"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnreadableSource(f"{place}: expected weights written by incrowd exposure learn") from None


def _topic(name: str, table: Mapping[str, Any]) -> Topic:
    weights = table["weights"]
    return Topic(
        name,
        table["domain"],
        tuple(weights),
        table["sensitive"],
        tuple(weight / HUNDREDTHS for weight in weights.values()),
        float(table["level"]),
    )


def write_weighted(space: WeightedWords, about: Mapping[str, Any]) -> str:
    """Return the text of a file of weights, one topic a line, its weightiest words first."""
    head = {"format": FORMAT, "about": dict(about), "prior": space.prior, "enough": space.enough}
    lines = []
    for topic in space.topics.topics:
        order = sorted(topic.weighted_words, key=lambda pair: (-abs(pair[1]), pair[0]))
        table = {
            "domain": topic.domain,
            "sensitive": topic.sensitive,
            "level": round(float(topic.level or 0.0), 3),
            "weights": {word: round(weight * HUNDREDTHS) for word, weight in order},
        }
        lines.append(f"{json.dumps(topic.name)}: {_plain(table)}")
    opening = json.dumps(head, ensure_ascii=False, indent=1)[:-2]
    return opening + ',\n "topics": {\n' + ",\n".join(lines) + "\n }\n}\n"


def _plain(table: Mapping[str, Any]) -> str:
    return json.dumps(table, ensure_ascii=False, separators=(",", ":"))
