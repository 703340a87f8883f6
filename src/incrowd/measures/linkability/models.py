"""The identity models of paper 003, for two communities at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from incrowd.profiles import indicator, tfidf, unigram

if TYPE_CHECKING:
    import scipy.sparse as sp

    from incrowd.measures.linkability.meeting import Meeting
    from incrowd.measures.linkability.spec import LinkabilityOptions


def model_rows(meeting: Meeting, options: LinkabilityOptions) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Return the rows of the sources and of the targets under the chosen model."""
    if options.model == "topics":
        from incrowd.measures.linkability.author_topics import topic_rows

        return topic_rows(meeting, seed=options.seed)
    if options.model == "tfidf":
        # Rarity is counted in the target community, as the adversary who searches it would.
        rows = tfidf(meeting.counts, domain=meeting.targets).matrix
    else:
        rows = {"unigram": unigram, "indicator": indicator}[options.model](meeting.counts).matrix
    return rows[np.asarray(meeting.sources)], rows[np.asarray(meeting.targets)]
