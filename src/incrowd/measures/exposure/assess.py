"""One person's exposure: where they rank for a topic, which of their posts and words put them there, and what
would change it."""

from __future__ import annotations

import json
import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InputError, UnreadableSource
from incrowd.measures.exposure.definition import UNDATED, Floats, breadth, person_risk
from incrowd.measures.exposure.scoring import Scored, post_periods
from incrowd.measures.exposure.space import Encoder, Space, WordLists, silence
from incrowd.measures.exposure.spec import ADVERSARIES, BY_ONE_WORD, CALIBRATED, LINES, method_name
from incrowd.measures.sampling import SampledRank
from incrowd.result import (
    Advice,
    Assessment,
    Assumptions,
    Direction,
    Evidence,
    Standing,
    Threat,
    say_count,
    say_percent,
)

if TYPE_CHECKING:
    from incrowd.crowd import Crowd


# Quantiles of a crowd's risks, so that a person can find their rank alone, without anybody's posts.
#
# A provider puts people into groups by their risk and publishes, for each topic, the mean of every group.
# Each group has at least `smallest` people, so that no number is one person's.

FORMAT = "incrowd exposure quantiles 1"
MOST_GROUPS = 100
DIGITS = 4
ROUNDING = 0.5 * 10.0**-DIGITS


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """What a provider publishes: people in groups by ascending risk, and each group's mean risk."""

    method: str
    people: int
    smallest: int
    edges: tuple[int, ...]
    """How many people are in the groups up to each one; from 0 to everybody."""
    risks: Mapping[str, tuple[float, ...]]
    """For each topic the mean risk of every group, lowest first."""
    parameters: Mapping[str, Any]

    def rank(self, topic: str, risk: float) -> tuple[int, int]:
        """Return the best and the worst rank that somebody with this risk can have; 1 = most exposed.

        Whoever is in a higher group than one whose mean is above the risk, is above it too; whoever is in a
        lower group than one whose mean is below it, is not.
        """
        if topic not in self.risks:
            raise InputError(f"topic '{topic}' was not published; there are: {', '.join(self.risks)}")
        values = self.risks[topic]
        first_above = bisect_right(values, risk + ROUNDING)
        last_below = bisect_left(values, risk - ROUNDING) - 1
        best = 1 + self.people - self.edges[first_above + 1] if first_above < len(values) else 1
        worst = self.people - self.edges[last_below] if last_below >= 0 else self.people
        return best, worst

    def check(self, scored: Scored) -> None:
        """Raise unless a person's risks were computed as the published ones were."""
        for name, value in _parameters(scored).items():
            if name != "community" and self.parameters.get(name) != value:
                raise InputError(
                    f"the quantiles were published with {name} = {self.parameters.get(name)!r}, your risk was "
                    f"computed with {value!r}; use the provider's topics, model and options"
                )

    def to_dict(self) -> dict[str, Any]:
        """Return plain types."""
        return {
            "format": FORMAT,
            "method": self.method,
            "people": self.people,
            "smallest": self.smallest,
            "edges": list(self.edges),
            "risks": {topic: list(values) for topic, values in self.risks.items()},
            "parameters": dict(self.parameters),
        }


