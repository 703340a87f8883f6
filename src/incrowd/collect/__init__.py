"""The collector: a crowd from the network, politely. The only code of incrowd that connects to another machine.

It is an extra (``pip install 'incrowd[collect]'``), and nothing but ``incrowd collect`` imports it.

    from incrowd.collect import Collector, Plan

    plan = Plan(service="mastodon", server="https://example.social", communities=("#tea",), contact="you@example.org")
    with Collector(plan, Crowd.open_or_create("crowd")) as collector:
        print(collector.estimate())
        print(collector.run())
"""

from __future__ import annotations

from incrowd.collect.collector import CollectCost, Collected, Collector, CollectPlan
from incrowd.collect.services import SERVICES

__all__ = ["SERVICES", "CollectCost", "CollectPlan", "Collected", "Collector"]
