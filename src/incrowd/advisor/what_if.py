"""What if? The whole answer again, for the person as they would be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.advisor.answer import Changes, PersonReport
from incrowd.advisor.assess import describe
from incrowd.advisor.examination import Examination, Progress, prepare
from incrowd.advisor.spec import AdvisorOptions

if TYPE_CHECKING:
    from incrowd.crowd import Crowd

MOST_RECENT = 2
_recent: dict[tuple[Path, str, str, AdvisorOptions], Examination] = {}


def what_if(
    crowd: Crowd,
    user: str,
    changes: Changes,
    *,
    options: AdvisorOptions | None = None,
    progress: Progress | None = None,
) -> PersonReport:
    """Answer for one person (by name) as if they had made some changes; advice is not looked for.

    The crowd itself stays as it is. Everything is measured as it would be after the changes, by the same measures.
    Asking again about the same person is quick: what was prepared for the last few is kept.
    """
    options = options or AdvisorOptions()
    exam = _prepared(crowd, crowd.user(user), options, progress)
    return describe(exam, crowd, user, options, changes)


def _prepared(crowd: Crowd, user: str, options: AdvisorOptions, progress: Progress | None) -> Examination:
    """Return the person prepared, from memory if the data and the question are still the same."""
    key = crowd.path, crowd.data_hash, user, options
    exam = _recent.pop(key, None) or prepare(crowd, user, options, progress)
    _recent[key] = exam
    while len(_recent) > MOST_RECENT:
        _recent.pop(next(iter(_recent)), None)
    return exam
