"""What a person wants hidden, and how a profile shows what it shows.

A requirement says "nobody should be surer than sigma of this" (definitions 12 and 13).

A publication function (definition 6) treats attributes one by one: shown as it is, not at all, coarser, or changed
with a stated probability. It must leave at least one attribute as it is, so that the profile is still of use. Each
way says how probable the shown value is under every true value, which is all an adversary who knows the way needs.
Withholding is taken to be independent of the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.arrays import Floats, Ints
from incrowd.errors import InputError
from incrowd.measures.belief.adversary import BeliefAdversary, Unlinkable, check_sigma
from incrowd.policy_file import load_toml
from incrowd.profiles.attributes import (
    AttributeSpace,
    Bands,
    EqualBands,
    SeenAttributes,
    band_name,
    parse_bands,
)


@dataclass(frozen=True)
class Publish:
    """Show the value."""

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return Pr[shown | value] for every value."""
        return np.array([float(value == shown) for value in values])

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Return what readers see."""
        return value


@dataclass(frozen=True)
class Withhold:
    """Show nothing."""

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return 1 for every value: silence says nothing."""
        return np.ones(len(values))

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Return nothing."""
        return None


@dataclass(frozen=True)
class Generalise:
    """Show the name of a group of values; a value in no group is shown as it is."""

    groups: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        members = [value for group in self.groups.values() for value in group]
        if len(members) != len(set(members)):
            raise InputError("generalise: a value belongs to one group only, got one in two groups")

    def _name(self, value: str | None) -> str | None:
        return next((name for name, group in self.groups.items() if value in group), value)

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return 1 for the values that are shown so."""
        return np.array([float(self._name(value) == shown) for value in values])

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Return the group's name."""
        return self._name(value)


@dataclass(frozen=True)
class Band:
    """Show only the range a number lies in; what is no number is shown as it is."""

    bands: Bands

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return 1 for the values in the range."""
        return np.array([float(band_name(self.bands, value) == shown) for value in values])

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Return the range."""
        return band_name(self.bands, value)


@dataclass(frozen=True)
class Perturb:
    """Show the true value with probability `keep`, otherwise one of the others, each as probably."""

    keep: float

    def __post_init__(self) -> None:
        if not 0 <= self.keep <= 1:
            raise InputError(f"perturb: keep must be a probability from 0 to 1, got {self.keep}")

    def likelihood(self, values: Sequence[str | None], shown: str) -> Floats:
        """Return keep for the shown value and the rest spread over the others."""
        others = max(len(values) - 1, 1)
        same = np.array([value == shown for value in values])
        return np.where(same, self.keep if len(values) > 1 else 1.0, (1 - self.keep) / others)

    def show(self, value: str, values: Sequence[str | None], rng: np.random.Generator) -> str | None:
        """Draw what readers see."""
        others = [one for one in values if one != value]
        if not others or rng.random() < self.keep:
            return value
        return others[int(rng.integers(len(others)))]


Way = Publish | Withhold | Generalise | Band | Perturb


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What a profile does with each attribute; those not named are published as they are."""

    ways: Mapping[str, Way] = field(default_factory=dict)

    def check(self, attributes: Sequence[str]) -> None:
        """Refuse a publication that is truthful on no attribute (definition 6)."""
        if not any(isinstance(self.ways.get(name, Publish()), Publish) for name in attributes):
            raise InputError(
                "publication: at least one attribute must be shown as it is, got none. Withhold, generalise or "
                "perturb fewer attributes."
            )

    def show(self, truth: Mapping[str, str], space: AttributeSpace, seed: int = 0) -> dict[str, str]:
        """Return what readers see of a person (a restricted model); the seed decides perturbed values."""
        self.check([*truth])
        rng = np.random.default_rng(seed)
        shown: dict[str, str] = {}
        for name in sorted(truth):
            seen = self.ways.get(name, Publish()).show(truth[name], space.values[space.place(name)], rng)
            if seen is not None:
                shown[name] = seen
        return shown

    def observe(
        self, shown: Mapping[str, str], space: AttributeSpace, own_rows: Ints | None = None
    ) -> SeenAttributes:
        """Return what was shown as evidence: what an adversary who knows these ways may conclude."""
        evidence = SeenAttributes.nothing(space, own_rows=own_rows)
        for name, value in shown.items():
            way, place = self.ways.get(name, Publish()), space.place(name)
            if isinstance(way, Publish):
                evidence.seen[0, place] = space.code(name, value)
            elif not isinstance(way, Withhold):
                evidence = evidence.hinting(place, way.likelihood(space.values[place], value))
        return evidence


ANY = "*"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """Nobody should be surer than sigma of these values; of each, or (`joint`) of all at once.

    A value of ``*`` stands for any: the most believed value counts.
    """

    values: Mapping[str, str]
    sigma: float
    joint: bool = False
    own: bool = False
    """The value is each person's own, whatever it is (when a whole crowd is checked)."""

    def __post_init__(self) -> None:
        check_sigma(self.sigma)
        if not self.values:
            raise InputError("require: name at least one attribute")
        if self.joint and ANY in self.values.values():
            raise InputError("require: a joint requirement needs a value for each attribute, got '*'")

    def belief(self, adversary: BeliefAdversary, evidence: SeenAttributes) -> Floats:
        """Return how sure the adversary is, one row per person, one column per value (one for a joint requirement)."""
        space = evidence.space
        places = [space.place(name) for name in self.values]
        if self.joint:
            event = {space.place(name): space.code(name, value) for name, value in self.values.items()}
            return adversary.joint(event, evidence)[:, None]
        found = adversary.posteriors(places, evidence)
        named = zip(self.values.items(), found, strict=True)
        return np.stack([_believed(space, *pair, sure) for pair, sure in named], axis=1)


