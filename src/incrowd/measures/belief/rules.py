"""World knowledge: what an adversary concludes from what they see, beyond the crowd's own correlations.

A rule "if A = a then B = b, with confidence p" fires when A = a was seen. It is calibrated: to somebody who saw A = a
alone, B = b then has probability p exactly (Jeffrey's rule); the other values of B keep their proportions, and other
evidence weighs in as usual. With p = 1 other values are impossible, and B = b counts as seen by further rules.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.arrays import Floats, Ints
from incrowd.errors import InputError
from incrowd.measures.belief.engine import BeliefModel
from incrowd.profiles.attributes import HIDDEN, AttributeTable, SeenAttributes


@dataclass(frozen=True, kw_only=True)
class InferenceRule:
    """If all of these hold, this one holds with some confidence."""

    conditions: tuple[tuple[str, str], ...]
    attribute: str
    value: str
    confidence: float = 1.0
    support: int | None = None
    """How many people of a crowd it was learnt from."""

    def __post_init__(self) -> None:
        if not 0 <= self.confidence <= 1:
            raise InputError(f"rule: confidence must be from 0 to 1, got {self.confidence}")
        if not self.conditions:
            raise InputError("rule: 'if' must name at least one attribute, got none")
        if any(name == self.attribute for name, _ in self.conditions):
            raise InputError(f"rule: '{self.attribute}' cannot be both condition and conclusion")

    def sentence(self) -> str:
        """Say the rule in words."""
        conditions = " and ".join(f"{name} = {value}" for name, value in self.conditions)
        learnt = "" if self.support is None else f", from {self.support:,} people"
        return f"{conditions} suggests {self.attribute} = {self.value} ({self.confidence:.0%}{learnt})"


@dataclass(frozen=True, eq=False)
class _Ready:
    """A rule over one belief: which codes make it fire, and what it then multiplies."""

    conditions: tuple[tuple[int, int], ...]
    traits: tuple[tuple[str, str], ...]
    place: int
    code: int
    certain: bool
    likelihood: Floats


@dataclass(frozen=True, eq=False)
class WorldKnowledge:
    """Rules made ready for one belief and one person's traits."""

    rules: tuple[_Ready, ...] = ()

    @classmethod
    def over(
        cls, belief: BeliefModel, rules: Iterable[InferenceRule], traits: Collection[tuple[str, str]] = ()
    ) -> WorldKnowledge:
        """Make rules ready. `traits` are facts about the person that are no attributes of the crowd."""
        ready = (_made_ready(belief, rule, frozenset(traits)) for rule in rules)
        return cls(tuple(one for one in ready if one is not None))

    @property
    def places(self) -> set[int]:
        """The attributes the rules mention."""
        conditions = {place for rule in self.rules for place, _ in rule.conditions}
        return conditions | {rule.place for rule in self.rules}

    def apply(
        self, evidence: SeenAttributes, traits: Mapping[tuple[str, str], NDArray[np.bool_]] | None = None
    ) -> SeenAttributes:
        """Add what the rules conclude from what was seen; certain conclusions let further rules fire.

        `traits` says of whom a trait is seen, where it can be withheld; others are always seen.
        """
        known, seen = evidence.seen.copy(), traits or {}
        fired = np.zeros((len(self.rules), len(evidence)), dtype=bool)
        for _ in range(len(self.rules) + 1):
            before = int(fired.sum())
            for number, rule in enumerate(self.rules):
                fired[number] = _holds(rule, known, seen)
                if rule.certain:
                    known[fired[number] & (known[:, rule.place] == HIDDEN), rule.place] = rule.code
            if int(fired.sum()) == before:
                break
        for number, rule in enumerate(self.rules):
            if fired[number].any():
                evidence = evidence.hinting(
                    rule.place, np.where(fired[number][:, None], rule.likelihood, 1.0)
                )
        return evidence


def _holds(
    rule: _Ready, known: Ints, traits: Mapping[tuple[str, str], NDArray[np.bool_]]
) -> NDArray[np.bool_]:
    holds = np.ones(len(known), dtype=bool)
    for trait in rule.traits:
        holds &= traits.get(trait, True)
    for place, code in rule.conditions:
        holds &= known[:, place] == code
    return holds


def _made_ready(
    belief: BeliefModel, rule: InferenceRule, traits: frozenset[tuple[str, str]]
) -> _Ready | None:
    space = belief.space
    inside = [(name, value) for name, value in rule.conditions if space.has(name)]
    outside = tuple(pair for pair in rule.conditions if pair not in inside)
    if not traits.issuperset(outside):
        return None  # a trait the person does not have: it cannot fire
    place, code = space.place(rule.attribute), space.code(rule.attribute, rule.value)
    conditions = tuple((space.place(name), space.code(name, value)) for name, value in inside)
    seen = np.full((1, len(space.attributes)), HIDDEN, dtype=np.int64)
    for at, value_code in conditions:
        seen[0, at] = value_code
    usual = belief.posteriors([place], SeenAttributes(space, seen))[0][0]
    if np.isnan(usual).any():  # nobody has the conditions: the rule adds to the prior
        usual = belief.posteriors([place], SeenAttributes.nothing(space))[0][0]
    lifted = _jeffrey(usual, code, rule.confidence)
    return _Ready(conditions, outside, place, code, rule.confidence == 1, lifted)


