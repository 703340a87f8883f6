"""Adversary = prior belief + world knowledge (definition 5), and whatever a person leaves besides attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from incrowd.measures.belief.engine import Belief, joint_probability
from incrowd.measures.belief.rules import WorldKnowledge
from incrowd.measures.belief.space import Evidence, Floats
from incrowd.measures.belief.traces import NO_TRACES, Traces


@dataclass(frozen=True, eq=False)
class Adversary:
    """Somebody who believes something, knows rules, and has read what a person wrote."""

    belief: Belief
    knowledge: WorldKnowledge = field(default_factory=WorldKnowledge)
    traces: Traces = NO_TRACES
    """The person's posts and linked profiles, as far as they are seen."""

    def concluding(self, evidence: Evidence) -> Evidence:
        """Return the evidence with what the rules and the text add to it."""
        visible = self.traces.visible(evidence)
        evidence = self.knowledge.apply(evidence, self.traces.traits(visible))
        for place, likelihood in self.traces.suggest(visible).items():
            evidence = evidence.hinting(place, likelihood)
        return evidence

    def posteriors(self, targets: Sequence[int], evidence: Evidence) -> list[Floats]:
        """Return the a-posteriori belief in each value of each target."""
        return self.belief.posteriors(targets, self.concluding(evidence))

    def joint(self, event: Mapping[int, int], evidence: Evidence) -> Floats:
        """Return the a-posteriori belief that all values of the event hold."""
        return joint_probability(self.belief, event, self.concluding(evidence))

    def focused(self, evidence: Evidence, targets: Sequence[int]) -> tuple[Adversary, Evidence]:
        """Return an adversary who answers the same about this person's targets, and faster."""
        suggested = () if self.traces.written is None else self.traces.written.scores
        belief, small = self.belief.focused(evidence, {*targets, *self.knowledge.places, *suggested})
        return Adversary(belief, self.knowledge, self.traces), replace(small, traces=evidence.traces)
