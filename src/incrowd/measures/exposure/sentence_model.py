"""A sentence model that comes with its weights in a Python package: nothing is ever downloaded.

The package (WordLlama, the extra `embeddings`) holds one vector for each of 32,000 word pieces, trained so that
the mean over a sentence's pieces is an embedding of the sentence. Only its two data files are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import MissingExtra

PACKAGE = "wordllama"
WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
PIECES = Path("tokenizers") / "l2_supercat_tokenizer_config.json"
TASK = "learning a space of sentence embeddings"


def word_vectors(words: Sequence[str]) -> NDArray[np.float32]:
    """Return what each word adds to a sentence: the sum of its pieces' vectors."""
    import scipy.sparse as sp

    pieces, table = _model()
    numbers = [one.ids for one in pieces.encode_batch_fast(list(words), add_special_tokens=False)]
    bounds = np.cumsum([0, *map(len, numbers)])
    chosen = np.fromiter((piece for one in numbers for piece in one), np.int32, int(bounds[-1]))
    counts = sp.csr_matrix((np.ones(len(chosen), np.float32), chosen, bounds), shape=(len(words), len(table)))
    return np.asarray(counts @ table)


@cache
def _model() -> tuple[Any, NDArray[np.float32]]:
    try:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtra(TASK, "embeddings") from None
    folder = _folder()
    pieces = Tokenizer.from_file(str(folder / PIECES))
    pieces.no_padding()
    pieces.no_truncation()
    (table,) = load_file(folder / WEIGHTS).values()
    return pieces, table.astype(np.float32)


def _folder() -> Path:
    """Find the package without running it: it sets up logging and can download other models."""
    found = find_spec(PACKAGE)
    folder = None if found is None or found.origin is None else Path(found.origin).parent
    if folder is None or not (folder / WEIGHTS).exists() or not (folder / PIECES).exists():
        raise MissingExtra(TASK, "embeddings")
    return folder
