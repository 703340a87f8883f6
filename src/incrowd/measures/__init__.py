"""The measures: each turns a crowd, a person and an adversary into assessments.

A measure is a folder with a class in its ``measure.py`` and one line below; see :mod:`incrowd.measures.protocol`. The
lines name classes instead of importing them, so that starting up stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.errors import InputError

if TYPE_CHECKING:
    from incrowd.measures.protocol import Measure

REGISTERED: dict[str, str | type[Measure]] = {
    "recognition": "incrowd.measures.recognition.measure:Recognition",
    "anonymity": "incrowd.measures.anonymity.measure:Anonymity",
    "exposure": "incrowd.measures.exposure.measure:Exposure",
    "linkability": "incrowd.measures.linkability.measure:Linkability",
    "microdata": "incrowd.measures.microdata.measure:Microdata",
    "belief": "incrowd.measures.belief.measure:Belief",
    "disclosures": "incrowd.measures.disclosures.measure:Disclosures",
}
"""Every measure by name, in the order in which they are asked: the class, as module:Class."""


def register(measure: type[Measure]) -> None:
    """Add a measure of your own; from then on every part of incrowd knows it by its name."""
    if not (isinstance(measure, type) and hasattr(measure, "prepare") and hasattr(measure, "name")):
        got = getattr(measure, "__name__", None) or type(measure).__name__
        raise InputError(f"register: expected a class that extends incrowd.Measure, got {got}")
    REGISTERED[measure.name] = measure
