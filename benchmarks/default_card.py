"""Makes the card that comes with incrowd, and judges it on people who are not in it.

    python -m benchmarks.default_card --out src/incrowd/cards/reddit.card     make it again (other noise each time)
    python -m benchmarks default_card                                         judge the one that is inside
    python -m benchmarks.default_card --audit 40                              attack so many cards made like it

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
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import scipy.sparse as sp
from scipy.special import ndtr

from incrowd import __version__, default_card
from incrowd.cards.audit import advantage_of, joined
from incrowd.cards.background import (
    CLEAR,
    TOGETHER,
    Background,
    OverBackground,
    _with_words,
    describe_over,
    shares_from_users,
)
from incrowd.cards.card import Card, text_facts
from incrowd.cards.laws import Community
from incrowd.cards.make import CardOptions, describe, people_elsewhere, safe_statistics
from incrowd.cards.members import Members, read_members, word_shares
from incrowd.crowd import Crowd
from incrowd.crowd.own_export import OwnExport
from incrowd.distances import pairwise
from incrowd.errors import InputError
from incrowd.measures.anonymity.measure import Anonymity
from incrowd.measures.card_crowd import CardCrowd
from incrowd.measures.exposure import default_space
from incrowd.measures.exposure.prepared import topic_table
from incrowd.measures.exposure.scoring import score
from incrowd.measures.exposure.spec import ExposureOptions
from incrowd.measures.prepared import YOU
from incrowd.measures.protocol import AdvisorOptions, Person
from incrowd.measures.recognition.assess import MemberRecognition, words_of
from incrowd.measures.recognition.definition import halves
from incrowd.measures.recognition.history import Histories, contest
from incrowd.measures.recognition.link import link_accounts
from incrowd.measures.recognition.measure import ReadyRecognition, Recognition
from incrowd.measures.recognition.spec import KNOWN, How
from incrowd.profiles.habits import post_habits
from incrowd.statistics import auc, calibration_error

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
NAME = "Reddit"
LINE = 200
"""About so many people use a word that the card tells by itself."""
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


def audit(cards: int, planted: int = 400, seed: int = 0) -> dict[str, Any]:
    """Attack cards made like the one inside: does what they say about words tell who is in them?

    Half of the planted people are in each card. The attacker knows every word of the person, how cards are made, and
    how much noise there is: for each word, and for each group of words that noise drowns, what the card says is about
    as likely as that makes it, with the person and without (a likelihood ratio). Of the others in the card they know
    everything, too (`everybody`); or they know as many other people instead, as in `incrowd card audit`: then members
    are attacked as they are (`ordinary`), and as if they used nothing but the words that are just about told one by one
    (`rarest`). Beside it stands what somebody reaches who knows everybody and sees the noisy numbers themselves.
    """
    with tempfile.TemporaryDirectory() as folder:
        crowd = Crowd.from_frame(people("general"), path=Path(folder) / "crowd")
        public = background()
        members = _with_words(read_members(crowd, None, OPTIONS.text), public.words)
    counted = counted_words(members, public)
    rng = np.random.default_rng(seed)
    trials: dict[str, list[Any]] = {"everybody": [], "ordinary": [], "rarest": []}
    for _ in range(cards):
        for who, attacks in trials.items():
            order = rng.permutation(len(members))
            chosen, rest = order[:planted], order[planted:]
            inside = rng.permutation(planted) < planted // 2
            card, known = (rest, None) if who == "everybody" else np.array_split(rest, 2)
            own, words = members.only(chosen), counted[chosen]
            if who == "rarest":
                own = with_words_just_told(own, counted[card], public, rng)
                words = counted_words(own, public)
            published, scale = card_of(joined(members.only(card), own.only(inside)), public)
            if known is None:
                sums, chance = np.asarray(counted[card].sum(axis=0)).ravel(), 0.0
                sums = sums + np.asarray(words[inside].sum(axis=0)).ravel()
            else:
                ratio = published.people / len(known)
                sums = np.asarray(counted[known].sum(axis=0)).ravel() * ratio
                chance = sums * (1 + ratio)
            scores = likely_inside(published, public, sums, chance, words, scale)
            if known is None:  # without somebody who is inside, sums are as much lower as they add
                scores = scores + np.where(inside, 2 * squares_of(published, public, words, scale), 0.0)
            attacks.append((scores, inside))
    each = np.asarray(counted.sum(axis=1)).ravel()
    return {
        "cards": cards,
        **{who: asdict(advantage_of(attacks)) for who, attacks in trials.items()},
        "from_noisy_numbers": float((2 * ndtr(np.sqrt(each) / (2 * scale)) - 1).mean()),
        "largest": float(2 * ndtr(math.sqrt(each.max()) / (2 * scale)) - 1),
    }


def card_of(members: Members, public: Background) -> tuple[Community, float]:
    """Return a card like the one inside, and the noise on how many people use each word."""
    noise = OverBackground(OPTIONS.epsilon or 0.0, OPTIONS.delta, OPTIONS.words_each, background=public)
    published = safe_statistics(members, OPTIONS.k, noise, NAME)
    return published, math.sqrt(OPTIONS.words_each) / math.sqrt(2 * noise.spent["words"])


def parts_of(published: Community, public: Background, scale: float) -> tuple[Any, Any, Any]:
    """Return how many people use each word, by the card; of which part it tells that; and how large parts are."""
    told = users_again(published)
    alone = np.flatnonzero(told >= OPTIONS.k + CLEAR * scale)
    drowned = np.flatnonzero(told < OPTIONS.k + CLEAR * scale)
    ordered = drowned[np.argsort(-public.shares[drowned], kind="stable")]
    parts = [alone[k : k + 1] for k in range(len(alone))]
    parts += np.array_split(ordered, max(1, len(ordered) // TOGETHER))
    which = np.empty(len(told), np.int64)
    for part, places in enumerate(parts):
        which[places] = part
    return told, which, np.bincount(which)


def likely_inside(
    published: Community, public: Background, sums: Any, chance: Any, words: sp.csr_matrix, scale: float
) -> Any:
    """Return the log likelihood ratio of people who use such words; `sums` is what is expected without them."""
    told, which, sizes = parts_of(published, public, scale)
    off = np.bincount(which, told - sums)
    variance = sizes * scale**2 + np.bincount(which, np.broadcast_to(chance, len(which)))
    own = in_parts(words, which)
    return np.asarray(own @ (off / variance) - own.multiply(own) @ (1 / variance) / 2).ravel()


def squares_of(published: Community, public: Background, words: sp.csr_matrix, scale: float) -> Any:
    """Return half of what people add to the parts, squared, in units of the noise."""
    _, which, sizes = parts_of(published, public, scale)
    own = in_parts(words, which)
    return np.asarray(own.multiply(own) @ (1 / sizes) / (2 * scale**2)).ravel()


def in_parts(words: sp.csr_matrix, which: Any) -> sp.csr_matrix:
    """Add up who uses words of each part."""
    return sp.csr_matrix(words @ sp.csr_matrix((np.ones(len(which)), (np.arange(len(which)), which))))


def with_words_just_told(
    some: Members, counted: sp.csr_matrix, public: Background, rng: np.random.Generator
) -> Members:
    """Return people who use nothing but words that about as many use as it takes to be told one by one."""
    users = np.asarray(counted.sum(axis=0)).ravel()
    near = np.argsort(np.abs(np.log(np.maximum(users, 1) / LINE)), kind="stable")[: 2 * OPTIONS.words_each]
    rows = np.repeat(np.arange(len(some)), OPTIONS.words_each)
    words = np.concatenate([rng.choice(near, OPTIONS.words_each, replace=False) for _ in range(len(some))])
    place_of = {word: place for place, word in enumerate(some.vocabulary)}
    places = np.array([place_of[word] for word in public.words])[words]
    shape = (len(some), len(some.vocabulary))
    counts = sp.coo_matrix((np.ones(len(words), np.int64), (rows, places)), shape=shape).tocsr()
    return Members(counts, counts, some.vocabulary, some.users, some.posts, some.hours)


def counted_words(members: Members, public: Background) -> sp.csr_matrix:
    """Return who uses which public word, of each person the commonest that count."""
    place_of = {word: place for place, word in enumerate(members.vocabulary)}
    order = np.argsort(-public.shares, kind="stable")
    rows = sp.csr_matrix(members.counts[:, [place_of[public.words[place]] for place in order]])
    rows.sort_indices()
    place = np.arange(rows.nnz) - np.repeat(rows.indptr[:-1], np.diff(rows.indptr))
    rows.data = (place < OPTIONS.words_each).astype(np.float64)
    back = np.argsort(order)
    return sp.csr_matrix(rows[:, back])


def users_again(published: Community) -> Any:
    """Return how many people use each word, from the shares that a card tells."""
    users = np.geomspace(1e-7, 0.99, 4_000)
    return np.interp(published.shares, shares_from_users(users, published), users) * published.people


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
    trial = contest(histories, "earlier", "later", How(6, 0, 2**29))
    places = np.searchsorted(names, judged)
    rows = {name: histories.of[at] for name, at in zip(judged, places, strict=True)}
    told = {
        "posts_known": {name: predicted(pool, mine) for name, mine in rows.items()},
        "linked": {name: linked(pool, mine) for name, mine in rows.items()},
    }
    report: dict[str, Any] = {question: {} for question in told}
    for n in KNOWN:
        able = np.intersect1d(places, trial.can_be_tried(n))
        found = trial.tried(n, able).first
        for question, answers in told.items():
            each = [answers[names[at]] for at in able]
            asked = np.array([one is not None and n in one.probability for one in each])
            report[question][str(n)] = compared(
                found[asked], [one for one, yes in zip(each, asked, strict=True) if yes], n
            )
    return report | {"alike": alike()}


def alike(count: int = 80, seed: int = 1) -> dict[str, float]:
    """Count who writes like people that are not in the card, exactly and by the card, at the usual distance."""
    rng = np.random.default_rng(seed)
    others = people("mental_health")
    judged = sorted(rng.choice(others["user"].unique().sort().to_numpy(), count, replace=False).tolist())
    pool = pl.concat([people("general"), others.filter(pl.col("user").is_in(judged))])
    members = read_members(Crowd.from_frame(pool, plain_names=True), None, OPTIONS.text)
    return counted_twice(members, judged, {user: own_posts(pool, user) for user in judged}, default_card())


def alike_in(folder: Path, name: str, count: int = 60) -> dict[str, float]:
    """Do the same in a community of a crowd, for members who are left out of its card (without `--epsilon`)."""
    crowd, options = Crowd(folder), CardOptions(communities=(name,))
    members, pool = read_members(crowd, [name], options.text), crowd.posts(community=name).collect()
    able = pool.group_by("user").len().filter(pl.col("len") >= 10)["user"].sort().to_numpy()
    judged = sorted(np.random.default_rng(0).choice(able, count, replace=False).tolist())
    elsewhere = people_elsewhere(crowd, name, options)
    community, accuracy, _ = describe(members.without(judged), options, name, None, elsewhere)
    about = {"name": name, **community.facts(), "accuracy": accuracy and asdict(accuracy)}
    head = {"text": text_facts(options.text), "communities": [about]}
    _DRAWN.clear()
    card = Card.made(head, [community.tables()])
    return counted_twice(members, judged, {user: own_posts(pool, user) for user in judged}, card)


def own_posts(pool: pl.DataFrame, user: str) -> pl.DataFrame:
    """Return somebody's posts as an export holds them."""
    mine = pool.filter(pl.col("user") == user)
    return mine.select("community", "time", "text", link=pl.lit(None, pl.String))


