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
    ordered = sorted(utterances, key=lambda u: hashlib.sha256(u.id.encode()).digest())
    return ordered[:limit]
