"""A part of a corpus that stands for the whole."""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from beamless.data_gen.corpora import Utterance
from beamless.inference.counts import require_positive

T = TypeVar("T")


def spread(utterances: Sequence[Utterance], limit: int | None) -> list[Utterance]:
    """Return utterances in the order of a hash of their ids, at most ``limit`` of them.

    Corpora stand in the order of their speakers; in this order any first few are from all of
    them, and a larger limit keeps what a smaller one had.

    Raises:
        BeamlessError: the limit leaves nothing.
    """
    require_positive(limit=limit)
    return sorted(utterances, key=lambda utterance: place(utterance.id))[:limit]


def first(found: Iterable[T], count: int | None) -> Iterator[T]:
    """Yield the first so many of what is found, all of it if None; no count is too large."""
    return islice(found, None if count is None else min(count, sys.maxsize))


def place(identifier: str) -> bytes:
    """Return what utterances are ordered by: a hash of the id."""
    return hashlib.sha256(identifier.encode()).digest()
