"""Linkable: how many others would come before, or together with, your other profile; how sure somebody would be."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.distances.profile_index import Profile, distance, shared_terms, word_keys
from incrowd.measures.crowd_rates import CrowdOptions, CrowdRates, smallest_by_person, spread
from incrowd.measures.following import Follower, GrowingCrowd, Line, LineReading, Neighbours, neighbours_of
from incrowd.measures.linkability.in_both import PeopleInBoth, matching_sets, most_people_in_both
from incrowd.measures.linkability.in_words import pair_assessment, same_times, unknown_pair
from incrowd.measures.linkability.spec import ADVERSARIES, LinkabilityOptions
from incrowd.measures.protocol import (
    ADD_PEOPLE,
    OTHER_CARD,
    SMALLEST_CROWD,
    AdvisorOptions,
    Finding,
    Findings,
    GivesAway,
    Goal,
    Measure,
    NotAssessed,
    Person,
    PreparedCrowd,
    Proposal,
    Ready,
    Role,
    ThemeName,
    WordShare,
    largest_communities,
)
from incrowd.measures.sampling import SampledRank
from incrowd.measures.search import alternating, fewer_posts, fewer_words, post_order
from incrowd.result import Assessment, Evidence, Standing, Threat, say_count
from incrowd.text.mentions import word_evidence
from incrowd.text.reference import tokenise

if TYPE_CHECKING:
    from incrowd.crowd import Crowd
    from incrowd.measures.attackers import Lineup
    from incrowd.measures.linkability.determined import DeterminedAttack
    from incrowd.measures.linkability.determined_person import DeterminedPerson
    from incrowd.measures.linkability.from_card import PairFromCard
    from incrowd.measures.linkability.rates import LinkRates
    from incrowd.measures.made_up_rivals import MadeUpRivals

BY_WORDS, DETERMINED = ADVERSARIES


class Linkability(Measure):
    """Every ordered pair of a person's communities; the riskiest also under the determined adversary."""

    name = "linkability"
    about = "linking your profiles"
    question = "Can your profiles in two communities be found to be the same person's?"
    theme = ThemeName.LINKABLE
    reads = "posts"
    adversaries = ADVERSARIES

    def prepare(self, crowd: PreparedCrowd, options: AdvisorOptions) -> Ready:
        """Look at pairs of communities as people are asked about."""
        return ReadyLinkability(self, crowd, options)

    def role(self, assessment: Assessment) -> Role:
        """Let the determined adversary decide, who was calibrated; matching sets by words are the paper's."""
        return Role.DECIDES if assessment.unit == "probability" else Role.PAPER

    def crowd_behind(self, assessment: Assessment) -> float | None:
        """Return the candidates, not those who are in both communities."""
        return 1 / assessment.baseline if assessment.unit == "probability" else assessment.baseline

    def is_exact_after_changes(self, assessment: Assessment) -> bool:
        """Say no for the determined adversary: the weights stay those learnt before the change."""
        return assessment.exact and assessment.assumptions.adversary != ADVERSARIES[DETERMINED]

    def subject_of(self, assessment: Assessment) -> str:
        """Say which way somebody looks."""
        about = assessment.assumptions.parameters
        return f"from {about['source']} to {about['target']}"

    def too_few_posts(self, community: str, least: int, which: str = "") -> NotAssessed:
        """Say that a profile is too small to be linked; nobody is told to write more for the sake of a number."""
        why = f"you have fewer than {least} posts with words in {community}, too few to go by"
        closer = f"--min-posts {least // 2} looks closer, with less to go by"
        remedy = closer if least > 1 else "nothing to do: there are no words to compare"
        return self.not_assessed(why, remedy, which=which)

    def everybody(self, crowd: PreparedCrowd, options: CrowdOptions) -> CrowdRates:
        """Size the matching sets of everybody who is in two communities, both ways; the smallest of each counts."""
        missing = []
        pairs = most_people_in_both(crowd, options.min_posts)
        if not pairs:
            posts = say_count(options.min_posts, "post")
            return CrowdRates(not_measured=(f"{self.name}: nobody has {posts} in each of two communities",))
        if len(pairs) > options.most_pairs:
            left_out = f"{len(pairs) - options.most_pairs:,} pairs of communities with fewer people in both"
            missing.append(f"{self.name}: {left_out}")
        people, sizes = [], []
        for one, two in pairs[: options.most_pairs]:
            for source, target in ((one, two), (two, one)):
                chosen = LinkabilityOptions(
                    source=source,
                    target=target,
                    min_posts=options.min_posts,
                    text=options.text,
                    memory=options.memory,
                )
                found = matching_sets(crowd, chosen)
                people.append(found.names)
                sizes.append(found.sets)
        everybody = spread(
            smallest_by_person(np.concatenate(people), np.concatenate(sizes).astype(np.float64)),
            options.smallest,
            name="matching sets across communities",
            threat=Threat.LINKABILITY,
            meaning=(
                "people an adversary who starts from one profile must consider before, or together with, the true "
                "one in another community; the smallest set of each person who is in two communities"
            ),
            adversary=ADVERSARIES[BY_WORDS],
            standing=Standing.REPRODUCTION,
            who=f"people with {say_count(options.min_posts, 'post')} or more in each of two communities",
        )
        return CrowdRates(spreads=(everybody,), not_measured=tuple(missing))

    # Lines to watch

    line_keys = ("source", "target", "below")

    def follow(self, crowd: GrowingCrowd, lines: Sequence[Line], options: AdvisorOptions) -> Follower:
        """Follow who is no farther than the person's own other profile."""

        def neighbours(crowd: GrowingCrowd, line: Line) -> Neighbours:
            own, there = crowd.words(str(line.community)), crowd.words(str(line.target))

            def limit() -> float:
                if min(own.posts(crowd.user), there.posts(crowd.user)) < options.min_posts:
                    return math.nan
                return distance(own.profile(crowd.user), there.profile(crowd.user))

            return Neighbours(own, there, crowd.user, limit, options.min_posts)

        return neighbours_of(crowd, lines, neighbours)

    def say_reading(self, line: Line, reading: LineReading) -> str:
        """Say how many people come before the other profile."""
        return (
            f"Somebody who starts from your profile in {line.community} has {int(reading.value):,} of "
            f"{reading.of:,} people in {line.target} to consider before, or together with, you"
        )


