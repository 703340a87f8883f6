"""Who attacks: prior belief, world knowledge (definition 5), and what they see besides attributes.

A person leaves *traces* besides attributes and can withhold them likewise: posts in a community, and the link between
two profiles. Posts speak through their words and through rules about communities.

Linkability is an attribute, too: how sure somebody is that two profiles are one person's (definition 16). Against an
adversary who compares distances only, the belief is the choice rule's probability itself. Both profiles must be
hidden, so the surer of the two directions counts. The second of two profiles that a policy wants unlinked is known to
be the person's only with the probability of the link, so its words count only so far:
``Pr[words | x] = t L(x) + (1 - t) sum_y m(y) L(y)``, t the belief in the link and m how common each value is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from incrowd.crowd import Crowd
from incrowd.distances import pairwise
from incrowd.distances.choice import RULES, TEMPERATURE, Rule, choice_probabilities
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.belief.engine import BeliefModel, joint_probability
from incrowd.measures.belief.rules import WorldKnowledge
from incrowd.measures.belief.text_evidence import Words, learn_signs, relative
from incrowd.profiles import Profiles, unigram
from incrowd.profiles.attributes import AttributeTable, Floats, SeenAttributes
from incrowd.text.counting import counts


def check_sigma(sigma: float) -> None:
    """Refuse what is no probability."""
    if not 0 <= sigma <= 1:
        raise InputError(f"require: sigma must be a probability from 0 to 1, got {sigma}")


@dataclass(frozen=True, kw_only=True)
class Unlinkable:
    """Nobody should be surer than sigma that two profiles are one person's (definition 16)."""

    communities: tuple[str, str]
    sigma: float
    rule: Rule = "inverse"

    def __post_init__(self) -> None:
        check_sigma(self.sigma)
        if self.rule not in RULES:
            raise InputError(f"require: rule must be one of {', '.join(RULES)}; got '{self.rule}'")


@dataclass(frozen=True)
class Linkage:
    """How sure an adversary is of the attribute "same user", and of a blind guess."""

    posterior: float
    prior: float
    rule: Rule
    sigma: float
    communities: tuple[str, str] = ("", "")

    @property
    def name(self) -> str:
        """What it is called in a critical set."""
        return f"link between {self.communities[0]} and {self.communities[1]}"

    @property
    def unlinkable(self) -> bool:
        """True if both profiles are sigma-unlinkable."""
        return self.posterior <= self.sigma


def unlinkable(
    forth: ArrayLike,
    own_forth: int,
    back: ArrayLike,
    own_back: int,
    *,
    sigma: float,
    rule: Rule = "inverse",
    temperature: float = TEMPERATURE,
) -> Linkage:
    """Judge two profiles by their distances to each other's candidates; `own_*` is the true match's place.

    >>> unlinkable([0.1, 0.2, 0.2], 0, [0.1, 0.1], 0, sigma=0.4).posterior
    0.5
    """
    ways = [
        choice_probabilities(distances, rule, temperature=temperature)[own]
        for distances, own in ((forth, own_forth), (back, own_back))
    ]
    smallest = min(np.size(forth), np.size(back))
    return Linkage(float(max(ways)), 1 / smallest, rule, sigma)


def link_in_crowd(crowd: Crowd, user: str, wanted: Unlinkable) -> Linkage:
    """Measure how sure somebody who has read both communities is that a person's two profiles are one."""
    profiles = unigram(counts(crowd, communities=list(wanted.communities)))
    first, second = (_community(profiles, name, user) for name in wanted.communities)
    forth = _distances(profiles, first[1], second[0])
    back = _distances(profiles, second[1], first[0])
    places = [int(np.flatnonzero(rows == own)[0]) for rows, own in (second, first)]
    found = unlinkable(forth, places[0], back, places[1], sigma=wanted.sigma, rule=wanted.rule)
    return replace(found, communities=wanted.communities)


def _community(profiles: Profiles, community: str, user: str) -> tuple[np.ndarray, int]:
    inside = np.flatnonzero(profiles.ids["community"].to_numpy() == community)
    own = inside[profiles.ids["user"].to_numpy()[inside] == user]
    if not own.size:
        raise NotInCrowd(
            f"same_user: this person has no words in '{community}'; name a community they write in"
        )
    return inside, int(own[0])


def _distances(profiles: Profiles, row: int, others: np.ndarray) -> np.ndarray:
    found: np.ndarray = pairwise(profiles.matrix[[row]], profiles.matrix[others])[0]
    return found


Visible = NDArray[np.bool_]
MOST_COMMUNITIES = 12
"""Communities that can be withheld one by one, those with most posts first; the others go together."""


