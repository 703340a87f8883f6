"""Inferable: how sure a stranger can be of each of your attributes, if you hide it and show the others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from incrowd.measures.belief.spec import ADVERSARIES, BeliefOptions
from incrowd.measures.crowd_rates import CrowdOptions, CrowdRates
from incrowd.measures.protocol import (
    LINE,
    SMALLEST_CROWD,
    WATCH_ABOVE,
    AdvisorOptions,
    Finding,
    Level,
    Measure,
    Person,
    PreparedCrowd,
    Ready,
    Targets,
    ThemeName,
)
from incrowd.result import Assessment
from incrowd.wording import say_percent

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.measures.belief.policy import Policy
    from incrowd.measures.belief.ready import EveryoneChecked

STRANGER = "stranger"


class Belief(Measure):
    """Each attribute in turn is the secret; all others that the person shows are the evidence."""

    name = "belief"
    about = "your attributes"
    question = "How sure can a stranger be of what you hide, from what you show?"
    theme = ThemeName.INFERABLE
    reads = "attributes"
    adversaries = {STRANGER: ADVERSARIES[STRANGER]}  # noqa: RUF012  # a fact of the class

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Learn from everybody else as people are asked about."""
        # Not at the top: whoever checks a draft asks what there is and needs none of the mathematics of attributes.
        from incrowd.measures.belief.ready import ReadyBelief

        return ReadyBelief(self, crowd, options)

    def risk(self, assessment: Assessment) -> float:
        """Return the share of the doubt that is gone: what people believe of everybody is not the person's doing.

        It is the probability of being right where the guess that fits everybody would be wrong.
        """
        if not assessment.defined or (assessment.crowd_size or SMALLEST_CROWD) < SMALLEST_CROWD:
            return math.nan
        return max(gain(assessment), 0.0)

    def shortfall(self, assessment: Assessment, targets: Targets) -> float:
        """Return how much more of the doubt is gone than may go."""
        return gain(assessment) - targets.gain - LINE if assessment.defined else math.inf

    def note(self, before: Finding, after: Finding) -> str:
        """Say what could be guessed of anybody, where that alone is above the line for other findings."""
        likely = after.level is Level.WELL_HIDDEN and after.assessment.value > WATCH_ABOVE
        return f"for anybody it would be {say_percent(after.assessment.baseline)}" if likely else ""

    def everybody(self, crowd: PreparedCrowd, options: CrowdOptions) -> CrowdRates:
        """Tell nothing: nobody has said what they hide."""
        why = "the papers' requirements are each person's own to set; check one person's with incrowd belief"
        return CrowdRates(not_measured=(f"{self.name}: {why}",))


def gain(assessment: Assessment) -> float:
    """Return the share of the doubt that is gone: (belief - prior) / (1 - prior)."""
    prior = assessment.baseline
    if prior >= 1 or math.isnan(prior):
        return 0.0
    return (assessment.value - prior) / (1 - prior)


# For Python: the same two names in every measure. The mathematics is imported when it is asked for.


def measure(crowd: Crowd, options: BeliefOptions | None = None, *, policy: Policy) -> EveryoneChecked:
    """Hold everybody's profile against one policy; each person's own row is unknown to a stranger."""
    from incrowd.measures.belief.ready import check_everyone
    from incrowd.profiles.attributes import attribute_table

    return check_everyone(attribute_table(crowd), policy, options)


def assess(
    crowd: Crowd, user: str, options: BeliefOptions | None = None, *, policy: Policy | None = None
) -> list[Assessment]:
    """Say how sure somebody can be of what a person (by name) hides.

    With a policy: of what it protects. Without: of each attribute in turn, if it is hidden and the others are shown.
    """
    person = crowd.user(user)
    if policy is not None:
        from incrowd.measures.belief.assess import check_policy

        return list(check_policy(crowd, person, policy, options=options).assessments())
    seed = (options or BeliefOptions()).seed
    prepared = PreparedCrowd.of(crowd)
    ready = Belief().prepare(prepared, AdvisorOptions(seed=seed))
    return list(ready.assess(Person(person, prepared)).assessments)
