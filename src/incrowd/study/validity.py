"""Is what people are told true? Predictions from the first half of everybody's posts, attacks on the second.

The attackers here are not those that a prediction uses: character runs, compression and Burrows' delta, and plain
TF-IDF cosine beside them, which the prediction's own attacker contains. A prediction is worth something if people who
were told a higher probability are found more often by all of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
import scipy.sparse as sp
from numpy.typing import NDArray

from incrowd.drawing import Chart, Series
from incrowd.errors import InputError
from incrowd.measures.recognition.assess import community_histories
from incrowd.measures.recognition.attack import grouping
from incrowd.measures.recognition.definition import first_place, pick
from incrowd.measures.recognition.history import Histories, Judged, learn
from incrowd.measures.recognition.spec import KNOWN, RecognitionOptions
from incrowd.profiles.habits import post_habits
from incrowd.statistics import auc
from incrowd.study.figures import Section, Study, Table

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

Progress = Callable[[float, float | None, str], None]
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]

BINS = 5
DELTA_WORDS = 150
"""Burrows' delta compares how often people use this many of the commonest words (Burrows 2002: 150)."""
WINDOW = 2**15
"""Deflate looks back this far, so no more of a profile helps."""
FEWEST = 40
"""Fewer people judged say nothing."""


@dataclass(frozen=True, kw_only=True)
class ValidityOptions:
    """Which communities, and how much work."""

    communities: tuple[str, ...] = ()
    """Empty: the three largest."""
    known: tuple[int, ...] = (3, 10)
    people: int = 300
    """Attacked for each number of posts, at most."""
    rivals: int = 600
    """Among whom they are looked for, at most, themselves included."""
    draws: int = 4
    seed: int = 0
    memory: int = 2**30

    def __post_init__(self) -> None:
        if not self.known or set(self.known) - set(KNOWN):
            raise InputError(f"known must be some of {', '.join(map(str, KNOWN))}; got {self.known}")
        if self.people < FEWEST or self.rivals < FEWEST or self.draws < 1:
            raise InputError(f"people and rivals must be at least {FEWEST}, draws at least 1")


class Attacker(Protocol):
    """Somebody who compares a few posts with everybody's earlier ones."""

    def __init__(self, texts: pl.Series, profiles: Sequence[Rows]) -> None: ...

    def resemblance(self, posts: Sequence[Rows]) -> Floats:
        """Return how like each group of posts is to each profile: higher is more alike."""
        ...


class _Cosine:
    """TF-IDF cosine over one family of habits, without any correction."""

    family: str

    def __init__(self, texts: pl.Series, profiles: Sequence[Rows]) -> None:
        self.rows = post_habits(texts, (self.family,)).rows[self.family]
        known = grouping(profiles, self.rows.shape[0]) @ self.rows
        holders = np.bincount(known.indices, minlength=known.shape[1])
        self.rarity = np.where(holders > 0, np.log((1 + len(profiles)) / (1 + holders)) + 1, 0.0)
        self.known = self._weighed(known)

    def _weighed(self, counts: sp.csr_matrix) -> sp.csr_matrix:
        rows = sp.csr_matrix(counts, dtype=np.float64)
        rows.data = rows.data * self.rarity[rows.indices]
        length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        return sp.csr_matrix(sp.diags(1 / np.where(length > 0, length, 1.0)) @ rows)

    def resemblance(self, posts: Sequence[Rows]) -> Floats:
        """Return the cosine of each group of posts and each profile."""
        asked = self._weighed(grouping(posts, self.rows.shape[0]) @ self.rows)
        return np.asarray((asked @ self.known.T).toarray())


class WordCosine(_Cosine):
    """Plain TF-IDF cosine of words."""

    family = "vocabulary"


class CharacterCosine(_Cosine):
    """TF-IDF cosine of runs of four characters."""

    family = "spelling"


