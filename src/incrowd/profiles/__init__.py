"""What the adversary sees: words, presence, rarity, habits; one sparse row per identity."""

from __future__ import annotations

from incrowd.profiles.models import MODELS, Profiles, build, from_matrix, indicator, tfidf, unigram

__all__ = ["MODELS", "Profiles", "build", "from_matrix", "indicator", "tfidf", "unigram"]
