"""What names a person directly: e-mail and street addresses, phone and card numbers, accounts elsewhere, own pages.

Patterns of a language find candidates, checks keep the real ones: a card number must pass Luhn's test, an IBAN its
remainder, a phone number must have its country's shape or be called one. Only places in the text are returned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identifier:
    """Something that names the writer, by where it stands."""

    kind: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class IdentifierPatterns:
    """What direct identifiers look like in a language (``data/LANGUAGE/identifiers.toml``)."""

    email: re.Pattern[str]
    email_spelt: re.Pattern[str]
    mail_words: re.Pattern[str]
    phone: re.Pattern[str]
    phone_words: re.Pattern[str]
    phone_mine: re.Pattern[str]
    role_mail: re.Pattern[str]
    national_phone: re.Pattern[str]
    date: re.Pattern[str]
    street_words: re.Pattern[str]
    street: re.Pattern[str]
    street_abroad: re.Pattern[str]
    street_said: re.Pattern[str]
    not_my_street: re.Pattern[str]
    url: re.Pattern[str]
    my_page: re.Pattern[str]
    my_domain: re.Pattern[str]
    handle: re.Pattern[str]
    i_am_on: re.Pattern[str]
    i_post_at: re.Pattern[str]
    not_mine: re.Pattern[str]
    social_security: re.Pattern[str]
    card: re.Pattern[str]
    iban: re.Pattern[str]
    document: re.Pattern[str]
    digit: re.Pattern[str]
    seven_digits: re.Pattern[str]
    no_handles: frozenset[str]
    streets_abroad: frozenset[str]

    def find(self, text: str, low: str, *, accounts: bool) -> tuple[Identifier, ...]:
        """Return what names a person directly in a text, in order; `low` is the text in lower case.

        `accounts`: whether the text has a word that hints at an account elsewhere.
        """
        found: list[Identifier] = []
        if "@" in low or "dot" in low or "[.]" in low or "(at)" in low or "[at]" in low:
            found += self._emails(text)
        if self.digit.search(text):
            if self.seven_digits.search(text):
                found += self._numbers(text)
                found += self._phones(text, found)
            elif _holds(low, _PAPERS):
                found += self._documents(text)
            if _holds(low, _STREETS) or self.street_words.search(low):
                found += self._streets(text)
            if _holds(low, self.streets_abroad):
                found += self._streets_like(self.street_abroad, text)
        if (accounts or ".com" in low or ".blogspot" in low) and _holds(low, _OWN):
            found += self._accounts(text)
        mine = [one for one in _apart(found) if not self._not_mine(text, one.start)] if found else []
        return tuple(sorted(mine, key=lambda one: one.start))

    def _not_mine(self, text: str, start: int) -> bool:
        """Say whether what stands there is said to be somebody else's: "her email is ..."."""
        return self.not_mine.search(text[max(0, start - 60) : start]) is not None

    def _emails(self, text: str) -> Iterator[Identifier]:
        plain = [match.span() for match in self.email.finditer(text)]
        for start, end in plain:
            if not self.role_mail.match(text, start):  # nobody's own
                yield Identifier("e-mail address", start, end)
        for match in _overlapping(self.email_spelt, text):
            said = match.group().lower()
            if any(start < match.end() and match.start() < end for start, end in plain):
                continue
            if _A_HANDLE.search(said):  # "find me as @jo.doe"
                continue
            marked = any(
                mark in said for mark in ("(at)", "[at]", "{at}", "<at>", "(@)", "[@]", "_at_", "-at-")
            )
            # Spelt out to its end, an address is one whether or not it is called so.
            marked |= " at " in said and "dot" in said and said.split()[-1] in _ENDINGS
            called = self.mail_words.search(text, max(0, match.start() - 40), match.end() + 10) is not None
            if marked or (called and ("@" in said or " dot " in said)):
                yield Identifier("e-mail address", *match.span())

    def _numbers(self, text: str) -> Iterator[Identifier]:
        for match in self.social_security.finditer(text):
            yield Identifier("document number", *match.span())
        for match in self.card.finditer(text):
            number = re.sub(r"\D", "", match.group())
            if number[0] in "3456" and is_luhn(number):
                yield Identifier("account number", *match.span())
        for match in self.iban.finditer(text):
            if is_iban(match.group().replace(" ", "")):
                yield Identifier("account number", *match.span())
        yield from self._documents(text)

    def _documents(self, text: str) -> Iterator[Identifier]:
        for match in self.document.finditer(text):
            said = match.group().lower()
            kind = "account number" if any(word in said for word in _ACCOUNT) else "document number"
            yield Identifier(kind, *match.span("number"))

    def _phones(self, text: str, taken: Sequence[Identifier]) -> Iterator[Identifier]:
        for match in self.phone.finditer(text):
            said = match.group()
            digits = len(re.sub(r"\D", "", said))
            inside = any(one.start < match.end() and match.start() < one.end for one in taken)
            if inside or not 7 <= digits <= 15 or self.date.fullmatch(said):
                continue
            called = self.phone_words.search(text, max(0, match.start() - 40), match.end() + 15)
            if called or said.startswith("+") or self.national_phone.fullmatch(said):
                yield Identifier("phone number", *match.span())
        for match in self.phone_mine.finditer(text):
            yield Identifier("phone number", *match.span("number"))

    def _streets(self, text: str) -> Iterator[Identifier]:
        yield from self._streets_like(self.street, text)
        for match in self.street_said.finditer(text):
            yield Identifier("street address", *match.span("street"))

    def _streets_like(self, pattern: re.Pattern[str], text: str) -> Iterator[Identifier]:
        for match in pattern.finditer(text):
            if not self.not_my_street.search(text[max(0, match.start() - 40) : match.start()]):
                yield Identifier("street address", *match.span())

    def _accounts(self, text: str) -> Iterator[Identifier]:
        for match in self.handle.finditer(text):
            said = match.group("handle")
            before = text[match.start() : match.start("handle")]
            introduced = _INTRODUCED.search(before)
            if said.lower().lstrip("@") in self.no_handles:
                continue
            if said.startswith("@") or re.search(r"[\d_.]", said) or introduced:
                yield Identifier("user name elsewhere", *match.span("handle"))
        for match in self.i_am_on.finditer(text):
            yield Identifier("user name elsewhere", *match.span(match.lastgroup or 0))
        for pattern in (self.my_domain, self.i_post_at):
            for match in pattern.finditer(text):
                yield Identifier("own page", *match.span("domain"))
        for match in self.url.finditer(text):
            if self.my_page.search(text, max(0, match.start() - 60), match.start()):
                yield Identifier("own page", *match.span())


