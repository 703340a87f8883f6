"""incrowd recognition: how few of your posts, read elsewhere, it takes to recognise you."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import (
    AsJson,
    FailAbove,
    Memory,
    Seed,
    exit_for_person,
    exit_for_risk,
    parse_memory,
    progress_bar,
    show,
    show_json,
)
from incrowd.cli.options import Community, CrowdFolder

if TYPE_CHECKING:
    from incrowd.measures.recognition.assess import CommunityRecognition, MemberRecognition


def recognition(
    crowd: CrowdFolder,
    community: Community,
    user: Annotated[
        str | None, typer.Option("--user", help="One member, by name: how few posts it takes.")
    ] = None,
    draws: Annotated[int, typer.Option("--draws", help="How often posts are drawn from each history.")] = 6,
    judged: Annotated[
        int, typer.Option("--judged", help="Try out at most so many people for each number of posts.")
    ] = 1_500,
    candidates: Annotated[
        int, typer.Option("--candidates", help="Compare with at most so many people; more are sampled.")
    ] = 5_000,
    seed: Seed = 0,
    memory: Memory = "1GiB",
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Find out how few posts, read elsewhere, it takes to recognise a member of a community.

    The later half of everybody's posts is held against the earlier half. The risk for --fail-above is the
    probability of being named after three posts: of the person or, without --user, of a member on average.
    """
    from incrowd.crowd import Crowd
    from incrowd.measures.recognition.assess import (
        community_recognition,
        member_recognition,
        recognition_assessment,
    )
    from incrowd.measures.recognition.spec import DEFAULT_KNOWN, RecognitionOptions

    options = RecognitionOptions(
        community=community,
        draws=draws,
        judged=judged,
        candidates=candidates,
        seed=seed,
        memory=parse_memory(memory),
    )
    opened = Crowd(crowd)
    person = opened.user(user) if user else None
    with progress_bar("holding later posts against earlier ones"):
        result = community_recognition(opened, options, keep=person)
        member = member_recognition(result, person) if person is not None else None
    if as_json:
        show_json(result.to_dict() | (member.to_dict() if member is not None else {}))
    else:
        _show(result, member)
    if member is not None:
        exit_for_person([recognition_assessment(member, options, opened.data_hash)], fail_above)
        return
    found = result.to_dict()["posts_known"][str(DEFAULT_KNOWN)]["found"]
    exit_for_risk(float("nan") if found is None else found, fail_above)


def _show(result: CommunityRecognition, member: MemberRecognition | None) -> None:
    from rich.table import Table

    from incrowd.result import say_percent

    if member is not None:
        show(f"It takes, to recognise you half of the time in {member.community}: {member.say_takes()}.")
    else:
        show(result.sentence())
    own = ["you", "90 % interval"] if member is not None else []
    table = Table("posts read elsewhere", "members tried", "recognised", "predicted", *own)
    for n, part in result.to_dict()["posts_known"].items():
        shares = [
            say_percent(part[name]) if part["people"] else "cannot tell" for name in ("found", "predicted")
        ]
        mine = []
        if member is not None and int(n) in member.probability:
            low, high = member.interval[int(n)]
            mine = [say_percent(member.probability[int(n)]), f"{say_percent(low)} to {say_percent(high)}"]
        table.add_row(n, f"{part['people']:,}", *shares, *mine)
    show(table)