def counted_twice(
    members: Members, judged: list[str], exports: Mapping[str, pl.DataFrame], card: Card
) -> dict[str, float]:
    """Set how many members are within the usual distance of some people beside what a card tells them."""
    shares, place = word_shares(members.counts), {user: at for at, user in enumerate(members.users)}
    real = [at for user, at in place.items() if user not in set(judged)]
    exact, told, ends = [], [], []
    for user in judged:
        crowd = among(card, exports[user])
        options = AdvisorOptions()
        for found in Anonymity().prepare(crowd, options).assess(Person(YOU, crowd)).assessments:
            apart = np.asarray(pairwise(shares[[place[user]]], shares[real]))
            exact.append(1 + int((apart <= options.radius).sum()))
            told.append(found.value)
            ends.append(found.interval)
    low, high = np.array(ends).T
    truth, number = np.array(exact), np.array(told)
    return {
        "people": len(exact),
        "median_exact": float(np.median(exact)),
        "median_card": float(np.median(told)),
        "same_side": float(np.mean((truth >= 10) == (number >= 10))),
        "above_ten_by_card_only": float(np.mean((truth < 10) & (number >= 10))),
        "nine_in_ten_within_a_factor_of": float(np.exp(np.quantile(np.abs(np.log(truth / number)), 0.9))),
        "covered": float(np.mean((low <= truth) & (truth <= high))),
    }


