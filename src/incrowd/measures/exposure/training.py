"""Learn a space from a background corpus, as an adversary does before looking at anybody; judges then name its topics.

LDA by tomotopy and word2vec by gensim (the extra `topics`), on one thread and with a seed, so that the same
corpus gives the same model. Sentence embeddings come with a model that others have trained (the extra
`embeddings`); the corpus says what posts have in common. In LDA and embeddings topics are placed afterwards:
at what background posts that use their salient words hold more of than others.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args
from zlib import crc32

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from incrowd.errors import InputError, MissingExtra, SchemaError, UnreadableSource
from incrowd.measures.exposure.learnt_spaces import Embeddings, LdaSpace, WordVectors, word_vectors
from incrowd.measures.exposure.scoring import Progress
from incrowd.measures.exposure.space import Floats, WordLists
from incrowd.measures.exposure.topics import TopicSet
from incrowd.text.options import TextOptions
from incrowd.text.tokeniser import Tokeniser

if TYPE_CHECKING:
    import polars as pl


ALPHA, ETA = 0.1, 0.01
STEP = 10
PRIOR_WORDS = 30.0
"""How many words the prior of a fold-in counts for, over all dimensions alike: a short post says little."""
POSTS_A_PART = 8_192
HIGHEST_LEVEL = 0.99
PRIOR_LENGTH = 2.0
"""Embeddings: the length that every post has besides its words', in words of typical length."""
Placing = Literal["posts", "dimension"]


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """How a space is learnt."""

    dims: int = 500
    """Latent dimensions."""
    rounds: int = 300
    """Passes over the corpus (LDA); word2vec takes a twentieth."""
    min_count: int = 5
    """Words used less often are left out."""
    placing: Placing = "posts"
    """Where a topic lies in LDA: at what the background's posts on it have in common, or, as in the paper, at
    one dimension, the one its words most likely come from."""
    plain: bool = False
    """Plain cosines. LDA: the paper's, with the prior of every post in it. word2vec: vectors as trained, each word
    counting by max(0, cosine), and no level that posts about anything else reach."""
    literal: bool = False
    """word2vec as in the paper: vectors as trained, words that point away from a topic turned towards it, and no
    level that posts about anything else reach. Every post then looks like every topic."""
    text: TextOptions = field(default_factory=TextOptions)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.dims < 2 or self.rounds < 1 or self.min_count < 1:
            raise InputError("training needs at least 2 dimensions, 1 round and a minimum count of 1")
        if self.placing not in get_args(Placing):
            raise InputError(f"placing must be one of {', '.join(get_args(Placing))}; got '{self.placing}'")


def documents(texts: Iterable[pl.Series], options: TrainOptions) -> list[list[str]]:
    """Return the tokens of every post that has two known words or more."""
    tokeniser = Tokeniser(options.text)
    numbered = [tokeniser.numbers(part) for part in texts]
    words = np.array(tokeniser.vocabulary().to_list(), dtype=object)
    used = np.zeros(len(words), np.int64)
    for part in numbered:
        used += np.bincount(part.numbers, minlength=len(words))
    found: list[list[str]] = []
    for part in numbered:
        kept = used[part.numbers] >= options.min_count
        ends = np.concatenate([[0], np.cumsum(kept)])[part.ends]
        pieces = np.split(words[part.numbers[kept]], ends[:-1])
        found += [piece.tolist() for piece in pieces if len(piece) > 1]
    if not found:
        raise InputError(
            f"the background corpus has no post with two words used {options.min_count} times or more; "
            "give more text or lower --min-count"
        )
    return found


def train_lda(
    posts: list[list[str]], topics: TopicSet, options: TrainOptions, progress: Progress | None = None
) -> LdaSpace:
    """Learn an LDA space."""
    model = _lda_model(options)
    for post in posts:
        model.add_doc(post)
    for done in range(0, options.rounds, STEP):
        model.train(min(STEP, options.rounds - done), workers=1)
        if progress is not None:
            progress(done + STEP, options.rounds, "learning topics (LDA)")
    return _lda_space(model, posts, topics, options)


def _lda_model(options: TrainOptions) -> Any:
    try:
        # Its extension warns of an old interface of Python's when it loads; where warnings are errors, it
        # could not be loaded at all.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import tomotopy
    except ImportError:
        raise MissingExtra("learning an LDA space", "topics") from None
    return tomotopy.LDAModel(
        k=options.dims, alpha=ALPHA, eta=ETA, seed=options.seed, min_cf=options.min_count
    )


