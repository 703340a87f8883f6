"""A watch says what the measures would say from scratch, once a crossing, whatever is killed when."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.advisor.test_watch_sinks import alert
from tests.cli.running import incrowd

from incrowd.advisor.watch import Watch
from incrowd.advisor.watch_alerts import Alert, AlertLog, Terminal
from incrowd.advisor.watch_policy import WatchPolicy, is_crossed, say_line
from incrowd.cli import main
from incrowd.crowd import Crowd
from incrowd.errors import CrowdBusy, CrowdDamaged, InputError
from incrowd.measures.anonymity.assess import community_anonymity, member_anonymity
from incrowd.measures.anonymity.spec import AnonymityOptions
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.space import BagOfWords
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.exposure.topics import starter_topics
from incrowd.measures.following import Line
from incrowd.measures.linkability.assess import assess_person
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.protocol import AdvisorOptions

SPACE = BagOfWords(starter_topics())
TOPIC = SPACE.topics.topics[0]
WORDS = ["kettle", "teapot", "sugar", "lemon", "cup", *TOPIC.words[:2]]
NOW = 1_700_000_000
OPTIONS = AdvisorOptions(radius=0.6, min_posts=2, space=SPACE)
LINES = (
    Line(measure="anonymity", community="tea", at=4),
    Line(measure="linkability", community="tea", target="money", at=3),
    Line(measure="linkability", community="money", target="tea", at=3),
    Line(measure="exposure", community="tea", topic=TOPIC.name, at=2),
    Line(measure="exposure", community=None, topic=TOPIC.name, at=2),
)
POLICY = WatchPolicy(lines=LINES)
Post = tuple[str, str, int | None, str]


STRANGERS: list[Post] = [(f"other{k}", "tea", NOW, f"whale{k}") for k in range(3)]
"""Nobody hides among them, but without them there would be no crowd."""


def alike(*users: str) -> list[Post]:
    return [(user, "tea", NOW, "kettle sugar") for user in users]


def base() -> list[Post]:
    found: list[Post] = []
    for number, user in enumerate(("me", "ann", "bob", "cat", "dan")):
        for community in ("tea", "money"):
            for week in range(2):
                words = [WORDS[(number + week + k * k) % len(WORDS)] for k in range(4)]
                found.append((user, community, NOW - week * 700_000, " ".join(words)))
    return found


def table(posts: list[Post]) -> pl.DataFrame:
    return pl.DataFrame(posts, schema=["user", "community", "time", "text"], orient="row")


def as_lines(posts: list[Post]) -> str:
    names = ("user", "community", "time", "text")
    return "".join(json.dumps(dict(zip(names, post, strict=True))) + "\n" for post in posts)


def from_scratch(posts: list[Post]) -> list[float]:
    """Return the numbers of LINES by the measures, on a crowd of these posts."""
    crowd = Crowd.from_frame(table(posts))
    tea = community_anonymity(crowd, AnonymityOptions(community="tea", radius=OPTIONS.radius))
    numbers = [member_anonymity(tea, "me").value]
    for line in LINES[1:3]:
        assert line.community
        assert line.target
        pair = LinkabilityOptions(source=line.community, target=line.target, min_posts=OPTIONS.min_posts)
        numbers.append(assess_person(crowd, pair, "me").value)
    for line in LINES[3:]:
        scored = score(crowd, SPACE, ExposureOptions(community=line.community))
        numbers.append(float(scored.ranks(TOPIC.name)[scored.place("me")]))
    return numbers


def new_watch(tmp_path: Path, crowd: Crowd, **options: object) -> Watch:
    chosen = {"policy": POLICY, "sinks": [], "options": OPTIONS} | options
    policy = chosen.pop("policy")
    return Watch(crowd, "me", policy, tmp_path / "state", **chosen)  # type: ignore[arg-type]


new_posts = st.lists(
    st.tuples(
        st.sampled_from(["me", "ann", "bob", "eve"]),
        st.sampled_from(["tea", "money", "elsewhere"]),
        st.sampled_from([NOW, NOW - 800_000, None]),
        st.lists(st.sampled_from([*WORDS, "brandnew", "the"]), min_size=1, max_size=4).map(" ".join),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=4, phases=[Phase.generate])  # every example imports a crowd: too slow to shrink
@given(news=new_posts)
def test_following_a_file_equals_importing_it(
    news: list[Post], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("watch")
    file = folder / "new.jsonl"
    file.write_text("")
    with new_watch(folder, Crowd.from_frame(table(base())), follow=file) as watch:
        for post in news:
            with file.open("a") as grown:
                grown.write(as_lines([post]))
            watch.step()
        readings = [watch.readings()[line].value for line in LINES]
    imported = Crowd.from_frame(table(base()), path=folder / "again", plain_names=True)
    imported.ingest([file])
    kept = imported.posts().collect()
    assert readings == from_scratch([tuple(row) for row in kept.iter_rows()])  # type: ignore[misc]


def test_following_the_crowd_equals_measuring_it_again(tmp_path: Path) -> None:
    crowd = Crowd.from_frame(table(base()), path=tmp_path / "crowd")
    posts = base()
    with new_watch(tmp_path, crowd) as watch:
        watch.step()
        assert [watch.readings()[line].value for line in LINES] == from_scratch(posts)
        for number in range(9):  # after eight imports the tables are put together anew
            post = ("me" if number % 2 else "ann", "tea", NOW + number, f"lemon {WORDS[number % 7]} kettle")
            posts.append(post)
            Crowd(tmp_path / "crowd").add_frame(table([post]))
            watch.step()
        assert [watch.readings()[line].value for line in LINES] == from_scratch(posts)


def test_one_alert_a_crossing_and_one_on_the_way_back(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text("")
    crowd = Crowd.from_frame(table([*alike("me", "ann", "bob"), *STRANGERS]))
    line = Line(measure="anonymity", community="tea", at=3)
    seen: list[Alert] = []
    with new_watch(
        tmp_path, crowd, policy=WatchPolicy(lines=(line,)), sinks=[Terminal(seen.append)], follow=file
    ) as watch:
        for user, text in (
            ("ann", "zebra " * 9),
            ("ann", "giraffe"),
            ("cat", "kettle sugar"),
            ("bob", "lion " * 9),
        ):
            with file.open("a") as grown:
                grown.write(as_lines([(user, "tea", NOW + 5, text)]))
            watch.step()
    assert [(alert.crossed, alert.value, alert.position) for alert in seen] == [
        (True, 2.0, 1),
        (False, 3.0, 3),
        (True, 2.0, 4),
    ]
    assert len({alert.id for alert in seen}) == 3
    assert "2 of 6 people" in seen[0].sentence
    assert all("ann" not in alert.sentence for alert in seen)


def test_a_restart_says_nothing_twice_and_goes_on_counting(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text(as_lines([("ann", "tea", NOW, "zebra " * 20)]))
    crowd = Crowd.from_frame(table([*alike("me", "ann", "bob"), *STRANGERS]))
    policy = WatchPolicy(lines=(Line(measure="anonymity", community="tea", at=3),))
    seen: list[Alert] = []
    for more in ((), (("cat", "tea", NOW, "kettle sugar"),), ()):
        with file.open("a") as grown:
            grown.write(as_lines(list(more)))
        with new_watch(tmp_path, crowd, policy=policy, sinks=[Terminal(seen.append)], follow=file) as watch:
            watch.step()
            watch.step()
    assert [(alert.crossing, alert.crossed) for alert in seen] == [(1, True), (2, False)]


def test_a_line_that_somebody_repeats_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text(
        as_lines(base()) + "no json\n" + '{"user": "[deleted]", "text": "x", "community": "tea"}\n'
    )
    with new_watch(tmp_path, Crowd.from_frame(table(base())), follow=file) as watch:
        watch.step()
        assert [watch.readings()[line].value for line in LINES] == from_scratch(base())
        assert watch.file is not None
        assert watch.file.skipped.reasons == {"duplicate": 20, "bad_json": 1, "deleted_author": 1}


def test_an_unfinished_line_waits_for_its_end(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    line = as_lines([("me", "tea", NOW + 9, "zebra " * 30)])
    file.write_text(line[:20])
    crowd = Crowd.from_frame(table(base()))
    with new_watch(tmp_path, crowd, follow=file) as watch:
        watch.step()
        before = watch.readings()[LINES[0]]
        file.write_text(line)
        watch.step()
        assert watch.readings()[LINES[0]].value < before.value
        file.write_text("")
        with pytest.raises(InputError, match="shorter"):
            watch.step()


def test_somebody_new_is_watched_from_their_first_post_on(tmp_path: Path) -> None:
    file = tmp_path / "new.jsonl"
    file.write_text("")
    crowd = Crowd.from_frame(table([("ann", "tea", NOW, "kettle"), *STRANGERS]))
    with new_watch(tmp_path, crowd, policy=WatchPolicy(lines=LINES[:1]), follow=file) as watch:
        assert watch.step() == []
        assert watch.readings()[LINES[0]].value != watch.readings()[LINES[0]].value
        file.write_text(as_lines([("me", "tea", NOW, "kettle")]))
        assert [alert.value for alert in watch.step()] == [2.0]


def test_nobody_else_is_in_alerts_the_memory_or_the_screen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = [
        (u if u == "me" else f"Secret{u}", c, t, x if u == "me" else f"{x} mark{u}") for u, c, t, x in base()
    ]
    crowd = Crowd.from_frame(table(marked), path=tmp_path / "crowd")
    (tmp_path / "new.jsonl").write_text(
        as_lines([("SecretEve", "tea", NOW, "markeve"), ("me", "tea", NOW, "zebra")])
    )
    arguments = watch_arguments(crowd.path, tmp_path / "new.jsonl", tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["incrowd", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    printed = capsys.readouterr()
    written = [path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert "ALERT" in printed.out
    for text in (printed.out, printed.err, *written):
        assert "secret" not in text.lower()
        assert "mark" not in text.lower()


# What is said


def test_a_topic_one_never_wrote_about_has_no_place_to_tell(tmp_path: Path) -> None:
    crowd = Crowd.from_frame(table([*alike("me", "ann", "bob"), *STRANGERS]))
    line = Line(measure="exposure", community="tea", topic=TOPIC.name, at=1)
    with new_watch(tmp_path, crowd, policy=WatchPolicy(lines=(line,))) as watch:
        (reading,) = watch.readings().values()
    assert reading.value == 1
    assert say_line(line, reading) == f"Nothing you wrote in tea points to {TOPIC.name} in particular."


def test_a_place_that_rests_on_a_few_words_says_so(tmp_path: Path) -> None:
    mine = ("me", "tea", NOW, f"{TOPIC.words[0]} {TOPIC.words[1]}")
    line = Line(measure="exposure", community="tea", topic=TOPIC.name, at=1)
    for weeks, faint in ((1, True), (3, False)):
        often = [(*mine[:2], NOW - week * 700_000, mine[3]) for week in range(weeks)]
        crowd = Crowd.from_frame(table([*often, *alike("ann", "bob"), *STRANGERS]))
        with new_watch(tmp_path / str(weeks), crowd, policy=WatchPolicy(lines=(line,))) as watch:
            (reading,) = watch.readings().values()
        assert is_crossed(line, reading)
        assert ("too few to tell an interest from chance" in say_line(line, reading)) == faint


def test_a_handful_of_people_is_no_crowd_to_watch(tmp_path: Path) -> None:
    policy = WatchPolicy(lines=(LINES[0], LINES[3]))
    for others, alone in (("ann", "bob", "cat"), True), (("ann", "bob", "cat", "dan"), False):
        crowd = Crowd.from_frame(table([("me", "tea", NOW, TOPIC.words[0]), *alike(*others)]))
        with new_watch(tmp_path / str(alone), crowd, policy=policy) as watch:
            assert bool(watch.step()) != alone
            said = [say_line(line, reading) for line, reading in watch.readings().items()]
        assert all("fewer than 5 people are no crowd" in one for one in said) == alone


def test_what_cannot_be_told_is_not_called_right(tmp_path: Path) -> None:
    crowd = Crowd.from_frame(table(base()))
    line = Line(measure="linkability", community="tea", target="money", at=9)
    options = AdvisorOptions(min_posts=2, space=SPACE)
    with new_watch(tmp_path, crowd, policy=WatchPolicy(lines=(line,)), options=options) as watch:
        assert [alert.crossed for alert in watch.step()] == [True]
    options = AdvisorOptions(min_posts=3, space=SPACE)
    with new_watch(tmp_path, crowd, policy=WatchPolicy(lines=(line,)), options=options) as watch:
        (alert,) = watch.step()
    assert alert.sentence == (
        "Cannot tell for your line on linkability from tea to money: it takes 3 posts of yours with words in each."
    )


# What must not be forgotten


def test_one_watch_at_a_time_and_one_person_a_state(tmp_path: Path) -> None:
    with AlertLog(tmp_path, "me") as log:
        log.decide([alert()])
        with pytest.raises(CrowdBusy, match="another watch"):
            AlertLog(tmp_path, "me")
    with pytest.raises(CrowdDamaged, match="another person"):
        AlertLog(tmp_path, "somebody else")
    with AlertLog(tmp_path, "me") as log:
        assert log.pending("a") == [alert()]
        log.delivered(alert(), "a")
        assert log.pending("a") == []
        assert log.pending("b") == [alert()]
        assert log.position == 1
    (tmp_path / "alerts.log").write_text("{}\nrubbish\n")
    with pytest.raises(CrowdDamaged, match="not readable"):
        AlertLog(tmp_path, "me")


KILLED_AT = """
import os, signal, sys
from pathlib import Path
fatal, calls = int(sys.argv[1]), 0