def _jeffrey(usual: Floats, code: int, confidence: float) -> Floats:
    """Return the likelihood that lifts one value from its usual probability to the rule's confidence."""
    q = float(usual[code])
    chosen = np.arange(len(usual)) == code
    if confidence == 1 or q == 1:
        return np.where(chosen, 1.0, 0.0 if confidence == 1 else 1.0)
    if q == 0:
        return np.where(chosen, 1.0, 1 - confidence)
    return np.where(chosen, confidence / q, (1 - confidence) / (1 - q))


def load_rules(path: Path, table: AttributeTable | None = None) -> tuple[InferenceRule, ...]:
    """Read rules from TOML: ``[[rule]]`` with ``if``/``then``/``confidence``, or ``decides`` for a whole attribute."""
    entries = _entries(path)
    rules: list[InferenceRule] = []
    for number, entry in enumerate(entries, start=1):
        try:
            rules += _decides(entry, table) if "decides" in entry else [_rule(entry)]
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f'{path.name}, rule {number}: {error}. Expected if = {{attribute = "value"}}, then = {{attribute = '
                '"value"}, confidence = 0.7; or attribute = "zip", decides = "city".'
            ) from None
    return tuple(rules)


def _entries(path: Path) -> list[dict[str, Any]]:
    try:
        entries = tomllib.loads(path.read_text("utf-8")).get("rule", [])
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: this is no TOML file ({error})") from None
    if not isinstance(entries, list):
        raise InputError(f"{path.name}: write each rule under [[rule]], with two brackets")
    return entries


def _rule(entry: Mapping[str, Any]) -> InferenceRule:
    unknown = set(entry) - {"if", "then", "confidence", "support"}
    if unknown or len(entry["then"]) != 1:
        raise InputError(f"unknown '{sorted(unknown)[0]}'" if unknown else "'then' must name one attribute")
    ((attribute, value),) = entry["then"].items()
    return InferenceRule(
        conditions=tuple((str(name), str(held)) for name, held in entry["if"].items()),
        attribute=str(attribute),
        value=str(value),
        confidence=float(entry.get("confidence", 1.0)),
        support=entry.get("support"),
    )


def _decides(entry: Mapping[str, Any], table: AttributeTable | None) -> list[InferenceRule]:
    if table is None:
        raise InputError("'decides' needs a crowd to look the values up in")
    confidence = float(entry.get("confidence", 1.0))
    found = learn_rules(table, [(entry["attribute"], entry["decides"])], min_support=1, min_confidence=0.0)
    best: dict[tuple[tuple[str, str], ...], InferenceRule] = {}
    for rule in found:  # strongest first
        best.setdefault(rule.conditions, rule)
    return [
        InferenceRule(
            conditions=rule.conditions, attribute=rule.attribute, value=rule.value, confidence=confidence
        )
        for rule in best.values()
    ]


def learn_rules(
    table: AttributeTable,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    min_support: int = 10,
    min_confidence: float = 0.6,
) -> list[InferenceRule]:
    """Find which value suggests which other one, strongest first.

    Support is how many people have both; confidence is their share among those who have the first and gave the
    second attribute. Rules no surer than the value's share in the whole crowd are left out.
    """
    names = table.space.attributes
    wanted = pairs or [(one, other) for one in names for other in names if one != other]
    rules = [
        rule for one, other in wanted for rule in _pair_rules(table, one, other, min_support, min_confidence)
    ]
    return sorted(
        rules, key=lambda rule: (-rule.confidence, -(rule.support or 0), rule.conditions, rule.value)
    )


def _pair_rules(
    table: AttributeTable, one: str, other: str, support: int, confidence: float
) -> list[InferenceRule]:
    space = table.space
    a, b = space.place(one), space.place(other)
    both = (table.codes[:, a] != HIDDEN) & (table.codes[:, b] != HIDDEN)
    flat = table.codes[both, a].astype(np.int64) * space.sizes[b] + table.codes[both, b]
    counts = np.bincount(flat, minlength=space.sizes[a] * space.sizes[b]).reshape(
        space.sizes[a], space.sizes[b]
    )
    totals = counts.sum(axis=1, keepdims=True)
    sure = counts / np.maximum(totals, 1)
    usual = counts.sum(axis=0) / max(int(both.sum()), 1)
    chosen = (counts >= support) & (sure >= confidence) & ((sure > usual) | (support <= 1) & (counts > 0))
    return [
        InferenceRule(
            conditions=((one, str(space.values[a][i])),),
            attribute=other,
            value=str(space.values[b][j]),
            confidence=float(sure[i, j]),
            support=int(counts[i, j]),
        )
        for i, j in np.argwhere(chosen)
    ]


def rules_toml(rules: Iterable[InferenceRule]) -> str:
    """Write rules as TOML that :func:`load_rules` reads."""
    return "\n".join(_as_toml(rule) for rule in rules)


def _as_toml(rule: InferenceRule) -> str:
    conditions = ", ".join(f"{_quoted(name)} = {_quoted(value)}" for name, value in rule.conditions)
    support = "" if rule.support is None else f"support = {rule.support}\n"
    return (
        f"[[rule]]\nif = {{ {conditions} }}\nthen = {{ {_quoted(rule.attribute)} = {_quoted(rule.value)} }}\n"
        f"confidence = {rule.confidence!r}\n{support}"
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
