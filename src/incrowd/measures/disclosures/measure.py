"""Told: what you have said about yourself in your posts, and how many people all of it fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from incrowd.errors import InputError
from incrowd.measures.disclosures.assess import disclosed
from incrowd.measures.disclosures.ready import ReadyDisclosures
from incrowd.measures.disclosures.spec import ADVERSARIES, DisclosureOptions
from incrowd.measures.person import own_posts
from incrowd.measures.protocol import (
    AdvisorOptions,
    Finding,
    Measure,
    Person,
    PreparedCrowd,
    Ready,
    Role,
    ThemeName,
    level_of,
)
from incrowd.result import Assessment, say_percent

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.measures.disclosures.assess import Disclosed


class Disclosures(Measure):
    """All posts of one person are read, and what they say about their writer is put together."""

    name = "disclosures"
    about = "what you have told"
    question = "What have you told about yourself, and how many people does it fit?"
    theme = ThemeName.TOLD
    reads = "posts"
    adversaries = dict(ADVERSARIES)  # noqa: RUF012  # a fact of the class

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Read nobody's posts before they are asked about."""
        # Not at the top: what is never asked need not be loaded.

        return ReadyDisclosures(self, crowd, options)

    def crowd_behind(self, assessment: Assessment) -> float | None:
        """Return None: the estimate is about the population, however small the crowd at hand."""
        return None

    def risk(self, assessment: Assessment) -> float:
        """Return how often naming one of the people who fit would be right: all has to be true that was read."""
        certainty = float(assessment.assumptions.parameters.get("certainty", 1.0))
        return certainty * super().risk(assessment)

    def remark(self, finding: Finding) -> str:
        """Say why so few people are a better level than their number alone."""
        if finding.level is level_of(super().risk(finding.assessment)):
            return ""
        sure = say_percent(float(finding.assessment.assumptions.parameters.get("certainty", 1.0)))
        return (
            f" It counts as “{finding.level}” because all of it is right only {sure} of the time: what was read may "
            "have been meant otherwise."
        )

    def role(self, assessment: Assessment) -> Role:
        """Let whoever knows nothing but the posts decide; who also knows everybody's attributes here knows more."""
        return Role.DECIDES if assessment.crowd_size is None else Role.STRONGER

    def is_exact_after_changes(self, assessment: Assessment) -> bool:
        """Say yes: changed posts are read again like any others."""
        return True

    def told_attributes(self, person: Person, values: Mapping[str, Sequence[str]]) -> dict[str, str]:
        """Return what the person's posts tell of some attributes, as one of the values a table has for each."""
        from incrowd.measures.disclosures.normal import told_values

        return told_values(person, values)


# For Python: the same two names in every measure.


def assess(crowd: Crowd, user: str, options: DisclosureOptions | None = None) -> Disclosed:
    """Say what a person (by name) has told about themselves in their posts, and how many people it fits."""
    return disclosed(own_posts(crowd, user).select("number", "time", "text").iter_rows(), options)


def measure(crowd: Crowd, options: DisclosureOptions | None = None) -> NoReturn:
    """Refuse: what people have told is put together for themselves alone, one person at a time."""
    raise InputError("disclosures: nobody but the person is told; assess one person, by name")
