"""Posts in a community and links between profiles: seen, believed, and withheld like attributes."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.belief.making import table_of

from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.measures.belief.adversary import (
    MOST_COMMUNITIES,
    BeliefAdversary,
    Linkage,
    Posts,
    Traces,
    Written,
    learn_signs,
    read_words,
    traces_of,
)
from incrowd.measures.belief.assess import check_policy, steps
from incrowd.measures.belief.critical import candidates, critical_sets, repairing_sets
from incrowd.measures.belief.crowd_belief import CrowdBelief
from incrowd.measures.belief.policy import Policy, Requirement, Unlinkable
from incrowd.measures.belief.rules import InferenceRule, WorldKnowledge
from incrowd.measures.belief.spec import BeliefOptions
from incrowd.profiles.attributes import (
    HIDDEN,
    AttributeSpace,
    AttributeTable,
    SeenAttributes,
    attribute_table,
)

TABLE = table_of(
    AttributeSpace.of({"city": ["A", "B"], "job": ["nurse", "smith"], "faith": ["none", "sun"]}),
    np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [0, 1, 1], [1, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 0]]),
)
LINK = Linkage(0.8, 1 / 16, "inverse", 0.5, ("forge", "garden"))
WORDS = Written(
    used=np.array([[1, 1, 0], [0, 1, 1]], dtype=bool),
    pool=None,
    scores={2: np.log([[1.0, 2.0], [1.0, 3.0], [1.0, 5.0]])},
    usual={2: np.array([0.5, 0.5])},
)
POSTS = (Posts(("forge",), 7), Posts(("garden",), 2))


def test_words_count_once_and_only_where_they_are_seen() -> None:
    traces = Traces(POSTS, (), WORDS)
    visible = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=bool)
    odds = traces.suggest(visible)[2]
    np.testing.assert_allclose(odds[:, 1] / odds[:, 0], [2 * 3 * 5, 2 * 3, 3 * 5, 1])


def test_the_second_profile_counts_as_far_as_it_is_linked() -> None:
    """Forge is known; of garden's words only the third is new, and it is the person's with probability 0.8."""
    traces = Traces(POSTS, (LINK,), WORDS)
    both, unlinked, no_forge = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1]], dtype=bool)
    odds = traces.suggest(np.array([both, unlinked, no_forge]))[2]
    mixed = 0.8 * np.array([1, 5]) + 0.2 * np.mean([1, 5])
    np.testing.assert_allclose(odds[:, 1] / odds[:, 0], [2 * 3 * mixed[1] / mixed[0], 2 * 3, 1])


def test_a_link_is_believed_guessed_or_gone() -> None:
    traces = Traces(POSTS, (LINK,))
    visible = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    evidence = SeenAttributes(TABLE.space, np.full((4, 3), HIDDEN, np.int64), traces=visible)
    np.testing.assert_allclose(traces.belief_in_link(("forge", "garden"), evidence), [0.8, 1 / 16, 0, 0])
    with pytest.raises(InputError, match="no such two profiles"):
        traces.belief_in_link(("forge", "films"), evidence)


def test_a_chain_of_profiles_is_as_sure_as_its_links() -> None:
    posts = (*POSTS, Posts(("films",), 1))
    second = Linkage(0.5, 0.1, "inverse", 0.5, ("garden", "films"))
    traces = Traces(posts, (LINK, second))
    known = traces._known(np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 1]], dtype=bool))
    np.testing.assert_allclose(known, [[1, 0.8, 0.4], [1, 0, 0]])


def test_a_rule_about_a_community_fires_while_its_posts_are_seen() -> None:
    belief = CrowdBelief.learn(TABLE, 0.1)
    rule = InferenceRule(
        conditions=(("community:forge", "yes"),), attribute="job", value="smith", confidence=0.9
    )
    knowledge = WorldKnowledge.over(belief, [rule], [("community:forge", "yes")])
    adversary = BeliefAdversary(belief, knowledge, Traces(POSTS[:1]))
    nothing = SeenAttributes.nothing(TABLE.space)
    assert adversary.posteriors([1], nothing)[0][0, 1] == pytest.approx(0.9)
    withheld = nothing.hiding(np.array([[0, 0, 0, 1]], dtype=bool))
    np.testing.assert_allclose(adversary.posteriors([1], withheld)[0], belief.posteriors([1], nothing)[0])


@given(st.integers(0, 10**6), st.floats(0.45, 0.95))
@settings(max_examples=25, deadline=None)
def test_repairing_sets_of_attributes_posts_and_links_are_all_the_minimal_ones(
    seed: int, sigma: float
) -> None:
    rng = np.random.default_rng(seed)
    scores = {2: np.log(rng.uniform(0.3, 3, (3, 2)))}
    traces = Traces(POSTS, (LINK,), Written(WORDS.used, None, scores, WORDS.usual))
    adversary = BeliefAdversary(CrowdBelief.learn(TABLE, 0.1), traces=traces)
    evidence = SeenAttributes(TABLE.space, np.array([[0, 1, HIDDEN]]))
    policy = Policy(
        requirements=(Requirement(values={"faith": "sun"}, sigma=sigma),),
        links=(Unlinkable(communities=("forge", "garden"), sigma=float(rng.choice([0.5, 0.9]))),),
    )
    names = candidates(adversary, evidence)
    assert list(names.values()) == [
        "city",
        "job",
        "posts in forge",
        "posts in garden",
        "link between forge and garden",
    ]
    found = repairing_sets(adversary, evidence, policy, largest=4)
    repairing = []
    for size in range(1, 5):
        for places in combinations(names, size):
            hidden = np.zeros((1, 6), dtype=bool)
            hidden[0, list(places)] = True
            left = set(list(names)[:4]) - set(places)
            if left and policy.excess(adversary, evidence.hiding(hidden))[0] <= 0:
                repairing.append(frozenset(places))
    minimal = {one for one in repairing if not any(other < one for other in repairing)}
    if policy.excess(adversary, evidence)[0] <= 0:
        assert not found.sets
    else:
        assert {frozenset(one.attributes) for one in found.sets} == {
            frozenset(names[place] for place in one) for one in minimal
        }


def test_withholding_posts_costs_a_bit_each_and_a_link_what_it_tells() -> None:
    adversary = BeliefAdversary(CrowdBelief.learn(TABLE, 0.1), traces=Traces(POSTS, (LINK,), WORDS))
    evidence = SeenAttributes(TABLE.space, np.array([[0, 1, HIDDEN]]))
    unlinked = (Unlinkable(communities=("forge", "garden"), sigma=0.5),)
    found = critical_sets(adversary, evidence, Policy(links=unlinked)).sets
    assert [(one.attributes, one.loss) for one in found] == [
        (("posts in garden",), 2.0),
        (("link between forge and garden",), 4.0),
        (("posts in forge",), 7.0),
    ]
    dear = Policy(links=unlinked, losses={"posts in garden": 100.0})
    assert critical_sets(adversary, evidence, dear).sets[0].attributes == ("link between forge and garden",)
    with pytest.raises(InputError, match="bits of 0 or more"):
        Policy(links=unlinked, losses={"city": -1.0})


def test_the_steps_name_posts() -> None:
    adversary = BeliefAdversary(CrowdBelief.learn(TABLE, 0.1), traces=Traces(POSTS, (), WORDS))
    requirement = Requirement(values={"faith": "sun"}, sigma=0.5)
    evidence = SeenAttributes(TABLE.space, np.array([[0, 1, HIDDEN]]))
    parts = steps(adversary, evidence, requirement)
    assert {part.what for part in parts} == {
        "your city",
        "your job",
        "your posts in forge",
        "your posts in garden",
    }
    after = requirement.belief(adversary, evidence)[0, 0]
    before = requirement.belief(BeliefAdversary(adversary.belief), SeenAttributes.nothing(TABLE.space))[0, 0]
    assert sum(part.contribution for part in parts) == pytest.approx(after - before)


def test_one_person_is_scored_as_everybody_is() -> None:
    """The table of one person's scores gives the likelihoods of the batch, words and counts alike."""
    rng = np.random.default_rng(3)
    codes = rng.integers(3, size=60)
    codes[:4] = [HIDDEN, 2, 0, 1]
    for used in ((rng.random((60, 20)) < 0.3).astype(float), rng.integers(0, 4, (60, 20)).astype(float)):
        signs = learn_signs(sp.csr_matrix(used), codes, 3)
        assert signs is not None
        batch = signs.likelihood(sp.csr_matrix(used), codes)
        for person in range(4):
            scores = used[person] @ signs.scores_of(used[person], int(codes[person]))
            np.testing.assert_allclose(batch[person], np.exp(scores - scores.max()), rtol=1e-10)


