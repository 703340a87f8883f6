"""Learn which words and word pairs tell a topic, from posts of communities about it: `incrowd exposure learn`.

A logistic regression sets a topic's communities apart from all others. A topic without communities starts from its
hand-made words: posts that use two of them are taken to be on it, and what goes with them is learnt. Half of the posts
teach and the other half judges and calibrates; then all posts teach the weights that are kept.

Words are of a topic, never of people: names, insults, words of the site itself and anything with digits stay out.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from incrowd.errors import InputError
from incrowd.measures.exposure.evaluation import auc
from incrowd.measures.exposure.space import Floats, WeightedWords
from incrowd.measures.exposure.topics import Topic, TopicSet
from incrowd.text.options import TextOptions
from incrowd.text.tokeniser import Tokeniser

Progress = Callable[[float, float | None, str], None]
ON_TOPIC = 0.02
"""The strength is calibrated to one post in fifty on the topic, whatever the share in the corpus."""
REACH = 0.25
"""How much it counts for a word to be kept that many posts hold it."""
FEWEST_POSTS = 12
"""A topic with fewer posts in either half keeps its hand-made words, each with the weight of a strong word."""
PREFIX_LENGTHS = range(3, 9)
MID_SENTENCE = re.compile(r"(?<=[a-z,;] )[A-Za-z][a-z]+\b")
NAME_FROM = 0.5
"""A word is a name if it has a capital in the middle of a sentence at least half of the time."""
TELLS = 0.75
"""So many known words are enough that a post on a topic lies above another one in three cases of four."""
MOST_WORDS_TRIED = 60


@dataclass(frozen=True, kw_only=True)
class LearnOptions:
    """How weights are learnt. Chosen on one half of the corpus and on topics that no figure is reported for."""

    weights: int = 1_000
    """Words and pairs kept for each topic."""
    strength: float = 1.0
    """How much the posts count against the wish for small weights."""
    prior: float = 20.0
    """Words and pairs added to every post's, so that a short post says little."""
    word_posts: int = 8
    pair_posts: int = 12
    """Words and pairs in fewer posts are left out."""
    candidates: int = 3_000
    """Words and pairs considered for each topic: those whose share of posts differs most clearly."""
    rounds: int = 60
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.weights, self.word_posts, self.pair_posts, self.candidates, self.rounds) < 1:
            raise InputError("learning needs at least 1 of weights, posts, candidates and rounds")


def fit(
    features: sp.csr_matrix, truth: NDArray[np.bool_], *, strength: float = 1.0, rounds: int = 300
) -> Floats:
    """Return the weights of a logistic regression with a penalty on their squares, the intercept last.

    With several columns of truth, all are fitted at once, one column of weights each. A few lines over SciPy's
    optimiser: scikit-learn would be a heavy dependency for one smooth sum. A test holds the two equal.
    """
    labels = truth.reshape(len(truth), -1)
    sign = np.where(labels, 1.0, -1.0)
    shape = features.shape[1] + 1, labels.shape[1]
    back = features.T.tocsr()

    def loss(flat: Any) -> tuple[float, Any]:
        weights = flat.reshape(shape)
        margin = sign * (features @ weights[:-1] + weights[-1])
        pull = -strength * sign * expit(-margin)
        gradient = np.vstack([weights[:-1] + back @ pull, pull.sum(axis=0)])
        total = 0.5 * (weights[:-1] ** 2).sum() + strength * np.logaddexp(0, -margin).sum()
        return float(total), gradient.ravel()

    start = np.zeros(shape)
    settings = {"maxiter": rounds, "maxcor": 6, "maxfun": 2 * rounds}
    found = np.asarray(minimize(loss, start.ravel(), jac=True, method="L-BFGS-B", options=settings).x)
    return found.reshape(shape) if truth.ndim > 1 else found


@dataclass(frozen=True, eq=False)
class Corpus:
    """Posts as counts of words and pairs that may be shown, and the community of each."""

    counts: sp.csr_matrix
    words: tuple[str, ...]
    communities: pl.Series
    in_order: tuple[NDArray[np.int64], NDArray[np.int64]]
    """The same as it is read: the post and the word of every use, a pair behind its second word."""

    @cached_property
    def rarity(self) -> Floats:
        """How rare each word is: 1 + ln(posts / posts with it)."""
        posts = self.counts.shape[0]
        return np.asarray(
            1 + np.log((1 + posts) / (1 + np.bincount(self.counts.indices, minlength=len(self.words))))
        )

    def reach(self, columns: NDArray[np.int64]) -> Floats:
        """How far a word reaches: a root of the share of posts that hold it. One row per word."""
        share = np.bincount(self.counts.indices, minlength=len(self.words)) / self.counts.shape[0]
        return np.asarray(share[columns, None] ** REACH)

    def features(self, columns: NDArray[np.int64], prior: float) -> sp.csr_matrix:
        """Return the posts over some of the words: 1 + ln(times), by rarity, over the root of how many there are."""
        some = self.counts[:, columns].tocsr().astype(np.float64)
        some.data = 1 + np.log(some.data)
        length = np.sqrt(np.diff(some.indptr) + prior)
        return (sp.diags(1 / length) @ some @ sp.diags(self.rarity[columns])).tocsr()


