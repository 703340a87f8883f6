"""Comments that look like Reddit's: lengths, markup, links, entities, Unicode, rare words; seeded.

Shares were set after real comments: 33 words on average, two thirds of them function words, 19 % of comments
with characters beyond ASCII (mostly curly quotes), 3 % with smileys, 3 % quoting, a long tail of rare words.
"""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
from backports import zstd

FUNCTION_WORDS = """
the to I and a of that it is in you for was this but on my have with be not are they he so like just as at if or we
what me an do all can your about from would don't it's when them out up there I'm one more get how who she his no
their really because had has know some then by people think could her want time good only also see
"""
ONSETS = "b c d f g h k l m n p r s t v w st tr pl gr ch sh br cl"
RIMES = "a e i o u ar en in on er al ing ate ion ous ight ent ack ell ess"
EXTRAS = (
    (0.12, lambda words, n: [*words, "I’d", "“really”"]),
    (0.03, lambda words, n: [*words, (":)", ":D", ";)", "<3", ":/", "^_^")[n % 6]]),
    (0.03, lambda words, n: [*words, ("😂", "❤️", "😂😂😂😂", "👍🏽", "🙏")[n % 5]]),
    (0.02, lambda words, n: [*words, f"https://www.site{n % 4000}.com/r/{n}?a=b&amp;c={n}"]),
    (0.01, lambda words, n: [f"[this](https://en.site{n % 900}.org/wiki/A_(b){n})", *words]),
    (0.03, lambda words, n: ["&gt;", *words[: n % 9 + 3], "\n\n", *words]),
    (0.03, lambda words, n: [*words[:2], f"**{words[-1]}**", "*so*", *words[2:]]),
    (0.01, lambda words, n: [*words, "R&amp;D", "&lt;b&gt;", "&#39;quoted&#39;"]),
    (0.005, lambda words, n: [*words, "naïve", "Zürich", "señor", "Ελλάδα", "привет"]),
    (0.003, lambda words, n: [*words, "\n\n1. first\n2. second\n- third"]),
    (0.002, lambda words, n: ["`x = 1`", *words, "\n\n    code here\n\nend"]),
    (0.02, lambda words, n: [*words, "soooooo", "nooooo!!!!!!"]),
    (0.25, lambda words, n: [*words[: len(words) // 2], "\n\n", *words[len(words) // 2 :]]),
)
BLOCK = 50_000


def vocabulary(rng: np.random.Generator, size: int = 60_000) -> np.ndarray:
    """Return made-up words, the shorter the more common."""
    onsets, rimes = ONSETS.split(), RIMES.split()
    made: dict[str, None] = {}
    while len(made) < size:
        pieces = rng.integers(0, len(onsets) * len(rimes), rng.integers(1, 4))
        made["".join(onsets[p % len(onsets)] + rimes[p // len(onsets)] for p in pieces)] = None
    return np.array(sorted(made, key=len), object)


def bodies(rng: np.random.Generator, words: np.ndarray, count: int) -> list[str]:
    """Return the texts of some comments."""
    lengths = np.minimum(rng.lognormal(2.95, 1.0, count).astype(int) + 2, 1500)
    picks = words[_zipf(rng, len(words), 0.9, lengths.sum())]
    function_words = np.array(FUNCTION_WORDS.split(), object)
    function = rng.random(len(picks)) < 0.62
    picks[function] = function_words[_zipf(rng, len(function_words), 0.8, function.sum())]
    rare = rng.random(len(picks)) < 0.004
    picks[rare] = [
        f"{word}{n}" for word, n in zip(picks[rare], rng.integers(0, 10**5, rare.sum()), strict=True)
    ]
    ended = rng.random(len(picks)) < 0.12
    picks[ended] = (
        picks[ended]
        + np.array([".", ",", "!", "?", "...", '"', ")", ":"], object)[
            rng.choice(8, ended.sum(), p=[0.38, 0.36, 0.06, 0.08, 0.04, 0.03, 0.03, 0.02])
        ]
    )
    chance = rng.random((count, len(EXTRAS))) < [share for share, _ in EXTRAS]
    numbers = rng.integers(0, 10**6, count).tolist()
    ends = np.cumsum(lengths)
    texts = []
    for start, end, extras, n in zip((ends - lengths).tolist(), ends.tolist(), chance, numbers, strict=True):
        own = [picks[start].capitalize(), *picks[start + 1 : end]]
        for which in np.flatnonzero(extras):
            own = EXTRAS[which][1](own, n)
        texts.append(" ".join(own))
    return texts


def _zipf(rng: np.random.Generator, size: int, exponent: float, count: int) -> np.ndarray:
    share = 1 / (np.arange(size) + 2.7) ** exponent
    return np.searchsorted(np.cumsum(share / share.sum())[:-1], rng.random(count))


def write(path: Path, rows: int, seed: int = 7) -> Path:
    """Write comments as a Reddit dump: JSON lines under zstd with a long window."""
    rng = np.random.default_rng(seed)
    words = vocabulary(rng)
    people, places = max(50, rows // 17), 600
    options = {zstd.CompressionParameter.compression_level: 3, zstd.CompressionParameter.window_log: 27}
    temporary = path.with_suffix(".tmp")
    with zstd.open(temporary, "wb", options=options) as out:
        for first in range(0, rows, BLOCK):
            count = min(BLOCK, rows - first)
            authors = (people * rng.random(count) ** 2).astype(int)
            homes = (authors * 7 + (6 * rng.random(count) ** 3).astype(int) * 31) % places
            block = io.StringIO()
            for n, (text, author, home) in enumerate(
                zip(bodies(rng, words, count), authors, homes, strict=True), first
            ):
                block.write(
                    f'{{"author":"user{author}","body":{json.dumps(text)},"created_utc":{1_400_000_000 + n},'
                    f'"id":"c{n:x}","subreddit":"place{home}","score":{n % 50},"gilded":0,'
                    f'"parent_id":"t1_{n * 7:x}","edited":false}}\n'
                )
            out.write(block.getvalue().encode())
    temporary.rename(path)
    return path