def _believed(space: AttributeSpace, attribute: str, value: str, sure: Floats) -> Floats:
    return np.asarray(sure.max(axis=1) if value == ANY else sure[:, space.code(attribute, value)])


@dataclass(frozen=True, kw_only=True)
class Policy:
    """All requirements of one profile, and how it publishes."""

    requirements: tuple[Requirement, ...] = ()
    links: tuple[Unlinkable, ...] = ()
    publication: Publication = field(default_factory=Publication)
    losses: Mapping[str, float] = field(default_factory=dict)
    """What withholding costs, in bits, where the person says so themselves: attribute, "posts in C" -> bits."""
    profiles: Mapping[str, Policy] = field(default_factory=dict)
    """What single profiles must not expose (definition 12), by the community they write in. An adversary who sees a
    profile sees what it publishes and its own posts, nothing of the others."""

    def __post_init__(self) -> None:
        if not self.requirements and not self.links and not self.profiles:
            raise InputError("policy: it requires nothing; add a [[require]]")
        if any(not bits >= 0 for bits in self.losses.values()):
            raise InputError("loss: expected bits of 0 or more for each")

    @property
    def attribute_sets(self) -> list[set[str]]:
        """The attributes each requirement names (definition 14)."""
        return [set(one.values) for one in self.requirements]

    def one_by_one(self) -> list[Policy]:
        """Return a policy for each requirement: those about attributes first, then those about links."""
        parts = [replace(self, requirements=(one,), links=(), profiles={}) for one in self.requirements]
        return parts + [replace(self, requirements=(), links=(one,), profiles={}) for one in self.links]

    def targets(self, space: AttributeSpace) -> list[int]:
        """Return the places of all attributes the requirements name."""
        return sorted({space.place(name) for one in self.requirements for name in one.values})

    def excess(self, adversary: BeliefAdversary, evidence: SeenAttributes) -> Floats:
        """Return by how much the worst requirement is missed; at most 0 = satisfied."""
        worst = [(one.belief(adversary, evidence) - one.sigma).max(axis=1) for one in self.requirements]
        worst += [
            adversary.traces.belief_in_link(one.communities, evidence) - one.sigma for one in self.links
        ]
        return np.asarray(np.max(worst, axis=0))


def load_policy(path: Path, truth: Mapping[str, str] | None = None) -> Policy:
    """Read a policy from TOML; `truth` gives the values for ``own = true``; None: everybody's own."""
    return read_policy(load_toml(path), truth, path.name)


def read_policy(content: Mapping[str, Any], truth: Mapping[str, str] | None, where: str = "policy") -> Policy:
    """Make a policy from what a TOML file says."""
    unknown = set(content) - {"require", "publish", "loss", "profile"}
    if unknown:
        said = sorted(unknown)[0]
        raise InputError(
            f"{where}: unknown part '{said}'; expected [[require]], [publish], [profile.NAME] and [loss]"
        )
    required: dict[str | None, list[Requirement | Unlinkable]] = {None: []}
    for number, entry in enumerate(content.get("require", []), start=1):
        try:
            made = _requirement(entry, truth)
        except (KeyError, TypeError, ValueError) as error:
            said = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
            raise InputError(f"{where}, requirement {number}: {said}") from None
        required.setdefault(_profile_named(entry, number, where), []).append(made)
    losses = _losses(content.get("loss", {}), where)
    ways = _ways(content.get("publish", {}), where)
    published = _profile_ways(content.get("profile", {}), ways, where)
    for name in published.keys() - required.keys():
        raise InputError(f'{where}: [profile.{name}] has no requirement; add profile = "{name}" to one')
    whole = required.pop(None)
    return Policy(
        **_split(whole),
        publication=Publication(ways=ways),
        losses=losses,
        profiles={
            str(name): Policy(
                **_split(some), publication=Publication(ways=published.get(str(name), ways)), losses=losses
            )
            for name, some in required.items()
        },
    )


