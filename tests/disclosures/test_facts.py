"""From finds to facts: dated ages, contradictions, what wins, what is counted and never listed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.measures.disclosures.assess import disclosed
from incrowd.measures.disclosures.facts import Told
from incrowd.measures.disclosures.language import load_language
from incrowd.measures.disclosures.normal import agrees
from incrowd.measures.disclosures.places import table_rows
from incrowd.measures.disclosures.population import age_share, coarser_wordings, share_of, together
from incrowd.measures.disclosures.spec import DisclosureOptions


def at(year: int, month: int = 6, day: int = 1) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())


def value(found: object, attribute: str) -> str | None:
    return next((fact.value for fact in found.told if fact.attribute == attribute), None)  # type: ignore[attr-defined]


def told(attribute: str, value: str) -> Told:
    return Told(attribute=attribute, value=value, certainty=0.9, said=True, posts=(0,))


def test_ages_said_years_apart_agree_on_a_birth_year() -> None:
    found = disclosed([(0, at(2014), "I'm 19."), (1, at(2017, 5), "I am turning 22 next month.")])
    (age,) = [fact for fact in found.facts if fact.attribute == "age"]
    assert age.posts == (0, 1)
    assert not age.against
    assert age.value == "22"


def test_an_age_grows_with_the_posts_after_it() -> None:
    found = disclosed([(0, at(2014), "I'm 19."), (1, at(2020), "Nice weather.")])
    assert value(found, "age") == "25"


def test_contradicting_ages_are_shown_and_the_more_frequent_wins() -> None:
    posts = [(0, at(2020), "I'm 31."), (1, at(2020, 7), "I am 31 years old."), (2, at(2020, 8), "I'm 19.")]
    (age,) = [fact for fact in disclosed(posts).facts if fact.attribute == "age"]
    assert age.value == "31"
    assert list(age.against.values()) == [(2,)]


def test_where_people_move_the_later_wins() -> None:
    found = disclosed([(0, at(2010), "I live in Boston."), (1, at(2020), "I live in Denver.")])
    (home,) = [fact for fact in found.facts if fact.attribute == "location"]
    assert home.value == "Denver, Colorado"
    assert home.against == {"Boston, Massachusetts": (0,)}


def test_the_finer_place_wins_over_the_one_around_it() -> None:
    found = disclosed([(0, at(2020), "I live in Minnesota."), (1, at(2020), "I live in Duluth.")])
    (home,) = [fact for fact in found.facts if fact.attribute == "location"]
    assert (home.value, home.against) == ("Duluth, Minnesota", {})


def test_facts_about_others_are_counted_and_not_listed() -> None:
    found = disclosed([(0, None, "My brother is 31 and lives in Boston. My boss is divorced.")])
    assert found.facts == ()
    assert found.others == 2


def test_text_comes_only_when_it_is_asked_for() -> None:
    post = (0, None, "Well, I'm 31 and tired of Quibblewick.")
    assert "Quibblewick" not in str(disclosed([post]).to_dict())
    quoting = disclosed([post], DisclosureOptions(quote=True))
    assert "31" in quoting.quotes["age: 31"][0]


def test_more_posts_never_make_a_statement_less_certain() -> None:
    once = disclosed([(0, None, "I'm 31.")]).facts[0].certainty
    twice = disclosed([(0, None, "I'm 31."), (1, None, "I am 31.")]).facts[0].certainty
    assert once < twice < 1


def test_without_a_fact_it_fits_more_people() -> None:
    facts = [told("location", "Duluth, Minnesota"), told("age", "31"), told("relationship", "divorced")]
    whole = together(facts)
    assert whole.low <= whole.people <= whole.high
    for fact in facts:
        assert whole.without(fact.attribute).product > whole.product
    assert whole.people == pytest.approx(86_110 * (0.135 / 10) * 0.11)


@given(st.permutations(["location", "age", "gender", "occupation"]))
@settings(max_examples=10, deadline=None)
def test_the_order_of_facts_does_not_matter(order: list[str]) -> None:
    values = {"location": "Berlin, Germany", "age": "40", "gender": "female", "occupation": "nurse"}
    found = together([told(name, values[name]) for name in order])
    assert found.people == pytest.approx(together([told(*pair) for pair in values.items()]).people)


def test_a_language_is_read_once_whether_or_not_it_is_named() -> None:
    assert load_language() is load_language("en")


def test_ages_add_up_to_everybody() -> None:
    gazetteer = load_language().gazetteer
    for country in ("US", "DE", "*", "AD"):
        assert age_share(gazetteer, country, 0, 99) == pytest.approx(1, abs=0.002)


def test_coarser_words_fit_more_people() -> None:
    language = load_language()
    for fact in (told("location", "Duluth, Minnesota"), told("age", "31"), told("relationship", "divorced")):
        for _, value in coarser_wordings(fact, language):
            assert together([told(fact.attribute, value)]).product > together([fact]).product


def test_every_share_is_a_share() -> None:
    language = load_language()
    for name in language.workers:
        share, off = share_of("occupation", name, language, None, "US", 30)
        assert 0 < share <= 1 <= off


def test_the_tables_add_up_and_say_whether_they_were_checked() -> None:
    """Totals that the sources print, and no figure without its source and its doubt."""
    language = load_language()
    countries = language.gazetteer.countries
    assert sum(people for code, (_, people, _) in countries.items() if code != "*") == pytest.approx(
        7.6e9, rel=0.05
    )
    for name, _, ages in countries.values():
        assert sum(ages) == pytest.approx(1, abs=0.01) or not ages, name
    states = {
        code: people for (country, code), (_, people) in language.gazetteer.regions.items() if country == "US"
    }
    assert (len(states), sum(states.values())) == (51, 331_449_281)  # the 2020 census
    employed = ("student", "retired", "homemaker", "veteran", "civil servant", "freelancer")
    jobs = sum(thousands for name, (thousands, _) in language.workers.items() if name not in employed)
    assert 100_000 < jobs < 151_854  # thousands; the last is all employees in May 2023
    rows = table_rows("shares.tsv")
    for attribute, value, percent, off, source, checked in rows:
        assert source, (attribute, value)
        assert 0 < float(percent) < 100
        assert float(off) > 1
        assert checked == "checked" or float(off) >= 1.7 or attribute == "gender" or "checked" in checked
    together = {attribute: 0.0 for attribute, *_ in rows}
    for attribute, value, percent, *_ in rows:
        if (attribute, value) not in (("relationship", "in a relationship"), ("relationship", "engaged")):
            together[attribute] += float(percent)
    assert together["relationship"] == pytest.approx(100, abs=3)
    assert together["gender"] - 1 == pytest.approx(100, abs=0.5)
    assert together["sexuality"] < 100
    assert together["religion"] < 100


@pytest.mark.parametrize(
    ("attribute", "said", "truth", "right"),
    [
        ("age", "31", "33", True),
        ("age", "31", "34", False),
        ("age", "31", "25-34", True),
        ("gender", "female", "F", True),
        ("gender", "male", "woman", False),
        ("location", "Germany", "berlin, germany", True),
        ("location", "Berlin, Germany", "Hamburg, Germany", False),
        ("relationship", "in a relationship", "married", True),
        ("relationship", "single", "divorced", False),
        ("occupation", "teacher", "retired math teacher", True),
        ("occupation", "nurse", "lawyer", False),
        ("education", "doctorate", "PhD in some field", True),
        ("education", "degree", "Bachelor's degree in history", True),
        ("religion", "catholic", "Catholic", True),
    ],
)
def test_normal_forms(attribute: str, said: str, truth: str, right: bool) -> None:
    assert agrees(attribute, said, truth)[0] is right


def test_direct_identifiers_leave_one_person() -> None:
    found = disclosed([(0, None, "Mail me: jane.roe@example.com")])
    assert found.assessment().value == 1
    assert [one.kind for one in found.identifiers] == ["e-mail address"]
    assert "jane" not in str(found.to_dict())


@pytest.mark.parametrize(
    ("text", "street"),
    [
        ("I live at Musterstraße 12 in Berlin", "Musterstraße 12"),
        ("I'm at Hauptstr. 5a, ring twice", "Hauptstr. 5a"),
        ("We share the Berliner Straße 44 now", "Berliner Straße 44"),
        ("we moved to 12 bis rue de la Paix", "12 bis rue de la Paix"),
        ("home is 3 place de la Mairie", "3 place de la Mairie"),
        ("I live at Calle Mayor 5", "Calle Mayor 5"),
        ("come over, Via Garibaldi 10, third floor", "Via Garibaldi 10"),
        ("Kerkstraat 114 is my door", "Kerkstraat 114"),
        ("Storgatan 7b is where I live", "Storgatan 7b"),
        ("Rua Augusta 100 is home", "Rua Augusta 100"),
        ("we rent at ul. Długa 5", "ul. Długa 5"),
        ("the restaurant at Via Roma 10 is great", None),
        ("I changed at Alexanderplatz 3 times", None),
        ("I flew via Paris 2 times", None),
        ("he took the Via Roma 10:30 bus", None),
        ("a 5 place lead and 3 avenue blocks", None),
        ("a Damm 5 km long", None),
    ],
)
def test_street_addresses_of_other_countries(text: str, street: str | None) -> None:
    found = disclosed([(0, None, text)]).identifiers
    assert [one.kind for one in found] == (["street address"] if street else [])
    places = load_language().identifiers.find(text, text.lower(), accounts=False)
    assert [text[one.start : one.end] for one in places] == ([street] if street else [])


def test_edits_are_measured_by_reading_again() -> None:
    posts = [
        (0, None, "I'm 31."),
        (1, None, "I live in Duluth."),
        (2, None, "I love Duluth, I live in Duluth."),
    ]
    edit = next(one for one in disclosed(posts).edits if one.attribute == "location")
    assert edit.posts == (1, 2)
    assert edit.after.people == together([told("age", "31")]).people
    assert edit.sentence().startswith("Edit these 2 posts (1, 2) and your location is gone")


def test_old_facts_stay_told_when_new_posts_say_nothing_of_them() -> None:
    old = [(0, at(2005), "I'm divorced."), (1, at(2005), "I live in Duluth.")]
    new = (2, at(2025), "I like tea.")
    assert [fact.certainty for fact in disclosed([*old, new]).facts] == [
        fact.certainty for fact in disclosed(old).facts
    ]


def test_the_past_is_no_contradiction() -> None:
    """Married in 2018 and divorced in 2020 is a life; divorced and married in one year is a contradiction."""
    year = 31_557_600
    told_in = lambda *pairs: disclosed(  # noqa: E731
        [(number, 1_500_000_000 + when * year, text) for number, (when, text) in enumerate(pairs)]
    )
    life = {one.attribute: one for one in told_in((1, "I got married."), (3, "I'm divorced.")).facts}
    alone = {one.attribute: one for one in told_in((3, "I'm divorced.")).facts}
    both = {one.attribute: one for one in told_in((3, "I'm divorced."), (3, "I'm married.")).facts}
    assert life["relationship"].value == "divorced"
    assert life["relationship"].certainty == alone["relationship"].certainty > both["relationship"].certainty
    assert set(life["relationship"].against) == {"married"}


def test_advice_goes_on_until_the_fact_is_gone() -> None:
    posts = [(0, 1_400_000_000, "I live in Duluth."), (1, 1_600_000_000, "I live in Berlin now.")]
    edit = next(one for one in disclosed(posts).edits if one.attribute == "location")
    assert edit.posts == (0, 1)


def test_quotes_hold_whole_words() -> None:
    text = "Well, yesterday evening somebody asked and so: I'm 31 and marvellously unimpressed by everything."
    quote = disclosed([(0, None, text)], DisclosureOptions(quote=True)).quotes["age: 31"][0]
    assert quote in text
    assert {quote.split()[0], quote.split()[-1]} <= set(text.split())


def test_posts_in_another_language_say_that_it_cannot_tell() -> None:
    german = (
        "Ich wohne in einer kleinen Stadt und backe jeden Morgen Brot, weil die Leute früh zur Arbeit gehen."
    )
    found = disclosed([(0, None, german)])
    assert not found.readable
    assert found.sentence().startswith("Cannot tell")
    assert disclosed(
        [(0, None, "I like the bread that they sell on the market in the morning, and so do you.")]
    ).readable


def test_one_sign_of_gender_suggests_and_two_tell() -> None:
    once = disclosed([(0, at(2020), "I can't find my purse.")])
    assert [fact.value for fact in once.facts if fact.attribute == "gender"] == ["female"]
    assert value(once, "gender") is None
    again = [(0, at(2020), "I can't find my purse."), (1, at(2021), "My husband found it.")]
    assert value(disclosed(again), "gender") == "female"


def test_a_job_that_is_counted_with_others_keeps_its_name_and_is_a_part_of_them() -> None:
    language = load_language()
    found = disclosed([(0, None, "I work as a barista.")])
    assert value(found, "occupation") == "barista"
    barista, off = share_of("occupation", "barista", language, None, "US", 30)
    waiters, known = share_of("occupation", "waiter", language, None, "US", 30)
    assert barista < waiters
    assert off > known
    assert agrees("occupation", "barista", "bartender", language) == (True, False)
    assert agrees("occupation", "barista", "nurse", language) == (False, False)
