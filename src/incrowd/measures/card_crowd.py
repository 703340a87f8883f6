"""A crowd without a crowd: made-up people drawn from a card, and the owner of an export among them.

Measures are prepared on it as on any crowd. What they find by the words of a community they find among made-up people,
drawn several times; what takes real people is refused with :class:`incrowd.errors.OnlyACard`, and the advisor says so.
Nothing is written to disk.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.arrays import Floats
from incrowd.cards.card import Card
from incrowd.cards.default import SERVICE, default_card
from incrowd.cards.laws import Community
from incrowd.cards.made_up import MadeUp, made_up_people
from incrowd.cards.make import COMPARED_POSTS, interval
from incrowd.crowd.array_cache import Arrays, DiskArray, identities
from incrowd.distances.profile_index import CommunityIndex, Squares, word_keys
from incrowd.errors import InputError, OnlyACard
from incrowd.measures.person import post_words
from incrowd.measures.prepared import YOU, Made, Population, PreparedCrowd
from incrowd.result import Assessment, Standing

if TYPE_CHECKING:
    from incrowd.crowd.own_export import OwnExport
    from incrowd.crowd.schema import Kind
    from incrowd.crowd.sources import Paths


ROWS = 4_000
"""About so many people are made up for a community, in whole draws: more makes chance smaller, and takes longer."""
MOST_DRAWS = 10
MISCOUNTED, LEAST_MISCOUNTED = 0.1, 20.0
"""By so much, as a share and in people, there may be more people than a card tells: two standard deviations of the
noise on their number, and its rounding."""
OFF = 200.0
"""For a card that has not measured how far off it is, as a private one: among real people a number may be so many times
smaller or larger. Nine in ten lie between, in the worst community that it was chosen by (docs/explanation/cards.md)."""
LOOKED_AT = 200
"""Posts that tell whether a card is of people who write in the owner's language."""
FOREIGN = 1 / 2
"""They do not if so small a part of the usual share of listed words is listed, of at least `ENOUGH_WORDS`: short words
of one language are words of another. Chosen on reddit_users; of 1,973 bloggers and members of college forums who write
English, nobody has less."""
ENOUGH_WORDS = 30
FROM_ELSEWHERE = (
    "your posts are from elsewhere ({titles}), and these are people of {community}: people write differently there, so "
    "the numbers are a first guess"
)
IN_ANOTHER_LANGUAGE = (
    "only {share} of your words are ones that people of {community} use here, as if they wrote in another language: "
    "among people of yours, you are harder to find than among these"
)


