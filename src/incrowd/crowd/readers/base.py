"""What a reader is: one file format turned into batches of rows, bounded in memory; and which column holds what.

A reader yields :class:`Batch` values. It reports a row it cannot parse in ``rejects`` and goes on; it raises
:class:`~incrowd.errors.UnreadableSource` or :class:`~incrowd.errors.SchemaError` when the whole source cannot
be trusted (truncated, corrupt, wrong columns), and then nothing of that source is kept. What holds for every
format (deleted authors, absurd times, over-long texts, duplicates, pseudonyms) is the store's work, not the
reader's.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import polars as pl

from incrowd.crowd.schema import COLUMNS, ROW_COLUMNS, Kind
from incrowd.errors import SchemaError, Undecided


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read a source."""

    kind: Kind | None = None
    """None: the format's own kind."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our column -> the source's column, e.g. ``{"user": "author"}``."""
    community: str | None = None
    """The community of every row, for sources that have none of their own."""
    user: str | None = None
    """The user of every row, for a person's own export."""
    batch_bytes: int = 32 * 2**20
    """About how much decompressed input one batch holds."""
    max_output_bytes: int = 2**40
    """Decompression stops here: nobody's export is larger, a bomb's is."""
    max_ratio: int = 1000
    """Largest believable ratio of decompressed to compressed size, beyond the first 64 MiB."""
    max_line_bytes: int = 16 * 2**20
    """A longer record is set aside as too long, without being held in memory."""
    dates: str | None = None
    """`dmy` or `mdy`: how dates such as 3/4/2020 are meant; None: the column itself decides, or a question does."""
    keep_complete: bool = False
    """Keep the complete records of a truncated source, marked incomplete, instead of refusing it."""


@dataclass(frozen=True)
class Batch:
    """Some rows of a source, in order, and the rows that could not be parsed."""

    rows: pl.DataFrame
    """Columns of :data:`ROW_COLUMNS` and of the kind's table, and of posts their address, `link`; all may be null."""
    rejects: pl.DataFrame
    """Columns `row` (UInt64) and `reason` (String)."""
    replaced: int = 0
    """Rows in which invalid bytes were replaced (U+FFFD)."""
    skipped: int = 0
    """Records that are sound but not this table's: retweets, boosts, messages not meant for the public."""
    incomplete: bool = False
    """The source ended early and `keep_complete` was asked for."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our column -> the source's, as far as the source names any."""
    notes: tuple[str, ...] = ()
    """What the reader was unsure of, in words."""
    left: int = 0
    """Records that are other people's, in a person's own export: counted, never read further."""

    @property
    def kind(self) -> Kind:
        """The table the rows belong to, told by their columns."""
        columns = self.rows.columns
        return "posts" if "text" in columns else "items" if "item" in columns else "attributes"


class Look(Protocol):
    """What can be seen of a source before it is read; the same look serves all readers."""

    @property
    def path(self) -> Path:
        """The file."""

    @property
    def head(self) -> bytes:
        """Its first decompressed bytes."""

    @property
    def names(self) -> Sequence[str]:
        """The files in it, if it is a zip archive."""

    def head_of(self, name: str) -> bytes:
        """Return the first bytes of one of these."""


@dataclass(frozen=True)
class About:
    """What a format is, in words for the person who has such a file."""

    title: str
    whose: Literal["own", "chat", "many"] = "many"
    """A person's own export; a chat, of which only its owner's words are read; data about many people."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our column -> what the service calls it, for formats whose columns are fixed."""
    left: str = ""
    """What such a file holds besides, and is not read."""


class Reader(Protocol):
    """One format: probe (is this file mine?), about (what is it?), read."""

    @property
    def name(self) -> str:
        """What `format` calls it."""

    @property
    def kind(self) -> Kind:
        """The table its rows are for, unless its columns say otherwise."""

    @property
    def about(self) -> About:
        """What the format is."""

    def probe(self, look: Look) -> bool:
        """Say by content whether this reader takes the source."""
        ...

    def read(self, path: Path, options: ReadOptions) -> Iterator[Batch]:
        """Yield the source's rows in order."""
        ...


