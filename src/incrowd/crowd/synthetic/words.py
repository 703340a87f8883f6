"""Made-up words, and the vocabularies of communities and topics."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from incrowd.arrays import Ints
from incrowd.crowd.tables import utf8
from incrowd.errors import InputError

# No "e": most short English words that fit the pattern (here, more, some, were) end in it.
SYLLABLES = pl.Series([c + v for c in "bdfgklmnprstvz" for v in "aiou"], dtype=pl.String)
BASE = len(SYLLABLES)
SHORTEST, LONGEST = 2, 5
SCATTER = 1237  # coprime to BASE: neighbours in rank do not look alike

PLACES = pl.Series(["club", "talk", "corner", "forum", "hub", "daily", "circle", "lounge"], dtype=pl.String)


def made_up_words(count: int, start: int = 0) -> pl.Series:
    """Return the made-up words number `start` to `start + count - 1`."""
    parts = [pl.Series([], dtype=pl.String)]
    first = 0
    for syllables in range(SHORTEST, LONGEST + 1):
        size = BASE**syllables
        low, high = max(start - first, 0), min(start + count - first, size)
        if low < high:
            parts.append(_spell(np.arange(low, high, dtype=np.int64) * SCATTER % size, syllables))
        first += size
    return pl.concat(parts).alias("word")


def _spell(numbers: Ints, syllables: int) -> pl.Series:
    """Write each number in `syllables` digits of the syllable alphabet."""
    digits = [SYLLABLES.gather(numbers // BASE**place % BASE).alias(str(place)) for place in range(syllables)]
    return pl.DataFrame(digits).select(pl.concat_str(pl.all())).to_series()


def user_names(count: int, cast: tuple[str, ...] = ()) -> pl.Series:
    """Return the names of users 0, 1, ...: the cast first. User *i* has one name in every kind of table."""
    ordinary = made_up_words(count - len(cast))
    tails = pl.Series(np.arange(len(ordinary)) % 89 + 10).cast(pl.String)
    return pl.concat([pl.Series(cast, dtype=pl.String), ordinary + "_" + tails]).alias("user")


def community_names(count: int, given: tuple[str, ...] = ()) -> pl.Series:
    """Return the names of communities 0, 1, ...: those given first."""
    made_up = made_up_words(count - len(given), start=50)
    places = PLACES.gather(np.arange(len(made_up)) % len(PLACES))
    return pl.concat([pl.Series(given, dtype=pl.String), made_up + places]).alias("community")


def titles(count: int) -> pl.Series:
    """Return the names of items 0, 1, ..."""
    return made_up_words(count, start=BASE).str.to_titlecase().alias("item")


_FUNCTION_WORDS = (
    "the to and a of i in is it that you for was on with but this my have be not are as at so we they if or "
    "just me he from like what all about there do can when your out would she one because by no up an more "
    "who how get had some has then will been them were than only now their know did over which even into "
    "his her him its our us also could any other very after too really much off going where most before why "
    "being while should those these here through still never again though well back down such between both "
    "am does own same few once until during each against further above under yours ours theirs myself itself"
)
FUNCTION_WORDS = tuple(_FUNCTION_WORDS.split())


@dataclass(frozen=True)
class MadeUpTopic:
    """A subject people may have a stake in: its salient words, and the domain it shares with its siblings."""

    domain: str
    words: tuple[str, ...]


Topics = Mapping[str, MadeUpTopic]


def load_topics(path: Path | str) -> dict[str, MadeUpTopic]:
    """Read topics from a TOML file: one table per topic, with `domain` and `words`."""
    tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    for name, table in tables.items():
        if not isinstance(table.get("domain"), str) or not table.get("words"):
            raise InputError(
                f"{path}, topic '{name}': expected 'domain' (text) and 'words' (a list); add them."
            )
    return {name: MadeUpTopic(table["domain"], tuple(table["words"])) for name, table in tables.items()}


def default_topics() -> dict[str, MadeUpTopic]:
    """Return twelve topics in three domains."""
    return load_topics(Path(__file__).with_name("topics.toml"))


@dataclass(frozen=True)
class Vocabulary:
    """All words in one list: function words, then the topics' words, then all others by frequency.

    The others are made up, but for the most frequent if there are `real` ones.
    """

    topics: Topics
    made_up: int
    real: tuple[str, ...] = ()

    @cached_property
    def words(self) -> pl.Series:
        """Every word; its position is its number."""
        first = [*FUNCTION_WORDS, *(word for topic in self.topics.values() for word in topic.words)]
        real = [word for word in dict.fromkeys(self.real) if word not in set(first)][: self.made_up]
        made_up = made_up_words(self.made_up - len(real))
        return pl.concat([pl.Series([*first, *real], dtype=pl.String), made_up]).alias("word")

    @property
    def first_salient(self) -> int:
        """The number of the first topic's first word."""
        return len(FUNCTION_WORDS)

    @cached_property
    def salient_bounds(self) -> Ints:
        """Topic *t* owns the words from bound *t* up to bound *t* + 1."""
        sizes = [len(topic.words) for topic in self.topics.values()]
        return self.first_salient + np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    @property
    def first_made_up(self) -> int:
        """The number of the most frequent made-up word."""
        return int(self.salient_bounds[-1])

    @cached_property
    def siblings(self) -> list[list[int]]:
        """For each topic the topics of its domain, itself first."""
        domains = [topic.domain for topic in self.topics.values()]
        return [
            [own, *(other for other, its in enumerate(domains) if its == domain and other != own)]
            for own, domain in enumerate(domains)
        ]

    @cached_property
    def spelling(self) -> tuple[npt.NDArray[np.uint8], Ints]:
        """The words' bytes one after another, and where each begins (one bound more than words)."""
        return utf8(self.words)
