"""The provider's page about a gateway: who asked, what left, what each attribute can give."""

from __future__ import annotations

from incrowd.drawing import Chart, Series
from incrowd.gateway.report import Activity, AttributeSupport, FilterSupport, GatewayReport, Support
from incrowd.gateway.rules import RULES
from incrowd.report.page import study_page
from incrowd.study.figures import Cell, Section, Study, Table

COUNTS = ("asked", "different questions", "answered", "empty", "refused", "failed", "values sent")


def gateway_page(activity: GatewayReport, support: Support | None = None) -> str:
    """Return the report as one offline page."""
    return study_page(gateway_study(activity, support))


def gateway_study(activity: GatewayReport, support: Support | None = None) -> Study:
    """Return the report's tables and charts as values."""
    sections = [_asked(activity)]
    if support is not None:
        sections += [_attribute(one) for one in support.attributes]
        sections += [_filters(support.filters)] if support.filters else []
    asked = sum(one.asked for one in activity.clients)
    return Study(
        name="gateway",
        title="What the gateway was asked, and what it can give",
        summary=(
            f"{asked} requests from {len(activity.clients)} clients. This page is for the provider alone: "
            "it says what was withheld."
        ),
        sections=tuple(sections),
        facts={
            "first request": activity.first,
            "last request": activity.last,
            "audit log": "whole" if activity.audit.intact else f"damaged at {activity.audit.problem}",
            **({"reset": activity.reset} if activity.reset else {}),
            **({"nothing is answered until": activity.closed_until} if activity.closed_until else {}),
            "snapshot": support.snapshot if support else "not looked at",
        },
    )


def _asked(activity: GatewayReport) -> Section:
    clients = tuple((one.name, one.organisation, *_counts(one)) for one in activity.clients)
    attributes = tuple((one.name, *_counts(one)) for one in activity.attributes)
    decisions = tuple(
        (one.name, one.organisation, one.decided, one.released, one.withheld, _rules(one.denied))
        for one in activity.decisions
    )
    empty = tuple(
        (one.name, count, RULES.get(rule, rule))
        for one in activity.clients
        for rule, count in one.reasons.items()
    )
    decided = (
        "client",
        "organisation",
        "questions decided",
        "values released",
        "values withheld",
        "denied by",
    )
    return Section(
        heading="What was asked",
        text=(
            "An answer with at least one value is answered, one without any is empty, whatever the reason. "
            "Refused requests were not understood or asked for what the policy does not allow."
            if clients
            else "Nobody has asked yet."
        ),
        parts=(
            Table(title="By client", columns=("client", "organisation", *COUNTS), rows=clients),
            Table(title="By attribute", columns=("attribute", *COUNTS), rows=attributes),
            Table(title="What was withheld", columns=decided, rows=decisions),
            Table(title="Why replies were empty", columns=("client", "requests", "reason"), rows=empty),
        )
        if clients
        else (),
    )


def _counts(one: Activity) -> tuple[Cell, ...]:
    return (one.asked, one.questions, one.answered, one.empty, one.refused, one.failed, one.released)


def _rules(denied: dict[str, int]) -> str:
    return ", ".join(f"{rule} {count}x" for rule, count in sorted(denied.items())) or "nothing"


def _attribute(one: AttributeSupport) -> Section:
    q = [at.q for at in one.at]
    known = [at for at in one.at if at.released is not None]
    chart = Chart(
        kind="lines",
        title=f"Values of {one.attribute} that could leave",
        sentence="The stricter the threshold, the fewer values leave; no more than are frequent enough.",
        x_label="threshold q (higher is safer)",
        y_label="values",
        series=(
            Series.of("at least q people list it", q, [at.frequent for at in one.at]),
            Series.of(
                f'released by mechanism "{one.mechanism}"',
                [at.q for at in known],
                [at.released or 0 for at in known],
            ),
        ),
        x_log=True,
        y_log=all(at.released for at in known),
    )
    rows = tuple((at.q, at.frequent, at.released, _percent(at.mentions)) for at in one.at)
    columns = ("q", "values with q holders", "values released", "% of all entries")
    commonest = tuple((rank, _percent(share)) for rank, share in enumerate(one.commonest, start=1))
    return Section(
        heading=f"What {one.attribute} supports",
        text=(
            f"{one.people:,} people list {one.values:,} values, {one.entries:,} entries in all. This is what could "
            f'leave by mechanism "{one.mechanism}" if everybody were asked about at once, {_without(one)} count; a '
            f"class of people supports less. {_reach(one)}"
        ),
        parts=(
            chart,
            Table(
                title="What could leave",
                columns=columns,
                rows=rows,
                note="An entry is a person and a value. A dash: there was no time for a proof.",
            ),
            Table(title="The commonest values", columns=("rank", "% of people"), rows=commonest),
        ),
    )


def _without(one: AttributeSupport) -> str:
    if one.mechanism == "private":
        return "before noise and used-up budgets"
    return "before secret amounts and earlier answers"


def _reach(one: AttributeSupport) -> str:
    if not one.largest_q:
        return "At none of the thresholds looked at could anything leave."
    return f"Of the thresholds looked at, something can leave up to q = {one.largest_q}."


def _percent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, 3)


def _filters(filters: tuple[FilterSupport, ...]) -> Section:
    return Section(
        heading="How large the classes are",
        text=(
            "q of an answer is at most the number of people in its class, so small classes cannot be answered "
            "however the values are spread."
        ),
        parts=tuple(
            Table(
                title=f"Classes by {one.filter}: half of {one.people:,} people are in the largest {one.half}",
                columns=("people at least", "classes", "% of classes"),
                rows=tuple(
                    (size, count, _percent(count / max(1, one.classes)))
                    for size, count in one.at_least
                    if count
                ),
            )
            for one in filters
        ),
    )
