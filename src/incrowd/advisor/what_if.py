"""What if? The whole answer again, for the person as they would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.advisor.answer import Changes, PersonReport
from incrowd.advisor.assess import describe
from incrowd.advisor.examination import Examination, Progress, prepare
from incrowd.advisor.spec import AdvisorOptions

if TYPE_CHECKING:
    from incrowd.crowd import Crowd


def what_if(
    crowd: Crowd,
    user: str,
    changes: Changes,
    *,
    options: AdvisorOptions | None = None,
    progress: Progress | None = None,
    exam: Examination | None = None,
) -> PersonReport:
    """Answer for one person (by name) as if they had made some changes; advice is not looked for.

    The crowd itself stays as it is. Everything is measured as it would be after the changes, by the same measures.
    `exam`, from :func:`incrowd.advisor.examination.prepare`, saves preparing the same person again.
    """
    options = options or AdvisorOptions()
    exam = exam or prepare(crowd, crowd.user(user), options, progress)
    return describe(exam, crowd, user, options, changes)
