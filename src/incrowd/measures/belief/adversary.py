"""Adversary = prior belief + world knowledge (definition 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from incrowd.measures.belief.engine import Belief, joint_probability
from incrowd.measures.belief.rules import WorldKnowledge
from incrowd.measures.belief.space import Evidence, Floats


@dataclass(frozen=True, eq=False)
class Adversary:
    """Somebody who believes something, knows rules, and has read what a person wrote."""

    belief: Belief
    knowledge: WorldKnowledge = field(default_factory=WorldKnowledge)
    hints: Mapping[int, Floats] = field(default_factory=dict)
    """What a person's text suggests: attribute place -> likelihood of each value. It cannot be withheld here."""

    def concluding(self, evidence: Evidence) -> Evidence:
        """Return the evidence with what the rules and the text add to it."""
        evidence = self.knowledge.apply(evidence)
        for place, likelihood in self.hints.items():
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
        keep = {*targets, *self.knowledge.places, *self.hints}
        belief, small = self.belief.focused(evidence, keep)
        return Adversary(belief, self.knowledge, self.hints), small
