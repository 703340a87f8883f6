"""The crowd report as one offline page: what a data officer reads, prints and keeps. Rows first, then the page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from incrowd.report.page import chart_html, page, table_html
from incrowd.study.figures import Cell, Table

if TYPE_CHECKING:
    from incrowd.advisor.crowd_report import CrowdReport
    from incrowd.measures.crowd_rates import LevelRates, People, Spread

STYLE = """
.verdict { font-size: 1.15rem; font-weight: 600; }
td { overflow-wrap: break-word; }
dl.facts { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .6rem 0; }
dl.facts dt { color: var(--soft); } dl.facts dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 34rem) { dl.facts { grid-template-columns: 1fr; } dl.facts dd { margin-bottom: .4rem; } }
"""


def crowd_report_page(report: CrowdReport) -> str:
    """Return the whole page."""
    title = "How well this crowd hides"
    body = [
        f"<h1>{title}</h1>",
        f'<p class="verdict">{escape(report.sentence())}</p>',
        f'<p class="lead">{escape(report.whom())} Totals only. {escape(report.rounding())}</p>',
        "<section><h2>How many people are at risk, and of what</h2>",
        table_html(level_table(report)),
        "</section>",
        "<section><h2>The three risks of data-protection authorities</h2>",
        table_html(threat_table(report)),
        "</section>",
    ]
    if report.spreads:
        body += [
            "<section><h2>For researchers: the papers' own numbers, of everybody</h2>",
            f'<p class="note">{PAPERS}</p>',
            chart_html(report.figure),
        ]
        body += [_spread(report, one) for one in report.spreads]
        body.append("</section>")
    if report.communities:
        body += [
            "<section><h2>Communities where few others write alike</h2>",
            table_html(community_table(report)),
            "</section>",
        ]
    if report.topics:
        body += ["<section><h2>Sensitive topics</h2>", table_html(topic_table(report)), "</section>"]
    body.append(_not_measured(report))
    body.append(_fine_print(report))
    return page(title, "\n".join(body), data=report.to_dict(), style=STYLE)


PAPERS = (
    "How many others write alike, rate alike or fit, whoever looks: what the papers count. They decide no level: who "
    "wrote little has few who write alike, and is hard to recognise all the same."
)


def level_table(report: CrowdReport) -> Table:
    """Return one row per question, the verdict last."""
    rows = [_level_row(one.question, one) for one in (*report.levels.questions, report.levels.overall)]
    return Table(
        title="Share of people, of those for whom it could be told",
        columns=("what is the case", "at risk", "at risk or watch", "could be told for"),
        rows=tuple(rows),
        note=(
            "At risk: the plausible adversary of a question (who has read three posts, knows three items, or has read "
            "both communities) would be right about somebody more often than not. Watch: more than 1 time in 10. "
            "The same rule as for one person."
        ),
    )


def threat_table(report: CrowdReport) -> Table:
    """Return one row per risk."""
    rows = [(one.name, *_level_row(one.question, one)) for one in report.levels.threats]
    return Table(
        title="The same people, by the names of data-protection authorities",
        columns=("risk", "what is the case", "at risk", "at risk or watch", "could be told for"),
        rows=tuple(rows),
        note=(
            "The names are those of the Article 29 Working Party's opinion on anonymisation techniques (WP216). "
            "Lower is better. “–” does not mean that there is no risk: it could not be told."
        ),
    )


def _level_row(what: str, one: LevelRates) -> tuple[Cell, ...]:
    told = f"{one.told.words()} of {one.told.of:,}"
    return what, one.say(one.at_risk), one.say(one.close), told


def below_table(one: Spread) -> Table:
    """Return the people below each set size."""
    rows = tuple((f"below {size}", people.words(), _percent(_share(people))) for size, people in one.below)
    return Table(
        title=f"{one.name[:1].upper()}{one.name[1:]}: {one.people:,} {one.who}",
        columns=("people to hide among", "people", "share"),
        rows=rows,
    )


def community_table(report: CrowdReport) -> Table:
    """Return the worst communities."""
    rows = tuple(
        (
            one.community,
            one.members,
            one.alone.words(),
            one.small.words(),
            _percent(_share(one.small)),
            int(one.median) if one.median.is_integer() else one.median,
        )
        for one in report.communities
    )
    unnamed = report.unnamed_communities
    note = "Smaller communities are not named, so that nobody is pointed at"
    note += f": there {'is' if unnamed == 1 else 'are'} {unnamed:,}." if unnamed else "; here there is none."
    return Table(
        title=f"Communities with the largest share of people below {report.wanted}",
        columns=("community", "members", "alone", f"below {report.wanted}", "share", "median crowd"),
        rows=rows,
        note=note,
    )


def topic_table(report: CrowdReport) -> Table:
    """Return the sensitive topics that anybody's posts point to."""
    shown = [one for one in report.topics if one.shown.count]
    absent = [one.topic for one in report.topics if not one.shown.count]
    rows = tuple(
        (one.topic, one.shown.words(), _percent(_share(one.shown)), one.highest_tenth) for one in shown
    )
    nobody = f" Nobody's posts point to: {', '.join(absent)}." if absent else ""
    return Table(
        title="People whose posts point to a topic",
        columns=("topic", "people", "share", "a tenth of them scores at least"),
        rows=rows,
        note=(
            "A score runs up to 1: how strongly, narrowly and lastingly posts point to the topic. It says how it looks "
            f"to somebody who reads everything, not how anybody is.{nobody}"
        ),
    )


def _spread(report: CrowdReport, one: Spread) -> str:
    quantiles = ", ".join(f"{share:.0%} have {size:,.4g} or fewer" for share, size in one.quantiles)
    facts = {
        "risk": str(one.threat),
        "what is counted": one.meaning,
        "adversary": one.adversary,
        "standing": one.standing,
        "spread": quantiles or "too few people to tell",
    }
    return (
        f"<h3>{escape(one.name[:1].upper() + one.name[1:])}</h3>"
        + _facts(facts)
        + table_html(below_table(one))
    )


def _not_measured(report: CrowdReport) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in report.not_measured)
    return f"<section><h2>What was not measured</h2><ul>{items}</ul></section>"


def _fine_print(report: CrowdReport) -> str:
    fingerprint = dict(report.fingerprint)
    data = fingerprint.pop("data")
    facts = {**fingerprint, **{f"data: {name}": f"{value:,}" for name, value in data.items()}}
    rows = tuple((name, str(value)) for name, value in {**report.assumptions, **facts}.items())
    table = Table(title="What it takes to run this again", columns=("fact", "value"), rows=rows)
    return (
        f"<section><h2>Fine print</h2>{table_html(table)}"
        '<p class="note">These numbers say how things look to the adversaries named; they are no guarantee against '
        "others. This page was made on one machine and can send nothing.</p></section>"
    )


def _facts(facts: dict[str, str]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in facts.items())
    return f'<dl class="facts">{items}</dl>'


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.1%}"


def _share(people: People) -> float | None:
    return None if people.share != people.share else people.share
