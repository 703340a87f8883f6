"""The provider's report counts what the audit log says, and what each attribute can give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.gateway.making import crowd, fill_duckdb, policy
from tests.gateway.test_core import gateway, question

from incrowd.gateway.audit import AuditLog
from incrowd.gateway.ledger import Entry, Ledger
from incrowd.gateway.query import Answer
from incrowd.gateway.report import Support, activity_report, attribute_support, filter_support, support_of
from incrowd.gateway.state import open_secret
from incrowd.measures.release import HolderIndex
from incrowd.report.gateway import gateway_page


def record(client: str, outcome: str, released: int = 0, query: str = "ab", **more: Any) -> dict[str, Any]:
    return {
        "time": f"2026-01-0{1 + released % 9}T00:00:00+00:00",
        "client": client,
        "organisation": "lab",
        "attribute": "movies" if query else "",
        "query": query,
        "outcome": outcome,
        "released": released,
        **more,
    }


def test_activity_is_counted_by_client_and_attribute(tmp_path: Path) -> None:
    secret = open_secret(tmp_path)
    Ledger(tmp_path).close()
    audit = AuditLog(tmp_path, secret.key("audit"))
    for one in (
        record("dashboard", "answered", 3),
        record("dashboard", "answered", 3),
        record("dashboard", "empty", query="cd", rule="over-budget"),
        record("dashboard", "refused", query=""),
        record("other", "error"),
    ):
        audit.append(one).result(10)
    audit.close()
    report = activity_report(tmp_path, secret)
    assert report.clients[0].to_dict() == {
        "name": "dashboard",
        "organisation": "lab",
        "asked": 4,
        "answered": 2,
        "empty": 1,
        "refused": 1,
        "failed": 0,
        "questions": 2,
        "released": 6,
        "reasons": {"over-budget": 1},
    }
    assert (report.clients[1].name, report.clients[1].failed) == ("other", 1)
    assert [(one.name, one.asked, one.released) for one in report.attributes] == [("movies", 4, 6)]
    assert (report.first[:10], report.last[:10]) == ("2026-01-04", "2026-01-01")
    assert report.audit.intact


def test_decisions_come_from_the_ledger(tmp_path: Path) -> None:
    open_secret(tmp_path)
    ledger = Ledger(tmp_path)
    for number, (values, withheld, rule) in enumerate(
        [(("a", "b"), 3, ""), ((), 5, "small"), ((), 1, "small")]
    ):
        ledger.record(
            Entry(
                asked=1.0,
                client="dashboard",
                organisation="lab",
                scope="lab",
                snapshot=1,
                origin=1,
                attribute="movies",
                key=bytes([number]),
                question="",
                digest=b"",
                people=None,
                class_size=30,
                withheld=withheld,
                rule=rule,
                body=Answer(values).body,
            )
        )
    ledger.close()
    report = activity_report(tmp_path, open_secret(tmp_path))
    assert [one.to_dict() for one in report.decisions] == [
        {
            "name": "dashboard",
            "organisation": "lab",
            "decided": 3,
            "denied": {"small": 2},
            "released": 2,
            "withheld": 9,
        }
    ]


def test_no_log_is_an_empty_report(tmp_path: Path) -> None:
    report = activity_report(tmp_path, open_secret(tmp_path))
    assert report.to_dict() == {
        "first": "",
        "last": "",
        "clients": [],
        "attributes": [],
        "decisions": [],
        "audit": {"records": 0, "intact": True, "problem": ""},
        "reset": "",
        "closed_until": "",
    }


def test_support_counts_values_by_hand() -> None:
    holders = {"common": range(40), "half": range(20), "rare": range(3)}
    found = attribute_support(
        "movies", HolderIndex.from_holders(holders), key=b"k", thresholds=(3, 10, 30, 50)
    )
    assert (found.people, found.values, found.entries) == (40, 3, 63)
    assert found.commonest == (1.0, 0.5, 0.075)
    assert [(one.q, one.frequent) for one in found.at] == [(3, 3), (10, 2), (30, 1), (50, 0)]
    assert [one.released for one in found.at][2:] == [1, 0]
    assert all(one.released <= one.frequent for one in found.at)
    assert found.largest_q == 30
    assert found.at[2].mentions == round(40 / 63, 6)


def test_support_is_that_of_the_policys_mechanism(tmp_path: Path) -> None:
    users, likes = crowd(
        {"Titanic": 400, "Alien": 150, "Heat": 30}
    )  # 30 are too few to be known of privately
    url = fill_duckdb(tmp_path / "a.db", users, {"movies": likes})
    for mechanism, expected in (("q", {2: 3, 10: 3, 50: 2}), ("private", {2: 2, 10: 2, 50: 2})):
        rules = policy(release={"mechanism": mechanism})
        with gateway(url, tmp_path / mechanism, policy=rules) as made:
            (found,) = support_of(made, rules, b"k").attributes
            shown = made.explain(question(""))
        assert found.mechanism == mechanism
        assert {one.q: one.released for one in found.at if one.q in expected} == expected
        five = next(one for one in found.at if one.q == 5)
        assert five.released == sum(one.released for one in shown.values)


def test_an_attribute_nobody_lists_supports_nothing() -> None:
    found = attribute_support("movies", HolderIndex.from_holders({}), key=b"k", thresholds=(5,))
    assert (found.values, found.people, found.largest_q) == (0, 0, 0)


def test_classes_of_a_filter_by_hand() -> None:
    found = filter_support("city", np.array([50, 30, 10, 5, 5]))
    assert (found.classes, found.people, found.half) == (5, 100, 1)
    assert dict(found.at_least)[10] == 3
    assert dict(found.at_least)[100] == 0
    assert filter_support("city", np.array([], dtype=np.int64)).half == 0
    assert filter_support("city", np.array([3, 3, 3, 3])).half == 2


def test_what_was_not_proved_in_time_is_not_known(tmp_path: Path) -> None:
    index = HolderIndex.from_pairs(np.repeat(np.arange(400), 5), np.arange(2000) % 90)
    found = attribute_support("movies", index, key=b"k", thresholds=(5,), seconds=1e-6)
    (at,) = found.at
    assert (at.released, at.mentions, found.largest_q) == (None, None, 0)
    support = Support(snapshot=1, attributes=(found,), filters=())
    assert Support.from_dict(support.to_dict()) == support
    page = gateway_page(activity_report(tmp_path, open_secret(tmp_path)), support)
    assert "there was no time for a proof" in page