def read_corpus(posts: pl.DataFrame, topics: TopicSet, options: LearnOptions) -> Corpus:
    """Count words and pairs of posts (columns community and text) that may be shown."""
    tokeniser = Tokeniser(TextOptions(keep_stopwords=True))
    tokens = tokeniser.numbers(posts["text"])
    words = tokeniser.vocabulary().to_list()
    names = _names(posts["text"])
    own = set(topics.vocabulary)
    sites = {"r" + one.lower().replace("_", "") for one in posts["community"].unique()} | _words("community")
    shown = np.array([word in own or _may_be_shown(word, names, sites) for word in words])
    starts = np.concatenate([[0], tokens.ends[:-1]])
    post = np.repeat(np.arange(posts.height), np.diff(tokens.ends, prepend=0))
    number = tokens.numbers.astype(np.int64)
    second = np.ones(len(number), bool)
    second[starts[starts < len(number)]] = False
    both = np.flatnonzero(second[1:] & shown[number[1:]] & shown[number[:-1]]) + 1
    single = np.flatnonzero(shown[number])
    keys = np.concatenate([number[single], (number[both - 1] + 1) * len(words) + number[both]])
    rows = np.concatenate([post[single], post[both]])
    every, column = np.unique(keys, return_inverse=True)
    counts = sp.csr_matrix((np.ones(len(keys)), (rows, column)), shape=(posts.height, len(every)))
    counts.sum_duplicates()
    held = np.bincount(counts.indices, minlength=len(every))
    kept = held >= np.where(every < len(words), options.word_posts, options.pair_posts)
    left, right = np.divmod(every[kept], len(words))
    told = tuple(
        words[b] if a == 0 else f"{words[a - 1]} {words[b]}" for a, b in zip(left, right, strict=True)
    )
    number_kept = np.where(kept, np.cumsum(kept) - 1, -1)[column]
    order = np.argsort(np.concatenate([2 * single, 2 * both + 1]), kind="stable")
    order = order[number_kept[order] >= 0]
    return Corpus(counts[:, kept].tocsr(), told, posts["community"], (rows[order], number_kept[order]))


def _may_be_shown(word: str, names: set[str], sites: set[str]) -> bool:
    if not word.replace("'", "").isalpha() or word in names or word in sites or word in _words("site"):
        return False
    starts = (*(word[:length] for length in PREFIX_LENGTHS), f"{word}$")
    return not any(_digest(start) in _words("insult") for start in starts)


def _digest(start: str) -> str:
    return hashlib.blake2b(start.encode(), digest_size=4).hexdigest()


@cache
def _words(which: str) -> frozenset[str]:
    table = tomllib.loads(
        (files("incrowd.measures.exposure") / "learning_words.toml").read_text(encoding="utf-8")
    )
    return frozenset(table[which]["words"])


def _names(texts: Iterable[str | None]) -> set[str]:
    """Return words that are written with a capital in the middle of a sentence: people, places, products."""
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for text in texts:
        for word in MID_SENTENCE.findall(text or ""):
            (capital if word[0].isupper() else small)[word.lower()] += 1
    found = {word for word in capital if capital[word] >= NAME_FROM * (capital[word] + small[word])}
    found -= _words("thing")
    # "Smith's" has lost its apostrophe.
    return found | {f"{word}s" for word in found}


@dataclass(frozen=True, eq=False)
class Learnt:
    """Weights and how well they do on posts that had no part in learning them."""

    space: WeightedWords
    figures: dict[str, dict[str, Any]]
    """For each topic: posts on it, the AUC on the other half, and whether communities or words taught it."""
    by_words: dict[int, float]
    """AUC of so many words of a post, in the middle of the topics: how many words are enough."""

    def about(self, posts: pl.DataFrame, options: LearnOptions) -> dict[str, Any]:
        """Return the head of the file: what was learnt from, how, and the held-out figures."""
        held = {name: one for name, one in self.figures.items() if one["from"] == "communities"}
        values = [one["auc"] for one in held.values()]
        return {
            "made_by": "incrowd exposure learn",
            "posts": posts.height,
            "communities": posts["community"].n_unique(),
            "options": asdict(options),
            "on_topic": ON_TOPIC,
            "held_out": {
                "what": "AUC of posts of a topic's communities against all others, on the half that taught nothing",
                "topics": len(held),
                "median": round(float(np.median(values)), 4) if values else None,
                "lowest": min(values) if values else None,
            },
            "enough": {
                "what": f"the fewest first known words of a post with an AUC of {TELLS} on the same half",
                "by_words": {str(count): value for count, value in self.by_words.items()},
            },
            "figures": self.figures,
        }


