"""How numbers are written for people: short, and never rounded past what is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

SURE = 1e-6
"""Nobody is certain beyond this, whatever the rounding."""
LINES = (1 / 10, 1 / 2)
"""Where the level of a risk changes: what lies beside a line is not rounded onto it, or a level would seem wrong."""
ON_LINE = 1e-9


def say_number(value: float) -> str:
    """Write a number as a person would: whole numbers with separators, others with four digits."""
    if math.isnan(value):
        return "undefined"
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def say_many(number: float) -> str:
    """Write a number of people; nobody counts zeros, so from ten million on it is in words.

    >>> [say_many(number) for number in (1.5, 3_300_000, 10_000_000, 330_000_000, 2.2e9)]
    ['1.5', '3,300,000', '10 million', '330 million', '2.2 billion']
    """
    if number < 1e7:
        return say_number(number)
    return f"{number / 1e9:.3g} billion" if number >= 1e9 else f"{number / 1e6:.3g} million"


def say_amount(value: float, unit: str) -> str:
    """Write a value with its unit as a person would: "12 people", "97%", "rank 3"."""
    if math.isnan(value):
        return "cannot tell"
    if unit == "probability":  # somebody's certainty
        return say_percent(min(max(value, SURE), 1 - SURE))
    if unit.startswith("probability"):
        return say_percent(value)
    if unit == "rank":
        return f"rank {say_number(value)}"
    if unit == "people":
        rounded = round(value, 1)
        return f"{say_many(rounded)} {'person' if rounded == 1 else 'people'}"
    return f"{say_number(value)} {unit}"


def say_percent(value: float) -> str:
    """Two digits that never round doubt away, nor a level: 99.97% does not become 100%, 10.2% does not become 10%.

    >>> [say_percent(share) for share in (0.5, 0.502, 0.50001, 0.4999, 0.999)]
    ['50%', '50.2%', 'just above 50%', 'just under 50%', '99.9%']
    """
    percent = 100 * value
    for line in LINES:
        off = value - line
        if ON_LINE < abs(off) < 0.005:
            near = f"{percent:.1f}%"
            return near if float(near[:-1]) != 100 * line else f"just {_SIDE[off > 0]} {100 * line:.0f}%"
    if 0 < percent < 1:
        return f"{percent:.2g}%" if percent >= 0.01 else "less than 0.01%"
    if 99 < percent < 100:
        return "more than 99.9%" if percent > 99.9 else f"{percent:.1f}%"
    return f"{percent:.0f}%"


_SIDE = {True: "above", False: "under"}


def say_count(count: int, one: str, many: str = "") -> str:
    """Write how many there are of something.

    >>> say_count(1, "post"), say_count(2000, "post"), say_count(2, "person", "people")
    ('1 post', '2,000 posts', '2 people')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def say_day(time: int | None) -> str:
    """Write a time as a day, in UTC."""
    return "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d")


def say_list(names: Sequence[str]) -> str:
    """Write names one after the other.

    >>> say_list(["city"]), say_list(["city", "job"]), say_list(["city", "job", "pet"])
    ('city', 'city and job', 'city, job and pet')
    """
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)