def test_leaving_somebody_out_is_learning_without_them() -> None:
    rng = np.random.default_rng(4)
    codes, used = rng.integers(2, size=40), (rng.random((40, 12)) < 0.4).astype(float)
    signs = learn_signs(sp.csr_matrix(used), codes, 2)
    assert signs is not None
    own = int(codes[0])
    without = signs.counts[own] - used[0]
    fewer = signs.people[own] - 1
    usual = 10 * (signs.counts.sum(axis=0) + 0.5) / (signs.people.sum() + 1)
    length = np.log(((signs.counts[own] + usual) / (signs.people[own] + 10)).sum())
    by_hand = (np.log((without + usual) / (fewer + 10)) - length) / signs.temperature
    np.testing.assert_allclose(signs.scores_of(used[0], own)[:, own], by_hand)


def writers(people: int = 30) -> tuple[Crowd, AttributeTable]:
    """Smiths write of iron in one community, nurses of wards; in the other one everybody writes of tea."""
    rng = np.random.default_rng(0)
    posts, attributes = [], []
    for number in range(people):
        smith = bool(rng.random() < 0.5)
        word = rng.choice(["iron", "anvil", "hammer"] if smith else ["ward", "patient", "nurse"], 2)
        posts += [
            (f"p{number:03}", "work", f"today {word[0]} and {word[1]}"),
            (f"p{number:03}", "tea", "kettle boils nicely"),
        ]
        attributes += [
            (f"p{number:03}", "job", "smith" if smith else "nurse"),
            (f"p{number:03}", "city", "A" if rng.random() < 0.5 else "B"),
        ]
    crowd = Crowd.from_frame(pl.DataFrame(posts, schema=["user", "community", "text"], orient="row"))
    frame = pl.DataFrame(attributes, schema=["user", "attribute", "value"], orient="row")
    whole = Crowd.from_frame(frame, kind="attributes")
    return crowd, attribute_table(whole)