@dataclass(frozen=True, eq=False)
class _Fitted:
    columns: NDArray[np.int64]
    weights: Floats
    """Words down, topics across; rarity is multiplied in."""


def learn(
    corpus: Corpus, topics: TopicSet, options: LearnOptions, progress: Progress | None = None
) -> Learnt:
    """Learn every topic's weights; see the module for how."""
    report = progress or (lambda done, total, what: None)
    on = _posts_on_topics(corpus, topics)
    half = np.random.default_rng(options.seed).random(len(corpus.communities)) < 0.5
    enough = np.minimum(on[half].sum(axis=0), on[~half].sum(axis=0)) >= FEWEST_POSTS
    taught = np.flatnonzero(enough)
    if not len(taught):
        raise InputError(
            f"no topic has {2 * FEWEST_POSTS} posts in its communities; name its communities in the topic file"
        )
    report(1, 4, "learning from half of the posts")
    judged = _fit(corpus, on[:, taught], half, options)
    report(2, 4, "judging on the other half")
    scale, level, figures = _judge(corpus, topics, on, taught, judged, ~half, options)
    enough, by_words = _enough(corpus, topics, on, taught, judged, ~half, options)
    report(3, 4, "learning from all posts")
    final = _fit(corpus, on[:, taught], np.ones(len(half), bool), options)
    final = replace(final, weights=final.weights * scale)
    strong = float(np.median(np.sort(final.weights, axis=0)[-10:].mean(axis=0)))
    words = [corpus.words[column] for column in final.columns]
    learnt = []
    for place, topic in enumerate(topics.topics):
        at = np.flatnonzero(taught == place)
        known = dict(zip(words, final.weights[:, at[0]], strict=True)) if len(at) else {}
        first = float(level[at[0]]) if len(at) else float(logit(ON_TOPIC)) - 1
        learnt.append(_weighted(topic, known, strong, first))
        figures.setdefault(topic.name, {"from": "hand-made words alone", "posts": int(on[:, place].sum())})
    return Learnt(WeightedWords(TopicSet(tuple(learnt)), options.prior, enough), figures, by_words)


def _posts_on_topics(corpus: Corpus, topics: TopicSet) -> NDArray[np.bool_]:
    """Say which posts are on which topic: by community, or by two of the topic's hand-made words."""
    place = {word: at for at, word in enumerate(corpus.words)}
    held = corpus.counts.tocsc() > 0
    on = np.zeros((len(corpus.communities), len(topics)), bool)
    for column, topic in enumerate(topics.topics):
        if topic.communities:
            on[:, column] = corpus.communities.is_in(topic.communities).to_numpy()
        else:
            own = [place[word] for word in topic.words if word in place]
            on[:, column] = np.asarray(held[:, own].sum(axis=1)).ravel() >= 2
    return on


def _fit(corpus: Corpus, on: NDArray[np.bool_], rows: NDArray[np.bool_], options: LearnOptions) -> _Fitted:
    """Fit over the clearest candidates, keep each topic's weightiest, and fit again over what is kept."""
    columns = _candidates(corpus.counts[rows], on[rows], options.candidates)
    weights = _weights(corpus, columns, on, rows, options)
    columns = columns[np.unique(_weightiest(weights * corpus.reach(columns), options.weights))]
    weights = _weights(corpus, columns, on, rows, options)
    kept = np.zeros(weights.shape, bool)
    np.put_along_axis(kept, _weightiest(weights * corpus.reach(columns), options.weights), True, axis=0)
    return _Fitted(columns, np.where(kept, weights, 0.0))


def _weights(
    corpus: Corpus, columns: NDArray[np.int64], on: Any, rows: NDArray[np.bool_], options: LearnOptions
) -> Floats:
    features = corpus.features(columns, options.prior)[rows]
    found = fit(features, on[rows], strength=options.strength, rounds=options.rounds)[:-1]
    return np.asarray(found * corpus.rarity[columns][:, None])


def _weightiest(weights: Floats, count: int) -> NDArray[np.int64]:
    return np.argsort(-np.abs(weights), axis=0, kind="stable")[:count]


