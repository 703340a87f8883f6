"""Alex, assessed once."""

from __future__ import annotations

import pytest

from incrowd.advisor.answer import PersonReport
from incrowd.advisor.assess import assess
from incrowd.crowd import Crowd
from incrowd.measures.protocol import AdvisorOptions


@pytest.fixture(scope="session")
def alex(tiny_crowd: Crowd) -> PersonReport:
    """The whole answer about alex, every adversary included, own posts quoted."""
    return assess(tiny_crowd, "alex", options=AdvisorOptions(quote_posts=True))
