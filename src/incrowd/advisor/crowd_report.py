"""For data officers: how the risk is spread over a whole crowd. Nobody is named, quoted or pointed at."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from incrowd.advisor.crowd_answer import CrowdReport
from incrowd.measures.crowd_rates import (
    CommunityRisk,
    CrowdOptions,
    People,
    Sizes,
    Spread,
    TopicRisk,
    smallest_by_person,
    spread,
)
from incrowd.result import Standing, Threat, say_count

if TYPE_CHECKING:
    import polars as pl
    import scipy.sparse as sp

    from incrowd.crowd import Crowd
    from incrowd.measures.exposure.space import Space

__all__ = ["CrowdOptions", "CrowdReport", "crowd_report"]

Progress = Callable[[float, float | None, str], None]


def crowd_report(
    crowd: Crowd,
    *,
    options: CrowdOptions | None = None,
    space: Space | None = None,
    progress: Progress | None = None,
) -> CrowdReport:
    """Measure everybody, and tell totals only."""
    chosen = options or CrowdOptions()
    report = progress or (lambda done, total, what: None)
    missing: list[str] = []
    spreads: list[Spread] = []
    communities: tuple[list[CommunityRisk], int] = ([], 0)
    info = crowd.info()
    if info.posts:
        report(0, 4, "counting words")
        written = _Written.of(crowd, chosen)
        report(1, 4, "comparing members of communities")
        sizes = written.anonymity()
        spreads += _anonymity(written, sizes, chosen)
        communities = _communities(written, sizes, chosen)
        report(2, 4, "comparing profiles across communities")
        links, left_out = written.links()
        spreads += _linkability(links, chosen)
        missing += left_out
    else:
        missing.append("linkability and anonymity: this crowd has no posts")
    report(3, 4, "comparing items and topics")
    spreads += _microdata(crowd, chosen, missing)
    topics, exposed = _topics(crowd, space, chosen, missing) if info.posts else ((), None)
    spreads, few = (
        [one for one in spreads if (one.people >= chosen.smallest) is enough] for enough in (True, False)
    )
    missing += [f"{one.name}: fewer than {chosen.smallest} people, too few to tell anything" for one in few]
    missing.append("belief: what people hide is theirs to say; check one person's with incrowd belief")
    return CrowdReport(
        people=info.users,
        wanted=chosen.wanted,
        smallest=chosen.smallest,
        spreads=tuple(spreads),
        communities=tuple(communities[0]),
        unnamed_communities=communities[1],
        topics=topics,
        exposed=exposed,
        not_measured=tuple(missing),
        assumptions=chosen.parameters(),
        fingerprint=_fingerprint(crowd),
    )


@dataclass(frozen=True, eq=False)
class _Written:
    """Everybody's word shares, and who they are."""

    rows: sp.csr_matrix
    ids: pl.DataFrame
    options: CrowdOptions

    @classmethod
    def of(cls, crowd: Crowd, options: CrowdOptions) -> _Written:
        from incrowd.profiles import unigram
        from incrowd.text.counting import counts

        profiles = unigram(counts(crowd, options=options.text, memory=options.memory))
        return cls(profiles.matrix, profiles.ids, options)

    @property
    def users(self) -> NDArray[Any]:
        return self.ids["user"].to_numpy()

    def places(self) -> dict[str, NDArray[np.int64]]:
        """Return the rows of each community, the largest first."""
        community = self.ids["community"].to_numpy()
        names, counts = np.unique(community, return_counts=True)
        order = np.lexsort((names, -counts))
        return {str(names[k]): np.flatnonzero(community == names[k]) for k in order}

    def anonymity(self) -> Sizes:
        """Return how many people each identity has within the radius, itself included."""
        from incrowd.distances import Compute, ball_sizes

        sizes = np.zeros(self.rows.shape[0])
        compute = Compute(memory=self.options.memory)
        for rows in self.places().values():
            found = ball_sizes(self.rows[rows], radii=[self.options.radius], compute=compute)
            sizes[rows] = found[:, 0]
        return sizes

    def links(self) -> tuple[dict[str, Sizes], list[str]]:
        """Return, for everybody in two communities, the sizes of their matching sets, by person."""
        from incrowd.distances import Compute, within_both

        compute = Compute(memory=self.options.memory)
        chosen, left_out = self._pairs()
        people: list[Any] = []
        sizes: list[Any] = []
        for source, target, pairs, users in chosen:
            found = within_both(self.rows[source], self.rows[target], pairs, compute=compute)
            people.append(users)
            sizes.append(found.matching)
        if not people:
            return {"people": np.zeros(0), "sizes": np.zeros(0)}, left_out
        return {"people": np.concatenate(people), "sizes": np.concatenate(sizes).astype(np.float64)}, left_out

    def _pairs(self) -> tuple[list[tuple[Any, Any, Any, Any]], list[str]]:
        """Find who is in two communities, both ways; the pairs of communities with the most people count."""
        enough = self.ids["posts"].to_numpy() >= self.options.min_posts
        places = {name: rows[enough[rows]] for name, rows in self.places().items()}
        users = self.users
        found = []
        names = list(places)
        for a, first in enumerate(names):
            for second in names[a + 1 :]:
                both, i, j = np.intersect1d(users[places[first]], users[places[second]], return_indices=True)
                if both.size:
                    found.append((both.size, first, second, i, j, both))
        found.sort(key=lambda one: (-one[0], one[1], one[2]))
        chosen = []
        for _, first, second, i, j, both in found[: self.options.most_pairs]:
            chosen.append((places[first], places[second], np.column_stack([i, j]), both))
            chosen.append((places[second], places[first], np.column_stack([j, i]), both))
        left_out = []
        if not found:
            left_out.append(
                f"linkability: nobody has {self.options.min_posts} posts in each of two communities"
            )
        if len(found) > self.options.most_pairs:
            left_out.append(
                f"linkability: {len(found) - self.options.most_pairs:,} pairs of communities with fewer people in both"
            )
        return chosen, left_out


