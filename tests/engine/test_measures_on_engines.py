"""Measures that compare whole crowds give the same answer wherever their parts are computed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from tests.cli.running import incrowd

from incrowd.crowd import Crowd
from incrowd.distances import Compute
from incrowd.engine import Engine, connect
from incrowd.engine.checkpoints import Resumable
from incrowd.measures.anonymity.assess import community_anonymity
from incrowd.measures.anonymity.spec import AnonymityOptions
from incrowd.measures.linkability.assess import assess_person, link_rates
from incrowd.measures.linkability.spec import LinkabilityOptions
from incrowd.measures.microdata.anonymity_set import Marks, expected_others
from incrowd.measures.microdata.spec import Knowledge
from incrowd.study.anonymity import anonymity_study
from incrowd.study.linkability import linkability_study
from incrowd.study.matched import PairStudyOptions


class Counting:
    """An engine that says how many parts it was given."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.parts = engine, 0

    @property
    def workers(self) -> int:
        return self.engine.workers

    def run(self, job, plan, absorb, progress) -> None:
        self.parts += len(plan)
        self.engine.run(job, plan, absorb, progress)


@pytest.fixture
def remote(cluster) -> Counting:
    return Counting(cluster)


def test_anonymity(tiny_crowd: Crowd, remote: Counting) -> None:
    options = AnonymityOptions(community="cycling")
    here = community_anonymity(tiny_crowd, options)
    there = community_anonymity(tiny_crowd, options, compute=Compute(engine=remote))
    assert remote.parts
    assert np.array_equal(here.sizes, there.sizes)
    assert np.array_equal(here.needed, there.needed, equal_nan=True)


def test_linkability(tiny_crowd: Crowd, remote: Counting) -> None:
    options = LinkabilityOptions(source="cycling", target="gardening", min_posts=5)
    compute = Compute(engine=remote)
    here, there = link_rates(tiny_crowd, options), link_rates(tiny_crowd, options, compute)
    assert remote.parts
    assert json.dumps(here.to_dict()) == json.dumps(there.to_dict())
    user = tiny_crowd.user("alex")
    alone = assess_person(tiny_crowd, options, user)
    assert alone.to_dict() == assess_person(tiny_crowd, options, user, compute).to_dict()


def test_the_determined_adversary(tiny_crowd: Crowd, remote: Counting) -> None:
    options = LinkabilityOptions(source="cycling", target="gardening", min_posts=5, adversary="determined")
    compute = Compute(engine=remote)
    here, there = link_rates(tiny_crowd, options), link_rates(tiny_crowd, options, compute)
    assert remote.parts
    assert here.hit_rates == there.hit_rates
    # Matrix products add up in another order in a worker with one core.
    errors = [one.figures["calibration"]["error"] for one in (here, there)]
    assert errors[0] == pytest.approx(errors[1], abs=1e-5)
    user = tiny_crowd.user("alex")
    alone = [assess_person(tiny_crowd, options, user, how).value for how in (None, compute)]
    assert alone[0] == pytest.approx(alone[1], abs=1e-5)


def test_microdata(remote: Counting) -> None:
    rng = np.random.default_rng(3)
    table = sparse.csr_matrix((rng.random((60, 40)) < 0.3).astype(np.float64))
    asked = [Knowledge(), Knowledge(percents=(50,))]
    here = expected_others(table, table, asked)
    assert np.array_equal(here, expected_others(table, table, asked, engine=remote, memory=2**11))
    assert remote.parts > 3
    rated = rng.integers(1, 6, (1, table.nnz)).astype(np.float32)
    marks = Marks(rated, rated, (1.0,))
    known = expected_others(table, table, Knowledge(), marks=marks)
    assert np.array_equal(known, expected_others(table, table, Knowledge(), marks=marks, engine=remote))


def test_studies(tiny_crowd: Crowd, remote: Counting) -> None:
    options = PairStudyOptions(min_posts=5, min_profiles=5, min_pairs=3)
    for study in (anonymity_study, linkability_study):
        remote.parts = 0
        there = study(tiny_crowd, options, compute=Compute(engine=remote))
        assert remote.parts
        assert study(tiny_crowd, options).to_dict() == there.to_dict()


