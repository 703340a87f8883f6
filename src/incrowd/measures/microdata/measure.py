"""Singled out by items: how many others fit what somebody knows of your likes, ratings or purchases."""

from __future__ import annotations

from incrowd.measures.microdata.spec import ADVERSARIES
from incrowd.measures.protocol import AdvisorOptions, Measure, PreparedCrowd, Ready, ThemeName


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
