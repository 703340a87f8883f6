"""Words of somebody's own posts as a report shows them: quoted, but for those that name another person."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from incrowd.result import Evidence
from incrowd.text.mentions import SOMEBODY


def shown_words(words: Iterable[str], mentioned: Collection[str]) -> list[str]:
    """Return words as they may be shown, in order: whoever is mentioned comes once, and without a name.

    >>> shown_words(["chess", "somename", "other", "bread"], {"somename", "other"})
    ['chess', 'somebody you mention', 'bread']
    """
    return list(dict.fromkeys(SOMEBODY if word in mentioned else word for word in words))


def word_evidence(parts: Iterable[tuple[str, float]], mentioned: Collection[str]) -> tuple[Evidence, ...]:
    """Return words and what each contributes, the strongest first; whoever is mentioned is one part together."""
    words: list[tuple[str, float]] = []
    somebody: list[float] = []
    for word, share in parts:
        if word in mentioned:
            somebody.append(share)
        else:
            words.append((f"the word “{word}”", share))
    if somebody:
        words.append((SOMEBODY, math.fsum(somebody)))
    ordered = sorted(words, key=lambda part: -part[1])
    return tuple(Evidence(what=what, contribution=share) for what, share in ordered)
