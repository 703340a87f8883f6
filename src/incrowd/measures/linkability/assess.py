"""Two communities in, rates out; one person's two profiles in, an assessment out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from incrowd.crowd import Crowd
from incrowd.distances import Compute, pairwise, within_both
from incrowd.distances.choice import choice_probabilities
from incrowd.measures.linkability import by_distance, determined
from incrowd.measures.linkability.by_distance import TwoCommunities, place_in
from incrowd.measures.linkability.definition import best_bound
from incrowd.measures.linkability.explain import OwnPair, posts_to_delete, shared_words, words_to_avoid
from incrowd.measures.linkability.in_words import VIEW_NAMES, certainty_assessment, pair_assessment
from incrowd.measures.linkability.link_model import LinkModel
from incrowd.measures.linkability.rates import LinkRates
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.sampling import SampledRank
from incrowd.profiles import unigram
from incrowd.result import Advice, Assessment, Evidence
from incrowd.text import tokenise
from incrowd.text.mentions import mentioned_words


def link_rates(crowd: Crowd, options: LinkabilityOptions, compute: Compute | None = None) -> LinkRates:
    """Measure how well the adversary links everybody who is in both communities."""
    if options.adversary == "determined":
        prepared = determined.prepare(crowd, options, open_set=True)
        return determined.measure(prepared, options, crowd.data_hash, compute)
    attack = by_distance.prepare(crowd, options, compute)
    return by_distance.measure(attack, options, crowd.data_hash)


def assess_person(
    crowd: Crowd, options: LinkabilityOptions, user: str, compute: Compute | None = None
) -> Assessment:
    """Say how well one person's two profiles hide from the adversary; `user` is the store's id."""
    if options.adversary == "determined":
        return _under_determined(crowd, options, user)
    return _by_distance(crowd, options, user, compute)


def _by_distance(crowd: Crowd, options: LinkabilityOptions, user: str, compute: Compute | None) -> Assessment:
    attack = by_distance.prepare(crowd, options, compute)
    meeting = attack.meeting
    place = place_in(meeting.people, user, options)
    source, target = (int(x) for x in meeting.pairs[place])
    sets = within_both(attack.x, attack.y, meeting.pairs, metric=attack.metric, compute=attack.compute)
    crowd_size, distance = int(sets.matching[place]), float(sets.distances[place])
    row = pairwise(attack.x[[source]], attack.y, metric=attack.metric, compute=attack.compute)[0]
    around = pairwise(attack.y[[target]], attack.y, metric=attack.metric, compute=attack.compute)[0]
    chosen = float(choice_probabilities(row, options.rule)[target])
    ranking = by_distance.relative_ranking(attack)
    explainable = options.model == "unigram" and options.distance == "jensen-shannon"
    evidence, advice = _reasons(crowd, options, meeting, source, target) if explainable else ((), ())
    return pair_assessment(
        options,
        crowd_size,
        targets=attack.y.shape[0],
        rank=int((sets.matching < crowd_size).sum()) + 1,
        pairs=len(meeting.pairs),
        distance=distance,
        data_hash=crowd.data_hash,
        evidence=evidence,
        advice=advice,
        facts={
            "local_matching_set": int(sets.both[place]),
            "anonymity_set": int(sets.anonymity[place]),
            "chosen_with_probability": chosen,
            "linkage_bound": best_bound(distance, around, options.rule),
            "relative_rank": int(ranking.ranks[target]),
            "relative_rank_of": int(attack.y.shape[0]),
            "relative_rank_method": ranking.method,
        },
    )


def _reasons(
    crowd: Crowd, options: LinkabilityOptions, meeting: TwoCommunities, source: int, target: int
) -> tuple[tuple[Evidence, ...], tuple[Advice, ...]]:
    """Explain by the words both profiles share, and try out what would pull them apart."""

    counts = meeting.counts
    rows = [meeting.sources[source], meeting.targets[target]]
    own = np.asarray(counts.matrix[rows].toarray(), np.float64)
    p, q = own / own.sum(axis=1, keepdims=True)
    words = list(counts.vocabulary)
    frequencies = unigram(counts).matrix
    others = frequencies[np.delete(meeting.targets, target)]
    pair = OwnPair(own[0], own[1], others, Compute(memory=options.memory))
    user = str(meeting.people[meeting.pairs[:, 0] == source][0])
    mentioned = mentioned_words(crowd.posts(user=user).collect()["text"], options.text)
    evidence = shared_words(p, q, words, mentioned)
    posts = _own_posts(crowd, options, user, counts)
    tried = [words_to_avoid(pair, words, mentioned=mentioned)]
    deletion = posts_to_delete(pair, posts)
    tried.append(deletion[0] if deletion else None)
    return evidence, tuple(advice for advice in tried if advice is not None)


def _own_posts(crowd: Crowd, options: LinkabilityOptions, user: str, counts: Any) -> Any:
    """Count the words of each of the person's own posts in the source community."""
    texts = crowd.posts(community=options.source, user=user).collect()["text"].to_list()
    column = {word: place for place, word in enumerate(counts.vocabulary)}
    cells = [
        (post, column[token])
        for post, text in enumerate(texts)
        for token in tokenise(text, options.text)
        if token in column
    ]
    post, word = np.array(cells, np.int64).reshape(-1, 2).T
    shape = (len(texts), len(column))
    return sp.coo_matrix((np.ones(len(cells)), (post, word)), shape=shape).tocsr()


def _under_determined(crowd: Crowd, options: LinkabilityOptions, user: str) -> Assessment:
    attack = determined.prepare(crowd, options)
    place = place_in(attack.people, user, options)
    found = attack.certainty()
    certainty = found.sure
    sure = float(certainty[place])
    return certainty_assessment(
        options,
        sure,
        targets=len(attack.targets),
        rank=SampledRank.of(int((certainty > sure).sum()), len(certainty) - 1, len(certainty) - 1),
        pairs=len(certainty),
        practice=attack.practice,
        data_hash=crowd.data_hash,
        evidence=view_evidence(attack.model, found.scores[place]),
    )


def view_evidence(model: LinkModel, scores: Any) -> tuple[Evidence, ...]:
    """Return what each kind of habit adds to the resemblance of one true pair with these scores."""
    return tuple(
        Evidence(what=VIEW_NAMES[view], contribution=float(weight * score))
        for view, weight, score in zip(model.views, model.weights, scores, strict=True)
    )
