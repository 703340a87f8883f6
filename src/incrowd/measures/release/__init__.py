"""May this answer to this query leave the database? How sure could it make someone? (paper 001)

`measure_q` says how sure an answer could make somebody; `suppress` says which of its values may leave;
`verify` checks that independently; `HolderIndex` and `PatternCounts` are prepared forms of large answers.
"""

from __future__ import annotations

from incrowd.measures.release.patterns import HolderIndex, PatternCounts
from incrowd.measures.release.solve import measure_q, warm_up
from incrowd.measures.release.spec import Budget, Certificate, Method, QMeasurement, SuppressOptions
from incrowd.measures.release.suppress import Suppression, suppress
from incrowd.measures.release.verify import Verification, verify

__all__ = [
    "Budget",
    "Certificate",
    "HolderIndex",
    "Method",
    "PatternCounts",
    "QMeasurement",
    "SuppressOptions",
    "Suppression",
    "Verification",
    "measure_q",
    "suppress",
    "verify",
    "warm_up",
]
