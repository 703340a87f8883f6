"""The text steps, readable: what every faster twin must agree with, token for token.

The order follows the Reddit study behind (k, d)-anonymity, with HTML entities decoded first:

0. decode HTML entities,
1. lower-case,
2. take out markup; delete code blocks and quotes entirely (:mod:`incrowd.text.reference`),
3. compose Unicode (NFC) and delete the combining marks that are left,
4. replace a URL by its host name,
5. delete punctuation, except in host names and smileys,
6. cut runs of a character to three, except in host names and smileys;

then drop stop words. White space separates words, other punctuation does not: "don't" becomes "dont". Steps 3
to 6 look at one white-space-free chunk at a time, so that the fast twin may treat each distinct chunk once.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache

from incrowd.text.options import TextOptions

# What a character is to the text steps: part of a word, a symbol, a mark, white space, or waste.
#
# One definition serves the readable reference and the tables of the fast twin. It follows the Unicode general
# category, so that every script is treated alike.


class CharacterKind(IntEnum):
    """What the text steps do with a character."""

    SPACE = 0
    """Separates words (``str.isspace``)."""
    WORD = 1
    """A letter or a digit of any script: kept."""
    SYMBOL = 2
    """An emoji or another picture: kept, a token of its own."""
    MARK = 3
    """A combining mark that no letter took up under NFC: deleted."""
    OTHER = 4
    """Punctuation, currency and mathematical signs, controls, unassigned: deleted."""


APOSTROPHES = "'’‘"
_EMPTY_SYMBOLS = "\ufffc\ufffd\u2800"  # stand-ins for something lost, and a blank: no picture at all
_DIACRITICS = range(0x0300, 0x0370)


@cache
def kind(character: str) -> CharacterKind:
    """Say what the text steps do with one character."""
    if character.isspace():
        return CharacterKind.SPACE
    category = unicodedata.category(character)
    if category[0] in "LN":
        return CharacterKind.WORD
    if category[0] == "M":
        return CharacterKind.MARK
    if category == "So" and character not in _EMPTY_SYMBOLS:
        return CharacterKind.SYMBOL
    return CharacterKind.OTHER


@cache
def is_letter_mark(character: str) -> bool:
    """Say whether a combining mark is part of a script's spelling, such as a Hindi or Thai vowel sign.

    Marks that can be stacked on any letter have combining class 1 (overlays) or 200 and above; vowel signs,
    viramas, Hebrew and Arabic points lie between. Variation selectors have class 0 but spell nothing.
    """
    if kind(character) != CharacterKind.MARK or unicodedata.category(character) == "Me":
        return False
    stackable = unicodedata.combining(character) == 1 or unicodedata.combining(character) >= 200
    named = unicodedata.name(character, "")
    return not (stackable or ord(character) in _DIACRITICS or "VARIATION SELECTOR" in named)


# Step 2 of the text pipeline: take the Markdown out of a post, keep the words its author wrote.
#
# Code and quotes are nobody's own words and go entirely. Most other markup (emphasis, headings, bullets,
# superscript, spoilers, strike-through) consists of punctuation, which step 5 deletes; here goes only what
# would leave a wrong word behind. Every pattern runs in linear time.

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[^`~]*+$")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)\s*+\S")
_LIST_ITEM = re.compile(r"[ \t]*+(?:[*+-]|[0-9]{1,9}[.)])[ \t]")
_LIST_NUMBER = re.compile(r"[ \t]*+[0-9]{1,9}[.)](?=[ \t])")
_QUOTE = re.compile(r" {0,3}>(?!!)")  # ">!" opens a spoiler, which is the author's own text
_CELL_RULE = r"[ \t]*+:?-++:?[ \t]*+"
_TABLE_RULE = re.compile(rf"[ \t]*+(?:\|{_CELL_RULE}|{_CELL_RULE}\|{_CELL_RULE})(?:\|{_CELL_RULE})*+\|?\s*+$")
_BACKTICKS = re.compile(r"(?<!\\)`++")
_LINK_TARGET = re.compile(
    r"\]\([ ]*+<?([^\s()<>]*+(?:\([^\s()<>]*+\)[^\s()<>]*+)*+)>?(?=[ ]*+\)|[ ]++[\"'(])"
)
_ABSOLUTE = re.compile(r"(?:https?|ftp)://|www\.")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def without_entities(text: str) -> str:
    """Decode HTML entities, twice: once for the transport, once for those the author typed.

    >>> without_entities("&amp;gt; R&amp;amp;D")
    '> R&D'
    """
    return html.unescape(html.unescape(text)) if "&" in text else text


def without_markup(text: str) -> str:
    """Return the author's own words of a Markdown post.

    >>> without_markup("> you said\\nsee [my *page*](https://example.org/a) `x = 1`")
    '\\nsee [my *page*](https://example.org/a)  '
    """
    lines = _own_lines(text.split("\n"))
    if any(map(_TABLE_RULE.match, lines)):
        lines = ["" if _TABLE_RULE.match(line) else line.replace("|", " ") for line in lines]
    return _ESCAPED.sub(r"\1", "\n".join(map(_own_words, lines)))


def _own_lines(lines: list[str]) -> list[str]:
    """Blank out code blocks (fenced, or indented after a blank line) and quoted lines."""
    kept = []
    fence = ""
    after_blank = True
    for line in lines:
        opening = _FENCE.match(line)
        if fence:
            is_own = False
            if opening and opening[1].startswith(fence) and line.strip() == opening[1]:
                fence = ""
        elif opening:
            is_own, fence = False, opening[1]
        elif after_blank and _INDENTED.match(line) and not _LIST_ITEM.match(line):
            is_own = False
        else:
            is_own = not _QUOTE.match(line)
            after_blank = not line.strip()
        kept.append(line if is_own else "")
    return kept


def _own_words(line: str) -> str:
    """Take inline code, list numbers and the syntax of links out of one line."""
    line = _LIST_NUMBER.sub("", line, count=1) if _LIST_NUMBER.match(line) else line
    line = _without_inline_code(line) if "`" in line else line
    return _LINK_TARGET.sub(_target_words, line) if "](" in line else line


def _target_words(target: re.Match[str]) -> str:
    """Leave a link's address if it names a host (step 4 finds it); one within the site says nothing."""
    return target[0] if _ABSOLUTE.match(target[1]) else "] "


