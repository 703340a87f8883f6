"""The determined adversary's verdict on every source, a block of sources at a time, on any engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.distances.all_pairs import Threads
from incrowd.engine.local import RowRange, RowRanges

if TYPE_CHECKING:
    from incrowd.distances import Compute
    from incrowd.engine.local import Piece
    from incrowd.measures.linkability.link_model import LinkModel
    from incrowd.measures.linkability.resemblance import Resemblance

Targets = NDArray[np.int64]
_KINDS: dict[str, type] = {
    "confidence": np.float64,
    "right": np.bool_,
    "odds": np.float64,
    "own": np.float64,
    "nearer": np.int64,
    "ties": np.int64,
    "shuffled_nearer": np.int64,
    "shuffled_ties": np.int64,
}


@dataclass(frozen=True)
class Judgement:
    """The job: every source against all targets. `truth` and `control` name a target a source; -1: none."""

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
        utilities = self.model.utilities(self.resemblance.scores(part.rows))
        chances = self.model.given_match(utilities)
        truth, control = self.truth[part.rows], self.control[part.rows]
        nearer, ties = _place(utilities, truth)
        shuffled_nearer, shuffled_ties = _place(utilities, control)
        return {
            "rows": np.arange(part.start, part.stop),
            "confidence": chances.max(axis=1),
            "right": chances.argmax(axis=1) == truth,
            "odds": self.model.presence_odds(utilities),
            "own": chances[np.arange(len(truth)), truth],
            "nearer": nearer,
            "ties": ties,
            "shuffled_nearer": shuffled_nearer,
            "shuffled_ties": shuffled_ties,
        }


def judge(job: Judgement, compute: Compute | None = None) -> dict[str, Any]:
    """Return one array a name, a value a source: confidence, right, odds, own, and places of the two targets."""
    sources, targets = job.resemblance.shape
    found: dict[str, Any] = {name: np.zeros(sources, kind) for name, kind in _KINDS.items()}

    def absorb(piece: Piece) -> None:
        for name, values in found.items():
            values[piece["rows"]] = piece[name]

    engine = (compute and compute.engine) or Threads()
    progress = compute.progress if compute else None
    engine.run(job, RowRanges.of(job.resemblance.slices(), targets), absorb, progress)  # type: ignore[arg-type]
    return found


def _place(utilities: Any, target: Targets) -> tuple[Any, Any]:
    own = utilities[np.arange(len(target)), target][:, None]
    return (utilities > own).sum(axis=1), (utilities == own).sum(axis=1) - 1
