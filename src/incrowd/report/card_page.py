"""A page that anybody can host: drop an export, and the browser measures it with a card. Nothing leaves it.

The people made up from the card are drawn here and travel in the page, so that the browser compares with the same ones
as `incrowd assess` does; the rest (tokens, weights, ranks, probabilities) it works out itself (``card_page.js``).
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from typing import Any

import numpy as np
from jinja2 import Template
from numpy.typing import NDArray

from incrowd.cards.card import Card
from incrowd.cards.default import SERVICE, default_card
from incrowd.cards.laws import FLATTEST, Community
from incrowd.cards.make import COMPARED_POSTS
from incrowd.crowd.own_export import NOBODY, SEVERAL_ACCOUNTS
from incrowd.crowd.readers.base import COMMON_NAMES
from incrowd.crowd.readers.export import OWNER
from incrowd.crowd.readers.mastodon import MastodonOutbox
from incrowd.crowd.readers.reddit import RedditExport
from incrowd.crowd.readers.twitter import TwitterArchive
from incrowd.crowd.readers.whatsapp import LINE
from incrowd.crowd.schema import DELETED_TEXTS
from incrowd.errors import InputError
from incrowd.measures.card_crowd import (
    ENOUGH_WORDS,
    FOREIGN,
    FROM_ELSEWHERE,
    IN_ANOTHER_LANGUAGE,
    LOOKED_AT,
    made_up_of,
)
from incrowd.measures.made_up_rivals import DRAWS, FARTHEST, TOP
from incrowd.measures.protocol import AT_RISK_ABOVE, CARD_OF_THERE, OTHER_CARD, WATCH_ABOVE, AdvisorOptions
from incrowd.measures.recognition.from_card import CARRIED_ON, DOUBT, DRIFT, LEARNT
from incrowd.measures.recognition.spec import DEFAULT_KNOWN, KNOWN, RecognitionOptions
from incrowd.report.page import asset, page
from incrowd.text.options import TextOptions
from incrowd.text.reference import smileys_in_force

TITLE = "How few posts does it take to find you?"


def card_page(card: Card, communities: Sequence[str] = (), title: str = TITLE, seed: int = 0) -> str:
    """Return the page with a card's made-up people inside; without communities, all of the card."""
    names = list(communities) or [card.first_community(), *card.communities[1:]]
    text = _text(card.text)
    parts = [_community(card, name, seed) for name in names]
    data = {
        "communities": parts,
        "text": text,
        "known": list(KNOWN),
        "decides": DEFAULT_KNOWN,
        "draws": DRAWS,
        "top": TOP,
        "farthest": FARTHEST,
        "carried_on": CARRIED_ON,
        "foreign": {
            "looked_at": LOOKED_AT,
            "share": FOREIGN,
            "enough": ENOUGH_WORDS,
            "sentence": IN_ANOTHER_LANGUAGE,
            "remedy": OTHER_CARD,
        },
        "services": [reader.about.title for reader in (RedditExport, TwitterArchive, MastodonOutbox)],
        "elsewhere": {"service": SERVICE, "sentence": FROM_ELSEWHERE, "remedy": CARD_OF_THERE}
        if card.hash == default_card().hash
        else None,
        "columns": {ours: COMMON_NAMES[ours] for ours in ("user", "time", "text", "title")},
        "gone": list(DELETED_TEXTS),
        "chat": LINE.pattern,
        "owner": OWNER,
        "several": SEVERAL_ACCOUNTS,
        "nobody": NOBODY,
        "learnt": {str(n): list(fitted) for n, fitted in LEARNT.items()},
        "doubt": DOUBT,
        "drift": DRIFT,
        "min_posts": RecognitionOptions(community="").min_posts,
        "radius": AdvisorOptions().radius,
        "at_risk": AT_RISK_ABOVE,
        "watch": WATCH_ABOVE,
    }
    said = " or ".join(f"{one['people']:,} people ({one['name']})" for one in parts)
    body = Template(asset("card_page.html"), autoescape=True).render(
        title=title, communities=said, names=names, radius=data["radius"], hash=card.hash
    )
    script = asset("card_page_exports.js") + asset("card_page.js")
    return page(title, body, data=data, script=script, style=asset("card_page.css"))


def _text(options: TextOptions) -> dict[str, Any]:
    if options.letter_marks:
        raise InputError(
            "card page: this card keeps marks that belong to a script's spelling, which pages cannot do yet. "
            "Make the card without letter marks, or measure with `incrowd assess --card`."
        )
    return {
        "tokens": options.tokens,
        "compat_gt": options.compat_gt,
        "stop_words": list(options.stop_word_list),
        "smileys": smileys_in_force(options),
    }


def _community(card: Card, name: str, seed: int) -> dict[str, Any]:
    laws = Community.of(card, name)
    made = made_up_of(card, name, seed)
    counts = made.counts.sorted_indices()
    at = laws.listed_at
    gaps = np.diff(counts.indices, prepend=0)
    filled = np.diff(counts.indptr) > 0
    first = counts.indptr[:-1][filled]
    gaps[first] = counts.indices[first]
    packed = b"".join(_packed(part) for part in (np.diff(counts.indptr), gaps, counts.data - 1, made.rare))
    return {
        "name": name,
        "people": laws.people,
        "rows": len(made),
        "words": list(laws.words),
        "listed": [at.tolist(), laws.listed["mean"].to_list()],
        "users": [float(f"{share:.6g}") for share in laws.users],
        "practised": np.flatnonzero(made.posts >= COMPARED_POSTS).tolist(),
        "correction": list(laws.correction.weights),
        "flattest": FLATTEST,
        "made_up": base64.b64encode(gzip.compress(packed, 9, mtime=0)).decode(),
    }


def _packed(numbers: NDArray[Any]) -> bytes:
    """Return whole numbers from 0 on, seven bits a byte, lowest first; the eighth bit says that more follow.

    >>> list(_packed(np.array([5, 300])))
    [5, 172, 2]
    """
    left = np.asarray(numbers, np.int64)
    size = np.maximum(1, -(-np.frexp(left.astype(np.float64))[1] // 7))
    start = np.cumsum(size) - size
    out = np.zeros(int(size.sum()), np.uint8)
    for place in range(int(size.max(initial=1))):
        more = size > place
        out[start[more] + place] = (left[more] & 127) | np.where(size[more] > place + 1, 128, 0)
        left = left >> 7
    return out.tobytes()
