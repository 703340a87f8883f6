"""What every measure returns: small frozen values that carry their doubt.

An :class:`Assessment` is one measured risk of one person (or of one crowd). It holds the number, how sure
it is, what a guessing adversary would have reached, what was assumed, and the evidence that adds up to it.
The command line, the web pages, the HTML report and the JSON all read this one object.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from incrowd.drawing import bar_chart, small_page
from incrowd.errors import InputError
from incrowd.wording import say_amount as say_amount
from incrowd.wording import say_count as say_count
from incrowd.wording import say_number as say_number
from incrowd.wording import say_percent as say_percent

if TYPE_CHECKING:
    import polars as pl
    from rich.console import RenderableType

MOST_SAID = 160
"""Characters of the sentence in a `repr`, which is one line."""


class Direction(StrEnum):
    """Which way a value is good."""

    HIGHER_IS_SAFER = "higher is safer"
    LOWER_IS_SAFER = "lower is safer"


class Standing(StrEnum):
    """What backs a number: a proof, experience, a faithful copy of what a paper did, or a card in place of a crowd."""

    PROVED = "proved"
    HEURISTIC = "heuristic"
    REPRODUCTION = "reproduction"
    ESTIMATED = "estimated from a card"


class Threat(StrEnum):
    """The three risks data-protection authorities distinguish (Article 29 Working Party, WP216)."""

    SINGLING_OUT = "singling out"
    LINKABILITY = "linkability"
    INFERENCE = "inference"


class Result:
    """What every result can do: be looked at. Subclasses say more by overriding `rows`, `bars` or `chart`."""

    def sentence(self) -> str:
        """Say it in one plain sentence."""
        return type(self).__name__

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        raise NotImplementedError

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the result as rows of a table; unless said otherwise, one row of its single values."""
        plain = {name: value for name, value in self.to_dict().items() if not isinstance(value, dict | list)}
        return [plain]

    def to_frame(self, *, pandas: bool = False) -> Any:
        """Return the result as a table: a Polars frame, or a pandas one."""
        import polars as pl

        frame = pl.DataFrame(self.rows(), infer_schema_length=None, strict=False)
        return as_pandas(frame) if pandas else frame

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return what the chart shows: names and amounts, the most important first."""
        numbers = [(name, value) for name, value in self.to_dict().items() if type(value) in (int, float)]
        return [(name, float(value)) for name, value in numbers]

    def chart(self) -> str:
        """Draw the result as an SVG picture."""
        return bar_chart(self._title, self.bars())

    def to_html(self) -> str:
        """Return the result as a piece of HTML: the sentence, the picture, the table."""
        return small_page(self._title, self.sentence(), self.rows(), self.chart())

    def _repr_html_(self) -> str:
        return self.to_html()

    def __repr__(self) -> str:
        said = " ".join(self.sentence().split())
        return f"<{type(self).__name__}: {said[:MOST_SAID]}{'…' if len(said) > MOST_SAID else ''}>"

    @property
    def _title(self) -> str:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(self).__name__)


def as_pandas(frame: pl.DataFrame) -> Any:
    """Return a Polars frame as a pandas one, if pandas is there."""
    try:
        return frame.to_pandas()
    except ModuleNotFoundError as error:
        raise InputError(
            f"a pandas frame needs the package {error.name}: pip install pandas pyarrow"
        ) from None


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """Who the adversary is and what the number was computed from."""

    adversary: str
    """The adversary in plain words, e.g. "someone who has read both forums"."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    data_hash: str | None = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One part of the explanation. The contributions of an assessment's evidence add up."""

    what: str
    contribution: float
    detail: str = ""

    @property
    def strongest_first(self) -> tuple[float, str]:
        """What parts are sorted by: the strongest first, equals by name.

        The last digits of a sum differ with the machine's load and the number of its cores; equals are those that
        agree in what anybody would see, so that the same parts are named every time.
        """
        return -float(f"{abs(self.contribution):.4g}"), self.what

    @property
    def is_rest(self) -> bool:
        """True for a part that holds many small ones: "175 more"."""
        return self.parts_in_rest > 0

    @property
    def parts_in_rest(self) -> int:
        """How many small parts it holds; 0 if it is one of its own."""
        found = re.fullmatch(r"([\d,]+) more( .*)?", self.what)
        return int(found[1].replace(",", "")) if found else 0


