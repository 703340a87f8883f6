from __future__ import annotations

import json
import re
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from tests.gateway.making import policy

from incrowd.errors import InputError
from incrowd.gateway.policy import (
    AttributeSource,
    DatabasePolicy,
    Filter,
    GatewayPolicy,
    Organisation,
    cautions,
    load_policy,
    promise,
    read_policy,
)
from incrowd.gateway.query import KINDS

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE = DOCS / "reference" / "gateway-policy.md"


def strong(**changes: Any) -> dict[str, Any]:
    content: dict[str, Any] = {
        "database": {
            "users": "users",
            "id": "id",
            "created": "created_at",
            "filters": {"city": "text"},
            "attributes": {"movies": {"table": "likes", "user": "user_id", "value": "title"}},
        },
        "organisations": {"acme": {}},
    }
    for section, settings in changes.items():
        content[section] = (
            {**content.get(section, {}), **settings} if isinstance(settings, dict) else settings
        )
    return content


def test_defaults_are_not_weak() -> None:
    made = read_policy(strong())
    assert made.release.q == 10
    assert made.least == 12
    assert made.asking.filters == {"city": "text"}
    assert not made.asking.allow_not


def test_a_file_is_read_with_paths_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(
        """
        [database]
        users = "app.users"
        id = "id"
        created = "created_at"
        filters.city = "text"
        filters.age = { column = "age_years", type = "integer" }
        attributes.movies = { table = "likes", user = "user_id", value = "title", aliases = "films.json" }
        [organisations.acme]
        queries = 7
        [release]
        q = 12
        min_class = 30
        """,
        "utf-8",
    )
    made = load_policy(tmp_path / "policy.toml")
    assert made.database.attributes["movies"].aliases == tmp_path / "films.json"
    assert made.database.filters["age"] == Filter(column="age_years", type="integer")
    assert (made.queries_of("acme"), made.queries_of("others")) == (7, 0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "database"),
        ({"database": 3}, "expected a table"),
        (strong(databse={}), "unknown setting 'databse'"),
        (strong(release={"Q": 10}), "unknown setting 'Q'"),
        (strong(release={"q": "10"}), "expected a whole number"),
        (strong(release={"q": 10.0}), "expected a whole number"),
        (strong(release={"q": True}), "expected a whole number"),
        (strong(release={"allow_not": 0}), "expected true or false"),
        (strong(release={"q": 1}), "expected 2 to"),
        (strong(release={"q": 30}), "min_class"),
        (strong(release={"joint": "some"}), "joint"),
        (strong(budget={"scope": "nobody"}), "scope"),
        (strong(limits={"depth": 0}), "depth"),
        (strong(limits={"reply_seconds": float("inf")}), "reply_seconds"),
        (strong(database={"filters": {}}), "at least one column"),
        (strong(database={"attributes": {}}), "at least one attribute"),
        (strong(database={"filters": {"city": "string"}}), "must be one of text"),
        (strong(database={"filters": {"City": "text"}}), "lower-case"),
        (strong(database={"filters": {"where": "text"}}), "query language"),
        (strong(database={"users": 'users"; DROP TABLE x'}), "plain name"),
        (strong(database={"attributes": {"movies": {"table": "likes", "user": "u"}}}), "'value' is missing"),
        (strong(organisations={"a b": {}}), "organisations"),
        (strong(organisations={"acme": {"queries": -1}}), "expected 0 to"),
        ({**strong(), "organisations": {}}, "nobody could ask"),
        (strong(allow_weak="yes"), "true or false"),
    ],
)
def test_mistakes_are_named(content: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_policy(content)


@pytest.mark.parametrize(
    "weak",
    [
        {"release": {"q": 3}},
        {"release": {"min_class": 12}},
        {"release": {"noise": 1}},
        {"release": {"known_users": 0}},
        {"release": {"allow_not": True}},
        {"accounts": {"min_age_days": 0}},
        {"database": {"created": ""}},
        {"snapshots": {"period_hours": 0.1}},
        {"snapshots": {"history": 1}},
        {"budget": {"queries": 5000}},
        {"organisations": {"acme": {"queries": 5000}}},
    ],
)
def test_weak_settings_need_to_be_allowed(weak: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"weak|needs database\.created"):
        read_policy(strong(**weak))
    assert read_policy(strong(**weak, allow_weak=True)).allow_weak


def test_what_is_promised_is_said_for_each_mechanism() -> None:
    private = promise(read_policy(strong()))
    assert "(1, 1e-08)-differentially private" in private
    assert "above 0.46" in private
    assert "everyone within 30 days" in private
    alone = strong(budget={"scope": "organisation"}, privacy={"epsilon": 2.0, "window_days": 7})
    assert "one organisation within 7 days are (2, " in promise(read_policy(alone))
    for joint, over in (
        ("all", "all answers"),
        ("attribute", "one attribute"),
        ("once", "one answer a person"),
    ):
        plain = promise(
            read_policy(strong(release={"mechanism": "q", "q": 12, "min_class": 30, "joint": joint}))
        )
        assert over in plain
        assert "1/12" in plain
        assert "nothing is promised against somebody who chooses each question" in plain


def test_replies_that_could_be_late_are_warned_of() -> None:
    assert cautions(read_policy(strong())) == []
    (said,) = cautions(read_policy(strong(limits={"solver_seconds": 0.2})))
    assert "solver_seconds = 0.2" in said
    assert "reply_seconds = 0.2" in said


def test_a_missing_or_broken_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="could not read"):
        load_policy(tmp_path / "none.toml")
    (tmp_path / "broken.toml").write_text("q = ", "utf-8")
    with pytest.raises(InputError, match="no TOML"):
        load_policy(tmp_path / "broken.toml")


