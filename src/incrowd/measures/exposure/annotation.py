"""Judges look at what a model found: which latent topics are sensitive, and to which domain they belong.

Paper 004, section 4: several judges see the twenty most salient words of a topic and say whether it is
sensitive and to which of seven domains it belongs. The majority decides; Fleiss' kappa says how far they agree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from incrowd.errors import InputError, SchemaError, UnreadableSource
from incrowd.measures.exposure.learnt_spaces import LdaSpace

DOMAINS = ("psychology", "medicine", "finance", "law", "identity", "relationships", "other")
WORDS = 20
COLUMNS = {"judge": pl.String, "topic": pl.Int64, "sensitive": pl.String, "domain": pl.String}
ANSWERS = {"1": 1, "yes": 1, "true": 1, "0": 0, "no": 0, "false": 0}


def salient_words(space: LdaSpace, count: int = WORDS) -> list[tuple[str, ...]]:
    """Return the most likely words of every latent dimension, most likely first."""
    table = np.zeros((len(space.prior), len(space.words)), np.float32)
    word = np.repeat(np.arange(len(space.words)), np.diff(space.word_starts))
    table[space.dims, word] = space.weights
    order = np.argsort(-table, axis=1, kind="stable")[:, :count]
    return [tuple(space.words[w] for w in row if table[dim, w] > 0) for dim, row in enumerate(order)]


def sheet(space: LdaSpace) -> pl.DataFrame:
    """Return what judges are asked, one row per topic, to be filled in: the form for crowdsourcing."""
    words = salient_words(space)
    return pl.DataFrame(
        {
            "judge": "",
            "topic": range(len(words)),
            "words": [" ".join(row) for row in words],
            "sensitive": "",
            "domain": "",
        }
    )


def read_votes(paths: Sequence[Path | str], topics: int) -> pl.DataFrame:
    """Read judges' answers: judge, topic (number), sensitive (yes or no, 1 or 0), domain.

    A file without a judge's name is one judge, named after the file.
    """
    parts = [_votes(Path(path), topics) for path in paths]
    return pl.concat(parts).unique(["judge", "topic"], keep="last", maintain_order=True)


def _votes(path: Path, topics: int) -> pl.DataFrame:
    try:
        frame = pl.read_csv(path, schema_overrides=COLUMNS)
    except FileNotFoundError:
        raise UnreadableSource(f"{path}: no such file") from None
    except pl.exceptions.PolarsError:
        raise UnreadableSource(
            f"{path}: expected a CSV file with judge, topic (a number), sensitive, domain"
        ) from None
    if missing := set(COLUMNS) - set(frame.columns):
        raise SchemaError(f"{path}: expected the columns {', '.join(COLUMNS)}; add '{min(missing)}'")
    answer = pl.col("sensitive").str.strip_chars().str.to_lowercase()
    frame = frame.with_columns(
        pl.col("judge").fill_null("").replace("", path.stem),
        answer.replace_strict(ANSWERS, default=None, return_dtype=pl.Int64),
    )
    wrong = (frame["sensitive"].is_null() | ~frame["topic"].is_between(0, topics - 1)).fill_null(True)
    if wrong.any():
        raise SchemaError(
            f"{path}, row {int(wrong.arg_max() or 0) + 2}: sensitive must be yes or no (1 or 0) and topic a "
            f"number from 0 to {topics - 1}"
        )
    return frame.select(list(COLUMNS))


def fleiss_kappa(counts: ArrayLike) -> float:
    """Return how far judges agree beyond chance: 1 fully, 0 as by chance. NaN where chance agrees fully.

    `counts` has one row per subject and one column per category: how many judges chose it. Every subject must have
    the same number of judges.

    >>> round(fleiss_kappa([[3, 0], [0, 3], [2, 1]]), 4)
    0.55
    """
    table = np.asarray(counts, dtype=np.float64)
    judges = table.sum(axis=1)
    if table.size == 0 or (judges != judges[0]).any() or judges[0] < 2:
        raise InputError("Fleiss' kappa needs the same number of judges for every topic, and at least two")
    n = judges[0]
    agreement = ((table**2).sum(axis=1) - n) / (n * (n - 1))
    chance = float(((table.sum(axis=0) / table.sum()) ** 2).sum())
    return float((agreement.mean() - chance) / (1 - chance)) if chance < 1 else float("nan")


@dataclass(frozen=True, eq=False)
class JudgesVerdict:
    """What the judges decided."""

    topics: pl.DataFrame
    """topic, sensitive (majority), domain (most votes; among equals the first in the alphabet), judges, yes votes."""
    kappa: float
    """Fleiss' kappa of the sensitivity votes; NaN if topics have different numbers of judges."""

    def table_1(self) -> pl.DataFrame:
        """Return the paper's table 1: on how many topics so many judges agree that they are sensitive, most first."""
        most = int(self.topics["judges"].max() or 0)  # type: ignore[arg-type]  # a count
        counted = self.topics.group_by("yes").len("topics").rename({"yes": "judges"})
        every = pl.DataFrame({"judges": range(most, -1, -1)}, schema={"judges": counted.schema["judges"]})
        return every.join(counted, on="judges", how="left").with_columns(
            pl.col("topics").fill_null(0).cast(pl.Int64)
        )

    def domains(self) -> pl.DataFrame:
        """Return, for every domain, how many topics there are and how many are sensitive."""
        return (
            self.topics.group_by("domain")
            .agg(topics=pl.len(), sensitive=pl.col("sensitive").sum())
            .sort("domain")
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            "kappa": None if np.isnan(self.kappa) else self.kappa,
            "judged": self.topics.height,
            "sensitive": int(self.topics["sensitive"].sum()),
            "table_1": self.table_1().to_dicts(),
            "domains": self.domains().to_dicts(),
        }


