"""What changed since last time: an earlier report, kept as JSON, beside the one of today."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.advisor.answer import PersonReport
from incrowd.advisor.since import Since, ThemeSince
from incrowd.errors import InputError
from incrowd.measures.protocol import Level


@dataclass(frozen=True)
class Earlier:
    """What is needed of an earlier report."""

    person: str
    verdict: Level
    levels: Mapping[str, Level]
    risks: Mapping[str, float]
    data_hash: str
    version: str

    @classmethod
    def of(cls, report: PersonReport) -> Earlier:
        """Take it from a report at hand."""
        return cls.from_dict(report.to_dict(), "the earlier report")

    @classmethod
    def read(cls, path: Path) -> Earlier:
        """Read what `incrowd assess --json` printed, or what a page saved as JSON."""
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"{path}: no such file; give the JSON of an earlier report") from None
        except (OSError, ValueError):
            raise InputError(
                f"{path}: not readable as JSON; give what incrowd assess --json printed"
            ) from None
        return cls.from_dict(plain, str(path))

    @classmethod
    def from_dict(cls, plain: Any, where: str) -> Earlier:
        """Read the keys that matter, or say what is missing."""
        try:
            label = plain["label"]
            return cls(
                person=str(plain["person"]),
                verdict=Level(plain["verdict"]["level"]),
                levels={name: Level(one["level"]) for name, one in label.items()},
                risks={name: _number(one.get("risk")) for name, one in label.items()},
                data_hash=str(plain["fine_print"]["data_hash"]),
                version=str(plain["fine_print"]["version"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(
                f"{where}: expected the report of incrowd assess --json, with person, verdict, label and fine_print"
            ) from None


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def since(earlier: Earlier, report: PersonReport) -> Since:
    """Put an earlier answer and today's side by side, question by question."""
    if earlier.person != report.person:
        raise InputError(
            f"--compare: the earlier report is about '{earlier.person}', this one about '{report.person}'; "
            "compare a person with themselves"
        )
    fine = report.fine_print
    notes = []
    if earlier.data_hash == fine.data_hash:
        notes.append("The data are the same as last time.")
    if earlier.version != fine.version:
        notes.append(
            f"Measured by incrowd {earlier.version} then and {fine.version} now: a difference may come from that."
        )
    return Since(
        verdict_before=earlier.verdict,
        verdict_now=report.verdict.level,
        themes=tuple(
            ThemeSince(
                name=theme.name,
                level_before=earlier.levels.get(str(theme.name), Level.CANNOT_TELL),
                level_now=theme.level,
                risk_before=earlier.risks.get(str(theme.name), math.nan),
                risk_now=theme.risk,
            )
            for theme in report.themes
        ),
        notes=tuple(notes),
    )
