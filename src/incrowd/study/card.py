"""How well a card stands in for the community it was made of: people who are not in it, measured both ways.

Whoever wrote in both communities is judged, and left out of the card of the target. For each of them: how many people
of the target are at least as near to their profile in the source as their own profile in the target is, that one
included? Exactly, among the real people of the card; and among people made up from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd import __version__
from incrowd.arrays import Floats
from incrowd.cards.laws import Community
from incrowd.cards.make import (
    COUNTED,
    UNKNOWN_REACH,
    Accuracy,
    CardOptions,
    ProfileDistances,
    describe,
    interval,
    made_up_near,
    people_elsewhere,
)
from incrowd.cards.members import read_members
from incrowd.distances import pair_distances, pairwise
from incrowd.distances.profile_index import word_keys
from incrowd.errors import InputError
from incrowd.measures.linkability.by_distance import read_both
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.profiles import unigram
from incrowd.statistics import spearman
from incrowd.study.figures import Section, Study, Table
from incrowd.text.options import TextOptions

if TYPE_CHECKING:
    from incrowd.cards.make import Progress
    from incrowd.crowd import Crowd

LINE = 10
"""Fewer people than this are few."""


@dataclass(frozen=True, kw_only=True)
class CardStudyOptions:
    """Which communities, and how the card of the second is made."""

    source: str
    target: str
    min_posts: int = 10
    crowds: int = 10
    """Made-up crowds; all numbers are means over them."""
    k: int = 10
    epsilon: float | None = None
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0
    memory: int = 2**30


@dataclass(frozen=True, eq=False)
class CardRates:
    """Exact numbers of people beside those of a card."""

    community: Community
    accuracy: Accuracy | None
    exact: NDArray[np.int64]
    """Of each judged person: the people they hide among, themselves included."""
    made_up: Floats
    """The same in each made-up crowd (rows)."""
    low: Floats
    high: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return what `incrowd study card --json` prints."""
        exact, made = self.exact, self.made_up
        return {
            "pairs": len(exact),
            "people": self.community.people,
            "words": len(self.community.words),
            "spearman": float(np.mean([spearman(exact, one) for one in made])),
            "same_side": float(np.mean((exact >= LINE) == (made >= LINE))),
            "median_exact": float(np.median(exact)),
            "median_card": float(np.mean(np.median(made, axis=1))),
            "covered": float(np.mean((self.low <= exact) & (exact <= self.high))),
            "width": float(np.mean(np.median((self.high + 1) / (self.low + 1), axis=1))),
            "crowds": len(made),
            "concentration": self.community.concentration,
        }


def card_rates(crowd: Crowd, options: CardStudyOptions, progress: Progress | None = None) -> CardRates:
    """Measure everybody who is in both communities exactly and from a card that they are not in."""
    both = read_both(
        crowd,
        LinkabilityOptions(
            source=options.source,
            target=options.target,
            min_posts=options.min_posts,
            text=options.text,
            memory=options.memory,
        ),
    )
    if len(both.pairs) < 2:
        raise InputError(
            f"{len(both.pairs)} people have {options.min_posts} posts in both '{options.source}' and "
            f"'{options.target}': at least 2 are needed; a lower --min-posts finds more"
        )
    shares = unigram(both.counts).matrix
    source, target = shares[both.sources][both.pairs[:, 0]], shares[both.targets]
    own = pair_distances(source, target[both.pairs[:, 1]], np.column_stack([np.arange(len(both.pairs))] * 2))
    strangers = np.setdiff1d(np.arange(len(both.targets)), both.pairs[:, 1])
    exact = 1 + (np.asarray(pairwise(source, target[strangers])) <= own[:, None]).sum(axis=1)
    made = CardOptions(
        communities=(options.target,),
        k=options.k,
        epsilon=options.epsilon,
        text=options.text,
        leave_out=frozenset(both.people.tolist()),
        seed=options.seed,
        memory=options.memory,
    )
    members = read_members(crowd, [options.target], options.text, memory=options.memory, progress=progress)
    elsewhere = people_elsewhere(crowd, options.target, made)
    community, accuracy, _ = describe(members, made, options.target, progress, elsewhere)
    found, keys = [], word_keys(both.counts.vocabulary)
    for number in range(options.crowds):
        if progress:
            progress(number, options.crowds, "making up crowds")
        asked = ProfileDistances.of(
            source,
            keys,
            community,
            options.seed + number,
            options.min_posts,
            at_least=COUNTED,
        )
        found.append(1 + made_up_near(community, asked, np.asarray(own), options.min_posts))
    made_up = np.stack(found)
    low, high = interval(made_up - 1, UNKNOWN_REACH if accuracy is None else accuracy.reach)
    return CardRates(community, accuracy, exact, made_up, low + 1, high + 1)


def card_study(crowd: Crowd, rates: CardRates, options: CardStudyOptions) -> Study:
    """Put the numbers into a page."""
    found = rates.to_dict()
    rows = tuple((says, found[name]) for name, says in SAID.items())
    table = Table(title="Measured exactly, and from a card", columns=("", ""), rows=rows)
    return Study(
        name="card",
        title="A card in place of a crowd",
        summary=(
            f"{found['pairs']:,} people in both {options.source} and {options.target}, none of them in the card: "
            f"Spearman {found['spearman']:.3f}, same side of {LINE} people {found['same_side']:.1%}, median "
            f"{found['median_exact']:g} exactly and {found['median_card']:g} from the card, {found['covered']:.1%} "
            f"within the interval, which spans a factor of {found['width']:.1f}."
        ),
        sections=(Section(heading="How well it stands in", text="", parts=(table,)),),
        facts={
            "adversary": "someone who has read both communities and compares which words people use",
            "parameters": {
                "source": options.source,
                "target": options.target,
                "min_posts": options.min_posts,
                "crowds": options.crowds,
                "k": options.k,
                "epsilon": options.epsilon,
                "seed": options.seed,
            },
            "data_hash": crowd.data_hash,
            "version": __version__,
        },
    )


SAID = {
    "pairs": "people judged",
    "people": "people in the community, by the card",
    "words": "words in the card",
    "spearman": "Spearman of exact and made-up numbers",
    "same_side": f"share on the same side of {LINE} people",
    "median_exact": "median, exact",
    "median_card": "median, from the card",
    "covered": "share of exact numbers within the interval",
    "width": "median width of the interval, as a factor",
}
