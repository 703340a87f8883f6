"""Exports, crowds, drafts and the study: one account at a time, rates over a crowd, nothing of anybody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import incrowd

from incrowd.crowd import Crowd
from incrowd.measures.card_crowd import YOU, crowd_of_export
from incrowd.measures.disclosures.assess import disclosed, reading_of
from incrowd.measures.disclosures.facts import DatedReading
from incrowd.measures.disclosures.language import load_language
from incrowd.measures.disclosures.measure import ReadyDisclosures, reworded
from incrowd.measures.disclosures.posts import posts_in_crowd, posts_of_export
from incrowd.measures.protocol import (
    AdvisorOptions,
    Changes,
    NewPost,
    Person,
    PreparedCrowd,
    measure_named,
)

MARKER = "Zanzibarquux"
MINE = ["I'm 31, divorced, and I live in Duluth.", "I work as a nurse.", "The bus was late again today."]


def lines(posts: list[dict[str, object]]) -> str:
    return "\n".join(map(json.dumps, posts)) + "\n"


def post(user: str, text: str, time: int = 1_600_000_000, community: str = "tea") -> dict[str, object]:
    return {"author": user, "community": community, "text": text, "created_utc": time}


def export(folder: Path) -> Path:
    path = folder / "export.jsonl"
    path.write_text(
        lines([post("jo", text, 1_600_000_000 + n) for n, text in enumerate(MINE)]), encoding="utf-8"
    )
    return path


def crowd_with(folder: Path, *, plain: bool = False) -> Crowd:
    """Jo among others, all of whom tell something only they have."""
    rows = [post("jo", text, 1_600_000_000 + n) for n, text in enumerate(MINE)]
    for n in range(12):
        said = f"My name is {MARKER} Smith. I live in Boston. My {MARKER} is odd. I'm {20 + n}. the and of to in it is"
        rows += [post(f"other{n}", f"{said} {k}", 1_600_000_000 + k) for k in range(3)]
    path = folder / "posts.jsonl"
    path.write_text(lines(rows), encoding="utf-8")
    crowd = Crowd.create(folder / "crowd", plain_names=plain)
    crowd.ingest([path], kind="posts")
    return crowd


def test_posts_of_an_export_have_the_numbers_that_assess_gives_them(tmp_path: Path) -> None:
    path = export(tmp_path)
    person = Person(YOU, crowd_of_export([path]))
    assessed = person.posts.select("number", "time", "text").sort("time").rows()
    assert posts_of_export([path]) == assessed
    assert [number for number, _, _ in assessed] == [0, 1, 2]


def test_an_export_alone_is_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = json.loads(incrowd(capsys, "disclosures", export(tmp_path), "--json").out)
    facts = {one["attribute"]: one["value"] for one in said["facts"]}
    assert facts == {
        "age": "31", "relationship": "divorced", "location": "Duluth, Minnesota", "occupation": "nurse",
    }  # fmt: skip
    assert said["together"]["standing"] == "heuristic"
    assert said["together"]["interval"][0] <= said["together"]["people"] <= said["together"]["interval"][1]
    assert said["advice"][0]["posts"]
    assert "bus" not in json.dumps(said)
    assert said["language_model"]["adds"] is None


def test_own_words_are_shown_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = export(tmp_path)
    assert "divorced, and I live" not in incrowd(capsys, "disclosures", path).out
    shown = " ".join(incrowd(capsys, "disclosures", path, "--quote").out.split())
    assert "Duluth" in shown
    page = tmp_path / "page.html"
    assert incrowd(capsys, "disclosures", path, "--html", page).code == 0
    assert "What you have told" in page.read_text("utf-8")


def test_several_accounts_are_refused_until_one_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(lines([post("jo", "I'm 31."), post("al", "I'm 19.")]), encoding="utf-8")
    refused = incrowd(capsys, "disclosures", path)
    assert refused.code == 2
    assert "2 accounts" in refused.err
    said = json.loads(incrowd(capsys, "disclosures", path, "--user", "al", "--json").out)
    assert [one["value"] for one in said["facts"]] == ["19"]


def test_in_a_crowd_it_answers_to_the_keys_owner_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd = crowd_with(tmp_path)
    assert [fact.value for fact in disclosed(posts_in_crowd(crowd, "jo")).told][:2] == ["31", "divorced"]
    by_id = incrowd(capsys, "disclosures", crowd.path, "--user", crowd.user("jo"))
    assert by_id.code == 2
    assert "holds its key" in by_id.err
    assert incrowd(capsys, "disclosures", crowd.path).code == 2


def test_nothing_of_another_person_appears(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crowd = crowd_with(tmp_path)
    table = tmp_path / "attributes.csv"
    rows = "".join(f"other{n},age,{20 + n}\n" for n in range(12))
    table.write_text(f"user,attribute,value\njo,age,31\n{rows}", encoding="utf-8")
    crowd.ingest([table], kind="attributes")
    outputs = [
        incrowd(capsys, "disclosures", crowd.path, "--user", "jo", "--json", "--quote"),
        incrowd(capsys, "assess", crowd.path, "--user", "jo", "--json", "--quick"),
        incrowd(capsys, "study", "disclosures", crowd.path, "--json"),
        incrowd(capsys, "draft", crowd.path, "--user", "jo", "--community", "tea", "I'm from Ohio."),
    ]
    for one in outputs:
        assert one.code == 0, one.err
        assert MARKER.lower() not in (one.out + one.err).lower()


def test_the_study_counts_as_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    posts = [
        post("a", "I'm 31."), post("b", "I am 44."), post("c", "I'm 20."), post("d", "Nothing to say."),
        post("a", "I live in Berlin."), post("b", "I live in Munich."),
    ]  # fmt: skip
    source, table = tmp_path / "posts.jsonl", tmp_path / "attributes.csv"
    source.write_text(lines(posts), encoding="utf-8")
    table.write_text(
        "user,attribute,value\na,age,33\nb,age,44\nc,age,50\nd,age,10\ne,age,60\n"
        'a,city,"berlin, germany"\nb,city,"hamburg, germany"\n',
        encoding="utf-8",
    )
    crowd = Crowd.create(tmp_path / "crowd")
    crowd.ingest([source], kind="posts")
    crowd.ingest([table], kind="attributes")
    found = json.loads(incrowd(capsys, "study", "disclosures", crowd.path, "--json").out)["attributes"]
    assert found["age"] == {
        "people": 5, "said": 3, "right": 2, "exact": 1, "precision": pytest.approx(2 / 3), "coverage": 0.4,
    }  # fmt: skip
    assert (found["location"]["people"], found["location"]["said"], found["location"]["right"]) == (2, 2, 1)


def draft_of(capsys: pytest.CaptureFixture[str], crowd: Crowd, text: str) -> dict:  # type: ignore[type-arg]
    return dict(
        json.loads(
            incrowd(capsys, "draft", crowd.path, "--user", "jo", "--community", "tea", "--json", text).out
        )
    )


def test_a_draft_that_names_somebody_gets_a_red_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd = crowd_with(tmp_path)
    text = (
        "My name is Jane Roe, I live at 12 Maple Street in Duluth, call me on 218-555-0142 or write to "
        "jane.roe@example.com. I was diagnosed with HIV last year."
    )
    said = draft_of(capsys, crowd, text)
    red = [note["text"] for note in said["notes"] if note["red"]]
    for kind in ("name", "street address", "phone number", "e-mail address"):
        assert any(kind in one for one in red)
    assert said["risk"] == 1
    assert any("health (hiv)" in note["text"] for note in said["notes"])
    assert any(one["what"] == "leave out what names you" for one in said["suggestions"])
    shown = incrowd(capsys, "draft", crowd.path, "--user", "jo", "--community", "tea", text).out
    assert "direct identifier" in shown.splitlines()[0]


def test_a_draft_says_what_is_new_and_measures_other_wordings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowd = crowd_with(tmp_path)
    said = draft_of(capsys, crowd, "I'm divorced and I have two kids.")
    (note,) = said["notes"]
    assert note["text"] == "It tells for the first time: children (2)."
    told = next(one for one in said["changes"] if one["measure"] == "disclosures")
    assert told["after"] <= told["before"]
    before = sorted(path.name for path in crowd.path.rglob("*") if path.is_file())
    draft_of(capsys, crowd, "I'm a Quibblewickian from Ohio.")
    after = sorted(path.name for path in crowd.path.rglob("*") if path.is_file())
    assert before == after
    assert not any(b"Quibblewick" in path.read_bytes() for path in crowd.path.rglob("*") if path.is_file())


def test_posts_are_evidence_for_what_is_withheld(tmp_path: Path) -> None:
    """A person who withholds the city but writes where they live shows it all the same."""
    from incrowd.measures.person import Person
    from incrowd.measures.prepared import PreparedCrowd
    from incrowd.measures.protocol import AdvisorOptions, measure_named

    crowd = crowd_with(tmp_path, plain=True)
    options = AdvisorOptions()
    person = Person("jo", PreparedCrowd.of(crowd, options.text, options.memory))
    values = {"city": ["Boston", "Duluth", "Denver"], "age": ["20-29", "30-39"], "religion": ["jewish"]}
    found = measure_named("disclosures").told_attributes(person, values)
    assert found == {"city": "Duluth", "age": "30-39"}


def test_what_reworded_posts_say_is_read_once(tmp_path: Path) -> None:
    crowd = crowd_with(tmp_path, plain=True)
    options = AdvisorOptions()
    changes = Changes(
        edit_words=frozenset({"duluth", "bus"}),
        delete_posts=frozenset({1}),
        add_posts=frozenset({NewPost(community="tea", text="I'm vegan.", time=1_700_000_000)}),
    )

    def asked() -> tuple[list[DatedReading], int]:
        prepared = PreparedCrowd.of(crowd)
        ready = ReadyDisclosures(measure_named("disclosures"), prepared, options)
        return ready._readings(Person("jo", prepared).after(changes))

    person = Person("jo", PreparedCrowd.of(crowd)).after(changes)
    rows = person.posts.select("number", "time", "text").iter_rows()
    read = [DatedReading(number, time, reading_of(text)) for number, time, text in rows]
    wanted = [one for one in read if one.reading.finds]
    assert asked() == (wanted, person.posts.height)
    assert {find.attribute for one in wanted for find in one.reading.finds} >= {"age", "relationship"}
    reading_of.cache_clear()
    assert asked() == (wanted, person.posts.height)
    assert not reading_of.cache_info().misses


TELLING = "I am 31, divorced, from Duluth and I work at the Walmart bakery, saving for tuition"
NAMING = (
    "My name is Jane Roe, I live at 12 Maple Street in Duluth, call me on 218-555-0142 or write to "
    "jane.roe@example.com. I was diagnosed with HIV last year."
)


def told_after(suggestion: dict) -> dict:  # type: ignore[type-arg]
    return dict(next(one for one in suggestion["changes"] if one["measure"] == "disclosures"))


@pytest.mark.parametrize("among", ["a crowd", "the card inside"])
def test_what_a_draft_tells_is_advised_on_before_its_words(
    among: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if among == "a crowd":
        crowd_with(tmp_path)
        asked: list[object] = [tmp_path / "crowd", "--user", "newcomer", "--community", "tea"]
        with (tmp_path / "posts.jsonl").open("w", encoding="utf-8") as more:
            more.write(
                lines(
                    [post("newcomer", f"The bus was late again, and then the kettle {n}") for n in range(4)]
                )
            )
        Crowd(tmp_path / "crowd").ingest([tmp_path / "posts.jsonl"], kind="posts")
    else:
        mine = tmp_path / "mine.jsonl"
        mine.write_text(
            lines([post("me", f"The kettle and the bus, again {n}") for n in range(4)]), encoding="utf-8"
        )
        asked = [mine]
    said = json.loads(incrowd(capsys, "draft", *asked, "--json", TELLING).out)
    first = said["suggestions"][0]
    assert first["what"] == "leave out “work at the Walmart bakery”"
    assert told_after(first)["level_after"] == "well hidden"
    assert told_after(first)["after"] > 10
    assert not any("tuition" in one["left_out"] for one in said["suggestions"])
    shown = incrowd(capsys, "draft", *asked, TELLING).out
    assert shown.index("1. Leave out “work at") < shown.index("word of the draft")

    said = json.loads(incrowd(capsys, "draft", *asked, "--json", NAMING).out)
    assert said["suggestions"][0]["what"].startswith("leave out what names you")
    (names,) = [one for one in said["suggestions"] if one["what"] == "leave out what names you"]
    assert names["text"].count("…") == 4
    assert told_after(names)["after"] < 86_000, "Duluth is still told when the street is gone"


def test_facts_are_reworded_by_what_they_cost_and_no_further_than_needed() -> None:
    """Each step does one more, the fact first that costs most; a town before an age, an age before a common job."""
    said = [what for what, _ in rewordings_of("I'm 31 and I live in Duluth. I'm a nurse.")]
    assert said == [
        "say “Minnesota” in place of “Duluth”",
        "say “in my early thirties” in place of “31”",
        "leave out “nurse”",
        "say “Minnesota” in place of “Duluth” and say “in my early thirties” in place of “31”",
        "say “Minnesota” in place of “Duluth”, say “in my early thirties” in place of “31” and leave out “nurse”",
    ]
    texts = [text for _, text in rewordings_of("I'm 31 and I live in Duluth. I'm a nurse.")]
    assert texts[-1] == "I'm in my early thirties and I live in Minnesota. I'm a …."


def test_no_wording_of_a_fact_cuts_a_word_or_stands_in_another() -> None:
    texts = [text for _, text in rewordings_of("I work at the Walmart bakery.")]
    assert texts == ["I …."]
    assert list(rewordings_of("The bus was late.")) == []


def rewordings_of(text: str) -> list[tuple[str, str]]:
    return list(reworded(text, reading_of(text), disclosed([(0, None, text)]), load_language()))


GERMAN = [
    "Ich bin 31 Jahre alt, wohne seit drei Jahren in Hamburg und arbeite als Krankenpfleger mit zwei Kindern.",
    "Gestern war der Bus wieder zu spät, und dann hat es auch noch geregnet, so ist das im November.",
]


def test_another_language_cannot_be_told_and_is_not_called_well_hidden(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_text(
        lines([post("ich", text, 1_600_000_000 + n) for n, text in enumerate(GERMAN * 6)]), "utf-8"
    )
    alone = json.loads(incrowd(capsys, "disclosures", mine, "--json").out)["sentence"]
    assert alone.startswith("Cannot tell: ")
    assert "only English is read" in alone
    assessed = json.loads(incrowd(capsys, "assess", mine, "--quick", "--json").out)
    told = assessed["label"]["told"]
    assert told["level"] == "cannot tell"
    assert "only English is read" in told["sentence"]
    for text in (GERMAN[0], "Ich bin 31 und komme aus Hamburg."):
        drafted = json.loads(incrowd(capsys, "draft", mine, "--json", text).out)
        assert "only English is read" in drafted["notes"][0]["text"]
        assert not [one for one in drafted["changes"] if one["measure"] == "disclosures"]
    english = json.loads(incrowd(capsys, "draft", mine, "--json", "I am 31 and I live in Duluth.").out)
    assert [note["text"] for note in english["notes"]] == [
        "It tells about you: age (31), location (Duluth, Minnesota)."
    ]


def test_an_address_in_another_language_is_told_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.jsonl"
    texts = [*GERMAN * 6, "Schreib mir bitte eine Mail an jane.roe@example.com, ich antworte dann bald."]
    mine.write_text(lines([post("ich", text, 1_600_000_000 + n) for n, text in enumerate(texts)]), "utf-8")
    told = json.loads(incrowd(capsys, "assess", mine, "--quick", "--json").out)["label"]["told"]
    assert told["level"] == "at risk"
