"""The determined adversary: several views on everybody's habits, weighed by practice on other communities.

Nothing is learned from the pair of communities that is judged. Practice comes from the crowd's other pairs of
communities; a crowd that has too few people in several communities gets the weights in `PRACTISED`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from incrowd.crowd import Crowd
from incrowd.distances import Compute
from incrowd.distances.all_pairs import Threads
from incrowd.engine.local import Piece, RowRange, RowRanges
from incrowd.measures.linkability.by_distance import check_communities
from incrowd.measures.linkability.definition import clustered_mean, shuffled_pairs
from incrowd.measures.linkability.link_model import (
    DEFAULT_VIEWS,
    LinkModel,
    Resemblance,
    TrainingPair,
    View,
    ViewHubs,
    blocks,
    fit,
    view_of,
)
from incrowd.measures.linkability.open_set import BEHIND, UNTAUGHT, Lesson, OpenSet, fall_off, learn, margins
from incrowd.measures.linkability.rates import LinkRates, hit_rates
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.profiles.habits import Habits, habits
from incrowd.statistics import calibration_gap

# The determined adversary's verdict on every source, a block of sources at a time, on any engine.

Targets = NDArray[np.int64]
_KINDS: dict[str, type] = {
    "confidence": np.float64,
    "right": np.bool_,
    "best": np.int64,
    "highest": np.float64,
    "second": np.float64,
    "behind": np.float64,
    "own": np.float64,
    "nearer": np.int64,
    "ties": np.int64,
    "shuffled_nearer": np.int64,
    "shuffled_ties": np.int64,
}


@dataclass(frozen=True)
class Judgement:
    """The job: every source against all targets. `truth` and `control` name one target for each source; -1: none."""

    resemblance: Resemblance
    model: LinkModel
    truth: Targets
    control: Targets
    threads: ClassVar[int | None] = 1
    """A block's matrix products use all cores already."""

    def open(self) -> Judgement:
        """Nothing to prepare."""
        return self

    def __call__(self, part: RowRange) -> Piece:
        """Say, for each source of a block, whom the adversary takes and how sure they are."""
        utilities = self.resemblance.utilities(part.rows, self.model.weights)
        chances = self.model.given_match(utilities)
        truth, control = self.truth[part.rows], self.control[part.rows]
        best, highest = utilities.argmax(axis=1), _highest(utilities, axis=1)
        nearer, ties = _place(utilities, truth)
        shuffled_nearer, shuffled_ties = _place(utilities, control)
        return {
            "rows": np.arange(part.start, part.stop),
            "confidence": chances.max(axis=1),
            "right": best == truth,
            "best": best,
            "highest": highest[:, 0],
            "second": highest[:, 1] if highest.shape[1] > 1 else np.full(len(highest), -np.inf),
            "behind": fall_off(highest)[0],
            "of_targets": _highest(utilities, axis=0),
            "own": chances[np.arange(len(truth)), truth],
            "nearer": nearer,
            "ties": ties,
            "shuffled_nearer": shuffled_nearer,
            "shuffled_ties": shuffled_ties,
        }


def judge(job: Judgement, compute: Compute | None = None) -> dict[str, Any]:
    """Return one array per name, one value per source: confidence, right, margin, own, places of the two targets."""
    sources, targets = job.resemblance.shape
    found: dict[str, Any] = {name: np.zeros(sources, kind) for name, kind in _KINDS.items()}
    of_targets = np.empty((0, targets))  # utilities of each target's best sources

    def absorb(piece: Piece) -> None:
        nonlocal of_targets
        for name, values in found.items():
            values[piece["rows"]] = piece[name]
        of_targets = _highest(np.concatenate([of_targets, piece["of_targets"]]), axis=0)

    engine = (compute and compute.engine) or Threads()
    progress = compute.progress if compute else None
    engine.run(job, RowRanges.of(job.resemblance.slices(), targets), absorb, progress)  # type: ignore[arg-type]
    return found | {"margin": _margins(found, of_targets)}


def _margins(found: Any, of_targets: Any) -> Any:
    """Return how far each source and its best target lead on both sides, see :func:`open_set.margins`."""
    if len(of_targets) < 2:
        return np.zeros(len(found["best"]))
    first, next_one = of_targets[:2, found["best"]]
    rival = np.where(found["highest"] >= first, next_one, first)
    behind_targets, of_source = fall_off(of_targets.T)
    of_target = max(min(BEHIND, of_targets.shape[1]) - 2, 0)
    behind = of_target * found["behind"] + of_source * behind_targets[found["best"]]
    gaps = of_target + of_source
    return margins(found["highest"], found["second"], rival, behind / max(gaps, 1), gaps)


