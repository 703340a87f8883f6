"""A real Chromium, pages that note every request and complaint, axe, and pictures to look at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

SCREENSHOTS = Path(__file__).parent.parent.parent / "build" / "screenshots"
WAIT = 180_000


class Tab:
    """A page that notes what it asks for and what it complains about."""

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        self.page.set_default_timeout(WAIT)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def picture(self, name: str, whole: bool = True) -> None:
        """Keep a picture for people to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        place = SCREENSHOTS / f"{name}.png"
        unfinished = place.with_suffix(f".{os.getpid()}.png")
        self.page.screenshot(path=unfinished, full_page=whole)
        unfinished.replace(place)

    def serious(self) -> list[str]:
        """Return what axe finds serious or critical, in words."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{one['id']}: {one['help']}: {one['nodes'][0]['html'][:200]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
