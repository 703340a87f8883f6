"""Singled out by items: how many others fit what somebody knows of your likes, ratings or purchases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from incrowd.measures.crowd_rates import CrowdOptions, CrowdRates, spread
from incrowd.measures.microdata.spec import ADVERSARIES, DECIDES, FEW_ITEMS, Knowledge
from incrowd.measures.protocol import (
    AdvisorOptions,
    CardSection,
    Measure,
    PreparedCrowd,
    Ready,
    Role,
    ThemeName,
)
from incrowd.result import Assessment, Standing, Threat

if TYPE_CHECKING:
    from incrowd.cards.make import CardOptions
    from incrowd.cards.noise import Noise
    from incrowd.crowd import Crowd
    from incrowd.measures.microdata.evaluation import Evaluation


class Microdata(Measure):
    """The exact crowd among everybody's items, under each adversary."""

    name = "microdata"
    about = "your items"
    question = "How many others fit what somebody knows of your likes, ratings or purchases?"
    theme = ThemeName.SINGLED_OUT
    reads = "items"
    adversaries = {  # noqa: RUF012  # a fact of the class
        **{one.name: one.words for one in FEW_ITEMS.values()},
        **{one.name: one.words for one in ADVERSARIES.values()},
    }

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Read everybody's items as people are asked about."""
        # Not at the top: whoever checks a draft asks what there is and needs no table of items.
        from incrowd.measures.microdata.ready import ReadyMicrodata

        return ReadyMicrodata(self, crowd, options)

    def role(self, assessment: Assessment) -> Role:
        """Let somebody who knows three items decide; the sizes of sets are the paper's."""
        name = assessment.assumptions.parameters.get("name")
        if name not in FEW_ITEMS:
            return Role.PAPER
        return Role.DECIDES if name == DECIDES else Role.STRONGER

    def is_exact_after_changes(self, assessment: Assessment) -> bool:
        """Say no of a few known items: what was learnt elsewhere stays known when items are taken back."""
        known_elsewhere = assessment.assumptions.parameters.get("name") in FEW_ITEMS
        return assessment.exact and not known_elsewhere

    def card(
        self, crowd: PreparedCrowd, community: str | None, options: CardOptions, noise: Noise
    ) -> CardSection:
        """Tell how many people have which items, and how many items people have."""
        from incrowd.measures.microdata.card_section import item_section
        from incrowd.measures.microdata.table import item_table

        made = item_section(item_table(crowd.crowd()).without(options.leave_out), options, noise)
        return CardSection(tables=made.law.tables(), facts=made.facts)

    def everybody(self, crowd: PreparedCrowd, options: CrowdOptions) -> CrowdRates:
        """Count who fits on average what somebody knows of everybody's items."""
        from incrowd.measures.microdata.ready import crowds_among_items

        sizes, why = crowds_among_items(crowd, options.memory)
        if sizes is None:
            return CrowdRates(not_measured=(f"{self.name}: {why}",))
        everybody = spread(
            sizes,
            options.smallest,
            name="crowds among items",
            threat=Threat.SINGLING_OUT,
            meaning="people, oneself included, who on average fit what the adversary knows of one's items",
            adversary=ADVERSARIES["paper"].words,
            standing=Standing.PROVED,
            who="people with items",
        )
        return CrowdRates(spreads=(everybody,))


@dataclass(frozen=True, kw_only=True)
class MicrodataOptions:
    """Who looks, and how much they know."""

    adversaries: tuple[str, ...] = ()
    """For one person: only these, by name; empty: all for whom the crowd holds what they need."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """For everybody: how much of a list the adversary knows."""
    memory: int = 2**30


# For Python: the same two names in every measure. What compares everybody is imported when it is asked for.


def measure(crowd: Crowd, options: MicrodataOptions | None = None) -> Evaluation:
    """Compute everybody's exact crowd, and compare every score with it."""
    from incrowd.measures.microdata.evaluation import evaluate
    from incrowd.measures.microdata.table import item_table

    options = options or MicrodataOptions()
    return evaluate(item_table(crowd), knowledge=options.knowledge, memory=options.memory)


def assess(crowd: Crowd, user: str, options: MicrodataOptions | None = None) -> tuple[Assessment, ...]:
    """Assess one person (by name): their crowd under each adversary, their score, how often they would be found."""
    from incrowd.measures.microdata.assess import assess_person

    options = options or MicrodataOptions()
    return assess_person(crowd, user, adversaries=options.adversaries or None, memory=options.memory)