def _candidates(counts: sp.csr_matrix, on: NDArray[np.bool_], count: int) -> NDArray[np.int64]:
    """Return the words whose share of posts on some topic differs most clearly from their share of all posts."""
    held = (counts > 0).astype(np.float64)
    posts, share = on.sum(axis=0), np.asarray(held.mean(axis=0)).ravel()
    inside = np.asarray((held.T @ on) / np.maximum(posts, 1))
    spread = np.sqrt(np.maximum(share * (1 - share), 1e-12)[:, None] / np.maximum(posts, 1))
    return np.unique(_weightiest((inside - share[:, None]) / spread, count))


def _judge(
    corpus: Corpus,
    topics: TopicSet,
    on: NDArray[np.bool_],
    taught: NDArray[np.int64],
    judged: _Fitted,
    rest: NDArray[np.bool_],
    options: LearnOptions,
) -> tuple[Floats, Floats, dict[str, dict[str, Any]]]:
    """Return each topic's scale and level on the other half, and its AUC there.

    A topic that was taught by its own words is judged without them: by what goes with them.
    """
    features = corpus.features(judged.columns, options.prior)[rest]
    plain = judged.weights / corpus.rarity[judged.columns][:, None]
    words = [set(corpus.words[column].split(" ")) for column in judged.columns]
    scale, level, figures = np.ones(len(taught)), np.zeros(len(taught)), {}
    for at, place in enumerate(taught):
        topic, truth = topics.topics[place], on[rest, place]
        told = np.asarray(features @ plain[:, at])
        slope, start = fit(sp.csr_matrix(told[:, None]), truth)
        scale[at] = max(float(slope), 0.1)
        level[at] = start - logit(truth.mean()) + logit(ON_TOPIC)
        others = np.array([word.isdisjoint(topic.words) for word in words])
        seen = told if topic.communities else np.asarray(features @ np.where(others, plain[:, at], 0.0))
        figures[topic.name] = {
            "from": "communities" if topic.communities else "what goes with its words",
            "posts": int(on[:, place].sum()),
            "auc": round(auc(seen, truth), 4),
        }
    return scale, level, figures


def _enough(
    corpus: Corpus,
    topics: TopicSet,
    on: NDArray[np.bool_],
    taught: NDArray[np.int64],
    judged: _Fitted,
    rest: NDArray[np.bool_],
    options: LearnOptions,
) -> tuple[int, dict[int, float]]:
    """Return how many known words it takes to tell anything, and the AUC by number of words up to there.

    Posts of the other half are cut to their first words. Topics that their own words taught do not count: any of those
    words would settle it.
    """
    chosen = np.flatnonzero([bool(topics.topics[place].communities) for place in taught])
    chosen = chosen if len(chosen) else np.arange(len(taught))
    told = on[rest][:, taught[chosen]].astype(float)
    shape = int(rest.sum()), len(judged.columns)
    known = np.full(len(corpus.words), -1)
    known[judged.columns] = np.arange(len(judged.columns))
    row = np.where(rest, np.cumsum(rest) - 1, -1)
    post, word = row[corpus.in_order[0]], known[corpus.in_order[1]]
    post, word = post[(post >= 0) & (word >= 0)], word[(post >= 0) & (word >= 0)]
    held = np.bincount(post, minlength=shape[0])
    place = np.arange(len(post)) - np.repeat(np.cumsum(held) - held, held)
    by_words: dict[int, float] = {}
    for count in range(1, MOST_WORDS_TRIED + 1):
        long = held >= count
        kept = (place < count) & long[post]
        counts = sp.csr_matrix((np.ones(int(kept.sum())), (post[kept], word[kept])), shape=shape)
        counts.sum_duplicates()
        counts.data = 1 + np.log(counts.data)
        length = np.sqrt(np.diff(counts.indptr) + options.prior)
        scores = np.asarray(counts @ judged.weights[:, chosen])[long] / length[long, None]
        found = [auc(scores[:, at], told[long, at]) for at in range(len(chosen))]
        by_words[count] = round(float(np.nanmedian(found)), 4)
        if by_words[count] >= TELLS:
            break
    return count, by_words


def _weighted(topic: Topic, learnt: dict[str, float], strong: float, level: float) -> Topic:
    """Return a topic with its weightiest words and pairs; hand-made words that the corpus does not know are strong."""
    weights = {word: float(weight) for word, weight in learnt.items() if round(weight, 2)}
    if not topic.communities or not learnt:
        weights |= {word: max(strong, weights.get(word, 0.0)) for word in topic.words}
    else:
        weights |= {word: strong for word in topic.words if word not in learnt}
    return replace(
        topic,
        words=tuple(weights),
        weights=tuple(round(weight, 2) for weight in weights.values()),
        level=round(level, 3),
        communities=(),
    )
