"""When is what somebody told the same as what a table says of them? The normal forms of both, by attribute.

=============  =====================================================================================================
age            right within two years; a table may say a band ("25-34"): right if the age lies in it
gender         male, female, non-binary; tables may say m, f, man, woman, …
place          read by the gazetteer; right if the finest level that both give agrees: "Germany" is right of somebody
               in Berlin, as "Berlin" is of somebody in Germany
relationship   single, in a relationship, engaged, married, divorced (separated), widowed; "in a relationship" is
               right, not exact, of somebody engaged or married, who is in one
education      school, college student, degree, bachelor, master, doctorate, professional degree; "degree" is right,
               not exact, of somebody with a higher one
occupation     the occupation's name in the table of occupations; right if both are the same, are counted together or
               share a word
other values   the same words, whatever their case
=============  =====================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from incrowd.crowd import Crowd
from incrowd.measures.disclosures.assess import disclosed
from incrowd.measures.disclosures.facts import COARSER, Told
from incrowd.measures.disclosures.language import Language, load_language
from incrowd.measures.person import Person
from incrowd.profiles.attributes import HIDDEN, AttributeTable, attribute_table

NAMES = {
    "sex": "gender",
    "city": "location",
    "city_country": "location",
    "lives in": "location",
    "residence": "location",
    "place": "location",
    "hometown": "birthplace",
    "birth_city_country": "birthplace",
    "birth place": "birthplace",
    "relationship_status": "relationship",
    "marital status": "relationship",
    "marital_status": "relationship",
    "job": "occupation",
    "profession": "occupation",
    "education_category": "education",
    "degree": "education",
}
"""What tables call an attribute, and its name here."""
WITHIN = 2
"""Years."""
_RELATIONSHIPS = {
    "in relationship": "in a relationship",
    "relationship": "in a relationship",
    "partnered": "in a relationship",
    "separated": "divorced",
    "never married": "single",
    "unmarried": "single",
    "widow": "widowed",
    "widower": "widowed",
}
_WORD = re.compile(r"[a-z]+")


def attribute_name(name: str) -> str:
    """Return how an attribute of a table is called here.

    >>> attribute_name("sex"), attribute_name("age")
    ('gender', 'age')
    """
    plain = name.strip().lower()
    return NAMES.get(plain, plain)


def agrees(attribute: str, told: str, truth: str, language: Language | None = None) -> tuple[bool, bool]:
    """Say whether something told is right of somebody, and whether it is exactly what the table says.

    >>> agrees("age", "31", "33"), agrees("gender", "female", "F"), agrees("location", "Germany", "Berlin, Germany")
    ((True, False), (True, True), (True, False))
    """
    language = language or load_language()
    truth = truth.strip()
    if attribute == "age":
        return _age(told, truth)
    if attribute in ("location", "birthplace"):
        said, true = language.gazetteer.read(told), language.gazetteer.read(truth)
        if said is None or true is None:
            return (told.lower() == truth.lower(),) * 2
        return said.contains(true) or true.contains(said), said == true
    true_value = normal_form(attribute, truth, language)
    if attribute == "occupation" and told != true_value:
        row = language.counted_with.get
        if row(told, told) == row(true_value, true_value):
            return True, False
        shared = set(_WORD.findall(told)) & set(_WORD.findall(truth.lower()))
        return bool(shared - {"manager", "worker", "officer"}), False
    # Somebody divorced may call themselves single, but that is not what a table means by it.
    coarser = () if told == "single" else COARSER.get(told, ())
    return told == true_value or true_value in coarser, told == true_value


def normal_form(attribute: str, value: str, language: Language | None = None) -> str:
    """Return a table's value as the finder would write it."""
    language = language or load_language()
    plain = value.strip().lower()
    if attribute == "gender":
        return language.grammar.genders.get(plain, plain)
    if attribute == "relationship":
        return _RELATIONSHIPS.get(plain, plain)
    if attribute == "occupation":
        return _occupation(plain, language)
    if attribute == "education":
        return _education(plain, language)
    return plain


def _age(told: str, truth: str) -> tuple[bool, bool]:
    numbers = [int(number) for number in re.findall(r"\d+", truth)]
    if not numbers:
        return False, False
    low, high = min(numbers), max(numbers)
    if low != high:
        return low <= int(told) <= high, low <= int(told) <= high
    return abs(int(told) - low) <= WITHIN, int(told) == low


def _occupation(plain: str, language: Language) -> str:
    words = plain.split()
    for size in range(len(words), 0, -1):
        for first in range(len(words) - size + 1):
            known = language.occupations.get(" ".join(words[first : first + size]))
            if known is not None:
                return known
    return plain


def _education(plain: str, language: Language) -> str:
    if re.search(r"\b(?:in college|studying|student)\b", plain):
        return "college student"
    if re.search(r"\b(?:law degree|jd|md)\b", plain):
        return "professional degree"
    for word in re.findall(r"[a-z.]+", plain.replace("'s", "").replace("'", "")):
        level = language.grammar.levels.get(word.replace(".", ""))
        if level is not None and level != "degree":
            return level
    if "degree" in plain or "diploma" in plain:
        return "school" if "high school" in plain else "degree"
    return "school" if "school" in plain or "diploma" in plain else plain


# Who in a crowd fits what was told, and which values of its table that stands for


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
