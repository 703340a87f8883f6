"""Are the numbers of `incrowd assess` the same wherever they are shown? Text, JSON, page and web, side by side.

    python -m benchmarks.same_numbers CROWD [--people 5] [--seed 0] [--user NAME ...]

Random people (or those named) are assessed by the commands and by the web interface. Everything that the JSON says and
a person reads (the first screen, the label, reasons with the share of each part, plan, actions with what was before and
what holds afterwards) is looked for in the other three; numbers are written from the JSON's own by the rules of
`incrowd.wording`. Prints how much was compared and what was missing; nobody is named.
"""

from __future__ import annotations

import argparse
import html
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.crowd import Crowd
from incrowd.report.person import say_share, share_of
from incrowd.result import Evidence
from incrowd.wording import say_amount, say_percent

WIDE = "4000"
NEAR = 700
"""Letters after an action's name within which its numbers are looked for."""


def plain(page: str) -> str:
    """Return what a page says, without its tags and scripts."""
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return squeezed(html.unescape(re.sub(r"<[^>]+>", " ", page)))


def squeezed(text: str) -> str:
    """Return words one blank apart, and none before a stop."""
    return re.sub(r" ([.,;:)])", r"\1", " ".join(text.split()))


def sentences(report: dict[str, Any]) -> Iterator[str]:
    """Yield what has to be said in the same words everywhere."""
    yield report["verdict"]["sentence"]
    yield from (line for one in report["in_short"] for line in one["lines"])
    yield from (one["sentence"] for one in report["label"].values())
    for reason in report["reasons"]:
        yield reason["sentence"]
        parts = [Evidence(**part) for part in reason["evidence"]]
        whole = share_of(parts)
        yield from (f"{part.what} {say_share(part.contribution, whole)}" for part in parts if whole)
    if plan := report["plan"]:
        yield from (*plan["steps"], plan["loss"], plan["verdict"]["sentence"], *plan["missed"])


def numbers(action: dict[str, Any]) -> tuple[str, str]:
    """Write what was before an action and what holds after it, from the numbers of the JSON alone."""
    effect = action["effect"]

    def said(when: str) -> str:
        value, success = effect[when], effect[f"success_{when}"]
        if value is None:
            return "no profile left"
        known = effect["unit"] == "rank" and success is not None
        return say_percent(success) if known else say_amount(value, effect["unit"])

    other, own = action["recheck"], effect["risk_after"]
    after = say_percent(other) if other is not None and (own is None or other > own) else said("after")
    return said("before"), after


def missing(report: dict[str, Any], view: str) -> Iterator[str]:
    """Yield what a view does not say as the JSON does; `view` is squeezed."""
    for one in sentences(report):
        if squeezed(one) not in view:
            yield one
    for action in report["actions"]:
        before, after = numbers(action)
        outcome = f"{action['effect']['subject']}: {before} → {after}; {action['effect']['level_before']} → "
        if not action["outcome"].startswith(outcome + action["promised"]):
            yield f"JSON itself: {action['outcome']}"
        places = [found.end() for found in re.finditer(re.escape(squeezed(action["what"])), view)]
        near = [view[place : place + NEAR] for place in places]
        if not any(before in part and after in part and action["promised"] in part for part in near):
            yield f"{action['what']}: {before} → {after}; {action['promised']}"


def views(crowd: Path, user: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Assess somebody three times by command, and once in the web; return the JSON and what the others say."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        command = [sys.executable, "-m", "incrowd", "assess", str(crowd), "--user", user]
        env = {**os.environ, "COLUMNS": WIDE}
        told = json.loads(
            subprocess.run([*command, "--json"], capture_output=True, check=True, env=env).stdout
        )
        text = subprocess.run(
            [*command, "--html", str(page)], capture_output=True, check=True, env=env
        ).stdout
        shown = {"text": squeezed(text.decode()), "page": plain(page.read_text("utf-8"))}
    # In a process of its own, as `incrowd serve` is: nothing that was computed here before plays a part.
    code = "import sys; from benchmarks.same_numbers import web_page; print(web_page(*sys.argv[1:]))"
    web = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", code, str(crowd), user],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parents[1],
    ).stdout
    return told, shown | {"web": plain(web.decode())}


def web_page(crowd: Path | str, user: str) -> str:
    """Return the report's first page in the web interface."""
    from starlette.testclient import TestClient

    from incrowd.web.app import create_app
    from incrowd.web.serving import ServeOptions

    options = ServeOptions(crowd=Path(crowd), port=8642)
    with TestClient(create_app(options), base_url="http://127.0.0.1:8642") as client:
        home = client.get("/", params={"token": options.token}).text
        key = re.search(r'name="form_key" value="([0-9a-f]+)"', home)
        job = client.post("/assess", data={"form_key": key[1] if key else "", "name": user})
        while (state := client.get(f"{job.url}/progress")).status_code == 200:
            if state.json()["state"] == "failed":
                raise RuntimeError("the web interface could not assess somebody whom the command could")
            if state.json()["state"] == "done":
                return client.get(state.json()["url"]).text
            time.sleep(0.1)
        return client.get(str(job.url)).text


def compared(crowd: Path, users: list[str]) -> dict[str, Any]:
    """Compare the views of some people; count what was looked for and what was missing."""
    looked, gone = 0, dict.fromkeys(("text", "page", "web"), 0)
    for user in users:
        told, shown = views(crowd, user)
        looked += len([*sentences(told)]) + len(told["actions"])
        for name, view in shown.items():
            gone[name] += len([*missing(told, view)])
        print(
            json.dumps({"people": users.index(user) + 1, "looked_for": looked, "missing": gone}), flush=True
        )
    return {"people": len(users), "looked_for": looked, "missing": gone}


def main() -> None:
    """Run it on a crowd given by its folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("crowd", type=Path, nargs="?")
    parser.add_argument("--people", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--user", action="append", default=[])
    given = parser.parse_args()
    if given.crowd is None:
        print("   skipped: give the folder of a crowd, python -m benchmarks.same_numbers CROWD")
        return
    crowd = Crowd(given.crowd)
    tables = crowd.posts(), crowd.items()
    everybody = sorted({user for one in tables for user in one.select("user").unique().collect()["user"]})
    chosen = [everybody[k] for k in np.random.default_rng(given.seed).permutation(len(everybody))]
    print(json.dumps(compared(given.crowd, given.user or chosen[: given.people])))


if __name__ == "__main__":
    main()
