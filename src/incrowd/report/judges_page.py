"""The form for judges of latent topics: one offline page that saves the answers as a file."""

from __future__ import annotations

from collections.abc import Sequence

from incrowd.report.page import asset, page

TITLE = "Which topics are sensitive?"
BODY = f"""<h1>{TITLE}</h1>
<p class="lead">Each topic is a list of words that often occur together. Would somebody mind if others learnt
that they are concerned with it? Say so, choose the domain it belongs to, and save. Nothing is sent anywhere.</p>
<p><label>Your name or number <input id="judge" autocomplete="off"></label></p>
<div id="questions"></div>
<p><button id="save" type="button">Save answers</button> <output id="done" aria-live="polite"></output></p>"""


def judges_page(topics: Sequence[Sequence[str]], domains: Sequence[str]) -> str:
    """Return the page; `topics` holds the salient words of every topic, in order."""
    data = {"topics": [list(words) for words in topics], "domains": list(domains)}
    return page(TITLE, BODY, data=data, script=asset("judges_page.js"))