def _split(required: Sequence[Requirement | Unlinkable]) -> dict[str, Any]:
    return {
        "requirements": tuple(one for one in required if isinstance(one, Requirement)),
        "links": tuple(one for one in required if isinstance(one, Unlinkable)),
    }


def _profile_named(entry: Mapping[str, Any], number: int, where: str) -> str | None:
    name = entry.get("profile")
    if name is not None and "same_user" in entry:
        raise InputError(
            f"{where}, requirement {number}: same_user is about two profiles; leave 'profile' out"
        )
    return None if name is None else str(name)


def _profile_ways(entry: Any, ways: Mapping[str, Way], where: str) -> dict[str, dict[str, Way]]:
    """Read ``[profile.NAME]``: what that profile publishes otherwise than [publish] says."""
    if not isinstance(entry, Mapping) or not all(isinstance(one, Mapping) for one in entry.values()):
        raise InputError(f'{where}: [profile.NAME] takes what [publish] takes, e.g. withhold = ["religion"]')
    return {str(name): {**ways, **_ways(one, where)} for name, one in entry.items()}


def _losses(entry: Any, where: str) -> dict[str, float]:
    if not isinstance(entry, Mapping) or not all(isinstance(bits, int | float) for bits in entry.values()):
        raise InputError(f'{where}: [loss] takes a number of bits for each, e.g. "posts in cycling" = 5')
    return {str(name): float(bits) for name, bits in entry.items()}


def _requirement(entry: Mapping[str, Any], truth: Mapping[str, str] | None) -> Requirement | Unlinkable:
    unknown = set(entry) - {
        "attribute",
        "value",
        "own",
        "all",
        "joint",
        "sigma",
        "same_user",
        "rule",
        "profile",
    }
    if unknown:
        raise InputError(f"unknown '{sorted(unknown)[0]}'")
    sigma = float(entry["sigma"])
    if "same_user" in entry:
        first, second = entry["same_user"]
        return Unlinkable(
            communities=(str(first), str(second)), sigma=sigma, rule=entry.get("rule", "inverse")
        )
    if "all" in entry:
        values = {str(name): str(value) for name, value in entry["all"].items()}
        return Requirement(values=values, sigma=sigma, joint=bool(entry.get("joint", False)))
    name = str(entry["attribute"])
    if entry.get("own") and truth is None:
        return Requirement(values={name: ANY}, sigma=sigma, own=True)
    if entry.get("own"):
        if truth is None or name not in truth:
            raise InputError(f"own = true needs the person's {name}, which the crowd does not hold")
        return Requirement(values={name: truth[name]}, sigma=sigma)
    return Requirement(values={name: str(entry.get("value", ANY))}, sigma=sigma)


def _ways(entry: Mapping[str, Any], where: str) -> dict[str, Way]:
    unknown = set(entry) - {"withhold", "generalise", "perturb"}
    if unknown:
        raise InputError(
            f"{where}: [publish] knows withhold, generalise and perturb; got '{sorted(unknown)[0]}'"
        )
    ways: dict[str, Way] = {str(name): Withhold() for name in _names(entry.get("withhold", []))}
    for name, how in entry.get("generalise", {}).items():
        ways[name] = _generalised(name, how)
    for name, keep in entry.get("perturb", {}).items():
        ways[name] = Perturb(float(keep))
    return ways


def _generalised(name: str, how: Any) -> Way:
    """Read edges ``[18, 25, 35]``, a ``{width = 10}``, or groups of values ``{north = ["1", "2"]}``."""
    if isinstance(how, Mapping) and all(isinstance(values, list) for values in how.values()):
        return Generalise({str(group): tuple(map(str, values)) for group, values in how.items()})
    text = f"width:{how['width']}" if isinstance(how, Mapping) and set(how) == {"width"} else how
    edges = ",".join(map(str, text)) if isinstance(text, list) else text
    bands = parse_bands([f"{name}={edges}"])[name]
    if isinstance(bands, EqualBands):
        raise InputError(f"publish: generalise '{name}' by edges, a width or groups of values")
    return Band(bands)


def _names(names: object) -> Sequence[str]:
    if not isinstance(names, list):
        raise InputError('policy: withhold takes a list of attributes, e.g. ["religion"]')
    return names
