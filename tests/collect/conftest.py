from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.collect.gathering import OPENED


@pytest.fixture(autouse=True)
def hung_up() -> Iterator[None]:
    """Close what a test's clients left open."""
    yield
    while OPENED:
        OPENED.pop().close()
