"""Who asks, what they are answered, and why: the first two leave the gateway, the last is for the provider alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Client:
    """Somebody who asks; everybody of an organisation shares one ledger."""

    name: str
    organisation: str


@dataclass(frozen=True)
class Answer:
    """The values that may leave, in an order that says nothing. Empty for whatever reason; none is given."""

    values: tuple[str, ...] = ()

    @property
    def body(self) -> bytes:
        """The answer as it is stored and repeated, byte for byte."""
        return json.dumps({"values": list(self.values)}, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def from_body(cls, body: bytes) -> Answer:
        """Read what was stored."""
        return cls(tuple(json.loads(body)["values"]))


@dataclass(frozen=True, kw_only=True)
class ValueDecision:
    """What became of one value of the class, for the provider's eyes only."""

    value: str
    holders: int
    """How many people of the class list it."""
    released: bool
    rule: str
    """Which rule withheld it; empty if released."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a question is answered as it is. Everything in here is secret: only the provider may see it."""

    snapshot: int
    class_size: int
    repeated: bool
    """True if the client gets what was answered before; the rest is what would be decided now."""
    rule: str
    """Which rule denied the whole answer; empty if it was not denied."""
    threshold: int
    """The least q asked of this answer, secret amount included."""
    q: float | None
    """q of the released values, or a proved lower bound; None if nothing is released."""
    method: str
    values: tuple[ValueDecision, ...]
    mechanism: str
    """Under which it is decided, or was when it was asked first: "private" or "q"."""
    decided: str = ""
    """When it was decided; empty if it is new."""
    counted: int | None = None
    """With "private": how many people of the class still had budget to be counted with; None if that is not known."""
    closed_until: str = ""
    """Until when nothing new is answered since the state was reset; empty if it is open."""

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready types."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "values"}
        return {**plain, "values": [dict(vars(one)) for one in self.values]}