class CardCrowd(PreparedCrowd):
    """The communities of a card, and one person who really exists: the owner of an export."""

    is_made_up = True

    def __init__(self, card: Card, export: OwnExport, memory: int = 2**30, seed: int = 0) -> None:
        digest = blake2b(f"{card.hash} {export.data_hash}".encode(), digest_size=16).hexdigest()
        super().__init__(Path(), digest, card.text, memory)
        self.card, self.export, self.seed = card, export, seed
        self._made: dict[tuple[str, str], tuple[Arrays, dict[str, Any]]] = {}
        self._drawn: dict[str, tuple[MadeUp, Floats]] = {}
        self._doubts: dict[str, str] = {}

    # The person

    @cached_property
    def posts(self) -> pl.DataFrame:
        """The owner's posts, each in the community of the card in which it counts."""
        posts = self.export.posts.with_columns(written_in="community")
        if not self.card.communities or posts.is_empty():
            posts = posts.clear()  # a card of items says nothing about posts
        elif not posts["community"].is_in(list(self.card.communities)).any():
            if len(self.card.communities) > 1:
                raise InputError(
                    "none of your posts is in a community of this card, which has: "
                    f"{', '.join(self.card.communities[:8])}. Take a card of where you write, or the one inside."
                )
            # A card of everybody, or a person who wants to know how they would stand there.
            posts = posts.with_columns(community=pl.lit(self.card.communities[0]))
        ordered = posts.drop("number").sort("community", "time", "text", nulls_last=True, maintain_order=True)
        return ordered.with_row_index("number").with_columns(pl.col("number").cast(pl.Int64))

    def own_posts(self, user: str) -> pl.DataFrame:
        """Return the owner's posts."""
        return self.posts.drop("link", "written_in")

    def own_links(self, user: str) -> Mapping[int, str]:
        """Return where the owner's posts are, by number, as far as the export says."""
        return {number: link for number, link in self.posts.select("number", "link").iter_rows() if link}

    def own_places(self, user: str) -> Mapping[int, str]:
        """Return where the owner wrote, by number, as the export says: the card may be of people elsewhere."""
        return dict(self.posts.select("number", "written_in").iter_rows())

    @property
    def places(self) -> Mapping[str, str]:
        """Where the owner writes, and the community of the card among whose people that counts; empty: not in it."""
        there = self.posts.select("written_in", "community").drop_nulls().unique().sort("written_in")
        return {place: name if name in self.card.communities else "" for place, name in there.iter_rows()}

    def own_items(self, user: str) -> frozenset[str]:
        """Return the owner's items."""
        return self.export.items

    def own_attributes(self, user: str) -> Mapping[str, str]:
        """Return the owner's attributes."""
        return self.export.attributes

    def nothing_of_yours(self, kind: Kind) -> tuple[str, str]:
        """Say that your files hold nothing of a kind, or the card nothing about it."""
        if kind == "posts" and self.export.posts.height:
            return (
                "this card tells nothing about what people write",
                "take a card of where you write (--card)",
            )
        if kind == "attributes":
            return f"your files hold no {kind}", super().nothing_of_yours(kind)[1]
        return f"your files hold no {kind}", f"give the files with your {kind}, too: incrowd assess FILE FILE"

    @property
    def unread(self) -> str:
        """How many rows of the owner's files could not be read, and why."""
        return self.export.unread

    def user_id(self, name: str) -> str:
        """Return the owner's id: there is nobody else."""
        return YOU

    @property
    def population(self) -> Population:
        """The owner, in the communities of the card."""
        if self._population is None:
            counted = dict(self.posts.group_by("community").len().iter_rows())
            there = [name for name in self.card.communities if name in counted]
            places = [self.card.communities.index(name) for name in there]
            names, order = identities([YOU] * len(there))
            self._population = Population(
                names,
                np.array(places, np.int32)[order],
                np.array([counted[name] for name in there], np.int64)[order],
                self.card.communities,
            )
        return self._population

    # Everybody else

    def crowd(self) -> NoReturn:
        """Refuse: real people are what a card does not hold."""
        raise OnlyACard("this takes everybody's data, and a card holds none of it")

    def arrays(
        self, kind: str, question: Mapping[str, Any], make: Callable[[], Made]
    ) -> tuple[Arrays, dict[str, Any]]:
        """Return arrays (and facts), kept in memory only."""
        key = kind, json.dumps(question, sort_keys=True, default=str)
        if key not in self._made:
            made, facts = make()
            held = {name: part[:] if isinstance(part, DiskArray) else part for name, part in made.items()}
            self._made[key] = held, facts
        return self._made[key]

    def count_together(self, communities: Iterable[str]) -> None:
        """Do nothing: made-up people are drawn, not counted."""

    @property
    def people(self) -> int:
        """How many people the card is of; somebody in several communities may count more than once."""
        of_lists = [
            self.card.section_facts(name).get("people", 0) for name in self.card.head.get("measures", {})
        ]
        return max(sum(map(self.members, self.card.communities)), *map(int, of_lists), 0)

    def members(self, community: str) -> int:
        """Return how many people of a community the card is of, the owner not counted."""
        return int(self.card.facts(community)["people"])

    def section(self, measure: str, community: str | None = None) -> Mapping[str, pl.DataFrame]:
        """Return what the card tells by a measure."""
        return self.card.section(measure, community)

    def section_facts(self, measure: str) -> Mapping[str, Any]:
        """Return what the card's head says about a measure."""
        return self.card.section_facts(measure)

    def made_up(self, community: str) -> tuple[MadeUp, Floats]:
        """Return made-up people of a community, and the share of people who use each word of the card."""
        if community not in self._drawn:
            users = Community.of(self.card, community).users
            self._drawn[community] = made_up_of(self.card, community, self.seed), users
        return self._drawn[community]

    def foreign(self, texts: pl.Series, community: str) -> float:
        """Return the listed share of words of texts in another language than a community's; NaN: in its own."""
        laws = Community.of(self.card, community)
        own = post_words(texts.gather_every(max(1, len(texts) // LOOKED_AT)), self.text)
        counts = np.asarray(own.matrix.sum(axis=0)).ravel()
        written = int(counts.sum())
        listed = int(counts[np.isin(word_keys(own.vocabulary), word_keys(laws.words))].sum())
        if written < ENOUGH_WORDS or listed >= FOREIGN * float(laws.listed_share(written)) * written:
            return math.nan
        return listed / written

    def doubt(self, community: str) -> str:
        """Say so if the card seems to be of people who write in another language: then nobody is like the owner."""
        if community not in self._doubts:
            listed = self.foreign(self.posts.filter(pl.col("community") == community)["text"], community)
            said = IN_ANOTHER_LANGUAGE.format(share=f"{listed:.0%}", community=community)
            self._doubts[community] = "" if math.isnan(listed) else said
        return self._doubts[community]

    def elsewhere(self, community: str) -> str:
        """Say so if the owner's files are another service's than that whose people the card inside is of."""
        titles = self._other_services
        return FROM_ELSEWHERE.format(titles=", ".join(titles), community=community) if titles else ""

    def where(self, community: str) -> str:
        """Name a community where the owner writes: posts that only count there are not in it."""
        return "" if self._other_services else community

    @cached_property
    def _other_services(self) -> Sequence[str]:
        """The services that the owner's files are from, if none of them is that of the card inside."""
        others = [title for title in self.export.titles if not title.startswith(SERVICE)]
        ours = self.card.hash == default_card().hash and len(others) == len(self.export.titles)
        return others if ours else ()

    def whom(self, community: str) -> str:
        """Say whom an assessment is about: the owner, who need not write where the card's people do."""
        return f"you, among people of {community}"

    def words(self, community: str) -> CommunityIndex:
        """Return the words of made-up people, and in the last row the owner's."""
        if community not in self._words:
            self._words[community] = self._index(community)
        return self._words[community]

    def _index(self, community: str) -> CommunityIndex:
        made, _ = self.made_up(community)
        own = post_words(self.posts.filter(pl.col("community") == community)["text"], self.text)
        counts = np.asarray(own.matrix.sum(axis=0)).ravel().astype(np.int64)
        if not counts.sum():
            return made.index()
        keys, place = np.unique(np.concatenate([made.keys, word_keys(own.vocabulary)]), return_inverse=True)
        listed = place[: len(made.keys)]
        rows = sp.csr_matrix(made.counts).tocoo()
        mine = place[len(made.keys) :]
        # Words that a card does not list match nobody: one word of their own stands for all of a person's.
        rare = np.flatnonzero(made.rare)
        alone = word_keys(f"rare words of made-up person {row}" for row in rare.tolist())
        people = len(made)
        matrix = sp.coo_matrix(
            (
                np.concatenate([rows.data, made.rare[rare], counts]).astype(np.int64),
                (
                    np.concatenate([rows.row, rare, np.full(len(mine), people)]),
                    np.concatenate([listed[rows.col], len(keys) + np.arange(len(rare)), mine]),
                ),
            ),
            shape=(people + 1, len(keys) + len(rare)),
        ).tocsr()
        names, order = identities([YOU])
        return CommunityIndex.of_matrix(
            matrix,
            np.concatenate([keys, alone]),
            names=names,
            rows=order + people,
            posts=np.append(made.posts, len(own.matrix.indptr) - 1),
        )

    def within(self, community: str, squares: Squares, limit: float) -> NDArray[np.bool_]:
        """Mark the made-up people who stand for real ones within a distance of a profile."""
        made, _ = self.made_up(community)
        correction, profile = Community.of(self.card, community).correction, squares.profile
        if limit != limit or profile.empty:
            return squares.within(limit)
        # As it was fitted: to people who have so many posts.
        apart = np.sqrt(np.maximum(squares.squares[: len(made)][made.posts >= COMPARED_POSTS], 0.0))
        if not len(apart):
            return squares.within(limit)
        listed = float(profile.counts_at(made.keys).sum()) / profile.total
        made_up = correction.made_up_limit(limit, apart.mean(), apart.std(), len(profile.keys), listed)
        rows = np.arange(len(squares.index))
        return squares.within_each(rows, np.where(rows < len(made), float(made_up), limit))

    def count(self, community: str, rows: NDArray[np.bool_]) -> int:
        """Return how many people some rows stand for: a draw's share of them, on average over the draws."""
        made, _ = self.made_up(community)
        return round(float(rows.sum()) * self.members(community) / len(made))

    def told(self, assessment: Assessment, community: str) -> Assessment:
        """Say that a number of people was counted among made-up ones, and how far off it may be."""
        told = self.members(community)
        most = 1 + told + max(MISCOUNTED * told, LEAST_MISCOUNTED)
        reach = (self.card.facts(community).get("accuracy") or {}).get("reach")
        if reach is None:
            low, high = assessment.value / OFF, assessment.value * OFF
        else:
            low, high = (1 + float(end) for end in interval(assessment.value - 1, float(reach)))
        ends = max(1.0, low), min(high, most)
        return replace(assessment, subject=self.whom(community), standing=Standing.ESTIMATED, interval=ends)


def made_up_of(card: Card, community: str, seed: int) -> MadeUp:
    """Make up the people that one is compared with in a community of a card."""
    laws = Community.of(card, community)
    draws = int(np.clip(ROWS // max(laws.people, 1), 1, MOST_DRAWS))
    return made_up_people(laws, people=draws * min(laws.people, ROWS), seed=seed)


def crowd_of_export(
    files: Paths,
    user: str | None = None,
    card: Card | str | Path | None = None,
    *,
    memory: int = 2**30,
    seed: int = 0,
) -> CardCrowd:
    """Put the owner of an export among people made up from a card; None: the card that comes with incrowd."""
    # Not at the top: whoever looks at a crowd a second time need not wait for what reads files.
    from incrowd.crowd.own_export import read_export

    chosen = card if isinstance(card, Card) else default_card() if card is None else Card.read(card)
    return CardCrowd(chosen, read_export(files, user), memory, seed)