@dataclass(frozen=True)
class Posts:
    """One person's posts in a community, or in several that are withheld together."""

    communities: tuple[str, ...]
    posts: int

    @property
    def name(self) -> str:
        """What it is called in a critical set."""
        one = (
            self.communities[0]
            if len(self.communities) == 1
            else f"{len(self.communities)} other communities"
        )
        return f"posts in {one}"


@dataclass(frozen=True, eq=False)
class Written:
    """One person's words in each of their communities, and what words say about attributes."""

    used: Visible
    """(communities, words): whether the person uses the word there."""
    pool: sp.csr_matrix | None
    """(words, topics), or None."""
    scores: Mapping[int, Floats]
    """By attribute place: (features, values), what one use adds to the log-likelihood of each value."""
    usual: Mapping[int, Floats]

    def likelihoods(self, words: Visible) -> dict[int, Floats]:
        """Return what each row of words suggests."""
        features = words.astype(np.float64)
        features = features if self.pool is None else np.asarray(features @ self.pool)
        return {place: relative(features @ scores) for place, scores in self.scores.items()}

    def diluted(self, place: int, likelihood: Floats, sure: Floats) -> Floats:
        """Return the likelihood of words that are the person's with probability `sure` and anybody's otherwise."""
        return np.asarray(sure * likelihood + (1 - sure) * (likelihood @ self.usual[place])[:, None])


@dataclass(frozen=True, eq=False)
class Traces:
    """Everything of one person that is no attribute and that an adversary may see."""

    posts: tuple[Posts, ...] = ()
    links: tuple[Linkage, ...] = ()
    written: Written | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What can be withheld, in the order of the columns of `Evidence.traces`."""
        return (*(one.name for one in self.posts), *(link.name for link in self.links))

    @property
    def losses(self) -> tuple[float, ...]:
        """Bits that withholding each costs: one a post; for a link, what a blind guess would have to find out."""
        return (
            *(float(one.posts) for one in self.posts),
            *(float(-np.log2(link.prior)) for link in self.links),
        )

    def visible(self, evidence: SeenAttributes) -> Visible:
        """Return which traces are seen, one row per person or variant."""
        everything = np.ones((len(evidence), len(self.names)), dtype=bool)
        return everything if evidence.traces is None else evidence.traces

    def belief_in_link(self, communities: tuple[str, str], evidence: SeenAttributes) -> Floats:
        """Return how sure the adversary is that two profiles are one person's; without one of them, not at all."""
        number = self._link(communities)
        visible, link = self.visible(evidence), self.links[number]
        both = np.logical_and(*(visible[:, self._place(name)] for name in communities))
        return np.where(both, np.where(visible[:, len(self.posts) + number], link.posterior, link.prior), 0.0)

    def traits(self, visible: Visible) -> dict[tuple[str, str], Visible]:
        """Return what rules about communities may conclude from: where the person is known to write."""
        known = self._known(visible) > 0
        return {
            (f"community:{name}", "yes"): known[:, place]
            for place, one in enumerate(self.posts)
            for name in one.communities
        }

    def suggest(self, visible: Visible) -> dict[int, Floats]:
        """Return what the words that are seen suggest about each attribute."""
        if self.written is None:
            return {}
        kinds, which = np.unique(visible, axis=0, return_inverse=True)
        known = self._known(kinds)
        surely = _words(known == 1, self.written.used)
        found = self.written.likelihoods(surely)
        for place in np.flatnonzero(((known > 0) & (known < 1)).any(axis=0)).tolist():
            sure = np.where(known[:, [place]] < 1, known[:, [place]], 0.0)
            more = self.written.likelihoods(self.written.used[place] & ~surely & (sure > 0))
            found = {at: part * self.written.diluted(at, more[at], sure) for at, part in found.items()}
        return {place: part[which.ravel()] for place, part in found.items()}

    def _known(self, visible: Visible) -> Floats:
        """Return how surely the posts of each community are known to be this person's; 0 for those withheld.

        The first profile of a link is the person's; the second is as sure as the link. A link that is withheld
        leaves nothing to go by.
        """
        seen = visible[:, : len(self.posts)]
        ends = [tuple(self._place(name) for name in link.communities) for link in self.links]
        hidden = {second for _, second in ends} - ({ends[0][0]} if ends else set())
        known = np.where(
            [place not in hidden for place in range(len(self.posts))], seen.astype(np.float64), 0.0
        )
        for _ in ends:  # a chain of profiles is followed link by link
            for number, (first, second) in enumerate(ends):
                sure = visible[:, len(self.posts) + number] * self.links[number].posterior * known[:, first]
                known[:, second] = np.where(seen[:, second], np.maximum(known[:, second], sure), 0.0)
        return known

    def _place(self, community: str) -> int:
        return next(place for place, one in enumerate(self.posts) if community in one.communities)

    def _link(self, communities: tuple[str, str]) -> int:
        for number, link in enumerate(self.links):
            if link.communities == communities:
                return number
        raise InputError("same_user: this adversary knows of no such two profiles; check a person of a crowd")


