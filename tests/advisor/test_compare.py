"""What changed since last time."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.cli.running import incrowd as run

from incrowd.advisor.answer import PersonReport
from incrowd.advisor.compare import Earlier, since
from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.measures.protocol import Level
from incrowd.measures.telling import ADVICE
from incrowd.report.person import person_report_page
from incrowd.result import Evidence


def test_nothing_moves_between_two_equal_reports(alex: PersonReport) -> None:
    then = since(Earlier.of(alex), alex)
    assert {one.moved for one in then.themes} == {"same"}
    assert "nothing moved" in then.sentence()
    assert then.notes == ("The data are the same as last time.",)


def test_better_and_worse_are_told_apart(alex: PersonReport) -> None:
    plain = alex.to_dict()
    plain["label"]["linkable"] |= {"level": "well hidden", "risk": 0.01}
    told = [one for one in alex.themes if str(one.name) != "linkable" and one.risk < 1]
    better = str(min(told, key=lambda one: one.risk).name)
    plain["label"][better] |= {"level": "at risk", "risk": 1.0}
    plain["fine_print"] = {**plain["fine_print"], "data_hash": "another", "version": "0.0"}
    then = since(Earlier.from_dict(plain, "earlier"), alex)
    moved = {str(one.name): one.moved for one in then.themes}
    assert moved["linkable"] == "worse"
    assert moved[better] == "better"
    assert "better in 1 question and worse in 1 question" in then.sentence()
    assert "0.0" in " ".join(then.notes)
    page = person_report_page(replace(alex, since=then))
    assert then.sentence() in page


def test_a_question_that_could_be_answered_only_once_has_not_stayed_as_it_was(alex: PersonReport) -> None:
    plain = alex.to_dict()
    plain["label"]["linkable"] |= {"level": "cannot tell", "risk": None}
    said = since(Earlier.from_dict(plain, "earlier"), alex).sentence()
    assert said.endswith("1 question could be answered only once.")


def test_what_cannot_be_compared_is_said(alex: PersonReport, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="about 'bo'"):
        since(replace(Earlier.of(alex), person="bo"), alex)
    with pytest.raises(InputError, match="no such file"):
        Earlier.read(tmp_path / "gone.json")
    for text, why in (("{", "JSON"), ("[1]", "verdict"), ('{"person": "a"}', "verdict")):
        (tmp_path / "odd.json").write_text(text)
        with pytest.raises(InputError, match=why):
            Earlier.read(tmp_path / "odd.json")


def test_the_command_compares(
    capsys: pytest.CaptureFixture[str], tiny_crowd: Crowd, alex: PersonReport, tmp_path: Path
) -> None:
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(alex.to_dict()))
    told = run(capsys, "assess", tiny_crowd.path, "--user", "alex", "--compare", earlier, "--json")
    since_then = json.loads(told.out)["since"]
    assert since_then["verdict_before"] == str(Level.AT_RISK)
    assert len(since_then["themes"]) == len(alex.themes)
    shown = run(capsys, "assess", tiny_crowd.path, "--user", "alex", "--compare", earlier)
    assert "Since last time: still at risk" in shown.out


def test_the_first_screen_answers_four_questions(alex: PersonReport) -> None:
    questions = [question for question, _ in alex.in_short]
    assert questions == [
        "How findable are you?",
        "By whom?",
        "What gives you away?",
        "What can you do now?",
    ]
    assert all(line.endswith(".") for _, lines in alex.in_short for line in lines)
    assert all(one["answer"] == " ".join(one["lines"]) for one in alex.to_dict()["in_short"])
    page = person_report_page(alex)
    places = [page.index(question) for question in questions[1:]]
    assert places == sorted(places)


def test_the_first_screen_says_what_somebody_would_be_right_about(alex: PersonReport) -> None:
    subjects = {one.assessment.subject for one in alex.findings if one.decides}
    whom = dict(alex.in_short)["By whom?"]
    assert whom
    assert all(line.removesuffix(").").rpartition(" of the time (")[2] in subjects for line in whom)


def test_the_first_screen_names_what_tells_most_and_not_what_tells_next_to_nothing(
    alex: PersonReport,
) -> None:
    def gives_away(*shares: float) -> str:
        parts = tuple(Evidence(what=f"the word “w{n}”", contribution=one) for n, one in enumerate(shares))
        worst = max((one for one in alex.findings if one.decides), key=lambda one: one.risk)
        about = replace(worst.assessment, evidence=parts, explained=sum(shares) if shares else None)
        themes = [replace(one, findings=()) for one in alex.themes if one.name is not worst.theme]
        mine = next(one for one in alex.themes if one.name is worst.theme)
        themes.append(replace(mine, findings=(replace(worst, assessment=about),)))
        return " ".join(
            dict(replace(alex, themes=tuple(themes), write_differently=()).in_short)["What gives you away?"]
        )

    assert gives_away(0.7, 0.2, 0.03) == "The word “w0”, the word “w1”."
    assert gives_away(0.7, 0.2, 0.1, 0.1) == "The word “w0”, the word “w1”, the word “w2”."
    assert "no single thing" not in gives_away(), "what is told by no evidence is told by its sentence"


def test_what_to_do_from_now_on_is_something_to_do(alex: PersonReport) -> None:
    told = replace(alex, actions=(), plan=None).in_short[3][1]
    assert told[0] == "Nothing that was tried on what is there already helps enough."
    kinds = [kind for one in alex.write_differently for kind in one.kinds][:3]
    assert list(told[1:]) == [
        f"From now on, as to {one.kind} ({', '.join(one.examples)}): {one.advice}." for one in kinds
    ]
    assert all(advice.split()[0] in {"say", "use", "write", "put"} for advice in ADVICE.values())


def test_people_made_up_from_a_card_are_named_so_first(alex: PersonReport) -> None:
    assert "alex, among 60 people<" in person_report_page(alex)
    alone = replace(alex, made_up=True)
    assert alone.to_dict()["made_up"]
    assert "alex, among 60 people made up from a card, for want of a crowd<" in person_report_page(alone)