def _highest(utilities: Any, *, axis: int) -> Any:
    """Return the few highest utilities of each row (axis 1) or column (axis 0), in falling order."""
    kept = min(BEHIND, utilities.shape[axis])
    where = [slice(None), slice(None)]
    where[axis] = slice(utilities.shape[axis] - kept, None)
    found = np.partition(utilities, utilities.shape[axis] - kept, axis=axis)[tuple(where)]
    return np.flip(np.sort(found.astype(np.float64), axis=axis), axis=axis)


def unseen_sum(likely: Any, own: Any, unseen: int) -> tuple[Any, Any]:
    """Return between which numbers, 95 times of 100, the sum over so many targets that were not looked at lies.

    `likely` holds exp(utility) of those looked at, with 0 in each row's `own` place. Such a sum is led by its largest
    part: the highest utilities fall off exponentially, so its ends are where the highest one unseen may lie, all
    others below it as usual, with the doubt about how fast they fall off.
    """
    rows, targets = likely.shape
    kept = min(HIGHEST, targets - 2)
    if unseen <= 0 or kept < 1:
        return np.zeros(rows), np.zeros(rows) if unseen <= 0 else np.full(rows, np.inf)
    with np.errstate(divide="ignore"):
        others = np.log(likely)
    others[np.arange(rows), own] = -np.inf
    top = np.partition(others, targets - kept - 1, axis=1)[:, targets - kept - 1 :]
    floor = np.maximum(top.min(axis=1), -600.0)
    excess = (np.maximum(top, floor[:, None]) - floor[:, None]).sum(axis=1) / kept
    usual = np.where(others <= floor[:, None], likely, 0.0)
    below, off = unseen * usual.mean(axis=1), 1.96 * np.sqrt(unseen) * usual.std(axis=1)
    expected = unseen * kept / (targets - 1)
    ends = []
    for level, side in ((0.025, -1), (0.975, 1)):
        above = max(expected + side * np.sqrt(expected), 0.0)
        scale = np.maximum(excess * (1 + side * FALL_OFF_DOUBT / np.sqrt(kept)), 1e-9)
        highest = scale * np.log(max(above / -np.log(level), 1.0))
        led = np.exp(floor) * (max(above - 1, 0.0) * _mean_below(scale, highest) + np.exp(highest))
        ends.append(np.maximum(below + side * off, 0.0) + (led if above > -np.log(level) else 0.0))
    return ends[0], ends[1]


def _mean_below(scale: Any, highest: Any) -> Any:
    """Return the mean of exp(x) for exponential x of this scale that stay below a highest one."""
    rate = 1 - 1 / scale
    flat = np.abs(rate) < 1e-6
    total = np.where(flat, highest, np.expm1(highest * rate) / np.where(flat, 1.0, rate)) / scale
    return total / np.maximum(-np.expm1(-highest / scale), 1e-9)


def _place(utilities: Any, target: Targets) -> tuple[Any, Any]:
    own = utilities[np.arange(len(target)), target][:, None]
    return (utilities > own).sum(axis=1), (utilities == own).sum(axis=1) - 1


ENOUGH_PRACTICE = 50
"""Fewer true pairs than this teach nothing reliable."""
MOST_PRACTICE_PAIRS = 6
MOST_PRACTICE_SOURCES = 250
MOST_MEMBERS = 1_500
"""Of larger communities a sample is looked at, for practice (comparing everybody again teaches no more) and where one
person is asked about, with the others counted as being like them."""
MOST_RANKED = 150
"""In such a sample, so many people are in both communities at most: enough to say where one of them stands."""
HIGHEST, FALL_OFF_DOUBT = 20, 1.5
"""How many of the highest utilities tell how fast they fall off, and how many standard errors that may be off."""
BINS = 10
MOST_UTILITIES = 256 * 2**20
"""Bytes of numbers, one for each true pair and target, held at once."""

PRACTISED = LinkModel(
    views=DEFAULT_VIEWS,
    weights=(1.3, 0.65, 1.05, 1.2, 1.3, 0.8),
)
"""Rounded averages over the evaluation of this measure; see NOTES.md."""