def test_the_determined_adversary_resumes(tiny_crowd: Crowd, tmp_path: Path) -> None:
    options = LinkabilityOptions(source="cycling", target="gardening", min_posts=5, adversary="determined")
    runs = []
    for _ in range(2):
        engine = Counting(connect("threads:1"))
        runs.append(
            link_rates(tiny_crowd, options, Compute(engine=Resumable(engine, tmp_path))).to_dict()  # type: ignore[arg-type]
        )
    assert engine.parts == 0  # the second run found everything
    assert json.dumps(runs[0]) == json.dumps(runs[1])


@pytest.mark.parametrize(
    "command",
    [
        ("anonymity", "--community", "cycling"),
        ("linkability", "--source", "cycling", "--target", "gardening"),
        ("study", "anonymity", "--min-posts", "5", "--min-pairs", "3"),
        ("study", "linkability", "--min-posts", "5", "--min-pairs", "3"),
    ],
)
def test_commands_take_a_cluster_and_say_why(
    tiny_crowd: Crowd, cluster, capsys: pytest.CaptureFixture[str], tmp_path: Path, command: tuple[str, ...]
) -> None:
    place = 2 if command[0] == "study" else 1
    asked = [*command[:place], tiny_crowd.path, *command[place:], "--json"]
    address = cluster._client.scheduler.address
    here = incrowd(capsys, *asked)
    there = incrowd(
        capsys, *asked, "--cluster", address, "--kernel", "cpu", "--resume", tmp_path / "runs", "--verbose"
    )
    assert (here.code, there.code) == (0, 0)
    assert here.out == there.out
    assert "kernel cpu: asked for" in there.err
    assert len(there.err.splitlines()) == len(set(there.err.splitlines()))
    assert list((tmp_path / "runs").rglob("*.parquet"))


def test_microdata_commands_take_a_cluster(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [(f"u{u}", f"i{i}") for u in range(40) for i in rng.choice(30, 12, replace=False)]
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    crowd = Crowd.from_frame(frame, kind="items", path=tmp_path / "crowd")
    for command in (["microdata", "evaluate"], ["study", "microdata"]):
        asked = [*command, crowd.path, "--min-items", "2", "--json"]
        here, there = incrowd(capsys, *asked), incrowd(capsys, *asked, "--cluster", "threads:1")
        assert here.code == 0, here.err
        assert here.out == there.out
    assert incrowd(capsys, *asked, "--cluster", "moon").code == 2


def test_counting_files_by_command(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    rows = [{"author": f"p{n % 3}", "community": "c", "text": f"word{n % 5} tree"} for n in range(30)]
    for part in range(2):
        lines = (json.dumps(row) for row in rows[part::2])
        (tmp_path / f"{part}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = sorted(tmp_path.glob("*.jsonl"))
    told = incrowd(capsys, "count", *files, "--out", tmp_path / "counts", "--cluster", "threads:2", "--json")
    report = json.loads(told.out)
    assert (report["files"], report["posts"], report["identities"]) == (2, 30, 3)
    words = pl.read_parquet(report["words_path"])
    assert words["count"].sum() == 60
    assert not set(words["user"]) & {"p0", "p1", "p2"}
    again = incrowd(capsys, "count", *files, "--out", tmp_path / "counts")
    assert "30 posts of 3 identities in 2 files" in again.out
    assert pl.read_parquet(report["words_path"]).equals(words)
    assert (tmp_path / "counts" / "key").stat().st_mode & 0o077 == 0


def test_counting_with_the_ids_of_a_crowd(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "posts.jsonl"
    path.write_text('{"author": "ann", "community": "c", "text": "tree"}\n', encoding="utf-8")
    assert incrowd(capsys, "ingest", path, "--crowd", tmp_path / "crowd").code == 0
    counted = incrowd(capsys, "count", path, "--out", tmp_path / "n", "--crowd", tmp_path / "crowd", "--json")
    words = pl.read_parquet(json.loads(counted.out)["words_path"])
    assert words["user"].to_list() == [Crowd(tmp_path / "crowd").user("ann")]
