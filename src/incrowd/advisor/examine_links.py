"""Linkable by words: how many others would come before, or together with, your other profile."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from itertools import permutations
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.advisor.answer import Judged, NotAssessed
from incrowd.advisor.examiner import Findings, Goal, Proposal
from incrowd.advisor.others import SomeOthers, distances_to, widened
from incrowd.advisor.search import alternating, fewer_posts, fewer_words, post_order
from incrowd.advisor.silences import too_few_posts
from incrowd.advisor.stored import remembered
from incrowd.distances import within_both
from incrowd.measures.linkability.assess import pair_assessment
from incrowd.measures.linkability.explain import resemblance_by_word, word_evidence
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.result import Assessment, Evidence

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.advisor.person import Own
    from incrowd.advisor.spec import AdvisorOptions
    from incrowd.advisor.written import Community, Written
    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import Kind


@dataclass(frozen=True, eq=False)
class Pair:
    """Somebody starts in one community and looks for the person in another."""

    options: LinkabilityOptions
    candidates: SomeOthers
    """Everybody else in the target community with enough posts."""
    rivals: SomeOthers
    """Everybody else who is in both, as they are in the source community."""
    rival_distances: NDArray[np.float64]
    """How far their two profiles are apart."""
    rival_sets: NDArray[np.int64]
    """Their matching sets, the person not counted."""


@dataclass(frozen=True, eq=False)
class LinkExaminer:
    """Every ordered pair of the person's communities."""

    measure: ClassVar[str] = "linkability"
    reads: ClassVar[Kind] = "posts"

    written: Written
    pairs: tuple[Pair, ...]
    min_posts: int
    data_hash: str
    too_few: tuple[NotAssessed, ...]
    _known: dict[Hashable, Assessment] = field(default_factory=dict, repr=False)

    @classmethod
    def prepare(cls, crowd: Crowd, own: Own, written: Written, options: AdvisorOptions) -> LinkExaminer:
        """Measure everybody who is in two of the communities once."""
        posts = own.communities
        enough = [name for name in written.communities if posts[name] >= options.min_posts]
        pairs = tuple(
            _pair(crowd, own, written, source, target, options) for source, target in permutations(enough, 2)
        )
        few = tuple(
            too_few_posts("linkability", name, options.min_posts)
            for name in written.communities
            if name not in enough
        )
        return cls(written, pairs, options.min_posts, crowd.data_hash, few)

    def riskiest(self, own: Own) -> LinkabilityOptions:
        """Return the pair with the smallest matching set."""
        return min(self.pairs, key=lambda pair: self._ask(own, pair, explain=False).value).options

    def examine(self, own: Own, *, explain: bool = True) -> Findings:
        """Size the matching set for each pair of communities, and for the person's own two names."""
        missing = list(self.too_few)
        found = []
        for pair in self.pairs:
            few = [c for c in (pair.options.source, pair.options.target) if not self._enough(own, c)]
            missing += [too_few_posts("linkability", name, self.min_posts) for name in few]
            if not few:
                found.append(self._ask(own, pair, explain))
        if own.other_name is not None:
            found += self._own_names(own, own.other_name, explain)
        return Findings(tuple(found), tuple(dict.fromkeys(missing)))

    def _enough(self, own: Own, community: str) -> bool:
        inside = own.rows_in(community)
        return bool(inside.sum() >= self.min_posts and own.words.matrix[inside].nnz)

    def _ask(self, own: Own, pair: Pair, explain: bool) -> Assessment:
        both = pair.options.source, pair.options.target
        key = both, own.state_in(*both), explain
        if key not in self._known:
            self._known[key] = self._assess(own, pair, explain)
        return self._known[key]

    def _assess(self, own: Own, pair: Pair, explain: bool) -> Assessment:
        o = pair.options
        source, target = self._profiles(own, o.source, own, o.target)
        distance, near = self._matching(source, target, pair.candidates)
        size = 1 + int(near.sum())
        return pair_assessment(
            o,
            size,
            targets=len(pair.candidates) + 1,
            rank=self._rank(pair, target, size) if explain else None,
            pairs=len(pair.rivals) + 1,
            distance=distance,
            data_hash=self.data_hash,
            evidence=self._evidence(own, source, target) if explain else (),
        )

    def _rank(self, pair: Pair, target: sp.csr_matrix, size: int) -> int:
        in_sets = pair.rivals.within(target, pair.rival_distances)
        return 1 + int((pair.rival_sets + in_sets < size).sum())

    def _own_names(self, own: Own, other: Own, explain: bool) -> list[Assessment]:
        """Size the set of people who might be the other name, in each community where both have posts."""
        found = []
        for name in other.communities:
            if name not in self.written.communities or not self._enough(own, name):
                continue
            if not self._enough(other, name):
                continue
            source, target = self._profiles(other, name, own, name)
            others = self.written.communities[name]
            candidates = _candidates(others, self.min_posts)
            distance, near = self._matching(source, target, candidates)
            assessed = pair_assessment(
                LinkabilityOptions(source=f"{name} (other name)", target=name, min_posts=self.min_posts),
                1 + int(near.sum()),
                targets=len(candidates) + 1,
                rank=None,
                pairs=1,
                distance=distance,
                data_hash=self.data_hash,
                evidence=self._evidence(own, source, target) if explain else (),
            )
            found.append(assessed)
        return found

    def _profiles(self, a: Own, there: str, b: Own, here: str) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        source, target = self.written.row(a, there), self.written.row(b, here)
        width = max(source.shape[1], target.shape[1])
        return widened(source, width), widened(target, width)

    def _matching(
        self, source: sp.csr_matrix, target: sp.csr_matrix, candidates: SomeOthers
    ) -> tuple[float, NDArray[np.bool_]]:
        distance = float(distances_to(source, target, self.written.compute)[0])
        return distance, candidates.within(source, distance)

    def _evidence(self, own: Own, source: sp.csr_matrix, target: sp.csr_matrix) -> tuple[Evidence, ...]:
        p, q = (np.asarray(row.toarray(), np.float64).ravel() for row in (source, target))
        return word_evidence(p, q, self.written.words_of_columns(own))

    def propose(self, own: Own, finding: Judged, goal: Goal) -> Iterable[Proposal]:
        """Try fewer posts in either community, and fewer of the words both share."""
        pair = self._pair_of(finding.assessment)
        if pair is None or finding.assessment.unit != "people":
            return
        o = pair.options
        counts = {name: self.written.counts(own, name)[0] for name in (o.source, o.target)}
        p, q = (one / one.sum() for one in counts.values())
        shares = resemblance_by_word(p, q)

        def lack(changed: Own) -> float:
            if not all(self._enough(changed, name) for name in counts):
                return math.inf  # nothing to compare is not a crowd
            return goal.short(self._assess(changed, pair, explain=False))

        per_use = {
            name: np.divide(shares, used, out=np.zeros_like(shares), where=used > 0)
            for name, used in counts.items()
        }
        orders = [post_order(own, own.rows_in(name), weights) for name, weights in per_use.items()]
        for name, order in zip(counts, orders, strict=True):
            yield from fewer_posts(own, order, lack, name, goal.loss)
        yield from fewer_posts(own, alternating(*orders), lack, f"{o.source} and {o.target}", goal.loss)
        yield from fewer_words(own, shares, lack, f"{o.source} and {o.target}")

    def _pair_of(self, assessment: Assessment) -> Pair | None:
        chosen = assessment.assumptions.parameters
        wanted = (chosen["source"], chosen["target"])
        return next((p for p in self.pairs if (p.options.source, p.options.target) == wanted), None)


