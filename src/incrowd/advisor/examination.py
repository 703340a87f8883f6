"""Everything that applies to one person, prepared: the measures, and why others stay silent."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from incrowd.advisor import silences
from incrowd.advisor.answer import Changes, Judged, NotAssessed
from incrowd.advisor.combine import judge
from incrowd.advisor.examiner import Examiner, Findings
from incrowd.advisor.person import Own, known
from incrowd.advisor.spec import SMALLEST_CROWD
from incrowd.advisor.written import Written, written

if TYPE_CHECKING:
    import polars as pl

    from incrowd.advisor.examine_links import LinkExaminer
    from incrowd.advisor.spec import AdvisorOptions
    from incrowd.crowd import Crowd

Progress = Callable[[float, float | None, str], None]
STEPS = 7


@dataclass(frozen=True, eq=False)
class Examination:
    """One person and all examiners that can say something about them."""

    own: Own
    quick: tuple[Examiner, ...]
    slow: tuple[Examiner, ...]
    """Those that take seconds for every change; the plan asks them at its end only."""
    missing: tuple[NotAssessed, ...]
    _known: dict[Hashable, Findings] = field(default_factory=dict, repr=False)
    _changed: dict[Changes, Own] = field(default_factory=dict, repr=False)

    def examine(
        self, own: Own, *, explain: bool = True, slow: bool = True
    ) -> tuple[tuple[Judged, ...], tuple[NotAssessed, ...]]:
        """Return what all say about the person as they are in `own`, and what they cannot say."""
        asked = (*self.quick, *self.slow) if slow else self.quick
        found = [self._ask(number, examiner, own, explain) for number, examiner in enumerate(asked)]
        judged = tuple(judge(one) for part in found for one in part.assessments)
        silent = tuple(one for part in found for one in part.not_assessed)
        return judged, (*self.missing, *silent)

    def changed(self, changes: Changes) -> Own:
        """Return the person after some changes."""
        if changes not in self._changed:
            self._changed[changes] = self.own.after(changes)
        return self._changed[changes]

    def _ask(self, number: int, examiner: Examiner, own: Own, explain: bool) -> Findings:
        """Ask an examiner, unless nothing it reads has changed since it was asked."""
        key = number, own.state(examiner.reads), explain
        if key not in self._known:
            self._known[key] = examiner.examine(own, explain=explain)
        return self._known[key]

    def quickly_known(self, judged: Sequence[Judged]) -> list[Judged]:
        """Leave out what only slow examiners know."""
        quick = {one.key for one in self.examine(self.own, explain=False, slow=False)[0]}
        return [one for one in judged if one.key in quick]

    def examiner_of(self, finding: Judged) -> Examiner | None:
        """Return who can propose something against a finding."""
        measure = finding.assessment.measure
        return next((one for one in self.quick if one.measure == measure), None)


def prepare(
    crowd: Crowd, user: str, options: AdvisorOptions, progress: Progress | None = None
) -> Examination:
    """Find out what is known of a person (by id) and prepare every measure that applies."""
    tell = progress or (lambda done, total, what: None)
    tell(0, STEPS, "reading what is known of you")
    own = known(crowd, user, options.text)
    gathering = _Gathering(crowd, own, options, tell)
    gathering.words()
    gathering.missing += silences.more_communities(len(own.communities), options.most_communities)
    gathering.items()
    gathering.attributes()
    gathering.missing += silences.beyond(options)
    return Examination(own, tuple(gathering.quick), tuple(gathering.slow), tuple(gathering.missing))


@dataclass(eq=False)
class _Gathering:
    """Collects the examiners that have something to say, and why the others have not."""

    crowd: Crowd
    own: Own
    options: AdvisorOptions
    tell: Progress
    quick: list[Examiner] = field(default_factory=list)
    slow: list[Examiner] = field(default_factory=list)
    missing: list[NotAssessed] = field(default_factory=list)

    def words(self) -> None:
        """Prepare what reads posts."""
        self.tell(1, STEPS, "counting words")
        words = written(self.crowd, self.own, self.options)
        if words is None:
            self.missing += silences.no_posts()
            return
        words = self._large_enough(words)
        if not words.communities:
            return
        self.tell(2, STEPS, "sizing crowds")
        self._anonymity(words)
        self.tell(3, STEPS, "comparing posts with sensitive topics")
        self._topics(words)
        self.tell(4, STEPS, "linking profiles")
        self._links(words)

    def _large_enough(self, words: Written) -> Written:
        """Leave out communities that are no crowd, and say so."""
        there = self.own.communities
        for name in list(there)[: self.options.most_communities]:
            if name not in words.communities:
                self.missing += silences.no_words(name)
            elif (people := len(words.communities[name].users)) < SMALLEST_CROWD:
                self.missing += silences.small(name, people)
        large = {n: one for n, one in words.communities.items() if len(one.users) >= SMALLEST_CROWD}
        return replace(words, communities=large)

    def _anonymity(self, words: Written) -> None:
        from incrowd.advisor.examine_anonymity import AnonymityExaminer

        if self.options.asked("reader"):
            self.quick.append(AnonymityExaminer.prepare(self.crowd, self.own, words, self.options))
        else:
            self.missing.append(silences.not_asked("anonymity"))

    def _topics(self, words: Written) -> None:
        from incrowd.advisor.examine_topics import TopicExaminer

        if self.options.asked("BOW"):
            self.quick.append(TopicExaminer.prepare(self.crowd, words.communities, self.options))
        else:
            self.missing.append(silences.not_asked("exposure"))

    def _links(self, words: Written) -> None:
        from incrowd.advisor.examine_links import LinkExaminer

        if not (self.options.asked("unigram") or self.options.asked("determined")):
            self.missing.append(silences.not_asked("linkability"))
            return
        links = LinkExaminer.prepare(self.crowd, self.own, words, self.options)
        if not links.pairs:
            self.missing += links.too_few if len(words.communities) > 1 else [silences.one_profile()]
            return
        if self.options.asked("unigram"):
            self.quick.append(links)
        if self.options.asked("determined"):
            self._determined(links)

    def _determined(self, links: LinkExaminer) -> None:
        """Let the strongest adversary try the pair that is riskiest by words."""
        from incrowd.advisor.examine_determined import DeterminedExaminer

        if not self.options.thorough:
            self.missing.append(silences.not_thorough())
            return
        riskiest = replace(links.riskiest(self.own), adversary="determined", seed=self.options.seed)
        self.slow.append(DeterminedExaminer(self.crowd, self.own, riskiest))
        if len(links.pairs) > 1:
            self.missing.append(silences.other_pairs(len(links.pairs), riskiest.source, riskiest.target))

    def items(self) -> None:
        """Prepare what reads items."""
        from incrowd.advisor.examine_items import ItemExaminer
        from incrowd.measures.microdata.spec import ADVERSARIES

        self.tell(5, STEPS, "comparing items")
        if not any(map(self.options.asked, ADVERSARIES)):
            self.missing.append(silences.not_asked("microdata"))
        elif not self.own.items:
            self.missing.append(silences.none_of("microdata", "items"))
        elif _people(self.crowd.items()) < SMALLEST_CROWD:
            self.missing.append(silences.too_few_people("microdata", "items"))
        else:
            self.quick.append(ItemExaminer.prepare(self.crowd, self.own, self.options))

    def attributes(self) -> None:
        """Prepare what reads attributes."""
        from incrowd.advisor.examine_beliefs import BeliefExaminer

        self.tell(6, STEPS, "guessing attributes")
        if not self.options.asked("stranger"):
            self.missing.append(silences.not_asked("belief"))
        elif not self.own.attributes:
            self.missing.append(silences.none_of("belief", "attributes"))
        elif _people(self.crowd.attributes()) < SMALLEST_CROWD:
            self.missing.append(silences.too_few_people("belief", "attributes"))
        else:
            self.quick.append(BeliefExaminer.prepare(self.crowd, self.own, self.options))


def _people(rows: pl.LazyFrame) -> int:
    return int(rows.select("user").unique().head(SMALLEST_CROWD).collect().height)
