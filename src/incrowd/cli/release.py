"""`incrowd release`: measure an answer, thin it out until it is safe, check that again, tidy up spellings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incrowd.cli.console import AsJson, FailAbove, Memory, exit_for_risk, parse_memory, show, show_json

if TYPE_CHECKING:
    from incrowd.measures.release.spec import QMeasurement
    from incrowd.measures.release.suppress import Suppression

app = typer.Typer(no_args_is_help=True, help="May this answer leave? How sure could it make someone?")

HoldersFile = Annotated[
    Path, typer.Argument(metavar="HOLDERS.json", help='The answer: {"value": ["user", ...], ...}.')
]
Threshold = Annotated[
    int, typer.Option("--threshold", min=1, help="The least q of what is released; higher is safer.")
]
Seconds = Annotated[float, typer.Option("--seconds", min=0.0, help="Time to look for an exact answer.")]


@app.command("q")
def measure(
    holders: HoldersFile,
    seconds: Seconds = 10.0,
    memory: Memory = "1GiB",
    fail_above: FailAbove = None,
    as_json: AsJson = False,
) -> None:
    """Measure q: an adversary ties somebody to this answer with a probability of at most 1/q."""
    from incrowd.measures.release import Budget, measure_q

    budget = Budget(seconds=seconds, memory=parse_memory(memory))
    measured = measure_q(_read_object(holders), budget=budget)
    if as_json:
        show_json(measured.to_dict())
    else:
        show(_measured_in_words(measured))
    low = measured.at_least
    exit_for_risk(0.0 if low is None else float(1 / low), fail_above)


@app.command("suppress")
def thin(
    holders: HoldersFile,
    threshold: Threshold = 10,
    seconds: Seconds = 10.0,
    memory: Memory = "1GiB",
    key_file: Annotated[
        Path | None, typer.Option("--key-file", help="Secret that decides ties and the order of the values.")
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Also write the proof, for incrowd release verify.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say which values may leave so that q reaches the threshold, also without any single one of them."""
    import json

    from incrowd.measures.release import Budget, SuppressOptions, suppress

    budget = Budget(seconds=seconds, memory=parse_memory(memory))
    options = (
        SuppressOptions(budget=budget, key=key_file.read_bytes())
        if key_file
        else SuppressOptions(budget=budget)
    )
    result = suppress(_read_object(holders), threshold, options=options)
    if certificate is not None:
        text = json.dumps(result.certificate.to_dict(), ensure_ascii=False, indent=2)
        certificate.write_text(text + "\n", "utf-8")
    if as_json:
        show_json(result.to_dict())
    else:
        show(_released_in_words(result))


@app.command()
def verify(
    holders: HoldersFile,
    certificate: Annotated[Path, typer.Argument(metavar="CERTIFICATE.json", help="As suppress wrote it.")],
    seconds: Seconds = 60.0,
    memory: Memory = "1GiB",
    as_json: AsJson = False,
) -> None:
    """Check a certificate again, by another way than the one that made it; exit with 1 if it fails."""
    from incrowd.measures.release import Budget, Certificate
    from incrowd.measures.release import verify as check

    proof = Certificate.from_dict(_read_object(certificate))
    budget = Budget(seconds=seconds, memory=parse_memory(memory))
    checked = check(_read_object(holders), proof, budget=budget)
    if as_json:
        show_json({"holds": checked.holds, "problems": list(checked.problems)})
    else:
        show("The certificate holds." if checked.holds else "\n".join(checked.problems))
    if not checked.holds:
        raise typer.Exit(1)