def test_the_policy_of_the_tests_is_a_policy() -> None:
    assert isinstance(policy(), GatewayPolicy)


def documented() -> dict[str, str]:
    """Setting -> its default, from the tables of the reference."""
    rows = re.findall(r"^\| `([a-z_.NAME]+)` \| ([^|]*) \|", REFERENCE.read_text("utf-8"), flags=re.MULTILINE)
    return {name: default.strip().strip("`") for name, default in rows}


def test_every_setting_is_documented_with_its_default() -> None:
    expected = {"allow_weak": "false"}
    sections = {name: kind for name, kind in get_type_hints(GatewayPolicy).items() if is_dataclass(kind)}
    kinds: dict[str, Any] = {
        **sections,
        "database": DatabasePolicy,
        "database.filters.NAME": Filter,
        "database.attributes.NAME": AttributeSource,
        "organisations.NAME": Organisation,
    }
    for section, kind in kinds.items():
        for field in fields(kind):
            if field.name in ("filters", "attributes"):
                continue
            expected[f"{section}.{field.name}"] = _plain(section, field.name, field.default)
    assert documented() == expected
    assert all(f"`{kind}`" in REFERENCE.read_text("utf-8") for kind in KINDS)


def _plain(section: str, name: str, default: Any) -> str:
    if (section, name) == ("database.filters.NAME", "column"):
        return "NAME"
    if default is MISSING:
        return "required"
    if default is None or default == "":
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return json.dumps(default)
    return f'"{default}"' if isinstance(default, str) else f"{default:g}"


def test_proxies_are_addresses_or_networks() -> None:
    made = read_policy(strong(limits={"proxies": ["10.0.3.7", "2001:db8::/32"]}))
    assert [str(one) for one in made.limits.proxy_networks] == ["10.0.3.7/32", "2001:db8::/32"]
    for wrong in ("proxy.example.org", "10.0.3.7/8", ""):
        with pytest.raises(InputError, match=r"limits\.proxies: expected addresses .* or networks"):
            read_policy(strong(limits={"proxies": [wrong]}))


def test_the_documented_example_is_a_policy() -> None:
    import tomllib

    (example,) = re.findall(r"```toml\n(.*?)```", REFERENCE.read_text("utf-8"), flags=re.DOTALL)
    made = read_policy(tomllib.loads(example))
    assert not made.allow_weak
