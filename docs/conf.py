"""Sphinx settings: MyST Markdown, the package's docstrings, no external requests."""

from __future__ import annotations

from importlib.metadata import version

project = "incrowd"
author = "The incrowd developers"
copyright = "2026, the incrowd developers"
release = version("incrowd")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["generate.py", "_build"]
# The pages must be readable offline, so formulas are shown as written rather than fetched from elsewhere.
mathjax_path = ""
html_theme = "furo"
html_title = "incrowd"
html_static_path = ["images"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
suppress_warnings = ["myst.xref_missing"]