@app.command()
def tidy(
    holders: HoldersFile,
    out: Annotated[
        Path, typer.Option("--out", help="Where to write the answer with one spelling for each thing.")
    ],
    aliases: Annotated[
        Path | None,
        typer.Option("--aliases", help='Known other names: {"LOTR": "The Lord of the Rings", ...}.'),
    ] = None,
    review: Annotated[
        Path | None, typer.Option("--review", help="A review file with your decisions, to apply.")
    ] = None,
    propose_to: Annotated[
        Path | None,
        typer.Option("--propose", help="Write look-alikes to decide into this review file (CSV)."),
    ] = None,
    likeness: Annotated[
        float, typer.Option("--likeness", min=0, max=100, help="How alike spellings must be to be proposed.")
    ] = 90.0,
    as_json: AsJson = False,
) -> None:
    """Bring spellings of the same thing together, so that more may be released."""
    import json

    from rich.text import Text

    from incrowd.measures.release.canonical import (
        canonicalise,
        merged_spellings,
        propose,
        read_aliases,
        read_review,
        write_review,
    )

    answer = _read_object(holders)
    known = (read_aliases(aliases) if aliases else {}) | (read_review(review) if review else {})
    merged = canonicalise(answer, known)
    out.write_text(json.dumps(merged, ensure_ascii=False) + "\n", "utf-8")
    proposals = write_review(propose_to, propose(merged, likeness=likeness)) if propose_to else 0
    together = merged_spellings(answer, known)
    report = {
        "values_before": len(answer),
        "values": len(merged),
        "proposals": proposals,
        "merged": together,
    }
    if as_json:
        show_json(report)
    else:
        words = f"{len(answer)} spellings became {len(merged)} values."
        lines = [f"{', '.join(same)}: now {name}" for name, same in together.items()]
        words += "".join(f"\n  {line}" for line in lines[:SHOWN])
        words += (
            f"\n  and {len(lines) - SHOWN} more: see --json\n" if len(lines) > SHOWN else "\n" * bool(lines)
        )
        words += f" {proposals} look-alikes wait for a decision." if propose_to else ""
        show(Text(words))  # values are data, not markup


SHOWN = 20
"""Merged spellings that are listed in the terminal; JSON has all."""


def _read_object(path: Path) -> dict[str, Any]:
    import json

    from incrowd.errors import InputError, UnreadableSource

    def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        places: dict[str, int] = {}
        for place, (name, _) in enumerate(pairs, start=1):
            if places.setdefault(name, place) != place:  # keeping one of them would lose people
                raise InputError(
                    f"{path}, value number {place}: expected each value once, got the same one as number "
                    f"{places[name]}; put all its users into one list"
                )
        return dict(pairs)

    try:
        value = json.loads(path.read_bytes(), object_pairs_hook=each_once)
    except InputError:
        raise
    except OSError as error:
        raise UnreadableSource(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UnreadableSource(f"{path}: expected one JSON object, could not read it as JSON") from None
    if not isinstance(value, dict):
        raise UnreadableSource(f"{path}: expected one JSON object {{...}}, got another kind of JSON")
    return value


def _measured_in_words(measured: QMeasurement) -> Any:
    from rich.table import Table

    from incrowd.result import say_count

    parts = say_count(len(measured.parts), "connected part")
    table = Table("", "", show_header=False, box=None)
    if measured.q is not None:
        table.add_row(
            "q", f"{float(measured.q):.6g}", "higher is safer; 1 = somebody is certain to be tied to it"
        )
        table.add_row(
            "probability", f"{float(1 / measured.q):.3%}", "that the most exposed person is tied to it"
        )
    elif measured.interval is not None:
        low, high = (float(end) for end in measured.interval)
        table.add_row(
            "q", f"{low:g} to {high:g}", "proved bounds; the time was too short for the exact number"
        )
    else:
        table.add_row("q", "undefined", "nothing is released")
        return table
    table.add_row("method", str(measured.method), f"{measured.seconds:.3g} s, {parts}")
    table.add_row("least common value", str(measured.lcv), "holders; q is at most this")
    table.add_row("p_min", str(measured.p_min), "fewest users of one value alone; q is at least this")
    table.add_row("groups", _short(measured.n), "minimal groups of people that account for the answer (n)")
    return table


def _short(number: int | None) -> str:
    from incrowd.measures.release.spec import decimal

    if number is None:
        return "not counted"
    digits = decimal(number)
    return digits if len(digits) <= 15 else f"{digits[0]}.{digits[1:3]}e{len(digits) - 1}"


def _released_in_words(result: Suppression) -> Any:
    from rich.text import Text

    if not result.released:
        why = result.reason.partition(": ")[2] or result.reason  # before it stands a word for programs
        return f"Nothing may leave at q = {result.threshold}: {why}."
    relation = "=" if result.method == "exact" else "at least"
    lines = [
        f"{len(result.released)} of {len(result.released) + len(result.withheld)} values may leave; "
        f"q {relation} {float(result.q or 0):.6g} ({result.method}).",
        *(f"  {value}" for value in result.released),
    ]
    return Text("\n".join(lines))  # values are data, not markup