@dataclass(frozen=True, eq=False)
class ReadyLinkability(Ready):
    """All pairs of communities, looked at when the first person in both is asked about."""

    measure: Linkability
    crowd: PreparedCrowd
    options: AdvisorOptions
    _known: dict[Hashable, Assessment] = field(default_factory=dict, repr=False)
    _rivals: dict[Hashable, PeopleInBoth] = field(default_factory=dict, repr=False)
    _determined: dict[Hashable, DeterminedPerson] = field(default_factory=dict, repr=False)
    _attacks: dict[Hashable, DeterminedAttack] = field(default_factory=dict, repr=False)
    _lineups: dict[str, Lineup] = field(default_factory=dict, repr=False)
    _from_card: dict[Hashable, MadeUpRivals] = field(default_factory=dict, repr=False)

    # By words

    def assess(self, person: Person, *, explain: bool = True, community: str | None = None) -> Findings:
        """Size the matching set for each pair of communities, and for the person's own two names."""
        if community is not None:
            return self._around(person, community)
        names, missing = largest_communities(self.measure, person, self.options)
        left_out = self._left_out(person)  # said last: it is no reason why the others tell nothing
        if not names:
            return Findings((), (*missing, *left_out))
        pairs, few = self._pairs(person)
        if not pairs:
            why = few if len(names) > 1 else [self._one_profile()]
            return Findings((), (*missing, *([] if self._in_card(person) else why), *left_out))
        if not self.options.asked(BY_WORDS):
            return Findings((), (*missing, *left_out))
        missing += few
        found = []
        for pair in pairs:
            lacking = [name for name in (pair.source, pair.target) if not self._enough(person, name)]
            missing += [self.measure.too_few_posts(name, self.options.min_posts) for name in lacking]
            if not lacking:
                found.append(self._ask(person, pair, explain))
        if person.other_name is not None:
            found += self._own_names(person, person.other_name, names, explain)
        return Findings(tuple(found), tuple(dict.fromkeys([*missing, *left_out])))

    def _pairs(self, person: Person) -> tuple[list[LinkabilityOptions], list[NotAssessed]]:
        """Return the pairs of communities in which the person has enough posts, and where they have not."""
        names, _ = largest_communities(self.measure, person, self.options)
        posts, least = person.before.communities, self.options.min_posts
        enough = [name for name in names if posts[name] >= least]
        few = [self.measure.too_few_posts(name, least) for name in names if name not in enough]
        return [self._chosen(source, target) for source, target in permutations(enough, 2)], few

    def _chosen(self, source: str, target: str) -> LinkabilityOptions:
        o = self.options
        return LinkabilityOptions(
            source=source, target=target, min_posts=o.min_posts, text=o.text, memory=o.memory
        )

    def _left_out(self, person: Person) -> list[NotAssessed]:
        """Say that the smaller communities were left out, if there are any."""
        there, looked_at = len(person.before.communities), self.options.most_communities
        if there <= looked_at:
            return []
        why = f"you write in {there} communities; only the {looked_at} largest were looked at"
        return [self.measure.not_assessed(why, "raise --most-communities")]

    def _one_profile(self) -> NotAssessed:
        return self.measure.not_assessed(
            "linking needs two profiles of yours with enough posts, in two communities",
            "import your posts from another community, too",
        )

    def _enough(self, person: Person, community: str) -> bool:
        enough = person.communities.get(community, 0) >= self.options.min_posts
        return enough and not person.profile(community).empty

    def _ask(self, person: Person, pair: LinkabilityOptions, explain: bool) -> Assessment:
        both = pair.source, pair.target
        key = person.user, both, person.state_in(*both), explain
        if key not in self._known:
            self._known[key] = self._assess(person, pair, explain)
        return self._known[key]

    def _assess(self, person: Person, pair: LinkabilityOptions, explain: bool) -> Assessment:
        eligible = self._eligible(person, pair.target)
        apart, near = self._matching(person, pair.source, person, pair.target)
        size = 1 + self.crowd.count(pair.target, near & eligible)
        # Who is in both communities, a card does not say.
        rivals = self._rivals_of(person.before, pair) if explain and not self.crowd.is_made_up else None
        rank = None if rivals is None else self._rank(person, pair, rivals, size)
        assessed = pair_assessment(
            pair,
            size,
            targets=self.crowd.count(pair.target, eligible) + 1,
            rank=None if rank is None else rank.rank,
            pairs=None if rivals is None else rivals.people + 1,
            facts=None if rank is None else rank.to_dict(),
            distance=apart,
            data_hash=self.crowd.data_hash,
            evidence=_shared_words(person, pair.source, person, pair.target) if explain else (),
        )
        return self.crowd.told(assessed, pair.target)

    def _eligible(self, person: Person, target: str) -> NDArray[np.bool_]:
        """Mark everybody else the adversary would search there."""
        index, row = self.crowd.words(target), person.row(target)
        eligible = np.asarray(index.posts >= self.options.min_posts)
        if row is not None:
            eligible[row] = False
        return eligible

    def _matching(self, a: Person, source: str, b: Person, target: str) -> tuple[float, NDArray[np.bool_]]:
        """Return how far two profiles are apart, and who in the target community is no farther from the first."""
        apart = distance(a.profile(source), b.profile(target))
        return apart, self.crowd.within(target, a.squares(source, target), apart)

    def _rank(self, person: Person, pair: LinkabilityOptions, rivals: PeopleInBoth, size: int) -> SampledRank:
        """Count who has a smaller matching set; the person may be in theirs."""
        in_sets = person.squares(pair.target, pair.source).within_each(rivals.rows, rivals.distances)
        smaller = int((rivals.sets + in_sets < size).sum())
        return SampledRank.of(smaller, len(rivals.rows), rivals.people)

    def _rivals_of(self, person: Person, pair: LinkabilityOptions) -> PeopleInBoth:
        key = person.user, pair.source, pair.target
        if key not in self._rivals:
            others = matching_sets(self.crowd, pair, sample=not self.crowd.exact).without(
                person.row(pair.source)
            )
            near = person.squares(pair.target, pair.source).within_each(others.rows, others.distances)
            self._rivals[key] = replace(others, sets=others.sets - near)
        return self._rivals[key]

    def _own_names(self, person: Person, other: Person, names: list[str], explain: bool) -> list[Assessment]:
        """Size the set of people who might be the other name, in each community where both have posts."""
        found = []
        for name in other.communities:
            if name not in names or not (self._enough(person, name) and self._enough(other, name)):
                continue
            eligible = self._eligible(person, name)
            apart, near = self._matching(other, name, person, name)
            assessed = pair_assessment(
                self._chosen(f"{name} (other name)", name),
                1 + self.crowd.count(name, near & eligible),
                targets=self.crowd.count(name, eligible) + 1,
                rank=None,
                pairs=1,
                distance=apart,
                data_hash=self.crowd.data_hash,
                evidence=_shared_words(other, name, person, name) if explain else (),
            )
            found.append(self.crowd.told(assessed, name))
        return found

    def propose(self, person: Person, finding: Finding, goal: Goal) -> Iterable[Proposal]:
        """Try fewer posts in either community, and fewer of the words both share."""
        if (by_card := self._of_card(person, finding)) is not None:
            yield from by_card.propose(person, finding, goal)
            return
        pair = self._pair_of(person, finding)
        if pair is None:
            return
        if finding.assessment.unit != "people":
            yield from self._determined_of(person, pair).propose(person, finding, goal)
            return
        wanted = pair.source, pair.target
        counts = {name: person.counts(name) for name in wanted}
        p, q = (one / one.sum() for one in counts.values())
        shares = shared_terms(p, q)

        def lack(changed: Person) -> float:
            if not all(self._enough(changed, name) for name in counts):
                return math.inf  # nothing to compare is not a crowd
            return goal.short(self._assess(changed, pair, explain=False))

        per_use = {
            name: np.divide(shares, used, out=np.zeros_like(shares), where=used > 0)
            for name, used in counts.items()
        }
        orders = [post_order(person, person.rows_in(name), weights) for name, weights in per_use.items()]
        both = f"{pair.source} and {pair.target}"
        for name, order in zip(counts, orders, strict=True):
            yield from fewer_posts(person, order, lack, name, goal.loss)
        yield from fewer_posts(person, alternating(*orders), lack, both, goal.loss)
        yield from fewer_words(person, shares, lack, both)

    def assess_again(self, person: Person, finding: Finding) -> Assessment | None:
        """Look at the finding's pair of communities alone."""
        if (by_card := self._of_card(person, finding)) is not None:
            return by_card.assess(person, explain=False)
        pair = self._pair_of(person, finding)
        if pair is None or (finding.assessment.unit != "people" and self._too_few_left(person, pair)):
            return None
        if finding.assessment.unit != "people":
            return self._determined_of(person, pair).assess(person, explain=False)
        enough = all(self._enough(person, name) for name in (pair.source, pair.target))
        return self._ask(person, pair, explain=False) if enough else None

    def gives_away(self, person: Person, finding: Finding) -> Sequence[GivesAway]:
        """Say which kinds of habits the two profiles have in common."""
        from incrowd.measures.telling import by_kind

        pair = self._pair_of(person, finding)
        if pair is None or finding.assessment.unit == "people":
            return ()
        return by_kind(
            self._determined_of(person, pair).habits(person), same_times(finding.assessment.evidence)
        )

    def _too_few_left(self, person: Person, pair: LinkabilityOptions) -> list[str]:
        """Return where the person has too few posts to be linked; a change may leave fewer than it takes now."""
        from incrowd.measures.linkability.determined_person import LEAST_LEFT

        least = LEAST_LEFT if person.changes else self.options.min_posts
        return [name for name in (pair.source, pair.target) if person.communities.get(name, 0) < least]

    def _pair_of(self, person: Person, finding: Finding) -> LinkabilityOptions | None:
        about = finding.assessment.assumptions.parameters
        wanted = about["source"], about["target"]
        return next((one for one in self._pairs(person)[0] if (one.source, one.target) == wanted), None)

    def recheck(self, person: Person, finding: Finding) -> float:
        """Let somebody who compares runs of characters look for the other profile."""
        from incrowd.measures.attackers import Lineup

        pair = self._pair_of(person, finding)
        if pair is None or finding.assessment.unit == "people":
            return math.nan
        if pair.target not in self._lineups:
            there = self.crowd.crowd().posts(community=pair.target)
            self._lineups[pair.target] = Lineup.of(
                there, person.user, self.options.seed, self.options.min_posts
            )
        texts = [person.posts.filter(person.rows_in(name))["text"] for name in (pair.source, pair.target)]
        return self._lineups[pair.target].risk(known=texts[1], asked=texts[0])

    # The strongest adversary we know

    def assess_thorough(self, person: Person, *, explain: bool = True) -> Findings:
        """Let the determined adversary try the pair that gives them most to go by."""
        if not self.options.asked(DETERMINED):
            return Findings()
        if self.crowd.is_made_up:
            return self._by_card(person, explain)
        pairs = self._pairs(person)[0]
        if not pairs:
            return Findings()
        if not self.options.thorough:
            why = "the determined adversary takes long and was left out"
            return Findings(
                (), (self.measure.not_assessed(why, "incrowd assess --thorough", which=DETERMINED),)
            )
        chosen = self.most_to_go_by(person)
        if chosen is None:
            why = f"where you write, fewer than {SMALLEST_CROWD} people have enough posts: no crowd to be looked for in"
            return Findings(
                (), (self.measure.not_assessed(why, ADD_PEOPLE.format("posts"), which=DETERMINED),)
            )
        tried: list[NotAssessed] = []
        if len(pairs) > 1:
            tried.append(_other_pairs(self.measure, len(pairs), chosen))
        few = [
            self.measure.too_few_posts(name, self.options.min_posts, DETERMINED)
            for name in self._too_few_left(person, chosen)
        ]
        if few:
            return Findings((), (*tried, *few))
        return Findings((self._determined_of(person, chosen).assess(person, explain=explain),), tuple(tried))

    # The same among people made up from a card

    def _by_card(self, person: Person, explain: bool) -> Findings:
        """Estimate from a card how sure the determined adversary would be."""
        pair = self._in_card(person)
        if pair is None:
            return Findings()
        if doubt := self.crowd.doubt(pair.places.community):
            told = self.measure.not_assessed(doubt, OTHER_CARD, which="your language")
            return Findings((), (told,))
        found = pair.assess(person, explain=explain)
        return Findings() if found is None else Findings((found,))

    def _in_card(self, person: Person) -> PairFromCard | None:
        """Return the two places to link where others are made up from a card; None: they are not, or too few posts."""
        if not self.crowd.is_made_up:
            return None
        from incrowd.measures.linkability.from_card import PairFromCard, places_of

        places = places_of(person.before, self.options.min_posts)
        if places is None:
            return None
        return PairFromCard(self.crowd, places, self.options.min_posts, self.options.seed, self._from_card)

    def _of_card(self, person: Person, finding: Finding) -> PairFromCard | None:
        return None if finding.assessment.unit == "people" else self._in_card(person)

    def most_to_go_by(self, person: Person) -> LinkabilityOptions | None:
        """Return the pair in which the smaller profile has the most posts; of both ways, among the fewer people.

        Where next to nobody else has enough posts there is no crowd to be looked for in.
        """
        now = person.before

        def to_go_by(pair: LinkabilityOptions) -> tuple[int, int]:
            posts = min(now.communities[name] for name in (pair.source, pair.target))
            return posts, -self.crowd.members(pair.target)

        names = {pair.target for pair in self._pairs(now)[0]}
        crowds = {name for name in names if 1 + self._eligible(now, name).sum() >= SMALLEST_CROWD}
        pairs = [pair for pair in self._pairs(now)[0] if pair.target in crowds]
        return max(pairs, key=to_go_by, default=None)

    def _determined_of(self, person: Person, pair: LinkabilityOptions) -> DeterminedPerson:
        from incrowd.measures.linkability.determined_person import DeterminedPerson

        key = person.user, pair.source, pair.target
        if key not in self._determined:
            chosen = replace(pair, adversary=DETERMINED, seed=self.options.seed)  # type: ignore[arg-type]
            self._determined[key] = DeterminedPerson(self.crowd, person.before, chosen, self._attacks)
        return self._determined[key]

    # One community: drafts

    def _around(self, person: Person, community: str) -> Findings:
        """Link the profile in one community with the person's profiles elsewhere, both ways."""
        found, missing = [], []
        others = {name: count for name, count in person.communities.items() if name != community}
        taken = 0
        for name, count in others.items():
            why = ""
            if count < self.options.min_posts:
                why = f"{count} of your posts are fewer than the {self.options.min_posts} it takes"
            elif taken == self.options.most_communities:
                why = f"only your {self.options.most_communities} largest others are compared"
            elif person.row(name) is None:
                why = "no words of yours are left there without stop words"
            else:
                taken += 1
                pairs = ((community, name), (name, community))
                found += [self._both_ways(person, community, self._chosen(*pair)) for pair in pairs]
            if why:
                missing.append(self.measure.not_assessed(f"{name}: {why}", ""))
        if not others:
            why = "your profiles elsewhere: you have none in this crowd, so there is nothing to link"
            missing.append(self.measure.not_assessed(why, ""))
        return Findings(tuple(found), tuple(missing))

    def _both_ways(self, person: Person, community: str, pair: LinkabilityOptions) -> Assessment:
        posts, least = person.communities.get(community, 0), pair.min_posts
        reason = ""
        if posts < least:
            reason = f"too_few_posts: {posts} of your posts in {community} are fewer than {least}"
        elif person.profile(community).empty:
            reason = f"empty_profile: no words in {community}"
        if reason:
            others = int(self._eligible(person, pair.target).sum())
            return unknown_pair(pair, others, reason, self.crowd.data_hash)
        return self._ask(person, pair, explain=False)

    def word_shares(self, person: Person, community: str, text: str) -> Mapping[str, WordShare]:
        """Say how much each word adds to what the profile shares with the person's profiles elsewhere."""
        said = tokenise(text, person.text)
        words = sorted(set(said))
        keys = word_keys(words)
        now = person.profile(community)
        then = now.plus(Profile.of_words(said))
        total = np.zeros(len(keys))
        for name in self._compared_with(person, community):
            q = person.profile(name).shares_at(keys)
            total += shared_terms(then.shares_at(keys), q) - shared_terms(now.shares_at(keys), q)
        return {
            word: WordShare(weight=float(one), facts={"links": float(one)})
            for word, one in zip(words, total, strict=True)
        }

    def _compared_with(self, person: Person, community: str) -> Iterator[str]:
        """Yield the person's other communities that a draft is compared with."""
        taken = 0
        for name, count in person.communities.items():
            enough = name != community and count >= self.options.min_posts
            if enough and taken < self.options.most_communities and person.row(name) is not None:
                taken += 1
                yield name


