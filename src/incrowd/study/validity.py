"""Is what people are told true? Predictions from the first half of everybody's data, attacks on the second.

Three questions can be attacked: recognition (here), links between communities, and items
(:mod:`incrowd.study.attacked`). The attackers are not those that a prediction uses: for posts character runs,
compression and Burrows' delta, and plain TF-IDF cosine beside them, which the prediction's own attacker contains. A
prediction is worth something if people who were told a higher probability are found more often by all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from incrowd.drawing import Chart, Series
from incrowd.measures.attackers import ATTACKERS
from incrowd.measures.protocol import Progress
from incrowd.measures.recognition.assess import community_histories
from incrowd.measures.recognition.definition import pick
from incrowd.measures.recognition.history import Histories, Judged, learn
from incrowd.measures.recognition.spec import RecognitionOptions
from incrowd.statistics import first_place
from incrowd.study.attacked import ValidityOptions, Verdicts, items, links
from incrowd.study.figures import Section, Study, Table

if TYPE_CHECKING:
    from incrowd.crowd import Crowd


def validity_study(
    crowd: Crowd, options: ValidityOptions | None = None, progress: Progress | None = None
) -> Study:
    """Predict from everybody's earlier posts, attack their later ones with attackers the prediction does not use."""
    o = options or ValidityOptions()
    names = o.communities or tuple(crowd.communities()["community"].to_list()[:3])
    tell = progress or (lambda done, total, what: None)
    verdicts: list[Verdicts] = []
    for place, name in enumerate(names if "posts" in o.questions else ()):
        tell(place, len(names) + 2, f"attacking {name}")
        verdicts += _community(crowd, name, o)
    for place, (name, ask) in enumerate((("links", links), ("items", items))):
        if name in o.questions:
            tell(len(names) + place, len(names) + 2, f"attacking {name}")
            verdicts += ask(crowd, o)
    return Study(
        name="validity",
        title="Is it true? Predictions held against attacks they do not use",
        summary=_summary(verdicts),
        sections=(_told_apart(verdicts), *(_curves(one) for one in verdicts)),
        facts={
            **{key: value for key, value in asdict(o).items() if key != "memory"},
            "data_hash": crowd.data_hash,
        },
    )


def _community(crowd: Crowd, name: str, o: ValidityOptions) -> list[Verdicts]:
    chosen = RecognitionOptions(community=name, seed=o.seed, memory=o.memory)
    histories, texts, _, _ = community_histories(crowd, chosen)
    # Everybody teaches, as in `incrowd recognition`; fewer are attacked, because some attackers take long.
    lessons = learn(histories, chosen.how, most=max(chosen.judged, o.people))
    return [
        _attacked(histories, texts, name, n, _some(one.judged, o), o)
        for n, one in lessons.items()
        if n in o.known
    ]


def _some(judged: Judged, o: ValidityOptions) -> Judged:
    """Draw as many people as are to be attacked."""
    drawn = np.random.default_rng(o.seed).permutation(len(judged.people))[: o.people]
    return judged.part(np.sort(drawn))


def _attacked(
    histories: Histories, texts: pl.Series, name: str, n: int, judged: Judged, o: ValidityOptions
) -> Verdicts:
    earlier, later = histories.part("earlier"), histories.part("later")
    rng = np.random.default_rng([o.seed, n])
    others = np.setdiff1d([i for i, rows in enumerate(earlier) if len(rows)], judged.people)
    more = max(o.rivals - len(judged.people), 0)
    rivals = np.concatenate([judged.people, rng.permutation(others)[:more]]).astype(np.int64)
    # Attackers read only these people's posts; numbers of posts become places among them.
    read = np.sort(np.concatenate([histories.of[i] for i in rivals]))
    some = texts.gather(read.tolist())
    profiles = [np.searchsorted(read, earlier[i]) for i in rivals]
    asked = [np.searchsorted(read, drawn) for i in judged.people for drawn in pick(later[i], n, o.draws, rng)]
    truth = np.repeat(np.arange(len(judged.people)), o.draws)
    found = {}
    for attacker, make in ATTACKERS.items():
        scores = make(some, profiles).resemblance(asked)
        own = scores[np.arange(len(truth)), truth][:, None]
        first = first_place((scores > own).sum(axis=1), (scores == own).sum(axis=1) - 1)
        found[attacker] = first.reshape(-1, o.draws).mean(axis=1)
    return Verdicts(name, f"{n} posts", judged.predicted, found)


def _summary(verdicts: Sequence[Verdicts]) -> str:
    told = [one.auc_of_attempts(name)[0] for one in verdicts for name in one.found]
    known = [value for value in told if value == value]
    if not known:
        return "Cannot tell: too few people have enough posts or dated items to predict and to attack."
    return (
        f"{sum(len(one.predicted) for one in verdicts):,} predictions held against attackers that they do not use. "
        "Somebody who is found was told a higher probability than somebody who is not in "
        f"{min(known):.0%} to {max(known):.0%} of cases, by attacker ({np.median(known):.0%} in the middle; 50 % is "
        "chance; the table has the interval of each)."
    )


def _told_apart(verdicts: Sequence[Verdicts]) -> Section:
    rows: list[tuple[Any, ...]] = [
        (
            one.question,
            one.about,
            one.known,
            len(one.predicted),
            float(one.predicted.mean()),
            attacker,
            float(one.found[attacker].mean()),
            *((math.nan,) * 3 if one.too_few(attacker) else one.auc(attacker)),
            *one.auc_of_attempts(attacker),
            *one.auc_of_itself(attacker),
            one.found_often(attacker),
            one.too_few(attacker),
        )
        for one in verdicts
        for attacker in one.found
    ]
    columns = (
        "question",
        "where",
        "known",
        "people",
        "predicted",
        "attacker",
        "found",
        "auc",
        "from",
        "to",
        "attempts",
        "attempts from",
        "attempts to",
        "itself",
        "itself from",
        "itself to",
        "found often",
        "remark",
    )
    note = (
        "auc: how often somebody found at least half of the time had a higher prediction than somebody who was not, "
        "with a 95 % interval (of all pairs of communities: within a pair); attempts: the same for single attempts "
        "that succeeded and that failed; itself: the same "
        "(both with 95 % intervals, people left out one by one) "
        "had this very attacker been tried on the earlier half; found often: people found half of the time or more"
    )
    table = Table(title="Predicted and happened", columns=columns, rows=tuple(rows), note=note)
    return Section(
        heading="Does the number rank people as attacks do?",
        text="Predictions are made from the earlier half of everybody's data, those about posts for people the "
        "regression was not fitted on. Attackers then look for the person behind later data, for posts among at most "
        "as many rivals as the facts say, so their rates are not the predicted ones; the order of people is what is "
        "compared.",
        parts=(table,),
    )


def _curves(one: Verdicts) -> Section:
    series = tuple(Series.of(name, *one.curve(name)) for name in one.found)
    chart = Chart(
        kind="lines",
        title=f"{one.about}, {one.known} known",
        sentence="The further right, the more likely people were told to be found; the higher, the more often "
        "an attacker found them.",
        x_label="predicted",
        y_label="found",
        series=series,
    )
    return Section(heading=f"{one.about}: {one.known}", text="", parts=(chart,))
