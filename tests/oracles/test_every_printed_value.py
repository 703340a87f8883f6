"""Every column that a study prints has a test that works its values out from the definitions.

Studies of small crowds are run; a part of a page that is not on the list, or a column that no test notices, fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from tests.oracles import test_belief_study, test_exposure_study, test_pair_studies, test_release_figures
from tests.oracles.spoiled import COMPARED, Column, columns
from tests.oracles.test_release_study import crowd_of
from tests.study.test_belief import twins, writers
from tests.study.test_paper_settings import items

from incrowd.crowd import Crowd
from incrowd.measures.microdata.spec import ProfileFilter
from incrowd.measures.microdata.table import item_table
from incrowd.profiles.attributes import from_long
from incrowd.study.anonymity import anonymity_study
from incrowd.study.belief import belief_study
from incrowd.study.card import CardRates, CardStudyOptions, card_study
from incrowd.study.disclosures import AttributeRates, disclosures_study
from incrowd.study.figures import Study
from incrowd.study.linkability import linkability_study
from incrowd.study.microdata import microdata_study
from incrowd.study.microdata_questions import StudyOptions
from incrowd.study.release import release_study
from incrowd.study.release_data import ReleaseStudyOptions


def posts(folder: Path) -> Crowd:
    rows = test_pair_studies.made_up(0)
    frame = pl.DataFrame(rows, schema=["user", "community", "text"], orient="row")
    return Crowd.from_frame(frame.with_columns(time=pl.lit(1)), path=folder / "crowd", plain_names=True)


def release(folder: Path) -> list[Study]:
    options = ReleaseStudyOptions(attribute="film", thresholds=(2, 5), timed=True)
    crowded = [(f"q{n:03}", "film", "jade") for n in range(60)]  # speed is measured from a hundred people on
    return [release_study(crowd_of(folder, test_release_figures.rows() + crowded), options)]


def belief(folder: Path) -> list[Study]:
    crowd, frame = writers()
    topics = {"metal": ["iron", "anvil", "hammer"], "health": ["ward", "patient", "nurse"]}
    text = belief_study(from_long(frame), test_belief_study.OPTIONS, crowd, topics)
    return [belief_study(twins(), test_belief_study.OPTIONS), text]  # type: ignore[arg-type]


def card(folder: Path) -> list[Study]:
    community: Any = SimpleNamespace(people=50, words=["a", "b"], concentration=1.0)
    numbers = np.ones((2, 3))
    rates = CardRates(community, None, np.arange(1, 4), numbers, numbers, numbers)
    return [card_study(posts(folder), rates, CardStudyOptions(source="books", target="chess"))]


def disclosures(folder: Path) -> list[Study]:
    return [disclosures_study(posts(folder), {"age": AttributeRates(20, 20, 10, 10, [(0.9, True)] * 20)})]


STUDIES: dict[str, Callable[[Path], list[Study]]] = {
    "anonymity": lambda folder: [anonymity_study(posts(folder), test_pair_studies.OPTIONS)],
    "linkability": lambda folder: [
        linkability_study(posts(folder), test_pair_studies.OPTIONS, source="books", target="chess")
    ],
    "microdata": lambda folder: [
        microdata_study(item_table(items(folder), ProfileFilter()), StudyOptions(sample=5))
    ],
    "release": release,
    "belief": belief,
    "exposure": lambda folder: [test_exposure_study.studied()],
    "card": card,
    "disclosures": disclosures,
}

PAIRS, FIGURES = "oracles/test_pair_studies.py", "oracles/test_pair_figures.py"
ITEMS, ANSWERS, CLASSES = (
    "oracles/test_microdata_study.py",
    "oracles/test_release_figures.py",
    "oracles/test_release_study.py",
)
GUESSES, EXPOSED = "oracles/test_belief_study.py", "oracles/test_exposure_study.py"
TEXT = "oracles/test_belief_text.py"
RATES = "oracles/test_rates_of_studies.py"
WORDS = (f"{FIGURES}::test_words_everywhere_and_in_the_two_largest_communities",)

WORKED_OUT: dict[str, dict[str, tuple[str, ...]]] = {
    "anonymity": {
        "Table 1: most": WORDS,
        "Ours: commonest words": WORDS,
        "Distances between two profiles": (f"{PAIRS}::test_distances_are_those_of_the_paper",),
        "Figure 2": (
            f"{PAIRS}::test_matches_and_strangers",
            f"{FIGURES}::test_the_line_in_figure_2_is_where_both_are_equal",
        ),
        "Figure 3": (f"{FIGURES}::test_precision_by_the_size_of_the_crowd",),
        "The same with the crowd counted": (f"{FIGURES}::test_precision_by_the_size_of_the_crowd",),
        "Beside the paper": (
            f"{FIGURES}::test_headlines_of_paper_000",
            f"{PAIRS}::test_matches_and_strangers",
            f"{FIGURES}::test_precision_by_the_size_of_the_crowd",
        ),
    },
    "linkability": {
        "Paper 003's figures beside ours": (f"{PAIRS}::test_the_three_sets_over_all_pairs_and_over_one",),
        "Figure 5": (
            f"{PAIRS}::test_precision_recall_and_set_sizes_over_thresholds",
            f"{FIGURES}::test_curves_run_over_all_radii",
        ),
        "Figure 6": (
            f"{PAIRS}::test_precision_recall_and_set_sizes_over_thresholds",
            f"{FIGURES}::test_curves_run_over_all_radii",
        ),
        "Figure 7": (
            f"{PAIRS}::test_precision_recall_and_set_sizes_over_thresholds",
            f"{FIGURES}::test_curves_run_over_all_radii",
        ),
        "Figure 8": (
            f"{PAIRS}::test_figure_8_shows_two_pairs_and_several",
            f"{FIGURES}::test_figure_8_by_brute_force",
            f"{FIGURES}::test_correlations_of_ranks_and_matching_sets",
        ),
        "Two ways to rank": (
            f"{FIGURES}::test_correlations_of_ranks_and_matching_sets",
            f"{FIGURES}::test_ranks_agree_with_as_many_radii_as_ranks_can",
            f"{FIGURES}::test_curves_run_over_all_radii",
        ),
        "Risk": (
            f"{FIGURES}::test_figure_9_shows_how_far_the_community_is_from_three_people",
            f"{FIGURES}::test_curves_run_over_all_radii",
        ),
        "Figure 10": (f"{PAIRS}::test_figures_of_one_pair_hold_its_people_only",),
        "Ours: the same over all pairs": (f"{PAIRS}::test_figures_of_one_pair_hold_its_people_only",),
        "Figure 11": (f"{FIGURES}::test_bars_over_all_pairs_by_brute_force",),
        "Figure 12a": (f"{PAIRS}::test_figures_of_one_pair_hold_its_people_only",),
        "Ours: 12a over all pairs": (f"{FIGURES}::test_bars_over_all_pairs_by_brute_force",),
        "Figure 12b": (f"{FIGURES}::test_bars_over_all_pairs_by_brute_force",),
        "Figure 12c": (f"{PAIRS}::test_figures_of_one_pair_hold_its_people_only",),
        "Identity models": (
            f"{PAIRS}::test_section_5_1_has_every_model_and_distance",
            f"{FIGURES}::test_section_5_1_by_brute_force",
        ),
        "Beside the paper": (
            f"{FIGURES}::test_headlines_of_paper_003",
            f"{FIGURES}::test_correlations_of_ranks_and_matching_sets",
        ),
    },
    "microdata": {
        "Table 1": (f"{ITEMS}::test_table_1_and_both_curves",),
        "Figure 2": (f"{ITEMS}::test_table_1_and_both_curves",),
        "Figure 3": (f"{ITEMS}::test_table_1_and_both_curves",),
        "Table 2": (
            f"{ITEMS}::test_table_2_and_the_summary",
            f"{ITEMS}::test_table_2_without_classes_of_activity",
            f"{ITEMS}::test_p_values_by_their_formulas",
        ),
        "Figures 4–6": (
            f"{ITEMS}::test_points_and_crowds_of_the_groups",
            f"{ITEMS}::test_groups_hold_everybody_once_and_show_their_centroids",
        ),
        "The groups": (
            f"{ITEMS}::test_groups_hold_everybody_once_and_show_their_centroids",
            f"{ITEMS}::test_points_and_crowds_of_the_groups",
        ),
        "Figure 8": (f"{ITEMS}::test_bars_samples_and_readings",),
        "Groups by their number": (
            f"{ITEMS}::test_what_each_number_of_groups_would_tell",
            f"{ITEMS}::test_each_number_of_groups_is_tried",
        ),
        "The crowd shrinks": (f"{ITEMS}::test_the_crowd_shrinks_with_what_is_known",),
        "How a share becomes": (f"{ITEMS}::test_each_way_to_round_a_share",),
        "Agreement of the paper's score": (
            f"{ITEMS}::test_rare_is_what_fewer_people_have",
            f"{ITEMS}::test_the_number_of_groups_by_the_information_criterion",
        ),
        "Agreement of the expected crowd": (
            f"{ITEMS}::test_what_is_listed_has_enough_people",
            f"{ITEMS}::test_what_publishing_costs_from_the_published_file_alone",
        ),
        "The same measures in samples": (
            f"{ITEMS}::test_smaller_samples_are_the_same_measures_on_fewer_people",
        ),
        "How far the first": (f"{ITEMS}::test_the_first_people_while_the_database_fills",),
        "How the first": (f"{ITEMS}::test_the_first_people_while_the_database_fills",),
        "Who knows what": (f"{ITEMS}::test_stronger_adversaries_leave_fewer",),
        "Scoring attack": (f"{ITEMS}::test_the_scoring_attack_by_its_definition",),
        "Three readings": (f"{ITEMS}::test_three_readings_of_one_crowd",),
        "Beside the paper": (f"{ITEMS}::test_headlines_are_the_tables_numbers",),
    },
    "release": {
        "Holders of a value": (f"{ANSWERS}::test_how_common_values_are",),
        "Figure 4": (f"{ANSWERS}::test_how_common_values_are",),
        "Classes by attribute": (f"{ANSWERS}::test_how_large_classes_are",),
        "Figure 5": (f"{ANSWERS}::test_how_large_classes_are",),
        "Values that may leave": (
            f"{ANSWERS}::test_what_may_leave_before_and_after_tidying",
            f"{ANSWERS}::test_answers_class_by_class",
        ),
        "Answers of the classes": (f"{ANSWERS}::test_answers_class_by_class",),
        "Answers released by counting": (f"{ANSWERS}::test_counting_holders_alone_by_all_groups",),
        "What is left": (f"{ANSWERS}::test_what_k_anonymity_leaves",),
        "Small classes": (f"{ANSWERS}::test_small_classes",),
        "Minimal groups": (f"{ANSWERS}::test_groups_of_values_that_share_nobody_multiply",),
        "The rare value leaves": (f"{ANSWERS}::test_the_rare_value_leaves_only_where_the_victim_is",),
        "Processor time": (),  # of this machine
        "Beside the paper": (f"{ANSWERS}::test_headlines",),
    },
    "belief": {
        "One attribute published": (f"{GUESSES}::test_one_attribute_published",),
        "The strongest pairs": (f"{GUESSES}::test_one_attribute_published",),
        "One attribute hidden": (f"{GUESSES}::test_one_attribute_hidden",),
        "Reliability": (
            f"{GUESSES}::test_adversaries_compared",
            f"{GUESSES}::test_the_line_of_honest_beliefs",
        ),
        "Adversaries compared": (f"{GUESSES}::test_adversaries_compared",),
        "Nobody should be surer": (f"{GUESSES}::test_who_violates_the_policy_and_what_repairs_it",),
        "People who share": (f"{GUESSES}::test_beside_counting",),
        "Text as evidence": (f"{TEXT}::test_text_as_evidence",),
        "How often a hidden attribute": (f"{TEXT}::test_the_bars_are_the_tables_shares",),
        "Beside the paper": (f"{GUESSES}::test_headlines",),
    },
    "exposure": {
        "Table 3": (f"{EXPOSED}::test_tables_3_to_6",),
        "Figure 1": (f"{EXPOSED}::test_figure_1_shows_those_judged_beside_everybody",),
        "Table 4": (f"{EXPOSED}::test_tables_3_to_6",),
        "Table 5": (f"{EXPOSED}::test_tables_3_to_6",),
        "Is the difference": (f"{EXPOSED}::test_differences_in_hits",),
        "Table 6": (f"{EXPOSED}::test_tables_3_to_6",),
        "MAP with": (
            f"{EXPOSED}::test_tables_3_to_6",
            f"{EXPOSED}::test_intervals_of_map_leave_everybody_judged_out_once",
            "oracles/test_exposure_figures.py::test_the_interval_of_map_covers_it_where_topics_share_people",
        ),
        "Settings chosen": (f"{EXPOSED}::test_settings_are_chosen_on_one_half_and_judged_on_the_other",),
        "-D over k": (f"{EXPOSED}::test_what_k_and_m_change",),
        "-T over m": (f"{EXPOSED}::test_what_k_and_m_change",),
        "Beside the paper": (f"{EXPOSED}::test_headlines_and_how_far_judges_agree",),
    },
    "card": {"Measured exactly": (f"{RATES}::test_the_card_table_says_each_number_once",)},
    "disclosures": {
        "What posts tell": (f"{RATES}::test_the_table_and_the_reliability_curve",),
        "Certainty and how often": (f"{RATES}::test_the_table_and_the_reliability_curve",),
    },
}
"""Study -> how the title of a part starts -> the tests that work its values out. Validity: see the end."""


GIVEN = {
    ("anonymity", Column("Distances between two profiles", "paper 000: smallest, largest, mean")),
    ("linkability", Column("Paper 003's figures beside ours", "paper 003")),
    ("microdata", Column("Who knows what", "adversary")),
    ("microdata", Column("Scoring attack", "adversary")),
    ("microdata", Column("Three readings", "reading")),
    *(("release", Column("Processor time", name)) for name in ("people", "measured", "milliseconds, median")),
}
"""What a paper says, how an adversary or a reading is called, and how long this machine takes."""


@pytest.mark.parametrize("name", STUDIES)
def test_every_column_of_every_study_is_compared_by_a_test(name: str, tmp_path: Path) -> None:
    """`spoiled.py` has found the tests to notice when a column is another one; a column that is new is not there."""
    listed, compared = WORKED_OUT[name], json.loads(COMPARED.read_text("utf-8"))[name]
    printed = {column for study in STUDIES[name](tmp_path) for column in columns(study.to_dict(), listed)}
    new = {one.part for one in printed} - set(listed)
    assert not new, "name the test that works these values out from the definitions"
    assert not set(listed) - {one.part for one in printed}
    known = {Column(part, one) for part, names in compared.items() for one in names}
    known |= {column for study, column in GIVEN if study == name}
    assert not printed - known, "write the test, then run python -m tests.oracles.spoiled"
    assert not known - printed


def test_the_tests_are_there() -> None:
    tests = Path(__file__).parents[1]
    for listed in WORKED_OUT.values():
        for named in listed.values():
            for file, name in (one.split("::") for one in named):
                assert f"def {name}(" in (tests / file).read_text(encoding="utf-8"), name


def test_every_study_of_the_command_line_is_on_the_list() -> None:
    """Validity holds predictions against attacks; its numbers are worked out by hand in study/test_validity.py."""
    source = (Path(__file__).parents[2] / "src/incrowd/cli/study.py").read_text(encoding="utf-8")
    commands = set(re.findall(r"@app\.command\(\)\n(?:@\w+\n)*def (\w+)", source))
    assert commands == {*WORKED_OUT, "validity"}