def _other_pairs(measure: Linkability, pairs: int, chosen: LinkabilityOptions) -> NotAssessed:
    """Say which pair the determined adversary tried; the others were tried by words, so nothing is open."""
    tried = f"from {chosen.source} to {chosen.target}"
    return replace(
        measure.not_assessed(
            f"of {pairs} ways to link your profiles only the one with the most posts, {tried}, was tried",
            "incrowd linkability DIR --source S --target T --user U --adversary determined",
            which=DETERMINED,
        ),
        theme=None,
    )


def _shared_words(a: Person, source: str, b: Person, target: str) -> tuple[Evidence, ...]:
    """Return the words two profiles share, the strongest first; the shares add up to ``1 - d**2``."""
    counts = a.counts(source)
    used = np.flatnonzero(counts > 0)
    p, q = counts[used] / counts.sum(), b.profile(target).shares_at(a.keys[used])
    shares = shared_terms(p, q)
    words = a.words.vocabulary.gather(used.tolist()).to_list()
    order = np.argsort(-shares, kind="stable")[: int((shares > 0).sum())]
    return word_evidence(((words[k], float(shares[k])) for k in order.tolist()), a.mentioned)


# For Python: the same two names in every measure. What compares everybody is imported when it is asked for.


def measure(crowd: Crowd, options: LinkabilityOptions) -> LinkRates:
    """Measure how well the adversary links everybody who is in both communities."""
    from incrowd.measures.linkability.assess import link_rates

    return link_rates(crowd, options)


def assess(crowd: Crowd, user: str, options: LinkabilityOptions) -> Assessment:
    """Say how well one person's two profiles (by name) hide from the adversary."""
    from incrowd.measures.linkability.assess import assess_person

    return assess_person(crowd, options, crowd.user(user))
