"""The whole way of a person's data works without what only Linux has, and in a locale that is not UTF-8."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COMMANDS = ("demo", "ingest", "info", "assess", "draft", "watch", "card", "link", "disclosures", "serve")


@pytest.fixture
def windows_locale(tmp_path: Path) -> dict[str, str]:
    """An environment whose locale encodes text as Windows does in Western Europe."""
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONPATH": f"{ROOT}/src{os.pathsep}{ROOT}"}
    if shutil.which("localedef"):
        target = tmp_path / "locales" / "en_US.CP1252"
        target.parent.mkdir()
        subprocess.run(["localedef", "-i", "en_US", "-f", "CP1252", target], capture_output=True, check=False)
        if target.exists():
            return environment | {"LOCPATH": str(target.parent), "LC_ALL": "en_US.CP1252"}
    return environment | {"PYTHONIOENCODING": "cp1252"}


def test_everything_a_person_needs_runs_without_posix(tmp_path: Path, windows_locale: dict[str, str]) -> None:
    command = [
        sys.executable,
        "-X",
        "warn_default_encoding",
        str(ROOT / "tests" / "desktop.py"),
        str(tmp_path),
    ]
    done = subprocess.run(command, env=windows_locale, capture_output=True, timeout=300, check=False)
    said = done.stdout.decode("cp1252", "replace")
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-3000:]
    for name in COMMANDS:
        assert f"{name}: exit 0" in said, said + done.stderr.decode("utf-8", "replace")[-3000:]
    assert "report: True" in said
    assert "alone: True" in said  # with an export and a card, and no crowd
    assert said.count("assess: exit 0") == 2
    assert "page: [(200, True)]" in said
    assert "gateway: exit 2" in said
    assert "needs Linux" in said


def test_no_module_needs_posix_to_be_imported_but_the_gateways() -> None:
    """Imports of what only POSIX has stay in the gateway's own processes."""
    posix = (
        "import fcntl",
        "import resource\n",
        "import pwd",
        "import grp",
        "os.fork(",
        "AF_UNIX",
        "SIGKILL",
    )
    found = {
        path.relative_to(ROOT / "src" / "incrowd").as_posix()
        for path in (ROOT / "src" / "incrowd").rglob("*.py")
        if any(word in path.read_text("utf-8") for word in posix)
    }
    # Caps its child where the system can, and goes on where it cannot.
    found.discard("web/models.py")
    assert "suppress(ImportError" in (ROOT / "src" / "incrowd" / "web" / "models.py").read_text("utf-8")
    assert {name.split("/")[0] for name in found} <= {"gateway"}, found