_STREETS = ("address", "addy", "live at", "straße", "strasse", "gasse", "platz", "straat", "gatan")
"""Hints at an address besides the words for a street."""
_PAPERS = ("number", "passport", "licen", "plate", "card", "account")
"""Words that name papers whose number may hold few digits."""
_ACCOUNT = ("account", "acct", "sort code")
_INTRODUCED = re.compile(
    r"(?: is|:|,? (?:user|username|under|handle|name)) ?$"
    r"|(?i:\bon \w+,? (?:as|i'?m|i am|i go by|i'?m known as|i am known as)) ?$"
)
_A_HANDLE = re.compile(r"\s@\S")
_OWN = ("my", "me", "i ", "i'm", "hmu", ":", "@", "u/")
"""Without any of these, an account in a text is nobody's in particular."""
_ENDINGS = frozenset(
    ("com", "net", "org", "edu", "gov", "io", "me", "co", "uk", "de", "fr", "nl", "ca", "au", "us", "in")
)
"""Of addresses on the Internet, as far as people spell them out."""


def _holds(low: str, words: Iterable[str]) -> bool:
    """Say whether a text holds one of some words; a plain loop is the fastest way."""
    for word in words:  # noqa: SIM110
        if word in low:
            return True
    return False


def _overlapping(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Find a pattern from every word on: in "me at jane(at)example.org" the first "at" is not the right one."""
    place = 0
    while (match := pattern.search(text, place)) is not None:
        yield match
        space = text.find(" ", match.start() + 1)
        place = space + 1 if 0 <= space < match.end() else max(match.end(), place + 1)


def _apart(found: Sequence[Identifier]) -> Iterator[Identifier]:
    """Leave out what lies inside something found already."""
    kept: list[Identifier] = []
    for one in found:
        if not any(other.start < one.end and one.start < other.end for other in kept):
            kept.append(one)
            yield one


def is_luhn(number: str) -> bool:
    """Say whether the digits of a card number pass Luhn's test.

    >>> is_luhn("4111111111111111"), is_luhn("4111111111111112")
    (True, False)
    """
    digits = [int(digit) for digit in reversed(number)]
    return sum(digits[0::2] + [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]) % 10 == 0


def is_iban(text: str) -> bool:
    """Say whether an account number leaves the remainder that an IBAN does (ISO 13616).

    >>> is_iban("GB82WEST12345698765432"), is_iban("GB82WEST12345698765433")
    (True, False)
    """
    if not 15 <= len(text) <= 34:
        return False
    turned = text[4:] + text[:4]
    return int("".join(str(int(letter, 36)) for letter in turned)) % 97 == 1