def compared(found: Any, told: Any, n: int) -> dict[str, float]:
    """Set what was told about people beside how often n of their posts found them."""
    chances = np.array([one.probability[n] for one in told])
    ends = np.array([one.interval[n] for one in told])
    return {
        "people": len(found),
        "found": float(found.mean()),
        "predicted": float(chances.mean()),
        "auc": auc(found >= 0.5, chances),
        "calibration_error": calibration_error(chances, found),
        "groups_covered": groups_covered(chances, ends, found),
    }


def groups_covered(chances: Any, ends: Any, found: Any, groups: int = 10) -> float:
    """Return the share of groups of people, alike by what they were told, whose rate lies in their mean interval.

    One person's rate cannot be seen from a few tries, a group's can; chance in its tries counts against the interval.

    >>> told, found = np.linspace(0.1, 0.9, 20), np.linspace(0.1, 0.9, 20)
    >>> groups_covered(told, np.column_stack([told - 0.05, told + 0.05]), found)
    1.0
    >>> groups_covered(told, np.column_stack([told - 0.05, told + 0.05]), np.zeros(20))
    0.0
    """
    parts = np.array_split(np.argsort(chances, kind="stable"), groups)
    means = [(ends[part].mean(axis=0), found[part].mean()) for part in parts]
    return float(np.mean([low <= rate <= high for (low, high), rate in means]))