def empty_rows(kind: Kind) -> pl.DataFrame:
    """Return no rows, with the right columns."""
    linked = {"link": pl.String()} if kind == "posts" else {}
    return pl.DataFrame(schema={**ROW_COLUMNS, **COLUMNS[kind], **linked})


def empty_rejects() -> pl.DataFrame:
    """Return no rejects, with the right columns."""
    return pl.DataFrame(schema={"row": pl.UInt64(), "reason": pl.String()})


GUESSES: dict[str, str] = {
    "user": "author user username user_id uid screen_name handle author_id author_name owner_user_id sender"
    " login member person customer customer_id reviewer_id visitor account"
    " benutzer benutzername nutzer utilisateur usuario usuário utente gebruiker",
    "community": "subreddit community forum group channel board room newsgroup site list server section"
    " gruppe kanal groupe canal grupo gruppo",
    "time": "created_utc created created_at timestamp time datetime date utc t ts published published_at"
    " posted_at unix_time datum zeitpunkt zeitstempel fecha horodatage",
    "text": "body text content message selftext comment post tweet full_text review review_text"
    " nachricht kommentar beitrag texte commentaire texto mensaje comentario mensagem comentário testo messaggio tekst",
    "title": "title subject headline titel betreff titre título titulo titolo",
    "item": "item item_id movie movie_id artist artist_id product product_id asin book book_id isbn song"
    " song_id track track_id business_id game game_id page page_id genre"
    " film buch artikel produkt livre produit libro película pelicula producto",
    "value": "rating value score stars weight plays count play_count listens quantity"
    " bewertung sterne évaluation puntuación puntuacion valutazione",
    "attribute": "attribute key field property trait",
    "id": "id post_id comment_id tweet_id message_id status_id",
    "link": "permalink post_url status_url tweet_url",
}
"""Names in order of preference; case, underscores, blanks and RecBole's ``:type`` endings do not count."""

NAMED_COLUMNS_SHOWN = 20
NO_COLUMN = "-"
"""In `columns`: the file has no such column, whatever its columns are called."""
MAKERS = ("author", "authors")
MADE = ("book", "bookid", "isbn", "song", "songid", "track", "trackid")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a source's columns become a table of the crowd."""

    kind: Kind
    columns: dict[str, tuple[str, ...]]
    """Our column -> the source's columns; texts of several are joined."""
    wide: tuple[str, ...] = ()
    """Columns that are attributes themselves, one value per person."""
    notes: tuple[str, ...] = ()
    """What was decided between two readings, and the option for the other one."""

    @property
    def sources(self) -> list[str]:
        """Return the source's columns that are needed, each once."""
        names = [name for group in self.columns.values() for name in group]
        return list(dict.fromkeys([*names, *self.wide]))

    @property
    def numbers(self) -> set[str]:
        """Return the source's columns that are parsed as a time or a number."""
        return {name for ours in ("time", "value") for name in self.columns.get(ours, ())} - self._texts

    @property
    def _texts(self) -> set[str]:
        texts = (ours for ours in self.columns if ours not in ("time", "value") or self.kind == "attributes")
        return {name for ours in texts for name in self.columns[ours]}


def normal(name: str) -> str:
    """Return a column's name without case, separators and RecBole's type ending."""
    return name.split(":", 1)[0].lower().translate({ord(c): None for c in "_- ."})


COMMON_NAMES = {ours: [normal(name) for name in names.split()] for ours, names in GUESSES.items()}


def guess(names: Sequence[str]) -> dict[str, str]:
    """Return our column -> the source's column, for every one that has a common name."""
    found: dict[str, str] = {}
    by_normal = {normal(name): name for name in reversed(names)}
    for ours, preferences in COMMON_NAMES.items():
        match = next((by_normal[name] for name in preferences if name in by_normal), None)
        if match is not None:
            found[ours] = match
    return found


