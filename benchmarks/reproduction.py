"""The five papers' headline results beside ours: runs the studies on public data and writes the page with the table.

    python -m benchmarks.reproduction [--data ../shared/data] [anonymity linkability ...]

Each study prints its headlines as JSON (`incrowd study NAME CROWD --json`); docs/explanation/reproduction.md is made of
nothing else. A study whose data is not there keeps the section it has. Rates only: no text and no person is shown.

People drawn by a seed are other people under other pseudonyms, which are new with every import; so tables whose people
are plain numbers at source keep them, and the page comes out the same again.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.exposure_reddit import MENTAL_HEALTH, OTHER_TOPICS, PROXY, background
from incrowd.crowd import Crowd

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("INCROWD_DATA", ROOT.parent / "shared" / "data"))
PAGE = ROOT / "docs" / "explanation" / "reproduction.md"
CROWDS = ROOT / "build" / "bench" / "crowds"
INGEST_POSTS = ("--kind", "posts", "--columns", "user=author,time=t")


def _posts(name: str) -> Callable[[Path, Path], None]:
    def make(data: Path, crowd: Path) -> None:
        command("ingest", str(data / name / "posts.jsonl.zst"), "--crowd", str(crowd), *INGEST_POSTS)

    return make


def _unpacked(path: str, kind: str) -> Callable[[Path, Path], None]:
    def make(data: Path, crowd: Path) -> None:
        plain = crowd.with_suffix(".tsv")
        plain.write_bytes(lzma.decompress((data / path).read_bytes()))
        command("ingest", str(plain), "--crowd", str(crowd), "--kind", kind, "--plain-names")

    return make


FRIENDS_OF = "1912"
"""Of the ten people whose friends the Facebook data holds, the one who has nearest to the paper's "over 700"."""


def _friends(data: Path, crowd: Path) -> None:
    """Keep the friends of one person, with their attributes."""
    everybody = CROWDS / "facebook_ego"
    if not everybody.exists():
        _as_it_is("facebook_ego/facebook_ego.tar.xz", "attributes")(data, everybody)
    with tarfile.open(data / "facebook_ego" / "facebook_ego.tar.xz") as packed:
        listed = packed.extractfile(f"fb/{FRIENDS_OF}.feat")
        assert listed is not None
        friends = [line.split()[0].decode() for line in listed]
    rows = (
        Crowd(everybody)
        .attributes()
        .select("user", "attribute", "value")
        .filter(pl.col("user").is_in(friends))
    )
    Crowd.from_frame(rows.collect(), kind="attributes", path=crowd, plain_names=True)


def _as_it_is(path: str, kind: str) -> Callable[[Path, Path], None]:
    def make(data: Path, crowd: Path) -> None:
        command("ingest", str(data / path), "--crowd", str(crowd), "--kind", kind, "--plain-names")

    return make


PROXIES = {
    "depression": " ".join(PROXY),
    "drugs": OTHER_TOPICS["drugs"],
    "pregnancy": "pregnant babybumps beyondthebump tryingforababy",
    "debts": OTHER_TOPICS["debts"],
}
"""Four of the five topics of paper 004, and the communities about them; two people took part in any about hiv."""
TRAINED = {
    "lda": ("--dims", "500", "--rounds", "60", "--placing", "dimension", "--plain-cosine"),
    "word2vec": ("--dims", "500", "--rounds", "8", "--plain-cosine"),
}
"""The latent spaces of paper 004, with 500 dimensions and its own cosines, learnt from posts of other people."""


