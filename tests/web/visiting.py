"""A server in this process and a visitor who has its token."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from incrowd.web.app import create_app
from incrowd.web.serving import Limits, ServeOptions

PORT = 8642
ADDRESS = f"http://127.0.0.1:{PORT}"


def options_for(crowd: Path, **limits: Any) -> ServeOptions:
    return ServeOptions(crowd=crowd, port=PORT, limits=Limits(**limits))


def stranger(options: ServeOptions) -> TestClient:
    return TestClient(create_app(options), base_url=ADDRESS)


def visitor(options: ServeOptions) -> TestClient:
    client = stranger(options)
    assert client.get("/", params={"token": options.token}).status_code == 200
    return client


def form_key(client: TestClient, page: str = "/") -> str:
    found = re.search(r'name="form_key" value="([0-9a-f]+)"', client.get(page).text)
    assert found
    return found[1]


def send_files(client: TestClient, files: dict[str, bytes], **fields: str) -> Any:
    """Send an upload as a browser does: the form's fields first."""
    parts: list[Any] = [
        (name, (None, value)) for name, value in ({"form_key": form_key(client)} | fields).items()
    ]
    parts += [("files", (name, content, "application/octet-stream")) for name, content in files.items()]
    return client.post("/uploads/import", files=parts)


def wait_for(client: TestClient, job_page: Any) -> dict[str, Any]:
    """Wait for the job whose page was shown; return how it ended."""
    address = str(job_page.url)
    for _ in range(600):
        answer = client.get(f"{address}/progress")
        if answer.status_code != 200:
            return {"state": "done", "url": address}
        job: dict[str, Any] = answer.json()
        if job["state"] in ("done", "failed", "stopped"):
            return job
        time.sleep(0.05)
    raise AssertionError("the job did not end")
