"""Exports, crowds, drafts and the study: one account at a time, rates over a crowd, nothing of anybody else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import incrowd

from incrowd.crowd import Crowd
from incrowd.measures.disclosures.assess import disclosed
from incrowd.measures.disclosures.posts import posts_in_crowd

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
