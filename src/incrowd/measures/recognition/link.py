"""Can two accounts be linked? Among people who are known by a card only.

Somebody has read the posts of the second account and looks for their writer among the people of the card and the first
account. That is being recognised by posts read elsewhere, where "elsewhere" is the second account.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from incrowd.distances.profile_index import word_keys
from incrowd.errors import InputError
from incrowd.measures.card_crowd import CardCrowd
from incrowd.measures.made_up_rivals import MadeUpRivals, counted_posts
from incrowd.measures.person import post_words
from incrowd.measures.recognition.assess import MemberRecognition
from incrowd.measures.recognition.from_card import TRIED, gone_on, probabilities
from incrowd.measures.recognition.spec import KNOWN, RecognitionOptions
from incrowd.result import (
    Assessment,
    Assumptions,
    Direction,
    Evidence,
    Result,
    Standing,
    Threat,
    say_count,
    say_percent,
    to_plain,
)
from incrowd.text.mentions import mentioned_words, word_evidence

MOST_WORDS = 24
LEAST_SHOWN = 0.005
"""Of what both share: what is less would be shown as 0 %."""
OTHER_LANGUAGE = "another_language"
ADVERSARY = (
    "someone who has read both of your accounts and looks for the writer of the second among everybody"
)


@dataclass(frozen=True, eq=False, repr=False)
class AccountLink(Result):
    """How probably somebody who has read two accounts takes them for one person's."""

    found: MemberRecognition
    """By the number of posts of the second account that were read."""
    known: int
    """Posts of the second account that count: all of them, or as many as were tried."""
    posts: tuple[int, int]
    likeness: float
    """The cosine of both accounts' words, weighed by rarity: 0 to 1."""
    evidence: tuple[Evidence, ...]
    """What both share, the strongest first; adds up to the likeness."""
    seed: int
    data_hash: str

    @property
    def probability(self) -> float:
        """How probably the first account is put first; NaN: it cannot be told, and `found.reason` says why."""
        return self.found.probability.get(self.known, math.nan)

    @property
    def interval(self) -> tuple[float, float]:
        """Between which ends the probability lies."""
        return self.found.interval.get(self.known, (math.nan, math.nan))

    @property
    def shown(self) -> tuple[Evidence, ...]:
        """What both share, but for parts that would be shown as nothing."""
        return tuple(part for part in self.evidence if part.contribution >= LEAST_SHOWN * self.likeness)

    @property
    def assessment(self) -> Assessment:
        """Return it as every measure tells its numbers."""
        return Assessment(
            measure="linkability",
            subject="your two accounts",
            value=self.probability,
            unit="probability",
            direction=Direction.LOWER_IS_SAFER,
            meaning=self._meaning,
            standing=Standing.ESTIMATED,
            assumptions=Assumptions(
                adversary=ADVERSARY,
                parameters={
                    "community": self.found.community,
                    "posts": list(self.posts),
                    "posts_known": self.known,
                    "takes": self._takes,
                    "probability": {str(n): p for n, p in self.found.probability.items()},
                    "likeness": self.likeness,
                },
                seed=self.seed,
                data_hash=self.data_hash,
            ),
            interval=None if self.found.reason else self.interval,
            reason=self.found.reason,
            baseline=1 / self.found.members,
            crowd_size=self.found.members,
            threats=(Threat.LINKABILITY,),
            evidence=self.evidence,
            explained=self.likeness if self.evidence else None,
        )

    @property
    def _takes(self) -> int | None:
        return int(self.found.takes) if math.isfinite(self.found.takes) else None

    @property
    def _meaning(self) -> str:
        if self.found.reason:
            return f"Cannot tell: {self.found.reason.partition(': ')[2]}."
        low, high = (say_percent(end) for end in self.interval)
        return (
            f"Somebody who has read {self._read} would pick your first account out of "
            f"{self.found.members:,} people of {self.found.community} {say_percent(self.probability)} of the time "
            f"({low} to {high}). {self._say_takes()}"
        )

    def _say_takes(self) -> str:
        if self.found.takes > self.posts[1]:
            return "To link them half of the time takes more posts than your second account has."
        return (
            f"To link them half of the time takes {say_count(int(self.found.takes), 'post')} of the second."
        )

    @property
    def _read(self) -> str:
        if self.known < self.posts[1]:
            return f"{say_count(self.known, 'post')} of the {self.posts[1]:,} in your second account"
        return f"the {say_count(self.posts[1], 'post')} of your second account"

    def sentence(self) -> str:
        """Say it in plain words."""
        return self._meaning

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        told = self.found.to_dict()
        return {
            "probability": to_plain(self.probability),
            "interval": to_plain(self.interval),
            "people": self.found.members,
            "community": self.found.community,
            "posts": list(self.posts),
            "posts_known": self.known,
            "by_posts": {n: p for n, p in told["probability"].items() if p is not None},
            "takes": self._takes,
            "takes_in_words": told["takes_in_words"],
            "reason": self.found.reason,
            "gives_away": [{"what": part.what, "share": part.contribution} for part in self.evidence],
            "standing": str(Standing.ESTIMATED),
            "adversary": ADVERSARY,
            "sentence": self.sentence(),
            "data_hash": self.data_hash,
        }

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row per number of posts."""
        return [
            {"posts_known": n, "probability": p, "low": ends[0], "high": ends[1]}
            for (n, p), ends in zip(self.found.probability.items(), self.found.interval.values(), strict=True)
        ]

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return what gives both away."""
        return [(part.what, part.contribution) for part in self.shown[:10]]

    @property
    def _title(self) -> str:
        return "Can your two accounts be linked?"