NO_TRACES = Traces()


def _words(chosen: Visible, used: Visible) -> Visible:
    """Return which words occur in any of the chosen communities."""
    return np.asarray(chosen.astype(np.float64) @ used > 0)


def traces_of(
    written: Mapping[str, int],
    links: Sequence[Linkage],
    named: Collection[str],
    words: Words | None,
    row: int,
    table: AttributeTable,
) -> Traces:
    """Collect one person's traces.

    Parameters
    ----------
    written
        How many posts the person has in each community.
    links
        Pairs of their profiles that a policy wants unlinked.
    named
        Communities that rules are about; without words, others can conclude nothing from the rest.
    words
        Everybody's words, if they count; `row` is the person's in the table.
    """
    single = {name for link in links for name in link.communities}
    counted = set(written) if words is not None else {name for name in written if name in named}
    posts = _grouped({name: written[name] for name in counted | single}, single)
    return Traces(posts, tuple(links), None if words is None else _written(posts, words, row, table))


def _grouped(written: Mapping[str, int], single: Collection[str]) -> tuple[Posts, ...]:
    """Keep linked communities and those with most posts apart, and put the rest together."""
    order = sorted(written, key=lambda name: (name not in single, -written[name], name))
    apart, rest = order[:MOST_COMMUNITIES], order[MOST_COMMUNITIES:]
    if len(rest) == 1:
        apart, rest = order, []
    together = (Posts(tuple(rest), sum(written[name] for name in rest)),) if rest else ()
    return (*(Posts((name,), written[name]) for name in apart), *together)


def _written(posts: Sequence[Posts], words: Words, row: int, table: AttributeTable) -> Written | None:
    own = np.flatnonzero(words.rows[words.person] == row)
    if not own.size:
        return None
    counts = words.identities[own].tocsc()
    mine = np.flatnonzero(np.diff(counts.indptr))
    inside = np.array([np.isin(words.community[own], one.communities) for one in posts]).reshape(
        len(posts), -1
    )
    used = np.asarray(inside.astype(np.float64) @ counts[:, mine].toarray() > 0)
    features, everybody = words.pool, words.used()
    pool = None if features is None else features[mine]
    counted = everybody[words.person[own[0]]].toarray()[0]
    scores, usual = {}, {}
    for place, size in enumerate(table.space.sizes):
        signs = learn_signs(everybody, words.codes(table, place), size)
        if signs is not None:
            each = signs.scores_of(counted, int(table.codes[row, place]))
            scores[place], usual[place] = (each if features is not None else each[mine]), signs.usual
    return Written(used, pool, scores, usual)


@dataclass(frozen=True, eq=False)
class BeliefAdversary:
    """Somebody who believes something, knows rules, and has read what a person wrote."""

    belief: BeliefModel
    knowledge: WorldKnowledge = field(default_factory=WorldKnowledge)
    traces: Traces = NO_TRACES
    """The person's posts and linked profiles, as far as they are seen."""

    def concluding(self, evidence: SeenAttributes) -> SeenAttributes:
        """Return the evidence with what the rules and the text add to it."""
        visible = self.traces.visible(evidence)
        evidence = self.knowledge.apply(evidence, self.traces.traits(visible))
        for place, likelihood in self.traces.suggest(visible).items():
            evidence = evidence.hinting(place, likelihood)
        return evidence

    def posteriors(self, targets: Sequence[int], evidence: SeenAttributes) -> list[Floats]:
        """Return the a-posteriori belief in each value of each target."""
        return self.belief.posteriors(targets, self.concluding(evidence))

    def joint(self, event: Mapping[int, int], evidence: SeenAttributes) -> Floats:
        """Return the a-posteriori belief that all values of the event hold."""
        return joint_probability(self.belief, event, self.concluding(evidence))

    def focused(
        self, evidence: SeenAttributes, targets: Sequence[int]
    ) -> tuple[BeliefAdversary, SeenAttributes]:
        """Return an adversary who answers the same about this person's targets, and faster."""
        suggested = () if self.traces.written is None else self.traces.written.scores
        belief, small = self.belief.focused(evidence, {*targets, *self.knowledge.places, *suggested})
        return BeliefAdversary(belief, self.knowledge, self.traces), replace(small, traces=evidence.traces)
