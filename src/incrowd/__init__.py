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
    from incrowd import distances as distances
    from incrowd import engine as engine
    from incrowd import profiles as profiles
    from incrowd import study as study
    from incrowd import synthetic as synthetic
    from incrowd import text as text
    from incrowd.advisor.answer import PersonReport as PersonReport
    from incrowd.advisor.assess import assess as assess
    from incrowd.advisor.assess import what_if as what_if
    from incrowd.advisor.crowd_report import CrowdReport as CrowdReport
    from incrowd.advisor.crowd_report import crowd_report as crowd_report
    from incrowd.advisor.draft import draft as draft
    from incrowd.advisor.draft_answer import DraftCheck as DraftCheck
    from incrowd.cards.card import Card as Card
    from incrowd.cards.card import default_card as default_card
    from incrowd.cards.make import CardOptions as CardOptions
    from incrowd.crowd import Crowd as Crowd
    from incrowd.errors import IncrowdError as IncrowdError
    from incrowd.measures import anonymity as anonymity
    from incrowd.measures import belief as belief
    from incrowd.measures import disclosures as disclosures
    from incrowd.measures import exposure as exposure
    from incrowd.measures import linkability as linkability
    from incrowd.measures import microdata as microdata
    from incrowd.measures import recognition as recognition
    from incrowd.measures import register as register
    from incrowd.measures import release as release
    from incrowd.measures.card_maker import make_card as make_card
    from incrowd.measures.crowd_rates import CrowdOptions as CrowdOptions
    from incrowd.measures.crowd_rates import CrowdRates as CrowdRates
    from incrowd.measures.crowd_rates import spread as spread
    from incrowd.measures.person import own_posts as own_posts
    from incrowd.measures.protocol import AdvisorOptions as AdvisorOptions
    from incrowd.measures.protocol import Changes as Changes
    from incrowd.measures.protocol import Effect as Effect
    from incrowd.measures.protocol import Finding as Finding
    from incrowd.measures.protocol import Findings as Findings
    from incrowd.measures.protocol import Level as Level
    from incrowd.measures.protocol import Measure as Measure
    from incrowd.measures.protocol import NewPost as NewPost
    from incrowd.measures.protocol import Person as Person
    from incrowd.measures.protocol import PreparedCrowd as PreparedCrowd
    from incrowd.measures.protocol import Proposal as Proposal
    from incrowd.measures.protocol import Ready as Ready
    from incrowd.measures.protocol import Targets as Targets
    from incrowd.measures.protocol import ThemeName as ThemeName
    from incrowd.result import Advice as Advice
    from incrowd.result import Assessment as Assessment
    from incrowd.result import Assumptions as Assumptions
    from incrowd.result import Direction as Direction
    from incrowd.result import Evidence as Evidence
    from incrowd.result import Standing as Standing
    from incrowd.result import Threat as Threat
    from incrowd.text.options import TextOptions as TextOptions

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
        "Advice": "incrowd.result:Advice",
        "AdvisorOptions": "incrowd.measures.protocol:AdvisorOptions",
        "Assessment": "incrowd.result:Assessment",
        "Assumptions": "incrowd.result:Assumptions",
        "Card": "incrowd.cards.card:Card",
        "CardOptions": "incrowd.cards.make:CardOptions",
        "Changes": "incrowd.measures.protocol:Changes",
        "Crowd": "incrowd.crowd:Crowd",
        "CrowdOptions": "incrowd.measures.crowd_rates:CrowdOptions",
        "CrowdRates": "incrowd.measures.crowd_rates:CrowdRates",
        "CrowdReport": "incrowd.advisor.crowd_report:CrowdReport",
        "Direction": "incrowd.result:Direction",
        "DraftCheck": "incrowd.advisor.draft_answer:DraftCheck",
        "Effect": "incrowd.measures.protocol:Effect",
        "Evidence": "incrowd.result:Evidence",
        "Finding": "incrowd.measures.protocol:Finding",
        "Findings": "incrowd.measures.protocol:Findings",
        "IncrowdError": "incrowd.errors:IncrowdError",
        "Level": "incrowd.measures.protocol:Level",
        "Measure": "incrowd.measures.protocol:Measure",
        "NewPost": "incrowd.measures.protocol:NewPost",
        "Person": "incrowd.measures.protocol:Person",
        "PersonReport": "incrowd.advisor.answer:PersonReport",
        "PreparedCrowd": "incrowd.measures.protocol:PreparedCrowd",
        "Proposal": "incrowd.measures.protocol:Proposal",
        "Ready": "incrowd.measures.protocol:Ready",
        "Standing": "incrowd.result:Standing",
        "Targets": "incrowd.measures.protocol:Targets",
        "TextOptions": "incrowd.text.options:TextOptions",
        "ThemeName": "incrowd.measures.protocol:ThemeName",
        "Threat": "incrowd.result:Threat",
        "anonymity": "incrowd.measures.anonymity",
        "assess": "incrowd.advisor.assess:assess",
        "belief": "incrowd.measures.belief",
        "crowd_report": "incrowd.advisor.crowd_report:crowd_report",
        "default_card": "incrowd.cards.card:default_card",
        "disclosures": "incrowd.measures.disclosures",
        "distances": "incrowd.distances",
        "draft": "incrowd.advisor.draft:draft",
        "engine": "incrowd.engine",
        "exposure": "incrowd.measures.exposure",
        "linkability": "incrowd.measures.linkability",
        "make_card": "incrowd.measures.card_maker:make_card",
        "microdata": "incrowd.measures.microdata",
        "own_posts": "incrowd.measures.person:own_posts",
        "profiles": "incrowd.profiles",
        "recognition": "incrowd.measures.recognition",
        "register": "incrowd.measures:register",
        "release": "incrowd.measures.release",
        "spread": "incrowd.measures.crowd_rates:spread",
        "study": "incrowd.study",
        "synthetic": "incrowd.synthetic",
        "text": "incrowd.text",
        "what_if": "incrowd.advisor.assess:what_if",
    },
)