def _without_inline_code(line: str) -> str:
    """Delete what stands between a run of backticks and the next run of the same length."""
    runs = [run.span() for run in _BACKTICKS.finditer(line)]
    closing: list[int | None] = [None] * len(runs)
    next_of_length: dict[int, int] = {}
    for i in reversed(range(len(runs))):
        length = runs[i][1] - runs[i][0]
        closing[i] = next_of_length.get(length)
        next_of_length[length] = i
    kept, at, i = [], 0, 0
    while i < len(runs):
        end = closing[i]
        if end is not None:
            kept.append(line[at : runs[i][0]])
            at, i = runs[end][1], end
        i += 1
    return " ".join([*kept, line[at:]])


MAX_RUN = 3
_SIMPLE = re.compile(r"[a-z0-9']+")
_RUN = re.compile(rf"(.)\1{{{MAX_RUN},}}", re.DOTALL)
_NOT_AFTER_WORD, _NOT_BEFORE_WORD = r"(?<![^\W_])", r"(?![^\W_])"
_PATH = r"[^\s<>\"|\[\]()]*+"
_URL = (
    rf"(?:(?:https?|ftp)://|(?={_NOT_AFTER_WORD}www\.[^\W_]))(?P<authority>[\w.~%:@+-]*+)"
    rf"(?:[/?#]{_PATH}(?:\({_PATH}\){_PATH})*+)?+"
)


def tokenise(text: str, options: TextOptions | None = None) -> list[str]:
    """Return the tokens of one post, in order.

    >>> tokenise("I &lt;3 **Cooooool** stuff, don't you? :D https://www.example.org/a?b=c")
    ['<3', 'coool', ':d', 'www.example.org']
    """
    options = options or TextOptions()
    lexicon = lexicon_of(options)
    return [token for chunk in plain_text(text, options).split() for token in _met_before(chunk, lexicon)]


def plain_text(text: str, options: TextOptions) -> str:
    """Run the steps that need to see the whole post (0 to 2)."""
    if options.tokens == "simple":
        return text.lower()
    if not options.compat_gt:
        text = without_entities(text)
    return without_markup(text.lower())


def chunk_tokens(chunk: str, lexicon: Lexicon) -> list[str]:
    """Run the steps that look at one white-space-free chunk of lower-case text (3 to 6, then stop words)."""
    if lexicon.is_simple:
        return [word for word in _SIMPLE.findall(chunk) if word not in lexicon.stop_words]
    chunk = composed(chunk, lexicon.letter_marks)
    tokens: list[str] = []
    at = 0
    for kept in lexicon.kept_whole.finditer(chunk):
        tokens += _word_tokens(chunk[at : kept.start()], lexicon)
        tokens += _host(kept["authority"]) if kept["authority"] is not None else [lexicon.smiley(kept[0])]
        at = kept.end()
    tokens += _word_tokens(chunk[at:], lexicon)
    return [token for token in tokens if token not in lexicon.stop_words]


