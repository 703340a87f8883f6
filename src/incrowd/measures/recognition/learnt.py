"""What other communities taught about recognising people: where a regression starts from.

A hundred and fifty people, as many as one person's answer can wait for, leave its weights to chance. So they are drawn
to these, the mean of those found in two communities of a public data set (`python -m benchmarks.recognition_learnt`;
NOTES.md says how strength and communities were chosen). Columns are standardised within their community, which is why
weights of one hold for another.
"""

from __future__ import annotations

import numpy as np

from incrowd.statistics import Expected

EXPECTED = Expected(
    weights=np.array([-0.13, -0.362, -0.131, -0.162, 0.304, 0.087, 0.138, 0.082, -0.509, 0.738, 0.04, -0.21]),
    moves=np.array(
        [0.076, -0.156, -0.08, -0.129, 0.021, -0.044, -0.073, -0.02, 0.142, 0.184, -0.007, -0.049]
    ),
    amount=3.0,
)
"""In the order of :data:`incrowd.measures.recognition.spec.FEATURES`, for somebody who has read three posts."""
