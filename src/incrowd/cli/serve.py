"""incrowd serve: the web interface, on this machine only."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from incrowd.cli.console import AsJson, open_in_browser, parse_memory, show, show_json
from incrowd.errors import MissingExtra

if TYPE_CHECKING:
    from incrowd.web.serving import Listening

GRACE_SECONDS = 2


def serve(
    crowd: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="The crowd to show, made if it is not there yet; left out: for your own export alone.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[
        int, typer.Option("--port", help="Port on 127.0.0.1; 0: any free one.", min=0, max=65535)
    ] = 8642,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open it in the browser.")] = False,
    gateway: Annotated[
        Path | None, typer.Option("--gateway", help="State folder of a gateway whose report to show.")
    ] = None,
    upload: Annotated[
        str, typer.Option("--upload-limit", help="Most bytes one upload may have, e.g. 2GiB.")
    ] = "2GiB",
    as_json: AsJson = False,
) -> None:
    """Open in the browser: drop in your export, read your report, try changes and drafts.

    Without a folder it needs nobody else's data and keeps nothing: what was brought is gone when the server stops.

    The address it prints holds a token: whoever has it sees what you see. Nobody else on this machine and nobody
    outside does.
    """
    import tempfile

    from incrowd.web.serving import Limits, listen

    limits = Limits(upload_bytes=parse_memory(upload))
    with (
        tempfile.TemporaryDirectory(prefix="incrowd-") as passing,
        listen(crowd or Path(passing) / "export", port, gateway=gateway, limits=limits) as server,
    ):
        address = server.options.address
        if as_json:
            show_json(
                {
                    "address": address,
                    "port": server.options.port,
                    "crowd": None if crowd is None else str(crowd),
                }
            )
        else:
            show(f"Open {address}\nEverything stays on this machine. Ctrl-C stops it.")
        if open_browser:
            open_in_browser(address)
        _run(server)


def _run(listening: Listening) -> None:
    """Answer until Ctrl-C or SIGTERM. No access log: addresses hold the token, and what people look at is theirs."""
    try:
        import uvicorn

        from incrowd.web.app import create_app
    except ImportError as missing:
        if isinstance(missing, MissingExtra) or (missing.name or "").startswith("incrowd"):
            raise
        raise MissingExtra("the web interface", "web") from None
    config = uvicorn.Config(
        create_app(listening.options),
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    # Ctrl-C is how one stops it, not a mishap; the server has shut down by the time it is raised.
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[listening.socket])
