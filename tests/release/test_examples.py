"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["definition", "solve", "suppress", "verify", "canonical"])
def test_examples_in_docstrings_are_true(module):
    found = doctest.testmod(importlib.import_module(f"incrowd.measures.release.{module}"))
    assert found.attempted > 0
    assert found.failed == 0
