"""`incrowd release` as a person and as a program meet it."""

from __future__ import annotations

import json

import pytest
from tests.cli.running import incrowd

PAPER = {"Avatar": ["A", "C", "D"], "Titanic": ["A", "B", "D"], "Terminator": ["B", "C"]}


@pytest.fixture
def answer(tmp_path):
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(PAPER), "utf-8")
    return path


def test_q_as_json_has_the_promised_keys(capsys, answer):
    outcome = incrowd(capsys, "release", "q", answer, "--json")
    found = json.loads(outcome.out)
    assert outcome.code == 0
    promised = {key: found[key] for key in ("n", "m", "q", "lcv", "p_min", "method")}
    assert promised == {"n": "5", "m": "3", "q": 5 / 3, "lcv": 2, "p_min": 0, "method": "exact"}


def test_q_in_words_says_what_the_number_means(capsys, answer):
    outcome = incrowd(capsys, "release", "q", answer)
    assert "higher is safer" in outcome.out
    assert "60.000%" in outcome.out


def test_q_exits_with_one_above_the_risk_drawn(capsys, answer):
    assert incrowd(capsys, "release", "q", answer, "--fail-above", "0.5").code == 1
    assert incrowd(capsys, "release", "q", answer, "--fail-above", "0.7").code == 0


def test_q_of_an_empty_answer_is_null(capsys, answer):
    answer.write_text("{}", "utf-8")
    found = json.loads(incrowd(capsys, "release", "q", answer, "--json").out)
    assert (found["q"], found["method"], found["n"]) == (None, "nothing", "0")
    assert "undefined" in incrowd(capsys, "release", "q", answer).out


def test_suppress_as_json_has_the_promised_keys(capsys, answer):
    found = json.loads(incrowd(capsys, "release", "suppress", answer, "--threshold", "2", "--json").out)
    assert sorted(found["released"] + found["withheld"]) == sorted(PAPER)
    assert found["q"] >= 2
    assert found["method"] in {"exact", "certified"}


def test_suppress_in_words_lists_values_as_they_are(capsys, answer):
    answer.write_text(json.dumps({"[bold]film[/bold]": list(range(12)), "rare": [1]}), "utf-8")
    outcome = incrowd(capsys, "release", "suppress", answer)
    assert "1 of 2 values may leave" in outcome.out
    assert "[bold]film[/bold]" in outcome.out
    assert (
        "Nothing may leave at q = 50"
        in incrowd(capsys, "release", "suppress", answer, "--threshold", "50").out
    )


def test_a_certificate_can_be_verified_and_a_false_one_exits_with_one(capsys, answer, tmp_path):
    proof, key = tmp_path / "proof.json", tmp_path / "key"
    key.write_bytes(b"secret")
    arguments = ("--threshold", "2", "--certificate", proof, "--key-file", key, "--json")
    assert incrowd(capsys, "release", "suppress", answer, *arguments).code == 0
    outcome = incrowd(capsys, "release", "verify", answer, proof, "--json")
    assert (outcome.code, json.loads(outcome.out)) == (0, {"holds": True, "problems": []})
    false = json.loads(proof.read_text("utf-8"))
    false["parts"][0]["at_least"] = "7"
    proof.write_text(json.dumps(false), "utf-8")
    assert incrowd(capsys, "release", "verify", answer, proof).code == 1


def test_tidy_merges_spellings_and_writes_a_review(capsys, tmp_path):
    films = {
        "The Matrix": [1, 2],
        "the matrix!": [3],
        "The Matrixx": [4],
        "LOTR": [5],
        "Lord of the Rings": [6],
    }
    answer, out, review = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "review.csv"
    answer.write_text(json.dumps(films), "utf-8")
    aliases = tmp_path / "aliases.json"
    aliases.write_text('{"LOTR": "Lord of the Rings"}', "utf-8")
    outcome = incrowd(
        capsys, "release", "tidy", answer, "--out", out, "--aliases", aliases, "--propose", review, "--json"
    )
    assert json.loads(outcome.out) == {
        "values_before": 5,
        "values": 3,
        "proposals": 1,
        "merged": {
            "The Matrix": ["The Matrix", "the matrix!"],
            "Lord of the Rings": ["LOTR", "Lord of the Rings"],
        },
    }
    review.write_text(review.read_text("utf-8").replace(",1,", ",1,yes"), "utf-8")
    said = incrowd(capsys, "release", "tidy", out, "--out", out, "--review", review).out
    assert "3 spellings became 2 values" in said
    assert {name: sorted(users) for name, users in json.loads(out.read_text("utf-8")).items()} == {
        "The Matrix": [1, 2, 3, 4],
        "Lord of the Rings": [5, 6],
    }


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"[1, 2]", "expected one JSON object"),
        (b"{", "could not read it as JSON"),
        (b'{"secret taste": []}', "at least one user"),
        (b'{"secret taste": "somebody"}', "list of users"),
        (b'{"secret taste": NaN}', "expected a list of users"),
        (
            b'{"secret taste": ["a"], "b": ["c"], "secret taste": ["d"]}',
            "value number 3: expected each value once",
        ),
        (b"\xff\x00", "could not read it as JSON"),
    ],
)
@pytest.mark.parametrize("command", ["q", "tidy"])
def test_bad_input_is_one_line_and_exit_code_two(capsys, answer, tmp_path, content, says, command):
    answer.write_bytes(content)
    out = tmp_path / "tidied.json"
    options = ("--out", out) if command == "tidy" else ()
    outcome = incrowd(capsys, "release", command, answer, *options, "--json")
    assert outcome.code == 2
    assert says in outcome.err
    assert "secret" not in outcome.err
    assert "somebody" not in outcome.err
    assert outcome.out == ""
    assert not out.exists()


def test_a_missing_file_is_named(capsys, tmp_path):
    outcome = incrowd(capsys, "release", "q", tmp_path / "nowhere.json")
    assert outcome.code == 2
    assert "nowhere.json" in outcome.err


def test_words_for_people_hold_no_codes_and_count_right(capsys, answer):
    said = " ".join(incrowd(capsys, "release", "suppress", answer, "--threshold", "50").out.split())
    assert said == "Nothing may leave at q = 50: no value reaches the threshold."
    one = " ".join(incrowd(capsys, "release", "q", answer).out.split())
    assert "1 connected part" in one
    assert "1 connected parts" not in one


def test_tidy_says_the_spelling_that_it_writes(capsys, answer, tmp_path):
    answer.write_text(json.dumps({"Avatar": ["A"], "avatar": ["B", "C"]}), "utf-8")
    out = tmp_path / "tidied.json"
    assert "Avatar, avatar: now avatar" in incrowd(capsys, "release", "tidy", answer, "--out", out).out
    assert list(json.loads(out.read_text("utf-8"))) == ["avatar"]


def test_an_empty_answer_in_words_has_no_least_common_value(capsys, answer):
    answer.write_text("{}", "utf-8")
    outcome = incrowd(capsys, "release", "q", answer)
    assert "nothing is released" in outcome.out
    assert "None" not in outcome.out


@pytest.mark.parametrize("memory", ["-5", "0", "inf", "nan", "a lot"])
def test_memory_that_is_no_size_is_refused(capsys, answer, memory):
    outcome = incrowd(capsys, "release", "q", answer, "--memory", memory)
    assert outcome.code == 2
    assert f"--memory takes a size such as 512MiB or 4GiB, got '{memory}'" in outcome.err
