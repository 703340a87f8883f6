"""What names a person directly: e-mail and street addresses, phone and card numbers, accounts elsewhere, own pages.

Patterns find candidates, checks keep the real ones: a card number must pass Luhn's test, an IBAN its remainder, a phone
number the rules of its country (the phonenumbers package, if it is installed; else its shape).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_EMAIL = re.compile(
    r"[A-Za-z0-9][\w.+-]*\s?(?:@|\[at\]|\(at\)|\{at\}| at )\s?[A-Za-z0-9][\w-]*(?:\s?(?:\.|\[dot\]|\(dot\)|\{dot\}| dot )\s?[A-Za-z]{2,}){1,3}\b",
    re.I,
)
_MAIL_WORDS = re.compile(r"\b(?:e-?mail|mail|contact|reach|write|message|me|address|gmail|yahoo|hotmail|outlook|aol|proton\w*|icloud)\b", re.I)
_PHONE = re.compile(r"(?<![\w.,$€£#/-])(?:\+\d{1,3}[ .-]?)?(?:\(\d{2,4}\)[ .-]?)?\d{2,4}(?:[ .-]\d{2,4}){1,4}(?![\w/-])(?!\.\d)|(?<![\w.,$€£#/-])\+\d{8,15}\b")
_PHONE_WORDS = re.compile(r"\b(?:phone|call|text|cell|mobile|number|tel|whatsapp|reach|ring|fax|sms)\b", re.I)
_STREET = re.compile(
    r"(?<![\w$])\d{1,5}[A-Za-z]?,? (?:(?:N|S|E|W|NE|NW|SE|SW|North|South|East|West)\.? )?(?:[A-Z][\w'.-]*|\d{1,3}(?:st|nd|rd|th)) ?(?:[A-Z][\w'.-]* ){0,3}?"
    r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Way|Place|Pl|Terrace|Square|Circle|Cir|Crescent|Close|Parkway|Pkwy|Highway|Hwy)\b\.?"
)
_STREET_LOW = re.compile(
    r"\b(?:i live at|my (?:home |street |mailing )?address is|address:|send it to) (?P<street>\d{1,5}[a-z]? (?:[\w'.-]+ ){1,4}(?:street|st|avenue|ave|road|rd|lane|ln|drive|dr|boulevard|blvd|court|ct|way|place|terrace|square|close)\b)",
    re.I,
)
_URL = re.compile(r"\b(?:https?://|www\.)[^\s<>\")\]]+|\b[a-z0-9-]{3,}\.(?:blogspot|wordpress|tumblr|github|livejournal)\.(?:com|io)\b[^\s<>\")\]]*", re.I)
_MY_PAGE = re.compile(r"\bmy (?:own |new |personal |art |photo |music |little |etsy |old )*(?:blog|website|web ?site|page|homepage|portfolio|channel|shop|store|site|youtube|github|linkedin|myspace|profile)\b", re.I)
_HANDLE = re.compile(
    r"\b(?:(?:my|our) (?:\w+ )?(?:ig|insta|instagram|twitter|snap|snapchat|tiktok|discord|telegram|kik|reddit|steam|psn|xbox|gamertag|gamer tag|skype|aim|msn|facebook|mastodon|github|twitch|screen ?name|user ?name|handle|venmo|cashapp|cash app)"
    r"(?: (?:user ?name|handle|account|name|id|tag|is))*(?: is|:|'s)?|(?:add|follow|find|dm|message|hit) me (?:up )?(?:on \w+ )?(?:at|@|as|:)(?: \w+:)?) ?(?P<handle>@?[A-Za-z0-9_][\w.#-]{2,30})"
)
_SSN = re.compile(r"(?<![\d-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d-])")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b")
_DOCUMENT = re.compile(
    r"\b(?:my|the) (?:passport|driver'?s licen[sc]e|licen[sc]e|id|ssn|social security|national insurance|tax id|account|bank account|membership|policy|insurance|student id) (?:card )?(?:number|no\.?|#|id)?(?: is|:)? ?#?(?P<number>(?=[A-Z0-9-]*\d[A-Z0-9-]*\d[A-Z0-9-]*\d)[A-Z0-9][A-Z0-9-]{5,24})\b",
    re.I,
)
_DIGIT = re.compile(r"\d")
_SEVEN_DIGITS = re.compile(r"\d(?:\D{0,3}\d){6}")
_SERVICES = re.compile(
    r"\b(?=[acdfghikmprstuvwx])(?:insta|twitter|snap|tiktok|discord|telegram|kik\b|reddit|steam|psn|xbox|gamer|skype|aim\b|msn|"
    r"facebook|mastodon|github|twitch|screen|user ?name|handle|venmo|cash|follow|https?:|www\.|ig\b|add me|find me|dm me|"
    r"message me|hit me)|\.(?:com|blogspot)"
)
_NOT_HANDLES = frozenset("is are was the and for just not here there work home least all that this like with name you your once any it's account private public full dead gone broken hacked banned deleted".split())


@dataclass(frozen=True, slots=True)
class Identifier:
    """Something that names the writer, by where it stands."""

    kind: str
    start: int
    end: int


def identifiers(text: str) -> tuple[Identifier, ...]:
    """Return what names a person directly in a text, in order.

    >>> [one.kind for one in identifiers("Mail me: jo.doe (at) example (dot) org")]
    ['e-mail address']
    """
    found: list[Identifier] = []
    low = text.lower()
    if "@" in low or " dot " in low or "dot)" in low or "dot]" in low or "(at)" in low or "[at]" in low:
        found += _emails(text)
    if _DIGIT.search(text):
        if _SEVEN_DIGITS.search(text):
            found += _numbers(text)
            found += _phones(text, found)
        found += _streets(text)
    if ("my" in low or " me " in low) and _SERVICES.search(low):
        found += _accounts(text, low)
    return tuple(sorted(_apart(found), key=lambda one: one.start)) if found else ()


def _emails(text: str) -> Iterator[Identifier]:
    for match in _EMAIL.finditer(text):
        said = match.group()
        plain = "@" in said or "(at)" in said.lower() or "[at]" in said.lower() or "{at}" in said.lower()
        near = text[max(0, match.start() - 40) : match.end() + 10]
        spelt = " dot " in said.lower() and _MAIL_WORDS.search(near) is not None
        if plain and not re.search(r"@\s|\s@", said) or spelt or (plain and _MAIL_WORDS.search(near)):
            yield Identifier("e-mail address", match.start(), match.end())


def _numbers(text: str) -> Iterator[Identifier]:
    for match in _SSN.finditer(text):
        yield Identifier("document number", match.start(), match.end())
    for match in _CARD.finditer(text):
        number = re.sub(r"\D", "", match.group())
        if number[0] in "3456" and _luhn(number):
            yield Identifier("account number", match.start(), match.end())
    for match in _IBAN.finditer(text):
        if _iban(match.group().replace(" ", "")):
            yield Identifier("account number", match.start(), match.end())
    for match in _DOCUMENT.finditer(text):
        yield Identifier("document number", match.start("number"), match.end("number"))


def _phones(text: str, taken: list[Identifier]) -> Iterator[Identifier]:
    for match in _PHONE.finditer(text):
        number = re.sub(r"\D", "", match.group())
        if not 7 <= len(number) <= 15 or any(one.start < match.end() and match.start() < one.end for one in taken):
            continue
        near = _PHONE_WORDS.search(text, max(0, match.start() - 40), match.end() + 15)
        shaped = re.fullmatch(r"(?:\+?1[ .-]?)?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}", match.group()) is not None
        dated = re.fullmatch(r"(?:19|20)\d\d[ .-]\d{1,2}[ .-]\d{1,2}|\d{1,2}[ .-]\d{1,2}[ .-](?:19|20)?\d\d|(?:19|20)\d\d[ -](?:19|20)\d\d", match.group())
        if dated is None and (shaped or match.group().startswith("+") or near is not None):
            yield Identifier("phone number", match.start(), match.end())


def _streets(text: str) -> Iterator[Identifier]:
    for match in _STREET.finditer(text):
        yield Identifier("street address", match.start(), match.end())
    for match in _STREET_LOW.finditer(text):
        yield Identifier("street address", match.start("street"), match.end("street"))


def _accounts(text: str, low: str) -> Iterator[Identifier]:
    for match in _HANDLE.finditer(text):
        said = match.group("handle").lower().lstrip("@")
        marked = match.group("handle").startswith("@") or re.search(r"[\d_.]", said) or re.search(r"(?: is|:) ?$", text[match.start() : match.start("handle")])
        if said not in _NOT_HANDLES and marked:
            yield Identifier("user name elsewhere", match.start("handle"), match.end("handle"))
    if "my" in low and ("http" in low or "www." in low or ".com" in low):
        for match in _URL.finditer(text):
            if _MY_PAGE.search(text, max(0, match.start() - 60), match.start()):
                yield Identifier("own page", match.start(), match.end())


def _apart(found: list[Identifier]) -> Iterator[Identifier]:
    """Leave out what lies inside something found already."""
    kept: list[Identifier] = []
    for one in found:
        if not any(other.start < one.end and one.start < other.end for other in kept):
            kept.append(one)
            yield one


def _luhn(number: str) -> bool:
    digits = [int(digit) for digit in reversed(number)]
    return sum(digits[0::2] + [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]) % 10 == 0


def _iban(text: str) -> bool:
    if not 15 <= len(text) <= 34:
        return False
    turned = text[4:] + text[:4]
    return int("".join(str(int(letter, 36)) for letter in turned)) % 97 == 1
