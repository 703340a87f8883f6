"""What would a reader with a language model add? Replays what GPT-4 guessed about made-up people (SynthPAI).

    python -m benchmarks.disclosures_reader [--data ../shared/data]

A server on loopback speaks the OpenAI protocol and answers a request about a person's longest post with the guesses
that were recorded for that person, and every other request with an empty object: the recorded guesses are about
people, not posts. incrowd's own reader asks it about every post, so what is measured has passed its normal forms, its
calibration (by Llama-3-8B, which is nearer to what people run at home) and its combination with what patterns found.
Facts are those of `../shared/check reader`: five attributes, stated or nearly so. Two halves of the people by a hash.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from incrowd.measures.disclosures.assess import disclosed
from incrowd.measures.disclosures.model_reader import ModelOptions, added_by_model, read_with_model
from incrowd.measures.disclosures.normal import agrees

NAMES = {
    "age": "age",
    "sex": "gender",
    "city_country": "location",
    "birth_city_country": "birthplace",
    "relationship_status": "relationship",
}
NOTHING = "{}"


class Replay(BaseHTTPRequestHandler):
    """Answers by what was recorded for a post."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        post = json.loads(asked["messages"][-1]["content"])["post"]
        content = self.server.recorded.get(post, NOTHING)  # type: ignore[attr-defined]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"choices": [{"message": {"content": content}}]}).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def replaying(recorded: Mapping[str, str]) -> Iterator[ModelOptions]:
    """Run a model's server that answers from a record; give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Replay)
    server.recorded = recorded  # type: ignore[attr-defined]
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield ModelOptions(address=f"http://127.0.0.1:{server.server_port}/v1", seconds=10)
    finally:
        server.shutdown()
        server.server_close()


def people(path: Path) -> Iterator[tuple[str, list[str], dict[str, tuple[str, str]]]]:
    """Yield (name, posts, {attribute: (truth, what GPT-4 guessed)}) of everybody with a fact to judge."""
    for line in _plain(path).decode("utf-8").splitlines():
        person = json.loads(line)
        labels = {
            NAMES[name]: (str(label["value"]), str(label.get("gpt4_guess") or ""))
            for name, label in person["labels"].items()
            if name in NAMES and label["hardness"] <= 2 and label["certainty"] >= 3
        }
        if labels:
            yield person["user"], person["comments"], labels


def _plain(path: Path) -> bytes:
    if path.suffix != ".zst":
        return path.read_bytes()
    from backports import zstd

    return bytes(zstd.decompress(path.read_bytes()))


def first_half(name: str) -> bool:
    """Say whether somebody belongs to the first half."""
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 0


def judge(rates: dict[str, Any], attribute: str, told: Mapping[str, str], truth: str) -> None:
    """Count one fact: was something told, and rightly?"""
    rates["facts"] += 1
    if attribute in told:
        rates["told"] += 1
        rates["right"] += agrees(attribute, told[attribute], truth)[0]


def run(data: Path) -> dict[str, Any]:
    """Judge patterns alone, the recorded guesses alone, and both together."""
    files = (data / "synthpai" / name for name in ("people.jsonl.zst", "people.jsonl"))
    path = next((one for one in files if one.is_file()), None)
    if path is None:
        return {"synthpai": "the data is not there"}
    empty = {"facts": 0, "told": 0, "right": 0}
    found = {
        half: {who: dict(empty) for who in ("patterns", "guesses", "both")}
        for half in ("first half", "second half")
    }
    for name, texts, labels in people(path):
        posts = [(number, 1_700_000_000 + 3600 * number, text) for number, text in enumerate(texts)]
        guesses = {attribute: guess for attribute, (_, guess) in labels.items() if guess}
        longest = max(texts, key=len)
        with replaying({longest: json.dumps(guesses)}) as options:
            reading = read_with_model(posts, options)
        mine = disclosed(posts)
        told = {fact.attribute: fact.value for fact in mine.told}
        both = told | {fact.attribute: fact.value for fact in added_by_model(mine, reading)}
        guessed = {find.attribute: find.value for _, _, finds in reading.finds for find in finds}
        half = found["first half" if first_half(name) else "second half"]
        for attribute, (truth, _) in labels.items():
            for who, what in (("patterns", told), ("guesses", guessed), ("both", both)):
                judge(half[who], attribute, what, truth)
    return {"halves": found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("INCROWD_DATA", "../shared/data")))
    print(json.dumps(run(parser.parse_args().data), indent=1))
