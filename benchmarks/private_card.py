"""A differentially private card of 20,000 made-up people: are others on the same side of ten people as in truth?

People write by Zipf's law, a Pólya urn each. Judged people are not in the card; one half of their words is compared
with the crowd, the other half says how near is near. Bar: epsilon 1, neither side of ten above 70 %, same side 90 %.

    python -m benchmarks.private_card --people 20000 --epsilon 1
"""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import spearmanr

from incrowd.cards.made_up import polya_urn
from incrowd.cards.make import COMPARED_POSTS, CardOptions, ProfileDistances, describe, made_up_near
from incrowd.cards.members import Members, word_shares
from incrowd.distances import pair_distances, pairwise

VOCABULARY = tuple(f"w{number:05}" for number in range(8_000))
ZIPF = 1 / (np.arange(len(VOCABULARY)) + 10.0)
LINE = 10


def people(count: int, seed: int, concentration: float, words_a_post: float) -> Members:
    """Make people who write by Zipf's law, each with favourite words of their own."""
    rng = np.random.default_rng(seed)
    posts = np.floor(np.exp(rng.uniform(math.log(2), math.log(60), count))).astype(np.int64)
    whole, halves = (count, len(VOCABULARY)), []
    # Both halves come from one urn, so that somebody's favourite words are in both.
    written = 2 * (rng.poisson(posts * words_a_post / 2) + 1)
    owner, word = polya_urn(ZIPF / ZIPF.sum(), written, concentration, rng)
    side = rng.random(len(word)) < 0.5
    for chosen in (side, ~side):
        ones = np.ones(int(chosen.sum()), np.int64)
        halves.append(sp.coo_matrix((ones, (owner[chosen], word[chosen])), shape=whole).tocsr())
    users = np.array([f"{seed}-{number}" for number in range(count)])
    hours = np.full((count, 24), 1 / 24)
    return Members(sp.csr_matrix(halves[0] + halves[1]), halves[0], VOCABULARY, users, posts, hours)


def run(
    count: int, epsilon: float, judged: int = 300, concentration: float = 1000.0, words_a_post: float = 12.0
) -> dict[str, Any]:
    """Measure people who are not in the card among real and made-up people."""
    members = people(count, 0, concentration, words_a_post)
    strangers = people(4 * judged, 1, concentration, words_a_post)
    strangers = strangers.only(np.flatnonzero(strangers.posts >= COMPARED_POSTS)[:judged])
    source, target = (word_shares(half) for half in strangers.halves())
    own = np.asarray(pair_distances(source, target, np.column_stack([np.arange(len(strangers))] * 2)))
    practised = word_shares(members.only(members.posts >= COMPARED_POSTS).counts)
    exact = (np.asarray(pairwise(source, practised)) <= own[:, None]).sum(axis=1)
    community, _, noise = describe(members, CardOptions(epsilon=epsilon), "made up")
    made = made_up_near(
        community, ProfileDistances.of(source, members.keys, community, seed=0), own, COMPARED_POSTS
    )
    return {
        "people": community.people,
        "words": len(community.words),
        "judged": len(exact),
        "privacy": noise.facts(),
        "above": float(np.mean(exact >= LINE)),
        "same_side": float(np.mean((exact >= LINE) == (made >= LINE))),
        "spearman": float(spearmanr(exact, made).statistic),
        "median_exact": float(np.median(exact)),
        "median_card": float(np.median(made)),
    }


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--people", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--judged", type=int, default=300)
    parser.add_argument("--concentration", type=float, default=1000.0)
    parser.add_argument("--words-a-post", type=float, default=12.0)
    asked = parser.parse_args()
    found = run(asked.people, asked.epsilon, asked.judged, asked.concentration, asked.words_a_post)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