def quantiles(scored: Scored, smallest: int = 10) -> Quantiles:
    """Return what may be published about a scored crowd."""
    people = len(scored.users)
    if smallest < 2:
        raise InputError(f"smallest must be at least 2, got {smallest}")
    groups = min(MOST_GROUPS, people // smallest)
    if groups < 2:
        raise InputError(
            f"{people} people are too few to publish numbers about no fewer than {smallest}; "
            "use a larger community or lower --smallest"
        )
    edges = np.round(np.linspace(0, people, groups + 1)).astype(np.int64)
    names = scored.space.topics.names
    risks = scored.risks()
    return Quantiles(
        method=method_name(scored.space.name, scored.options.dimension),
        people=people,
        smallest=smallest,
        edges=tuple(edges.tolist()),
        risks={name: _group_means(risks[:, at], edges) for at, name in enumerate(names)},
        parameters=_parameters(scored),
    )


def _parameters(scored: Scored) -> dict[str, Any]:
    return scored.options.parameters() | {"topics": scored.space.topics.hash, "space": scored.space.hash}


def _group_means(values: Floats, edges: NDArray[np.int64]) -> tuple[float, ...]:
    # Undefined counts as no risk to be seen; the lowest defined value keeps the order.
    known = values[~np.isnan(values)]
    lowest = known.min() if known.size else 0.0
    ordered = np.sort(np.where(np.isnan(values), lowest, values))
    return tuple(float(np.round(ordered[a:b].mean(), DIGITS)) for a, b in pairwise(edges))


def load_quantiles(path: Path | str) -> Quantiles:
    """Read published quantiles."""
    try:
        plain = json.loads(Path(path).read_text(encoding="utf-8"))
        if plain.pop("format") != FORMAT:
            raise ValueError("another format")
        plain["edges"] = tuple(plain["edges"])
        plain["risks"] = {topic: tuple(values) for topic, values in plain["risks"].items()}
        return Quantiles(**plain)
    except FileNotFoundError:
        raise UnreadableSource(
            f"{path}: no such file; a provider writes it with: incrowd exposure publish"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UnreadableSource(f"{path}: expected quantiles written by incrowd exposure publish") from None


LITTLE_BELOW = 0.1
"""Only the most exposed tenth of a crowd stands out."""
BEYOND_SINGLE_WORDS = 0.25
"""For a bag of words: posts that name a single word of a topic's twenty, week after week, score 0.22. A quarter of
the people of a made-up crowd reach that for some topic without any stake in it; few get beyond."""
NOTHING = "nothing: no post points to it"
LITTLE, PROFESSIONAL = "little out of the ordinary", "a professional or general interest in the whole domain"
SINGLE_WORDS = "a few words, too few to tell an interest from chance"
PASSING, LASTING = "a passing interest", "a lasting personal interest"
UNDATED_INTEREST = "a personal interest; without times nobody can tell whether it lasts"


@dataclass(frozen=True, eq=False)
class OwnPosts:
    """One person's posts, scored: all that is read to explain their result."""

    periods: NDArray[np.int64]
    words: WordLists
    similarities: Floats
    counted: int | None = None
    """How many known words the posts hold, where the words themselves are not at hand."""
    resting: Callable[[int], str | None] | None = None
    """Return what :meth:`rests_on` does for a topic, where the words themselves are not at hand."""

    @property
    def known_words(self) -> int:
        """How many known words the posts hold."""
        return len(self.words.words) if self.counted is None else self.counted

    def risk(self, scored: Scored, topic: int, *, keep: Any = None, dimension: str | None = None) -> float:
        """Return the risk from the posts that are kept; 0 without any post."""
        kept = np.ones(len(self.periods), bool) if keep is None else keep
        if not kept.any():
            return 0.0
        o = scored.options
        return person_risk(
            self.similarities[kept],
            self.periods[kept],
            topic,
            scored.space.topics.siblings(topic),
            dimension=o.dimension if dimension is None else dimension,
            k=o.breadth,
            m=o.weeks,
            breadth_over=o.breadth_over,
            pooling=scored.space.pooling,
            literal=o.literal,
        )

    def leading(self, scored: Scored, topic: int) -> NDArray[np.bool_]:
        """Mark the posts that make the score: the best of all, or the best of each of the m best periods.

        Posts that have nothing to do with the topic make nothing. Where the strength is a mean, all posts make it.
        """
        values = self.similarities[:, topic]
        if "T" not in scored.options.dimension and scored.space.pooling == "mean":
            return np.ones(len(values), bool)
        order = np.argsort(-values, kind="stable")[: int((values > 0).sum())]
        chosen = np.zeros(len(values), bool)
        if "T" not in scored.options.dimension:
            chosen[order[:1]] = True
            return chosen
        order = order[self.periods[order] != UNDATED]
        _, first = np.unique(self.periods[order], return_index=True)
        chosen[order[np.sort(first)[: scored.options.weeks]]] = True
        return chosen

    def rests_on(self, space: Space, topic: int) -> str | None:
        """Return the word without which no post points to the topic any more; empty: several; None: no post does.

        A single word can mean something else. The pairs it stands in go with it.
        """
        if self.resting is not None:
            return self.resting(topic)
        line = LINES[space.name].nothing_up_to
        posts = np.flatnonzero(self.similarities[:, topic] > line).tolist() if len(self.words) else []
        pointing = [self.words.part(post, post + 1).words for post in posts]
        shares: dict[str, float] = defaultdict(float)
        for words in pointing:
            for word, share in zip(words, space.shares(words, topic), strict=True):
                for part in set(space.words[word].split(" ")):
                    shares[part] += float(share)
        if not shares:
            return None
        strongest = max(shares, key=lambda word: shares[word])
        return "" if any(_points_without(strongest, words, space, topic) for words in pointing) else strongest


def _points_without(gone: str, words: NDArray[np.int32], space: Space, topic: int) -> bool:
    """Say whether a post still points to a topic without a word."""
    left = np.array([word for word in words if gone not in space.words[word].split(" ")], np.int32)
    similar = space.similarities(WordLists(left, np.array([0, len(left)])))
    return bool(similar[0, topic] > LINES[space.name].nothing_up_to)


def rest_together(some: str | None, more: str | None) -> str | None:
    """Return what two lots of posts rest on together, as :meth:`OwnPosts.rests_on` does."""
    return more if some is None else some if more is None or some == more else ""


def own_posts(crowd: Crowd, scored: Scored, user: str) -> OwnPosts:
    """Read and score one person's posts."""
    mine = crowd.posts(scored.options.community, user).select("time", "text").collect()
    words = Encoder(scored.space, scored.options.text).encode(mine["text"])
    when = post_periods(mine["time"], scored.options.days)
    return OwnPosts(when, words, scored.space.similarities(words))


def evidence(posts: OwnPosts, scored: Scored, topic: int) -> tuple[Evidence, ...]:
    """Return each word's share of the risk, and what breadth takes off; they add up to the risk score."""
    leading = np.flatnonzero(posts.leading(scored, topic))
    whole = scored.options.weeks if "T" in scored.options.dimension else len(leading)
    per_word: dict[str, float] = defaultdict(float)
    for post in leading:
        words = posts.words.part(int(post), int(post) + 1).words
        shares = scored.space.shares(words, topic) / whole
        for word, share in zip(words, shares, strict=True):
            per_word[scored.space.words[word]] += float(share)
    parts = _told_by_words(per_word, dict(scored.space.topics.topics[topic].weighted_words))
    if silent := float(silence(scored.space)[topic]) * len(leading) / max(1, whole):
        parts.append(Evidence(what="where any post starts, whatever it says", contribution=silent))
    if "D" in scored.options.dimension and (taken := _taken_off(posts, scored, topic)):
        domain = scored.space.topics.topics[topic].domain
        parts.append(Evidence(what=f"you also write about other topics of {domain}", contribution=-taken))
    return tuple(parts)


def _told_by_words(shares: Mapping[str, float], weights: Mapping[str, float]) -> list[Evidence]:
    """Return the words and pairs that say most; where there are very many, the others together."""
    order = sorted((word for word, share in shares.items() if share), key=lambda word: -abs(shares[word]))
    told = order[:MOST_WORDS]
    parts = [
        Evidence(
            what=f"the words “{word}”" if " " in word else f"the word “{word}”",
            contribution=shares[word],
            detail=f"weight {weights[word]:+.2f}" if weights.get(word, 1.0) != 1.0 else "",
        )
        for word in told
    ]
    parts.sort(key=lambda part: -part.contribution)
    if rest := order[MOST_WORDS:]:
        together = math.fsum(shares[word] for word in rest)
        parts.append(Evidence(what=f"{len(rest):,} more words and pairs", contribution=together))
    return parts


def _taken_off(posts: OwnPosts, scored: Scored, topic: int) -> float:
    """What breadth takes off the risk, whichever way it is measured."""
    without = scored.options.dimension.replace("D", "")
    return posts.risk(scored, topic, dimension=without) - posts.risk(scored, topic)


def _breadth(posts: OwnPosts, scored: Scored, topic: int) -> float:
    strength = posts.similarities.max(axis=0)[None, :]  # of the post that says most, in all spaces
    return float(breadth(strength, scored.space.topics.siblings(topic), scored.options.breadth)[0])


def impression(posts: OwnPosts, scored: Scored, topic: int, rank: int) -> str:
    """Say in words what an adversary would make of it: little, lasting, passing or professional."""
    strength = float(posts.similarities[:, topic].max())
    if strength <= LINES[scored.space.name].nothing_up_to:
        return NOTHING
    if rank > max(1, LITTLE_BELOW * scored.people):
        return LITTLE
    if scored.space.name == "BOW" and posts.risk(scored, topic) < BEYOND_SINGLE_WORDS:
        return SINGLE_WORDS
    lines = LINES[scored.space.name]
    if _breadth(posts, scored, topic) >= lines.professional_from * strength:
        return PROFESSIONAL
    lasting = posts.risk(scored, topic, dimension="T")
    if np.isnan(lasting):
        return UNDATED_INTEREST
    return PASSING if lasting < lines.passing_below * strength else LASTING


CARE = "This says how it looks, not how you are."
UNDATED_POSTS = (
    "undated_posts: your posts carry no time, so a lasting interest cannot be told from a passing one"
)
MOST_WORDS = 20
"""So many words are named in an explanation, the others are added up."""
ON_TOPIC = 0.5
"""Posts at least this share as similar as the most similar one count as posts on the topic."""


def assess_topics(crowd: Crowd, scored: Scored, user: str, topics: Iterable[str]) -> list[Assessment]:
    """Return where a person (by id) ranks for each of some topics, most exposed first."""
    scored.place(user)
    return assess_posts(own_posts(crowd, scored, user), scored, user, topics)


def assess_posts(
    posts: OwnPosts, scored: Scored, user: str, topics: Iterable[str], *, explain: bool = True
) -> list[Assessment]:
    """Return the same for posts at hand; the person's row of `scored` must come from these posts.

    Without `explain`, evidence and advice are left out.
    """
    row = scored.place(user)
    found = [_assess(posts, scored, row, topic, explain) for topic in topics]
    return most_exposed_first(found)


def most_exposed_first(found: Iterable[Assessment]) -> list[Assessment]:
    """Sort by rank; topics that no post points to come after the others, undefined ones last."""
    return sorted(found, key=lambda one: (not one.defined, points_nowhere(one), one.value))


def points_nowhere(assessment: Assessment) -> bool:
    """Say whether a rank is only shared with everybody who never wrote about the topic: no exposure at all."""
    return assessment.assumptions.parameters.get("looks_like") == NOTHING


def assess_person(crowd: Crowd, scored: Scored, user: str, topic: str) -> Assessment:
    """Return where a person (by id) ranks for a topic, with the posts and words that put them there.

    The value is their R-Susceptibility: 1 is the most exposed person of the community. The evidence adds up
    to the risk score behind the rank.
    """
    return assess_topics(crowd, scored, user, [topic])[0]


def _assess(posts: OwnPosts, scored: Scored, row: int, topic: str, explain: bool) -> Assessment:
    place = scored.space.topics.place(topic)
    risks = scored.risks()[:, place]
    mine, people = float(risks[row]), scored.people
    if math.isnan(mine):
        return _undefined(scored, topic, people, posts.known_words)
    standing = scored.standing(topic, row)
    rank = standing.rank
    parts = () if scored.options.literal or not explain else evidence(posts, scored, place)
    looks = impression(posts, scored, place, rank)
    heard = min(mine, 0.0) if looks == NOTHING else mine
    word = _one_word(posts, scored, place, looks)
    chance, others = _concerned(scored, risks, mine, one_word=bool(word))
    return Assessment(
        measure="exposure",
        subject=_subject(scored, topic),
        value=float(rank),
        unit="rank",
        direction=Direction.HIGHER_IS_SAFER,
        meaning=_meaning(scored, topic, standing, _by_a_word(looks, word), chance, others),
        standing=Standing.HEURISTIC,
        assumptions=_assumptions(
            scored,
            topic=topic,
            looks_like=looks,
            one_word=bool(word),
            score=heard,
            probability=chance,
            prior=others,
            **standing.to_dict(),
        ),
        interval=standing.interval,
        baseline=(people + 1) / 2,
        crowd_rank=rank,
        crowd_size=people,
        threats=(Threat.INFERENCE,),
        evidence=parts,
        explained=math.fsum(part.contribution for part in parts) if parts else None,
        advice=advice(posts, scored, row, place) if explain else (),
    )


def _is_calibrated(scored: Scored) -> bool:
    return (scored.space.name, scored.options.dimension) in CALIBRATED


def _concerned(scored: Scored, risks: Floats, mine: float, *, one_word: bool) -> tuple[float, float]:
    """Return how likely somebody with this score is personally concerned, and somebody of this crowd picked at random.

    NaN where nobody has calibrated the space.
    """
    if not _is_calibrated(scored):
        return math.nan, math.nan
    key = scored.space.name, scored.options.dimension
    known = risks[~np.isnan(risks)]
    chance = CALIBRATED[key].probability(mine)
    if one_word:  # is never worth more than several
        chance = min(chance, BY_ONE_WORD[key].probability(mine))
    return float(chance), float(CALIBRATED[key].probability(known).mean())


def _one_word(posts: OwnPosts, scored: Scored, topic: int, looks: str) -> str:
    """Return the single word that an interest rests on; empty: there is none, or that makes no difference."""
    matters = _is_calibrated(scored) and looks in (PASSING, UNDATED_INTEREST)
    return (posts.rests_on(scored.space, topic) or "") if matters else ""


def _by_a_word(looks: str, word: str) -> str:
    """Say that an impression rests on a single word, if it does."""
    return f"{looks}, by the word “{word}” alone" if word else looks


def assess_alone(own: Scored, user: str, topic: str, published: Quantiles) -> Assessment:
    """Return where a person ranks in a crowd they know only by its published quantiles.

    `own` needs nobody's posts but the person's. The value is the most exposed rank that fits, the interval goes
    to the least exposed one.
    """
    published.check(own)
    risk = float(own.risks()[own.place(user), own.space.topics.place(topic)])
    if math.isnan(risk):
        return _undefined(own, topic, published.people, None)
    best, worst = published.rank(topic, risk)
    silent = _points_nowhere_alone(own, user, topic)
    return Assessment(
        measure="exposure",
        subject=f"you, topic {topic}",
        value=float(best),
        unit="rank",
        direction=Direction.HIGHER_IS_SAFER,
        meaning=_nothing_points(own, topic)
        if silent
        else (
            f"By what you wrote you are between number {best:,} and {worst:,} of {published.people:,} for {topic} "
            f"(1 stands out most). {CARE}"
        ),
        standing=Standing.HEURISTIC,
        assumptions=_assumptions(own, topic=topic, **({"looks_like": NOTHING} if silent else {})),
        interval=(float(best), float(worst)),
        baseline=(published.people + 1) / 2,
        crowd_rank=best if best == worst else None,
        crowd_size=published.people,
        threats=(Threat.INFERENCE,),
    )


def _points_nowhere_alone(own: Scored, user: str, topic: str) -> bool:
    strength = own.peaks.strength[own.place(user), own.space.topics.place(topic)]
    return not strength > LINES[own.space.name].nothing_up_to


def advice(posts: OwnPosts, scored: Scored, row: int, place: int) -> tuple[Advice, ...]:
    """Return what leaving posts out, or writing them under another identity, would do to the rank.

    What would not help is left out. To be silent helps even where the rank stays 1, because all the others are silent.
    """
    others = np.delete(scored.risks()[:, place], row)
    before = _rank(float(scored.risks()[row, place]), others)
    similar = posts.similarities[:, place]
    nothing = LINES[scored.space.name].nothing_up_to
    if not similar.max() > nothing:
        return ()
    leading = posts.leading(scored, place)
    stand_out = "the post that stands out" if leading.sum() == 1 else "the {} that stand out"
    steps = (
        (f"delete or reword {stand_out} most", leading, "those posts"),
        (
            "write about this topic under another identity ({} so far)",
            similar >= ON_TOPIC * similar.max(),
            "readers who know you by this name",
        ),
    )
    tried = []
    for action, gone, loss in steps:
        after = _rank(posts.risk(scored, place, keep=~gone), others)
        silent = not similar[~gone].max(initial=0) > nothing
        if after > before or silent:
            what = action.format(say_count(int(gone.sum()), "post"))
            what += "; nothing would point to the topic any more" if silent else ""
            tried.append(Advice(what=what, before=float(before), after=float(after), loss=loss))
    return tuple(tried)


def _rank(risk: float, others: Floats) -> int:
    return 1 + int((others > risk).sum()) if not math.isnan(risk) else 1 + int((~np.isnan(others)).sum())


def _subject(scored: Scored, topic: str) -> str:
    return f"you in {scored.options.community or 'this crowd'}, topic {topic}"


def _meaning(
    scored: Scored, topic: str, standing: SampledRank, looks: str, chance: float, others: float
) -> str:
    if looks == NOTHING:
        return _nothing_points(scored, topic)
    place = f"number {standing.rank:,} of {scored.people:,}"
    if standing.interval is not None:
        place = f"about {place} (between {standing.interval[0]:,} and {standing.interval[1]:,})"
    right = (
        ""
        if math.isnan(chance)
        else f" Somebody who takes you for personally concerned would be right {say_percent(chance)} of the time "
        f"({say_percent(others)} for anybody here)."
    )
    return (
        f"By what you wrote you are {place} for {topic} in {scored.options.community or 'this crowd'} "
        f"(1 stands out most); it looks like {looks}.{right} {CARE}"
    )


def _nothing_points(scored: Scored, topic: str) -> str:
    return f"Nothing you wrote points to {topic}, as far as {ADVERSARIES[scored.space.name]} can tell. {CARE}"


def _assumptions(scored: Scored, **more: Any) -> Assumptions:
    chosen = scored.options.parameters() | {
        "method": method_name(scored.space.name, scored.options.dimension),
        "topics": scored.space.topics.hash,
        "space": scored.space.hash,
    }
    chosen |= more
    return Assumptions(
        adversary=ADVERSARIES[scored.space.name], parameters=chosen, data_hash=scored.data_hash
    )


def _undefined(scored: Scored, topic: str, people: int, words: int | None) -> Assessment:
    """Say why nothing can be told. `words`: how many known ones somebody wrote; None if that is not at hand."""
    reason = UNDATED_POSTS
    if words is not None and words < scored.space.enough:
        reason = (
            f"too_little_text: you wrote {words:,} words and pairs that this adversary knows; "
            f"below {scored.space.enough:,} nothing can be told"
        )
    return Assessment(
        measure="exposure",
        subject=_subject(scored, topic),
        value=math.nan,
        unit="rank",
        direction=Direction.HIGHER_IS_SAFER,
        meaning="",
        standing=Standing.HEURISTIC,
        assumptions=_assumptions(scored, topic=topic),
        crowd_size=people,
        threats=(Threat.INFERENCE,),
        reason=reason,
    )
