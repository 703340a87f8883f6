"""Singled out by items: how many others fit what somebody knows of your likes, ratings or purchases."""

from __future__ import annotations

from incrowd.measures.crowd_rates import CrowdOptions, CrowdRates, spread
from incrowd.measures.microdata.spec import ADVERSARIES
from incrowd.measures.protocol import AdvisorOptions, Measure, PreparedCrowd, Ready, ThemeName
from incrowd.result import Standing, Threat


class Microdata(Measure):
    """The exact crowd among everybody's items, under each adversary."""

    name = "microdata"
    about = "your items"
    question = "How many others fit what somebody knows of your likes, ratings or purchases?"
    theme = ThemeName.SINGLED_OUT
    reads = "items"
    adversaries = {one.name: one.words for one in ADVERSARIES.values()}  # noqa: RUF012  # a fact of the class

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Read everybody's items as people are asked about."""
        # Not at the top: whoever checks a draft asks what there is and needs no table of items.
        from incrowd.measures.microdata.ready import ReadyMicrodata

        return ReadyMicrodata(self, crowd, options)

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
