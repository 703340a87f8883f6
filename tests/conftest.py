"""A tiny public crowd, made once a worker, that tests read and never change."""

from __future__ import annotations

import pytest
from hypothesis import settings

from incrowd.crowd import Crowd
from incrowd.synthetic import demo_person

# A slow machine is no failure: speed lives in benchmarks/.
settings.register_profile("incrowd", deadline=None)
settings.load_profile("incrowd")


@pytest.fixture(scope="session")
def tiny_crowd(tmp_path_factory: pytest.TempPathFactory) -> Crowd:
    """Sixty made-up people, alex among them: posts in four communities, ratings, attributes."""
    return demo_person(users=60, seed=5).crowd(tmp_path_factory.mktemp("tiny") / "crowd")
