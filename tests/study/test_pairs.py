"""The studies of papers 000 and 003: rows are right, pages are whole and name nobody."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.cli.running import incrowd

from incrowd.crowd import Crowd
from incrowd.errors import InputError
from incrowd.report.page import study_page
from incrowd.study.anonymity import anonymity_study
from incrowd.study.figures import Study
from incrowd.study.linkability import linkability_study
from incrowd.study.matched import PairStudyOptions, matched_pairs

OPTIONS = PairStudyOptions(min_posts=5, min_profiles=5, min_pairs=3)


def test_rows_obey_what_must_hold(tiny_crowd: Crowd) -> None:
    rows = matched_pairs(tiny_crowd, OPTIONS).rows
    assert rows.height > 10
    assert (rows["local"] >= 1).all()
    assert (rows["local"] <= rows["matching"]).all()
    assert (rows["local"] <= rows["anonymity"]).all()
    assert (rows["matching"] <= rows["targets"]).all()
    both = rows.join(rows, left_on=["source", "target", "person"], right_on=["target", "source", "person"])
    assert both.height == rows.height  # every pair is there in both directions
    assert np.allclose(both["distance"], both["distance_right"])


@pytest.mark.parametrize("study", [anonymity_study, linkability_study])
def test_a_page_is_whole_offline_and_names_nobody(tiny_crowd: Crowd, study: object) -> None:
    made: Study = study(tiny_crowd, OPTIONS)  # type: ignore[operator]
    page = study_page(made)
    json.dumps(made.to_dict(), allow_nan=False)
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page
    people = tiny_crowd.posts().select("user").unique().collect()["user"]
    assert not [name for name in people if f">{name}<" in page or f'"{name}"' in page]


def test_figures_of_paper_003_are_all_there(tiny_crowd: Crowd) -> None:
    made = linkability_study(tiny_crowd, OPTIONS, source="cycling", target="gardening")
    titles = " ".join(part.title for section in made.sections for part in section.parts)
    for number in (5, 6, 7, 8, 10, 11, 12):
        assert f"Figure {number}" in titles
    assert made.facts["source"] == "cycling"


def test_too_few_people_are_a_clear_error(tiny_crowd: Crowd) -> None:
    with pytest.raises(InputError, match="min_posts"):
        anonymity_study(tiny_crowd, PairStudyOptions(min_posts=10_000))
    with pytest.raises(InputError, match="min_pairs"):
        anonymity_study(tiny_crowd, PairStudyOptions(min_posts=5, min_pairs=10_000))


def test_the_paper_s_settings_are_100_posts_and_100_profiles_without_the_three_largest(
    tiny_crowd: Crowd, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = PairStudyOptions.of_the_papers()
    assert (chosen.min_posts, chosen.min_profiles, chosen.drop_largest, chosen.radius) == (100, 100, 3, 0.8)
    told = incrowd(capsys, "study", "anonymity", str(tiny_crowd.path), "--paper", "--min-posts", "1")
    assert told.code == 2
    assert "100 posts in a community of 100 profiles" in told.err


@pytest.mark.parametrize("study", [anonymity_study, linkability_study])
def test_headlines_stand_first_on_the_page_and_in_the_json(tiny_crowd: Crowd, study: object) -> None:
    made: Study = study(tiny_crowd, OPTIONS)  # type: ignore[operator]
    assert len(made.headlines) >= 5
    plain = made.to_dict()["headlines"]
    assert [set(one) for one in plain] == [{"result", "paper", "here", "why"}] * len(plain)
    page = study_page(made)
    assert page.index("Beside the paper") < page.index(f"<h2>{made.sections[0].heading}")