class BurrowsDelta:
    """The mean difference of standardised frequencies of the commonest words (Burrows 2002)."""

    def __init__(self, texts: pl.Series, profiles: Sequence[Rows]) -> None:
        rows = post_habits(texts, ("vocabulary",)).rows["vocabulary"]
        used = np.asarray(rows.sum(axis=0)).ravel()
        self.totals = np.asarray(rows.sum(axis=1)).ravel()
        self.rows = rows[:, np.argsort(-used, kind="stable")[:DELTA_WORDS]]
        shares = self._shares(profiles)
        self.mean, spread = shares.mean(axis=0), shares.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self.known = (shares - self.mean) / self.spread

    def _shares(self, groups: Sequence[Rows]) -> Floats:
        summed = grouping(groups, self.rows.shape[0])
        total = np.asarray(summed @ self.totals).ravel()
        return np.asarray((summed @ self.rows).toarray() / np.maximum(total, 1)[:, None], np.float64)

    def resemblance(self, posts: Sequence[Rows]) -> Floats:
        """Return minus the delta of each group of posts and each profile."""
        asked = (self._shares(posts) - self.mean) / self.spread
        return np.array([-np.abs(self.known - one).mean(axis=1) for one in asked])


class Compression:
    """How many bytes the posts take once somebody's earlier posts are known (Deflate with a preset dictionary)."""

    def __init__(self, texts: pl.Series, profiles: Sequence[Rows]) -> None:
        self.texts = [text.encode() for text in texts.fill_null("")]
        # Reading a profile into the packer takes longest; a copy of the packer has read it already.
        self.known = [
            zlib.compressobj(6, zlib.DEFLATED, -15, zdict=self._joined(rows)[-WINDOW:]) for rows in profiles
        ]

    def _joined(self, rows: Rows) -> bytes:
        return b"\n".join(self.texts[row] for row in rows)

    def resemblance(self, posts: Sequence[Rows]) -> Floats:
        """Return minus the bytes that each group of posts adds to each profile."""
        return np.array(
            [[-self._bytes(known, said) for known in self.known] for said in map(self._joined, posts)]
        )

    @staticmethod
    def _bytes(known: Any, said: bytes) -> int:
        packer = known.copy()
        return len(packer.compress(said)) + len(packer.flush())


ATTACKERS: dict[str, type[Attacker]] = {
    "character runs": CharacterCosine,
    "compression": Compression,
    "Burrows' delta": BurrowsDelta,
    "plain TF-IDF": WordCosine,
}


@dataclass(frozen=True)
class Verdicts:
    """One community, one number of posts: what was predicted for people, and how often each attacker found them."""

    community: str
    known: int
    predicted: Floats
    found: dict[str, Floats]

    def auc(self, attacker: str) -> float:
        """How well the prediction tells those found at least half of the time from the rest."""
        return auc(self.found[attacker] >= 0.5, self.predicted)

    def curve(self, attacker: str) -> tuple[Floats, Floats]:
        """Return predicted and found, in bins of equally many people."""
        parts = np.array_split(np.argsort(self.predicted, kind="stable"), BINS)
        return tuple(  # type: ignore[return-value]
            np.array([values[part].mean() for part in parts])
            for values in (self.predicted, self.found[attacker])
        )


def validity_study(
    crowd: Crowd, options: ValidityOptions | None = None, progress: Progress | None = None
) -> Study:
    """Predict from everybody's earlier posts, attack their later ones with attackers the prediction does not use."""
    o = options or ValidityOptions()
    names = o.communities or tuple(crowd.communities()["community"].to_list()[:3])
    tell = progress or (lambda done, total, what: None)
    verdicts: list[Verdicts] = []
    for place, name in enumerate(names):
        tell(place, len(names), f"attacking {name}")
        verdicts += _community(crowd, name, o)
    return Study(
        name="validity",
        title="Is it true? Predictions held against attacks they do not use",
        summary=_summary(verdicts),
        sections=(_told_apart(verdicts), *(_curves(one) for one in verdicts)),
        facts={
            **{key: value for key, value in asdict(o).items() if key != "memory"},
            "data_hash": crowd.data_hash,
        },
    )


