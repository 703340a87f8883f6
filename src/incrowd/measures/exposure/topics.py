"""Sensitive topics: the words that point to them, and which of them belong together."""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from incrowd.errors import InputError, NotInCrowd, UnreadableSource
from incrowd.text.options import TextOptions
from incrowd.text.reference import tokenise

KEYS = {"domain", "words", "weights", "sensitive", "communities"}


@dataclass(frozen=True)
class Topic:
    """One topic: the words an adversary would look for, and the domain it shares with its siblings."""

    name: str
    domain: str
    words: tuple[str, ...]
    """Single words, and pairs of words with a space between them."""
    sensitive: bool = True
    weights: tuple[float, ...] | None = None
    """How much each of the words counts; None: 1 each."""
    level: float | None = None
    """For learnt weights: the log-odds of a post that says nothing."""
    communities: tuple[str, ...] = ()
    """Where people write about the topic: what its weights can be learnt from."""

    @property
    def weighted_words(self) -> tuple[tuple[str, float], ...]:
        """The words and pairs with their weights."""
        return tuple(zip(self.words, self.weights or (1.0,) * len(self.words), strict=True))

    def single_words(self) -> dict[str, float]:
        """Return single words with weights above 0; a pair counts as its two words, with half its weight each.

        Spaces that know single words only see a topic so.

        >>> Topic("a", "d", ("dread", "panic attack"), weights=(1.0, 3.0)).single_words()
        {'dread': 1.0, 'panic': 1.5, 'attack': 1.5}
        """
        found: dict[str, float] = {}
        for words, weight in self.weighted_words:
            parts = words.split(" ")
            for part in parts:
                if weight > 0:
                    found[part] = found.get(part, 0.0) + weight / len(parts)
        return found


@dataclass(frozen=True)
class TopicSet:
    """Topics in order; a topic's place is its column in every array of scores."""

    topics: tuple[Topic, ...]

    def __len__(self) -> int:
        return len(self.topics)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The topics' names, in order."""
        return tuple(topic.name for topic in self.topics)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The names of the sensitive ones."""
        return tuple(topic.name for topic in self.topics if topic.sensitive)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """All salient words, each once, in order of appearance."""
        return tuple(dict.fromkeys(word for topic in self.topics for word in topic.words))

    @cached_property
    def hash(self) -> str:
        """A digest of everything in the set."""
        plain = [
            [t.name, t.domain, list(t.words), t.sensitive]
            + ([] if t.weights is None else [list(t.weights), t.level])
            for t in self.topics
        ]
        return hashlib.blake2b(json.dumps(plain).encode(), digest_size=8).hexdigest()

    def place(self, name: str) -> int:
        """Return the column of a topic."""
        if name not in self._places:
            raise NotInCrowd(f"topic '{name}' is not in the set of topics; it has: {', '.join(self.names)}")
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def _domains(self) -> list[list[int]]:
        of = [topic.domain for topic in self.topics]
        return [[at for at, domain in enumerate(of) if domain == own] for own in of]

    def domain(self, place: int) -> list[int]:
        """Return the columns of all topics in a topic's domain, itself included."""
        return self._domains[place]

    def siblings(self, place: int) -> list[int]:
        """Return the columns of the other topics in a topic's domain."""
        return [at for at in self.domain(place) if at != place]


def starter_topics() -> TopicSet:
    """Return the topics that come with incrowd; a test checks their words, so that nobody waits for it."""
    tables = tomllib.loads(starter_file())
    return TopicSet(tuple(_topic(name, table, "the starter topics") for name, table in tables.items()))


def starter_file() -> str:
    """Return the starter topics as the TOML file they are, to copy, edit and translate."""
    return (files("incrowd.measures.exposure") / "topics.toml").read_text(encoding="utf-8")


def load_topics(path: Path | str, text: TextOptions | None = None) -> TopicSet:
    """Read topics from a TOML file; every word must be one that a post can contain."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnreadableSource(
            f"{path}: no such file; write one with: incrowd exposure topics --out"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UnreadableSource(f"{path}: expected a TOML file with one table per topic: {problem}") from None
    return _topic_set(tables, str(path), text)


def topic_set(topics: Mapping[str, Any]) -> TopicSet:
    """Make a set from any mapping of names to values that have `domain` and `words`."""
    return TopicSet(tuple(Topic(name, t.domain, tuple(t.words)) for name, t in topics.items()))


def _topic_set(tables: Mapping[str, Any], place: str, text: TextOptions | None = None) -> TopicSet:
    if not tables:
        raise InputError(f"{place}: expected at least one topic, got none; see incrowd exposure topics --out")
    topics = TopicSet(tuple(_topic(name, table, place) for name, table in tables.items()))
    text = text or TextOptions()
    for topic in topics.topics:
        _check_words(topic.words, text, f"{place}, topic '{topic.name}'")
    return topics


def _topic(name: str, table: Any, place: str) -> Topic:
    where = f"{place}, topic '{name}'"
    if not isinstance(table, dict):
        raise InputError(f"{where}: expected a table with 'domain' and 'words', got {type(table).__name__}")
    if unknown := set(table) - KEYS:
        raise InputError(f"{where}: unknown key '{min(unknown)}'; a topic has: {', '.join(sorted(KEYS))}")
    domain, sensitive = table.get("domain"), table.get("sensitive", True)
    words, weights = table.get("words", []), table.get("weights", {})
    communities = table.get("communities", [])
    if not isinstance(domain, str) or not domain.strip():
        raise InputError(f"{where}: expected 'domain' as text; add it, e.g. domain = \"medicine\"")
    if not isinstance(weights, dict) or not all(_is_number(weight) for weight in weights.values()):
        raise InputError(f"{where}: expected 'weights' as a table of numbers, e.g. {{ dread = 1.5 }}")
    if not isinstance(words, list) or not words + list(weights) or not all(isinstance(w, str) for w in words):
        raise InputError(f"{where}: expected 'words' as a list of text with at least one word; add it")
    if not isinstance(communities, list) or not all(isinstance(one, str) for one in communities):
        raise InputError(f"{where}: expected 'communities' as a list of names")
    if not isinstance(sensitive, bool):
        raise InputError(f"{where}: 'sensitive' must be true or false")
    every = [*words, *weights]
    if len(set(every)) < len(every):
        raise InputError(f"{where}: a word occurs twice; leave each word in once")
    counts = (*(1.0 for _ in words), *(float(weight) for weight in weights.values())) if weights else None
    return Topic(name, domain, tuple(every), sensitive, counts, communities=tuple(communities))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_words(words: Iterable[str], text: TextOptions, where: str) -> None:
    # The words of a pair may be stop words: "kill myself" says what "myself" alone does not.
    in_pairs = replace(text, keep_stopwords=True)
    for word in words:
        parts = word.split(" ")
        if len(parts) == 2 and tokenise(word, in_pairs) == parts:
            continue
        if tokenise(word, text) != [word]:
            raise InputError(
                f"{where}: '{word}' never occurs as one word of a post, or as two with a space between them; write it "
                "in lower case, without hyphens or apostrophes, and use no stop word by itself"
            )
