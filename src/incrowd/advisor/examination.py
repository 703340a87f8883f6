"""Everything that applies to one person, prepared: the measures, and why others stay silent."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from incrowd.advisor.answer import Changes, Judged, NotAssessed, ThemeName
from incrowd.advisor.combine import SMALLEST_CROWD, THEMES, judge
from incrowd.advisor.examiner import Examiner, Findings
from incrowd.advisor.person import Own, known
from incrowd.advisor.written import Written, written

if TYPE_CHECKING:
    from incrowd.advisor.spec import AdvisorOptions
    from incrowd.crowd import Crowd

Progress = Callable[[float, float | None, str], None]
STEPS = 7
ADD_PEOPLE = "add other people's {}: incrowd ingest FILE --crowd DIR --kind {}"


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
    quick: list[Examiner] = []
    slow: list[Examiner] = []
    missing: list[NotAssessed] = []
    tell(1, STEPS, "counting words")
    words = written(crowd, own, options)
    if words is None:
        missing += [_no_posts(measure) for measure in ("linkability", "anonymity", "exposure")]
    else:
        _prepare_words(crowd, own, words, options, quick, slow, missing, tell)
    tell(5, STEPS, "comparing items")
    _prepare_items(crowd, own, options, quick, missing)
    tell(6, STEPS, "guessing attributes")
    _prepare_attributes(crowd, own, options, quick, missing)
    missing += _beyond(options)
    return Examination(own, tuple(quick), tuple(slow), tuple(missing))


def _prepare_words(
    crowd: Crowd,
    own: Own,
    words: Written,
    options: AdvisorOptions,
    quick: list[Examiner],
    slow: list[Examiner],
    missing: list[NotAssessed],
    tell: Progress,
) -> None:
    from incrowd.advisor.examine_anonymity import AnonymityExaminer
    from incrowd.advisor.examine_topics import TopicExaminer

    small = [name for name, one in words.communities.items() if len(one.users) < SMALLEST_CROWD]
    missing += [_small(name, len(words.communities[name].users)) for name in small]
    words = replace(words, communities={n: c for n, c in words.communities.items() if n not in small})
    if len(own.communities) > options.most_communities:
        missing.append(_more_communities(len(own.communities), options.most_communities))
    if not words.communities:
        missing += [_nobody_else(measure) for measure in ("linkability", "anonymity", "exposure")]
        return
    tell(2, STEPS, "sizing crowds")
    if options.asked("reader"):
        quick.append(AnonymityExaminer.prepare(crowd, words, options))
    else:
        missing.append(_not_asked("anonymity"))
    tell(3, STEPS, "comparing posts with sensitive topics")
    if options.asked("BOW"):
        quick.append(TopicExaminer.prepare(crowd, words.communities, options))
    else:
        missing.append(_not_asked("exposure"))
    tell(4, STEPS, "linking profiles")
    _prepare_links(crowd, own, words, options, quick, slow, missing)


def _prepare_links(
    crowd: Crowd,
    own: Own,
    words: Written,
    options: AdvisorOptions,
    quick: list[Examiner],
    slow: list[Examiner],
    missing: list[NotAssessed],
) -> None:
    from incrowd.advisor.examine_determined import DeterminedExaminer
    from incrowd.advisor.examine_links import LinkExaminer

    if not (options.asked("unigram") or options.asked("determined")):
        missing.append(_not_asked("linkability"))
        return
    links = LinkExaminer.prepare(crowd, own, words, options)
    if not links.pairs:
        missing += [*links.too_few, _one_profile()]
        return
    if options.asked("unigram"):
        quick.append(links)
    if not options.asked("determined"):
        return
    if not options.thorough:
        missing.append(_not_thorough())
        return
    worst = min(links.examine(own, explain=False).assessments, key=lambda one: one.value)
    chosen = next(
        pair.options
        for pair in links.pairs
        if (pair.options.source, pair.options.target)
        == (worst.assumptions.parameters["source"], worst.assumptions.parameters["target"])
    )
    slow.append(DeterminedExaminer(crowd, own, replace(chosen, adversary="determined", seed=options.seed)))
    if len(links.pairs) > 1:
        missing.append(_other_pairs(len(links.pairs), chosen.source, chosen.target))


def _prepare_items(
    crowd: Crowd, own: Own, options: AdvisorOptions, quick: list[Examiner], missing: list[NotAssessed]
) -> None:
    from incrowd.advisor.examine_items import ItemExaminer
    from incrowd.measures.microdata.spec import ADVERSARIES

    if not any(map(options.asked, ADVERSARIES)):
        missing.append(_not_asked("microdata"))
    elif not own.items:
        missing.append(_none_of("microdata", "items"))
    else:
        examiner = ItemExaminer.prepare(crowd, own, options)
        if examiner.table.matrix.shape[0] < SMALLEST_CROWD:
            missing.append(_too_few_people("microdata", "items"))
        else:
            quick.append(examiner)


def _prepare_attributes(
    crowd: Crowd, own: Own, options: AdvisorOptions, quick: list[Examiner], missing: list[NotAssessed]
) -> None:
    from incrowd.advisor.examine_beliefs import BeliefExaminer

    if not options.asked("stranger"):
        missing.append(_not_asked("belief"))
    elif not own.attributes:
        missing.append(_none_of("belief", "attributes"))
    elif crowd.attributes().select("user").unique().collect().height < SMALLEST_CROWD:
        missing.append(_too_few_people("belief", "attributes"))
    else:
        quick.append(BeliefExaminer.prepare(crowd, own, options))


def _silent(measure: str, why: str, remedy: str, theme: bool = True) -> NotAssessed:
    return NotAssessed(
        measure=measure, why=why, remedy=remedy, theme=THEMES[measure.split(" ")[0]] if theme else None
    )


def _no_posts(measure: str) -> NotAssessed:
    return _silent(
        measure,
        "the crowd holds no posts of yours",
        "import your export and other people's posts: incrowd ingest FILE --crowd DIR",
    )


def _none_of(measure: str, kind: str) -> NotAssessed:
    return _silent(
        measure,
        f"the crowd holds no {kind} of yours",
        f"import yours and other people's: incrowd ingest FILE --crowd DIR --kind {kind}",
    )


def _too_few_people(measure: str, kind: str) -> NotAssessed:
    return _silent(
        measure,
        f"fewer than {SMALLEST_CROWD} people in this crowd have {kind}",
        ADD_PEOPLE.format(kind, kind),
    )


def _nobody_else(measure: str) -> NotAssessed:
    return _silent(
        measure,
        "there is nobody to compare you with in your communities",
        ADD_PEOPLE.format("posts", "posts"),
    )


def _small(community: str, people: int) -> NotAssessed:
    return NotAssessed(
        measure="anonymity",
        why=f"this crowd holds {people} {'person' if people == 1 else 'people'} of {community}, you included: "
        f"fewer than {SMALLEST_CROWD} are no crowd",
        remedy=ADD_PEOPLE.format("posts", "posts"),
        theme=ThemeName.SINGLED_OUT,
    )


def _one_profile() -> NotAssessed:
    return _silent(
        "linkability",
        "linking needs two profiles of yours with enough posts, in two communities",
        "import your posts from another community, too",
    )


def _more_communities(there: int, assessed: int) -> NotAssessed:
    return _silent(
        "linkability",
        f"you write in {there} communities; only the {assessed} largest were looked at",
        "raise --communities",
    )


def _other_pairs(pairs: int, source: str, target: str) -> NotAssessed:
    return _silent(
        "linkability (determined)",
        f"of {pairs} ways to link your profiles only the riskiest, from {source} to {target}, was tried",
        "incrowd linkability DIR --source S --target T --user U --adversary determined",
        theme=False,
    )


def _not_thorough() -> NotAssessed:
    return _silent(
        "linkability (determined)",
        "the determined adversary takes long and was left out",
        "incrowd assess without --quick",
    )


def _not_asked(measure: str) -> NotAssessed:
    return _silent(
        measure, "none of its adversaries was asked for", "incrowd assess without --adversary asks all"
    )


def _beyond(options: AdvisorOptions) -> list[NotAssessed]:
    """Name what no advisor can see from here."""
    if options.adversaries:
        return []
    return [
        _silent(
            "exposure (LDA, W2V)",
            "adversaries who learnt topics from other texts need a trained model",
            "incrowd exposure train, then incrowd exposure rank --model MODEL --user U",
            theme=False,
        ),
        NotAssessed(
            measure="release",
            why="whether an answer from somebody's database may leave it is the provider's question",
            remedy="incrowd release, incrowd gateway",
        ),
    ]
