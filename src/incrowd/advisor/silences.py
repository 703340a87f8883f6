"""Why a measure has nothing to say about a person, and what would help: missing data is never called safe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.advisor.answer import NotAssessed
from incrowd.advisor.combine import THEMES
from incrowd.advisor.spec import SMALLEST_CROWD

if TYPE_CHECKING:
    from incrowd.advisor.spec import AdvisorOptions

READ_POSTS = ("linkability", "anonymity", "exposure")
ADD_PEOPLE = "add other people's {0}: incrowd ingest FILE --crowd DIR --kind {0}"


def no_posts() -> list[NotAssessed]:
    """Return what is silent about somebody without posts."""
    why = "the crowd holds no posts of yours"
    remedy = "import your export and other people's posts: incrowd ingest FILE --crowd DIR"
    return [_silent(measure, why, remedy) for measure in READ_POSTS]


def no_words(community: str) -> list[NotAssessed]:
    """Return what is silent where somebody wrote without a word."""
    why = f"your posts in {community} hold no words to compare"
    return [_silent(measure, why, "give --keep-stopwords to count every word") for measure in READ_POSTS]


def small(community: str, people: int) -> list[NotAssessed]:
    """Return what is silent where a handful of people write."""
    others = "nobody else" if people == 1 else f"{people - 1} others" if people > 2 else "one other"
    why = (
        f"of {community}, this crowd holds you and {others}: fewer than {SMALLEST_CROWD} people are no crowd"
    )
    return [_silent(measure, why, ADD_PEOPLE.format("posts")) for measure in READ_POSTS]


def none_of(measure: str, kind: str) -> NotAssessed:
    """Say that the person has no items, or no attributes."""
    remedy = f"import yours and other people's: incrowd ingest FILE --crowd DIR --kind {kind}"
    return _silent(measure, f"the crowd holds no {kind} of yours", remedy)


def too_few_people(measure: str, kind: str) -> NotAssessed:
    """Say that hardly anybody has items, or attributes."""
    why = f"fewer than {SMALLEST_CROWD} people in this crowd have {kind}"
    return _silent(measure, why, ADD_PEOPLE.format(kind))


def one_profile() -> NotAssessed:
    """Say that there is nothing to link."""
    return _silent(
        "linkability",
        "linking needs two profiles of yours with enough posts, in two communities",
        "import your posts from another community, too",
    )


def too_few_posts(measure: str, community: str, least: int) -> NotAssessed:
    """Say that a profile is too small to be linked; nobody is told to write more for the sake of a number."""
    why = f"you have fewer than {least} posts with words in {community}, too few to go by"
    closer = f"--min-posts {least // 2} looks closer, with less to go by"
    return _silent(measure, why, closer if least > 1 else "nothing to do: there are no words to compare")


def more_communities(there: int, assessed: int) -> list[NotAssessed]:
    """Say that the smaller communities were left out, if there are any."""
    if there <= assessed:
        return []
    why = f"you write in {there} communities; only the {assessed} largest were looked at"
    return [_silent("linkability", why, "raise --communities")]


def other_pairs(pairs: int, source: str, target: str) -> NotAssessed:
    """Say which pair the determined adversary tried; the others were tried by words, so nothing is open."""
    return NotAssessed(
        measure="linkability (determined)",
        why=f"of {pairs} ways to link your profiles only the riskiest, from {source} to {target}, was tried",
        remedy="incrowd linkability DIR --source S --target T --user U --adversary determined",
    )


def not_thorough() -> NotAssessed:
    """Say that the strongest adversary was left out."""
    return _silent(
        "linkability (determined)",
        "the determined adversary takes long and was left out",
        "incrowd assess without --quick",
    )


def not_asked(measure: str) -> NotAssessed:
    """Say that a whole measure was left out on request."""
    remedy = "incrowd assess without --adversary asks all"
    return _silent(measure, "none of its adversaries was asked for", remedy)


def beyond(options: AdvisorOptions) -> list[NotAssessed]:
    """Name what no advisor can see from here."""
    if options.adversaries:
        return []
    return [
        NotAssessed(
            measure="exposure (LDA, W2V)",
            why="somebody who learnt from other texts what people say about a topic may see more than single words",
            remedy="incrowd exposure train, then incrowd exposure rank --model MODEL --user U",
        )
    ]


def _silent(measure: str, why: str, remedy: str) -> NotAssessed:
    theme = THEMES[measure.split(" ")[0]]
    return NotAssessed(measure=measure, why=why, remedy=remedy, theme=theme)
