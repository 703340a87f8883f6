"""Who attacks: prior belief, world knowledge (definition 5), and what they see besides attributes.

A person leaves *traces* besides attributes and can withhold them likewise: posts in a community, and the link between
two profiles. Posts speak through their words and through rules about communities.

Linkability is an attribute, too: how sure somebody is that two profiles are one person's (definition 16). Against an
adversary who compares distances only, the belief is the choice rule's probability itself. Both profiles must be
hidden, so the surer of the two directions counts. The second of two profiles that a policy wants unlinked is known to
be the person's only with the probability of the link, so its words count only so far:
``Pr[words | x] = t L(x) + (1 - t) sum_y m(y) L(y)``, t the belief in the link and m how common each value is.

What somebody's words suggest about their attributes is naive Bayes, with its overconfidence taken out. For each value
of an attribute the words of the people who have it are counted; a person's own words are left out of the counts they
are judged by. Naive Bayes counts repeated and related words as independent, so the log-likelihoods are divided by a
temperature, chosen so that the attribute's values of the crowd's own members are predicted best.
With topics (name: words), the words of a topic are counted together, and words of no topic say nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from incrowd.arrays import Floats, Ints
from incrowd.crowd import Crowd
from incrowd.distances import pairwise
from incrowd.distances.choice import RULES, Rule, choice_probabilities
from incrowd.errors import InputError, NotInCrowd
from incrowd.measures.belief.engine import BeliefModel, joint_probability
from incrowd.measures.belief.rules import WorldKnowledge
from incrowd.profiles import Profiles, unigram
from incrowd.profiles.attributes import HIDDEN, AttributeTable, SeenAttributes
from incrowd.text.counting import counts

Topics = Mapping[str, Sequence[str]]
TEMPERATURES = np.geomspace(1, 10_000, 33)
FEWEST_WRITERS = 3
"""A value that fewer people with words have is not judged by words."""
PSEUDO = 0.5
DRAWN = 10.0
"""So many made-up people who write like the whole crowd stand behind every value; otherwise rare words would speak
for the value with the fewest people."""


@dataclass(frozen=True, eq=False)
class Signs:
    """Which features (words, or topics) go with which value of one attribute."""

    counts: Floats
    """(values, features): how often the people with each value use each feature; a word counts once a person."""
    people: Floats
    temperature: float

    @property
    def usual(self) -> Floats:
        """How common each value is among people who write."""
        return np.asarray((self.people + PSEUDO) / (self.people + PSEUDO).sum())

    def likelihood(self, used: sp.csr_matrix, own: Ints) -> Floats:
        """Return Pr[words | value] up to a factor, one row per person; `own` is their value or HIDDEN."""
        return relative(_scores(used, own, self.counts, self.people) / self.temperature)

    def scores_of(self, used: Floats, own: int) -> Floats:
        """Return what a use of each feature adds to each value's log-likelihood, without this person's own uses.

        (features, values); `used` is how often the person uses each feature.
        """
        rates, usual, length = _rates(self.counts, self.people)
        scores = (np.log(rates) - length[:, None]).T
        if own != HIDDEN:
            scores[:, own] = _lowered(self.counts[own], used, usual, self.people[own]) - length[own]
        return np.asarray(_unjudged(scores, self.people) / self.temperature)


def relative(scores: Floats) -> Floats:
    """Return likelihoods from log-likelihoods, the largest of each row being 1."""
    return np.asarray(np.exp(scores - scores.max(axis=1, keepdims=True)))


def learn_signs(used: sp.csr_matrix, codes: Ints, size: int) -> Signs | None:
    """Learn from people's features (how many words of each they used) and their codes; None: too few people."""
    known = np.flatnonzero(codes != HIDDEN)
    people = np.bincount(codes[known], minlength=size).astype(np.float64)
    if (people >= FEWEST_WRITERS).sum() < 2:
        return None
    groups = sp.csr_matrix((np.ones(len(known)), (codes[known], known)), shape=(size, used.shape[0]))
    counts = np.asarray((groups @ used).todense())
    scores = _scores(used[known], codes[known], counts, people)
    return Signs(counts, people, _temperature(scores, codes[known], people))


def _rates(counts: Floats, people: Floats) -> tuple[Floats, Floats, Floats]:
    """Return uses a person of each feature by value, what a made-up person adds, and the log of all uses by value.

    Rates are later taken relative to all uses of a value's people, so that those who write more do not seem
    likelier throughout.
    """
    usual = DRAWN * (counts.sum(axis=0) + PSEUDO) / (people.sum() + 2 * PSEUDO)
    rates = (counts + usual) / (people + DRAWN)[:, None]
    return rates, usual, np.log(rates.sum(axis=1))


def _lowered(counts: Floats, used: Floats, usual: Floats, people: Floats | float) -> Floats:
    """Return the log-rates of a value without one of its people."""
    return np.asarray(np.log((np.maximum(counts - used, 0) + usual) / (np.maximum(people - 1, 0) + DRAWN)))