@dataclass(frozen=True, kw_only=True)
class Advice:
    """One thing to do, with its effect measured by the same measure after doing it."""

    what: str
    before: float
    after: float
    loss: str = ""
    """What is given up, in plain words."""

    @property
    def action(self) -> str:
        """The name that `what` had in version 0.1."""
        return self.what

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types."""
        return fields_to_plain(self) | {"action": self.action}


@dataclass(frozen=True, kw_only=True, repr=False)
class Assessment(Result):
    """One measured risk of one person, with what it was measured against."""

    measure: str
    subject: str
    """Whom or what it is about, without another person's name: "you in r/books"."""
    value: float
    unit: str
    """What the number counts: "people", "probability", "rank"."""
    direction: Direction
    meaning: str
    """One plain sentence for a person who knows none of the papers."""
    standing: Standing
    assumptions: Assumptions
    interval: tuple[float, float] | None = None
    """None: exact."""
    baseline: float = math.nan
    """The same value for an adversary who only guesses."""
    crowd_rank: int | None = None
    """1 = most exposed."""
    crowd_size: int | None = None
    threats: tuple[Threat, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    explained: float | None = None
    """The quantity the evidence adds up to; the value itself unless stated."""
    advice: tuple[Advice, ...] = ()
    reason: str = ""
    """Why the value is undefined (NaN), e.g. "empty_profile: no words are left"."""

    def __post_init__(self) -> None:
        if math.isnan(self.value) and not self.reason:
            raise ValueError("an undefined value (NaN) needs a reason")
        if self.interval is not None and not self.interval[0] <= self.interval[1]:
            raise ValueError(f"interval must be (low, high), got {self.interval}")
        if self.explained is not None and self.evidence:
            total = math.fsum(part.contribution for part in self.evidence)
            if not math.isclose(total, self.explained, rel_tol=1e-6, abs_tol=1e-9):
                raise ValueError(f"evidence adds up to {total}, but {self.explained} was to be explained")

    @property
    def exact(self) -> bool:
        """True if the value is known without sampling error."""
        return self.interval is None and not math.isnan(self.value)

    @property
    def defined(self) -> bool:
        """False if there was not enough to measure; `reason` then says why."""
        return not math.isnan(self.value)

    @property
    def amount(self) -> str:
        """The value with its unit, as a person would say it: "12 people", "1 person", "undefined"."""
        unit = "person" if self.unit == "people" and self.value == 1 else self.unit
        return f"{say_number(self.value)} {unit}" if self.defined else "undefined"

    def sentence(self) -> str:
        """Say the result in one plain sentence."""
        return self.meaning if self.defined else f"Cannot tell for {self.subject}: {self.reason}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready types; an undefined number becomes None."""
        return fields_to_plain(self) | {"exact": self.exact, "sentence": self.sentence()}

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return one row, parts of the evidence left out."""
        return [_row(self)]

    def to_frame(self, *, pandas: bool = False) -> Any:
        """Return one row, parts of the evidence left out."""
        return to_frame([self], pandas=pandas)

    def bars(self) -> Sequence[tuple[str, float]]:
        """Return the strongest evidence; without any, the value beside a guesser's."""
        if not self.evidence:
            return [(self.subject, self.value), ("a guesser", self.baseline)]
        ordered = sorted(self.evidence, key=lambda part: part.strongest_first)
        return [(part.what, part.contribution) for part in ordered]

    @property
    def _title(self) -> str:
        return f"{self.measure}: {self.subject}"

    def __rich__(self) -> RenderableType:
        """Draw the assessment for a terminal."""
        from incrowd.result_terminal import render

        return render(self)


def to_frame(assessments: Iterable[Assessment], *, pandas: bool = False) -> Any:
    """Return assessments as a long table, one row each: a Polars frame, or a pandas one."""
    import polars as pl

    rows = [_row(one) for one in assessments]
    schema = {"crowd_rank": pl.Int64, "crowd_size": pl.Int64}
    frame = pl.DataFrame(rows, schema_overrides=schema if rows else None)
    return as_pandas(frame) if pandas else frame


def _row(assessment: Assessment) -> dict[str, Any]:
    low, high = assessment.interval or (assessment.value, assessment.value)
    return {
        "measure": assessment.measure,
        "subject": assessment.subject,
        "value": assessment.value,
        "low": low,
        "high": high,
        "unit": assessment.unit,
        "direction": str(assessment.direction),
        "baseline": assessment.baseline,
        "crowd_rank": assessment.crowd_rank,
        "crowd_size": assessment.crowd_size,
        "adversary": assessment.assumptions.adversary,
        "standing": str(assessment.standing),
        "reason": assessment.reason,
        "sentence": assessment.sentence(),
    }


def fields_to_plain(value: Any) -> dict[str, Any]:
    """Return a frozen value's fields as plain JSON-ready types."""
    return {part.name: to_plain(getattr(value, part.name)) for part in fields(value)}


def to_plain(value: Any) -> Any:
    """Return plain JSON-ready types: an undefined number becomes None, a level its word."""
    if is_dataclass(value) and not isinstance(value, type):
        return value.to_dict() if hasattr(value, "to_dict") else fields_to_plain(value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [to_plain(part) for part in value]
    if isinstance(value, StrEnum):
        return str(value)
    if hasattr(value, "item") and not isinstance(value, str):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
