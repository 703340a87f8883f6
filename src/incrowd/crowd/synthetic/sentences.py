"""Somebody who speaks in whole sentences: the person whom the demonstration is about, whose posts people read."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path

import numpy as np

from incrowd.crowd.synthetic.chance import integers, stream, uniform

WORDS_EACH = 14
"""About so many words a sentence has: a longer post has more of them."""
EVERYWHERE = 3
"""In every so manieth post they say something that they say everywhere."""
FILLER = re.compile(r"\{(\w+)\}")
WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


@dataclass(frozen=True)
class Sentences:
    """What a person may say in each community, about their topic, and about themselves."""

    communities: Mapping[str, Sequence[str]]
    everywhere: Sequence[str]
    topics: Mapping[str, Sequence[str]]
    told: Mapping[str, Sequence[str]]
    """By community; each is said once."""
    fillers: Mapping[str, Sequence[str]]

    @classmethod
    def ours(cls) -> Sentences:
        """Read those that come with incrowd."""
        return cls(**tomllib.loads(Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8")))

    def words(self) -> tuple[str, ...]:
        """Return the words of communities, the commonest first: those that others there use, too."""
        said = chain(*self.communities.values(), *self.fillers.values(), self.everywhere)
        counted = Counter(word for one in said for word in WORD.findall(FILLER.sub(" ", one.lower())))
        return tuple(sorted(counted, key=lambda word: (-counted[word], word)))

    def posts(
        self, community: str, topic: str, lengths: Sequence[int], on_topic: Sequence[bool], seed: int
    ) -> list[str]:
        """Return somebody's posts in a community: of about so many words, and some of them on a topic."""
        usual = self._in_turn(self.communities[community], f"{community}: sentences", seed)
        everywhere = self._in_turn(self.everywhere, f"{community}: everywhere", seed)
        concerned = self._in_turn(self.topics[topic], f"{community}: {topic}", seed)
        told = self.told.get(community, ())
        said_at = {(2 * place + 1) * len(lengths) // (2 * len(told)): one for place, one in enumerate(told)}
        found = []
        for place, length in enumerate(lengths):
            about = concerned if on_topic[place] else usual
            said = [next(about) for _ in range(max(1, round(length / WORDS_EACH)))]
            if place % EVERYWHERE == 0:
                said.append(next(everywhere))
            if place in said_at:
                said.append(said_at[place])
            found.append(" ".join(said))
        return found

    def _in_turn(self, sentences: Sequence[str], what: str, seed: int) -> Iterator[str]:
        """Go through sentences round by round, each time in another order and filled in anew."""
        for turn in count():
            key = stream(seed, f"{what}, round {turn}")
            for place in np.argsort(uniform(key, np.arange(len(sentences)))).tolist():
                chosen = iter(range(place, place + 100 * len(sentences), len(sentences)))
                said = FILLER.sub(lambda slot: self._filler(slot[1], next(chosen), key), sentences[place])  # noqa: B023
                yield said[:1].upper() + said[1:]

    def _filler(self, name: str, number: int, key: np.uint64) -> str:
        some = self.fillers[name]
        return some[int(integers(key, np.array([number]), len(some))[0])]
