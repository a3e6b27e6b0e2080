"""Texts let through once: what a voice cannot say, and what was there before, is counted out."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from beamless.data_gen.spoken import clean, spoken_form
from beamless.inference.errors import BeamlessError

DUPLICATE = "a duplicate"
NEAR_DUPLICATE = "nearly a duplicate"
NEARNESS = 85.0
"""Percent of letters in common, in order, from which two texts count as nearly the same."""


class Sieve:
    """Remembers the texts that it let through and counts the others by reason."""

    def __init__(self, language: str = "en", near: bool = False) -> None:
        """Begin with nothing.

        Args:
            language: two-letter code of the texts.
            near: refuse near-duplicates as well, which costs time with the square of the number.
        """
        self.refused: Counter[str] = Counter()
        self._language, self._near = language, near
        self._seen: set[str] = set()
        self._keys: list[str] = []

    def take(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return ``row`` with its cleaned ``text`` and its ``spoken`` form, or None if refused."""
        said = spoken_form(row.get("spoken") or row["text"], self._language)
        key = " ".join(re.findall(r"\w+", clean(row["text"]).casefold()))
        reason = said.reason
        if not reason and key in self._seen:
            reason = DUPLICATE
        elif not reason and self._near and self._is_near(key):
            reason = NEAR_DUPLICATE
        if reason:
            self.refused[reason] += 1
            return None
        self._seen.add(key)
        if self._near:
            self._keys.append(key)
        return {**row, "text": clean(row["text"]), "spoken": said.spoken}

    def _is_near(self, key: str) -> bool:
        try:
            from rapidfuzz import fuzz, process
        except ImportError:
            raise BeamlessError(
                'near-duplicates need rapidfuzz; run: pip install "beamless[voices]"'
            ) from None
        return (
            process.extractOne(key, self._keys, scorer=fuzz.ratio, score_cutoff=NEARNESS)
            is not None
        )
