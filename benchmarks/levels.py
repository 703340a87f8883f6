"""Do levels tell people apart? Some random hundreds of each crowd, by every measure that decides.

    python -m benchmarks.levels CROWD... [--hundreds 5]

prints, for each crowd, how many people each level holds on average and at most in one of the hundreds, by which
question, and the spread of the risks that decide.
The thresholds are those of `incrowd.measures.findings`; they are the same for every
crowd. Nobody is named.

A hundred answers of `incrowd assess` would read the same communities a hundred times. So recognition and links are
computed for everybody of a community at once (`recognised_today`, the attack's certainty of all true pairs), and the
linking adversary practises once a crowd; all other measures are asked as `assess` asks them.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.advisor.combine import label, verdict
from incrowd.crowd import Crowd
from incrowd.measures.linkability.determined import prepare
from incrowd.measures.linkability.in_words import certainty_assessment
from incrowd.measures.linkability.measure import Linkability, ReadyLinkability
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.prepared import PreparedCrowd
from incrowd.measures.protocol import (
    AdvisorOptions,
    Finding,
    Level,
    Person,
    largest_communities,
    measure_named,
    registered,
)
from incrowd.measures.recognition.assess import (
    MemberRecognition,
    community_histories,
    recognised_today,
    recognition_assessment,
    taught,
)
from incrowd.measures.recognition.measure import DRAWS, JUDGED
from incrowd.measures.recognition.spec import RecognitionOptions
from incrowd.measures.sampling import SampledRank

AT_ONCE = ("recognition", "linkability")
Found = dict[str, list[Finding]]


def sample(crowd: Crowd, people: int, seed: int) -> list[str]:
    """Return a random some of everybody, by id."""
    tables = crowd.posts(), crowd.items(), crowd.attributes()
    ids = sorted({user for one in tables for user in one.select("user").unique().collect()["user"]})
    chosen = np.random.default_rng(seed).permutation(len(ids))[:people]
    return [ids[place] for place in chosen]


def recognised(people: Sequence[Person], options: AdvisorOptions) -> Found:
    """Ask how likely three posts give each person away, community by community."""
    measure = measure_named("recognition")
    there: dict[str, list[Person]] = defaultdict(list)
    for person in people:
        for name in largest_communities(measure, person, options)[0]:
            there[name].append(person)
    found: Found = defaultdict(list)
    for name, members in there.items():
        o = RecognitionOptions(community=name, draws=DRAWS, judged=JUDGED, seed=options.seed)
        members = [one for one in members if one.communities[name] >= o.min_posts]
        if not members:
            continue
        crowd = members[0].crowd
        histories, _, users, total = community_histories(crowd.crowd(), o)
        models = taught(crowd, histories, o)
        members = [one for one in members if one.user in users]
        if not models or not members:
            continue
        places = np.array([users.index(one.user) for one in members])
        chances = recognised_today(histories, places, models, o)
        for place, one in enumerate(members):
            told = {n: float(values[place]) for n, values in chances.items()}
            member = MemberRecognition(name, total, one.communities[name], told, {})
            assessed = recognition_assessment(member, o, "", 3 if 3 in told else min(told))
            found[one.user].append(measure.finding(assessed))
    return found


def linked(people: Sequence[Person], options: AdvisorOptions) -> Found:
    """Ask how sure the determined adversary is of the pair of communities that `assess` lets them try."""
    measure = Linkability()
    pairs: dict[tuple[str, str], list[Person]] = defaultdict(list)
    for person in people:
        ready = ReadyLinkability(measure, person.crowd, options)
        if (chosen := ready.most_to_go_by(person)) is not None:
            pairs[chosen.source, chosen.target].append(person)
    found: Found = defaultdict(list)
    learned: tuple[Any, int] | None = None
    for (source, target), some in pairs.items():
        o = LinkabilityOptions(source=source, target=target, adversary="determined", seed=options.seed)
        attack = prepare(some[0].crowd.crowd(), o, learned)
        learned = attack.model, attack.practice
        sure = dict(zip(attack.people.tolist(), attack.certainty().sure.tolist(), strict=True))
        for person in some:
            if person.user in sure:
                assessed = certainty_assessment(
                    o, sure[person.user], targets=len(attack.targets), rank=SampledRank(1, None, len(sure)),
                    pairs=len(sure), practice=attack.practice, data_hash="",
                )  # fmt: skip
                found[person.user].append(measure.finding(assessed))
    return found


def measured(path: Path, count: int, seed: int) -> list[dict[str, Any]]:
    """Return each person's level and risks, question by question."""
    crowd, options = Crowd(path), AdvisorOptions(advice=False, seed=seed)
    prepared = PreparedCrowd.of(crowd, options.text, options.memory)
    people = [Person(user, prepared) for user in sample(crowd, count, seed)]
    writers = [person for person in people if person.communities]
    at_once = [ask(writers, options) for ask in (recognised, linked)]
    others = {
        one: one.prepare(prepared, options) for name, one in registered().items() if name not in AT_ONCE
    }
    rows = []
    for person in people:
        findings = [finding for found in at_once for finding in found.get(person.user, [])]
        for one, ready in others.items():
            if not one.nothing_known(person):
                findings += map(one.finding, ready.assess(person, explain=False).assessments)
        themes = label(findings, ())
        risks = {str(one.name): [str(one.level), one.risk] for one in themes}
        rows.append({"level": str(verdict(themes).level), "themes": risks})
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count levels, and who decided them."""
    levels = Counter(row["level"] for row in rows)
    hundreds = [Counter(row["level"] for row in rows[k : k + 100]) for k in range(0, len(rows), 100)]
    risks = [
        max((risk for _, risk in row["themes"].values() if not math.isnan(risk)), default=math.nan)
        for row in rows
    ]
    known = [risk for risk in risks if not math.isnan(risk)]
    return {
        "people": len(rows),
        "levels": {str(level): levels[str(level)] / len(rows) for level in Level},
        "hundreds": [[one[str(level)] for level in Level] for one in hundreds],
        "largest": max(max(one.values()) / one.total() for one in hundreds),
        "questions": {
            name: {
                str(level): count
                for level in Level
                if (count := sum(row["themes"][name][0] == str(level) for row in rows))
            }
            for name in rows[0]["themes"]
        },
        "risk": {str(q): round(float(np.quantile(known, q)), 3) for q in (0.1, 0.25, 0.5, 0.75, 0.9)},
    }


def main() -> None:
    """Print a table for each crowd."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("crowds", nargs="+", type=Path)
    parser.add_argument("--hundreds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for path in options.crowds:
        rows = measured(path, 100 * options.hundreds, options.seed)
        print(path.name, json.dumps(summary(rows), indent=1), flush=True)


if __name__ == "__main__":
    main()