def _pair(
    crowd: Crowd, own: Own, written: Written, source: str, target: str, options: AdvisorOptions
) -> Pair:
    chosen = LinkabilityOptions(
        source=source, target=target, min_posts=options.min_posts, text=options.text, memory=options.memory
    )
    here, there = written.communities[source], written.communities[target]
    x, y = (_with_enough(one, options.min_posts) for one in (here, there))
    pairs = _common(here.users[x], there.users[y])

    def measure() -> dict[str, NDArray[np.generic]]:
        sets = within_both(here.shares[x], there.shares[y], pairs, compute=written.compute)
        return {"matching": sets.matching, "distances": sets.distances}

    everybody = remembered(crowd, {"what": "matching sets", **chosen.parameters()}, measure)
    mine = x[pairs[:, 0]] == here.own
    places = x[pairs[~mine, 0]]
    rivals = here.others.some(places - (places > here.own))
    distances = everybody["distances"][~mine].astype(np.float64)
    with_me = rivals.within(written.row(own, target), distances)
    return Pair(
        chosen,
        _candidates(there, options.min_posts),
        rivals,
        distances,
        np.asarray(everybody["matching"][~mine] - with_me, np.int64),
    )


def _with_enough(community: Community, least: int) -> NDArray[np.int64]:
    return np.flatnonzero(community.posts >= least)


def _common(sources: NDArray[np.generic], targets: NDArray[np.generic]) -> NDArray[np.int64]:
    """Return (source, target) places of everybody who is on both sides."""
    _, a, b = np.intersect1d(sources, targets, return_indices=True)
    return np.column_stack([a, b]).astype(np.int64).reshape(-1, 2)


def _candidates(community: Community, least: int) -> SomeOthers:
    """Return everybody else with enough posts."""
    return community.others.some(np.flatnonzero(community.posts[community.strangers] >= least))
