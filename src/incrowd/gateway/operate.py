"""What the provider does with a gateway: start it, check its setup, ask it why.

A running gateway holds its snapshots, so `why` is asked through its operator port; if none runs, the state
folder is opened directly. The token for that port is derived from the secret: whoever can read the state
folder has it.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from incrowd.crowd.disk import PRIVATE, Disk
from incrowd.errors import IncrowdError, InputError
from incrowd.gateway.audit import AuditLog, check_audit
from incrowd.gateway.core import Gateway
from incrowd.gateway.databases import connect
from incrowd.gateway.ledger import Ledger, audited
from incrowd.gateway.monitoring import log_to_stderr, logger
from incrowd.gateway.policy import GatewayPolicy, cautions, promise, weaknesses
from incrowd.gateway.query import Client, Explanation, ValueDecision
from incrowd.gateway.report import Support, support_of
from incrowd.gateway.service import GatewayService
from incrowd.gateway.state import KeyStore, lock_state, open_secret, set_aside
from incrowd.gateway.text_query import read_query, typed_query
from incrowd.gateway.worker import DecisionProcess
from incrowd.measures.release import warm_up

if TYPE_CHECKING:
    from incrowd.gateway.server import Address

RUNNING_NAME = "running.json"
OPERATOR_SECONDS = 300.0
CHECKED_AUDIT_BYTES = 64 * 2**20
"""An audit log up to this size is checked at every start, within seconds."""


def open_service(url: str, policy: GatewayPolicy, state: Path) -> GatewayService:
    """Open everything a gateway needs to answer; the first time this takes a snapshot."""

    secret = open_secret(state)
    decisions = DecisionProcess(
        url, policy, state
    )  # first: it makes sure that nobody else works on this state
    audit = AuditLog(state, secret.key("audit"), known=audited(state))
    return GatewayService(
        decisions=decisions, keys=KeyStore(state), policy=policy, audit=audit, secret=secret
    )


def run(url: str, policy: GatewayPolicy, state: Path, address: Address) -> None:
    """Serve until told to stop."""
    from incrowd.gateway.server import serve

    os.umask(0o077)  # files that libraries make beside ours are for their owner alone, too
    log_to_stderr()
    logger.info(
        "starting: compiling, and copying the data if no snapshot is there; the first time takes a minute"
    )
    service = open_service(url, policy, state)
    _warn_of_audit(service, state)
    _warn(service)
    marker = state / RUNNING_NAME

    def started(port: int, admin_port: int) -> None:
        text = json.dumps({"process": os.getpid(), "port": port, "admin_port": admin_port})
        Disk().write_whole(marker, text.encode(), PRIVATE)

    try:
        asyncio.run(serve(service, address, started))
    finally:
        marker.unlink(missing_ok=True)


def _warn_of_audit(service: GatewayService, state: Path) -> None:
    """Say at the start, and not only in a report, that the audit log was touched."""
    if service.audit.missing:
        logger.error("the audit log has lost its last %d records", service.audit.missing)
        return
    size = sum(path.stat().st_size for path in service.audit.folder.glob("*.jsonl"))
    if size > CHECKED_AUDIT_BYTES:
        logger.info("the audit log is large; 'incrowd gateway report' checks it")
        return
    checked = check_audit(state, open_secret(state).key("audit"))
    if not checked.intact:
        logger.error("the audit log was touched: %s", checked.problem)


def reset(state: Path) -> Path | None:
    """Start anew where a state is lost: set aside what is left of it, and count everything as told.

    The new state answers nothing until what was told before would have been forgotten anyway.
    """
    lock = lock_state(state)
    try:
        aside = set_aside(state)
        ledger = Ledger(state, open_secret(state))
        try:
            ledger.mark_reset(time())
        finally:
            ledger.close()
        return aside
    finally:
        lock.release()


def _warn(service: GatewayService) -> None:

    for caution in cautions(service.policy):
        logger.warning("%s", caution)

    known = service.policy.organisations
    strangers = sum(key.organisation not in known for key in service.keys.all())
    if strangers:
        logger.warning("%d keys belong to organisations that the policy does not name", strangers)


def check_setup(policy: GatewayPolicy, url: str | None, state: Path) -> dict[str, Any]:
    """Say what a policy allows, and whether tables, columns and keys fit it."""
    keys = KeyStore(state).all()
    found: dict[str, Any] = {
        "attributes": list(policy.database.attributes),
        "filters": [f"{name} ({one.type})" for name, one in policy.database.filters.items()],
        "organisations": list(policy.organisations),
        "q": policy.release.q,
        "promise": promise(policy),
        "weak": weaknesses(policy),
        "cautions": cautions(policy),
        "state folder": str(state) if state.is_dir() else f"{state} (there is none yet)",
        "keys": len(keys),
        "keys without organisation": sorted(
            key.name for key in keys if key.organisation not in policy.organisations
        ),
    }
    if url is not None:
        found["people"] = _people(policy, url)
    return found


def _people(policy: GatewayPolicy, url: str) -> int:
    """Take a throw-away snapshot, which reads every table and column the policy names."""
    with _temporary_gateway(url, policy) as gateway:
        return gateway.snapshot.users


@contextmanager
def _temporary_gateway(url: str, policy: GatewayPolicy) -> Iterator[Gateway]:
    """Open a gateway that nobody has asked anything, and that leaves nothing behind."""
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(connect(url), policy, Path(folder))
        try:
            yield gateway
        finally:
            gateway.database.erase()
            gateway.close()


def explain(
    url: str, policy: GatewayPolicy, state: Path, text: str, organisation: str | None = None
) -> Explanation:
    """Say how a question would be answered and why; nothing is recorded."""
    if organisation is not None:
        policy.known(organisation, "--organisation")
    body = typed_query(text)
    query = read_query(body, policy)
    answer = ask_running(state, "try", {"query": json.loads(body), "organisation": organisation})
    if answer is not None:
        return _explanation(answer)
    with _opened(url, policy, state) as gateway:
        return gateway.explain(query, None if organisation is None else Client("operator", organisation))


def measure_support(url: str, policy: GatewayPolicy, state: Path) -> Support:
    """Say what the current snapshot can give."""
    answer = ask_running(state, "support", {})
    if answer is not None:
        return Support.from_dict(answer)
    with _opened(url, policy, state) as gateway:
        return support_of(gateway, policy, open_secret(state).key("order"))


@contextmanager
def _opened(url: str, policy: GatewayPolicy, state: Path) -> Iterator[Gateway]:
    """Open a state folder; where there is none yet, as if nobody had asked anything, and without leaving one."""
    warm_up()  # compiling must not use up the time for a decision
    if not state.exists():
        with _temporary_gateway(url, policy) as temporary:
            yield temporary
        return
    gateway = Gateway(connect(url), policy, state)
    try:
        yield gateway
    finally:
        gateway.close()


def existing(state: Path) -> Path:
    """Return a state folder if a gateway or its keys have been there, or say that it is the wrong place."""
    if not state.is_dir():
        raise InputError(
            f"--state: expected the folder of a gateway, there is none at '{state}'. It is made by "
            "'incrowd gateway key add' or by the first start"
        )
    return state


def ask_running(state: Path, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
    """Ask the gateway that runs on a state folder; None if there is none."""
    try:
        port = int(json.loads((state / RUNNING_NAME).read_bytes())["admin_port"])
    except (OSError, ValueError, KeyError):
        return None
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{path}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {open_secret(state).key('operator').hex()}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=OPERATOR_SECONDS) as reply:  # noqa: S310
            found: dict[str, Any] = json.loads(reply.read())
            return found
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error) from None
    except urllib.error.URLError:
        return None  # it was killed and left its note behind


def _refused(error: urllib.error.HTTPError) -> IncrowdError:
    try:
        message = str(json.loads(error.read())["error"])
    except (ValueError, KeyError):
        message = f"status {error.code}"
    kind = InputError if error.code == 400 else IncrowdError
    return kind(f"the running gateway: {message}")


def _explanation(plain: dict[str, Any]) -> Explanation:
    values = tuple(ValueDecision(**one) for one in plain["values"])
    return Explanation(**{**plain, "values": values})