@dataclass(frozen=True)
class Certainty:
    """How sure the adversary is of each true pair, given that its source has a match at all."""

    sure: Any
    scores: Any
    """(pairs, views): how much each true pair stands out under each view."""
    ends: Any
    """(pairs, 2): where `sure` lies if everybody were compared, 95 times of 100; both ends the same if they are."""


@dataclass(frozen=True)
class DeterminedAttack:
    """The judged pair under the learned model."""

    sources: Habits
    targets: Habits
    model: LinkModel
    practice: int
    """True pairs of other communities that were learned from; 0: the shipped weights."""
    pairs: Any
    people: Any
    candidates: int
    """Targets of the community; more than there are here if these are a sample."""
    in_both: int
    """People who are in both communities, likewise."""
    hubs: Mapping[str, ViewHubs] = field(default_factory=dict)
    """Who resembles everybody, under the views where that is known already."""

    @property
    def stand_for(self) -> float:
        """How many candidates each target here stands for, the right one left out."""
        return (self.candidates - 1) / max(len(self.targets) - 1, 1)

    @cached_property
    def resemblance(self) -> Resemblance:
        """All views side by side, for those who ask about every source."""
        return Resemblance(self.sources, self.targets, self.model.views, self.hubs)

    def judged(self, shuffled: Any = None, compute: Compute | None = None) -> dict[str, Any]:
        """Return the adversary's verdict on every source; `shuffled` is a control target for each true pair."""
        source, target = self.pairs.T
        truth, control = np.full((2, len(self.sources)), -1, np.int64)
        truth[source] = target
        control[source] = target if shuffled is None else shuffled
        found = judge(Judgement(self.resemblance, self.model, truth, control), compute)
        places, mutual = np.zeros(len(self.sources)), np.flatnonzero(found["margin"] > 0)
        sides = self.sources, self.targets
        places[mutual] = self.resemblance.places(sides, mutual, found["best"][mutual])
        return found | {"places": places}

    def certainty(self, hubs: dict[str, ViewHubs] | None = None) -> Certainty:
        """Look at the true pairs alone, one view after the other: the numbers of `judged`, in less memory.

        `hubs` is told what was found out about each view.
        """
        views: Iterable[View] = self.laid_out({} if hubs is None else hubs)
        batches = self._batches()
        if len(batches) > 1:
            views = list(views)
        found = [self._certainty(self.pairs[batch], views) for batch in batches]
        none = Certainty(np.empty(0), np.empty((0, len(self.model.views))), np.empty((0, 2)))
        parts = zip(*((part.sure, part.scores, part.ends) for part in [none, *found]), strict=True)
        return Certainty(*map(np.concatenate, parts))

    def laid_out(self, hubs: dict[str, ViewHubs]) -> Iterator[View]:
        """Yield one view after the other, so that one is held at a time; take note of its hubs."""
        for name in self.model.views:
            view = view_of(self.sources, self.targets, name, hubs.get(name))
            hubs[name] = view.hubs
            yield view

    def certainty_of(
        self, user: str, changed: Sequence[tuple[Habits, Habits | None]], hubs: dict[str, ViewHubs]
    ) -> Certainty:
        """Say how sure the adversary would be of one person's pair, for some ways to read its two profiles again.

        None: the second one stays as it is. Everybody else, their hubs and the weights stay as they were, so this
        compares one person with everybody.
        """
        place = int(self.pairs[np.flatnonzero(self.people == user)[0], 1])
        scores = np.empty((len(changed), len(self.model.views)))
        utilities = np.zeros((len(changed), len(self.targets)), np.float32)
        for column, (view, weight) in enumerate(zip(self.laid_out(hubs), self.model.weights, strict=True)):
            name = self.model.views[column]
            for row, (source, target) in enumerate(changed):
                again = None if target is None else target.rows[name]
                found = view.scores_of_changed(source.rows[name], again, place)
                scores[row, column] = found[place]
                utilities[row] += np.float32(weight) * found
        return self._certain(utilities, np.full(len(changed), place), scores)

    def _certain(self, utilities: Any, own: Any, scores: Any) -> Certainty:
        """Return how sure the adversary is of each row's own target; the others here stand for all there are."""
        rows = np.arange(len(own))
        likely = np.exp(utilities - utilities.max(axis=1, keepdims=True)).astype(np.float64)
        right = likely[rows, own].copy()
        likely[rows, own] = 0.0
        others = self.stand_for * likely.sum(axis=1)
        sure = right / (right + others)
        fewest, most = unseen_sum(likely, own, max(self.candidates - len(self.targets), 0))
        seen = likely.sum(axis=1)
        low, high = (right / (right + seen + part) for part in (most, fewest))
        return Certainty(sure, scores, np.column_stack([np.minimum(low, sure), np.maximum(high, sure)]))

    def _certainty(self, pairs: Any, views: Iterable[View]) -> Certainty:
        source, target = pairs.T
        scores = np.empty((len(pairs), len(self.model.views)))
        utilities = np.zeros((len(pairs), len(self.targets)), np.float32)
        for place, (view, weight) in enumerate(zip(views, self.model.weights, strict=True)):
            for part in blocks(len(pairs), len(self.targets)):
                standard = view.scores(source[part])
                scores[part, place] = standard[np.arange(len(standard)), target[part]]
                standard *= np.float32(weight)
                utilities[part] += standard
        sure, ends = np.empty(len(pairs)), np.empty((len(pairs), 2))
        for part in blocks(len(pairs), len(self.targets)):
            found = self._certain(utilities[part], target[part], scores[part])
            sure[part], ends[part] = found.sure, found.ends
        return Certainty(sure, scores, ends)

    def _batches(self) -> list[slice]:
        """Cut the true pairs so that a number for each of them and each target fits the memory."""
        step = max(1, MOST_UTILITIES // (4 * max(len(self.targets), 1)))
        return [slice(at, at + step) for at in range(0, len(self.pairs), step)]


def prepare(
    crowd: Crowd,
    options: LinkabilityOptions,
    learned: tuple[LinkModel, int] | None = None,
    asked: str | None = None,
    *,
    open_set: bool = False,
) -> DeterminedAttack:
    """Read both communities' habits and learn weights on the others, unless they were `learned` before.

    `asked`: for the sake of this person (an id) alone, so that of large communities a sample is enough.
    `open_set`: learn also what tells whether there is a match at all.
    """
    both = (options.source, options.target)
    check_communities(crowd, both)
    identities = _identities(crowd, options.min_posts)
    here, there = (identities.filter(pl.col("community") == name)["user"] for name in both)
    chosen = (None, None) if asked is None else _sampled(here, there, asked, options.seed)
    # Whole communities may be practised on, too; samples are read afterwards, so that less is held at a time.
    whole = {
        name: _read(crowd, name, options.min_posts)
        for name, some in zip(both, chosen, strict=True)
        if some is None
    }
    if learned is None:
        learned = _practise(crowd, options, identities, whole, open_set=open_set)
    sources, targets = (
        whole[name] if some is None else _read(crowd, name, options.min_posts, some)
        for name, some in zip(both, chosen, strict=True)
    )
    attack = attack_on(sources, targets, *learned)
    return replace(attack, candidates=len(there), in_both=int(here.is_in(there.implode()).sum()))


def _sampled(
    sources: pl.Series, targets: pl.Series, asked: str, seed: int
) -> tuple[pl.Series | None, pl.Series | None]:
    """Choose who of two communities is looked at for the sake of one person, the person included; None: everybody."""
    rng = np.random.default_rng(seed)

    def some_of(users: pl.Series, first: pl.Series) -> pl.Series | None:
        if len(users) <= MOST_MEMBERS:
            return None
        others = users.filter(~users.is_in(first.implode())).sort()
        drawn = rng.permutation(len(others))[: MOST_MEMBERS - len(first)]
        return pl.concat([first, others.gather(np.sort(drawn).tolist())])

    me = pl.Series("user", [asked], pl.String)
    there = some_of(targets, me)
    candidates = targets if there is None else there
    both = candidates.filter(candidates.is_in(sources.implode()) & (candidates != asked)).sort()
    ranked = both.gather(np.sort(rng.permutation(len(both))[:MOST_RANKED]).tolist())
    return some_of(sources, pl.concat([me, ranked])), there


def attack_on(sources: Habits, targets: Habits, model: LinkModel, known: int) -> DeterminedAttack:
    """Return the attack on two communities' habits by a model learned on `known` true pairs of others."""
    people, of_source, of_target = np.intersect1d(
        sources.identities["user"].to_numpy(), targets.identities["user"].to_numpy(), return_indices=True
    )
    pairs = np.column_stack([of_source, of_target]).astype(np.int64).reshape(-1, 2)
    return DeterminedAttack(sources, targets, model, known, pairs, people, len(targets), len(people))


def _read(crowd: Crowd, community: str, min_posts: int, members: pl.Series | None = None) -> Habits:
    """Count the habits of a community, or of some of its members; one community's posts at a time."""
    posts = crowd.posts(community=community)
    if members is not None:
        posts = posts.join(members.to_frame("user").lazy(), on="user", how="semi")
    return habits(posts.collect(), min_posts=min_posts)


def measure(
    attack: DeterminedAttack,
    options: LinkabilityOptions,
    data_hash: str,
    compute: Compute | None = None,
) -> LinkRates:
    """Run the attack on everybody who is in both communities."""
    judged = attack.judged(shuffled_pairs(attack.pairs[:, 1], options.seed), compute)
    source = attack.pairs[:, 0]
    nearer, ties, shuffled_nearer, shuffled_ties = (
        judged[name][source] for name in ("nearer", "ties", "shuffled_nearer", "shuffled_ties")
    )
    rates = hit_rates(nearer, ties, attack.people, len(attack.targets), shuffled_nearer, shuffled_ties)
    sure, right = judged["confidence"][source], judged["right"][source]
    found, share = attack.model.open_set.found(judged["margin"], judged["places"])
    # Whoever does not know that there is a match is never surer than somebody who does.
    open_sure = np.minimum(found, judged["confidence"])
    practised = f"weights learned on {attack.practice:,} true pairs of other communities"
    return LinkRates(
        source=options.source,
        target=options.target,
        adversary=options.adversary,
        sources=len(attack.sources),
        targets=len(attack.targets),
        pairs=len(attack.pairs),
        hit_rates=rates,
        parameters=options.parameters()
        | {"weights": dict(zip(attack.model.views, attack.model.weights, strict=True))},
        data_hash=data_hash,
        figures={
            "calibration": reliability(sure, right, attack.people),
            "calibration_open": reliability(open_sure, judged["right"], np.arange(len(open_sure))),
            "estimated_share_found": {"mean": share.mean, "low": share.low, "high": share.high},
        },
        notes=(
            practised if attack.practice else "shipped weights: too few people are in several communities",
        ),
    )


def reliability(sure: Any, right: Any, people: Any) -> dict[str, Any]:
    """Return how often the adversary was right when they were this sure, and the mean gap (ECE).

    `error_by_chance` is the gap that somebody perfectly calibrated would show with so few cases, `beyond_chance` what
    is left without it (a root mean square) and where that lies with 95 %.
    """
    beyond = calibration_gap(sure, right, people)
    told = {"gap": beyond.gap, "low": beyond.interval[0], "high": beyond.interval[1]}
    if not len(sure):
        return {"bins": [], "error": np.nan, "error_by_chance": np.nan, "beyond_chance": told}
    place = np.minimum((np.asarray(sure) * BINS).astype(int), BINS - 1)
    bins = []
    for b in np.unique(place):
        here = place == b
        hit = clustered_mean(np.asarray(right)[here], np.asarray(people)[here])
        bins.append(
            {
                "sure": float(np.mean(np.asarray(sure)[here])),
                "right": hit.mean,
                "low": hit.low,
                "high": hit.high,
                "cases": int(here.sum()),
            }
        )
    error = sum(part["cases"] * abs(part["sure"] - part["right"]) for part in bins) / len(sure)
    certainty = np.asarray(sure, np.float64)
    spread = np.sqrt(np.bincount(place, weights=certainty * (1 - certainty)))
    by_chance = float(np.sqrt(2 / np.pi) * spread.sum() / len(sure))
    return {"bins": bins, "error": float(error), "error_by_chance": by_chance, "beyond_chance": told}


def _practise(
    crowd: Crowd,
    options: LinkabilityOptions,
    identities: pl.DataFrame,
    known: dict[str, Habits],
    *,
    open_set: bool,
    expected: OpenSet = UNTAUGHT,
) -> tuple[LinkModel, int]:
    """Learn from the crowd's other pairs of communities; the habits of those in `known` were read before.

    `expected`: what signs of a match weigh before that.
    """
    practice = _practice_communities(identities, {options.source, options.target})
    of: dict[str, Habits] = {}
    lessons, hubs = [], []
    for place, pair in enumerate(practice):
        for name in pair:
            if name not in of:
                members = _members(identities, practice, name, options.seed)
                of[name] = _practised_on(crowd, options, name, members, known)
        hubs.append(dict[str, ViewHubs]())
        attack = attack_on(of[pair[0]], of[pair[1]], PRACTISED, 0)
        lessons.append(_lesson(attack, attack.laid_out(hubs[-1]), options.seed))
        if not open_set:
            later = {name for other in practice[place + 1 :] for name in other}
            of = {name: habits for name, habits in of.items() if name in later}  # the others are done with
    pairs = sum(int((lesson.truth >= 0).sum()) for lesson in lessons)
    if pairs < ENOUGH_PRACTICE:
        return PRACTISED, 0
    model = fit(lessons)
    if not open_set:
        return model, pairs
    signs = [
        sign_lesson(replace(attack_on(of[here], of[there], model, pairs), hubs=known_hubs))
        for (here, there), known_hubs in zip(practice, hubs, strict=True)
    ]
    return replace(model, open_set=learn(signs, expected)), pairs


def _practised_on(
    crowd: Crowd, options: LinkabilityOptions, name: str, members: pl.Series | None, known: dict[str, Habits]
) -> Habits:
    """Return the habits of the members of a community who are practised on; None: everybody."""
    if name not in known:
        return _read(crowd, name, options.min_posts, members)
    if members is None:
        return known[name]
    return known[name].only(known[name].identities["user"].is_in(members.implode()).to_numpy())


def _identities(crowd: Crowd, min_posts: int) -> pl.DataFrame:
    """Return everybody with enough posts: user, community."""
    return (
        crowd.posts()
        .group_by("user", "community")
        .len()
        .filter(pl.col("len") >= min_posts)
        .select("user", "community")
        .collect()
    )


def _practice_communities(identities: pl.DataFrame, judged: set[str]) -> list[tuple[str, str]]:
    """Choose the pairs of communities with the most people in both, the judged pair left out."""
    shared = (
        identities.join(identities, on="user", suffix="_2")
        .filter(pl.col("community") < pl.col("community_2"))
        .group_by("community", "community_2")
        .len()
        .sort(["len", "community", "community_2"], descending=[True, False, False])
    )
    usable = [(a, b) for a, b, n in shared.iter_rows() if {a, b} != judged and n >= 10]
    return usable[:MOST_PRACTICE_PAIRS]


def _members(
    identities: pl.DataFrame, practice: list[tuple[str, str]], community: str, seed: int
) -> pl.Series | None:
    """Choose who of a large community is looked at for practice; None: everybody.

    The people learned from (those in both communities of a practice pair) come first, others at random.
    """
    users = {name: set(part["user"]) for (name,), part in identities.group_by("community")}
    here = sorted(users[community])
    if len(here) <= MOST_MEMBERS:
        return None
    kept: set[str] = set()
    for pair in practice:
        if community in pair:
            shared = sorted(users[pair[0]] & users[pair[1]])
            chosen = np.random.default_rng(seed).permutation(len(shared))[:MOST_PRACTICE_SOURCES]
            kept.update(shared[place] for place in chosen)
    others = [user for user in here if user not in kept]
    room = max(MOST_MEMBERS - len(kept), 0)
    order = np.random.default_rng(seed).permutation(len(others))[:room]
    return pl.Series("user", sorted(kept | {others[place] for place in order}), pl.String)


def _lesson(attack: DeterminedAttack, views: Iterable[View], seed: int) -> TrainingPair:
    """Take sources with a match, and how each target stands out for them."""
    truth = _truth(attack.sources, attack.targets)
    matched = np.random.default_rng(seed).permutation(np.flatnonzero(truth >= 0))
    chosen = np.sort(matched[:MOST_PRACTICE_SOURCES])
    scores = np.empty((len(chosen), len(attack.targets), len(DEFAULT_VIEWS)), np.float32)
    for place, view in enumerate(views):
        scores[:, :, place] = view.scores(chosen)
    return TrainingPair(scores, truth[chosen])


def sign_lesson(attack: DeterminedAttack) -> Lesson:
    """Return everybody's margin and places, and whether their best target is right."""
    judged = attack.judged()
    return judged["margin"], judged["places"], judged["right"]


def _truth(sources: Habits, targets: Habits) -> Targets:
    of = {user: place for place, user in enumerate(targets.identities["user"])}
    return np.array([of.get(user, -1) for user in sources.identities["user"]], np.int64)
