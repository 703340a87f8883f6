"""The client as one offline page, for a provider to host or a person to open from disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinja2 import Template

from incrowd.measures.microdata.client import MOST_SPLIT, WORDS
from incrowd.report.label import COLOURS, ink_on
from incrowd.report.page import asset, page

if TYPE_CHECKING:
    from incrowd.measures.microdata.statistics import Statistics


def microdata_page(statistics: Statistics, title: str = "How well would you hide in this crowd?") -> str:
    """Return the page with the statistics inside. Its policy lets it send nothing anywhere."""
    data = {
        "statistics": statistics.to_dict(),
        "adversary": statistics.knowledge.words,
        "label": {
            "words": {str(count): list(words) for count, words in WORDS.items()},
            "colours": [{"fill": colour, "ink": ink_on(colour)} for colour in COLOURS],
            "most_split": MOST_SPLIT,
        },
    }
    body = Template(asset("microdata_page.html"), autoescape=True).render(statistics=statistics, title=title)
    return page(title, body, data=data, script=asset("microdata_page.js"), style=asset("microdata_page.css"))