def predicted(pool: pl.DataFrame, rows: Any) -> MemberRecognition | None:
    """Return what `incrowd assess` says about somebody who has only the earlier half of their posts."""
    crowd = of_own(pool, rows[: halves(len(rows))[0]])
    ready = Recognition().prepare(crowd, AdvisorOptions())
    assert isinstance(ready, ReadyRecognition)
    person = Person(YOU, crowd)
    return ready._ask(person, NAME) if ready.assess_thorough(person).assessments else None


def linked(pool: pl.DataFrame, rows: Any) -> MemberRecognition | None:
    """Return what `incrowd link` says about somebody whose halves are two accounts."""
    cut = halves(len(rows))[0]
    try:
        return link_accounts(of_own(pool, rows[:cut]), of_own(pool, rows[cut:])).found
    except InputError:  # too few posts
        return None


def of_own(pool: pl.DataFrame, rows: Any) -> CardCrowd:
    """Return some posts among the people of the card that is inside."""
    return among(
        default_card(),
        pool[rows.tolist()].select("community", "time", "text", link=pl.lit(None, pl.String)),
    )


def among(card: Card, mine: pl.DataFrame) -> CardCrowd:
    """Return somebody's own posts among the people of a card."""
    crowd = CardCrowd(card, OwnExport(mine.with_row_index("number"), frozenset(), {}, "x", "x"))
    crowd._drawn = _DRAWN  # the same made-up people for everybody: drawing them takes longest
    return crowd


_DRAWN: dict[str, Any] = {}


def main() -> dict[str, Any] | None:
    """Make the card if told where to, or judge the one inside; needs nothing but the data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="make the card anew and write it here")
    parser.add_argument(
        "--alike", type=Path, help="how many write alike: in communities of this crowd, instead"
    )
    parser.add_argument("--audit", type=int, help="attack so many cards made like it, instead")
    parser.add_argument("--communities", default="AskAcademia,GradSchool,ApplyingToCollege")
    chosen = parser.parse_args()
    if chosen.alike is not None:
        return {name: alike_in(chosen.alike, name) for name in chosen.communities.split(",")}
    if not (DATA / "reddit_users").is_dir():
        print(f"   skipped: {DATA} is not here")
        return None
    if chosen.audit is not None:
        return audit(chosen.audit)
    if chosen.out is not None:
        card = make()
        card.write(chosen.out)
        print(card, f"{chosen.out.stat().st_size:,} bytes")
        return None
    return judge()


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
