"""SNAP's ego networks in a tar: ``EGO.feat`` and ``EGO.egofeat`` are people, ``EGO.featnames`` names their columns.

A feature is one value of an attribute: ``education;school;id;anonymized feature 538`` is the value 538 of
*education school*, ``gender:2`` is the value 2 of *gender*, and a bare ``#word`` is an attribute that is there or not
("yes"). Friendships (``.edges``) and circles are not attributes and are left alone.
"""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np

from incrowd.crowd.readers.archive import is_tar, tar_files
from incrowd.crowd.readers.base import About, Batch, Look, ReadOptions
from incrowd.crowd.readers.rows import ATTRIBUTES, RowBatch, Whole, batch_of
from incrowd.crowd.readers.source import Bytes, DecompressedFile, Lines, decoded, lines_of
from incrowd.crowd.schema import Kind, Reason
from incrowd.errors import SchemaError, UnreadableSource

Feature = tuple[str, str]
"""An attribute and its value."""
MOST_NAMES_BYTES = 2**26
"""All feature names are held in memory; more than this is no list of names."""
_MEMBER = re.compile(r"(\d+)\.(feat|featnames|egofeat|edges|circles)")
_ANONYMISED = re.compile(r"(.+?)(?:;id)?;anonymized feature (\d+)")
_BITS = re.compile(rb"[01]*")


class EgoNetworks:
    """People around a few centres ("egos"), each with a 0 or 1 for every feature of their network."""

    name = "ego-network"
    about = About("SNAP ego networks", whose="many")
    kind: Kind = "attributes"

    def probe(self, look: Look) -> bool:
        """Say whether the archive's first members are called as these networks' are."""
        return is_tar(look.head) and any(_part_of(name) for name in _first_names(look.head))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield everybody's features; a row's number is the person's place among all people of the archive."""
        if options.kind not in (None, "attributes"):
            raise SchemaError(
                f"{path}: ego networks hold attributes, not {options.kind}. Use --kind attributes."
            )
        names, whole = _feature_names(path, options)
        rows = RowBatch(ATTRIBUTES, options.batch_bytes)
        for number, (ego, line) in enumerate(_people(path, options), 1):
            if ego not in names and whole:
                raise UnreadableSource(f"{path}: {ego}.feat has no {ego}.featnames. Fetch the archive again.")
            _add(rows, number, line, names.get(ego))
            if rows.full:
                yield batch_of(rows.take(), ATTRIBUTES, options)
        yield batch_of(rows.take(), ATTRIBUTES, options, Whole(incomplete=not whole))


def _people(path: Path, options: ReadOptions) -> Iterator[tuple[str, bytes]]:
    """Yield everybody's line, name first, with the ego they stand around; the ego's own line names nobody."""
    with DecompressedFile(path, options) as source:
        for (ego, part), file in _parts(source, options):
            if part in ("feat", "egofeat"):
                before = ego.encode() + b" " if part == "egofeat" else b""
                for lines in lines_of(file, options):
                    yield from ((ego, before + line) for line in _filled(lines))


def _parts(source: DecompressedFile, options: ReadOptions) -> Iterator[tuple[tuple[str, str], Bytes]]:
    """Yield (ego, part) and the bytes of every file of the networks; a cut-off end is the end if that is allowed."""
    try:
        for name, file in tar_files(source):
            found = _part_of(name)
            if found is not None:
                yield found, file
    except UnreadableSource:
        if not options.keep_complete or not source.incomplete:
            raise


def _part_of(name: str) -> tuple[str, str] | None:
    match = _MEMBER.fullmatch(PurePosixPath(name).name)
    return (match[1], match[2]) if match else None


def _first_names(head: bytes) -> list[str]:
    names: list[str] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(head), mode="r:") as archive:
            names.extend(info.name for info in archive)
    except (tarfile.TarError, EOFError, ValueError):
        pass  # the head ends in the middle of a member
    return names


def _feature_names(path: Path, options: ReadOptions) -> tuple[dict[str, list[Feature]], bool]:
    """Return every network's features in order, and whether the archive is whole. Names may follow the people."""
    found: dict[str, list[Feature]] = {}
    held = 0
    with DecompressedFile(path, options) as source:
        for (ego, part), file in _parts(source, options):
            if part != "featnames":
                continue
            features: list[Feature] = []
            for lines in lines_of(file, options):
                held += len(lines.data)
                if held > MOST_NAMES_BYTES or lines.too_long:
                    raise UnreadableSource(
                        f"{path}: its feature names are absurdly long. Do not trust this file."
                    )
                features += [
                    _feature(path, ego, len(features) + n, line) for n, line in enumerate(_filled(lines))
                ]
            found[ego] = features
        return found, not source.incomplete


def _filled(lines: Lines) -> list[bytes]:
    return [line for line in lines.data.split(b"\n") if line.strip()]


def _feature(path: Path, ego: str, place: int, line: bytes) -> Feature:
    number, _, name = decoded(line)[0].strip().partition(" ")
    if number != str(place) or not name:
        raise UnreadableSource(
            f"{path}: line {place + 1} of {ego}.featnames: expected '{place} NAME'. Fetch the archive again."
        )
    anonymised = _ANONYMISED.fullmatch(name)
    if anonymised:
        return anonymised[1].replace(";", " "), anonymised[2]
    attribute, colon, value = name.partition(":")
    return (attribute, value) if colon and attribute and value else (name, "yes")


def _add(rows: RowBatch, person: int, line: bytes, features: list[Feature] | None) -> None:
    user, _, rest = line.strip().partition(b" ")
    bits = rest.translate(None, b" \t\r")
    if features is None:
        return rows.reject(person, Reason.MISSING_FIELD)
    if not _BITS.fullmatch(bits):
        return rows.reject(person, Reason.WRONG_TYPE)
    if len(bits) != len(features):
        return rows.reject(person, Reason.RAGGED_ROW)
    name, replaced = decoded(user)
    for place in np.flatnonzero(np.frombuffer(bits, np.uint8) == ord("1")).tolist():
        rows.add(person, (name, *features[place]), replaced=replaced)
    return None