def _community(crowd: Crowd, name: str, o: ValidityOptions) -> list[Verdicts]:
    chosen = RecognitionOptions(community=name, seed=o.seed, memory=o.memory)
    histories, texts, _, _ = community_histories(crowd, chosen)
    lessons = learn(
        histories, draws=chosen.draws, most=o.people, seed=o.seed, memory=o.memory // 4, known=o.known
    )
    return [_attacked(histories, texts, name, n, one.judged, o) for n, one in lessons.items()]


def _attacked(
    histories: Histories, texts: pl.Series, name: str, n: int, judged: Judged, o: ValidityOptions
) -> Verdicts:
    earlier, later = histories.part("earlier"), histories.part("later")
    rng = np.random.default_rng([o.seed, n])
    others = np.setdiff1d([i for i, rows in enumerate(earlier) if len(rows)], judged.people)
    more = max(o.rivals - len(judged.people), 0)
    rivals = np.concatenate([judged.people, rng.permutation(others)[:more]]).astype(np.int64)
    # Attackers read only these people's posts; numbers of posts become places among them.
    read = np.sort(np.concatenate([histories.of[i] for i in rivals]))
    some = texts.gather(read.tolist())
    profiles = [np.searchsorted(read, earlier[i]) for i in rivals]
    asked = [np.searchsorted(read, drawn) for i in judged.people for drawn in pick(later[i], n, o.draws, rng)]
    truth = np.repeat(np.arange(len(judged.people)), o.draws)
    found = {}
    for attacker, make in ATTACKERS.items():
        scores = make(some, profiles).resemblance(asked)
        own = scores[np.arange(len(truth)), truth][:, None]
        first = first_place((scores > own).sum(axis=1), (scores == own).sum(axis=1) - 1)
        found[attacker] = first.reshape(-1, o.draws).mean(axis=1)
    return Verdicts(name, n, judged.predicted, found)


def _summary(verdicts: Sequence[Verdicts]) -> str:
    told = [one.auc(name) for one in verdicts for name in one.found]
    known = [value for value in told if value == value]
    if not known:
        return "Cannot tell: too few people wrote enough posts to predict and to attack."
    return (
        f"{sum(len(one.predicted) for one in verdicts):,} predictions held against {len(ATTACKERS)} attackers that "
        "they do not use. Somebody who is found was told a higher probability than somebody who is not in "
        f"{min(known):.0%} to {max(known):.0%} of cases, by attacker ({np.median(known):.0%} in the middle; 50 % is "
        "chance)."
    )


def _told_apart(verdicts: Sequence[Verdicts]) -> Section:
    rows: list[tuple[Any, ...]] = [
        (
            one.community,
            one.known,
            len(one.predicted),
            float(one.predicted.mean()),
            attacker,
            float(one.found[attacker].mean()),
            one.auc(attacker),
        )
        for one in verdicts
        for attacker in one.found
    ]
    columns = ("community", "posts read", "people", "predicted", "attacker", "found", "auc")
    note = "auc: how often somebody found at least half of the time had a higher prediction than somebody who was not"
    table = Table(title="Predicted and happened", columns=columns, rows=tuple(rows), note=note)
    return Section(
        heading="Does the number rank people as attacks do?",
        text="Predictions are made from the earlier half of everybody's posts, for people the regression was not "
        "fitted on. Attackers then look for the author of later posts among at most as many rivals as the facts say, "
        "so their rates are not the predicted ones; the order of people is what is compared.",
        parts=(table,),
    )


def _curves(one: Verdicts) -> Section:
    series = tuple(Series.of(name, *one.curve(name)) for name in one.found)
    chart = Chart(
        kind="lines",
        title=f"{one.community}, {one.known} posts read",
        sentence="The further right, the more likely people were told to be recognised; the higher, the more often "
        "an attacker found them.",
        x_label="predicted",
        y_label="found",
        series=series,
    )
    return Section(heading=f"{one.community}: {one.known} posts", text="", parts=(chart,))