def _proxy(data: Path, crowd: Path) -> None:
    """People of reddit_users without what they wrote in communities on the topics; who took part there is labelled.

    A proxy and no diagnosis, and no judge either: see exposure_reddit.py. Beside it, the spaces of the paper.
    """
    everything = CROWDS / "reddit_users"
    if not everything.exists():
        _posts("reddit_users")(data, everything)
    posts = Crowd(everything).posts().with_columns(name=pl.col("community").str.to_lowercase()).collect()
    hidden = [place for places in PROXIES.values() for place in places.split()]
    rest = posts.filter(~pl.col("name").str.contains(MENTAL_HEALTH) & ~pl.col("name").is_in(hidden)).drop(
        "name"
    )
    Crowd.from_frame(rest, path=crowd, plain_names=True)
    users = rest["user"].unique().sort()
    labels = []
    for topic, places in PROXIES.items():
        told = posts.filter(pl.col("name").is_in(places.split()))["user"].unique()
        labels.append(
            pl.DataFrame(
                {"user": users, "topic": topic, "vote": users.is_in(told.implode()).cast(pl.Float64)}
            )
        )
    pl.concat(labels).write_csv(crowd.parent / "topics.csv")
    texts = background(data)
    others = pl.DataFrame({"user": [str(place) for place in range(len(texts))], "text": texts})
    corpus = others.with_columns(community=pl.lit("all"), time=pl.lit(0))
    Crowd.from_frame(corpus, path=crowd.parent / "topic_corpus", plain_names=True)
    for space, options in TRAINED.items():
        out = crowd.parent / f"{space}.npz"
        command(
            "exposure",
            "train",
            str(crowd.parent / "topic_corpus"),
            "--space",
            space,
            *options,
            "--out",
            str(out),
        )


@dataclass(frozen=True)
class Run:
    """One study on one crowd."""

    study: str
    paper: str
    data: str
    """Folder of the data, and of the crowd made of it if that has no name of its own."""
    about: str
    make: Callable[[Path, Path], None]
    options: tuple[str, ...] = ()
    made: str = ""

    @property
    def crowd(self) -> Path:
        return CROWDS / (self.made or self.data)

    @property
    def name(self) -> str:
        """The study, and the data where a study runs twice."""
        twice = sum(one.study == self.study for one in RUNS) > 1
        return f"{self.study} {self.crowd.name}" if twice else self.study

    @property
    def heading(self) -> str:
        return f"Paper {self.paper}, on {self.about}"

    @property
    def shown(self) -> str:
        words = (
            "incrowd",
            "study",
            self.study,
            self.crowd.name,
            *(Path(o).name for o in self.options),
            "--json",
        )
        return shlex.join(words)


COLLEGE = "eight college forums of Reddit (282,739 posts)"
RUNS = (
    Run(
        "anonymity",
        "000, section 6",
        "reddit_college",
        COLLEGE,
        _posts("reddit_college"),
        ("--min-posts", "10"),
    ),
    Run(
        "belief",
        "000, section 4",
        "facebook_ego",
        "public ego-Facebook profiles",
        _as_it_is("facebook_ego/facebook_ego.tar.xz", "attributes"),
    ),
    Run(
        "release",
        "001, its classes",
        "facebook_ego",
        "755 friends of one person on Facebook",
        _friends,
        (
            "--paper",
            "--attribute",
            "education concentration",
            "--select-by",
            "location",
            "--select-by",
            "education school",
        ),
        "facebook_friends",
    ),
    Run(
        "release",
        "001, its films",
        "movielens_100k",
        "MovieLens 100k",
        _unpacked("movielens_100k/ml-100k.inter.xz", "items"),
        ("--paper",),
    ),
    Run(
        "microdata",
        "002",
        "movielens_100k",
        "MovieLens 100k",
        _unpacked("movielens_100k/ml-100k.inter.xz", "items"),
        ("--paper",),
    ),
    Run(
        "microdata",
        "002",
        "lastfm_hetrec2011",
        "the music of Last.fm",
        _unpacked("lastfm_hetrec2011/user_artists.dat.xz", "items"),
        ("--paper",),
    ),
    Run("linkability", "003", "reddit_college", COLLEGE, _posts("reddit_college"), ("--min-posts", "10")),
    Run(
        "exposure",
        "004",
        "reddit_users",
        "what Reddit users wrote outside forums on four of its topics, by a proxy label",
        _proxy,
        (
            "--labels",
            str(CROWDS / "topics.csv"),
            "--model",
            str(CROWDS / "lda.npz"),
            "--model",
            str(CROWDS / "word2vec.npz"),
            "--paper",
        ),
        "reddit_users_elsewhere",
    ),
)


