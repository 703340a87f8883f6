"""What a draft is said to change is what the measures say after it was posted."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from incrowd.advisor.draft import _Tried, _worth_it, draft
from incrowd.advisor.draft_answer import DraftCheck, DraftWord, Suggestion
from incrowd.cli import main
from incrowd.cli.draft import _read
from incrowd.crowd import Crowd
from incrowd.distances.profile_index import NO_WORDS as NOBODY
from incrowd.distances.profile_index import Profile, distance
from incrowd.distances.reference import jensen_shannon
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.anonymity.assess import community_anonymity, member_anonymity
from incrowd.measures.anonymity.spec import AnonymityOptions
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.space import WordLists, default_space
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.linkability.assess import assess_person
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.protocol import AdvisorOptions, Effect, Level, ThemeName, WordShare
from incrowd.result import Direction

WORDS = ["kettle", "teapot", "sugar", "lemon", "cup", "debt", "loan", "sadness", "zebra"]
WEEK = 7 * 86_400
NOW = 1_700_000_000
OPTIONS = AdvisorOptions(radius=0.7, min_posts=2)
SPACE = default_space()
LEVELS: dict[str, Any] = {
    "theme": ThemeName.EXPOSED,
    "direction": Direction.HIGHER_IS_SAFER,
    "level_before": Level.WATCH,
    "level_after": Level.WATCH,
}
Post = tuple[str, str, int | None, str]


def posts_of_everybody() -> list[Post]:
    """Eight people in two communities, `me` among them; nobody writes quite the same."""
    found: list[Post] = []
    for number in range(8):
        user = "me" if number == 5 else f"user{number}"
        for community in ("tea", "money"):
            for week in range(1 + number % 3):
                words = [WORDS[(number * (week + 2) + k * k) % len(WORDS)] for k in range(4 + week)]
                found.append((user, community, NOW - week * WEEK, " ".join(words)))
    return found


def crowd_of(posts: list[Post]) -> Crowd:
    return Crowd.from_frame(pl.DataFrame(posts, schema=["user", "community", "time", "text"], orient="row"))


@cache
def everybody() -> Crowd:
    return crowd_of(posts_of_everybody())


def numbers(check: DraftCheck) -> dict[str, Effect]:
    return {change.subject: change for change in check.changes}


def from_scratch(posts: list[Post], community: str, other: str) -> dict[str, tuple[float, int | None]]:
    """Import the posts into a new crowd and run the measures on it."""
    crowd = crowd_of(posts)
    measured: dict[str, tuple[float, int | None]] = {}
    options = AnonymityOptions(community=community, radius=OPTIONS.radius)
    found = member_anonymity(community_anonymity(crowd, options), "me")
    measured[f"you in {community}"] = found.value, found.crowd_rank
    for source, target in ((community, other), (other, community)):
        pair = LinkabilityOptions(source=source, target=target, min_posts=OPTIONS.min_posts)
        measured[f"from {source} to {target}"] = assess_person(crowd, pair, "me").value, None
    scored = score(crowd, SPACE, ExposureOptions(community=community))
    row = scored.place("me")
    for topic in SPACE.topics.sensitive:
        measured[f"topic {topic} in {community}"] = float(scored.ranks(topic)[row]), None
    return measured


def assert_same(changes: tuple[Effect, ...], measured: dict[str, tuple[float, int | None]]) -> None:
    assert {change.subject for change in changes} == set(measured)
    for change in changes:
        assert (change.after, change.rank_after) == measured[change.subject], change.subject


some_text = st.lists(st.sampled_from([*WORDS, "brandnew", "the", "Debt."]), min_size=1, max_size=9).map(
    " ".join
)


@settings(max_examples=6, phases=[Phase.generate])  # every example imports a crowd: too slow to shrink
@given(text=some_text, week=st.integers(-2, 2), community=st.sampled_from(["tea", "money"]))
def test_a_promise_equals_posting_it_and_measuring_again(text: str, week: int, community: str) -> None:
    other = "money" if community == "tea" else "tea"
    when = NOW + week * WEEK + 17
    check = draft(everybody(), "me", community, text, options=OPTIONS, time=when)
    assert_same(
        check.changes, from_scratch([*posts_of_everybody(), ("me", community, when, text)], community, other)
    )
    for suggestion in check.suggestions[:1]:
        posts = [*posts_of_everybody(), ("me", community, when, suggestion.text)]
        assert_same(suggestion.changes, from_scratch(posts, community, other))


def test_before_is_what_the_measures_say_now() -> None:
    check = draft(everybody(), "me", "tea", "zebra", options=OPTIONS, time=NOW)
    measured = from_scratch(posts_of_everybody(), "tea", "money")
    for change in check.changes:
        assert (change.before, change.rank_before) == measured[change.subject], change.subject


def test_a_newcomer_has_no_crowd_before_and_one_after() -> None:
    posts = [*posts_of_everybody(), ("new", "money", NOW, "debt loan")]
    crowd = crowd_of(posts)
    check = draft(crowd, "new", "tea", "kettle sugar", options=OPTIONS, time=NOW)
    here = numbers(check)["you in tea"]
    assert math.isnan(here.before)
    assert here.of_after == here.of_before + 1 == 9
    again = crowd_of([*posts, ("new", "tea", NOW, "kettle sugar")])
    result = community_anonymity(again, AnonymityOptions(community="tea", radius=OPTIONS.radius))
    assert here.after == member_anonymity(result, "new").value
    assert any("money: 1 of your posts" in line for line in check.not_compared)


def test_too_few_posts_cannot_be_linked_and_say_so() -> None:
    check = draft(everybody(), "me", "tea", "zebra", options=AdvisorOptions(min_posts=10), time=NOW)
    assert not [change for change in check.changes if change.measure == "linkability"]
    assert any("money" in line and "10" in line for line in check.not_compared)


def test_a_word_nobody_else_uses_stands_out_most() -> None:
    check = draft(everybody(), "me", "tea", "sugar sugar xylophone xylophone", options=OPTIONS, time=NOW)
    word = next(one for one in check.words if one.word == "xylophone")
    assert word.facts["others"] == 0
    assert word.facts["stands_out"] == max(one.facts["stands_out"] for one in check.words) > 0
    assert word.facts["links"] == 0


def test_a_word_of_a_topic_names_the_topic() -> None:
    topic = SPACE.topics.topics[0]
    check = draft(
        everybody(), "me", "tea", f"{topic.words[0]} {topic.words[1]} kettle", options=OPTIONS, time=NOW
    )
    assert {one.word for one in check.words if one.facts["topic"]} >= set(topic.words[:2])
    change = numbers(check)[f"topic {topic.name} in tea"]
    assert change.score_after > change.score_before


def test_a_suggestion_leaves_out_what_it_says() -> None:
    check = draft(everybody(), "me", "tea", "Kettle, zebra! Then a xylophone.", options=OPTIONS, time=NOW)
    for suggestion in check.suggestions:
        assert suggestion.gain > 0
        assert suggestion.left_out
        assert not set(suggestion.left_out) & set(
            suggestion.text.lower().replace(",", "").replace(".", "").split()
        )


def test_what_leaves_out_more_for_no_more_is_not_suggested() -> None:
    def tried(gain: float, *left_out: str) -> _Tried:
        suggestion = Suggestion(what="", left_out=left_out, text="", changes=(), gain=gain)
        return _Tried(suggestion, named=0, severity=0, people=math.nan)

    best, more, half, little = tried(0.42, "a"), tried(0.421, "a", "b"), tried(0.2, "c"), tried(0.05, "d")
    assert _worth_it([best, more, half, little], math.nan) == [best, half]
    assert _worth_it([little], math.nan) == [little], "it is all that helps"
    crowd = replace(little, people=60.0)
    assert _worth_it([best, crowd], 30.0) == [best, crowd], "it leaves twice as many people"
    assert _worth_it([], math.nan) == []


def counted(subject: str, before: float, after: float) -> Effect:
    return Effect(
        measure="anonymity", subject=subject, adversary="a reader", unit="people", **LEVELS,
        before=before, after=after, of_before=90, of_after=90, risk_before=1 / before, risk_after=1 / after,
    )  # fmt: skip


def test_a_suggestion_shows_what_it_changes_and_what_it_leaves_worse() -> None:
    whole = (counted("helped", 30, 10), counted("still worse", 30, 12), counted("no matter", 30, 30))
    rest = (counted("helped", 30, 28), counted("still worse", 30, 12), counted("no matter", 30, 30))
    suggestion = Suggestion(what="leave it out", left_out=("it",), text="", changes=rest, gain=0.1)
    check = DraftCheck(
        community="tea", changes=whole, words=(), suggestions=(suggestion,), not_compared=(), assumptions={}
    )
    assert [one.subject for one in check.shown_of(suggestion)] == ["helped", "still worse"]


def test_a_draft_that_makes_nothing_worse_does_not_hide_what_is_bad_already() -> None:
    bad = {"level_before": Level.AT_RISK, "level_after": Level.AT_RISK}
    changes = (replace(counted("from tea to money", 1, 1), **bad), counted("you in tea", 40, 40))
    check = DraftCheck(
        community="tea", changes=changes, words=(), suggestions=(), not_compared=(), assumptions={}
    )
    assert "none of the 2 answers looked at worse, but 1 is at risk already" in check.sentence()
    hidden = replace(check, changes=changes[1:])
    assert hidden.sentence() == "Posting this in tea does not make the one answer looked at worse."


@pytest.mark.parametrize("points_to", ["debts", ""])
def test_a_topic_at_risk_already_is_named_though_another_answer_gets_worse(points_to: str) -> None:
    debts = Effect(
        measure="exposure", subject="topic debts in tea", adversary="someone", unit="rank", before=1.0, after=1.0,
        **LEVELS | {"level_before": Level.AT_RISK, "level_after": Level.AT_RISK},
        of_before=9, of_after=9, score_before=0.3, score_after=0.6, risk_before=0.7, risk_after=0.7,
        success_before=0.72, success_after=0.72,
    )  # fmt: skip
    topic = {f"topic {points_to} in tea": points_to} if points_to else {}
    word = DraftWord(word="loan", shares=(WordShare(weight=0.6, points_to=topic),))
    check = DraftCheck(
        community="tea", changes=(counted("you in tea", 40, 30), debts), words=(word,), suggestions=(),
        not_compared=(), assumptions={},
    )  # fmt: skip
    assert debts.at_risk_already
    assert "makes 1 of 2 answers worse, you in tea: 40 people → 30 people." in check.sentence()
    assert ("points to debts, where you are at risk already" in check.sentence()) == bool(points_to)
    assert check.risk == 0.7
    new = replace(debts, risk_before=0.0, success_before=0.02, level_before=Level.WELL_HIDDEN)
    assert new.worse
    assert not new.at_risk_already
    assert new.short_sentence() == "topic debts in tea: 2% → 72%"


def test_the_papers_numbers_decide_nothing_about_a_draft() -> None:
    paper = replace(counted("you in tea", 40, 1), decides=False)
    check = DraftCheck(
        community="tea", changes=(paper, counted("from tea to money", 40, 40)), words=(), suggestions=(),
        not_compared=(), assumptions={},
    )  # fmt: skip
    assert check.risk == 1 / 40
    assert [one.subject for one in check.shown] == ["from tea to money"]
    assert "does not make the one answer looked at worse" in check.sentence()


def test_topics_the_draft_points_to_are_listed_though_they_stay() -> None:
    posts = [*posts_of_everybody(), *(("me", "tea", NOW - week * WEEK, "debt loan") for week in range(3))]
    check = draft(crowd_of(posts), "me", "tea", "debt loan", options=OPTIONS, time=NOW)
    listed = {change.subject: change for change in check.shown}
    assert not listed["topic debts in tea"].moves


def test_everyday_words_point_to_no_topic() -> None:
    text = "I was diagnosed with HIV last year and work at the bakery"
    points = {
        one.word: bool(one.points_to) for one in draft(everybody(), "me", "tea", text, options=OPTIONS).words
    }
    assert points["hiv"]
    assert not points["work"]
    assert not points["year"]


def test_a_crowd_of_one_reassures_nobody() -> None:
    alone = [post for post in posts_of_everybody() if post[0] == "me"]
    check = draft(crowd_of(alone), "me", "tea", "kettle zebra debt", options=OPTIONS, time=NOW)
    assert all(math.isnan(change.after) for change in check.changes)
    assert check.sentence().startswith("Cannot tell what this post in tea would change: 1 person is there")
    assert {change.reason.partition(":")[0] for change in check.changes} == {"small_crowd"}
    assert math.isnan(check.risk)
    assert check.to_dict()["risk"] is None


def test_a_large_crowd_that_gets_much_smaller_is_said() -> None:
    check = DraftCheck(
        community="tea", changes=(counted("what you have told", 1_500_000, 51_000),), words=(), suggestions=(),
        not_compared=(), assumptions={},
    )  # fmt: skip
    assert check.worst is None
    said = "fewer people to hide among: what you have told: 1,500,000 people → 51,000 people."
    assert said in check.sentence()
    little = replace(check, changes=(counted("what you have told", 1_500_000, 900_000),))
    assert "fewer" not in little.sentence()


def test_what_nobody_could_tell_before_is_not_called_gone() -> None:
    unknown = replace(counted("you in tea", 40, 40), before=math.nan, after=math.nan)
    assert unknown.said_after == unknown.said_before == "cannot tell"
    assert replace(unknown, before=40.0).said_after == "no profile left"


def test_a_fact_that_leaves_a_large_crowd_much_smaller_gets_a_wording_too(tmp_path: Path) -> None:
    rows = [
        {"user": "me", "community": "tea", "text": f"a kettle and a teapot, number {n}"} for n in range(12)
    ]
    export = tmp_path / "export.jsonl"
    export.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    check = draft(export, "me", "Reddit", "I am 34. I work as a nurse.", options=OPTIONS)
    told = next(change for change in check.changes if change.measure == "disclosures")
    assert not told.worse
    assert told.leaves_fewer
    coarser = next(one for one in check.suggestions if "34" not in one.text and "nurse" not in one.text)
    assert next(one.after for one in coarser.changes if one.measure == "disclosures") >= 2 * told.after


def test_beside_posts_without_a_time_a_draft_has_none_either(tmp_path: Path) -> None:
    sad = "I was diagnosed with depression and sertraline helped me a lot, number"
    rows = [{"user": "me", "community": "tea", "text": f"{sad} {number}"} for number in range(12)]
    export = tmp_path / "export.jsonl"
    export.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    check = draft(export, "me", "Reddit", "I have a debt and a loan that I can not pay back", options=OPTIONS)
    topics = [change for change in check.changes if change.unit == "rank"]
    assert topics
    assert all(math.isnan(change.after) and "no time" in change.reason for change in topics)


def test_topics_nobody_hears_of_are_not_listed() -> None:
    posts = [*posts_of_everybody(), ("new", "money", NOW, "teapot sugar")]
    long_enough = "I have a debt and a loan that I can not pay back, and now I owe them more"
    check = draft(crowd_of(posts), "new", "tea", long_enough, options=OPTIONS, time=NOW)
    ranks = [change for change in check.shown if change.unit == "rank"]
    assert ranks
    assert all(change.score_after > 0 for change in ranks)
    assert len(ranks) < sum(change.unit == "rank" for change in check.changes)


def test_words_without_a_token_change_no_words() -> None:
    check = draft(everybody(), "me", "tea", "the the", options=OPTIONS, time=NOW)
    here = numbers(check)["you in tea"]
    assert here.before == here.after
    assert check.words == ()


@pytest.mark.parametrize("text", ["", " \n", "a" * 200_000])
def test_a_draft_no_import_would_take_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="draft"):
        draft(everybody(), "me", "tea", text, options=OPTIONS)


def test_unknown_people_and_communities_are_refused_without_naming_anybody() -> None:
    with pytest.raises(NotInCrowd, match="nobody of that name") as caught:
        draft(everybody(), "nobody-here", "tea", "kettle", options=OPTIONS)
    assert "user0" not in str(caught.value)
    with pytest.raises(NotInCrowd, match="it has: "):
        draft(everybody(), "me", "coffee", "kettle", options=OPTIONS)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(WORDS), min_size=1), st.lists(st.sampled_from(WORDS), min_size=1))
def test_the_distance_of_two_profiles_is_the_reference(a: list[str], b: list[str]) -> None:
    p, q = (np.array([words.count(word) / len(words) for word in WORDS]) for words in (a, b))
    expected = float(jensen_shannon(p, q))
    assert distance(Profile.of_words(a), Profile.of_words(b)) == pytest.approx(expected, abs=1e-12)
    assert distance(Profile.of_words(a), Profile.of_words(a)) == 0.0
    assert math.isnan(distance(Profile.of_words(a), NOBODY))


@settings(max_examples=30)
@given(st.lists(st.sampled_from(SPACE.words[:12]), max_size=8))
def test_one_post_has_the_very_similarity_it_has_among_others(words: list[str]) -> None:
    places = [SPACE.words.index(word) for word in words]
    one = WordLists(np.array(places, np.int32), np.array([0, len(places)], np.int64))
    two = WordLists(np.array(places * 2, np.int32), np.array([0, len(places), 2 * len(places)], np.int64))
    assert SPACE.similarities(one)[0].tolist() == SPACE.similarities(two)[1].tolist()


def test_the_command_prints_numbers_words_and_what_to_leave_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    crowd = crowd_of(posts_of_everybody())
    base = ["incrowd", "draft", str(crowd.path), "--user", "me", "--community", "tea", "--min-posts", "2"]
    monkeypatch.setattr(sys, "argv", [*base, "zebra xylophone debt"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    printed = capsys.readouterr().out
    for part in ("topic debts in tea", "now", "level", "xylophone"):
        assert part in printed
    (tmp_path / "draft.txt").write_text("My name is Jane Doe, write to jane.doe@example.org")
    monkeypatch.setattr(
        sys, "argv", [*base, "--file", str(tmp_path / "draft.txt"), "--json", "--fail-above", "0.5"]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    plain = json.loads(capsys.readouterr().out)
    assert {"changes", "words", "suggestions", "not_compared", "sentence", "risk"} <= set(plain)
    assert not any("--thorough" in line for line in plain["not_compared"])  # unknown would not be safe


def test_a_prepared_draft_loads_nothing_heavy() -> None:
    crowd = crowd_of(posts_of_everybody())
    draft(crowd, "me", "tea", "zebra", options=AdvisorOptions())
    code = (
        "import sys; sys.argv = ['incrowd', 'draft', sys.argv[1], '--user', 'me', '--community', 'tea', 'zebra', "
        "'--json']\n"
        "from incrowd.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('polars', 'duckdb', 'scipy', 'numba', 'pyarrow') if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(crowd.path)], capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"
    assert json.loads(done.stdout)["community"] == "tea"


def test_nobody_else_is_in_the_answer() -> None:
    others = [post for post in posts_of_everybody() if post[0] != "me"]
    marked = [(f"Secret{user}", where, when, f"{text} mark{user}") for user, where, when, text in others]
    posts = [*marked, *(post for post in posts_of_everybody() if post[0] == "me")]
    check = draft(crowd_of(posts), "me", "tea", "kettle zebra", options=OPTIONS, time=NOW)
    printed = json.dumps(check.to_dict()).lower()
    assert "secret" not in printed
    assert "markuser" not in printed


def test_the_name_of_a_file_is_not_taken_for_a_draft(tmp_path: Path) -> None:
    draft = tmp_path / "draft.txt"
    draft.write_text("I live in a house.")
    with pytest.raises(InputError, match="is a file, and would be checked as the draft"):
        _read(str(draft), None)
    assert _read(None, draft) == "I live in a house."
    assert _read("I live in a house. " * 500, None).startswith("I live")
