"""Places people name: cities, regions and countries with how many live there, and which lies in which.

The tables are shipped with their sources (``data/tables``). A city of which there are several is the largest one
unless the text says which ("Duluth, Georgia").
"""

from __future__ import annotations

import gzip
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Any

TABLES = files("incrowd.measures.disclosures").joinpath("data", "tables")
SMALL = 50_000
"""A city of fewer people is only taken for one if it is written with a capital letter."""
_TOKEN = re.compile(r"[^\W\d_](?:[\w'’.-]*[\w'’])?\.?|,|\(|\S")


@dataclass(frozen=True, slots=True)
class Place:
    """A city, a region or a country; what is not known is empty."""

    country: str
    """ISO 3166 code of two letters."""
    region: str = ""
    city: str = ""
    people: int = 0

    def contains(self, other: Place) -> bool:
        """Say whether another place is this one or lies in it."""
        return (
            self.country == other.country
            and self.region in ("", other.region)
            and self.city in ("", other.city)
        )


class Gazetteer:
    """Every place of the tables by name."""

    def __init__(self, words: Mapping[str, Any]) -> None:
        self._aliases, self._not_places = words, frozenset(words["not_places"])
        self._leading, self._of = frozenset(words["leading"]), re.compile(words["of"])

    @cached_property
    def countries(self) -> dict[str, tuple[str, int, tuple[float, ...]]]:
        """Code: name, people, and the shares of the age groups (ten years each); ``*`` is the world."""
        found = {}
        for code, name, people, *ages in table_rows("countries.tsv"):
            shares = tuple(float(age) / 100 for age in ages if age)
            found[code] = (name, int(people), shares)
        return found

    @cached_property
    def regions(self) -> dict[tuple[str, str], tuple[str, int]]:
        """(Country, code): name and people."""
        return {
            (country, code): (name, int(people)) for country, code, name, people in table_rows("regions.tsv")
        }

    @cached_property
    def _by_name(self) -> dict[str, Place]:
        found: dict[str, Place] = {}
        for code, (name, people, _) in self.countries.items():
            if code != "*":
                found[folded(name)] = Place(code, people=people)
        for alias, code in self._aliases["countries"].items():
            found[alias] = Place(code, people=self.countries[code][1])
        for (country, code), (name, people) in self.regions.items():
            found.setdefault(folded(name), Place(country, code, people=people))
            if country == "US":
                found[folded(name)] = Place(country, code, people=people)
        for alias, name in self._aliases["regions"].items():
            found[alias] = found[folded(name)]
        return found

    @cached_property
    def _cities(self) -> dict[str, list[Place]]:
        found: dict[str, list[Place]] = {}
        for name, country, region, people in table_rows("cities.tsv.gz"):
            found.setdefault(folded(name), []).append(Place(country, region, name, int(people)))
        for alias, name in self._aliases["aliases"].items():
            if folded(name) in found:
                found[alias] = found[folded(name)]
        return found

    def name(self, place: Place) -> str:
        """Write a place out, the finest level first."""
        parts = [place.city] if place.city else []
        if place.region and (place.country, place.region) in self.regions:
            parts.append(self.regions[place.country, place.region][0])
        elif place.country in self.countries:
            parts.append(self.countries[place.country][0])
        return ", ".join(parts)

    def coarser(self, place: Place) -> Place | None:
        """Return the next larger place around one."""
        if place.city and (place.country, place.region) in self.regions:
            return Place(place.country, place.region, people=self.regions[place.country, place.region][1])
        if place.city or place.region:
            return Place(place.country, people=self.countries.get(place.country, ("", 0, ()))[1])
        return None

    def find(self, text: str) -> tuple[Place, int] | None:
        """Return the place a text begins with, and how many characters name it."""
        skipped = self._of.match(text)
        offset = skipped.end() if skipped else 0
        tokens = list(_TOKEN.finditer(text, offset, offset + 80))
        while (
            tokens
            and tokens[0].group().lower() in self._leading
            and not self._longest(text, tokens, ("the",))
        ):
            del tokens[0]
        found = self._longest(text, tokens, ())
        if found is None:
            return self._around(text, tokens)
        places, used = found
        end = tokens[used - 1].end()
        place = places[0]
        inside = self._qualifier(text, tokens[used:])
        if inside is not None:
            outer, more = inside
            fitting = [one for one in places if outer.contains(one) and (one.city or one.region)]
            if fitting:
                return fitting[0], tokens[used + more - 1].end()
            if place.city and not outer.city:  # a town the tables do not know, in a place they do
                return self._whole(outer), tokens[used + more - 1].end()
        return place, end

    def _around(self, text: str, tokens: list[re.Match[str]]) -> tuple[Place, int] | None:
        """Read where a town lies that the tables do not know: "Millbrook, Ohio"."""
        for size in range(1, min(4, len(tokens))):
            if tokens[size].group() == ",":
                found = self._qualifier(text, tokens[size:])
                named = all(one.group()[:1].isupper() for one in tokens[:size])
                if found is None or not named or found[0].city:
                    return None
                return self._whole(found[0]), tokens[size + found[1] - 1].end()
        return None

    def _whole(self, place: Place) -> Place:
        """Return a region or country with its people."""
        if (place.country, place.region) in self.regions:
            return Place(place.country, place.region, people=self.regions[place.country, place.region][1])
        return Place(place.country, people=self.countries.get(place.country, ("", 0, ()))[1])

    def _longest(
        self, text: str, tokens: list[re.Match[str]], only_after: tuple[str, ...]
    ) -> tuple[list[Place], int] | None:
        if only_after and tokens[0].group().lower() not in only_after:
            return self._longest(text, tokens, ()) and ([], 0)
        for size in range(min(4, len(tokens)), 0, -1):
            said = text[tokens[0].start() : tokens[size - 1].end()]
            if "," in said or "(" in said or "\n" in said:
                continue
            for spelling in (said, said.rstrip(".")):
                places = self._named(spelling)
                if places:
                    return places, size
        return None

    def _named(self, said: str) -> list[Place]:
        key = folded(said)
        lower = said == said.lower()
        if len(key) < 3 and not said.isupper() and key not in ("uk", "us"):
            return []
        if key in ("us", "may", "march") and lower:
            return []
        known = self._by_name.get(key)
        cities = self._cities.get(key, [])
        if (
            said.isupper()
            and ("US", said) in self.regions
            and said not in ("OR", "IN", "OK", "ME", "HI", "PA", "LA")
        ):
            return [Place("US", said, people=self.regions["US", said][1])]
        if known is not None and not (cities and key in self._aliases["aliases"]):
            return [known, *cities]
        if lower:
            cities = [one for one in cities if one.people >= SMALL and key not in self._not_places]
        return cities if key not in self._not_places or not lower else []

    def _qualifier(self, text: str, tokens: list[re.Match[str]]) -> tuple[Place, int] | None:
        """Read ", Minnesota", "MN" or "(Germany)" after a place."""
        start = 1 if tokens and tokens[0].group() in (",", "(") else 0
        rest = tokens[start:]
        if not rest:
            return None
        code = rest[0].group().strip(".").upper()
        if rest[0].group().strip(".").isupper() and ("US", code) in self.regions:
            return Place("US", code), start + 1
        if start and len(code) == 2 and ("US", code) in self.regions and rest[0].group().strip(".") != "in":
            return Place("US", code), start + 1
        for size in (3, 2, 1):
            if len(rest) >= size:
                said = text[rest[0].start() : rest[size - 1].end()]
                known = self._by_name.get(folded(said.rstrip(".")))
                if known is not None and (start or said[:1].isupper()):
                    return known, start + size
        return None

    def read(self, text: str) -> Place | None:
        """Read a place from a table: "berlin, germany", "Duluth"."""
        found = self.find(text.strip().title() if text == text.lower() else text.strip())
        if found is not None:
            return found[0]
        last = text.rsplit(",", 1)[-1].strip()
        return self._by_name.get(folded(last))


def folded(name: str) -> str:
    """Fold case and accents away: "Köln" and "koln" are one.

    >>> folded("Bailén")
    'bailen'
    """
    if name.isascii():
        return name.lower().strip()
    plain = unicodedata.normalize("NFKD", name.replace("ł", "l").replace("Ł", "L").replace("ø", "o"))
    return (
        "".join(letter for letter in plain if not unicodedata.combining(letter))
        .lower()
        .replace("’", "'")
        .strip()
    )


def table_rows(name: str) -> list[list[str]]:
    """Read one of the tables, without its comments."""
    packed = TABLES.joinpath(name).read_bytes()
    text = (gzip.decompress(packed) if name.endswith(".gz") else packed).decode("utf-8")
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
