"""incrowd belief: how sure could somebody be of what you hid?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import (
    AsJson,
    AttributeChoices,
    CrowdFolder,
    FailAbove,
    Seed,
    TopicWords,
    exit_for_risk,
    in_groups,
    progress_bar,
    show,
    show_json,
    topic_words,
)

if TYPE_CHECKING:
    from incrowd.measures.belief.assess import PolicyCheck
    from incrowd.measures.belief.critical import CriticalSet

app = typer.Typer(no_args_is_help=True, help="How sure could somebody be of what you hid?")


@app.command()
@in_groups
def check(
    crowd: CrowdFolder,
    profile: Annotated[str, typer.Option("--profile", help="The person, by name.", show_default=False)],
    policy: Annotated[
        Path, typer.Option("--policy", help="What must stay hidden (TOML).", show_default=False)
    ],
    rules: Annotated[Path | None, typer.Option("--rules", help="What the adversary knows (TOML).")] = None,
    engine: Annotated[str, typer.Option("--engine", help="crowd (people like you) or network.")] = "crowd",
    adversary: Annotated[
        str, typer.Option("--adversary", help="stranger (does not know your row) or insider (does).")
    ] = "stranger",
    smoothing: Annotated[
        float | None,
        typer.Option(
            "--smoothing", help="How far people differ from those like them, 0 to 1; left out: fitted."
        ),
    ] = None,
    largest: Annotated[int, typer.Option("--largest", help="Search sets of up to so many attributes.")] = 4,
    text: Annotated[bool, typer.Option("--text", help="Also use what the person's words suggest.")] = False,
    topics: TopicWords = None,
    *,
    attributes: AttributeChoices,
    seed: Seed = 0,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Hold one profile against a policy: what is believed, what gives it away, what to withhold.

    The risk for --fail-above is the highest belief in anything the policy wants hidden.
    """
    from incrowd.crowd import Crowd
    from incrowd.measures.belief.assess import check_policy
    from incrowd.measures.belief.policy import load_policy
    from incrowd.measures.belief.rules import load_rules
    from incrowd.measures.belief.spec import BeliefOptions
    from incrowd.profiles.attributes import attribute_table

    opened = Crowd(crowd)
    user, table = opened.user(profile), None
    if opened.attributes().head(1).collect().height:  # a policy about links alone needs no attributes
        table = attributes.table(opened)
    words = topic_words(topics)
    options = BeliefOptions(
        engine=engine,  # type: ignore[arg-type]  # the value checks itself
        adversary=adversary,  # type: ignore[arg-type]
        smoothing=smoothing,
        largest=largest,
        text=text or words is not None,
        seed=seed,
    )
    truth = table.of(table.row(user)) if table is not None else {}
    wanted = load_policy(policy, truth)
    known = load_rules(rules, table if table is not None else attribute_table(opened)) if rules else ()
    with progress_bar("weighing what is known"):
        result = check_policy(opened, user, wanted, known, options, table, words)
    show_json(result.to_dict()) if as_json else _show(result)
    exit_for_risk(result.worst, fail_above)


@app.command()
@in_groups
def rules(
    crowd: CrowdFolder,
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the rules (TOML).")] = None,
    min_support: Annotated[int, typer.Option("--min-support", help="Leave out rules of fewer people.")] = 10,
    min_confidence: Annotated[float, typer.Option("--min-confidence", help="Leave out weaker rules.")] = 0.6,
    *,
    attributes: AttributeChoices,
    as_json: AsJson = False,
) -> None:
    """Learn which attribute suggests which other one, with support and confidence."""
    from incrowd.crowd import Crowd
    from incrowd.measures.belief.rules import learn_rules, rules_toml

    table = attributes.table(Crowd(crowd))
    found = learn_rules(table, min_support=min_support, min_confidence=min_confidence)
    if out is not None:
        out.write_text(rules_toml(found), encoding="utf-8")
    if as_json:
        show_json(
            [{"rule": one.sentence(), "support": one.support, "confidence": one.confidence} for one in found]
        )
        return
    show(f"{len(found):,} rules from {len(table.codes):,} people." + (f" Written to {out}." if out else ""))
    for one in found[:20]:
        show(one.sentence())


def _show(result: PolicyCheck) -> None:
    from rich.table import Table

    show(result.sentence())
    table = Table("attribute", "value", "believed", "before", "allowed", "")
    for one in result.all_judged:
        said = "holds" if one.satisfied else "undefined" if one.posterior != one.posterior else "violated"
        table.add_row(
            one.attribute + (f" in {one.profile}" if one.profile else ""),
            one.value,
            f"{one.posterior:.1%}",
            f"{one.prior:.1%}",
            f"{one.sigma:.1%}",
            said,
        )
    show(table)
    for part in (result, *result.profiles.values()):
        _show_sets(part)
    for one_more in result.what_if[:3]:
        show(one_more.sentence()[:1].upper() + one_more.sentence()[1:] + ".")
    if result.epsilon:
        name, moved = max(result.epsilon.items(), key=lambda pair: pair[1])
        show(
            f"Of all you show, your {name} could least be guessed from the rest: withholding it would move a "
            f"stranger's belief about it by {moved:.0%} (0 %: the rest tells it anyway; 100 %: nothing else does). "
            f"The definition behind this calls it ε."
        )


def _show_sets(result: PolicyCheck) -> None:
    whole, where = result.repairing, "".join({f" of {one.profile}" for one in result.judged if one.profile})
    for found in whole.sets[:5]:
        show(f"Withholding {_listed(found)} repairs the policy{where} ({found.loss:.1f} bits less told).")
    if whole.greedy is not None:
        show(
            f"Withholding {_listed(whole.greedy)} repairs the policy{where}; the smallest such set may have "
            f"{whole.gap} fewer."
        )
    if not whole.searched or whole.sets or whole.greedy is not None:
        return
    show(f"Withholding does not repair the whole policy{where}.")
    for found in result.critical.sets[:5]:
        names = ", ".join(dict.fromkeys(result.asked[number] for number in found.requirements))
        show(f"Withholding {_listed(found)} satisfies what it asks about: {names} ({found.loss:.1f} bits).")


def _listed(found: CriticalSet) -> str:
    from incrowd.measures.belief.assess import worded

    return ", ".join(map(worded, found.attributes))
