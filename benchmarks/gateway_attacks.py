"""How far each attack on the gateway gets, with its defence away and with all defences standing.

The attacks are those of tests/gateway/attacks, on more worlds than a test needs. Advantage is |2 * accuracy - 1|
of guessing whether the victim lists a value: 0 is chance, 1 is certainty.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.gateway.attacks import test_changing_data as changing
from tests.gateway.attacks import test_clock as clock
from tests.gateway.attacks import test_denials as denials
from tests.gateway.attacks import test_many_answers as many
from tests.gateway.attacks import test_score_side_channels as scores
from tests.gateway.attacks import test_single_answers as single
from tests.gateway.attacks import test_turned_defences as turned
from tests.gateway.attacks.worlds import OLD, YOUNG, Attack, advantage
from tests.gateway.weakened import Defences

from incrowd.measures.microdata.spec import ReleaseSpec

EXACT = Defences(noise=False)


def attacks(folder: Path) -> dict[str, tuple[Attack, int]]:
    """Name -> the attack and in how many worlds it is tried, with and without the victim's value."""
    naive = Defences(noise=False, account_age=False)
    bare = Defences(differencing=False, joint=False, noise=False, known_users=False)
    return {
        "planted accounts, young; exact threshold": (single.planted(folder, 11, YOUNG, naive), 20),
        "planted accounts, young": (single.planted(folder, 11, YOUNG), 100),
        "planted accounts, old, 15": (single.planted(folder, 15, OLD), 300),
        "planted accounts, old, 18": (single.planted(folder, 18, OLD), 300),
        "planted accounts, old, 21": (single.planted(folder, 21, OLD), 300),
        "differencing; no defence": (many.tracker(folder, many.OPEN), 60),
        "differencing": (many.tracker(folder), 100),
        "repeats, 40; fresh noise": (many.repeats(folder, 40, remembered=False), 30),
        "repeats, 25": (many.repeats(folder, 25), 200),
        "changing data; live": (changing.waiting(folder, 11, changing.lists_it, changing.LIVE), 20),
        "changing data": (changing.waiting(folder, 17, changing.lists_it), 60),
        "own changes, 9; exact": (changing.crowd_of_changes(folder, 9, EXACT), 20),
        "own changes, 9": (changing.crowd_of_changes(folder, 9), 200),
        "own changes, 11": (changing.crowd_of_changes(folder, 11), 200),
        "denials; exact": (denials.silence(folder, 11, EXACT), 20),
        "denials": (denials.silence(folder, 17), 300),
        "every bit; no defence": (denials.neighbours(folder, bare), 20),
        "every bit": (denials.neighbours(folder), 100),
        "last alternative; exact": (turned.last_companion(folder, 12, EXACT), 10),
        "last alternative, 14": (turned.last_companion(folder, 14), 150),
        "last alternative, 16": (turned.last_companion(folder, 16), 150),
        "full answer; exact": (turned.rivals(folder, "full", 4, EXACT), 40),
        "full answer": (turned.rivals(folder, "full", 4), 150),
        "tied values; exact": (turned.rivals(folder, "tied", 4, EXACT), 40),
        "tied values": (turned.rivals(folder, "tied", 4), 100),
        "averaging, 260 old accounts": (turned.averaging(folder, 5, OLD), 80),
        "averaging, 520 old accounts": (turned.averaging(folder, 10, OLD), 50),
        "averaging, 1300 old accounts": (turned.averaging(folder, 25, OLD), 30),
        "popularity; exact counts": (scores.subtraction(scores.EXACT), 30),
        "popularity": (scores.subtraction(ReleaseSpec()), 60),
    }


def stopwatch(rounds: int = 150) -> dict[str, object]:
    """Milliseconds by which hard questions differ from refusals, and refusals from each other."""
    found = clock.stopped(rounds)
    rows = {
        "decisions, hard - refused": (found.decisions["hard"], found.decisions["refused"]),
        "replies, hard - refused": (found.replies["hard"], found.replies["refused"]),
        "replies, refused - refused": (found.replies["refused too"], found.replies["refused"]),
    }
    report: dict[str, object] = {"rounds": rounds}
    for name, (one, other) in rows.items():
        median, chance = clock.differs(one, other)
        report[name] = {
            "median_ms": round(median * 1000, 3),
            "p": round(chance, 4),
            "ks": round(ks(one, other), 3),
        }
    return report


def ks(one: list[float], other: list[float]) -> float:
    """The largest difference between two distributions."""
    from scipy.stats import ks_2samp

    return float(ks_2samp(one, other).statistic)


def main() -> dict[str, object]:
    """Run them all."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        report: dict[str, object] = {
            name: {"worlds": worlds, "advantage": round(advantage(attack, worlds).best, 3)}
            for name, (attack, worlds) in attacks(Path(folder)).items()
        }
    return report | {"stopwatch": stopwatch()}


if __name__ == "__main__":
    print(json.dumps(main(), indent=1))
