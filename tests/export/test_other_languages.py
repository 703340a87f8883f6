"""An export in a language whose words are not here: what could not be read is not called well hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import incrowd

from incrowd import AdvisorOptions, Changes, assess, draft
from incrowd.measures.card_crowd import CardCrowd, crowd_of_export
from incrowd.measures.person import NewPost, Person
from incrowd.measures.prepared import YOU
from incrowd.measures.protocol import Findings, Level, Role, ThemeName, measure_named
from incrowd.text.languages import unread

GERMAN = [
    f"{thing} ist heute wieder nicht so gut, und ich muss {when} noch einmal mit dem Auto in die Stadt fahren"
    for thing in ("Der Motor", "Die Bremse", "Das Getriebe", "Der Auspuff")
    for when in ("morgen", "am Montag", "nach der Arbeit", "am Wochenende", "spät")
]
ILL = "I was told last week that my cancer is back, so I start chemo and radiation for the tumor on Monday."
PLAIN = "I went for a walk with the dog today and it was raining all the way to the shops."


def export(path: Path, texts: list[str], user: str = "me") -> Path:
    rows = [
        {"user": user, "community": "x", "text": text, "time": 1_600_000_000 + 700_000 * number}
        for number, text in enumerate(texts)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def asked(crowd: CardCrowd, name: str = "exposure", changes: Changes | None = None) -> Findings:
    person = Person(YOU, crowd)
    return measure_named(name).prepare(crowd, AdvisorOptions()).assess(person.after(changes or Changes()))


def test_topics_of_posts_that_cannot_be_read_are_not_assessed(tmp_path: Path) -> None:
    found = asked(crowd_of_export([export(tmp_path / "de.jsonl", GERMAN)]))
    assert not found.assessments
    assert "your posts are in a language whose words are not here yet" in found.not_assessed[0].why


def test_among_people_of_another_language_nothing_is_decided(tmp_path: Path) -> None:
    """As on card pages and between accounts: numbers may be shown, the level is that nobody can tell."""
    report = assess([export(tmp_path / "de.jsonl", GERMAN)], options=AdvisorOptions(advice=False))
    found = [one for one in report.assessments if one.measure == "recognition"]
    assert found
    assert not [one for one in found if measure_named("recognition").role(one) is Role.DECIDES]
    assert report.verdict.level is Level.CANNOT_TELL


def test_short_words_that_other_languages_have_too_do_not_make_a_text_english(tmp_path: Path) -> None:
    """Words such as "die", "was" and "so" are on the card of people who write English."""
    texts = [
        f"{first}, {then}"
        for first in (
            "ja, das war gut",
            "wir waren gestern so müde",
            "was war das denn",
            "die Lehrer sind heute nett",
        )
        for then in (
            "und dann gehen wir nach Hause",
            "es gibt Kuchen in der Schule",
            "am Ende war es gut",
            "oder so ähnlich",
        )
    ]
    crowd = crowd_of_export([export(tmp_path / "chat.jsonl", texts)])
    assert "another language" in crowd.doubt("Reddit")


def test_english_posts_among_others_are_read_and_the_share_is_told(tmp_path: Path) -> None:
    silent = asked(crowd_of_export([export(tmp_path / "silent.jsonl", [*GERMAN, PLAIN])]))
    assert not [
        one for one in silent.assessments if measure_named("exposure").finding(one).level is Level.WELL_HIDDEN
    ]
    assert "only 1 of your 21 posts is in a language that is read here" in silent.not_assessed[0].why
    ill = crowd_of_export([export(tmp_path / "ill.jsonl", [*GERMAN, *[ILL] * 4])])
    told = {one.assumptions.parameters["topic"]: one for one in asked(ill).assessments}
    assert "cancer" in told
    assert "Only 4 of your 24 posts are in a language that is read here (English)." in told["cancer"].meaning


def test_after_a_post_as_it_would_be_with_it(tmp_path: Path) -> None:
    """Writing a few English posts and having written them is the same."""
    posted = Changes(
        add_posts=frozenset(
            NewPost(community="Reddit", time=1_600_000_000 + 700_000 * (len(GERMAN) + n), text=ILL)
            for n in range(4)
        )
    )
    before = crowd_of_export([export(tmp_path / "before.jsonl", GERMAN)])
    after = crowd_of_export([export(tmp_path / "after.jsonl", [*GERMAN, *[ILL] * 4])])
    now, then = asked(before, changes=posted), asked(after)
    assert [(one.meaning, one.value) for one in now.assessments] == [
        (one.meaning, one.value) for one in then.assessments
    ]
    assert now.assessments


def test_the_verdict_names_what_was_not_read(tmp_path: Path) -> None:
    report = assess([export(tmp_path / "de.jsonl", GERMAN)], options=AdvisorOptions(advice=False))
    exposed = next(theme for theme in report.themes if theme.name is ThemeName.EXPOSED)
    assert exposed.level is Level.CANNOT_TELL
    assert "sensitive topics" in report.verdict.sentence.partition("Not measured:")[2]


@pytest.mark.parametrize(
    ("texts", "marked"),
    [
        (["Nice!", "Thanks a lot for this"], [False, False]),
        (
            [
                "今日は天気がとても良い",
                *["今日は雨でした"] * 40,
                "I'm 34 and I live in Duluth with my wife",
                "自転車で走りました",
            ],
            [*[True] * 41, False, True],
        ),
        ([*GERMAN, "Sehr gut", PLAIN], [True] * (len(GERMAN) + 1) + [False]),
    ],
)
def test_which_posts_cannot_be_read(texts: list[str], marked: list[bool]) -> None:
    assert unread(texts) == marked


def test_a_draft_that_cannot_be_read_is_no_all_clear(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "Ich heiße Gretel und wohne in Freiburg, ich bin 41 und lesbisch"
    file = export(tmp_path / "en.jsonl", [f"{PLAIN} {n}" for n in range(12)])
    check = draft([file], None, "Reddit", told)
    assert check.sentence().startswith(
        "What this post tells about you could not be judged: this text is in a language"
    )
    assert "Nothing to leave out" not in incrowd(capsys, "draft", file, told).out
    named = draft([file], None, "Reddit", f"{told}, schreib mir: gretel@huber-freiburg.de")
    assert [note.red for note in named.notes][:1] == [True]
    assert not draft([file], None, "Reddit", PLAIN).unread


def test_an_export_of_which_nothing_could_be_measured_is_no_all_clear(tmp_path: Path) -> None:
    report = assess([export(tmp_path / "one.jsonl", ["hello there"])], options=AdvisorOptions(advice=False))
    answers = {question: " ".join(lines) for question, lines in report.in_short}
    assert "too little could be measured" in answers["What gives you away?"]
    assert answers["What can you do now?"].startswith("To be told about ")


@pytest.mark.parametrize(("option", "value"), [("--people", "0"), ("--most-loss", "0"), ("--most-loss", "7")])
def test_a_number_that_cannot_be_is_refused_by_the_name_of_its_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    told = incrowd(capsys, "assess", export(tmp_path / "en.jsonl", [PLAIN]), option, value)
    assert told.code == 2
    assert option in told.err


def test_one_english_post_among_others_tells_what_it_tells(tmp_path: Path) -> None:
    """Also before posting: what a draft is said to tell is told once it is posted."""
    telling = "I'm 34 and I live in Duluth, Minnesota with my wife."
    after = asked(crowd_of_export([export(tmp_path / "after.jsonl", [*GERMAN, telling])]), "disclosures")
    posted = Changes(add_posts=frozenset({NewPost(community="Reddit", time=1_700_000_000, text=telling)}))
    then = asked(crowd_of_export([export(tmp_path / "before.jsonl", GERMAN)]), "disclosures", posted)
    (found,), (promised,) = after.assessments, then.assessments
    assert (found.value, found.interval) == (promised.value, promised.interval)
    assert "Duluth" in found.meaning
    assert found.meaning.endswith("Only 1 of your 21 posts is in a language that is read here (English).")
    assert not asked(crowd_of_export([export(tmp_path / "de.jsonl", GERMAN)]), "disclosures").assessments