def layout_of(names: Sequence[str], options: ReadOptions, place: str) -> Layout:
    """Decide how a source's columns become a table, or say what is missing."""
    guessed = guess(names)
    left_out = {ours for ours, theirs in options.columns.items() if theirs == NO_COLUMN}
    guessed = {ours: theirs for ours, theirs in guessed.items() if ours not in left_out}
    chosen = {
        ours: _named(theirs, names, place) for ours, theirs in options.columns.items() if ours not in left_out
    }
    kind = options.kind or _kind(guessed, set(chosen))
    _ask_whose(guessed, chosen, kind, place)
    _check_ours(chosen, kind, place)
    columns: dict[str, tuple[str, ...]] = {ours: (guessed[ours],) for ours in _ours(kind) if ours in guessed}
    if kind == "posts" and "text" in guessed and "title" in guessed:
        columns["text"] = (guessed["title"], guessed["text"])
    columns |= chosen
    wide = () if kind != "attributes" or "attribute" in columns else _wide(names, columns)
    notes = (*_rivals(names, guessed, columns, chosen), *_other_kinds(guessed, kind, options, wide))
    layout = Layout(kind=kind, columns=_without_value(columns) if wide else columns, wide=wide, notes=notes)
    _check_complete(layout, names, options, place)
    return layout


def _ask_whose(
    guessed: dict[str, str], chosen: Mapping[str, tuple[str, ...]], kind: Kind, place: str
) -> None:
    """Ask whether the authors in a list of books or songs are the people: they rarely are."""
    made = normal(guessed.get("user", "")) in MAKERS
    if (
        kind != "posts"
        and made
        and "user" not in chosen
        and ("title" in guessed or normal(guessed.get("item", "")) in MADE)
    ):
        theirs = guessed["user"]
        raise Undecided(
            f"{Path(place).name}: column '{theirs}' names the authors of what is listed, or the people who list it. "
            f"Are these the people? If so, user={theirs}; if the list is one person's, user={NO_COLUMN} leaves that "
            "column out, and --user NAME says whose it is.",
            "columns",
            (f"user={theirs}", f"user={NO_COLUMN}"),
        )


def _rivals(
    names: Sequence[str],
    guessed: dict[str, str],
    columns: Mapping[str, tuple[str, ...]],
    chosen: Mapping[str, tuple[str, ...]],
) -> Iterator[str]:
    """Name columns that could have been meant instead."""
    by_normal = {normal(name): name for name in reversed(names)}
    for ours in ("user", "text", "item"):
        if ours not in columns or ours in chosen:
            continue
        fitting = [by_normal[name] for name in COMMON_NAMES[ours] if name in by_normal]
        others = [
            name for name in fitting if name not in columns[ours] and _root(name) != _root(guessed[ours])
        ]
        if others:
            yield f"'{guessed[ours]}' was taken for {ours}; '{others[0]}' would fit, too: --columns {ours}={others[0]}"


def _root(name: str) -> str:
    return re.sub(r"(id|name)s?$", "", normal(name))


def _other_kinds(
    guessed: dict[str, str], kind: Kind, options: ReadOptions, wide: tuple[str, ...]
) -> Iterator[str]:
    if options.kind is not None:
        return
    if kind == "posts" and "item" in guessed:
        yield f"it was read as posts; column '{guessed['item']}' could make it items: --kind items"
    if wide:
        yield f"no column holds texts or items, so its {len(wide)} other columns were read as attributes of people"


def _kind(guessed: dict[str, str], chosen: set[str]) -> Kind:
    have = chosen | set(guessed)
    if "text" in chosen or ("text" in have and not chosen & {"item", "attribute"}):
        return "posts"
    if "attribute" in chosen or ({"attribute", "value"} <= have and "item" not in have):
        return "attributes"
    return "items" if "item" in have else "attributes"


