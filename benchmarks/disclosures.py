"""How many posts of 40 words are read in a second of one core? Made-up posts, and real talk cut to 40 words.

    python -m benchmarks.disclosures [--data ../shared/data]

Real talk (blogs, which say "I" in every line, and two collections of reddit) is measured where the data is. Best of
three rounds by processor time; nothing of a text is kept or shown.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from itertools import islice
from pathlib import Path

from backports import zstd

from incrowd.measures.disclosures.assess import disclosed
from incrowd.measures.disclosures.find import read_text

TALK = (
    "the weather was fine and we took the early bus to the market where they sell bread cheese and flowers",
    "i think this version is faster but my keyboard feels odd and the screen is too bright at night",
    "nobody told them that the meeting had moved so half of the team waited downstairs for an hour",
    "you should try the other recipe with more salt and let it rest before you put it into the oven",
    "it took three tries to fix the bike and i still hear that noise when i go up the hill",
)
TOLD = (
    "I'm 31 and I live in Duluth.", "My husband hates it.", "As a nurse I see this often.", "I have two kids.",
    "I grew up in Ohio.", "I was diagnosed with asthma.", "My brother is 25.", "I work at Target.",
)  # fmt: skip


def posts(count: int, seed: int = 0) -> list[str]:
    """Return made-up posts of about 40 words, one in eight of which tells something."""
    chance = random.Random(seed)  # no secrets here
    made = []
    for _ in range(count):
        words = " ".join(chance.choices(TALK, k=2)).split()
        told = chance.choice(TOLD) if chance.random() < 0.125 else ""
        made.append(" ".join([*words[: 40 - len(told.split())], told]).strip())
    return made


def real_posts(path: Path, count: int, words: int = 40) -> list[str]:
    """Return real posts cut to 40 words, at most three pieces of each."""
    cut: list[str] = []
    with zstd.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            said = (json.loads(line).get("text") or "").split()
            starts = islice(range(0, len(said) - words + 1, words), 3)
            cut += [" ".join(said[start : start + words]) for start in starts]
            if len(cut) >= count:
                break
    return cut[:count]


def posts_a_second(texts: list[str], rounds: int = 3) -> int:
    """Return how many texts are read in a second of processor time, at best."""
    for text in texts[:2000]:  # patterns are compiled when a text first needs them
        read_text(text)
    best = float("inf")
    for _ in range(rounds):
        begun = time.process_time()
        for text in texts:
            read_text(text)
        best = min(best, time.process_time() - begun)
    return round(len(texts) / best)


def run(data: Path, count: int = 20_000) -> dict[str, object]:
    """Time reading, and an export of 10,000 posts from texts to advice."""
    found: dict[str, object] = {"posts_a_second": posts_a_second(posts(count))}
    for name in ("blog_authorship_sample", "reddit_users", "reddit_college"):
        path = data / name / "posts.jsonl.zst"
        real = real_posts(path, 10_000) if path.is_file() else []
        found[name] = posts_a_second(real) if real else "the data is not there"
        if real and name.startswith("blog"):
            found["export_of_10000_blog_posts_seconds"] = export_seconds(real)
    found["export_of_10000_seconds"] = export_seconds(posts(10_000, 1))
    return found


def export_seconds(texts: list[str]) -> float:
    """Return how long it takes from the texts of an export to advice."""
    begun = time.process_time()
    disclosed((number, 1_600_000_000 + number, text) for number, text in enumerate(texts)).to_dict()
    return round(time.process_time() - begun, 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    print(json.dumps(run(parser.parse_args().data)))