def link_accounts(main: CardCrowd, other: CardCrowd) -> AccountLink:
    """Say how probably two accounts of one person, both among people of the same card, are linked."""
    main.card.first_community()  # a card of items alone tells nothing here
    first, second = (one.posts["text"] for one in (main, other))
    for which, texts in (("first", first), ("second", second)):
        if len(texts) < RecognitionOptions(community="").min_posts:
            raise InputError(
                f"link: the {which} account has {say_count(len(texts), 'post')}: too few to compare."
            )
    if first.sort().equals(second.sort()):
        raise InputError(
            "link: both exports hold the same posts: they are the same account, so there is nothing to link. "
            "Give the export of another account second."
        )
    community = _community(main)
    people = main.members(community)
    if reason := _foreign(main, community, first, second):
        nothing = MemberRecognition(community, people + 1, len(second), {}, {}, reason)
        return AccountLink(nothing, 0, (len(first), len(second)), math.nan, (), main.seed, main.data_hash)
    made, users = main.made_up(community)
    rivals = MadeUpRivals.of(made.counts, made.rare, users, people)
    said = [post_words(texts, main.text) for texts in (first, second)]
    keys = [word_keys(one.vocabulary) for one in said]
    others = np.union1d(*keys)
    known, asked = (
        counted_posts(one.matrix, own, made.keys, others, one.matrix.shape[0])
        for one, own in zip(said, keys, strict=True)
    )
    everything, read = np.arange(len(first)), np.arange(len(second))
    ranks = gone_on([rivals.log_rank(known, everything, asked, read, n) for n in KNOWN])
    able = [n for n in KNOWN if n <= len(second)]
    told = probabilities(ranks, known.counts.sum(), TRIED)
    found = MemberRecognition(community, people + 1, len(second), *told)
    mine, theirs = (sp.csr_matrix(one.counts.sum(axis=0)) for one in (known, asked))
    shared = rivals.shared(mine, theirs, known.listed)
    columns = np.concatenate([made.keys, others])
    mentioned = mentioned_words([*first, *second], main.text)
    name_of = dict(zip(keys[0].tolist(), said[0].vocabulary, strict=True))
    return AccountLink(
        found,
        max(able),
        (len(first), len(second)),
        float(shared.sum()),
        _evidence(shared, [name_of[key] for key in columns[shared.indices].tolist()], mentioned),
        main.seed,
        main.data_hash,
    )


def _foreign(crowd: CardCrowd, community: str, *accounts: pl.Series) -> str:
    """Say that an account is in a language that the card does not hold; empty: none is.

    Whatever two accounts share in such a language nobody made up writes, so any two would be taken for one person's.
    """
    shares = [crowd.foreign(texts, community) for texts in accounts]
    said = [
        (which, share) for which, share in zip(("first", "second"), shares, strict=True) if share == share
    ]
    if not said:
        return ""
    if len(said) > 1:
        which, listed = "both accounts are", f"{say_percent(said[0][1])} and {say_percent(said[1][1])}"
    else:
        which, listed = f"your {said[0][0]} account is", say_percent(said[0][1])
    return (
        f"{OTHER_LANGUAGE}: {which} in a language that the card does not hold (it lists {listed} of the words). "
        "Take a card of people who write in your language (--card)"
    )


def _community(crowd: CardCrowd) -> str:
    """Return the community of the card in which the accounts are looked for: where the first has the most posts."""
    counted = crowd.posts["community"].value_counts(sort=True)
    there = [name for name in counted["community"] if name in crowd.card.communities]
    return str(there[0])


def _evidence(
    shared: sp.csr_matrix, words: Sequence[str], mentioned: Collection[str]
) -> tuple[Evidence, ...]:
    order = np.argsort(-shared.data, kind="stable").tolist()
    parts = word_evidence(((words[at], float(shared.data[at])) for at in order), mentioned)
    rest = parts[MOST_WORDS:]
    if not rest:
        return parts
    more = math.fsum(part.contribution for part in rest)
    return (*parts[:MOST_WORDS], Evidence(what=f"{len(rest):,} more words", contribution=more))
