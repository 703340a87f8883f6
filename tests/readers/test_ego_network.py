"""Ego networks: features become attributes, and an archive that cannot be trusted is refused."""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
from pathlib import Path

import pytest

from incrowd.crowd import Crowd
from incrowd.crowd.readers import ReadOptions, detect
from incrowd.errors import SchemaError, UnreadableSource

from .files import EGO_NETWORK, tarred
from .reading import outcome, read, rejects, rows


def write(folder: Path, members: dict[str, bytes]) -> Path:
    path = folder / "ego.tar.xz"
    path.write_bytes(lzma.compress(tarred(members)))
    return path


def test_a_family_of_features_is_one_attribute(tmp_path: Path) -> None:
    names = b"0 education;school;id;anonymized feature 12\n1 work;end_date;anonymized feature 3\n2 a;b\n"
    path = write(tmp_path, {"1.feat": b"2 1 1 1\n", "1.featnames": names})
    assert [(row["attribute"], row["value"]) for row in rows(path)] == [
        ("education school", "12"),
        ("work end_date", "3"),
        ("a;b", "yes"),
    ]


@pytest.mark.parametrize("name", ["../7.feat", "/7.feat", "ego/../../7.feat", "C:\\7.feat"])
def test_a_path_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    path = write(tmp_path, {**EGO_NETWORK, name: b"8 1 0 0 1\n"})
    with pytest.raises(UnreadableSource, match="outside the archive"):
        read(path)


def test_links_and_folders_in_the_archive_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"8 1 1 1 1\n")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, data in EGO_NETWORK.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for kind, number in ((tarfile.SYMTYPE, 8), (tarfile.LNKTYPE, 9), (tarfile.DIRTYPE, 10)):
            info = tarfile.TarInfo(f"ego/{number}.feat")
            info.type, info.linkname = kind, str(secret)
            archive.addfile(info)
    path = tmp_path / "links.tar"
    path.write_bytes(out.getvalue())
    assert {row["user"] for row in rows(path)} == {"7", "8", "9"}


def test_a_file_with_holes_is_refused(tmp_path: Path) -> None:
    """A few bytes of archive may stand for a file of any size."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        info = tarfile.TarInfo("7.feat")
        info.type = tarfile.GNUTYPE_SPARSE
        archive.addfile(info)
    path = tmp_path / "sparse.tar"
    path.write_bytes(out.getvalue())
    with pytest.raises(UnreadableSource, match="holes"):
        read(path, format="ego-network")


def test_a_bomb_stops_at_the_cap(tmp_path: Path) -> None:
    path = write(tmp_path, {**EGO_NETWORK, "8.feat": b"0 " * 40 * 2**20})
    with pytest.raises(UnreadableSource, match="bomb"):
        read(path, ReadOptions(max_ratio=20))


def test_rows_that_do_not_fit_the_names_are_set_aside(tmp_path: Path) -> None:
    path = write(tmp_path, {**EGO_NETWORK, "ego/7.feat": b"8 1 0 0\n9 0 2 1 0\n\n10 1 0 0 0\n"})
    assert rejects(path) == {1: "ragged_row", 2: "wrong_type"}
    assert [row["user"] for row in rows(path)] == ["10", "7", "7"]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"7.feat": b"8 1\n"}, "7.feat has no 7.featnames"),
        ({"7.feat": b"8 1\n", "7.featnames": b"1 school:2\n"}, "line 1 of 7.featnames"),
        ({"7.feat": b"8 1\n", "7.featnames": b"0 school:2\nZebediah\n"}, "line 2 of 7.featnames"),
    ],
)
def test_people_without_names_for_their_features_are_refused(
    members: dict[str, bytes], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UnreadableSource, match=said) as caught:
        read(write(tmp_path, members))
    assert "Zebediah" not in str(caught.value)


def test_a_cut_off_archive_is_refused_or_its_complete_people_kept(tmp_path: Path) -> None:
    path = tmp_path / "cut.tar.gz"
    members = {f"{k}{name[5:]}": data for k in range(9) for name, data in sorted(EGO_NETWORK.items())[::-1]}
    path.write_bytes(gzip.compress(tarred(members), compresslevel=0, mtime=0)[:9000])
    with pytest.raises(UnreadableSource, match="ends early"):
        read(path)
    kept, _, _, _, incomplete = outcome(path, ReadOptions(keep_complete=True))
    assert incomplete
    assert {row["user"] for row in kept} == {"0", "1", "8", "9"}


def test_ego_networks_are_attributes_only(tmp_path: Path) -> None:
    path = write(tmp_path, EGO_NETWORK)
    with pytest.raises(SchemaError, match="not posts"):
        read(path, ReadOptions(kind="posts"))


def test_another_tar_is_no_ego_network(tmp_path: Path) -> None:
    with pytest.raises(UnreadableSource, match="a tar archive without"):
        detect(write(tmp_path, {"notes.txt": b"8 1 0\n"}))


def test_an_archive_is_imported_with_its_people(tmp_path: Path) -> None:
    crowd = Crowd.create(tmp_path / "crowd", plain_names=True)
    report = crowd.ingest(write(tmp_path, EGO_NETWORK), kind="attributes")
    assert report.added == 6
    assert crowd.attributes().collect()["user"].n_unique() == 3