def _anonymity(written: _Written, sizes: Sizes, options: CrowdOptions) -> list[Spread]:
    from incrowd.measures.anonymity.spec import ADVERSARY

    if not len(sizes):
        return []
    return [
        spread(
            smallest_by_person(written.users, sizes),
            options.smallest,
            name="anonymity in communities",
            threat=Threat.SINGLING_OUT,
            meaning=(
                f"people of the same community, oneself included, who write alike within distance "
                f"{options.radius:g}; for people in several communities the smallest counts"
            ),
            adversary=ADVERSARY,
            standing=Standing.PROVED,
            who="people with posts",
        )
    ]


def _linkability(links: dict[str, Any], options: CrowdOptions) -> list[Spread]:
    from incrowd.measures.linkability.spec import ADVERSARIES

    if not len(links["sizes"]):
        return []
    return [
        spread(
            smallest_by_person(links["people"], links["sizes"]),
            options.smallest,
            name="matching sets across communities",
            threat=Threat.LINKABILITY,
            meaning=(
                "people an adversary who starts from one profile must consider before, or together with, the true "
                "one in another community; the smallest set of each person who is in two communities"
            ),
            adversary=ADVERSARIES["unigram"],
            standing=Standing.REPRODUCTION,
            who=f"people with {say_count(options.min_posts, 'post')} or more in each of two communities",
        )
    ]


def _microdata(crowd: Crowd, options: CrowdOptions, missing: list[str]) -> list[Spread]:
    from incrowd.measures.microdata.assess import crowd_of_everybody
    from incrowd.measures.microdata.spec import ADVERSARIES
    from incrowd.measures.microdata.table import item_table

    table = item_table(crowd)
    if table.matrix.shape[0] < 2:
        missing.append("microdata: this crowd has no items of at least two people")
        return []
    others = crowd_of_everybody(table, cache=crowd.cache, memory=options.memory)
    if others is None:
        missing.append("microdata: too many items for an exact answer; see incrowd microdata evaluate")
        return []
    return [
        spread(
            1 + np.asarray(others, np.float64),
            options.smallest,
            name="crowds among items",
            threat=Threat.SINGLING_OUT,
            meaning="people, oneself included, who on average fit what the adversary knows of one's items",
            adversary=ADVERSARIES["paper"].words,
            standing=Standing.PROVED,
            who="people with items",
        )
    ]


def _communities(written: _Written, sizes: Sizes, options: CrowdOptions) -> tuple[list[CommunityRisk], int]:
    """Return the worst of the communities that are large enough to be named, and how many are not."""
    found, unnamed = [], 0
    for name, rows in written.places().items():
        if len(rows) < options.smallest:
            unnamed += 1
            continue
        here, members = sizes[rows], len(rows)

        def told(count: int, members: int = members) -> People:
            return People.told(count, members, options.smallest)

        found.append(
            CommunityRisk(
                community=name,
                members=members,
                alone=told(int((here < 2).sum())),
                small=told(int((here < options.wanted).sum())),
                median=float(np.median(here)),
            )
        )
    found.sort(key=lambda one: (-_told_share(one.small), one.median, one.community))
    return found[: options.worst], unnamed


def _told_share(people: People) -> float:
    """Return what a list may be sorted by without giving hidden counts away."""
    return 0.0 if people.hidden else people.share


def _topics(
    crowd: Crowd, space: Space | None, options: CrowdOptions, missing: list[str]
) -> tuple[tuple[TopicRisk, ...], People | None]:
    from incrowd.measures.exposure.scoring import score
    from incrowd.measures.exposure.space import BagOfWords
    from incrowd.measures.exposure.spec import ExposureOptions
    from incrowd.measures.exposure.topics import starter_topics

    used = space or BagOfWords(starter_topics())
    scored = score(crowd, used, ExposureOptions(text=options.text, memory=options.memory))
    people = len(scored.users)
    if people < options.smallest:
        missing.append(f"exposure: fewer than {options.smallest} people, too few to tell anything")
        return (), None
    first = np.zeros(people, bool)
    found = []
    for name in used.topics.sensitive:
        risks = np.nan_to_num(scored.risks()[:, used.topics.place(name)], nan=0.0)
        shown = risks > 0
        first |= shown & (scored.ranks(name) <= max(1, int(options.exposed * people)))
        enough = int(shown.sum()) >= options.smallest
        found.append(
            TopicRisk(
                topic=name,
                shown=People.told(int(shown.sum()), people, options.smallest),
                highest_tenth=float(np.quantile(risks[shown], 0.9)) if enough else float("nan"),
            )
        )
    if not first.any():
        missing.append("exposure: no post points to a sensitive topic")
    found.sort(key=lambda one: (-_told_share(one.shown), one.topic))
    return tuple(found), People.told(int(first.sum()), people, options.smallest)


def _fingerprint(crowd: Crowd) -> dict[str, Any]:
    """Return what the report was made from and on: no host name, nobody's name."""
    from incrowd import __version__

    info = crowd.info().to_dict()
    wanted = (
        "users",
        "posts",
        "communities",
        "identities",
        "items",
        "item_rows",
        "attribute_rows",
        "imports",
    )
    return {
        "data_hash": crowd.data_hash,
        "data": {name: info[name] for name in wanted if name in info},
        "names": crowd.names,
        "incrowd": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }
