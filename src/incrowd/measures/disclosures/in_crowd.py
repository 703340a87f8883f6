"""What was told beside a table of attributes: who in a crowd fits it, and which values of the table it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from incrowd.crowd import Crowd
from incrowd.measures.disclosures.assess import disclosed
from incrowd.measures.disclosures.facts import Told
from incrowd.measures.disclosures.normal import agrees, attribute_name
from incrowd.measures.person import Person
from incrowd.profiles.attributes import HIDDEN, AttributeTable, attribute_table


def count_in_crowd(crowd: Crowd, told: Sequence[Told]) -> tuple[int, int] | None:
    """Return how many people fit, and of how many something is known; None: the crowd cannot tell."""
    if not crowd.attributes().head(1).collect().height:
        return None
    fitting = rows_that_fit(attribute_table(crowd), told)
    return None if fitting is None else (int(fitting.sum()), len(fitting))


def rows_that_fit(table: AttributeTable, told: Sequence[Told]) -> np.ndarray | None:
    """Mark the people who may have all that was told; None: the table has none of these attributes.

    Somebody who gave no value may have any.
    """
    fits = np.ones(len(table.codes), dtype=bool)
    compared = False
    for place, name in enumerate(table.space.attributes):
        wanted = [fact for fact in told if fact.attribute == attribute_name(name)]
        if not wanted:
            continue
        compared = True
        values = table.space.values[place]
        agreeing = [
            code
            for code, value in enumerate(values)
            if any(agrees(fact.attribute, fact.value, str(value))[0] for fact in wanted)
        ]
        codes = table.codes[:, place]
        fits &= np.isin(codes, agreeing) | (codes == HIDDEN)
    return fits if compared else None


def told_values(person: Person, values: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return what somebody's posts tell of some attributes, each as one of the values it can have."""
    if not person.communities:
        return {}
    rows = person.posts.select("number", "time", "text").iter_rows()
    facts = disclosed(rows).told
    found = {}
    for name, some in values.items():
        for fact in facts:
            if fact.attribute == attribute_name(name):
                fitting = [value for value in some if agrees(fact.attribute, fact.value, value)[0]]
                exact = [value for value in fitting if agrees(fact.attribute, fact.value, value)[1]]
                if len(exact) == 1 or len(fitting) == 1:
                    found[name] = (exact or fitting)[0]
                    break
    return found