def _unjudged(scores: Floats, people: Floats) -> Floats:
    """Give values of too few people what the others have on average: their words say nothing."""
    few = people < FEWEST_WRITERS
    scores[:, few] = scores[:, ~few].mean(axis=1, keepdims=True)
    return scores


def _scores(used: sp.csr_matrix, own: Ints, counts: Floats, people: Floats) -> Floats:
    """Return each person's log-likelihood of the words they use under each value, without their own words.

    Taking a person out of their own value's counts changes the terms of the features they use there and no
    others, so these are looked up, not counted again.
    """
    rates, usual, length = _rates(counts, people)
    scores = np.asarray(used @ (np.log(rates) - length[:, None]).T)
    has = np.flatnonzero(own != HIDDEN)
    mine = used[has]
    rows, features = np.repeat(np.arange(len(has)), np.diff(mine.indptr)), mine.indices
    value = own[has][rows]
    terms = _lowered(counts[value, features], mine.data, usual[features], people[value]) - length[value]
    scores[has, own[has]] = np.bincount(rows, mine.data * terms, minlength=len(has))
    return _unjudged(scores, people)


def _temperature(scores: Floats, codes: Ints, people: Floats) -> float:
    """Return the temperature under which people's own values are predicted best, given how common they are."""
    usual = np.log((people + PSEUDO) / (people + PSEUDO).sum())
    fits = []
    for temperature in TEMPERATURES:
        total = scores / temperature + usual
        total -= np.logaddexp.reduce(total, axis=1, keepdims=True)
        fits.append(total[np.arange(len(codes)), codes].mean())
    return float(TEMPERATURES[int(np.argmax(fits))])


@dataclass(frozen=True, eq=False)
class CrowdWords:
    """Who of a crowd used which word at all, and where."""

    identities: sp.csr_matrix
    """(identities, words): how often; an identity is one person in one community."""
    person: Ints
    """Each identity's writer."""
    community: NDArray[np.object_]
    posts: Ints
    rows: Ints
    """Each writer's row in the table, HIDDEN for none."""
    pool: sp.csr_matrix | None = None
    """(words, topics): 1 where a word belongs to a topic; None: every word stands for itself."""

    def used(self) -> sp.csr_matrix:
        """Return how many words of each feature every writer used; each word counts once."""
        many = len(self.person)
        gather = sp.csr_matrix((np.ones(many), (self.person, np.arange(many))), shape=(len(self.rows), many))
        used = (gather @ self.identities).tocsr()
        used.data = np.ones_like(used.data, dtype=np.float64)
        return used if self.pool is None else (used @ self.pool).tocsr()

    def codes(self, table: AttributeTable, place: int) -> Ints:
        """Return every writer's value of an attribute."""
        return np.where(self.rows == HIDDEN, HIDDEN, table.codes[self.rows, place]).astype(np.int64)


def read_words(crowd: Crowd, table: AttributeTable, topics: Topics | None = None) -> CrowdWords:
    """Count the words of everybody who writes in a crowd."""
    counted = counts(crowd)
    users, person = np.unique(counted.identities["user"].to_numpy().astype(object), return_inverse=True)
    place = np.minimum(np.searchsorted(table.users, users), len(table.users) - 1)
    return CrowdWords(
        counted.matrix,
        person,
        counted.identities["community"].to_numpy().astype(object),
        counted.identities["posts"].to_numpy().astype(np.int64),
        np.where(table.users[place] == users, place, HIDDEN),
        None if topics is None else _pool(np.asarray(counted.vocabulary).tolist(), topics),
    )


def _pool(vocabulary: Sequence[str], topics: Topics) -> sp.csr_matrix:
    """Return which word belongs to which topic; topics without a word of this crowd are left out."""
    column = {word: place for place, word in enumerate(vocabulary)}
    found = [sorted({column[word] for word in words if word in column}) for words in topics.values()]
    found = [places for places in found if places]
    if not found:
        raise InputError("topics: nobody in this crowd uses a word of any topic; give topics in its language")
    rows = np.concatenate(found)
    columns = np.repeat(np.arange(len(found)), [len(places) for places in found])
    return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(vocabulary), len(found)))


# Who attacks: prior belief, world knowledge, and what they see besides attributes.


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
) -> Linkage:
    """Judge two profiles by their distances to each other's candidates; `own_*` is the true match's place.

    >>> unlinkable([0.1, 0.2, 0.2], 0, [0.1, 0.1], 0, sigma=0.4).posterior
    0.5
    """
    ways = [
        choice_probabilities(distances, rule)[own]
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
    words: CrowdWords | None,
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


def _written(posts: Sequence[Posts], words: CrowdWords, row: int, table: AttributeTable) -> Written | None:
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
