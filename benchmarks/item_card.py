"""How well does a card's section of items stand in for everybody's lists? Public tables, people not in the card.

    python -m benchmarks.item_card [--data ../shared/data] [--people 200] [--epsilon 3]

Two hundred people with at least five items are left out, a card is made of the others (of 20,000 of them where there
are more), and what the card says is compared with an exact count among those others. Noise is drawn anew each time.
Films and music were looked at while the section was built; the other tables were not.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.microdata_scores import DATA, TABLES, crowd_of
from incrowd.cards.lists import list_noise
from incrowd.cards.make import CardOptions
from incrowd.measures.microdata.card_section import (
    FEWEST_ITEMS,
    is_number_of_people,
    item_section,
    joined,
    numbers_of,
)
from incrowd.measures.microdata.item_law import ItemLaw
from incrowd.measures.microdata.table import ItemTable, item_table, restrict

MOST = 20_000
SHOWN = ("three-items", "ten-items", "paper", "acquaintance")


def judged(
    table: ItemTable, people: int, epsilon: float | None
) -> tuple[ItemLaw, dict[str, dict[str, float]]]:
    """Return the card's law, and how well it does for people who are not in it."""
    from scipy.stats import spearmanr

    rng = np.random.default_rng(0)
    able = rng.permutation(np.flatnonzero(table.sizes >= FEWEST_ITEMS))[:people]
    rest = np.sort(rng.permutation(np.setdiff1d(np.arange(len(table.users)), able))[:MOST])
    others = restrict(table, rest)
    made = item_section(others, CardOptions(epsilon=epsilon), list_noise(epsilon, 1e-6, 1.0))
    law = replace(made.law, accuracy=made.facts["accuracy"] or {})
    place = {name: at for at, name in enumerate(others.items)}
    by_item = others.matrix.tocsc()
    exact, told = [], []
    for at, row in enumerate(able.tolist()):
        names = table.items.gather(table.profile(row).tolist()).to_list()
        known = np.array(sorted(place[name] for name in names if name in place), np.int32)
        exact.append(numbers_of(joined(by_item, others, known, more=len(names) - len(known))))
        told.append(numbers_of(law.made_up(names, "", at)))
    found = {}
    for name in SHOWN:
        truth, card = (np.array([one[name] for one in numbers]) for numbers in (exact, told))
        of_people = is_number_of_people(name)
        ends = [
            (law.interval_of_people if of_people else law.interval_of_chance)(value, name) for value in card
        ]
        line = 9.0 if of_people else 0.5
        found[name] = {
            "exact": float(np.median(truth)),
            "card": float(np.median(card)),
            "spearman": float(spearmanr(truth, card).statistic),
            "same_side": float(np.mean((truth >= line) == (card >= line))),
            "covered": float(
                np.mean([low <= one <= high for (low, high), one in zip(ends, truth, strict=True)])
            ),
        }
    return law, found


def main() -> None:
    """Print one line a table and adversary, then all of it as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--epsilon", type=float)
    parser.add_argument("--table", choices=[*TABLES], action="append")
    given = parser.parse_args()
    report = {}
    for name in given.table or TABLES:
        if not (given.data / TABLES[name]).exists():
            print(f"{name}: not there")
            continue
        law, found = judged(item_table(crowd_of(given.data, TABLES[name])), given.people, given.epsilon)
        print(f"{name}: {law.people:,} people, {len(law.items):,} items listed, taste {law.taste}")
        for who, one in found.items():
            print(f"  {who}: " + ", ".join(f"{what} {value:.3g}" for what, value in one.items()), flush=True)
        report[name] = found | {"people": law.people, "listed": len(law.items)}
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
