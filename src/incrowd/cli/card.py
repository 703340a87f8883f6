"""`incrowd card`: a crowd as a small file that is safe to publish."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import (
    AsJson,
    CrowdFolder,
    FailAbove,
    Memory,
    Seed,
    exit_for_risk,
    parse_memory,
    progress_bar,
    show,
    show_json,
    writable,
)

if TYPE_CHECKING:
    from incrowd.cards.audit import Audit
    from incrowd.cards.card import Card

app = typer.Typer(
    no_args_is_help=True, help="Make, read and attack crowd cards: statistics that replace a crowd."
)

Communities = Annotated[
    list[str] | None,
    typer.Option("--community", help="A community; may be given again.", show_default="everybody as one"),
]
LeastPeople = Annotated[int, typer.Option("--k", min=2, help="List a word only if so many people use it.")]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", help="Differentially private for every person, with this much privacy loss."),
]
Delta = Annotated[float, typer.Option("--delta", help="With --epsilon: the probability that it fails.")]
KeepStopWords = Annotated[bool, typer.Option("--keep-stopwords", help="Count words such as 'the', too.")]
Tokens = Annotated[str, typer.Option("--tokens", help="How text becomes words: full or simple.")]


@app.command()
def make(
    crowd: CrowdFolder,
    out: Annotated[
        Path, typer.Option("--out", callback=writable, help="The card to write.", show_default=False)
    ],
    community: Communities = None,
    k: LeastPeople = 10,
    epsilon: Epsilon = None,
    delta: Delta = 1e-6,
    keep_stopwords: KeepStopWords = False,
    tokens: Tokens = "full",
    memory: Memory = "1GiB",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Make a card: what strangers need to measure themselves against a community, and nobody's words.

    Communities of fewer than 100 people are refused. Without --epsilon the numbers are blurred, and
    `incrowd card audit` says how well that hides who is in it; with --epsilon it is proved.
    """
    from incrowd.cards.make import CardOptions
    from incrowd.crowd import Crowd
    from incrowd.measures.card_maker import make_card
    from incrowd.text.options import TextOptions

    options = CardOptions(
        communities=tuple(community or ()),
        k=k,
        epsilon=epsilon,
        delta=delta,
        text=TextOptions(tokens=tokens, keep_stopwords=keep_stopwords),  # type: ignore[arg-type]
        memory=parse_memory(memory),
        seed=seed,
    )
    with progress_bar("reading posts") as progress:
        made = make_card(Crowd(crowd), options, progress)
        made.write(out)
    if as_json:
        show_json({**_facts(made), "card": str(out), "bytes": out.stat().st_size})
        return
    show(f"{out}: {out.stat().st_size / 1024:,.0f} KiB")
    _show(made)


@app.command()
def info(
    card: Annotated[
        Path | None,
        typer.Argument(metavar="CARD", help="The card to read.", show_default="the one inside incrowd"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what is in a card, how it was made safe, and how far it can be trusted."""
    from incrowd.cards.card import Card
    from incrowd.cards.default import NAME, default_bytes, default_card

    read = default_card() if card is None else Card.read(card)
    if as_json:
        size = len(default_bytes()) if card is None else card.stat().st_size
        show_json({**_facts(read), "card": NAME if card is None else str(card), "bytes": size})
    else:
        _show(read)


@app.command()
def audit(
    crowd: CrowdFolder,
    community: Communities = None,
    cards: Annotated[int, typer.Option("--cards", min=2, help="Cards to make and attack.")] = 40,
    planted: Annotated[
        int,
        typer.Option("--planted", min=4, help="People planted for each card, half of them left out of it."),
    ] = 40,
    k: LeastPeople = 10,
    epsilon: Epsilon = None,
    delta: Delta = 1e-6,
    memory: Memory = "1GiB",
    seed: Seed = 0,
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Attack cards of a crowd: can somebody tell who is in them?

    Cards are made of one half of a community, with and without planted people; the attacker has the other half to
    compare with. The risk for --fail-above is the largest advantage over guessing.
    """
    from incrowd.cards.audit import audit_community
    from incrowd.cards.make import EVERYBODY, CardOptions
    from incrowd.cards.members import read_members
    from incrowd.crowd import Crowd

    options = CardOptions(
        communities=tuple(community or ()),
        k=k,
        epsilon=epsilon,
        delta=delta,
        memory=parse_memory(memory),
        seed=seed,
    )
    opened = Crowd(crowd)
    found: list[Audit] = []
    with progress_bar("reading posts") as progress:
        for name in community or [EVERYBODY]:
            wanted = [name] if community else None
            members = read_members(opened, wanted, options.text, memory=options.memory, progress=progress)
            found.append(
                audit_community(
                    members, options, name, cards=cards, planted=planted, seed=seed, progress=progress
                )
            )
    if as_json:
        show_json({"audits": [one.to_dict() for one in found]})
    else:
        _show_audits(found)
    exit_for_risk(max(one.worst for one in found), fail_above)


@app.command()
def page(
    out: Annotated[
        Path, typer.Option("--out", callback=writable, help="The page to write.", show_default=False)
    ],
    card: Annotated[
        Path | None, typer.Argument(metavar="CARD", help="The card.", show_default="the one inside incrowd")
    ] = None,
    community: Communities = None,
    title: Annotated[str, typer.Option("--title", help="What the page is called.")] = (
        "How few posts does it take to find you?"
    ),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Write a page that anybody can host: drop an export, and the browser measures it. Nothing leaves it.

    One file, without a script of anybody else; its security policy forbids every request.
    """
    from incrowd.cards.card import Card
    from incrowd.cards.default import default_card
    from incrowd.report.card_page import card_page
    from incrowd.report.page import write

    read = default_card() if card is None else Card.read(card)
    with progress_bar("making people up"):
        write(out, card_page(read, community or (), title, seed), mode=0o644)
    size = out.stat().st_size
    if as_json:
        show_json({"page": str(out), "bytes": size, "communities": list(community or read.communities)})
    else:
        show(f"{out}: {size / 2**20:.1f} MiB. Open it in a browser, or put it on any web server.")


def _facts(card: Card) -> dict[str, Any]:
    sections = sorted(
        {name.split(".")[0] for part in (*card.parts, card.crowd) for name in part if "." in name}
    )
    return {**card.head, "sections": sections}


def _show(card: Card) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from incrowd.report.card_info import described

    for heading, sentences in described(card):
        show(Text(heading, style="bold"))
        for sentence in sentences:
            show(Padding(Text(sentence), (0, 0, 0, 2)))


def _show_audits(audits: list[Audit]) -> None:
    from rich.table import Table

    table = Table("community", "cards", "people in each", "who", "attacked", "advantage", "95 % interval")
    for one in audits:
        for who, part in one.attacks.items():
            low, high = part.interval
            table.add_row(
                one.community,
                str(one.cards),
                f"{one.members:,}",
                who,
                f"{part.people:,}",
                f"{part.advantage:.3f}",
                f"{low:.3f} to {high:.3f}",
            )
    show(table)
    show(
        "Advantage: how much more often the attacker says 'in the card' of those who are. 0 is guessing, 1 certainty."
    )