TOPICS = {"metal": ["iron", "anvil", "hammer"], "health": ["ward", "patient", "nurse"], "sea": ["whale"]}


@pytest.mark.parametrize("topics", [None, TOPICS])
def test_withholding_the_posts_that_tell_repairs_the_policy(topics: dict[str, list[str]] | None) -> None:
    crowd, table = writers()
    job = table.of(0)["job"]
    policy = Policy(requirements=(Requirement(values={"job": job}, sigma=0.75),), publication=_hiding_job())
    checked = check_policy(
        crowd, "p000", policy, options=BeliefOptions(smoothing=0.9, text=True), table=table, topics=topics
    )
    assert checked.judged[0].posterior > 0.75
    assert checked.critical.sets[0].attributes == ("posts in work",)
    assert set(checked.posts) == {"posts in work", "posts in tea"}
    said = checked.to_dict()
    assert said["assumptions"].get("topics") == (None if topics is None else list(topics))
    assert "your posts in work" in checked.assessments()[0].advice[0].what


def _hiding_job():
    from incrowd.measures.belief.policy import Publication, Withhold

    return Publication(ways={"job": Withhold()})


def test_topics_pool_their_words() -> None:
    crowd, table = writers(6)
    words = read_words(crowd, table, TOPICS)
    used = words.used().toarray()
    assert used.shape == (6, 2)  # nobody writes of the sea
    jobs = [table.of(row)["job"] for row in range(6)]
    assert [bool(row[0]) for row in used] == [job == "smith" for job in jobs]
    with pytest.raises(InputError, match="nobody in this crowd uses a word"):
        read_words(crowd, table, {"sea": ["whale"]})


def test_many_communities_are_withheld_in_groups() -> None:
    written = {f"c{k:02}": k + 1 for k in range(20)}
    posts = traces_of(written, (), set(written), None, 0, TABLE).posts
    assert len(posts) == MOST_COMMUNITIES + 1
    assert posts[0] == Posts(("c19",), 20)
    assert posts[-1].name == "posts in 8 other communities"
    assert sum(one.posts for one in posts) == sum(written.values())
    assert traces_of(written, (), set(), None, 0, TABLE).posts == ()
