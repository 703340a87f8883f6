"""Made-up crowds of any size whose truth is known: for the demonstration, tests and benchmarks.

Nobody in them exists. The same options and seed give the same bytes, however the rows are cut into chunks,
and nothing is made before it is asked for.

=========================  =================================================================
:class:`posts`             people who write: communities, styles, stakes in topics
:class:`items`             people who rate: popularity tails, clusters of taste
:class:`attributes`        people with attributes from a known Bayesian network
:class:`holders`           people with favourites and classes, for query release
:func:`profiles`           word profiles as a sparse matrix, without any text
:func:`preset`             the above at the papers' sizes
:func:`demo_person`        a crowd with one marked member and a story
=========================  =================================================================
"""

from __future__ import annotations

from incrowd.crowd.synthetic.attributes import Network, Node, SyntheticAttributes, default_network
from incrowd.crowd.synthetic.items import SyntheticHolders, SyntheticItems
from incrowd.crowd.synthetic.members import Character
from incrowd.crowd.synthetic.posts import SyntheticPosts, profiles
from incrowd.crowd.synthetic.presets import PRESETS, Demo, demo_person, preset
from incrowd.crowd.synthetic.words import MadeUpTopic, default_topics, load_topics

# Read as verbs of making: ``synthetic.posts(users=100)``.
posts = SyntheticPosts
items = SyntheticItems
attributes = SyntheticAttributes
holders = SyntheticHolders

__all__ = [
    "PRESETS",
    "Character",
    "Demo",
    "MadeUpTopic",
    "Network",
    "Node",
    "SyntheticAttributes",
    "SyntheticHolders",
    "SyntheticItems",
    "SyntheticPosts",
    "attributes",
    "default_network",
    "default_topics",
    "demo_person",
    "holders",
    "items",
    "load_topics",
    "posts",
    "preset",
    "profiles",
]
