"""Weighted words: the default space. Learnt words and word pairs add up to how likely a post is about a topic.

A post's log-odds for a topic are the topic's level plus the weights of the post's words and pairs, each counted
1 + ln(times) and divided by the square root of how many different ones the post holds (with some added, so that a short
post says little). The similarity is the probability that belongs to these log-odds: it was calibrated on posts that
had no part in the learning, at one post in fifty on the topic. It is never exactly 0.

What somebody writes as a whole is the mean over their posts: about which share of them is on the topic.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import UnreadableSource
from incrowd.measures.exposure.space import Floats, Ints, Pooling, WordLists
from incrowd.measures.exposure.topics import Topic, TopicSet

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
