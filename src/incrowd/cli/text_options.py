"""Options on words, shared by the commands that read text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from incrowd.text.options import TextOptions

TokenRule = Annotated[
    str, typer.Option("--tokens", help="full: the six cleaning steps; simple: runs of a-z, 0-9 and '.")
]
KeepStopwords = Annotated[bool, typer.Option("--keep-stopwords", help="Keep words such as “the”.")]


def text_options(tokens: str, keep_stopwords: bool) -> TextOptions:
    """Turn the two switches into the text pipeline's options."""
    from incrowd.text.options import TextOptions

    return TextOptions(tokens=tokens, keep_stopwords=keep_stopwords)  # type: ignore[arg-type]
