"""Keys are shown once, kept as hashes, and stop working the moment they are removed."""

from __future__ import annotations

import os
import re
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from incrowd.errors import InputError
from incrowd.gateway.state import TOKEN, KeyStore, open_secret


def test_a_key_finds_its_client(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path)
    token = keys.add("dashboard", "city-lab")
    found = keys.find(token)
    assert found is not None
    assert (found.name, found.organisation) == ("dashboard", "city-lab")
    assert TOKEN.fullmatch(token)


def test_the_file_holds_no_key_and_is_private(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path)
    token = keys.add("dashboard", "city-lab")
    parts = TOKEN.fullmatch(token)
    assert parts is not None
    assert parts[2] not in keys.path.read_text()
    assert token not in repr(keys) + repr(keys.all())
    assert stat.S_IMODE(keys.path.stat().st_mode) == 0o600


def test_two_keys_never_share_salt_or_hash(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path)
    for number in range(20):
        keys.add(f"client-{number}", "lab")
    assert len({key.salt for key in keys.all()}) == len({key.digest for key in keys.all()}) == 20


@pytest.mark.parametrize(
    "change",
    [
        lambda token: token[:-1] + ("A" if token[-1] != "A" else "B"),
        lambda token: token + "x",
        lambda token: token.replace("incrowd_", "incrowd_0", 1)[: len(token)],
        lambda token: "",
        lambda token: "incrowd_" + "0" * 12 + "_" + "A" * 43,
        lambda token: token.upper(),
        lambda token: "incrowd__" + token[9:],
        lambda token: "\x00" * 80,
    ],
)
def test_a_wrong_key_finds_nobody(tmp_path: Path, change: object) -> None:
    keys = KeyStore(tmp_path)
    token = keys.add("dashboard", "city-lab")
    assert keys.find(change(token)) is None  # type: ignore[operator]


def test_a_running_gateway_sees_new_and_removed_keys(tmp_path: Path) -> None:
    running, admin = KeyStore(tmp_path), KeyStore(tmp_path)
    assert running.find("incrowd_" + "0" * 12 + "_" + "A" * 43) is None
    token = admin.add("dashboard", "city-lab")
    assert running.find(token) is not None
    admin.remove("dashboard")
    assert running.find(token) is None


def test_keys_made_at_once_are_all_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda n: KeyStore(tmp_path).add(f"client-{n}", "lab"), range(16)))
    keys = KeyStore(tmp_path)
    assert all(keys.find(token) for token in tokens)


def test_mistakes_are_explained(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path)
    keys.add("dashboard", "city-lab")
    with pytest.raises(InputError, match="already has a key"):
        keys.add("dashboard", "Other")
    with pytest.raises(InputError, match="there are: dashboard"):
        keys.remove("dashbord")
    with pytest.raises(InputError, match="1 to 80 letters"):
        keys.add("a\nb", "lab")
    with pytest.raises(InputError, match="organisation"):
        keys.add("a", "")


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    token = KeyStore(tmp_path).add("dashboard", "city-lab")
    os.chmod(tmp_path / "keys.json", 0o644)
    with pytest.raises(InputError, match="chmod 600"):
        KeyStore(tmp_path).find(token)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    keys = KeyStore(tmp_path)
    keys.add("dashboard", "city-lab")
    keys.path.write_text('{"keys": [{"id": 1}]}')
    with pytest.raises(InputError, match="Restore"):
        keys.all()


def test_the_secret_stays_the_same_and_each_purpose_has_its_key(tmp_path: Path) -> None:
    first, again = open_secret(tmp_path / "state"), open_secret(tmp_path / "state")
    assert first.key("audit") == again.key("audit")
    assert first.key("audit") != first.key("order")
    assert re.fullmatch(r"Secret\(hidden\)", repr(first))
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert open_secret(tmp_path / "other").key("audit") != first.key("audit")


def test_a_damaged_or_shared_secret_is_refused(tmp_path: Path) -> None:
    open_secret(tmp_path)
    (tmp_path / "secret").write_text("abc")
    with pytest.raises(InputError, match="original file"):
        open_secret(tmp_path)
    os.chmod(tmp_path / "secret", 0o640)
    with pytest.raises(InputError, match="mode 640"):
        open_secret(tmp_path)
