"""Makes the card that comes with incrowd, and judges it on people who are not in it.

    python -m benchmarks.default_card --out src/incrowd/cards/reddit.card     make it again (other noise each time)
    python -m benchmarks default_card                                         judge the one that is inside

Made of the general group of ``reddit_users`` (people who were not looked up in a mental-health forum), all subreddits
together, over the public-domain ``reddit_topic_corpus``: its words, and its frequencies where noise drowns people's.
Differentially private as a whole: (3, 1e-6), with or without one person and all they wrote.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from incrowd import __version__, default_card
from incrowd.cards.background import Background, describe_over
from incrowd.cards.card import Card, text_facts
from incrowd.cards.make import CardOptions
from incrowd.cards.members import read_members
from incrowd.crowd import Crowd
from incrowd.crowd.own_export import OwnExport
from incrowd.measures.card_crowd import YOU, CardCrowd
from incrowd.measures.exposure import default_space
from incrowd.measures.exposure.card import topic_table
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.protocol import AdvisorOptions, Person
from incrowd.measures.recognition.assess import words_of
from incrowd.measures.recognition.definition import halves
from incrowd.measures.recognition.history import Histories, contest
from incrowd.measures.recognition.measure import Recognition
from incrowd.measures.recognition.spec import KNOWN
from incrowd.profiles.habits import post_habits
from incrowd.statistics import auc, calibration_error

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
NAME = "Reddit"
OPTIONS = CardOptions(k=25, epsilon=3.0, delta=1e-6, words_each=400)
LEFT_OUT = (
    "everybody's posts, names, and the words of each person",
    "every word that is not in the background corpus: new words, names, most slang and other languages",
    "who writes where: all subreddits count as one community",
    "which words and topics go together",
)
SOURCES = (
    "how many people: 3,500 people of reddit_users (Reddit comments of 2019 and 2020, general group)",
    "which words, and how often where noise drowns the people: reddit_topic_corpus (Reddit submissions of 2013, public "
    "domain)",
)


def read_lines(path: Path) -> pl.DataFrame:
    """Read compressed JSON lines."""
    with pa.CompressedInputStream(str(path), "zstd") as file:
        return pl.read_ndjson(file.read())


def people(group: str) -> pl.DataFrame:
    """Return the posts of one seed group of reddit_users: user, community, time, text."""
    posts = read_lines(DATA / "reddit_users" / "posts.jsonl.zst")
    chosen = pl.read_csv(DATA / "reddit_users" / "users.csv").filter(pl.col("seed_group") == group)
    return posts.join(chosen.select("author"), on="author", how="semi").select(
        user="author", community="community", time="t", text="text"
    )


def background() -> Background:
    """Return the words of the public corpus."""
    corpus = read_lines(DATA / "reddit_topic_corpus" / "submissions.jsonl.zst")
    texts = corpus["title"].fill_null("") + "\n" + corpus["text"].fill_null("")
    return Background.of(texts, corpus["community"].to_list(), OPTIONS.text)


def make() -> Card:
    """Make the card; the noise is new every time."""
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd.from_frame(people("general"), path=Path(folder) / "crowd")
        members = read_members(crowd, None, OPTIONS.text)
        community, noise = describe_over(members, background(), OPTIONS, NAME)
        risks = score(crowd, default_space(), ExposureOptions(text=OPTIONS.text)).risks()
    topics = topic_table(risks, default_space(), noise)
    head = {
        "made_by": f"incrowd {__version__}",
        "communities": [{"name": NAME, **community.facts(), "accuracy": None}],
        "k": OPTIONS.k,
        "privacy": noise.facts(),
        "text": text_facts(OPTIONS.text),
        "sources": list(SOURCES),
        "left_out": list(LEFT_OUT),
    }
    return Card.made(head, [{**community.tables(), "exposure.topics": topics}])


def judge(count: int = 250, seed: int = 1) -> dict[str, Any]:
    """Predict from the earlier half of some people's posts, and let a real attack try the later half.

    Neither they nor the later halves are in the card; the attack has real people for rivals, those of the card.
    """
    rng = np.random.default_rng(seed)
    others = people("mental_health")
    judged = sorted(rng.choice(others["user"].unique().sort().to_numpy(), count, replace=False).tolist())
    pool = pl.concat([people("general"), others.filter(pl.col("user").is_in(judged))]).sort(
        "user", "time", "text"
    )
    names = pool["user"].unique().sort().to_list()
    starts = np.searchsorted(pool["user"].to_numpy(), np.array([*names, "~"]))
    habits = post_habits(pool["text"])
    histories = Histories(
        posts=habits,
        words=words_of(habits),
        days=pool["time"].to_numpy() / 86_400,
        of=tuple(np.arange(a, b) for a, b in itertools.pairwise(starts)),
    )
    trial = contest(histories, "earlier", "later", 6, 0, 2**29)
    places = np.searchsorted(names, judged)
    predicted = {name: predict(pool, histories.of[at]) for name, at in zip(judged, places, strict=True)}
    report = {}
    for n in KNOWN:
        able = np.intersect1d(places, trial.can_be_tried(n))
        found = trial.tried(n, able).first
        told = np.array([predicted[names[at]].get(n, math.nan) for at in able])
        known = np.isfinite(told)
        found, told = found[known], told[known]
        report[str(n)] = {
            "people": len(found),
            "found": float(found.mean()),
            "predicted": float(told.mean()),
            "auc": auc(found >= 0.5, told),
            "calibration_error": calibration_error(told, found),
        }
    return {"posts_known": report}


def predict(pool: pl.DataFrame, rows: Any) -> dict[int, float]:
    """Return what `incrowd assess` says about somebody who has only the earlier half of their posts."""
    mine = pool[rows[: halves(len(rows))[0]].tolist()].select("community", "time", "text")
    export = OwnExport(mine.with_row_index("number"), frozenset(), {}, "x", "x")
    crowd = CardCrowd(default_card(), export)
    crowd._drawn = _DRAWN  # the same made-up people for everybody: drawing them takes longest
    ready = Recognition().prepare(crowd, AdvisorOptions())
    found = ready.assess_thorough(Person(YOU, crowd)).assessments
    chances = found[0].assumptions.parameters["probability"] if found else {}
    return {int(n): chance for n, chance in chances.items() if chance is not None}


_DRAWN: dict[str, Any] = {}


def main() -> dict[str, Any] | None:
    """Make the card if told where to, or judge the one inside; needs nothing but the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="make the card anew and write it here")
    chosen = parser.parse_args()
    if not (DATA / "reddit_users").is_dir():
        print(f"   skipped: {DATA} is not here")
        return None
    if chosen.out is not None:
        card = make()
        card.write(chosen.out)
        print(card, f"{chosen.out.stat().st_size:,} bytes")
        return None
    return judge()


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
