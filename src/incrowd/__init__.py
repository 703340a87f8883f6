"""incrowd tells people how well they hide in the crowd.

The names below are the front door; everything else may move. All load on first use, so that ``import incrowd``
stays quick. The measures are modules with the same names in each: ``Options``, ``ADVERSARIES``,
``assess(crowd, user, options)`` for one person and ``measure(crowd, options)`` for everybody.
"""

from incrowd.lazy import lazy_names

# Nothing is loaded from `typing` or `__future__`, which takes longer than all of this: until `main` runs, Ctrl-C finds
# nobody to answer it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from incrowd import distances, engine, profiles, study, synthetic, text
    from incrowd.advisor.answer import PersonReport
    from incrowd.advisor.assess import assess, what_if
    from incrowd.advisor.crowd_report import CrowdReport, crowd_report
    from incrowd.advisor.draft import draft
    from incrowd.advisor.draft_answer import DraftCheck
    from incrowd.cards.card import Card
    from incrowd.cards.default import default_card
    from incrowd.cards.make import CardOptions
    from incrowd.crowd import Crowd
    from incrowd.errors import IncrowdError
    from incrowd.measures import (
        anonymity,
        belief,
        disclosures,
        exposure,
        linkability,
        microdata,
        recognition,
        register,
        release,
    )
    from incrowd.measures.card_maker import make_card
    from incrowd.measures.crowd_rates import CrowdOptions, CrowdRates, spread
    from incrowd.measures.person import own_posts
    from incrowd.measures.protocol import (
        AdvisorOptions,
        Changes,
        Effect,
        Finding,
        Findings,
        Level,
        Measure,
        NewPost,
        Person,
        PreparedCrowd,
        Proposal,
        Ready,
        Targets,
        ThemeName,
    )
    from incrowd.result import Advice, Assessment, Assumptions, Direction, Evidence, Standing, Threat
    from incrowd.text.options import TextOptions

__version__ = "0.1.0"

__all__ = [
    "Advice",
    "AdvisorOptions",
    "Assessment",
    "Assumptions",
    "Card",
    "CardOptions",
    "Changes",
    "Crowd",
    "CrowdOptions",
    "CrowdRates",
    "CrowdReport",
    "Direction",
    "DraftCheck",
    "Effect",
    "Evidence",
    "Finding",
    "Findings",
    "IncrowdError",
    "Level",
    "Measure",
    "NewPost",
    "Person",
    "PersonReport",
    "PreparedCrowd",
    "Proposal",
    "Ready",
    "Standing",
    "Targets",
    "TextOptions",
    "ThemeName",
    "Threat",
    "anonymity",
    "assess",
    "belief",
    "crowd_report",
    "default_card",
    "disclosures",
    "distances",
    "draft",
    "engine",
    "exposure",
    "linkability",
    "make_card",
    "microdata",
    "own_posts",
    "profiles",
    "recognition",
    "register",
    "release",
    "spread",
    "study",
    "synthetic",
    "text",
    "what_if",
]

lazy_names(
    __name__,
    {
        ".advisor.answer": "PersonReport",
        ".advisor.assess": "assess what_if",
        ".advisor.crowd_report": "CrowdReport crowd_report",
        ".advisor.draft": "draft",
        ".advisor.draft_answer": "DraftCheck",
        ".cards.card": "Card",
        ".cards.default": "default_card",
        ".cards.make": "CardOptions",
        ".crowd": "Crowd",
        ".distances": "",
        ".engine": "",
        ".errors": "IncrowdError",
        ".measures": "register",
        ".measures.anonymity": "",
        ".measures.belief": "",
        ".measures.card_maker": "make_card",
        ".measures.crowd_rates": "CrowdOptions CrowdRates spread",
        ".measures.disclosures": "",
        ".measures.exposure": "",
        ".measures.linkability": "",
        ".measures.microdata": "",
        ".measures.person": "own_posts",
        ".measures.protocol": (
            "AdvisorOptions Changes Effect Finding Findings Level Measure NewPost Person PreparedCrowd "
            "Proposal Ready Targets ThemeName"
        ),
        ".measures.recognition": "",
        ".measures.release": "",
        ".profiles": "",
        ".result": "Advice Assessment Assumptions Direction Evidence Standing Threat",
        ".study": "",
        ".synthetic": "",
        ".text": "",
        ".text.options": "TextOptions",
    },
)
