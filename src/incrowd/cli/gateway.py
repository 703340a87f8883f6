"""`incrowd gateway`: stand in front of a database, hand out keys, look at what was asked and why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import AsJson, say, show, show_json, writable

if TYPE_CHECKING:
    from incrowd.gateway.policy import GatewayPolicy
    from incrowd.gateway.query import Explanation
    from incrowd.gateway.report import AttributeReleasable, GatewayReport, Support

app = typer.Typer(
    invoke_without_command=True, help="Answer questions about a database without giving its people away."
)
keys = typer.Typer(no_args_is_help=True, help="Who may ask.")
app.add_typer(keys, name="key")

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        envvar="INCROWD_DATABASE",
        help="duckdb:///FILE or postgresql://...; the environment variable keeps a password off the screen.",
    ),
]
PolicyFile = Annotated[
    Path | None, typer.Option("--policy", help="What may be asked and released (TOML). None: no answer.")
]
StateFolder = Annotated[
    Path,
    typer.Option(
        "--state", help="Folder for secret, keys, ledger, audit log and snapshots; keep it private."
    ),
]
STATE = Path("incrowd-gateway")


@app.callback()
def gateway(
    context: typer.Context,
    database: DatabaseUrl = None,
    policy: PolicyFile = None,
    state: StateFolder = STATE,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port for clients.")] = 8400,
    admin_port: Annotated[
        int,
        typer.Option("--admin-port", min=0, max=65535, help="Port for metrics, on this machine only."),
    ] = 8401,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="A proxy that ends TLS is in front: allow addresses beyond this machine."
        ),
    ] = False,
) -> None:
    """Serve questions over HTTP until Ctrl-C or SIGTERM; the subcommands look after keys, policy and reports."""
    _require_posix()
    if context.invoked_subcommand is not None:
        return
    from incrowd.gateway.operate import run
    from incrowd.gateway.server import Address

    address = Address(host=host, port=port, admin_port=admin_port, behind_proxy=behind_proxy)
    run(_given(database, "--database"), _policy(policy), state, address)


def _require_posix() -> None:
    """Refuse where the system cannot cap and end a process as the gateway's promises need."""
    if not hasattr(os, "fork"):
        from incrowd.errors import InputError

        raise InputError(
            "gateway: needs Linux or another POSIX system, whose limits on processes it relies on; "
            "everything else of incrowd runs here."
        )


@keys.command("add")
def add_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A new name for the client.")],
    organisation: Annotated[
        str, typer.Option("--organisation", help="As the policy names it; its clients share a ledger.")
    ],
    policy: PolicyFile = None,
    state: StateFolder = STATE,
    as_json: AsJson = False,
) -> None:
    """Make an API key and print it once. A running gateway accepts it at once."""
    from incrowd.gateway.state import KeyStore

    if policy is not None:
        _policy(policy).known(organisation, "--organisation")
    token = KeyStore(state).add(name, organisation)
    if as_json:
        show_json({"name": name, "organisation": organisation, "key": token})
    else:
        say(token)
        say("Keep this key: only a hash of it is stored, so it cannot be shown again.", err=True)


@keys.command("list")
def list_keys(state: StateFolder = STATE, as_json: AsJson = False) -> None:
    """List clients, organisations and when their keys were made."""
    from incrowd.gateway.operate import existing
    from incrowd.gateway.state import KeyStore

    rows = [(key.name, key.organisation, key.id, key.created) for key in KeyStore(existing(state)).all()]
    if as_json:
        names = ("name", "organisation", "id", "created")
        show_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        show(_table(("client", "organisation", "id", "made"), rows))


@keys.command("remove")
def remove_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The client's name, or the id of the key.")],
    state: StateFolder = STATE,
    as_json: AsJson = False,
) -> None:
    """Take a key away. A running gateway refuses it from now on."""
    from incrowd.gateway.state import KeyStore

    KeyStore(state).remove(name)
    if as_json:
        show_json({"removed": name})
    else:
        show("Removed.")


@app.command()
def check(
    policy: PolicyFile = None,
    database: DatabaseUrl = None,
    state: StateFolder = STATE,
    as_json: AsJson = False,
) -> None:
    """Check a policy, and with --database that its tables and columns are there; exit with 2 if not."""
    from incrowd.gateway.operate import check_setup

    found = check_setup(_policy(policy), database, state)
    if as_json:
        show_json(found)
    else:
        show(_table(("", ""), [(str(name), _words(value)) for name, value in found.items()]))