def command(*words: str) -> str:
    """Run incrowd and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "incrowd", *words], capture_output=True, text=True, encoding="utf-8"
    )
    if done.returncode:
        raise RuntimeError(f"incrowd {words[0]}: {done.stderr.strip()[-300:]}")
    return done.stdout


def headlines(run: Run, data: Path) -> list[dict[str, Any]]:
    """Make the crowd if it is not there, run the study, return paper, here and why."""
    if not run.crowd.exists():
        CROWDS.mkdir(parents=True, exist_ok=True)
        run.make(data, run.crowd)
    told = json.loads(command("study", run.study, str(run.crowd), *run.options, "--json"))
    return list(told["headlines"])


def section(run: Run, rows: Sequence[dict[str, Any]]) -> str:
    """Write one paper's table."""
    lines = [
        f"## {run.heading}",
        "",
        f"`{run.shown}`",
        "",
        "| result | paper | here | why they differ |",
        "|---|---|---|---|",
    ]
    for row in rows:
        cells = (row["result"], row["paper"], say(row["here"]), row["why"])
        lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def say(value: Any) -> str:
    """Write a number as briefly as it can be read."""
    if value is None:
        return "undefined"
    if isinstance(value, float):
        return "0" if value == 0 else f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return str(value)


def page(sections: dict[str, str]) -> str:
    """Put the page together, papers in their order."""
    head = """# Reproduction: paper, here, why

What each of the five papers is known for, computed as the paper computes it, beside what comes out on public data of
ours. The papers' own data is not public, so no number can be the same; what can be the same is the conclusion.

`python -m benchmarks reproduction` runs the studies and writes this page; `incrowd study NAME CROWD --paper` does the
same for a crowd of yours with the paper's settings, where it is large enough. Quantities of ours stand in the studies
under names of their own, never in these tables. Paper 004 had judges; here a proxy stands in for them (who wrote in a
forum on a topic, found from what they wrote elsewhere), which is no diagnosis and no judge, so judges have no agreement
here.

Papers 000 and 003 took people with 100 comments in each community, in communities of 100 such people, without the three
largest. No public data here has enough of those: of the college forums' 7,954 people 7 have 100 posts in two forums,
and three pairs of forums share two or three of them. So their tables below use ten posts; `--paper` on this data says
that it is too small.
"""
    return "\n".join([head, *(sections[run.heading] for run in RUNS if run.heading in sections)])


def written(text: str) -> dict[str, str]:
    """Return the sections a page has."""
    parts = re.split(r"^(?=## )", text, flags=re.M)[1:]
    return {part.partition("\n")[0].removeprefix("## "): part.rstrip("\n") + "\n" for part in parts}


def main() -> dict[str, Any]:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("studies", nargs="*", help="Only these studies.")
    parser.add_argument("--data", type=Path, default=DATA)
    args = parser.parse_args()
    sections = written(PAGE.read_text("utf-8")) if PAGE.exists() else {}
    report: dict[str, Any] = {}
    for run in RUNS:
        if args.studies and run.study not in args.studies:
            continue
        if not (args.data / run.data).exists() and not run.crowd.exists():
            print(f"   {run.study}: {args.data / run.data} is not there; the page keeps what it has")
            continue
        rows = headlines(run, args.data)
        sections[run.heading] = section(run, rows)
        report[run.name] = {row["result"]: row["here"] for row in rows}
    PAGE.write_text(page(sections), encoding="utf-8")
    return report


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