_met_before = lru_cache(maxsize=2**16)(chunk_tokens)
"""The same; people repeat themselves, and one person's posts are read again with every change that is tried."""


def composed(text: str, letter_marks: bool = False) -> str:
    """Compose letters with their marks and delete the marks that are left (stacked diacritics)."""
    stray = _NO_STRAY_MARKS if letter_marks else _NO_MARKS
    return unicodedata.normalize("NFC", text).translate(stray)


def _word_tokens(piece: str, lexicon: Lexicon) -> Iterator[str]:
    """Yield what lies between URLs and smileys without its punctuation; an emoji stands by itself.

    A stop word with an apostrophe is looked up as written, so that "he'll" goes and "hell" stays.
    """
    for word in cut_runs(piece).translate(_EMOJI_APART).split():
        token = cut_runs(word.replace("'", ""))
        if token and cut_runs(word.strip("'")) not in lexicon.stop_words:
            yield token


def cut_runs(text: str) -> str:
    """Cut runs of a character to three: people stretch words by any number of letters, and mean the same."""
    return _RUN.sub(lambda run: run[1] * MAX_RUN, text)


def _host(authority: str) -> list[str]:
    """Return the host name of a URL, without user, password and port; www. stays."""
    host = authority.rpartition("@")[2].partition(":")[0].strip(".-~+%_")
    return [host] if host else []


class _Translation(dict[int, str]):
    """A table for ``str.translate`` that works out each character when it is first met."""

    def __init__(self, rule: Callable[[str], str]) -> None:
        super().__init__()
        self._rule = rule

    def __missing__(self, code: int) -> str:
        self[code] = self._rule(chr(code))
        return self[code]


def _without_punctuation(character: str) -> str:
    if character in APOSTROPHES:
        return "'"  # until the stop words have been looked up
    if kind(character) == CharacterKind.SYMBOL:
        return f" {character} "
    return "" if kind(character) == CharacterKind.OTHER else character


_NO_MARKS = _Translation(lambda c: "" if kind(c) == CharacterKind.MARK else c)
_NO_STRAY_MARKS = _Translation(lambda c: "" if kind(c) == CharacterKind.MARK and not is_letter_mark(c) else c)
_EMOJI_APART = _Translation(_without_punctuation)


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Some options, made ready for matching."""

    is_simple: bool
    letter_marks: bool
    stop_words: frozenset[str]
    smileys: frozenset[str]
    kept_whole: re.Pattern[str]
    """URLs and smileys. A smiley that holds a letter or digit does not follow one: none is in "12:30"."""

    def smiley(self, found: str) -> str:
        """Return the listed smiley of one whose last character was repeated."""
        base = found.rstrip(found[-1])
        return next(s for n in range(len(found)) if (s := base + found[-1] * (n + 1)) in self.smileys)


@cache
def lexicon_of(options: TextOptions) -> Lexicon:
    """Return the word lists of some options, made ready for matching."""
    smileys = frozenset(smileys_in_force(options))
    worded = {smiley for smiley in smileys if any(c.isalnum() for c in smiley)}
    patterns = [_URL, _NOT_AFTER_WORD + _any_smiley(worded), _any_smiley(smileys - worded)]
    return Lexicon(
        is_simple=options.tokens == "simple",
        letter_marks=options.letter_marks,
        stop_words=frozenset(options.stop_word_list),
        smileys=smileys,
        kept_whole=re.compile("|".join(patterns)),
    )


def smileys_in_force(options: TextOptions) -> list[str]:
    """Return the smileys to look for: those that step 5 would take apart, as step 3 leaves them."""
    listed = (composed(smiley, options.letter_marks) for smiley in options.smiley_list)
    return [s for s in listed if any(kind(c) in (CharacterKind.OTHER, CharacterKind.SYMBOL) for c in s)]


def _any_smiley(smileys: Collection[str]) -> str:
    """Match the longest of some smileys, its last character once or more, unless a word goes on after it."""
    if not smileys:
        return r"(?!)"
    first = "".join(sorted({re.escape(smiley[0]) for smiley in smileys}))
    longest_first = sorted(smileys, key=lambda smiley: (-len(smiley), smiley))
    alternatives = "|".join(re.escape(smiley) + re.escape(smiley[-1]) + "*+" for smiley in longest_first)
    return f"(?=[{first}])(?:{alternatives}){_NOT_BEFORE_WORD}"