@app.command("try")
def try_query(
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="SELECT ... FROM users WHERE ..., or the JSON form.")
    ],
    database: DatabaseUrl = None,
    policy: PolicyFile = None,
    state: StateFolder = STATE,
    organisation: Annotated[
        str | None,
        typer.Option("--organisation", help="Judge together with what this organisation already received."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """See how a question would be answered and why, as only the provider may. Nothing is recorded."""
    from incrowd.gateway.operate import explain

    found = explain(_given(database, "--database"), _policy(policy), state, query, organisation)
    if as_json:
        show_json(found.to_dict())
    else:
        show(_explained(found))


@app.command()
def reset(
    state: StateFolder = STATE,
    yes: Annotated[bool, typer.Option("--yes", help="Do it: what was told is not known afterwards.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start anew where the state is lost or damaged. Nothing is answered until earlier answers would be forgotten."""
    from incrowd.errors import InputError
    from incrowd.gateway.operate import existing
    from incrowd.gateway.operate import reset as start_anew

    existing(state)
    if not yes:
        raise InputError(
            "--yes is missing: a reset forgets what was told, so all budgets count as spent. If there is a copy of the "
            "whole state folder, put that back instead"
        )
    aside = start_anew(state)
    if as_json:
        show_json({"set_aside": None if aside is None else str(aside)})
    else:
        show(
            f"What was left is in {aside}. Keys are kept; all budgets count as spent."
            if aside
            else "There was nothing to set aside. All budgets count as spent."
        )


@app.command()
def report(
    database: DatabaseUrl = None,
    policy: PolicyFile = None,
    state: StateFolder = STATE,
    html: Annotated[
        Path | None,
        typer.Option("--html", callback=writable, help="Also write the report as an offline page."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say who asked what and got how much; with --database and --policy also what each attribute supports.

    Exits with 1 if the audit log was touched or has lost records.
    """
    from incrowd.gateway.operate import existing, measure_support
    from incrowd.gateway.report import activity_report
    from incrowd.gateway.state import open_secret

    rules = None if policy is None else _policy(policy)
    activity = activity_report(existing(state), open_secret(state), rules)
    support = measure_support(database, rules, state) if database and rules else None
    if html is not None:
        from incrowd.report.gateway import gateway_page
        from incrowd.report.page import write

        write(html, gateway_page(activity, support))
    if as_json:
        show_json({**activity.to_dict(), "support": support.to_dict() if support else None})
    else:
        show(_reported(activity, support))
    if not activity.audit.intact:
        raise typer.Exit(1)


def _given(value: str | None, option: str) -> str:
    from incrowd.errors import InputError

    if value is None:
        raise InputError(f"{option} is missing: without it there is nothing to answer from")
    return value


def _policy(path: Path | None) -> GatewayPolicy:
    from incrowd.errors import InputError
    from incrowd.gateway.policy import load_policy

    if path is None:
        raise InputError("--policy is missing: without a policy nothing is answered")
    return load_policy(path)


class _Rows:
    """A table; where it is too narrow for the words of its columns, each row below the other."""

    def __init__(self, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
        self._columns, self._rows = columns, rows

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        from rich.measure import Measurement

        table = self._made(self._columns, self._rows)
        needed = Measurement.get(console, options.update(max_width=10_000), table).minimum
        if not any(self._columns) or needed <= options.max_width:
            yield table
            return
        for number, row in enumerate(self._rows):
            if number:
                yield ""
            yield self._made(("", ""), list(zip(self._columns, row, strict=True)))

    @staticmethod
    def _made(columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns, show_header=any(columns), box=None)
        for row in rows:
            table.add_row(*(Text(str(cell), overflow="fold") for cell in row))  # data, not markup
        return table


def _table(columns: tuple[str, ...], rows: list[tuple[Any, ...]], title: str = "") -> Any:
    from rich.console import Group
    from rich.text import Text

    table = _Rows(columns, rows)
    return Group(Text(title, style="bold"), table) if title else table


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple) else str(value)


NO_FORECAST = (
    "This is no forecast: it is worked out without noise. Noise is drawn when somebody asks, so near the threshold a "
    "value may leave or stay the other way."
)


def _explained(found: Explanation) -> Any:
    from rich.console import Group

    from incrowd.gateway.rules import CLOSED, OVER_BUDGET, RULES

    q = "nothing leaves" if found.q is None else f"{found.q:g} ({found.method})"
    private = found.mechanism == "private"
    noisy = private and not found.repeated and found.rule not in (CLOSED, OVER_BUDGET)
    least = (
        "people who must list a value alone, noise included" if private else "least q, secret amount included"
    )
    until = f"; nothing is answered until {found.closed_until}" if found.closed_until else ""
    counted = "of them had budget left when it was decided" if found.repeated else "of them have budget left"
    facts: list[tuple[Any, ...]] = [
        ("snapshot", found.snapshot, ""),
        ("class", found.class_size, "people whom the question selects"),
        *([] if found.counted is None else [("counted", found.counted, counted)]),
        *([("threshold", found.threshold, least)] if found.threshold else []),
        ("q", q, "of what leaves; higher is safer"),
        ("denied by", found.rule or "nothing", RULES.get(found.rule, "") + until),
        ("mechanism", found.mechanism, ""),
    ]
    if found.repeated:
        facts.append(("asked before", "yes", f"decided on {found.decided}; it is answered as it was then"))
    leaves = "would leave" if noisy else "leaves"
    values = [
        (one.value, one.holders, leaves if one.released else f"stays: {RULES.get(one.rule, one.rule)}")
        for one in found.values
    ]
    return Group(
        _table(("", "", ""), facts),
        *(["", NO_FORECAST] if noisy else []),
        "",
        _table(("value", "people", "decision"), values),
    )


def _closed(activity: GatewayReport) -> list[str]:
    if not activity.reset or activity.closed_until == "":
        return []
    since = f"The state was reset on {activity.reset}: "
    if activity.closed_until:
        return [f"{since}all budgets count as spent, and nothing is answered until {activity.closed_until}."]
    return [f"{since}nothing is answered until earlier answers would be forgotten (--policy says when)."]


def _reported(activity: GatewayReport, support: Support | None) -> Any:
    from rich.console import Group

    from incrowd.gateway.rules import RULES

    columns = ("asked", "questions", "answered", "empty", "refused", "failed", "values sent")
    clients = [(one.name, one.organisation, *_counts(one)) for one in activity.clients]
    attributes = [(one.name, *_counts(one)) for one in activity.attributes]
    intact = "whole" if activity.audit.intact else f"DAMAGED at {activity.audit.problem}"
    parts: list[Any] = [
        f"{activity.audit.records} requests from {activity.first or '-'} to {activity.last or '-'}; "
        f"the audit log is {intact}.",
        *_closed(activity),
        "",
        _table(("client", "organisation", *columns), clients, "By client"),
        "",
        _table(("attribute", *columns), attributes, "By attribute"),
        "",
        _table(
            ("client", "organisation", "questions", "released", "withheld", "denied by"),
            [
                (d.name, d.organisation, d.decided, d.released, d.withheld, _rules(d.denied))
                for d in activity.decisions
            ],
            "Different questions, as they were decided",
        ),
    ]
    empty = [(c.name, n, RULES.get(rule, rule)) for c in activity.clients for rule, n in c.reasons.items()]
    if empty:
        parts += ["", _table(("client", "requests", "reason"), empty, "Why replies were empty")]
    for one in support.attributes if support else ():
        rows = [(at.q, at.frequent, *_released(at)) for at in one.at]
        title = (
            f"{one.attribute}: {one.values:,} values of {one.people:,} people; what could leave if all were asked, by "
            f'mechanism "{one.mechanism}"'
            + (" without noise, all budgets unspent" if one.mechanism == "private" else "")
        )
        parts += [
            "",
            _table(("q", "values with q holders", "values released", "of all entries"), rows, title),
        ]
    for two in support.filters if support else ():
        title = f"Classes by {two.filter}: {two.classes}, half of the people in the largest {two.half}"
        parts += ["", _table(("size at least", "classes"), [pair for pair in two.at_least if pair[1]], title)]
    return Group(*parts)


def _released(at: AttributeReleasable) -> tuple[Any, str]:
    return ("not known", "") if at.released is None else (at.released, f"{at.mentions:.1%}")


def _rules(denied: dict[str, int]) -> str:
    return ", ".join(f"{rule} {count}x" for rule, count in sorted(denied.items()))


def _counts(one: Any) -> tuple[int, ...]:
    return (one.asked, one.questions, one.answered, one.empty, one.refused, one.failed, one.released)
