"""A part of a corpus that stands for the whole."""

import hashlib
from collections.abc import Sequence

from beamless.data_gen.corpora import Utterance
from beamless.inference.counts import require_positive


def spread(utterances: Sequence[Utterance], limit: int | None) -> list[Utterance]:
    """Return utterances in the order of a hash of their ids, at most ``limit`` of them.

    Corpora stand in the order of their speakers; in this order any first few are from all of
    them, and a larger limit keeps what a smaller one had.

    Raises:
        BeamlessError: the limit leaves nothing.
    """
    require_positive(limit=limit)
    return sorted(utterances, key=lambda utterance: place(utterance.id))[:limit]


def place(identifier: str) -> bytes:
    """Return what utterances are ordered by: a hash of the id."""
    return hashlib.sha256(identifier.encode()).digest()
