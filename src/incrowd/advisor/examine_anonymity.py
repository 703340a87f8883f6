"""Singled out by how you write: how many others in a community write as you do."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.advisor.answer import Judged, NotAssessed, ThemeName
from incrowd.advisor.examiner import Findings, Goal, Proposal
from incrowd.advisor.search import fewer_posts, fewer_words, post_order
from incrowd.advisor.stored import remembered
from incrowd.distances import ball_sizes
from incrowd.measures.anonymity.assess import crowd_assessment
from incrowd.measures.anonymity.explain import divergence_by_word, stand_out
from incrowd.measures.anonymity.spec import AnonymityOptions
from incrowd.result import Assessment

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.advisor.person import Own
    from incrowd.advisor.spec import AdvisorOptions
    from incrowd.advisor.written import Written
    from incrowd.crowd import Crowd
    from incrowd.crowd.schema import Kind


@dataclass(frozen=True, eq=False)
class AnonymityExaminer:
    """(k, d)-anonymity in each community the person writes in."""

    measure: ClassVar[str] = "anonymity"
    reads: ClassVar[Kind] = "posts"

    written: Written
    options: dict[str, AnonymityOptions]
    sizes: dict[str, NDArray[np.int64]]
    """Every other's crowd in each community, the person not counted."""
    data_hash: str
    _known: dict[Hashable, Assessment | None] = field(default_factory=dict, repr=False)

    @classmethod
    def prepare(cls, crowd: Crowd, own: Own, written: Written, options: AdvisorOptions) -> AnonymityExaminer:
        """Size everybody's crowd once."""
        chosen = {
            name: AnonymityOptions(
                community=name, radius=options.radius, text=options.text, memory=options.memory
            )
            for name in written.communities
        }
        sizes = {name: _sizes_without(crowd, own, written, name, one) for name, one in chosen.items()}
        return cls(written, chosen, sizes, crowd.data_hash)

    def examine(self, own: Own, *, explain: bool = True) -> Findings:
        """Count, in each community, who is within the radius."""
        found = {name: self._ask(own, name, explain) for name in self.options}
        return Findings(
            tuple(one for one in found.values() if one is not None),
            tuple(_gone(name) for name, one in found.items() if one is None),
        )

    def _ask(self, own: Own, name: str, explain: bool) -> Assessment | None:
        key = name, own.state_in(name), explain
        if key not in self._known:
            self._known[key] = self._assess(own, name, explain)
        return self._known[key]

    def _assess(self, own: Own, name: str, explain: bool) -> Assessment | None:
        profile, options = self.written.profile(own, name), self.options[name]
        if profile is None:
            return None
        others = self.written.communities[name].others
        near = others.within(profile, options.radius)
        size = 1 + int(near.sum())
        rank = 1 + int((self.sizes[name] + near < size).sum())
        evidence = self._evidence(own, name, profile) if explain else ((), None)
        return crowd_assessment(options, size, rank, len(others) + 1, self.data_hash, *evidence)

    def _evidence(self, own: Own, name: str, profile: sp.csr_matrix) -> Any:
        """Say which words make the person stand out."""
        from scipy import sparse

        from incrowd.advisor.others import widened
        from incrowd.profiles import Profiles

        others = widened(self.written.communities[name].others.matrix, profile.shape[1])
        words = self.written.words_of_columns(own)
        rows = sparse.vstack([others, profile], format="csr")
        ids = own.posts.head(0)
        return stand_out(
            Profiles(matrix=rows, ids=ids, vocabulary=words, model="unigram"), len(others.indptr) - 1
        )

    def propose(self, own: Own, finding: Judged, goal: Goal) -> Iterable[Proposal]:
        """Try deleting the posts, or taking out the words, that stand out most."""
        name = str(finding.assessment.assumptions.parameters["community"])
        counts, columns = self.written.counts(own, name)
        shares = divergence_by_word(counts / counts.sum(), self._average(name, columns))
        shares = np.where(counts > 0, shares, 0.0)
        per_use = np.divide(shares, counts, out=np.zeros_like(shares), where=counts > 0)

        def lack(changed: Own) -> float:
            assessed = self._assess(changed, name, explain=False)
            return math.inf if assessed is None else goal.short(assessed)

        yield from fewer_posts(own, post_order(own, own.rows_in(name), per_use), lack, name, goal.loss)
        yield from fewer_words(own, shares, lack, name)

    def _average(self, name: str, columns: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the others' mean share of the person's words."""
        others = self.written.communities[name].others.matrix
        mean = np.asarray(others.mean(axis=0)).ravel()
        known = columns < len(mean)
        found = np.zeros(len(columns))
        found[known] = mean[columns[known]]
        return found


def _sizes_without(
    crowd: Crowd, own: Own, written: Written, name: str, options: AnonymityOptions
) -> NDArray[np.int64]:
    community = written.communities[name]
    everybody = remembered(
        crowd,
        {"what": "ball sizes", **options.parameters()},
        lambda: {
            "sizes": ball_sizes(community.shares, radii=[options.radius], compute=written.compute)[:, 0]
        },
    )["sizes"]
    me = community.others.within(written.row(own, name), options.radius)
    return np.asarray(everybody[community.strangers] - me, np.int64)


def _gone(community: str) -> NotAssessed:
    return NotAssessed(
        measure="anonymity",
        why=f"you have no words in {community}",
        remedy="nothing to do: there is no profile there to single out",
        theme=ThemeName.SINGLED_OUT,
    )