def _named(theirs: str, names: Sequence[str], place: str) -> tuple[str, ...]:
    wanted = (theirs,) if theirs in names else tuple(theirs.split("+"))
    by_normal = {name.split(":", 1)[0]: name for name in names}
    for name in wanted:
        if name not in names and name not in by_normal:
            raise SchemaError(
                f"{place}: --columns names '{name}', which the file does not have. {listed(names)}"
            )
    return tuple(name if name in names else by_normal[name] for name in wanted)


def _ours(kind: Kind) -> list[str]:
    """Return what a source's columns may be called here."""
    return [*COLUMNS[kind], "id", *(["link"] if kind == "posts" else [])]


def _check_ours(chosen: dict[str, tuple[str, ...]], kind: Kind, place: str) -> None:
    allowed = _ours(kind)
    for ours in chosen:
        if ours not in allowed:
            raise SchemaError(
                f"{place}: --columns sets '{ours}'; a table of {kind} has {', '.join(allowed)}. "
                "Use one of these, or another --kind."
            )


def _wide(names: Sequence[str], columns: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    taken = {name for ours in ("user", "id") for name in columns.get(ours, ())}
    return tuple(name for name in names if name not in taken)


def _without_value(columns: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    return {ours: theirs for ours, theirs in columns.items() if ours != "value"}


def _check_complete(layout: Layout, names: Sequence[str], options: ReadOptions, place: str) -> None:
    needed = {"posts": ("user", "text"), "items": ("user", "item"), "attributes": ("user",)}[layout.kind]
    for ours in needed:
        if ours in layout.columns or (ours == "user" and options.user is not None):
            continue
        missing = f"{place}: no column for '{ours}' of the {layout.kind} table."
        if ours == "user":
            raise Undecided(
                f"{missing} Name it with --columns user=NAME or --user NAME. {listed(names)}",
                "user",
            )
        raise SchemaError(f"{missing} Name it with --columns {ours}=NAME. {listed(names)}")
    if layout.kind == "attributes" and not layout.wide and "value" not in layout.columns:
        raise SchemaError(
            f"{place}: no column holds an attribute. Name it with --columns value=NAME. {listed(names)}"
        )


def listed(names: Sequence[str]) -> str:
    """Name the columns there are, for a message; without a header they would be data, and stay hidden."""
    if not guess(names):
        return (
            f"None of the file's {len(names)} columns has a known name; if its first line is no header, add one, such "
            "as user,time,text."
        )
    shown = ", ".join(name[:40] for name in names[:NAMED_COLUMNS_SHOWN])
    more = ", ..." if len(names) > NAMED_COLUMNS_SHOWN else ""
    return f"Columns in the file: {shown}{more}."


# The words of an HTML text, without its tags, and without what its author only quoted.

# Bounded by the next angle bracket, so that no input makes it look far ahead again and again.
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)[^<>]*>|<![^<>]*>")
_BLOCKS = "p br div li ul ol tr table h1 h2 h3 h4 h5 h6 hr pre blockquote"
LINE_BREAKING = frozenset(_BLOCKS.split())
LEFT_OUT = frozenset({"blockquote", "pre", "script", "style", "head"})
"""With all they hold: quotations are someone else's words, code is nobody's."""


def html_text(markup: str) -> str:
    """Return the text a reader of the page sees, one line per paragraph.

    >>> html_text("<p>Hello <b>there</b> &amp; all</p><blockquote>quoted</blockquote>")
    'Hello there & all'
    """
    if "<" not in markup:
        return html.unescape(markup).strip()
    parts: list[str] = []
    inside: str | None = None
    depth = 0
    end = 0
    for tag in _TAG.finditer(markup):
        name = (tag[2] or "").lower()
        if inside is None:
            parts.append(markup[end : tag.start()])
            parts.append("\n" if name in LINE_BREAKING else "")
            if name in LEFT_OUT and not tag[1]:
                inside, depth = name, 1
        elif name == inside:
            depth += -1 if tag[1] else 1
            inside = inside if depth else None
        end = tag.end()
    if inside is None:
        parts.append(markup[end:])
    lines = (line.strip() for line in html.unescape("".join(parts)).split("\n"))
    return "\n".join(line for line in lines if line)
