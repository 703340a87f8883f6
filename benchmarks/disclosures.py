"""How many posts of 40 words are read in a second of one core? Made-up posts, half of them about oneself.

``python -m benchmarks.disclosures``
"""

from __future__ import annotations

import json
import random
import time

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


def run(count: int = 20_000) -> dict[str, float]:
    """Time reading, and an export of 10,000 posts from texts to advice."""
    texts = posts(count)
    read_text(TOLD[0])
    begun = time.process_time()
    for text in texts:
        read_text(text)
    took = time.process_time() - begun
    begun = time.process_time()
    disclosed(
        (number, 1_600_000_000 + number, text) for number, text in enumerate(posts(10_000, 1))
    ).to_dict()
    return {
        "posts_a_second": round(count / took),
        "export_of_10000_seconds": round(time.process_time() - begun, 2),
    }


if __name__ == "__main__":
    print(json.dumps(run()))
