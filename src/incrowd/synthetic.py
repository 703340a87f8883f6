"""Made-up crowds whose truth is known: ``incrowd.synthetic.posts(users=1000)`` and its siblings."""

from __future__ import annotations

from incrowd.crowd.synthetic import *  # noqa: F403
from incrowd.crowd.synthetic import __all__ as __all__