def dying(real, torn):
    def call(*arguments):
        global calls
        calls += 1
        if calls == fatal:
            torn(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments)
    return call

write, replace = os.write, Path.replace
os.write = dying(write, lambda file, data: write(file, data[: len(data) // 2]))
os.fsync = dying(os.fsync, lambda file: None)
Path.replace = dying(replace, lambda *paths: None)
sys.argv = ["incrowd", *sys.argv[2:]]
from incrowd.cli import main
main()
"""


def killed_at(point: int, *arguments: str | Path) -> int:
    command = [sys.executable, "-c", KILLED_AT, str(point), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.fixture
def followed(tmp_path: Path) -> tuple[Path, Path]:
    """A crowd, and a file whose posts cross lines back and forth."""
    crowd = Crowd.from_frame(table(base()), path=tmp_path / "crowd")
    posts: list[Post] = []
    for turn in range(3):
        posts += [
            ("ann", "tea", NOW + turn, "zebra " * 40**turn),
            ("bob", "tea", NOW + turn, "zebra lion " * 20**turn),
        ]
        posts += [(f"new{turn}{k}", "tea", NOW + turn, base()[0][3]) for k in range(2)]
        posts += [("me", "tea", NOW + turn, f"{TOPIC.words[0]} giraffe")]
    (tmp_path / "new.jsonl").write_text(as_lines(posts))
    return crowd.path, tmp_path / "new.jsonl"


def watch_arguments(crowd: Path, file: Path, folder: Path) -> list[str | Path]:
    folder.mkdir()
    lines = "".join(
        f'[[line]]\nmeasure = "anonymity"\ncommunity = "tea"\nbelow = {below}\n' for below in (2, 3, 4, 5, 6)
    )
    (folder / "watch.toml").write_text(f'{lines}[alerts]\njsonl = "alerts.jsonl"\ndesktop = "desktop"\n')
    return [
        "watch", crowd, "--user", "me", "--policy", folder / "watch.toml", "--state", folder / "state",
        "--follow", file, "--radius", "0.6", "--min-posts", "2", "--once",
    ]  # fmt: skip


def alerts_in(folder: Path) -> list[tuple[object, ...]]:
    found = [json.loads(line) for line in (folder / "alerts.jsonl").read_text().splitlines()]
    return [(one["id"], one["line"], one["crossed"], one["value"], one["position"]) for one in found]


def test_kill_9_at_any_moment_neither_loses_nor_repeats_an_alert(
    followed: tuple[Path, Path], tmp_path: Path
) -> None:
    crowd, file = followed
    undisturbed = watch_arguments(crowd, file, tmp_path / "undisturbed")
    assert killed_at(0, *undisturbed) == 0
    expected = alerts_in(tmp_path / "undisturbed")
    assert len(expected) >= 4
    tormented = watch_arguments(crowd, file, tmp_path / "tormented")
    deaths, point = 0, 1
    # Each life ends at a later step than the one before, so that every kind of step is cut short.
    while (code := killed_at(point, *tormented)) != 0:
        assert code == -signal.SIGKILL
        deaths, point = deaths + 1, point + 3
        assert deaths < 40
    assert deaths >= 4
    assert alerts_in(tmp_path / "tormented") == expected
    written = {path.name for path in (tmp_path / "tormented" / "desktop").glob("*.txt")}
    assert written == {f"incrowd-alert-{one[0]}.txt" for one in expected}


def test_looking_again_says_where_one_stands(
    followed: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = watch_arguments(*followed, tmp_path / "out")
    first, again = (
        [json.loads(line) for line in incrowd(capsys, *arguments, "--json").out.splitlines()]
        for _ in range(2)
    )
    assert len(first) > 1
    assert again == first[-1:]
    (state,) = again
    assert {line["line"] for line in state["state"]} >= {f"anonymity|tea|{n}" for n in range(2, 7)}
    assert all(line["value"] == state["state"][0]["value"] for line in state["state"])
    assert [line["crossed"] for line in state["state"]] == [
        line["value"] < line["at"] for line in state["state"]
    ]


def test_standard_input_is_kept_so_that_a_restart_knows_it(tmp_path: Path) -> None:
    crowd = Crowd.from_frame(table(base()), path=tmp_path / "crowd")
    arguments = watch_arguments(crowd.path, Path("-"), tmp_path / "out")[:-1]
    command = [sys.executable, "-c", "from incrowd.cli import main; main()", *map(str, arguments), "--json"]
    first = as_lines([("me", "tea", NOW, "zebra lion giraffe " * 30)])
    for number, given_lines in enumerate((first, first, as_lines([("ann", "tea", NOW, "kettle")]))):
        done = subprocess.run(command, input=given_lines, capture_output=True, text=True, check=True)
        printed = [json.loads(line) for line in done.stdout.splitlines()]
        if number == 0:
            assert len(printed) >= 4
        else:
            assert printed == []
    assert len(alerts_in(tmp_path / "out")) >= 4
    assert os.stat(tmp_path / "out" / "state" / "received.jsonl").st_mode & 0o077 == 0