def _lda_space(model: Any, posts: list[list[str]], topics: TopicSet, options: TrainOptions) -> LdaSpace:
    words = tuple(model.used_vocabs)
    counts = np.stack([model.get_topic_word_dist(dim, normalize=False) for dim in range(options.dims)])
    # Smoothing gives every word a trace in every dimension; what was never drawn there is left out.
    kept = counts >= 0.5
    shares = np.where(kept, counts, 0.0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    place, dims = np.nonzero(kept.T)
    starts = np.concatenate([[0], np.cumsum(np.bincount(place, minlength=len(words)))])
    space = LdaSpace(
        topics=topics,
        words=words,
        word_starts=starts.astype(np.int64),
        dims=dims.astype(np.int32),
        weights=shares.T[kept.T].astype(np.float32),
        prior=np.full(options.dims, PRIOR_WORDS / options.dims, np.float32),
        topic_vectors=np.zeros((len(topics), options.dims), np.float32),
        plain=options.plain,
    )
    columns = known_words(topics, words)
    if options.placing == "dimension":
        return replace(space, topic_vectors=_one_dimension_each(shares, columns))
    return replace(space, topic_vectors=_places_of_topics(space, word_lists(posts, words), columns))


def _one_dimension_each(shares: NDArray[Any], columns: list[list[int]]) -> NDArray[np.float32]:
    vectors = np.zeros((len(columns), len(shares)), np.float32)
    for row, known in enumerate(columns):
        if known:
            vectors[row, name_dimension(shares, known)] = 1.0
    return vectors


def _places_of_topics(space: LdaSpace, lists: WordLists, columns: list[list[int]]) -> NDArray[np.float32]:
    mixtures = (space.mixtures(part) for part in _parts(lists))
    shares = (part / np.maximum(part.sum(axis=1, keepdims=True), 1e-12) for part in mixtures)
    on = posts_on_topics(lists, columns, len(space.words))
    return unit(np.maximum(excess(shares, on), 0.0))


def _parts(lists: WordLists) -> Iterator[WordLists]:
    for first in range(0, len(lists), POSTS_A_PART):
        yield lists.part(first, min(first + POSTS_A_PART, len(lists)))


def name_dimension(shares: NDArray[Any], columns: list[int]) -> int:
    """Return the dimension that a topic names: where its words, each counted alike, most likely come from.

    `shares` holds P(word | dimension), dimensions down. Words are weighed by P(dimension | word).
    """
    chosen = shares[:, columns]
    return int((chosen / np.maximum(chosen.sum(axis=0), 1e-12)).sum(axis=1).argmax())


def train_word2vec(posts: list[list[str]], topics: TopicSet, options: TrainOptions) -> WordVectors:
    """Learn a word2vec space (skip-gram with negative sampling)."""
    try:
        from gensim.models import Word2Vec
    except ImportError:
        raise MissingExtra("learning a word2vec space", "topics") from None
    model = Word2Vec(
        posts,
        vector_size=options.dims,
        sg=1,
        min_count=options.min_count,
        epochs=max(1, options.rounds // 20),
        seed=options.seed,
        workers=1,
        # Python's own string hash differs from run to run.
        hashfxn=_stable_hash,
    )
    words = tuple(model.wv.index_to_key)
    vectors, levels = np.asarray(model.wv.vectors, np.float32), np.zeros(len(topics), np.float32)
    if options.literal or options.plain:
        return WordVectors(topics, words, vectors, levels, literal=options.literal)
    vectors = centre(unit(vectors), np.array([model.wv.get_vecattr(word, "count") for word in words]))
    return with_levels(WordVectors(topics, words, vectors, levels), posts)


def with_levels(space: WordVectors, posts: list[list[str]]) -> WordVectors:
    """Set the levels that posts about anything else reach: their mean cosine and one standard deviation."""
    lists = word_lists(posts, space.words)
    on = posts_on_topics(lists, known_words(space.topics, space.words), len(space.words))
    others = np.ma.masked_array(space.cosines(lists), on)
    levels = np.ma.filled(others.mean(axis=0) + others.std(axis=0), 0.0)
    return replace(space, levels=np.minimum(levels, HIGHEST_LEVEL).astype(np.float32))


def _stable_hash(word: str) -> int:
    return crc32(word.encode())


def learn_embeddings(posts: list[list[str]], topics: TopicSet, options: TrainOptions) -> Embeddings:
    """Make a space of sentence embeddings: vectors from the model, what is common and where topics lie from the posts.

    A topic that no post is on lies where its words lie.
    """
    used = Counter(chain.from_iterable(posts))
    enough = {word for word, times in used.items() if times >= options.min_count}
    words = tuple(sorted(enough.union(topics.vocabulary)))
    times = np.array([used[word] for word in words])
    lists, columns = word_lists(posts, words), known_words(topics, words)
    nowhere = np.zeros((len(topics), 0), np.float32)
    space = Embeddings(topics, words, centre(word_vectors(words), times), nowhere, prior=0.0)
    vectors = space.vectors @ evening(unit(space.sums(part)) for part in _parts(lists))
    typical = np.sqrt(times @ np.einsum("wd,wd->w", vectors, vectors) / max(1, times.sum()))
    space = replace(space, vectors=vectors, prior=float(PRIOR_LENGTH * typical))
    on = posts_on_topics(lists, columns, len(words))
    by_posts = excess((unit(space.sums(part)) for part in _parts(lists)), on)
    by_words = np.stack([space.vectors[some].sum(axis=0) for some in columns])
    some_post = on.sum(axis=0)[:, None] > 0
    return replace(space, topic_vectors=unit(np.where(some_post, by_posts, by_words)))


EVENING = 0.2
"""What every direction's spread counts as besides its own, as a share of the mean spread."""


def centre(vectors: Floats, used: NDArray[Any]) -> NDArray[np.float32]:
    """Take the mean off word vectors, each word counted as often as it is used.

    >>> centre(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([3, 1])).tolist()
    [[0.25, -0.25], [-0.75, 0.75]]
    """
    return np.asarray(vectors - (used @ vectors) / max(1, used.sum()), np.float32)


def evening(parts: Iterable[Floats]) -> NDArray[np.float32]:
    """Return the map after which posts spread alike in all directions, but for those in which they hardly do.

    The inverse square root of the posts' covariance, with a share of its mean eigenvalue added.
    """
    posts, total, products = 0, np.zeros(1), np.zeros((1, 1))
    for part in parts:
        posts += len(part)
        total = total + part.sum(axis=0, dtype=np.float64)
        products = products + part.T @ part
    mean = total / max(1, posts)
    spread, directions = np.linalg.eigh(products / max(1, posts) - np.outer(mean, mean))
    spread = np.maximum(spread, 0) + EVENING * max(float(spread.mean()), 1e-12)
    return np.asarray(directions / np.sqrt(spread) @ directions.T, np.float32)


MOST_WORDS = 40
"""So many of a topic's words place it in a learnt space."""
ENOUGH_WORDS = 2
"""A background post is on a topic if it uses so many of its salient words."""


def word_lists(posts: Sequence[Sequence[str]], words: Sequence[str]) -> WordLists:
    """Return the posts as numbers of the words that are known; the others are left out."""
    place = {word: at for at, word in enumerate(words)}
    sizes = np.fromiter(map(len, posts), np.int64, len(posts))
    tokens = chain.from_iterable(posts)
    numbers = np.fromiter((place.get(token, -1) for token in tokens), np.int32, int(sizes.sum()))
    kept = np.concatenate([[0], np.cumsum(numbers >= 0)])
    return WordLists(numbers[numbers >= 0], kept[np.concatenate([[0], np.cumsum(sizes)])])


def known_words(topics: TopicSet, words: Sequence[str]) -> list[list[int]]:
    """Return, for each topic, the numbers of those of its salient words that a space knows, the weightiest first."""
    place = {word: at for at, word in enumerate(words)}
    found = []
    for topic in topics.topics:
        singles = topic.single_words()
        # Learnt topics have a thousand words; those that count little would put every post on every topic.
        known = sorted((word for word in singles if word in place), key=lambda word: -singles[word])
        found.append([place[word] for word in known[:MOST_WORDS]])
    return found


def posts_on_topics(posts: WordLists, columns: Sequence[Sequence[int]], width: int) -> NDArray[np.bool_]:
    """Say which post is on which topic: it uses two of its salient words, or the only one that is known."""
    held = posts.counts(width).tocsc() > 0
    on = np.zeros((len(posts), len(columns)), np.bool_)
    for topic, some in enumerate(columns):
        if some:
            hits = np.asarray(held[:, list(some)].sum(axis=1)).ravel()
            on[:, topic] = hits >= min(ENOUGH_WORDS, len(some))
    return on


def excess(parts: Iterable[Floats], on: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return how the mean of the posts on each topic differs from the mean of all, one row per topic.

    `parts` are the posts' vectors in order, some at a time. A topic that no post is on is a row of zeros.

    >>> excess([np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])], np.array([[True, False], [False, False]])).tolist()
    [[0.5, -0.5], [0.0, 0.0]]
    """
    inside: Any = 0.0
    everything: Any = 0.0
    begin = 0
    for part in parts:
        inside = inside + on[begin : begin + len(part)].T.astype(np.float64) @ part
        everything = everything + part.sum(axis=0, dtype=np.float64)
        begin += len(part)
    posts = on.sum(axis=0)[:, None]
    return np.where(posts > 0, inside / np.maximum(posts, 1) - everything / len(on), 0.0)


def unit(vectors: Floats) -> NDArray[np.float32]:
    """Bring every row to length 1; a row of zeros stays."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0), np.float32)


# Judges look at what a model found: which latent topics are sensitive, and to which domain they belong.
#
# Paper 004, section 4: several judges see the twenty most salient words of a topic and say whether it is
# sensitive and to which of seven domains it belongs. The majority decides; Fleiss' kappa says how far they agree.

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
