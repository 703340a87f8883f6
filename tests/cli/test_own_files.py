"""`incrowd assess` and others with files that cannot be used: each says what is wrong, and advises what it takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.running import incrowd

CUT = b'[{"author": "me", "text": "one post", "created": 1700000000}, {"aut'
ODD = bytes(range(256)) * 9


@pytest.mark.parametrize("command", ["assess", "disclosures"])
@pytest.mark.parametrize(
    ("name", "content", "option", "helps"),
    [
        ("cut.json", CUT, "--keep-complete", "Fetch it again."),
        ("odd.bin", ODD, "--format", "Make a table (CSV)"),
    ],
)
def test_only_options_that_the_command_takes_are_advised(
    command: str,
    name: str,
    content: bytes,
    option: str,
    helps: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / name).write_bytes(content)
    outcome = incrowd(capsys, command, tmp_path / name)
    said = " ".join(outcome.err.split())
    assert outcome.code == 2
    assert helps in said
    takes = option in incrowd(capsys, command, "--help").out
    assert (f"incrowd ingest, which takes {option}." in said) == (not takes)
    assert said.count(option) == 1
    ingest = incrowd(capsys, "ingest", tmp_path / name, "--crowd", tmp_path / "crowd")
    assert option in ingest.err
    assert "import it into" not in ingest.err


@pytest.mark.parametrize("content", [b"", b"[]", b" { }\n", b"\xef\xbb\xbf[]"])
def test_an_empty_file_is_said_to_be_empty(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "nothing.json").write_bytes(content)
    outcome = incrowd(capsys, "assess", tmp_path / "nothing.json")
    assert outcome.code == 2
    assert "the file is empty" in " ".join(outcome.err.split())
    assert "--format" not in outcome.err


@pytest.mark.parametrize("command", ["assess", "disclosures"])
def test_private_posts_that_were_left_out_are_counted(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private = [
        {
            "type": "Create",
            "object": {"type": "Note", "content": f"<p>{k}</p>", "to": ["https://m.example/me/followers"]},
        }
        for k in range(30)
    ]
    outbox = tmp_path / "outbox.json"
    outbox.write_text(json.dumps({"type": "OrderedCollection", "orderedItems": private}))
    outcome = incrowd(capsys, command, outbox)
    assert outcome.code == 2
    assert "30 records were left out, as no public words of yours: private posts" in " ".join(
        outcome.err.split()
    )


def test_advice_about_a_crowd_is_no_advice_about_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    posts = "".join(
        json.dumps({"author": f"u{n}", "subreddit": "tea", "body": "Green tea."}) + "\n" for n in range(9)
    )
    (tmp_path / "posts.jsonl").write_text(posts)
    assert incrowd(capsys, "ingest", tmp_path / "posts.jsonl", "--crowd", tmp_path / "crowd").code == 0
    outcome = incrowd(capsys, "study", "card", tmp_path / "crowd", "--source", "tea", "--target", "tea")
    assert outcome.code == 2
    assert "import it" not in outcome.err


def test_an_audit_of_a_crowd_of_items_says_who_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "items.csv").write_text("user,item\nann,tea\nbob,tea\n")
    assert incrowd(capsys, "ingest", tmp_path / "items.csv", "--crowd", tmp_path / "items").code == 0
    outcome = incrowd(capsys, "card", "audit", tmp_path / "items")
    assert (outcome.code, "0 people with words" in outcome.err) == (2, True)
