"""Starting the server: on the loopback address, at a port that is free."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from incrowd.errors import InputError
from incrowd.web.serving import listen


def test_the_address_is_on_this_machine_and_holds_the_token(tmp_path: Path) -> None:
    with listen(tmp_path / "crowd") as listening:
        host, port = listening.socket.getsockname()
        assert host == "127.0.0.1"
        assert listening.options.address == f"http://127.0.0.1:{port}/?token={listening.options.token}"
        assert len(listening.options.token) >= 43


def test_whoever_is_quicker_than_the_server_waits_and_is_not_refused(tmp_path: Path) -> None:
    with listen(tmp_path / "crowd") as listening, socket.socket() as browser:
        browser.connect(listening.socket.getsockname())


def test_two_servers_have_different_tokens(tmp_path: Path) -> None:
    with listen(tmp_path / "one") as one, listen(tmp_path / "two") as two:
        assert one.options.token != two.options.token
        assert one.options.cookie != two.options.cookie


def test_a_port_that_is_taken_is_explained(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with (
            pytest.raises(InputError, match="is taken on this machine"),
            listen(tmp_path, taken.getsockname()[1]),
        ):
            pass
