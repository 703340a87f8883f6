"""Sphinx settings: MyST Markdown, the package's docstrings, no external requests."""

from __future__ import annotations

from importlib import metadata

project = "incrowd"
author = "The incrowd developers"
copyright = "2026, the incrowd developers"
release = version = metadata.version("incrowd")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
# Notebooks are run while the pages are built; a cell that fails fails the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
html_theme = "furo"
html_title = "incrowd"
html_static_path = ["images"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
suppress_warnings = ["myst.xref_missing", "ref.python"]  # `people` in a docstring is a word, not a link