def decide(votes: pl.DataFrame) -> JudgesVerdict:
    """Let the majority decide; a topic is sensitive if more than half of its judges say so."""
    if not votes.height:
        raise InputError("there are no votes to count; have at least one judge fill in the form")
    domain = pl.col("domain").fill_null("other")
    favourite = (
        votes.group_by("topic", domain.alias("domain"))
        .len()
        .sort(["topic", "len", "domain"], descending=[False, True, False])
        .group_by("topic", maintain_order=True)
        .first()
    )
    counted = votes.group_by("topic").agg(yes=pl.col("sensitive").sum(), judges=pl.len()).sort("topic")
    table = counted.select(pl.col("yes"), no=pl.col("judges") - pl.col("yes")).to_numpy()
    judges = counted["judges"]
    alike = judges.n_unique() == 1 and int(judges[0]) >= 2
    topics = counted.with_columns(sensitive=pl.col("yes") * 2 > pl.col("judges")).join(
        favourite.select("topic", "domain"), on="topic"
    )
    return JudgesVerdict(
        topics.select("topic", "sensitive", "domain", "judges", "yes").sort("topic"),
        fleiss_kappa(table) if alike else float("nan"),
    )


def topics_toml(space: LdaSpace, verdict: JudgesVerdict) -> str:
    """Return the judged topics as a topic file; a topic is named by its number and its two likeliest words."""
    words = salient_words(space)
    tables = []
    for row in verdict.topics.iter_rows(named=True):
        salient = words[row["topic"]]
        if not salient:
            continue
        name = "-".join([*salient[:2], str(row["topic"])])
        lines = [f"[{_quoted(name)}]", f"domain = {_quoted(row['domain'])}"]
        lines += [] if row["sensitive"] else ["sensitive = false"]
        lines.append(f"words = [{', '.join(map(_quoted, salient))}]")
        tables.append("\n".join(lines))
    return "\n\n".join(tables) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
